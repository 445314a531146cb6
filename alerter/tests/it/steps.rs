//! What a route does behind an acknowledgement: by the alerter that sent it, and by another one.

use std::sync::Arc;
use std::time::Duration;

use drivers::{Kind, Step};
use marks::delivery::State;
use marks::id::MarkId;
use marks::mark::Settlement;

use crate::site::{Alerter, Plain, Site, Verdict, lost, unreached};

/// Routes that say that a host is back.
static KINDS: [Kind; 1] = [Kind {
    word: "http",
    configure: |table| {
        table.text("url", |_| Ok(()));
        Some(Arc::new(Plain::with(&[Step::Return], Duration::ZERO, false)))
    },
}];

/// The same, and each return ends its own failure alone.
static EACH: [Kind; 1] = [Kind {
    word: "http",
    configure: |table| {
        table.text("url", |_| Ok(()));
        Some(Arc::new(Plain::with(&[Step::Return], Duration::ZERO, true)))
    },
}];

/// What was done behind the acknowledgements of the first route: by whom, and which step.
fn further(site: &Site) -> Vec<(&'static str, &str)> {
    let of_nova = site.further.iter().filter_map(|(by, route, _)| Some((*by, route.strip_prefix("nova.")?)));
    of_nova.collect()
}

fn begun_with(kinds: &'static [Kind]) -> (Site, Alerter) {
    let mut site = Site::new(&["compute1"]);
    let mut alerter = Alerter::start_with(&site, "ctl1", kinds);
    alerter.run(&mut site, 2);
    (site, alerter)
}

/// The broken variant of the one before: the route never had the mark, and calls nobody back.
#[test]
fn no_host_is_called_back_on_a_route_that_did_not_get_its_failure() {
    let (mut site, mut alerter) = begun_with(&KINDS);
    site.down.insert("nova");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 4);
    alerter.meets_return(&mut site, "compute1", "ctl2", 30);
    assert_eq!(further(&site), []);
    site.down.clear();
    alerter.run(&mut site, 4);
    assert_eq!(further(&site), [("ctl1", "return")], "once it has it, it is");
}

/// A host that failed and came back, whose return was refused unless it `is_sent`; days later its alerter is lost.
fn lost_after(kinds: &'static [Kind], days: u32, is_sent: bool) -> Site {
    let (mut site, mut first) = begun_with(kinds);
    if !is_sent {
        site.down.insert("nova.return");
    }
    first.meets_outage(&mut site, "compute1", "ctl1", 4);
    first.meets_return(&mut site, "compute1", "ctl2", 4);
    drop(first);
    site.down.clear();
    site.further.clear();
    site.advance(f64::from(days) * 86_400.0);
    site
}

/// The next alerter makes the return that the lost one could not send for days: what it would end stays open otherwise. The
/// broken variants are older than the register is kept, were sent, or undo something of the host's, which an operator may
/// have changed since.
#[test]
fn another_alerter_makes_the_return_that_the_first_could_not_send_for_days() {
    for (kinds, days, is_sent, expected) in [
        (&EACH, 2, false, 1),
        (&EACH, 6, false, 1),
        (&EACH, 8, false, 0),
        (&EACH, 2, true, 0),
        (&KINDS, 2, false, 0),
    ] {
        let mut site = lost_after(kinds, days, is_sent);
        for controller in ["ctl2", "ctl3"] {
            Alerter::start_with(&site, controller, kinds).run(&mut site, 4);
            assert_eq!(returns(&site), expected, "{days} {is_sent} {controller}");
        }
    }
}

/// A host was notified, and the next alerter sees it back: it says so, whatever its clock says. The broken variant counts for how long the
/// host is back from the time that another clock gave, and the endpoint has a living host down for ever.
#[test]
fn a_return_that_this_alerter_saw_is_sent_whatever_its_clock_says() {
    for days in [-3650, -2, 2, 3650] {
        let mut site = Site::new(&["compute1"]).with_key();
        site.skews.insert("ctl2", days * 86_400_000);
        let mut first = Alerter::start_with(&site, "ctl1", &KINDS);
        first.run(&mut site, 4);
        first.meets_outage(&mut site, "compute1", "ctl3", 4);
        drop(first);
        site.lost.insert("ctl1");
        let mut second = Alerter::start_with(&site, "ctl2", &KINDS);
        second.run(&mut site, 4);
        second.meets_return(&mut site, "compute1", "ctl3", 90);
        assert_eq!(returns(&site), 1, "{days} days ahead");
    }
}

