//! `/metrics` from memory: every series is shown, also with zero; it equals the journal, and waits for nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fs, thread};

use alerter::policy::Hold;
use alerter::state::counters::OUTCOMES;
use alerter::surface::metrics::catalogue::{ALL, Kind, Metric};
use alerter::surface::metrics::{counting, write};
use journal::{Capacity, Dispatched, HeldMark, Journal, Role, Verdict};
use marks::delivery::State;
use marks::id::MarkId;
use marks::time::Timestamp;

use crate::routes::{Daemon, Place, route};
use crate::site::taken;

const LIMIT: Duration = Duration::from_secs(20);

/// Two routes, one of which is not required.
fn daemon(place: &Place) -> Daemon {
    place.start(&(route("recovery", "") + &route("wiki", "required = false")))
}

/// Every sample with its labels as they are written.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.rsplit_once(' ').unwrap());
    parts.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

fn count(daemon: &Daemon) {
    let figures = counting::count_now(&daemon.journal, &daemon.shared).unwrap();
    daemon.shared.put_figures(figures);
}

fn scrape(daemon: &Daemon) -> BTreeMap<String, f64> {
    samples(&write(&daemon.shared))
}

/// One attempt of every due mark of a route.
fn attempt(daemon: &mut Daemon, route: &str, verdict: &Verdict) -> Dispatched {
    let now = Timestamp::now();
    let begun = daemon.journal.dispatch(&[], &[Capacity::of(route, 1)], None, now).unwrap().begun;
    let ended = |mark| journal::Ended { mark, route: route.to_owned(), verdict: verdict.clone(), at: now };
    let ended: Vec<_> = begun.iter().map(|due| ended(due.mark.id)).collect();
    daemon.journal.dispatch(&ended, &[], None, now).unwrap()
}

/// A host in each of a few states.
fn story(daemon: &mut Daemon) -> Vec<MarkId> {
    let now = Timestamp::now();
    let mut marks = vec![daemon.fence("c1", now)];
    attempt(daemon, "recovery", &taken());
    attempt(daemon, "wiki", &taken());
    marks.extend(["c2", "c3", "c4"].map(|host| daemon.fence(host, now)));
    daemon.journal.dismiss(marks[1], "by hand", "alice", now).unwrap();
    let words = vec!["pause".to_owned()];
    let held = HeldMark {
        mark: marks[2],
        words,
        until: None,
        why: "a new switch".into(),
        cause: Default::default(),
        since: now,
    };
    daemon.journal.hold(&[held], &[], now).unwrap();
    marks
}

/// S1-7. The broken variant leaves a series out: an absent series never fires an alert.
#[test]
fn every_word_is_shown_with_its_zero() {
    let (place, mut wanted) = (Place::new(), Vec::new());
    let daemon = daemon(&place);
    for state in State::ALL.map(State::as_str) {
        wanted.push(format!("nova_host_alerter_marks{{state=\"{state}\"}}"));
        for route in ["recovery", "wiki"] {
            wanted.push(format!("nova_host_alerter_deliveries{{route=\"{route}\",state=\"{state}\"}}"));
        }
    }
    for outcome in OUTCOMES {
        wanted.push(format!("nova_host_alerter_attempts_total{{route=\"wiki\",outcome=\"{outcome}\"}}"));
    }
    for hold in Hold::ALL.map(Hold::as_str) {
        wanted.push(format!("nova_host_alerter_holds{{reason=\"{hold}\"}}"));
    }
    for state in ["open", "parked"] {
        wanted.push(format!("nova_host_alerter_route_endpoint{{route=\"wiki\",state=\"{state}\"}}"));
    }
    wanted.push("nova_host_alerter_fencing_to_acknowledgement_seconds_count{route=\"wiki\"}".into());
    wanted.push("nova_host_alerter_oldest_open_mark_age_seconds".into());
    let found = scrape(&daemon);
    for name in &wanted {
        assert_eq!(found.get(name), Some(&0.0), "{name}");
    }
    assert_eq!(found["nova_host_alerter_active_controller"], 1.0);
    assert_eq!(found["nova_host_alerter_route_required{route=\"recovery\"}"], 1.0);
    assert!(!found.keys().any(|name| name.contains("host=")), "hosts are no labels: there may be any number");
}

