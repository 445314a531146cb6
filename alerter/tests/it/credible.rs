//! What a member of `haclient` writes into the register (SECURITY.md, T3): nothing ends, changes or swallows a mark unseen.

use std::time::Duration;

use marks::fencing::{Fencing, Incarnation};
use marks::host::HostName;
use marks::id::{FencingId, MarkId, NoteId};
use marks::mark::{Mark, Settlement};
use marks::register::{Acknowledgement, Entry, Key, Returned, Settled, Watermark};
use marks::time::Timestamp;

use crate::site::{Alerter, ROUTES, Site, begun, lacks_evidence, mark_of};

fn settled(mark: FencingId, by: &str, at: Timestamp) -> Entry {
    Entry::Settled(Settled { mark: mark.into(), how: Settlement::Acknowledged, at, by: by.into() })
}

fn taken(mark: FencingId, route: &str, by: &str, at: Timestamp) -> Entry {
    Entry::Acknowledged(Acknowledgement { mark: mark.into(), route: route.into(), at, by: by.into() })
}

fn refused(alerter: &Alerter, key: &Key) -> Option<String> {
    alerter.shared().base.seen().refused().get(key).cloned()
}

/// `s.` and `a.` of a controller that does not exist, or of this one, whose journal knows better: the mark is sent, and it is
/// said. In the one case the mark was made before this daemon's start.
#[test]
fn a_forged_end_of_an_open_mark() {
    if lacks_evidence() {
        return;
    }
    for (by, restarts) in [("ctl9", false), ("ctl1", false), ("ctl1", true), ("compute1", false)] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.down.extend(ROUTES);
        let fencing = site.outage("compute1", "ctl1");
        alerter.run(&mut site, 20);
        site.publish(settled(fencing, by, site.now));
        for route in ROUTES {
            site.publish(taken(fencing, route, by, site.now));
        }
        if restarts {
            alerter = Alerter::start(&site, "ctl1");
        }
        alerter.run(&mut site, 4);
        let said = refused(&alerter, &Key::Settled(fencing.into()));
        let reasons = alerter.shared().base.seen().faults().len();
        site.down.clear();
        alerter.run(&mut site, 20);
        assert!(site.audit().is_empty(), "{by}: {:#?}", site.audit());
        assert!(said.is_some() && reasons == 3, "{by}: {said:?} {reasons}");
    }
}

/// The same before any alerter has seen the fencing.
#[test]
fn a_forged_end_of_what_is_no_mark_yet() {
    if lacks_evidence() {
        return;
    }
    for by in ["ctl9", "ctl1"] {
        for how in [Settlement::Acknowledged, Settlement::Dismissed] {
            let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
            let fencing = site.outage("compute1", "ctl2");
            let Entry::Settled(end) = settled(fencing, by, site.now) else { continue };
            site.publish(Entry::Settled(Settled { how, ..end }));
            alerter.run(&mut site, 40);
            assert!(site.audit().is_empty(), "{by} {how:?}: {:#?}", site.audit());
        }
    }
}

/// A controller was taken out of the cluster after it had sent a mark: who reads that later holds the mark, and does not send
/// a host that is back once more.
#[test]
fn an_end_by_a_controller_that_has_left_the_cluster() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    let fencing = site.outage("compute1", "ctl1");
    first.run(&mut site, 20);
    site.assert_all_notified();
    site.back("compute1", "ctl2");
    for entry in site.register.values_mut() {
        match entry {
            Entry::Settled(end) => end.by = "ctl9".into(),
            Entry::Acknowledged(end) => end.by = "ctl9".into(),
            _ => {}
        }
    }
    site.advance(600.0);
    let mut second = Alerter::start(&site, "ctl2");
    second.run(&mut site, 40);
    site.assert_all_notified();
    let mark = &second.marks("compute1")[0];
    assert_eq!((mark.id, mark.standing.as_str()), (fencing.into(), "outcome-unknown"));
}

/// An `m.` beside a real `f.` that has another name, or the opposite of the disks, or another time: held as the rules here
/// make it, and sent so when Pacemaker confirms that the host was fenced. Where the alerter came later, a person decides.
#[test]
fn a_mark_that_differs_from_its_fencing() {
    if lacks_evidence() {
        return;
    }
    let changes: [fn(&mut Mark); 3] = [
        |mark| mark.fqdn = HostName::parse("compute1.elsewhere.org").unwrap(),
        |mark| mark.on_shared_storage = false,
        |mark| mark.failure_time = mark.failure_time - Duration::from_secs(50),
    ];
    for change in changes {
        for is_late in [false, true] {
            let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
            site.die("compute1");
            let fencing = site.fencing("ctl2", "compute1");
            site.mark("ctl2", &fencing);
            let mut forged = mark_of(&fencing, "ctl2");
            change(&mut forged.mark);
            site.publish(Entry::Mark(forged));
            if is_late {
                site.seen_fenced("compute1");
                site.back("compute1", "ctl3");
                site.advance(60.0);
                alerter = Alerter::start(&site, "ctl1");
            }
            alerter.run(&mut site, 4);
            assert_eq!(alerter.standings("compute1"), ["outcome-unknown"]);
            assert!(site.notified.is_empty());
            assert!(refused(&alerter, &Key::Mark(fencing.id.into())).is_some());
            match is_late {
                true => alerter.release(&site, fencing.id.into()),
                false => drop(site.seen_fenced("compute1")),
            }
            alerter.run(&mut site, 40);
            site.assert_all_notified();
            let body = String::from_utf8(site.notified[0].body.clone()).unwrap();
            assert!(
                body.contains("compute1.example.org") && body.contains("\"on_shared_storage\":true"),
                "{body}"
            );
            assert_eq!(site.notified[0].failure_time, fencing.asked_at.seconds());
        }
    }
}