/// All controllers stop, and the register in attrd is gone. The broken variant keeps what another alerter returned in the register alone:
/// the next one reads its own acknowledgement of the failure there, and no return.
#[test]
fn a_return_that_another_alerter_sent_outlives_the_register() {
    let mut site = lost_after(&EACH, 0, true);
    Alerter::start_with(&site, "ctl2", &EACH).run(&mut site, 4);
    site.register.clear();
    site.advance(2.0 * 86_400.0);
    Alerter::start_with(&site, "ctl2", &EACH).run(&mut site, 8);
    assert_eq!(returns(&site), 0);
}

/// The page that is lacking may say that the return was sent. The broken variant is the whole register.
#[test]
fn no_old_return_is_sent_while_a_page_is_lacking() {
    let mut site = lost_after(&EACH, 2, false);
    let mut second = Alerter::start_with(&site, "ctl2", &EACH);
    for (is_partial, expected) in [(true, 0), (false, 1)] {
        site.is_partial = is_partial;
        second.run(&mut site, 4);
        assert_eq!(returns(&site), expected);
    }
}

/// S1-54, S4-56: sent, held until an operator's word, or cancelled; the broken variant is the host that stays away.
#[test]
fn a_mark_whose_host_is_back_before_it_was_sent_follows_its_routes_terms() {
    for (word, is_back) in [("deliver", true), ("hold", true), ("cancel", true), ("hold", false)] {
        let mut site = Site::new(&["compute1"]);
        site.configure(&format!("if-returned = \"{word}\"\n"));
        let mut alerter = Alerter::start(&site, "ctl1");
        site.down.insert("backup");
        alerter.meets_outage(&mut site, "compute1", "ctl1", 4);
        if is_back {
            site.back("compute1", "ctl2");
        }
        alerter.run(&mut site, 4);
        site.down.clear();
        alerter.run(&mut site, 4);
        let mark = &alerter.marks("compute1")[0];
        let state = alerter.deliveries(mark.id)[0].1;
        let (expected, settled) = match (word, is_back) {
            ("hold", true) => (State::Held, None),
            ("cancel", true) => (State::Cancelled, Some(Settlement::Acknowledged)),
            _ => (State::Acknowledged, Some(Settlement::Acknowledged)),
        };
        assert_eq!((state, mark.settled.map(|(how, _)| how)), (expected, settled), "{word}");
        if expected == State::Held {
            alerter.release_held(&site, mark.id);
            alerter.notifies_all(&mut site, 4);
        }
    }
}

/// What its terms hold on the route `backup`, so many seconds after the host is back.
fn held_for_a_host_that_is_back(mut site: Site, seconds: u32) -> (Site, Alerter) {
    site.configure("if-returned = \"hold\"\n");
    let mut first = Alerter::start(&site, "ctl1");
    site.down.insert("backup");
    first.meets_outage(&mut site, "compute1", "ctl1", 4);
    first.meets_return(&mut site, "compute1", "ctl2", seconds);
    (site, first)
}

/// What one alerter holds for a host that is back, the next one holds too: it does not report a repaired host.
#[test]
fn another_alerter_does_not_send_what_was_held() {
    let (mut site, first) = held_for_a_host_that_is_back(Site::new(&["compute1"]), 10);
    drop(first);
    // The connection is forgotten with the controller that held it.
    site.hosts.get_mut("compute1").unwrap().forget("ctl2");
    site.down.clear();
    Alerter::start(&site, "ctl3").run(&mut site, 30);
    assert!(site.notified.iter().all(|notified| notified.route == "nova"), "{:?}", site.notified);
}

/// Issue 45, 7: an operator releases what its route's terms hold, and the alerter is lost before the endpoint answers. The broken variant
/// knows the word on that controller alone, and holds the mark again.
#[test]
fn what_was_released_for_a_route_is_released_on_every_controller() {
    for is_released in [true, false] {
        let (mut site, mut first) = held_for_a_host_that_is_back(Site::new(&["compute1"]).with_key(), 60);
        let mark = first.marks("compute1")[0].id;
        if is_released {
            first.release(&site, mark);
            first.release_held(&site, mark);
        }
        first.run(&mut site, 4);
        drop(first);
        site.down.clear();
        let second = Alerter::at_work(&mut site, "ctl3", 30);
        let is_sent = site.notified.iter().any(|notified| notified.route == "backup");
        assert_eq!(is_sent, is_released, "{:?}", second.deliveries(mark));
    }
}

