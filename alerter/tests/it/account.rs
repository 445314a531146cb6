//! Every fencing and every sighting has one end that can be shown. The account finds those without one.

use marks::account::Gap;
use pacemaker::evidence::Action;
use serde_json::Value;

use crate::site::{Alerter, Damage, Site, begun};

/// One host that is sent, with all that Pacemaker says of it.
fn furnished() -> (Site, Alerter) {
    let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 40);
    site.assert_all_notified();
    assert_eq!(alerter.unaccounted(&site, 3600), [], "everything adds up, at any time");
    (site, alerter)
}

/// A mark is taken out of the journal by hand. The broken variant asks the marks alone, and finds nothing wrong.
#[test]
fn a_record_whose_mark_was_taken_away_is_found() {
    let (site, alerter) = furnished();
    site.homes.damage("ctl1", Damage::NoMark("compute1"));
    let found = alerter.unaccounted(&site, 0);
    assert!(found.len() > 1, "the fencing and its sightings: {found:?}");
    assert!(found.iter().all(|one| *one == ("compute1".to_owned(), Gap::MarkGone)), "{found:?}");
}

/// The word that a fencing was taken in is lost. The next poll decides it again. Without a poll the check finds it.
#[test]
fn a_fencing_that_nobody_decides_about_is_found() {
    let (site, mut alerter) = furnished();
    site.homes.damage("ctl1", Damage::Undecided);
    assert_eq!(
        (alerter.unaccounted(&site, 0), alerter.unaccounted(&site, 100)),
        (vec![], vec![]),
        "the next poll"
    );
    assert_eq!(alerter.unaccounted(&site, 200), [("compute1".to_owned(), Gap::Overdue)]);
    alerter.take_in(&site);
    assert_eq!(alerter.unaccounted(&site, 200), []);
}

/// Evidence of a fencing that no agent was asked for waits for ten seconds. The broken variant waits without an end: nobody
/// hears of evidence that is never decided about.
#[test]
fn a_sighting_that_waits_past_its_time_is_found() {
    let (site, mut alerter) = furnished();
    site.alert("compute2", Action::Off, 0, "ctl1");
    alerter.take_in(&site);
    assert_eq!((alerter.unaccounted(&site, 0), alerter.unaccounted(&site, 30)), (vec![], vec![]), "it waits");
    assert_eq!(alerter.unaccounted(&site, 60), [("compute2".to_owned(), Gap::Overdue)]);
}

/// What a rule sets aside without a row has an end too, such as what Pacemaker remembers of a controller that was fenced.
#[test]
fn what_is_set_aside_at_each_poll_adds_up() {
    let (mut site, mut alerter) = furnished();
    site.alert("ctl2", Action::Off, 0, "ctl1");
    site.remember("ctl2", false);
    alerter.run(&mut site, 40);
    assert_eq!(alerter.unaccounted(&site, 3600), []);
}

/// Where no daemon runs `status` finds it too.
#[test]
fn status_says_what_does_not_add_up_and_is_silent_where_all_does() {
    let mut site = Site::new(&["compute1", "compute2"]);
    site.live_without_register();
    let mut alerter = Alerter::start(&site, "ctl1");
    for host in ["compute1", "compute2"] {
        site.record("ctl1", host);
    }
    alerter.run(&mut site, 2);
    let said = |status: &Value| -> Vec<Value> {
        let all = status["problems"].as_array().unwrap().iter();
        all.filter(|one| one["kind"] == "unaccounted").cloned().collect()
    };
    let before = site.homes.ask("ctl1", &["status"]);
    assert_eq!((&before["unaccounted"], said(&before)), (&0.into(), vec![]));
    site.homes.damage("ctl1", Damage::NoMark("compute1"));
    let after = site.homes.ask("ctl1", &["status"]);
    let found = said(&after);
    assert_eq!((&after["unaccounted"], found.len()), (&1.into(), 1), "{after}");
    assert_eq!((&found[0]["hosts"][0], &found[0]["level"]), (&"compute1".into(), &"critical".into()));
}
