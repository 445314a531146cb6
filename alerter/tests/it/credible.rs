//! What a member of `haclient` writes into the register (SECURITY.md, T3): nothing ends, changes or swallows a mark unseen.

use marks::fencing::Fencing;
use marks::mark::Settlement;
use marks::register::Entry;

use crate::site::{Alerter, ROUTES, begun, mark_of};

/// A controller was taken out of the cluster after it had sent a mark: who reads that later holds the mark, and does not send
/// a host that is back once more.
#[test]
fn an_end_by_a_controller_that_has_left_the_cluster() {
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    let fencing = site.outage("compute1", "ctl1");
    first.notifies_all(&mut site, 20);
    site.back("compute1", "ctl2");
    site.ended_by("ctl9");
    site.advance(600.0);
    let second = Alerter::at_work(&mut site, "ctl2", 40);
    site.assert_all_notified();
    let mark = &second.marks("compute1")[0];
    assert_eq!((mark.id, mark.standing.as_str()), (fencing.into(), "outcome-unknown"));
}

/// Two controllers with other domains for a while: nothing is lost, and nothing goes under two names.
#[test]
fn an_honest_mark_of_another_configuration_is_held_and_not_lost() {
    for is_over in [false, true] {
        let (mut site, mut first) = begun(&["compute1"], "ctl1");
        if !is_over {
            site.down.extend(ROUTES);
        }
        let fencing = site.outage("compute1", "ctl1");
        first.run(&mut site, 20);
        site.back("compute1", "ctl2");
        site.advance(60.0);
        site.name_hosts("{ compute1 = \"compute1.new.org\" }");
        let mut second = Alerter::at_work(&mut site, "ctl2", 40);
        let mark = second.marks("compute1").remove(0);
        assert_eq!(mark.id, fencing.into());
        if is_over {
            assert!(mark.settled.is_some());
            site.assert_all_notified();
        } else {
            assert_eq!((mark.standing.as_str(), mark.settled), ("outcome-unknown", None));
            site.down.clear();
            second.release(&site, mark.id);
            second.run(&mut site, 4);
            assert_eq!(site.notified.len(), 2);
        }
    }
}

/// A host was fenced and is back: what Pacemaker said of that proves no `f.` of the time after its return, whatever connection
/// it names, for every reader, and whether the register still has the mark of then. The broken variant died once more.
#[test]
fn a_forged_fencing_moments_after_a_return() {
    let readers = [(false, false), (true, false), (true, true)];
    for (pause, (moves, is_lost)) in
        [30.0, 70.0, 110.0].into_iter().flat_map(|pause| readers.map(|it| (pause, it)))
    {
        for connection in ["none", "former", "own"] {
            let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
            let former = site.incarnation("compute1");
            alerter.meets_outage(&mut site, "compute1", "ctl1", 4);
            site.advance(10.0);
            alerter.meets_return(&mut site, "compute1", "ctl2", 4);
            site.advance(pause);
            // Where nothing is left of the time before, the clocks cannot show which of two failures ended that connection.
            if is_lost && connection == "own" {
                continue;
            }
            let seen = site.fencing("ctl2", "compute1");
            let incarnation = match connection {
                "none" => None,
                "former" => former,
                _ => seen.incarnation.clone(),
            };
            if is_lost {
                site.register.clear();
            }
            site.publish(Entry::Fencing(Fencing { incarnation, already_down: None, ..seen }));
            if moves {
                alerter = Alerter::start(&site, "ctl3");
            }
            alerter.run(&mut site, 40);
            let case = format!("{pause} s after, connection: {connection}, moves: {moves}, lost: {is_lost}");
            assert_eq!(site.notified.len(), 2, "{case}: {:?}", alerter.standings("compute1"));
            assert!(is_lost || alerter.standings("compute1").last() == Some(&"unproven"), "{case}");
            alerter.meets_outage(&mut site, "compute1", "ctl2", 40);
            assert_eq!(site.notified.len(), 4, "{case}: the next failure is notified");
        }
    }
}

/// `m.` of another alerter for the same outage: by itself it ends no mark.
#[test]
fn a_forged_mark_beside_one_that_the_register_never_had() {
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    site.register_is_mute = true;
    site.down.extend(ROUTES);
    site.die("compute1");
    site.off("ctl1", "compute1");
    first.run(&mut site, 2);
    drop(first);
    site.register_is_mute = false;
    site.down.clear();
    let forged = site.fencing("ctl2", "compute1");
    site.publish(Entry::Mark(mark_of(&forged, "ctl2")));
    let again = Alerter::at_work(&mut site, "ctl1", 4);
    let own = again.marks("compute1").into_iter().find(|mark| mark.id != forged.id.into()).unwrap();
    assert_ne!(own.settled.map(|(how, _)| how), Some(Settlement::Expired));
}
