//! What is sent at once in a group that sends a few at a time, on a real journal.

use std::time::Duration;

use alerter::delivery::endpoint::Endpoint;
use alerter::delivery::outbox::{FRESH, Outbox};
use alerter::moment::Moment;
use alerter::policy::steer;
use journal::{Callback, Capacity, Heard, Says};
use marks::host::HostName;
use marks::id::NoteId;
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;

use crate::site::{Alerter, Site, lacks_evidence, refused, taken};

/// A mark whose attempt has begun keeps its place until that has ended, also where another one comes before it by now, or
/// where it is held itself meanwhile. The broken variant is the attempt that has ended.
#[test]
fn what_is_under_way_keeps_its_place_whatever_is_decided_meanwhile() {
    if lacks_evidence() {
        return;
    }
    for (is_held, ends) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut site = Site::new(&["compute1", "compute2"]);
        site.configure("[groups.default]\nmax-in-flight = 1\n");
        let mut alerter = Alerter::start(&site, "ctl1");
        alerter.run(&mut site, 2);
        // Nobody marked the first one: its evidence makes a mark later.
        site.die("compute2");
        site.seen_fenced("compute2");
        site.advance(2.0);
        site.outage("compute1", "ctl1");
        alerter.take_in(&site);
        alerter.keep_up(&mut site);
        let due = alerter.begin(&site, "nova").expect("nothing holds it");
        if is_held {
            let until = site.now + Duration::from_secs(600);
            let scope = Scope::Host(HostName::parse("compute1").unwrap());
            let about = About::Maintenance { scope, until };
            let (id, at) = (NoteId::generate(), site.now);
            let decision = Decision { id, about, at, actor: "alice".into(), reason: "disk".into() };
            assert!(alerter.journal.decide(&decision).unwrap());
        }
        site.advance(20.0);
        alerter.take_in(&site);
        alerter.keep_up(&mut site);
        assert_eq!(alerter.marks("compute2").len(), 1);
        if ends {
            alerter.finish(&site, &due, &taken());
            let due = alerter.begin(&site, "backup");
            if let Some(due) = due.filter(|due| due.mark.node.as_str() == "compute1") {
                alerter.finish(&site, &due, &taken());
            }
        }
        let next = alerter.begin(&site, "nova");
        assert_eq!(next.is_some(), ends, "held {is_held}");
    }
}

/// Marks that wait for a failing route take no place; when the time of that step of their chains is over, all could
/// be sent to the next route at once, and one is. The broken variant is the group without a limit.
#[test]
fn chains_that_go_on_together_are_sent_a_few_at_a_time() {
    if lacks_evidence() {
        return;
    }
    for (limit, expected) in [("max-in-flight = 1\n", 1), ("", 3)] {
        let hosts = ["compute1", "compute2", "compute3"];
        let mut site = Site::new(&hosts);
        let chain = "chain = [{ route = \"nova\", timeout = 60 }, { route = \"backup\", timeout = 60 }]";
        site.configure(&format!("[groups.default]\n{chain}\n{limit}"));
        let mut alerter = Alerter::start(&site, "ctl1");
        alerter.run(&mut site, 2);
        alerter.shared().routes.troubles().failed("nova", ("connect", "refused"), Duration::ZERO, site.now);
        hosts.into_iter().for_each(|host| {
            site.outage(host, "ctl1");
        });
        alerter.take_in(&site);
        alerter.keep_up(&mut site);
        site.advance(90.0);
        let (shared, capacity) = (alerter.shared(), [Capacity::of("nova", 0), Capacity::of("backup", 8)]);
        let mut begun = 0;
        for _ in 0..3 {
            steer::keep_up(&mut alerter.journal, shared.policy(), (&capacity, None), site.now).unwrap();
            begun += alerter.journal.dispatch(&[], &capacity, None, site.now).unwrap().begun.len();
            site.advance(61.0);
        }
        assert_eq!(begun, expected, "{limit}");
    }
}

/// Two hosts of which one may be sent at once have failed.
fn two_outages() -> (Site, Alerter) {
    let mut site = Site::new(&["compute1", "compute2"]);
    site.configure("[groups.default]\nmax-in-flight = 1\nroutes = [\"nova\"]\n");
    let mut alerter = Alerter::start(&site, "ctl1");
    alerter.run(&mut site, 2);
    site.outage("compute1", "ctl1");
    site.outage("compute2", "ctl1");
    alerter.take_in(&site);
    alerter.keep_up(&mut site);
    (site, alerter)
}

/// An exchange keeps its mark's place until it is over, also where the receiver has confirmed or refused the mark meanwhile,
/// after an earlier attempt: or two would be under way where one may be. The broken variant is the exchange that is over.
#[test]
fn an_exchange_keeps_its_place_whatever_the_receiver_says_meanwhile() {
    if lacks_evidence() {
        return;
    }
    let has = Says::Has { reference: None, reason: None };
    for says in [has, Says::Refuses { reason: "busy".into(), next_due: Timestamp(i64::MAX) }] {
        let (site, mut alerter) = two_outages();
        let (due, now) = (alerter.begin(&site, "nova").expect("nothing holds it"), Moment::now());
        let mut outbox = Outbox::new(Endpoint::new(8));
        outbox.take_up(vec![due.clone()], 1, FRESH, now);
        assert_eq!(outbox.next(now).map(|next| next.mark.id), Some(due.mark.id));
        alerter.shared().routes.outboxes().insert("nova".into(), outbox);
        let confirming = vec!["nova".to_owned()];
        let callback = Callback { mark: due.mark.id, route: None, confirming, actor: "nova".into() };
        let heard = alerter.journal.call_back(&callback, &says, site.now).unwrap();
        assert_eq!(heard, Heard::Done("nova".into()));
        assert!(alerter.begin(&site, "nova").is_none(), "{says:?}");
        alerter.shared().routes.outboxes().get_mut("nova").unwrap().ended(due.mark.id);
        let next = alerter.begin(&site, "nova").expect("the place is free");
        assert_ne!(next.mark.id, due.mark.id);
    }
}

/// The first waits for its next attempt, and the other may go: a place that cannot be given on record is given by the next
/// poll. The broken variant forgets the plan and takes what operators decided for known: nobody is planned any more.
#[test]
fn a_place_that_cannot_be_written_is_given_by_the_next() {
    if lacks_evidence() {
        return;
    }
    let (site, mut alerter) = two_outages();
    let due = alerter.begin(&site, "nova").expect("nothing holds it");
    alerter.finish(&site, &due, &refused(&site));
    let (shared, capacity) = (alerter.shared(), [Capacity::of("nova", 1)]);
    site.tamper(
        "ctl1",
        "CREATE TRIGGER broken BEFORE DELETE ON hold BEGIN SELECT RAISE(ABORT, 'broken'); END",
    );
    steer::keep_up(&mut alerter.journal, shared.policy(), (&capacity, None), site.now).unwrap_err();
    site.tamper("ctl1", "DROP TRIGGER broken");
    let next = alerter.begin(&site, "nova").expect("the place is free");
    assert_ne!(next.mark.id, due.mark.id);
}
