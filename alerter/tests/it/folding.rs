//! One outage or two: what is one is sent once, what is two is sent twice, in order.

use marks::fencing::Fencing;
use marks::host::HostName;
use marks::register::Key;
use marks::time::Timestamp;
use pacemaker::evidence::Action;

use crate::site::{Alerter, Site, begun, with_clocks};

/// S4-35, W21, W22: three witnesses of one fencing without the agent. One mark.
#[test]
fn three_witnesses_of_one_fencing() {
    for (alert, remembered, noted) in [
        (true, true, true),
        (false, true, true),
        (false, false, true),
        (false, true, false),
        (true, false, false),
    ] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.die("compute1");
        site.advance(1.0);
        if alert {
            site.alert("compute1", Action::Reboot, 0, "ctl3");
        }
        site.advance(0.4);
        if remembered {
            site.remember("compute1", false);
        }
        if noted {
            site.advance(0.7);
            site.hosts.get_mut("compute1").unwrap().fenced = site.now.seconds();
        }
        alerter.notifies_all(&mut site, 60);
        for controller in ["ctl2", "ctl3"] {
            Alerter::start(&site, controller).run(&mut site, 60);
        }
        site.assert_all_notified();
    }
}

/// A host returns and its return is noted; it fails again, and the CIB cannot be read by the agent. Another mark.
#[test]
fn after_a_noted_return_a_fencing_without_a_connection_is_another_outage() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 4);
    alerter.meets_return(&mut site, "compute1", "ctl1", 30);
    let returned = alerter.marks("compute1")[0].returned_at;
    assert_eq!(returned, site.outages[0].ended.map(|at| Timestamp::from_seconds(at.seconds())));
    site.die("compute1");
    let fencing = Fencing { incarnation: None, ..site.fencing("ctl2", "compute1") };
    site.mark("ctl2", &fencing);
    site.advance(1.0);
    alerter.meets_fencing(&mut site, "compute1", 40);
    site.assert_all_notified();
    assert_eq!(alerter.marks("compute1").len(), 2);
}

/// The broken variant of the row above: nobody saw the return. The second outage is swallowed, and the audit says so.
#[test]
fn an_outage_that_is_swallowed_is_caught() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 4);
    site.back("compute1", "ctl1");
    site.advance(10.0);
    site.hosts.get_mut("compute1").unwrap().connections.clear();
    site.die("compute1");
    let fencing = Fencing { incarnation: None, ..site.fencing("ctl2", "compute1") };
    site.mark("ctl2", &fencing);
    alerter.run(&mut site, 40);
    assert!(site.audit().iter().any(|wrong| wrong.contains("was not notified")));
}

/// A host and the controller that held its connection are lost together, some time after an earlier outage: what the
/// cluster remembers is the connection of the outage before. Two marks.
#[test]
fn a_host_is_lost_together_with_the_memory_of_its_connection() {
    for later in [10.0, 100.0, 300.0] {
        for (by, clocks) in with_clocks(["ctl1", "ctl3"]) {
            let site = Site::new(&["compute1"]).with_clocks(clocks);
            let (site, marks) = lost_together(site, (later, Watched::Always, by), |fencing| fencing);
            site.assert_all_notified();
            assert_eq!(marks, 2, "one for each outage: marked by {by}, {later} s later, clocks: {clocks:?}");
        }
    }
}

/// The same, and the alerter that saw the return is lost with that controller too: the next one knows of it by the
/// register. Two marks.
#[test]
fn a_host_is_lost_together_with_the_alerter_that_saw_it_back() {
    for (later, clocks) in with_clocks([10.0, 100.0, 300.0]) {
        let site = Site::new(&["compute1"]).with_clocks(clocks);
        let (site, marks) = lost_together(site, (later, Watched::ByTheLost, "ctl1"), |fencing| fencing);
        site.assert_all_notified();
        assert_eq!(marks, 2, "one for each outage, {later} s later, clocks: {clocks:?}");
    }
}

/// The broken variant of the row above: what that alerter saw does not stand in the register.
#[test]
fn without_the_return_in_the_register_that_outage_is_swallowed() {
    let (site, _) =
        lost_together(Site::new(&["compute1"]), (10.0, Watched::InSilence, "ctl1"), |fencing| fencing);
    assert!(site.audit().iter().any(|wrong| wrong.contains("was not notified")));
}

/// The same, and no alerter ran from the return to the second loss: what it can read is the first outage's connection,
/// and that the host was not fenced since it was connected last. Two marks where that is later than `coalesce` (180 s);
/// before, an `off` that Pacemaker repeats before it has noted the first one seems no different, and clocks decide.
#[test]
fn a_host_is_lost_together_with_the_memory_of_a_connection_that_nobody_saw() {
    lost_together(Site::new(&["compute1"]), (300.0, Watched::Never, "ctl1"), |fencing| fencing)
        .0
        .assert_all_notified();
}

