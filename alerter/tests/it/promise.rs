//! One story for each way in which the promise was once broken (design, section 1): what happens, and what the promise wants
//! of it, whichever code keeps it. `make mutants` puts the old rules back, one by one, and each must be found by a story here.

use std::collections::BTreeSet;
use std::time::Duration;

use marks::fencing::Fencing;
use marks::host::HostName;
use marks::id::NoteId;
use marks::mark::Settlement;
use marks::register::{Entry, MarkEntry, Returned, Settled, Watermark};
use marks::time::Timestamp;

use crate::site::{Alerter, CONTROLLERS, Kind, ROUTES, Site, mark_of, started};

const HOUR: f64 = 3600.0;

/// What the promise finds wrong in a story once that time has passed: nothing.
#[track_caller]
fn kept((site, alerter): (&mut Site, &mut Alerter), seconds: u32, may_be_held: bool, case: &str) {
    rest(alerter, site, seconds);
    assert_eq!(site.promise(alerter, may_be_held), [""; 0], "{case}");
}

/// Every story begins then: what the real clock says has no part in it.
const BEGINNING: Timestamp = Timestamp(1_800_000_000_000);

fn fresh(hosts: &[&'static str]) -> Site {
    Site::at(BEGINNING, hosts)
}

/// A site and an alerter on this controller that has polled.
fn begun(hosts: &[&'static str], controller: &'static str) -> (Site, Alerter) {
    started(fresh(hosts), controller)
}

/// Passes close together at first, and then fewer and fewer, for so many seconds.
fn rest(alerter: &mut Alerter, site: &mut Site, seconds: u32) {
    let (end, mut step) = (site.now + Duration::from_secs(u64::from(seconds)), 2.0);
    while site.now < end {
        alerter.pass(site);
        site.advance(step);
        step = f64::min(step * 1.3, 20.0);
    }
    alerter.pass(site);
}

/// All controllers are stopped and started: attrd and Pacemaker's history are empty, and so is the status of hosts.
fn stop_all(site: &mut Site) {
    site.register.clear();
    site.history.clear();
    for host in site.hosts.values_mut() {
        (host.member, host.fenced) = (None, 0);
        host.connections.clear();
    }
}

/// B1. No age ends a mark that nobody took: all endpoints are dead over a weekend, and then the register is emptied, alone or
/// by a stop of everything. It is notified where the host is surely down, else held.
#[test]
fn a_mark_that_was_not_sent_does_not_end_by_age() {
    for all_stop in [false, true] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.down.extend(ROUTES);
        site.outage("compute1", "ctl1");
        rest(&mut alerter, &mut site, 60);
        site.advance(60.0 * HOUR);
        alerter.run(&mut site, 10);
        drop(alerter);
        site.register.clear();
        if all_stop {
            stop_all(&mut site);
        }
        site.down.clear();
        let mut again = Alerter::start(&site, "ctl1");
        kept((&mut site, &mut again), 120, all_stop, "");
    }
}

/// B2. What one controller knows of an open mark reaches all again: an alerter elsewhere must not depend on evidence of its own.
/// The controller of the first alerter does not come back, and the agent's `monitor` is all that runs where the record is.
#[test]
fn a_mark_of_another_controller_comes_back_after_the_register_was_lost() {
    for fenced_again in [false, true] {
        let (mut site, mut first) = begun(&["compute1"], "ctl1");
        site.down.extend(ROUTES);
        site.lost.insert("ctl2");
        site.outage("compute1", "ctl3");
        rest(&mut first, &mut site, 60);
        drop(first);
        stop_all(&mut site);
        site.lost = ["ctl1"].into();
        site.down.clear();
        site.advance(2.0 * HOUR);
        let mut second = Alerter::at_work(&mut site, "ctl2", 10);
        if fenced_again {
            site.hosts.get_mut("compute1").unwrap().member = Some(false);
            site.off("ctl2", "compute1");
            site.seen_fenced("compute1");
        }
        site.monitor("ctl3");
        kept((&mut site, &mut second), 120, !fenced_again, "");
    }
}

/// The same while an alerter runs on: the part of the register with an open mark is lost.
#[test]
fn a_part_of_the_register_that_is_lost_comes_back() {
    for seed in 0..8 {
        let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
        alerter.meets_outage(&mut site, "compute1", "ctl2", 10);
        site.down.extend(ROUTES);
        alerter.meets_outage(&mut site, "compute2", "ctl3", 20);
        let mut rng = fastrand::Rng::with_seed(seed);
        site.register.retain(|_, _| rng.bool());
        site.monitor("ctl3");
        let moves = rng.bool();
        if moves {
            alerter = Alerter::start(&site, "ctl2");
        }
        site.down.clear();
        rest(&mut alerter, &mut site, 120);
        let wrong = site.promise(&alerter, false);
        let once = wrong.iter().filter(|it| !it.contains("sent 2 times")).count() == 0;
        assert!(once, "{seed}: {wrong:#?}");
    }
}

/// A host is lost beside clocks that differ: the agent runs on ctl2, the alerter on ctl3.
fn skewed(agent: i64, dc: i64, alerter: i64) -> (Site, Alerter) {
    let (mut site, _) = begun(&["compute1"], "ctl3");
    site.skews = [("ctl1", dc), ("ctl2", agent), ("ctl3", alerter)].into();
    let (mut site, mut active) = started(site, "ctl3");
    site.advance(200.0);
    active.run(&mut site, 2);
    site.outage("compute1", "ctl2");
    (site, active)
}

/// B3. Controllers whose clocks differ by up to two minutes: what is proved by every witness is notified, and not held until
/// somebody comes. The record is of one controller, Pacemaker's word of another, and the alerter runs on a third.
#[test]
fn clocks_that_differ_hold_nothing() {
    for (agent, dc, alerter) in SKEWS {
        let (mut site, mut active) = skewed(agent, dc, alerter);
        kept((&mut site, &mut active), 200, false, &format!("agent {agent}, DC {dc}, alerter {alerter}"));
    }
}

/// Milliseconds by which the clocks of the agent, of the DC and of the alerter are ahead: no two differ by more than 120 s.
const SKEWS: [(i64, i64, i64); 5] = [
    (60_000, -59_000, 0),
    (-59_000, 60_000, 0),
    (20_000, 20_000, -40_000),
    (-20_000, 0, 60_000),
    (60_000, 0, -59_000),
];

/// B3. The order is that of incarnations and operations: a host that was back in between has failed twice, whatever clocks say.
#[test]
fn clocks_that_differ_make_no_one_outage_of_two() {
    for (agent, dc, alerter) in SKEWS {
        let (mut site, mut active) = skewed(agent, dc, alerter);
        rest(&mut active, &mut site, 60);
        // The connection is held by the controller of the agent, and no other one is remembered.
        site.hosts.get_mut("compute1").unwrap().connections.clear();
        site.back("compute1", "ctl2");
        rest(&mut active, &mut site, 400);
        site.outage("compute1", "ctl2");
        kept((&mut site, &mut active), 200, false, &format!("agent {agent}, DC {dc}, alerter {alerter}"));
    }
}

/// B4. Evidence and history that are dated in the future wait no longer than any other, by the alerter's own monotonic clock:
/// notified, or held where everybody sees it, and the evidence does not lie there for ever.
#[test]
fn what_is_dated_in_the_future_waits_no_longer_than_anything_else() {
    for ahead in [HOUR, 24.0 * HOUR, 20_000.0 * HOUR] {
        for (has_alert, has_history) in [(true, true), (true, false), (false, true)] {
            let (mut site, mut alerter) = begun(&["compute1"], "ctl2");
            site.die("compute1");
            site.advance(1.0);
            site.skews =
                CONTROLLERS.map(|name| (name, if name == "ctl2" { 0 } else { millis(ahead) })).into();
            if has_alert {
                site.skews.insert("ctl2", millis(ahead));
                site.seen_fenced("compute1");
                site.skews.insert("ctl2", 0);
            } else {
                site.remember("compute1", false);
                let second = site.clock("ctl1").seconds();
                site.hosts.get_mut("compute1").unwrap().fenced = second;
            }
            if !has_history {
                site.history.clear();
                site.hosts.get_mut("compute1").unwrap().fenced = 0;
            }
            rest(&mut alerter, &mut site, 300);
            let case = format!("{ahead} s ahead, alert {has_alert}, history {has_history}");
            assert!(!site.notified.is_empty() || !alerter.held("compute1").is_empty(), "{case}");
            // What is notified of it must be true: the host did not fail in the future.
            let now = site.now.seconds();
            let is_late = site.notified.iter().any(|notified| notified.failure_time > now + 120);
            assert!(!is_late && site.evidence_on("ctl2") == 0, "{case}: {:?}", site.notified);
        }
    }
}

fn millis(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}

/// B4. A `w.` entry that is dated in the future does not silence what happens today.
#[test]
fn a_first_start_in_the_future_silences_nothing() {
    let mut site = fresh(&["compute1"]);
    let at = site.now + Duration::from_secs(10 * 365 * 86_400);
    site.publish(Entry::Watermark(Watermark { id: NoteId::generate(), at, by: "ctl1".into() }));
    let mut alerter = Alerter::at_work(&mut site, "ctl2", 10);
    site.die("compute1");
    site.advance(1.0);
    site.lost = ["ctl2"].into();
    site.seen_fenced("compute1");
    site.lost.clear();
    kept((&mut site, &mut alerter), 120, false, "");
}

/// B5. A host that is alive is confirmed by hand, and nobody checks the held mark. Its real failure 22 h later is an outage of
/// its own: notified with its own time.
#[test]
fn a_failure_is_not_folded_into_a_confirmation_by_hand() {
    for (later, is_marked) in [(22.0 * HOUR, true), (22.0 * HOUR, false), (600.0, true), (600.0, false)] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.confirm("compute1");
        rest(&mut alerter, &mut site, 60);
        site.advance(later);
        alerter.run(&mut site, 20);
        site.fail("compute1", is_marked);
        kept((&mut site, &mut alerter), 120, false, &format!("{later} s later, marked {is_marked}"));
    }
}

