//! The register is lost, or its entries have left it, and another alerter comes: no age and no lost register ends a mark that
//! nobody acknowledged, and nothing that was acknowledged long ago comes back.

use std::time::Duration;

use journal::HistoryFilter;
use marks::id::MarkId;
use marks::register::{Entry, Key, Register};
use marks::time::Timestamp;

use crate::site::{Alerter, Site, lacks_evidence};

const DAY: f64 = 86_400.0;

/// A site that lives so many days ago, so that its journals can be real ones.
fn before(days: u64, hosts: &[&'static str]) -> Site {
    Site::at(Timestamp::now() - Duration::from_secs(days * 86_400), hosts)
}

/// All controllers stop: attrd forgets, and so does the fencer. The hosts' connections and `node_fenced` go with them.
fn full_stop(site: &mut Site) {
    site.register.clear();
    site.history.clear();
    for host in site.hosts.values_mut() {
        (host.member, host.fenced) = (None, 0);
        host.connections.clear();
    }
}

fn events(alerter: &Alerter, word: &str) -> usize {
    let rows = alerter.journal.history(&HistoryFilter::default()).unwrap().sound;
    rows.iter().filter(|row| row.event == word).count()
}

/// B1: a dead endpoint over a weekend, then a full stop. The host is back on Monday, and may have been sent; or it is down,
/// and was fenced again.
#[test]
fn an_open_mark_that_is_older_than_the_horizon_does_not_end_with_the_register() {
    if lacks_evidence() {
        return;
    }
    for is_back in [true, false] {
        let mut site = before(4, &["compute1"]);
        site.down.extend(["nova", "backup"]);
        let mut first = Alerter::start(&site, "ctl1");
        site.outage("compute1", "ctl1");
        first.run(&mut site, 20);
        drop(first);
        site.advance(2.5 * DAY);
        full_stop(&mut site);
        site.down.clear();
        if is_back {
            site.back("compute1", "ctl1");
        } else {
            let host = site.hosts.get_mut("compute1").unwrap();
            (host.member, host.fenced) = (Some(false), site.now.seconds());
        }
        let mut again = Alerter::start(&site, "ctl1");
        again.run(&mut site, 60);
        let mark = &again.marks("compute1")[0];
        assert_eq!(events(&again, "expired"), 0);
        if is_back {
            assert_eq!((mark.standing.as_str(), mark.settled), ("outcome-unknown", None));
            assert!(site.notified.is_empty());
            let id = mark.id;
            again.release(&site, id);
            again.run(&mut site, 4);
        }
        site.assert_all_notified();
    }
}

/// The same where its mark never stood in the register, which no other alerter could have sent.
#[test]
fn an_open_mark_that_never_stood_in_the_register_does_not_end_by_its_age() {
    if lacks_evidence() {
        return;
    }
    let mut site = before(4, &["compute1"]);
    site.down.extend(["nova", "backup"]);
    site.register_is_mute = true;
    let mut first = Alerter::start(&site, "ctl1");
    site.outage("compute1", "ctl1");
    first.run(&mut site, 20);
    drop(first);
    site.back("compute1", "ctl1");
    site.advance(2.0 * DAY);
    site.register_is_mute = false;
    site.down.clear();
    let mut again = Alerter::start(&site, "ctl1");
    again.run(&mut site, 60);
    let mark = &again.marks("compute1")[0];
    assert_eq!((mark.standing.as_str(), mark.settled), ("outcome-unknown", None));
    assert!(site.notified.is_empty());
}

/// B1: nobody ran an alerter over a weekend. What is found on Monday, in the journal or as evidence alone, is sent where the
/// host is still down, and held where it is back.
#[test]
fn what_is_found_after_the_horizon_makes_a_mark() {
    if lacks_evidence() {
        return;
    }
    for (is_marked, is_back) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut site = before(4, &["compute1"]);
        Alerter::start(&site, "ctl2").run(&mut site, 2);
        site.die("compute1");
        if is_marked {
            site.off("ctl1", "compute1");
        }
        site.advance(1.0);
        site.seen_fenced("compute1");
        if is_back {
            site.advance(60.0);
            site.back("compute1", "ctl2");
        }
        site.advance(2.0 * DAY);
        let mut late = Alerter::start(&site, "ctl1");
        late.run(&mut site, 60);
        let case = format!("marked: {is_marked}, back: {is_back}");
        let standings = late.standings("compute1");
        assert_eq!(standings.len(), 1, "{case}: {standings:?}");
        if is_back {
            assert_eq!((standings[0], site.notified.len()), ("outcome-unknown", 0), "{case}");
            let id = late.marks("compute1")[0].id;
            late.release(&site, id);
            late.run(&mut site, 4);
        }
        assert!(site.audit().is_empty(), "{case}: {:#?}", site.audit());
    }
}

