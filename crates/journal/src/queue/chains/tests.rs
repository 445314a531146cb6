use super::*;
use crate::tests::{Home, NOW, acknowledged, again, attempt, events, marked_for};
use crate::{Capacity, HistoryFilter, NewDelivery, Role, Verdict};
use marks::mark::Settlement;
use marks::register::{Acknowledgement, Settled};

const LIMIT: Duration = Duration::from_secs(60);
const ROUTES: [&str; 3] = ["nova", "masakari", "pager"];
const SECOND: Duration = Duration::from_secs(1);

/// The steps in the order of the chain, which differs from that of their names.
fn chain_of(count: usize) -> Vec<NewDelivery> {
    let steps = ROUTES.iter().take(count).zip(1..);
    let new = |(route, step): (&&str, u32)| NewDelivery {
        route: (*route).to_owned(),
        body: format!("bytes for {route}").into_bytes(),
        required: true,
        link: Some(Link { step, timeout: LIMIT }),
    };
    steps.map(new).collect()
}

fn chained(journal: &mut Journal, count: usize) -> MarkId {
    marked_for(journal, "compute1", NOW, &chain_of(count))
}

fn refusal() -> Verdict {
    let (kind, detail) = ("unauthorized".to_owned(), "HTTP 401".to_owned());
    Verdict::Again { state: State::Parked, ambiguous: false, kind, detail, next_due: NOW }
}

fn go(journal: &mut Journal, now: Timestamp) -> Advanced {
    journal.advance_chains(&|_| true, &|_| true, now).unwrap()
}

fn step(journal: &Journal, mark: MarkId, route: &str) -> Delivery {
    let all = journal.deliveries_of(mark).unwrap().sound;
    all.into_iter().find(|delivery| delivery.route == route).unwrap()
}

/// The states in the order of the chain; `waits` is a step whose turn it is not.
fn chain(journal: &Journal, mark: MarkId) -> Vec<&'static str> {
    let mut all = journal.deliveries_of(mark).unwrap().sound;
    all.retain(|delivery| delivery.chain.is_some());
    all.sort_by_key(|delivery| delivery.chain.unwrap().link.step);
    all.iter().map(|d| if d.waits_in_chain() { "waits" } else { d.state.as_str() }).collect()
}

/// What begins at `now` on all routes.
fn begun(journal: &mut Journal, now: Timestamp) -> Vec<String> {
    let capacities = ROUTES.map(|route| Capacity::of(route, 8));
    let dispatched = journal.dispatch(&[], &capacities, None, now).unwrap();
    dispatched.begun.into_iter().map(|due| due.delivery.route).collect()
}

fn settled(journal: &Journal, mark: MarkId) -> Option<Settlement> {
    journal.mark(mark).unwrap().unwrap().settled.map(|(how, _)| how)
}

fn details(journal: &Journal, mark: MarkId, event: &str) -> Vec<String> {
    let filter = HistoryFilter { mark: Some(mark), ..HistoryFilter::default() };
    let rows = journal.history(&filter).unwrap().sound;
    rows.into_iter().filter(|row| row.event == event).map(|row| row.detail).collect()
}