/// B6. A cluster node that is fenced, comes back and is fenced again has failed twice, however fast; whatever Pacemaker writes
/// into `in_ccm`, and whether or not the alerter moves.
#[test]
fn a_cluster_node_that_comes_back_and_is_fenced_again_is_reported_each_time() {
    for (kind, times, pause) in
        [(Kind::Epoch, 2, 60), (Kind::Flag, 2, 60), (Kind::Epoch, 6, 30), (Kind::Flag, 6, 30)]
    {
        let mut site = fresh(&["hyper1"]);
        site.make_cluster_node("hyper1", kind);
        let mut alerter = Alerter::at_work(&mut site, "ctl1", 4);
        for _ in 0..times {
            alerter.meets_outage(&mut site, "hyper1", "ctl2", pause);
            alerter.meets_return(&mut site, "hyper1", "ctl2", pause);
        }
        kept((&mut site, &mut alerter), 120, false, &format!("{kind:?}, {times} times"));
    }
}

/// The same node is one outage while it stays away, however often it is fenced.
#[test]
fn a_cluster_node_that_stays_away_is_reported_once() {
    for kind in [Kind::Epoch, Kind::Flag] {
        let mut site = fresh(&["hyper1"]);
        site.make_cluster_node("hyper1", kind);
        let mut alerter = Alerter::at_work(&mut site, "ctl1", 4);
        site.outage("hyper1", "ctl2");
        for _ in 0..4 {
            alerter.run(&mut site, 40);
            site.off("ctl3", "hyper1");
            site.advance(1.0);
            site.seen_fenced("hyper1");
        }
        kept((&mut site, &mut alerter), 120, false, &format!("{kind:?}"));
    }
}