/// C10: many outages, all sent and long over; then the alerter moves to a controller where it never ran. Of what lies there,
/// fencings and evidence, nothing is a mark, and it is said together.
#[test]
fn after_a_failover_old_fencings_are_past_and_not_held_each() {
    if lacks_evidence() {
        return;
    }
    let hosts = ["c1", "c2", "c3", "c4", "c5"];
    let mut site = before(30, &hosts);
    let mut first = Alerter::start(&site, "ctl1");
    for host in hosts {
        site.outage(host, "ctl2");
        let fencing = site.outages.last().unwrap().host;
        first.run(&mut site, 20);
        site.back(fencing, "ctl1");
        first.run(&mut site, 20);
    }
    site.assert_all_notified();
    // The agent of that controller noted that its fencings stood in the register.
    let keys: Vec<String> =
        site.register.keys().filter(|key| matches!(key, Key::Fencing(_))).map(Key::to_string).collect();
    site.open("ctl2").note_published(Register::Attrd, &keys).unwrap();
    site.advance(20.0 * DAY);
    // What is long over left the register, and Pacemaker still remembers it.
    site.register.retain(|key, _| matches!(key, Key::Watermark(_)));
    let notified = site.notified.len();
    let mut second = Alerter::start(&site, "ctl2");
    second.run(&mut site, 60);
    for host in hosts {
        assert!(second.marks(host).is_empty(), "{host}: {:?}", second.standings(host));
    }
    assert_eq!((site.notified.len(), events(&second, "past"), events(&second, "expired")), (notified, 5, 0));
    assert_eq!(site.evidence_on("ctl2"), 0);
    let said = second.journal.history(&HistoryFilter::default()).unwrap().sound;
    assert!(said.iter().all(|row| !row.detail.contains("--fenced")), "an invitation to a false mark");
}

/// The broken variant of the row above: nobody knows that the register ever had them.
#[test]
fn what_never_stood_in_the_register_is_not_past() {
    if lacks_evidence() {
        return;
    }
    let mut site = before(30, &["compute1"]);
    site.register_is_mute = true;
    site.die("compute1");
    site.off("ctl2", "compute1");
    site.register_is_mute = false;
    site.advance(60.0);
    site.back("compute1", "ctl1");
    site.advance(20.0 * DAY);
    let mut second = Alerter::start(&site, "ctl2");
    second.run(&mut site, 60);
    assert_eq!(second.standings("compute1"), ["outcome-unknown"]);
    assert!(site.notified.is_empty());
}

/// The register on a controller that has joined lacks what the others know, and the first poll there cannot read the CIB. What the
/// agent recorded on it was notified by another alerter; it is no news, whether it is written down again before it was judged.
#[test]
fn a_fencing_that_was_not_judged_yet_is_not_published_as_news() {
    if lacks_evidence() {
        return;
    }
    for is_back in [true, false] {
        let mut site = Site::new(&["compute1", "compute2"]);
        let mut first = Alerter::start(&site, "ctl1");
        let fencing = site.outage("compute1", "ctl2");
        first.run(&mut site, 20);
        if is_back {
            site.back("compute1", "ctl1");
            first.run(&mut site, 20);
        }
        site.lost.insert("ctl1");
        site.register.retain(|key, _| matches!(key, Key::Watermark(_)));
        site.cib_is_mute = true;
        let mut second = Alerter::start(&site, "ctl2");
        second.pass(&mut site);
        assert!(!site.register.contains_key(&Key::Fencing(fencing)), "it stands there as if it were new");
        site.cib_is_mute = false;
        second.run(&mut site, 60);
        // Down for sure, it is notified once more, under the same id; else an operator decides.
        let doubt = if is_back { vec!["outcome-unknown"] } else { vec!["journal"] };
        assert_eq!(second.standings("compute1"), doubt);
        assert_eq!((site.notified_ids().len(), site.notified.len()), (1, if is_back { 2 } else { 4 }));
    }
}