/// S0-25, S0-26, S0-29, S4-8: several steps, each in its turn, each with its own bytes. The broken variant: a moment before.
#[test]
fn the_steps_are_sent_one_after_the_other_when_the_time_of_each_is_over() {
    let (home, mut journal) = Home::alerter();
    let mark = chained(&mut journal, 3);
    assert_eq!(chain(&journal, mark), ["pending", "waits", "waits"]);
    assert!(go(&mut journal, NOW).escalated.is_empty());
    assert_eq!(journal.next_step(NOW).unwrap(), Some(NOW + LIMIT));
    assert_eq!(begun(&mut journal, NOW), ["nova"]);
    journal.finish_attempt(mark, "nova", &again(NOW + SECOND), NOW).unwrap();
    let end = NOW + LIMIT;
    assert!(go(&mut journal, end - Duration::from_millis(1)).escalated.is_empty());
    let escalated = go(&mut journal, end).escalated;
    assert_eq!((escalated.len(), escalated[0].delivery.route.as_str()), (1, "masakari"));
    assert_eq!(escalated[0].delivery.body, b"bytes for masakari");
    assert_eq!(chain(&journal, mark), ["waits", "pending", "waits"]);
    assert_eq!(begun(&mut journal, end), ["masakari"], "and no other");
    journal.finish_attempt(mark, "masakari", &refusal(), end).unwrap();
    go(&mut journal, end);
    assert_eq!(chain(&journal, mark), ["waits", "waits", "pending"], "a refusal is not waited out");
    assert_eq!(journal.next_step(end).unwrap(), Some(end + LIMIT));
    let said = details(&journal, mark, "escalated");
    assert_eq!(
        said,
        [
            "route nova did not acknowledge it within 60 s (connect); route masakari is next",
            "route masakari is notified now: route nova did not acknowledge it within 60 s (connect)",
            "route masakari refused it (unauthorized); route pager is next",
            "route pager is notified now: route masakari refused it (unauthorized)",
        ]
    );
    assert_eq!(begun(&mut journal, end), ["pager"]);
    assert!(journal.finish_attempt(mark, "pager", &acknowledged(), end).unwrap());
    assert_eq!(settled(&journal, mark), Some(Settlement::Acknowledged));
    assert_eq!(chain(&journal, mark), ["cancelled", "cancelled", "acknowledged"]);
    let why = details(&journal, mark, "settled");
    assert!(why[0].ends_with("every required route acknowledged"), "{why:?}");
    assert!(home.open(Role::Reader).deliveries_of(mark).unwrap().damaged.is_empty());
}

/// S1-16: nothing is dropped when a chain is exhausted; it is listed until a route acknowledges it or an operator ends
/// it.
#[test]
fn an_exhausted_chain_stays_and_is_listed() {
    for is_dismissed in [false, true] {
        let (_home, mut journal) = Home::alerter();
        let mark = chained(&mut journal, 2);
        let exhausted = |journal: &Journal| journal.figures(&[], None, NOW).unwrap().exhausted;
        let mut now = NOW;
        for _ in 0..2 {
            assert_eq!(exhausted(&journal), 0);
            go(&mut journal, now);
            now = now + LIMIT;
            go(&mut journal, now);
        }
        assert_eq!(exhausted(&journal), 1);
        assert_eq!(step(&journal, mark, "masakari").chain.unwrap().exhausted_at, Some(now));
        assert_eq!((chain(&journal, mark), settled(&journal, mark)), (vec!["waits", "pending"], None));
        let before = events(&journal, mark);
        for days in 1..4 {
            go(&mut journal, now + Duration::from_secs(86_400 * days));
        }
        assert_eq!(events(&journal, mark), before, "it is reported once");
        assert_eq!(journal.next_step(now).unwrap(), None);
        if is_dismissed {
            assert!(journal.dismiss(mark, "reported by hand", "alice", now).unwrap());
        } else {
            assert!(attempt(&mut journal, mark, "masakari", &acknowledged()));
        }
        assert_eq!(exhausted(&journal), 0);
        assert!(settled(&journal, mark).is_some());
    }
}