/// The broken variant of the row above: the agent does not say whether the host was down already.
#[test]
fn without_the_word_of_the_cib_that_outage_is_swallowed() {
    let (site, _) = lost_together(Site::new(&["compute1"]), (300.0, Watched::Never, "ctl1"), |fencing| {
        Fencing { already_down: None, ..fencing }
    });
    assert!(site.audit().iter().any(|wrong| wrong.contains("was not notified")));
}

/// Whether an alerter sees the return of a host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watched {
    Never,
    Always,
    /// Its controller is lost together with the host.
    ByTheLost,
    /// The same, and the register does not have it.
    InSilence,
}

/// `by` marks the second outage; `said`: what the agent makes of that fencing. Gives also how many marks there are.
fn lost_together(
    mut site: Site,
    (later, watched, by): (f64, Watched, &'static str),
    said: fn(Fencing) -> Fencing,
) -> (Site, usize) {
    let is_lost = matches!(watched, Watched::ByTheLost | Watched::InSilence);
    let mut alerter = Alerter::at_work(&mut site, if is_lost { "ctl2" } else { "ctl3" }, 2);
    alerter.meets_outage(&mut site, "compute1", "ctl1", 20);
    site.back("compute1", "ctl2");
    if watched != Watched::Never {
        alerter.run(&mut site, 2);
    }
    if watched == Watched::InSilence {
        site.register.retain(|key, _| !matches!(key, Key::Returned(_)));
    }
    site.advance(later);
    site.hosts.get_mut("compute1").unwrap().forget("ctl2");
    site.lost.insert("ctl2");
    site.die("compute1");
    site.advance(3.0);
    let second = said(site.fencing(by, "compute1"));
    site.mark(by, &second);
    site.advance(1.0);
    site.seen_fenced("compute1");
    if is_lost {
        alerter = Alerter::start(&site, "ctl3");
    }
    alerter.run(&mut site, 60);
    let marks = alerter.marks("compute1").len();
    (site, marks)
}

/// W26: Pacemaker compares the names of nodes without case, and so do we. One mark.
#[test]
fn one_host_in_two_spellings() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    let fencing = site.fencing("ctl1", "compute1");
    site.mark("ctl1", &Fencing { node: HostName::parse("COMPUTE1").unwrap(), ..fencing });
    let again = site.fencing("ctl2", "compute1");
    site.mark("ctl2", &again);
    site.advance(1.0);
    alerter.meets_fencing(&mut site, "compute1", 40);
    Alerter::start(&site, "ctl3").run(&mut site, 40);
    assert_eq!((site.notified.len(), site.notified_ids().len()), (2, 1), "{:?}", site.notified);
}

/// The first of two outages was marked by nobody and is found by its evidence, when the second one is marked already: in
/// order, where the host needed longer to come back than evidence waits.
#[test]
fn an_outage_without_a_mark_before_one_with_a_mark() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    alerter.meets_fencing(&mut site, "compute1", 12);
    alerter.meets_return(&mut site, "compute1", "ctl2", 6);
    alerter.meets_outage(&mut site, "compute1", "ctl3", 40);
    site.assert_all_notified();
    for controller in ["ctl3", "ctl2"] {
        Alerter::start(&site, controller).run(&mut site, 40);
        site.assert_all_notified();
    }
}

/// Two alerters at once (one was not stopped in time) each make a mark of the same outage: whatever was sent by then,
/// nothing more is sent by either, or by a third one.
#[test]
fn two_alerters_at_once() {
    let mut site = Site::new(&["compute1"]);
    let (mut one, mut two) = (Alerter::start(&site, "ctl1"), Alerter::start(&site, "ctl2"));
    one.run(&mut site, 2);
    two.run(&mut site, 2);
    site.die("compute1");
    site.off("ctl1", "compute1");
    let before = site.register.clone();
    site.off("ctl2", "compute1");
    let both = std::mem::replace(&mut site.register, before);
    one.pass(&mut site);
    let left = std::mem::replace(&mut site.register, both);
    two.pass(&mut site);
    site.register.extend(left);
    site.advance(1.0);
    site.seen_fenced("compute1");
    let notified = site.notified.len();
    one.run(&mut site, 40);
    two.run(&mut site, 40);
    Alerter::start(&site, "ctl3").run(&mut site, 40);
    assert_eq!(site.notified.len(), notified, "{:?}", site.notified);
}
