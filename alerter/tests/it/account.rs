//! Every fencing and every sighting has one end that can be shown. The account finds those without one.

use std::time::Duration;

use alerter::intake::account;
use marks::account::Gap;
use marks::time::Timestamp;
use pacemaker::evidence::Action;
use serde_json::Value;

use crate::routes::{Place, route};
use crate::site::{Alerter, Site, begun};

/// Host and kind of each gap, so many seconds after the site's present.
fn gaps(site: &Site, alerter: &Alerter, later: u64) -> Vec<(String, Gap)> {
    let then = site.moment("ctl1").instant + Duration::from_secs(later);
    let found = account::unaccounted(&alerter.shared().base, &alerter.shared().accounts, then);
    found.into_iter().map(|one| (one.host.unwrap(), one.kind)).collect()
}

fn check(site: &Site, alerter: &Alerter) {
    account::check(&alerter.journal, &alerter.shared().base, &alerter.shared().accounts, site.moment("ctl1"))
        .unwrap();
}

/// One host that is sent, with all that Pacemaker says of it.
fn furnished() -> (Site, Alerter) {
    let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 40);
    site.assert_all_notified();
    check(&site, &alerter);
    assert_eq!(gaps(&site, &alerter, 3600), [], "everything adds up, at any time");
    (site, alerter)
}

/// A mark is taken out of the journal by hand. The broken variant asks the marks alone, and finds nothing wrong.
#[test]
fn a_record_whose_mark_was_taken_away_is_found() {
    let (site, alerter) = furnished();
    site.tamper("ctl1", "PRAGMA foreign_keys = OFF; DELETE FROM mark");
    check(&site, &alerter);
    let found = gaps(&site, &alerter, 0);
    assert!(found.len() > 1, "the fencing and its sightings: {found:?}");
    assert!(found.iter().all(|one| *one == ("compute1".to_owned(), Gap::MarkGone)), "{found:?}");
}

/// The word that a fencing was taken in is lost. The next poll decides it again. Without a poll the check finds it.
#[test]
fn a_fencing_that_nobody_decides_about_is_found() {
    let (site, mut alerter) = furnished();
    site.tamper("ctl1", "DELETE FROM folded");
    check(&site, &alerter);
    assert_eq!((gaps(&site, &alerter, 0), gaps(&site, &alerter, 100)), (vec![], vec![]), "the next poll");
    assert_eq!(gaps(&site, &alerter, 200), [("compute1".to_owned(), Gap::Overdue)]);
    alerter.take_in(&site);
    check(&site, &alerter);
    assert_eq!(gaps(&site, &alerter, 200), []);
}

/// Evidence of a fencing that no agent was asked for waits for ten seconds. The broken variant waits without an end: nobody
/// hears of evidence that is never decided about.
#[test]
fn a_sighting_that_waits_past_its_time_is_found() {
    let (site, mut alerter) = furnished();
    site.alert("compute2", Action::Off, 0, "ctl1");
    alerter.take_in(&site);
    assert_eq!((gaps(&site, &alerter, 0), gaps(&site, &alerter, 30)), (vec![], vec![]), "it waits");
    assert_eq!(gaps(&site, &alerter, 60), [("compute2".to_owned(), Gap::Overdue)]);
}

/// What a rule sets aside without a row has an end too, such as what Pacemaker remembers of a controller that was fenced.
#[test]
fn what_is_set_aside_at_each_poll_adds_up() {
    let (mut site, mut alerter) = furnished();
    site.alert("ctl2", Action::Off, 0, "ctl1");
    site.remember("ctl2", false);
    alerter.run(&mut site, 40);
    assert_eq!(gaps(&site, &alerter, 3600), []);
}

/// Where no daemon runs `status` reads the journal itself.
#[test]
fn status_says_what_does_not_add_up_and_is_silent_where_all_does() {
    let place = Place::new();
    let mut daemon = place.start(&route("recovery", ""));
    for host in ["compute1", "compute2"] {
        daemon.fence(host, Timestamp::now());
    }
    let status = || -> Value { serde_json::from_str(&place.status(&["status", "--json"])).unwrap() };
    let said = |status: &Value| -> Vec<Value> {
        let all = status["problems"].as_array().unwrap().iter();
        all.filter(|one| one["kind"] == "unaccounted").cloned().collect()
    };
    let before = status();
    assert_eq!((&before["unaccounted"], said(&before)), (&0.into(), vec![]));
    place.tamper("PRAGMA foreign_keys = OFF; DELETE FROM mark WHERE node = 'compute1'");
    let after = status();
    let found = said(&after);
    assert_eq!((&after["unaccounted"], found.len()), (&1.into(), 1), "{after}");
    assert_eq!((&found[0]["hosts"][0], &found[0]["level"]), (&"compute1".into(), &"critical".into()));
}