/// Another alerter sent an earlier step, and this one is further: the register's entry ends the chain here too.
#[test]
fn an_earlier_step_that_is_acknowledged_late_or_elsewhere_ends_the_chain() {
    for (is_settled, is_under_way) in [(false, false), (true, false), (false, true)] {
        let (_home, mut journal) = Home::alerter();
        let mark = chained(&mut journal, 3);
        attempt(&mut journal, mark, "nova", &refusal());
        go(&mut journal, NOW);
        if is_under_way {
            assert_eq!(begun(&mut journal, NOW), ["masakari"]);
        }
        let (at, by) = (NOW, "ctl2".to_owned());
        let taken = Acknowledgement { mark, route: "nova".into(), at, by: by.clone() };
        assert!(journal.acknowledged_elsewhere(&taken, is_settled, NOW).unwrap());
        if is_settled {
            let end = Settled { mark, how: Settlement::Acknowledged, at, by };
            assert!(journal.settled_elsewhere(&end, NOW).unwrap());
        }
        if is_under_way {
            assert_eq!(chain(&journal, mark), ["acknowledged", "in-flight", "cancelled"]);
            assert_eq!(settled(&journal, mark), None, "its controller may take it too");
            go(&mut journal, NOW + LIMIT * 2);
            assert!(journal.finish_attempt(mark, "masakari", &again(NOW), NOW).is_ok());
        }
        assert_eq!(chain(&journal, mark), ["acknowledged", "cancelled", "cancelled"]);
        assert_eq!(settled(&journal, mark), Some(Settlement::Acknowledged));
        go(&mut journal, NOW + LIMIT * 9);
        assert!(begun(&mut journal, NOW + LIMIT * 9).is_empty(), "S4-40");
    }
}

/// Attempts of a chain's other steps that were in flight at an acknowledgement are not repeated, whatever their end.
#[test]
fn what_was_in_flight_beside_an_acknowledgement_is_not_sent_again() {
    for end in ["acknowledged", "crash", "taken back"] {
        let (_home, mut journal) = Home::alerter();
        let mark = chained(&mut journal, 2);
        attempt(&mut journal, mark, "nova", &refusal());
        go(&mut journal, NOW);
        assert_eq!(begun(&mut journal, NOW), ["masakari"]);
        let taken = Acknowledgement { mark, route: "nova".into(), at: NOW, by: "ctl2".into() };
        assert!(journal.acknowledged_elsewhere(&taken, false, NOW).unwrap());
        let last = match end {
            "acknowledged" => {
                journal.finish_attempt(mark, "masakari", &acknowledged(), NOW).unwrap();
                "acknowledged"
            }
            "crash" => {
                assert_eq!(journal.recover(NOW).unwrap(), 1);
                "cancelled"
            }
            _ => {
                journal.take_back(&[(mark, "masakari")], NOW).unwrap();
                "cancelled"
            }
        };
        assert_eq!(chain(&journal, mark), ["acknowledged", last], "{end}");
        assert_eq!(settled(&journal, mark), Some(Settlement::Acknowledged), "{end}");
        assert!(begun(&mut journal, NOW + LIMIT).is_empty(), "{end}");
    }
}

/// How many deliveries are held, and not by their chain.
fn kept(journal: &Journal) -> u64 {
    let figures = journal.figures(&[], None, NOW).unwrap();
    let held: u64 = figures.deliveries.values().map(|counts| counts.of(State::Held)).sum();
    held - figures.in_chain.values().sum::<u64>()
}

/// P10: an operator's command reaches the step whose turn it is, and no other.
#[test]
fn what_the_chain_holds_nobody_else_frees_or_has_to_see() {
    let (_home, mut journal) = Home::alerter();
    let mark = chained(&mut journal, 3);
    assert_eq!(journal.release_held(mark, false, ("go", "alice"), NOW).unwrap(), 0);
    assert_eq!(kept(&journal), 0);
    assert_eq!(journal.waiting().unwrap().into_iter().collect::<Vec<_>>(), [("nova".to_owned(), 1)]);
    assert_eq!(journal.retry_now(Some(mark), "", "alice", NOW).unwrap(), 1);
    attempt(&mut journal, mark, "nova", &refusal());
    go(&mut journal, NOW);
    for route in ROUTES {
        assert_eq!(journal.wake_parked(route, NOW + SECOND).unwrap(), 0);
        assert_eq!(journal.free_stale(route, Timestamp(0), NOW).unwrap(), 0);
    }
    assert_eq!(journal.release_held(mark, false, ("go", "alice"), NOW).unwrap(), 0);
    assert_eq!(chain(&journal, mark), ["waits", "pending", "waits"]);
    assert!(journal.tried().unwrap().is_empty(), "it says nothing of the routes");
    assert!(journal.dismiss(mark, "enough", "alice", NOW).unwrap());
    assert_eq!(chain(&journal, mark), ["dismissed"; 3]);
}

