//! What is sent at once in a group that sends a few at a time.

use std::time::Duration;

use marks::host::HostName;
use marks::id::NoteId;
use marks::register::{About, Decision, Scope};

use crate::site::{Alerter, Site, taken};

/// A mark whose attempt has begun keeps its place until that has ended, also where another one comes before it by now, or
/// where it is held itself meanwhile. The broken variant is the attempt that has ended.
#[test]
fn what_is_under_way_keeps_its_place_whatever_is_decided_meanwhile() {
    for (is_held, ends) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut site = Site::new(&["compute1", "compute2"]);
        site.configure("[groups.default]\nmax-in-flight = 1\n");
        let mut alerter = Alerter::at_work(&mut site, "ctl1", 2);
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
            alerter.decide(&decision);
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
