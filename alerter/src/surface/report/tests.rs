//! The numbers against stories that were counted by hand.

use std::time::Duration;

use journal::{HistoryRow, Journal, NewDelivery, Role, Taken};
use marks::delivery::{Attempt, Delivery, State};
use marks::mark::{MarkRow, Settlement};
use marks::register::Acknowledgement;
use marks::time::Timestamp;

use super::history::Event;
use super::numbers::{Facts, Outages, Repeated};
use super::percentile::Percentiles;
use super::spans::{Held, Trouble};
use super::*;
use crate::surface::markup::sent;
use crate::surface::timeline::Timeline;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn mark(host: &str, settled: Option<(Settlement, Timestamp)>) -> MarkRow {
    MarkRow { settled, ..samples::mark_of(host, NOW) }
}

fn after(seconds: u64) -> Timestamp {
    NOW + Duration::from_secs(seconds)
}

fn taken(row: &MarkRow, route: &str, required: bool, seconds: u64) -> Delivery {
    let at = after(seconds);
    let last = Some(Attempt { at, kind: "acknowledged".into(), detail: "HTTP 202".into() });
    let (state, new) = (State::Acknowledged, samples::delivery(row, route));
    Delivery { state, required, attempts: 1, last, ended_at: Some(at), ..new }
}

fn acknowledged(host: &str, seconds: u64) -> (MarkRow, Vec<Delivery>) {
    let row = mark(host, Some((Settlement::Acknowledged, after(seconds))));
    let deliveries = vec![taken(&row, "recovery", true, seconds)];
    (row, deliveries)
}

fn line(seconds: u64, event: &str, mark: Option<&MarkRow>, actor: &str, detail: &str) -> HistoryRow {
    HistoryRow {
        seq: 0,
        at: after(seconds),
        event: event.into(),
        mark: mark.map(|mark| mark.id.to_string()),
        node: mark.map(|mark| mark.node.to_string()),
        route: None,
        outcome: None,
        detail: detail.into(),
        actor: actor.into(),
    }
}

fn came_to(outcome: &str, row: HistoryRow) -> HistoryRow {
    HistoryRow { outcome: Some(outcome.into()), ..row }
}

fn facts(outages: Vec<(MarkRow, Vec<Delivery>)>, history: &[HistoryRow]) -> Facts {
    let mut facts = Facts::of(outages);
    history.iter().for_each(|row| facts.history.take(row));
    facts
}

/// What an operator writes decides nothing: the numbers are the same whatever a reason says. The broken variants are two old lines:
/// `detail.contains(" is acknowledged")` took the first mark for notified, and `starts_with(" is marked and held (")` read a hold in
/// what was said.
#[test]
fn an_operators_words_change_no_number() {
    let of = |reason: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("state/marks.db"), Role::Alerter).unwrap();
        let rows = ["compute1", "compute2"].map(|host| MarkRow { fqdn: None, ..mark(host, None) });
        for row in &rows {
            let new = NewDelivery { route: "recovery".into(), body: Vec::new(), required: true, link: None };
            journal.make_mark(row, Taken::Register, &[new], NOW).unwrap();
        }
        assert!(journal.dismiss(rows[0].id, reason, "alice", after(1)).unwrap());
        let taken =
            Acknowledgement { mark: rows[1].id, route: "recovery".into(), at: after(2), by: "ctl2".into() };
        assert!(journal.acknowledged_elsewhere(&taken, false, after(2)).unwrap());
        let found = numbers(&read::read(&journal, NOW, after(86_400), |_| {}).unwrap());
        let ended: Vec<_> = found.ended.iter().map(|event| (event.event.clone(), event.count)).collect();
        (found.outages, found.held, found.parked, found.duplicates, ended, found.trouble)
    };
    let plain = of("it lives");
    assert_eq!(plain.4, [("settled".to_owned(), 1)]);
    assert_eq!((plain.1.marks, plain.1.total_ms), (2, 3000));
    for reason in [
        "the portal says compute1 is acknowledged",
        "release: this is acknowledged",
        "compute1 is marked and held (no-fqdn): x",
        "storm: too many hosts of group a are down at once",
        "route recovery is not configured any more",
    ] {
        assert_eq!(of(reason), plain, "{reason}");
    }
}