/// A host's marks are in order on each route by itself: a chain that has left a route blocks nothing there. The broken
/// variant is the step whose turn it is.
#[test]
fn an_earlier_chain_stands_in_the_way_on_the_route_whose_turn_it_is_alone() {
    let (_home, mut journal) = Home::alerter();
    let first = chained(&mut journal, 2);
    let second = marked_for(&mut journal, "compute1", NOW + SECOND, &chain_of(2));
    let now = NOW + SECOND;
    let begun = |journal: &mut Journal, now| -> Vec<(MarkId, String)> {
        let capacities = ["nova", "masakari"].map(|route| Capacity::of(route, 8));
        let dispatched = journal.dispatch(&[], &capacities, None, now).unwrap();
        dispatched.begun.into_iter().map(|due| (due.mark.id, due.delivery.route)).collect()
    };
    go(&mut journal, now);
    assert_eq!(begun(&mut journal, now), [(first, "nova".to_owned())], "the second one waits");
    journal.finish_attempt(first, "nova", &refusal(), now).unwrap();
    go(&mut journal, now);
    let both = [(second, "nova".to_owned()), (first, "masakari".to_owned())];
    assert_eq!(begun(&mut journal, now), both, "each on its route");
    // The later mark does not overtake the earlier one on the route where both have arrived.
    journal.finish_attempt(second, "nova", &refusal(), now).unwrap();
    journal.finish_attempt(first, "masakari", &again(now + SECOND), now).unwrap();
    go(&mut journal, now);
    assert_eq!(begun(&mut journal, now + SECOND), [(first, "masakari".to_owned())]);
    journal.finish_attempt(first, "masakari", &acknowledged(), now).unwrap();
    assert_eq!(begun(&mut journal, now + SECOND), [(second, "masakari".to_owned())]);
}

/// A row that was changed so that another step seems to have the turn.
#[test]
fn a_changed_place_or_time_is_damage() {
    for change in ["step = 2", "step_limit = 1", "step_until = 1", "step_left = 1", "exhausted_at = 1"] {
        let (home, mut journal) = Home::alerter();
        let mark = chained(&mut journal, 1);
        go(&mut journal, NOW);
        home.raw().execute(&format!("UPDATE delivery SET {change}"), []).unwrap();
        assert_eq!(journal.deliveries_of(mark).unwrap().damaged.len(), 1, "{change}");
    }
}

/// An incremental pass reads only written chains; the broken variants are a hold and a reopened journal that it does not
/// know of.
#[test]
fn only_what_was_stirred_is_read() {
    let (home, mut journal) = Home::alerter();
    let mark = chained(&mut journal, 2);
    let until = |journal: &Journal| step(journal, mark, "nova").chain.unwrap().until;
    let stirred = |journal: &mut Journal, changed: &[MarkId], may_go: bool, now| {
        journal.advance_stirred(changed, &|_| may_go, &|_| true, now).unwrap().escalated.len()
    };
    stirred(&mut journal, &[], true, NOW);
    assert_eq!(until(&journal), Some(NOW + LIMIT), "it was made here");
    stirred(&mut journal, &[], false, NOW);
    assert_eq!(until(&journal), Some(NOW + LIMIT), "the hold is not known");
    stirred(&mut journal, &[mark], false, NOW);
    assert_eq!(until(&journal), None);
    drop(journal);
    let mut journal = home.open(Role::Alerter);
    stirred(&mut journal, &[], true, NOW);
    assert_eq!(until(&journal), None, "it is from before");
    go(&mut journal, NOW);
    assert_eq!(stirred(&mut journal, &[], true, NOW + LIMIT), 1, "its time is over");
    attempt(&mut journal, mark, "masakari", &refusal());
    let exhausted = journal.advance_stirred(&[], &|_| true, &|_| true, NOW + LIMIT).unwrap().exhausted;
    assert_eq!(exhausted.len(), 1, "it was refused");
}