/// B7. Fenced again a day later without having been connected in between: perhaps somebody had started it by hand. It is not
/// swallowed: it is notified or held where everybody sees it.
#[test]
fn a_fencing_a_day_after_its_outage_was_settled_is_seen() {
    for is_marked in [true, false] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.outage("compute1", "ctl2");
        rest(&mut alerter, &mut site, 60);
        site.advance(25.0 * HOUR);
        alerter.run(&mut site, 20);
        if is_marked {
            site.off("ctl3", "compute1");
            site.advance(1.0);
        }
        site.seen_fenced("compute1");
        rest(&mut alerter, &mut site, 120);
        let ids: BTreeSet<&str> = site.notified.iter().map(|notified| notified.id.as_str()).collect();
        assert!(ids.len() > 1 || !alerter.held("compute1").is_empty(), "marked {is_marked}");
    }
}

/// B8. Without a register nobody sees a return: a second fencing after the first one was acknowledged is another outage, since
/// what is sent twice can be corrected, and what is swallowed cannot.
#[test]
fn without_a_register_a_fencing_after_the_acknowledgement_is_sent() {
    let site = fresh(&["compute1"]);
    site.live_without_register();
    let (mut site, mut alerter) = started(site, "ctl1");
    site.die("compute1");
    site.record("ctl1", "compute1");
    alerter.run(&mut site, 40);
    site.back("compute1", "ctl1");
    site.advance(43.0);
    site.die("compute1");
    site.record("ctl1", "compute1");
    rest(&mut alerter, &mut site, 60);
    assert_eq!(site.audit(), [""; 0]);
}