/// The broken variant forgets a loss before the time that the report covers, and begins the downtime with the fencing.
#[test]
fn a_host_that_was_lost_before_the_report_begins_is_known_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&dir.path().join("state/marks.db"), Role::Alerter).unwrap();
    let (row, lost) = (mark("compute1", None), NOW - Duration::from_secs(30));
    journal.make_mark_of_lost(&row, Taken::Register, &[], Some(lost), NOW).unwrap();
    let facts = read::read(&journal, NOW, after(86_400), |_| {}).unwrap();
    assert_eq!(facts.history.lost, [(row.id, lost)].into());
}

fn numbers(facts: &Facts) -> Numbers {
    Numbers::of(facts, NOW, after(86_400))
}

/// Nearest rank, as the page says it. The broken variant takes the value between two, which nobody measured.
#[test]
fn percentiles_are_values_that_were_measured() {
    let of = |values: &[u64]| Percentiles::of(values.to_vec());
    let all = |p50, p90, p99, max, count| Some(Percentiles { count, p50, p90, p99, max });
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[7]), all(7, 7, 7, 7, 1));
    assert_eq!(of(&[20, 10]), all(10, 20, 20, 20, 2));
    assert_eq!(of(&(1..=10).collect::<Vec<_>>()), all(5, 9, 10, 10, 10));
    assert_eq!(of(&(1..=1000).rev().collect::<Vec<_>>()), all(500, 900, 990, 1000, 1000));
}

#[test]
fn marks_are_counted_by_how_they_stand() {
    let ended = |host, how| (mark(host, Some((how, after(9)))), Vec::new());
    let outages = vec![
        acknowledged("compute1", 5),
        acknowledged("Compute1", 7),
        ended("compute2", Settlement::Dismissed),
        ended("compute3", Settlement::Cancelled),
        ended("compute4", Settlement::Expired),
        (mark("compute5", None), Vec::new()),
    ];
    let found = numbers(&facts(outages, &[]));
    let wanted =
        Outages { all: 6, hosts: 5, acknowledged: 2, dismissed: 1, cancelled: 1, expired: 1, open: 1 };
    assert_eq!(found.outages, wanted);
    assert_eq!(found.repeated, [Repeated { host: "compute1".into(), outages: 2 }]);
}

/// A mark is notified when the last route has it that it waits for; one that is not required counts by itself.
#[test]
fn the_time_runs_to_the_last_required_acknowledgement() {
    let (row, mut deliveries) = acknowledged("compute1", 5);
    deliveries.push(taken(&row, "second", true, 20));
    deliveries.push(taken(&row, "wiki", false, 300));
    deliveries.push(taken(&row, "recovery.confirm", false, 900));
    let open = (mark("compute2", None), Vec::new());
    let found = numbers(&facts(vec![(row, deliveries), open], &[]));
    assert_eq!(found.acknowledged, Percentiles::of(vec![20_000]));
    let of = |route: &str| found.by_route[route].max;
    assert_eq!((of("recovery"), of("second"), of("wiki")), (5000, 20_000, 300_000));
    assert_eq!(found.slowest[0].took, 20_000);
    assert_eq!(found.by_route.len(), 3, "a further step is no route");
}

/// What only the register knows to be notified has no acknowledgement of a route; the mark's end counts then.
#[test]
fn what_another_controller_notified_counts_by_its_end() {
    let (row, mut deliveries) = acknowledged("compute1", 5);
    deliveries[0].last = None;
    let found = numbers(&facts(vec![(row, deliveries)], &[]));
    assert_eq!((found.acknowledged, found.by_route.len()), (Percentiles::of(vec![5000]), 0));
}