/// `after`: the second route waits for the first one, and not for ever.
#[test]
fn a_route_comes_after_another_or_after_its_limit() {
    for first_is_down in [false, true] {
        let mut site = Site::new(&["compute1"]);
        site.configure("after = \"nova\"\nafter-limit = 20\n");
        let mut alerter = Alerter::start(&site, "ctl1");
        if first_is_down {
            site.down.insert("nova");
        }
        alerter.meets_outage(&mut site, "compute1", "ctl1", 10);
        let notified =
            |site: &Site| site.notified.iter().map(|notified| notified.route.clone()).collect::<Vec<_>>();
        let expected: &[&str] = if first_is_down { &[] } else { &["nova", "backup"] };
        assert_eq!(notified(&site), expected);
        alerter.run(&mut site, 20);
        let expected: &[&str] = if first_is_down { &["backup"] } else { &["nova", "backup"] };
        assert_eq!(notified(&site), expected);
    }
}

/// A host failed, and one attempt to notify `nova` of it ended so.
fn tried(alerter: &mut Alerter, site: &mut Site, verdict: &Verdict) -> MarkId {
    site.down.extend(["nova", "backup"]);
    site.outage("compute1", "ctl1");
    alerter.take_in(site);
    alerter.keep_up(site);
    let due = alerter.begin(site, "nova").unwrap();
    alerter.finish(site, &due, verdict);
    site.down.clear();
    due.mark.id
}

fn returns(site: &Site) -> usize {
    further(site).iter().filter(|(_, step)| *step == "return").count()
}

/// Issue 22, 7, first way: the attempt arrived and was answered with 504, the host is back, and the operator does what we say. The
/// broken variant reached nobody, and there is nothing to undo.
#[test]
fn a_host_whose_mark_may_have_arrived_is_called_back_after_unmark() {
    for (verdict, expected) in [(lost(), 1), (unreached(), 0)] {
        let (mut site, mut alerter) = begun_with(&KINDS);
        let mark = tried(&mut alerter, &mut site, &verdict);
        alerter.unmark(&site, mark);
        alerter.run(&mut site, 10);
        assert_eq!(returns(&site), 0, "it is off");
        alerter.meets_return(&mut site, "compute1", "ctl2", 30);
        assert_eq!(returns(&site), expected, "{verdict:?}");
    }
}

/// Issue 22, 7, second way: the alerter that may have sent it is gone, and the next one never tried.
#[test]
fn a_host_that_another_alerter_may_have_notified_of_is_called_back() {
    for is_unmarked_before in [false, true] {
        let (mut site, mut first) = begun_with(&KINDS);
        let mark = tried(&mut first, &mut site, &lost());
        if is_unmarked_before {
            first.unmark(&site, mark);
            first.keep_up(&mut site);
        }
        drop(first);
        site.down.extend(["nova", "backup"]);
        let mut second = Alerter::start_with(&site, "ctl2", &KINDS);
        second.run(&mut site, 4);
        if !is_unmarked_before {
            second.unmark(&site, mark);
        }
        site.down.clear();
        second.meets_return(&mut site, "compute1", "ctl3", 30);
        assert_eq!(returns(&site), 1, "{is_unmarked_before}");
    }
}

/// Issue 22, 7, third way, and 8: a pending return outlives the end of its mark and of a later one, and goes only while the host
/// is a member. The broken variants end it, and call a dead host back.
#[test]
fn a_pending_return_outlives_unmark_and_waits_for_the_host() {
    let (mut site, mut alerter) = begun_with(&KINDS);
    site.down.extend(["backup", "nova.return"]);
    alerter.meets_outage(&mut site, "compute1", "ctl1", 4);
    alerter.meets_return(&mut site, "compute1", "ctl2", 4);
    let first = alerter.marks("compute1")[0].id;
    alerter.unmark(&site, first);
    assert!(alerter.deliveries(first).contains(&("nova.return".to_owned(), State::Pending)));
    site.advance(600.0);
    site.down.extend(["nova", "backup"]);
    site.die("compute1");
    site.down.remove("nova.return");
    alerter.run(&mut site, 10);
    assert_eq!(returns(&site), 0, "it is dead, and not fenced yet");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 10);
    let second = alerter.marks("compute1")[1].id;
    alerter.unmark(&site, second);
    alerter.run(&mut site, 10);
    assert_eq!(returns(&site), 0, "it is off, whatever its marks are");
    alerter.meets_return(&mut site, "compute1", "ctl3", 30);
    assert!(returns(&site) >= 1);
}