/// D. A writer of the register settles an open mark in the name of a controller that does not exist. It is notified all
/// the same.
#[test]
fn an_end_by_a_controller_that_does_not_exist_ends_nothing() {
    for how in [Settlement::Acknowledged, Settlement::Dismissed, Settlement::Expired, Settlement::Cancelled] {
        for comes_first in [false, true] {
            let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
            site.down.extend(ROUTES);
            site.die("compute1");
            let fencing = site.fencing("ctl2", "compute1");
            let end = Settled { mark: fencing.id.into(), how, at: site.now, by: "ctl9".into() };
            if comes_first {
                site.publish(Entry::Settled(end.clone()));
            }
            site.mark("ctl2", &fencing);
            site.advance(1.0);
            alerter.meets_fencing(&mut site, "compute1", 20);
            site.publish(Entry::Settled(end));
            alerter.run(&mut site, 20);
            site.down.clear();
            kept((&mut site, &mut alerter), 60, false, &format!("{how:?}, first {comes_first}"));
        }
    }
}

/// D. A mark that somebody wrote beside a real fencing says what that fencing and the configuration say, or is held: another
/// name, other disks, or another time are not notified.
#[test]
fn a_mark_beside_a_real_fencing_says_nothing_else_than_that() {
    type Change = fn(&mut MarkEntry);
    let changes: [Change; 4] = [
        |entry| entry.mark.fqdn = HostName::parse("elsewhere.example.net").unwrap(),
        |entry| entry.mark.on_shared_storage = false,
        |entry| entry.mark.failure_time = entry.mark.failure_time - Duration::from_secs(20 * 3600),
        |entry| entry.mark.failure_time = entry.mark.failure_time + Duration::from_secs(20 * 3600),
    ];
    for (rank, change) in changes.into_iter().enumerate() {
        for comes_first in [false, true] {
            let (mut site, mut alerter) = begun(&["compute1"], "ctl3");
            site.die("compute1");
            let fencing = site.fencing("ctl2", "compute1");
            let mut entry = mark_of(&fencing, "ctl1");
            change(&mut entry);
            if comes_first {
                site.publish(Entry::Mark(entry.clone()));
                alerter.run(&mut site, 2);
            }
            site.mark("ctl2", &fencing);
            site.publish(Entry::Mark(entry));
            site.advance(1.0);
            site.seen_fenced("compute1");
            kept((&mut site, &mut alerter), 120, true, &format!("change {rank}, first {comes_first}"));
        }
    }
}

/// D. A mark of a host that is alive, dated years ahead, does not take in the host's real outage.
#[test]
fn a_mark_of_the_future_swallows_nothing() {
    for is_marked in [true, false] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl3");
        let at = site.now + Duration::from_secs(10 * 365 * 86_400);
        let fencing = site.fencing("ctl1", "compute1");
        let entry = mark_of(&Fencing { asked_at: at, committed_at: at, ..fencing }, "ctl1");
        site.publish(Entry::Mark(entry));
        alerter.run(&mut site, 20);
        site.fail("compute1", is_marked);
        kept((&mut site, &mut alerter), 120, false, &format!("marked {is_marked}"));
    }
}

/// D. A return that the CIB contradicts is none: a route that cancels what is back is notified of a host that is away.
#[test]
fn a_return_that_the_cluster_contradicts_cancels_nothing() {
    let site = fresh(&["compute1"]);
    site.configure("if-returned = \"cancel\"\n");
    let (mut site, mut alerter) = started(site, "ctl1");
    site.down.insert("backup");
    let fencing = site.outage("compute1", "ctl2");
    alerter.run(&mut site, 20);
    site.publish(Entry::Returned(Returned { mark: fencing.into(), at: site.now, by: "ctl2".into() }));
    alerter.run(&mut site, 20);
    site.down.clear();
    kept((&mut site, &mut alerter), 120, false, "");
}

/// The audit itself: what is held is excused only where it may be, and what is notified must be true.
#[test]
fn the_promise_finds_what_is_wrong() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    site.mark("ctl2", &site.fencing("ctl2", "compute1"));
    alerter.run(&mut site, 20);
    assert_eq!(alerter.standings("compute1"), ["unproven"]);
    assert_eq!(site.promise(&alerter, true), Vec::<String>::new());
    assert_eq!(site.promise(&alerter, false).len(), 2, "no route was notified");
    alerter.meets_fencing(&mut site, "compute1", 20);
    assert_eq!(site.promise(&alerter, false), Vec::<String>::new());
    site.notified[0].on_shared_storage = false;
    assert_eq!(site.promise(&alerter, true).len(), 1);
    site.notified[1].failure_time -= 3600;
    assert!(site.promise(&alerter, true).iter().any(|wrong| wrong.contains("was not fenced then")));
}