/// The broken variant is the scrape in between: what was counted before the story differs from what is there after it.
#[test]
fn figures_are_what_the_journal_has() {
    let place = Place::new();
    let mut daemon = daemon(&place);
    count(&daemon);
    let marks = story(&mut daemon);
    let rows = |daemon: &Daemon| {
        let mut all = BTreeMap::<String, f64>::new();
        for (route, state) in marks.iter().flat_map(|mark| daemon.deliveries(*mark)) {
            let labels = format!("{{route=\"{route}\",state=\"{}\"}}", state.as_str());
            *all.entry(format!("nova_host_alerter_deliveries{labels}")).or_default() += 1.0;
        }
        all
    };
    let shown = |daemon: &Daemon| -> BTreeMap<String, f64> {
        let deliveries =
            scrape(daemon).into_iter().filter(|(name, _)| name.starts_with("nova_host_alerter_deliveries{"));
        deliveries.filter(|(_, count)| *count > 0.0).collect()
    };
    assert_ne!(shown(&daemon), rows(&daemon));
    count(&daemon);
    assert_eq!(shown(&daemon), rows(&daemon));
    let found = scrape(&daemon);
    for (state, count) in [("acknowledged", 1.0), ("dismissed", 1.0), ("held", 1.0), ("pending", 1.0)] {
        assert_eq!(found[&format!("nova_host_alerter_marks{{state=\"{state}\"}}")], count, "{state}");
    }
    assert_eq!(found["nova_host_alerter_holds{reason=\"pause\"}"], 1.0);
    assert_eq!(found["nova_host_alerter_group_marks{group=\"default\"}"], 2.0);
    assert!(found["nova_host_alerter_journal_size_bytes"] > 4096.0);
    assert!(found["nova_host_alerter_counted_time_seconds"] >= found["nova_host_alerter_start_time_seconds"]);
}

/// The journal's thread hangs in a disk, and holds the plan meanwhile. The broken variant asks it: the groups are counted when
/// it is free again.
#[test]
fn a_scrape_waits_for_no_disk() {
    let place = Place::new();
    let shared = Arc::new(daemon(&place).shared);
    let (held, is_held) = mpsc::channel();
    let (free, is_free) = mpsc::channel::<()>();
    let wedged = Arc::clone(&shared);
    let stuck = thread::spawn(move || {
        let _plan = wedged.policy.steering();
        held.send(()).unwrap();
        is_free.recv_timeout(LIMIT).unwrap();
    });
    is_held.recv_timeout(LIMIT).unwrap();
    let (scraped, came) = mpsc::channel();
    let asked = Arc::clone(&shared);
    thread::spawn(move || scraped.send(write(&asked)).unwrap());
    assert!(came.recv_timeout(LIMIT).unwrap().ends_with("# EOF\n"));
    let (counted, groups) = mpsc::channel();
    let asked = Arc::clone(&shared);
    thread::spawn(move || {
        let mut all = alerter::policy::groups::Groups::default();
        let journal = Journal::open(&asked.base.settings().store.path, Role::Reader).unwrap();
        counted.send(all.count(asked.policy(), &journal).unwrap().len()).unwrap();
    });
    assert!(groups.try_recv().is_err(), "nobody has let go of the plan");
    free.send(()).unwrap();
    stuck.join().unwrap();
    assert_eq!(groups.recv_timeout(LIMIT).unwrap(), 1);
}

/// Everything that the catalogue has is shown, and nothing else, each with the labels that it names.
#[test]
fn the_catalogue_is_what_is_shown() {
    let place = Place::new();
    let mut daemon = daemon(&place);
    story(&mut daemon);
    count(&daemon);
    // Without a cluster nothing is said of it.
    let absent =
        ["cluster_poll_age_seconds", "register_answer_bytes"].map(|name| format!("nova_host_alerter_{name}"));
    let mut shown = BTreeMap::<String, Vec<String>>::new();
    for name in scrape(&daemon).into_keys() {
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
    wanted.retain(|name, _| !absent.contains(name));
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