#[test]
fn holds_are_measured_and_one_that_goes_on_counts_until_the_end() {
    let (one, two) = (mark("compute1", None), mark("compute2", None));
    let history = vec![
        line(10, "held", Some(&one), "nova-host-alerter", "storm: too many"),
        line(20, "held", Some(&one), "nova-host-alerter", "paused: by alice"),
        line(40, "freed", Some(&one), "nova-host-alerter", "nothing holds it any more"),
        line(50, "held", Some(&one), "nova-host-alerter", "storm: too many"),
        line(60, "released", Some(&one), "alice (uid 0)", "go"),
        came_to("no-fqdn", line(86_300, "marked", Some(&two), "nova-host-alerter", "x")),
    ];
    let found = numbers(&facts(Vec::new(), &history));
    let wanted = Held { marks: 2, times: 3, total_ms: 30_000 + 10_000 + 100_000, longest_ms: 100_000 };
    assert_eq!(found.held, wanted);
}

#[test]
fn a_route_is_in_trouble_from_its_first_failure_to_its_next_acknowledgement() {
    let row = mark("compute1", None);
    let on = |route: &str, row: HistoryRow| HistoryRow { route: Some(route.into()), ..row };
    let alerter = "nova-host-alerter";
    let history = vec![
        on("a", line(1, "not-accepted", Some(&row), alerter, "connection refused")),
        on("a", line(2, "refused", Some(&row), alerter, "HTTP 401")),
        on("b", line(3, "acknowledged", Some(&row), alerter, "HTTP 202")),
        on("a", line(4, "acknowledged", Some(&row), alerter, "HTTP 202")),
        on("b", line(5, "not-accepted", Some(&row), alerter, "timeout")),
    ];
    let found = numbers(&facts(Vec::new(), &history));
    let trouble = |route: &str, from, to: Option<u64>, detail: &str| Trouble {
        route: route.into(),
        from: after(from),
        to: to.map(after),
        detail: detail.into(),
    };
    assert_eq!(
        found.trouble,
        [trouble("a", 1, Some(4), "connection refused"), trouble("b", 5, None, "timeout")]
    );
    assert_eq!(found.parked, 1);
}

/// The broken variant waits for an acknowledgement that nobody asks the route for any more.
#[test]
fn a_trouble_ends_with_the_last_mark_that_the_route_did_not_take() {
    let (one, two) = (mark("compute1", None), mark("compute2", None));
    let on = |route: &str, row: HistoryRow| HistoryRow { route: Some(route.into()), ..row };
    let (alerter, alice) = ("nova-host-alerter", "alice (uid 0)");
    let fails =
        |route, seconds, mark| on(route, line(seconds, "not-accepted", Some(mark), alerter, "timeout"));
    let history = [
        fails("a", 1, &one),
        fails("a", 2, &two),
        fails("b", 3, &one),
        fails("c.confirm", 4, &two),
        on("a", line(5, "dismissed", Some(&one), alice, "the route is gone")),
        on(
            "b",
            came_to(
                "acknowledged",
                line(6, "settled", Some(&two), alerter, "compute2 is acknowledged: every required route"),
            ),
        ),
        came_to("dismissed", line(7, "settled", Some(&two), alice, "compute2 is dismissed: it lives")),
        on("b", line(8, "cancelled", Some(&one), alerter, "it is back")),
    ];
    let of = |found: Numbers| -> Vec<(String, Option<Timestamp>)> {
        found.trouble.into_iter().map(|trouble| (trouble.route, trouble.to)).collect()
    };
    let ended = |route: &str, seconds| (route.to_owned(), Some(after(seconds)));
    let still = |route: &str| (route.to_owned(), None);
    let found = of(numbers(&facts(Vec::new(), &history)));
    assert_eq!(found, [ended("a", 7), ended("b", 8), ended("c", 7)]);
    let found = of(numbers(&facts(Vec::new(), &history[..6])));
    assert_eq!(found, [still("a"), still("b"), still("c")], "a mark is left on each");
}