/// What `fence_mark monitor` writes of a fencing that has stood in the register.
fn write_again(site: &mut Site, controller: &str) {
    let since = site.now - marks::register::KEPT;
    let keys: Vec<String> =
        site.register.keys().filter(|key| matches!(key, Key::Fencing(_))).map(Key::to_string).collect();
    assert!(keys.is_empty());
    for fencing in site.open(controller).unsettled(Register::Attrd, since).unwrap().sound {
        site.publish(Entry::Again(fencing));
    }
}

/// B2: the controllers with the fencing and with the open mark are two, and the register is lost. Another one takes over when
/// the first has written its fencing again: sent where the host is still down, held where it is back.
#[test]
fn a_fencing_that_is_written_again_makes_a_mark_elsewhere() {
    if lacks_evidence() {
        return;
    }
    for (is_back, was_notified) in [(true, false), (true, true), (false, false)] {
        let mut site = Site::new(&["compute1"]);
        site.lost.insert("ctl3");
        let mut first = Alerter::start(&site, "ctl2");
        first.run(&mut site, 2);
        if !was_notified {
            site.down.extend(["nova", "backup"]);
        }
        let fencing = site.outage("compute1", "ctl1");
        site.open("ctl1").note_published(Register::Attrd, &[Key::Fencing(fencing).to_string()]).unwrap();
        first.run(&mut site, 20);
        drop(first);
        site.lost.insert("ctl2");
        site.lost.remove("ctl3");
        site.register.clear();
        site.history.clear();
        if is_back {
            site.back("compute1", "ctl1");
        }
        site.advance(300.0);
        write_again(&mut site, "ctl1");
        site.down.clear();
        let mut third = Alerter::start(&site, "ctl3");
        third.run(&mut site, 60);
        let case = format!("back: {is_back}, notified: {was_notified}");
        assert_eq!(
            third.marks("compute1").iter().map(|mark| mark.id).collect::<Vec<MarkId>>(),
            [fencing.into()]
        );
        if is_back {
            assert_eq!(third.standings("compute1"), ["outcome-unknown"], "{case}");
            assert_eq!(site.notified.len(), if was_notified { 2 } else { 0 }, "{case}");
            // The next one holds it too.
            let mut next = Alerter::start(&site, "ctl1");
            next.run(&mut site, 20);
            assert_eq!(next.standings("compute1"), ["outcome-unknown"], "{case}");
        } else {
            site.assert_all_notified();
        }
    }
}

/// B2: what was sent is known where it was sent, however often it is written again.
#[test]
fn a_fencing_that_is_written_again_is_not_sent_again_by_the_alerter_that_sent_it() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1"]);
    let mut first = Alerter::start(&site, "ctl2");
    let fencing = site.outage("compute1", "ctl1");
    site.open("ctl1").note_published(Register::Attrd, &[Key::Fencing(fencing).to_string()]).unwrap();
    first.run(&mut site, 20);
    site.assert_all_notified();
    site.back("compute1", "ctl1");
    first.run(&mut site, 2);
    site.register.clear();
    write_again(&mut site, "ctl1");
    first.run(&mut site, 20);
    Alerter::start(&site, "ctl2").run(&mut site, 20);
    site.assert_all_notified();
    Alerter::start(&site, "ctl3").run(&mut site, 20);
    site.assert_all_notified();
}
