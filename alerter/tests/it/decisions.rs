//! What an operator decides on one controller holds on the next one, and so does its end.

use marks::host::HostName;
use marks::id::{MarkId, NoteId};
use marks::register::{About, Decision, Ending, Entry, Key, Scope};
use marks::time::Timestamp;

use crate::site::{Alerter, Site, begun};

pub(crate) fn decision(site: &Site, about: About) -> Decision {
    let (actor, reason) = ("alice".to_owned(), "the switch is changed".to_owned());
    Decision { id: NoteId::generate(), about, at: site.now, actor, reason }
}

fn pause(site: &Site) -> Decision {
    decision(site, About::Pause { scope: Scope::All, until: None })
}

pub(crate) fn end_of(decision: &Decision, at: Timestamp) -> Ending {
    Ending { id: decision.id, at, actor: "bob".into(), reason: "it is in".into() }
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
        assert_eq!(!alerter.in_force(&site).is_empty(), is_in_force, "{order:?}");
        let third = Alerter::at_work(&mut site, "ctl3", 2);
        assert_eq!(!third.in_force(&site).is_empty(), is_in_force, "at once: {order:?}");
    }
}

/// The decision that holds a mark may stand on the part that is missing: a new mark waits for it, a minute at most, where everybody sees
/// that. The broken variant is a register of which nothing is missing.
#[test]
fn a_new_mark_waits_for_a_part_of_the_register_that_is_missing() {
    for (is_partial, is_paused) in [(true, false), (true, true), (false, false)] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.is_partial = is_partial;
        let mark = site.outage("compute1", "ctl1").into();
        alerter.run(&mut site, 20);
        assert_eq!(site.notified.is_empty(), is_partial);
        let words = alerter.holds_of(mark);
        assert_eq!(words.iter().any(|word| word == "part-missing"), is_partial, "{words:?}");
        if is_paused {
            site.publish(Entry::Decision(pause(&site)));
            site.is_partial = false;
        }
        alerter.run(&mut site, 60);
        assert_eq!(site.notified.is_empty(), is_paused);
    }
}

/// A clock that is set ends that wait no sooner and no later, and the history says what was waited for. The broken variant goes by the
/// wall clock.
#[test]
fn the_wait_for_a_missing_part_is_a_minute_whatever_is_set() {
    for set in [-86_400_000, -40_000, 40_000, 86_400_000] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.is_partial = true;
        let mark = site.outage("compute1", "ctl1").into();
        alerter.run(&mut site, 20);
        alerter.set_clock(&mut site, set);
        alerter.run(&mut site, 30);
        assert!(site.notified.is_empty(), "{set}");
        alerter.run(&mut site, 20);
        assert!(!site.notified.is_empty(), "{set}");
        let said = alerter.history_of(mark);
        assert!(said.iter().any(|row| row["outcome"] == "part-missing"), "{said:?}");
    }
}

/// The mark of a release may be made after the release is known, of evidence that comes later than both. The broken variant
/// reads decisions only when the register has changed.
#[test]
fn a_release_waits_for_its_mark() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    let operation = site.seen_fenced("compute1");
    let mark = MarkId::of_operation(&HostName::parse("compute1").unwrap(), operation);
    site.publish(Entry::Decision(decision(&site, About::Release(mark))));
    alerter.take_in(&site);
    assert_eq!(alerter.released(), []);
    site.advance(12.0);
    alerter.take_in(&site);
    assert_eq!(alerter.released(), [mark]);
}

/// A controller that was away for longer than the register keeps an end does not bring the pause back. The broken variants: a
/// register that was lost as a whole, and a pause that never stood in it.
#[test]
fn a_pause_that_was_ended_long_ago_does_not_come_back() {
    for (stood, is_lost, comes_back) in [(true, false, false), (true, true, true), (false, false, true)] {
        let (mut site, mut first) = begun(&["compute1"], "ctl1");
        let paused = pause(&site);
        site.register_is_mute = !stood;
        first.decide(&paused);
        first.run(&mut site, 2);
        drop(first);
        site.register_is_mute = false;
        site.advance(8.0 * 86_400.0);
        site.register.remove(&Key::Decision(paused.id));
        if is_lost {
            site.register.clear();
        }
        let back = Alerter::at_work(&mut site, "ctl1", 2);
        let here = back.in_force(&site);
        assert_eq!(here.contains(&paused), comes_back, "stood {stood}, lost {is_lost}");
    }
}