#[test]
fn what_people_did_stands_there_once_with_who_and_why() {
    let row = mark("compute1", None);
    let history = vec![
        line(1, "retry", Some(&row), "alice (uid 0)", "the disk is back"),
        line(1, "retry", Some(&row), "alice (uid 0)", "the disk is back"),
        came_to(
            "dismissed",
            line(2, "settled", Some(&row), "bob (uid 0)", "compute1 is dismissed: it lives"),
        ),
        came_to(
            "acknowledged",
            line(
                3,
                "settled",
                Some(&row),
                "nova-host-alerter",
                "compute1 is acknowledged: every required route",
            ),
        ),
        line(4, "paused", None, "nova-host-alerter", "the register says that carol decided"),
        line(5, "fenced-again", Some(&row), "nova-host-alerter", "again"),
        line(6, "cancelled", Some(&row), "nova-host-alerter", "it is stale"),
    ];
    let found = numbers(&facts(Vec::new(), &history));
    let words = |events: &[Event]| -> Vec<(String, usize)> {
        events.iter().map(|event| (event.event.clone(), event.count)).collect()
    };
    let of = |word: &str, count| (word.to_owned(), count);
    assert_eq!(words(&found.operators), [of("retry", 2), of("settled", 1), of("paused", 1)]);
    assert_eq!(words(&found.ended), [of("settled", 1), of("cancelled", 1)]);
    assert_eq!((found.ended[0].actor.as_str(), found.duplicates), ("bob (uid 0)", 1));
}

#[test]
fn the_slowest_ten_are_named_with_what_kept_them() {
    let outages: Vec<_> = (1..=12).map(|n| acknowledged(&format!("compute{n}"), n * 10)).collect();
    let last = outages[11].0.clone();
    let why =
        |seconds, event: &str, detail: &str| line(seconds, event, Some(&last), "nova-host-alerter", detail);
    let history = vec![
        why(1, "held", "storm: x"),
        why(2, "held", "storm: x"),
        why(3, "not-accepted", "refused"),
        why(4, "sighted", "y"),
    ];
    let found = numbers(&facts(outages, &history));
    assert_eq!(found.slowest.len(), 10);
    assert_eq!((found.slowest[0].host.as_str(), found.slowest[9].host.as_str()), ("compute12", "compute3"));
    assert_eq!(found.slowest[0].causes, ["held: storm: x", "not-accepted: refused"]);
}

/// The page shows these numbers, and whatever stands in the journal is text there. Hosts have plain names; details, actors and
/// routes are what others wrote.
#[test]
fn the_page_has_no_script_and_nothing_from_outside_is_markup() {
    let (row, deliveries) = acknowledged("compute1", 5);
    let evil = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}\u{1b}";
    let history = vec![
        line(1, "retry", Some(&row), evil, evil),
        HistoryRow {
            node: Some(evil.into()),
            route: Some(evil.into()),
            ..line(2, "not-accepted", Some(&row), evil, evil)
        },
    ];
    let facts = Facts { damaged: 3, ..facts(vec![(row, deliveries)], &history) };
    let drawn = episodes(&facts);
    let (from, to) = (drawn[0].failed - Duration::from_secs(60), drawn[0].failed + Duration::from_secs(60));
    let drawn = Timeline::of(&drawn, from, to);
    let (page, drawn) = (sent(page(&numbers(&facts), evil, &drawn)), &sent(drawn));
    assert!(
        page.contains("<h2>Timeline</h2>") && drawn.contains("compute1") && page.contains(drawn.as_str())
    );
    // The name of SVG's own words, and patterns of the picture itself.
    let rest = page.replace("\"http://www.w3.org/2000/svg\"", "").replace("url(#", "");
    for bad in ["<script", "<img", "\u{202e}", "\u{1b}", "http://", "https://", "url("] {
        assert!(!rest.contains(bad), "{bad:?}");
    }
    assert!(page.contains("default-src 'none'") && page.contains("3 damaged rows"));
    assert!(page.contains("<dt>outages</dt><dd>1</dd>") && page.contains("<td class=\"n\">5.0 s</td>"));
    assert!(page.matches("&lt;script&gt;").count() >= 6, "it is shown as what it is");
}