/// Two controllers with other domains for a while: nothing is lost, and nothing goes under two names.
#[test]
fn an_honest_mark_of_another_configuration_is_held_and_not_lost() {
    if lacks_evidence() {
        return;
    }
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
        let mut second = Alerter::start(&site, "ctl2");
        second.run(&mut site, 40);
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

/// Entries of 2036: a mark that would take in all evidence, a watermark that would silence evidence, a fencing, an end.
#[test]
fn entries_of_a_time_to_come_swallow_nothing() {
    if lacks_evidence() {
        return;
    }
    let ahead = Timestamp::from_seconds(2_082_758_400);
    for case in 0..4 {
        let mut site = Site::new(&["compute1"]);
        let fencing = Fencing {
            asked_at: ahead,
            committed_at: ahead,
            incarnation: Some(Incarnation::new("ctl1", 99, ahead.seconds() - 60)),
            ..site.fencing("ctl2", "compute1")
        };
        let forged = match case {
            0 => Entry::Watermark(Watermark { id: NoteId::generate(), at: ahead, by: "ctl2".into() }),
            1 => Entry::Mark(mark_of(&fencing, "ctl2")),
            2 => Entry::Fencing(fencing),
            _ => settled(fencing.id, "ctl2", ahead),
        };
        let key = forged.key();
        site.publish(forged);
        let mut alerter = Alerter::start(&site, "ctl1");
        alerter.run(&mut site, 4);
        // Nothing but evidence: Pacemaker fenced it by itself.
        site.die("compute1");
        site.advance(1.0);
        site.seen_fenced("compute1");
        alerter.run(&mut site, 60);
        assert!(site.audit().is_empty(), "{case}: {:#?}", site.audit());
        assert!(refused(&alerter, &key).is_some(), "{case}");
        site.register.remove(&key);
        alerter.run(&mut site, 2);
        assert_eq!(refused(&alerter, &key), None, "it is gone");
    }
}

/// An entry that is a little ahead of the clock is believed when its time has come.
#[test]
fn an_entry_of_a_clock_that_is_ahead_is_taken_in_later() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    let ahead = site.now + Duration::from_secs(150);
    site.publish(Entry::Fencing(Fencing {
        asked_at: ahead,
        committed_at: ahead,
        ..site.fencing("ctl2", "compute1")
    }));
    alerter.run(&mut site, 4);
    assert!(alerter.marks("compute1").is_empty());
    alerter.run(&mut site, 40);
    assert_eq!(alerter.standings("compute1"), ["unproven"]);
}

/// A host was fenced and is back: what Pacemaker said of that proves no `f.` of the time after its return, whatever connection
/// it names, for every reader, and whether the register still has the mark of then. The broken variant died once more.
#[test]
fn a_forged_fencing_moments_after_a_return() {
    if lacks_evidence() {
        return;
    }
    let readers = [(false, false), (true, false), (true, true)];
    for (pause, (moves, is_lost)) in
        [30.0, 70.0, 110.0].into_iter().flat_map(|pause| readers.map(|it| (pause, it)))
    {
        for connection in ["none", "former", "own"] {
            let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
            let former = site.incarnation("compute1");
            site.outage("compute1", "ctl1");
            alerter.run(&mut site, 4);
            site.advance(10.0);
            site.back("compute1", "ctl2");
            alerter.run(&mut site, 4);
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
            site.outage("compute1", "ctl2");
            alerter.run(&mut site, 40);
            assert_eq!(site.notified.len(), 4, "{case}: the next failure is notified");
        }
    }
}

/// `r.` of a host that the CIB holds to be away: it would cancel or hold what `if-returned` is asked for.
#[test]
fn a_forged_return() {
    if lacks_evidence() {
        return;
    }
    for moves in [false, true] {
        let mut site = Site::new(&["compute1"]);
        site.configure("if-returned = \"cancel\"\n");
        let mut alerter = Alerter::start(&site, "ctl1");
        alerter.run(&mut site, 2);
        site.down.extend(ROUTES);
        let fencing = site.outage("compute1", "ctl1");
        alerter.run(&mut site, 20);
        let mark: MarkId = fencing.into();
        site.publish(Entry::Returned(Returned { mark, at: site.now, by: "ctl2".into() }));
        if moves {
            alerter = Alerter::start(&site, "ctl3");
        }
        alerter.run(&mut site, 4);
        assert_eq!(alerter.marks("compute1")[0].returned_at, None, "{moves}");
        assert!(refused(&alerter, &Key::Returned(mark)).is_some(), "{moves}");
        site.down.clear();
        alerter.run(&mut site, 40);
        site.assert_all_notified();
    }
}

/// `m.` of another alerter for the same outage: by itself it ends no mark.
#[test]
fn a_forged_mark_beside_one_that_the_register_never_had() {
    if lacks_evidence() {
        return;
    }
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
    let mut again = Alerter::start(&site, "ctl1");
    again.run(&mut site, 4);
    let own = again.marks("compute1").into_iter().find(|mark| mark.id != forged.id.into()).unwrap();
    assert_ne!(own.settled.map(|(how, _)| how), Some(Settlement::Expired));
}
