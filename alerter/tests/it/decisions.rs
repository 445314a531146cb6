//! What an operator decides on one controller holds on the next one, and so does its end.

use std::time::Duration;

use marks::host::HostName;
use marks::id::{MarkId, NoteId};
use marks::register::{About, Decision, Ending, Entry, Key, Scope};
use marks::time::Timestamp;

use crate::site::{Alerter, Site, begun, lacks_evidence};

const HOUR: Duration = Duration::from_secs(3600);

fn decision(site: &Site, about: About) -> Decision {
    let (actor, reason) = ("alice".to_owned(), "the switch is changed".to_owned());
    Decision { id: NoteId::generate(), about, at: site.now, actor, reason }
}

fn pause(site: &Site) -> Decision {
    decision(site, About::Pause { scope: Scope::All, until: None })
}

fn maintenance(site: &Site) -> Decision {
    let scope = Scope::Host(HostName::parse("compute1").unwrap());
    decision(site, About::Maintenance { scope, until: site.now + HOUR })
}

fn end_of(decision: &Decision, at: Timestamp) -> Ending {
    Ending { id: decision.id, at, actor: "bob".into(), reason: "it is in".into() }
}

fn in_force(alerter: &Alerter, now: Timestamp) -> Vec<Decision> {
    let rows = alerter.journal.decisions_in_force(now).unwrap();
    assert!(rows.damaged.is_empty());
    rows.sound
}

/// The alerter of a controller that takes over from one that is lost.
fn take_over(site: &mut Site, from: &'static str, to: &'static str) -> Alerter {
    site.lost.insert(from);
    let mut next = Alerter::start(site, to);
    next.run(site, 2);
    next
}

/// S0-3, S0-38: what is paused or on maintenance is so on the next controller. The broken variant is an alerter whose
/// decisions did not get into the register: the next one would send everything.
#[test]
fn a_pause_and_a_maintenance_hold_on_the_next_controller() {
    for is_broken in [false, true] {
        let (mut site, mut first) = begun(&["compute1"], "ctl1");
        site.register_is_mute = is_broken;
        let decided = [pause(&site), maintenance(&site)];
        for decision in &decided {
            assert!(first.journal.decide(decision).unwrap());
        }
        first.run(&mut site, 2);
        drop(first);
        let mut second = take_over(&mut site, "ctl1", "ctl2");
        assert_eq!(in_force(&second, site.now), if is_broken { &[][..] } else { &decided[..] });
        if is_broken {
            continue;
        }
        // S0-40: nobody ends it, and the controller that it was begun on never comes back.
        site.advance(HOUR.as_secs_f64());
        assert_eq!(in_force(&second, site.now), decided[..1]);
        site.advance(30.0 * 86_400.0);
        second.run(&mut site, 2);
        drop(second);
        let third = take_over(&mut site, "ctl2", "ctl3");
        assert_eq!(in_force(&third, site.now), decided[..1], "a pause in force never goes");
    }
}

/// The end too, back on the controller where the pause began as well. The broken variant loses the end on its way.
#[test]
fn an_end_holds_on_every_controller() {
    for is_broken in [false, true] {
        let mut site = Site::new(&["compute1"]);
        let mut first = Alerter::start(&site, "ctl1");
        let (pause, maintenance) = (pause(&site), maintenance(&site));
        for decision in [&pause, &maintenance] {
            first.journal.decide(decision).unwrap();
        }
        first.run(&mut site, 2);
        drop(first);
        let mut second = take_over(&mut site, "ctl1", "ctl2");
        for decision in [&pause, &maintenance] {
            assert!(second.journal.end_decision(&end_of(decision, site.now)).unwrap());
        }
        second.run(&mut site, 2);
        drop(second);
        if is_broken {
            site.register.retain(|key, _| !matches!(key, Key::Ending(_)));
        }
        for controller in ["ctl3", "ctl1"] {
            let next = take_over(&mut site, "ctl2", controller);
            let left = in_force(&next, site.now).len();
            assert_eq!(left, if is_broken { 2 } else { 0 }, "{controller}");
        }
    }
}

/// The register's entries become visible one by one, in any order. The broken variant sees only the decision.
#[test]
fn a_decision_and_its_end_come_in_any_order() {
    let site = Site::new(&["compute1"]);
    let pause = pause(&site);
    let (begin, end) = (Entry::Decision(pause.clone()), Entry::Ending(end_of(&pause, site.now)));
    for (order, is_in_force) in [
        (vec![&begin, &end], false),
        (vec![&end, &begin], false),
        (vec![&end, &begin, &end], false),
        (vec![&begin], true),
        (vec![&end], false),
    ] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl2");
        for entry in &order {
            site.publish((*entry).clone());
            alerter.take_in(&site);
            site.advance(2.0);
        }
        assert_eq!(!in_force(&alerter, site.now).is_empty(), is_in_force, "{order:?}");
        let mut third = Alerter::start(&site, "ctl3");
        third.run(&mut site, 2);
        assert_eq!(!in_force(&third, site.now).is_empty(), is_in_force, "at once: {order:?}");
    }
}

/// attrd forgets when all controllers stop: the alerter that knows writes both again, the end first.
#[test]
fn what_the_register_has_lost_is_written_again() {
    let mut site = Site::new(&["compute1"]);
    let mut alerter = Alerter::start(&site, "ctl1");
    let (ended, kept) = (pause(&site), maintenance(&site));
    for decision in [&ended, &kept] {
        alerter.journal.decide(decision).unwrap();
    }
    alerter.journal.end_decision(&end_of(&ended, site.now)).unwrap();
    alerter.run(&mut site, 2);
    site.register.clear();
    alerter.run(&mut site, 2);
    drop(alerter);
    let next = take_over(&mut site, "ctl1", "ctl2");
    assert_eq!(in_force(&next, site.now), [kept]);
}

/// The mark of a release may be made after the release is known, of evidence that comes later than both. The broken variant
/// reads decisions only when the register has changed.
#[test]
fn a_release_waits_for_its_mark() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    let operation = site.seen_fenced("compute1");
    let mark = MarkId::of_operation(&HostName::parse("compute1").unwrap(), operation);
    site.publish(Entry::Decision(decision(&site, About::Release(mark))));
    alerter.take_in(&site);
    assert!(alerter.journal.released_marks().unwrap().is_empty());
    site.advance(12.0);
    alerter.take_in(&site);
    assert!(alerter.journal.released_marks().unwrap().contains(&mark));
}

/// A controller that was away for longer than the register keeps an end does not bring the pause back. The broken variants: a
/// register that was lost as a whole, and a pause that never stood in it.
#[test]
fn a_pause_that_was_ended_long_ago_does_not_come_back() {
    for (stood, is_lost, comes_back) in [(true, false, false), (true, true, true), (false, false, true)] {
        let (mut site, mut first) = begun(&["compute1"], "ctl1");
        let paused = pause(&site);
        site.register_is_mute = !stood;
        assert!(first.journal.decide(&paused).unwrap());
        first.run(&mut site, 2);
        drop(first);
        site.register_is_mute = false;
        site.advance(8.0 * 86_400.0);
        site.register.remove(&Key::Decision(paused.id));
        if is_lost {
            site.register.clear();
        }
        let mut back = Alerter::start(&site, "ctl1");
        back.run(&mut site, 2);
        let here = in_force(&back, site.now);
        assert_eq!(here.contains(&paused), comes_back, "stood {stood}, lost {is_lost}");
    }
}
