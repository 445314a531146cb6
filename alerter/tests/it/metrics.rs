//! `/metrics` from memory: every series is shown, also with zero; it equals the journal, and waits for nothing.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

use alerter::surface::metrics::catalogue::{ALL, Kind, Metric};
use marks::delivery::State;
use marks::host::HostName;
use marks::id::MarkId;
use marks::register::{About, Scope};

use crate::decisions::decision;
use crate::site::{Alerter, Hold, OUTCOMES, Site, started};

const LIMIT: Duration = Duration::from_secs(20);

/// Two routes, one of which is not required.
fn daemon() -> (Site, Alerter) {
    let site = Site::new(&["c1", "c2", "c3", "c4"]);
    site.leave_the_backup_free();
    started(site, "ctl1")
}

/// Every sample with its labels as they are written.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.rsplit_once(' ').unwrap());
    parts.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// A host in each of a few states.
fn story(site: &mut Site, alerter: &mut Alerter) -> [MarkId; 4] {
    let first = site.outage("c1", "ctl1");
    alerter.run(site, 4);
    site.down.extend(["nova", "backup"]);
    let others = ["c2", "c3", "c4"].map(|host| MarkId::from(site.outage(host, "ctl1")));
    let (scope, until) = (Scope::Host(HostName::parse("c3").unwrap()), site.now + Duration::from_secs(600));
    alerter.decide(&decision(site, About::Maintenance { scope, until }));
    alerter.take_in(site);
    alerter.unmark(site, others[0]);
    [first.into(), others[0], others[1], others[2]]
}

/// S1-7. The broken variant leaves a series out: an absent series never fires an alert.
#[test]
fn every_word_is_shown_with_its_zero() {
    let ((_site, alerter), mut wanted) = (daemon(), Vec::new());
    for state in State::ALL.map(State::as_str) {
        wanted.push(format!("nova_host_alerter_marks{{state=\"{state}\"}}"));
        for route in ["nova", "backup"] {
            wanted.push(format!("nova_host_alerter_deliveries{{route=\"{route}\",state=\"{state}\"}}"));
        }
    }
    for outcome in OUTCOMES {
        wanted.push(format!("nova_host_alerter_attempts_total{{route=\"backup\",outcome=\"{outcome}\"}}"));
    }
    for hold in Hold::ALL.map(Hold::as_str) {
        wanted.push(format!("nova_host_alerter_holds{{reason=\"{hold}\"}}"));
    }
    for state in ["open", "parked"] {
        wanted.push(format!("nova_host_alerter_route_endpoint{{route=\"backup\",state=\"{state}\"}}"));
    }
    wanted.push("nova_host_alerter_fencing_to_acknowledgement_seconds_count{route=\"backup\"}".into());
    wanted.push("nova_host_alerter_oldest_open_mark_age_seconds".into());
    let found = samples(&alerter.metrics());
    for name in &wanted {
        assert_eq!(found.get(name), Some(&0.0), "{name}");
    }
    assert_eq!(found["nova_host_alerter_active_controller"], 1.0);
    assert_eq!(found["nova_host_alerter_route_required{route=\"nova\"}"], 1.0);
    assert!(!found.keys().any(|name| name.contains("host=")), "hosts are no labels: there may be any number");
}

/// The broken variant is the scrape in between: what was counted before the story differs from what is there after it.
#[test]
fn figures_are_what_the_journal_has() {
    let (mut site, mut alerter) = daemon();
    alerter.metrics();
    let marks = story(&mut site, &mut alerter);
    let mut rows = BTreeMap::<String, f64>::new();
    for (route, state) in marks.iter().flat_map(|mark| alerter.deliveries(*mark)) {
        let labels = format!("{{route=\"{route}\",state=\"{}\"}}", state.as_str());
        *rows.entry(format!("nova_host_alerter_deliveries{labels}")).or_default() += 1.0;
    }
    let shown = |text: &str| {
        let mut all = samples(text);
        all.retain(|name, count| name.starts_with("nova_host_alerter_deliveries{") && *count > 0.0);
        all
    };
    assert_ne!(shown(&alerter.scrape()), rows);
    assert_eq!(shown(&alerter.metrics()), rows);
    let found = samples(&alerter.scrape());
    for (state, count) in [("acknowledged", 1.0), ("dismissed", 1.0), ("held", 1.0), ("pending", 1.0)] {
        assert_eq!(found[&format!("nova_host_alerter_marks{{state=\"{state}\"}}")], count, "{state}");
    }
    assert_eq!(found["nova_host_alerter_holds{reason=\"maintenance\"}"], 1.0);
    assert_eq!(found["nova_host_alerter_group_marks{group=\"default\"}"], 2.0);
    assert!(found["nova_host_alerter_journal_size_bytes"] > 4096.0);
    assert!(found["nova_host_alerter_counted_time_seconds"] >= found["nova_host_alerter_start_time_seconds"]);
}

/// The journal's thread hangs in a disk, and holds the plan meanwhile. The broken variant asks it: the groups are counted when
/// it is free again.
#[test]
fn a_scrape_waits_for_no_disk() {
    let (_site, alerter) = daemon();
    let free = alerter.hangs();
    assert!(alerter.scrape().ends_with("# EOF\n"));
    let (counted, all) = mpsc::channel();
    thread::spawn(move || counted.send(alerter.metrics()).unwrap());
    assert!(all.try_recv().is_err(), "nobody has let go of the plan");
    drop(free);
    let all = samples(&all.recv_timeout(LIMIT).unwrap());
    assert_eq!(all["nova_host_alerter_group_marks{group=\"default\"}"], 0.0);
}

/// Everything that the catalogue has is shown, and nothing else, each with the labels that it names.
#[test]
fn the_catalogue_is_what_is_shown() {
    let (mut site, mut alerter) = daemon();
    story(&mut site, &mut alerter);
    let mut shown = BTreeMap::<String, Vec<String>>::new();
    for name in samples(&alerter.metrics()).into_keys() {
        let (name, labels) = name.split_once('{').unwrap_or((&name, "}"));
        let labels = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
        let labels = labels.map(|(label, _)| label.to_owned()).filter(|label| label != "le").collect();
        shown.insert(name.to_owned(), labels);
    }
    let mut wanted = BTreeMap::new();
    for metric in ALL {
        let labels: Vec<String> = metric.labels.iter().map(|&label| label.to_owned()).collect();
        wanted.extend(metric.samples().into_iter().map(|name| (name, labels.clone())));
    }
    // The model's register gives entries, and no answer with a size.
    wanted.remove("nova_host_alerter_register_answer_bytes");
    assert_eq!(shown, wanted);
}

/// A row of the table in docs/metrics.md.
fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
    };
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
    let name = metric.family() + if metric.kind == Kind::Counter { "_total" } else { "" };
    format!("| `{name}` | {kind} | {} | {labels} | {} |", metric.unit.unwrap_or("–"), metric.help)
}

#[test]
fn the_manual_lists_every_metric_and_no_other() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    let manual = fs::read_to_string(path).unwrap();
    let found: Vec<&str> = manual.lines().filter(|line| line.starts_with("| `nova_host_alerter_")).collect();
    let wanted: Vec<String> = ALL.iter().map(row).collect();
    assert_eq!(found, wanted, "the table should be:\n{}\n", wanted.join("\n"));
}
