//! Entries that a member of `haclient` wrote into the register: they may keep a host from being
//! sent, as root on a controller can do, but no live host is reported for them.

use std::time::Duration;

use marks::fencing::{Fencing, Incarnation, Origin};
use marks::host::HostName;
use marks::id::{MarkId, NoteId};
use marks::register::{About, Decision, Entry};

use crate::site::{Alerter, CONTROLLERS, Site, begun, lacks_evidence, mark_of};

/// A mark of a fencing under the names of another host.
fn renamed(fencing: &Fencing, node: &str, sent_as: &str) -> Entry {
    let mut entry = mark_of(fencing, "ctl1");
    entry.mark.node = HostName::parse(node).unwrap();
    entry.mark.fqdn = HostName::parse(sent_as).unwrap();
    Entry::Mark(entry)
}

/// The nodes that were reported, each once.
fn notified(site: &Site) -> Vec<&str> {
    let mut nodes: Vec<&str> = site.notified.iter().map(|notified| notified.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// `f.` or `m.` of a host that is alive: held on every controller. When the host really fails, it is reported, once.
#[test]
fn an_entry_of_a_live_host() {
    if lacks_evidence() {
        return;
    }
    for is_mark in [false, true] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        let fencing = site.fencing("ctl1", "compute1");
        let mark = renamed(&fencing, "compute1", "compute1.example.org");
        site.publish(if is_mark { mark } else { Entry::Fencing(fencing) });
        alerter.run(&mut site, 60);
        assert_eq!(alerter.standings("compute1"), ["unproven"]);
        let mut other = Alerter::start(&site, "ctl2");
        site.advance(100.0);
        other.run(&mut site, 20);
        assert_eq!(other.standings("compute1"), ["unproven"]);
        assert!(site.notified.is_empty());
        site.outage("compute1", "ctl2");
        other.run(&mut site, 40);
        alerter.run(&mut site, 40);
        assert_eq!((notified(&site), site.notified.len()), (vec!["compute1"], 2), "once to each route");
    }
}

/// The broken variant of all rows here: a forged mark that an operator believed is sent, and the audit says so.
#[test]
fn a_forged_mark_that_was_released_is_caught() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1"]);
    let mut alerter = Alerter::start(&site, "ctl1");
    let fencing = site.fencing("ctl1", "compute1");
    let id = fencing.id.into();
    site.publish(Entry::Fencing(fencing));
    alerter.run(&mut site, 2);
    alerter.release(&site, id);
    alerter.run(&mut site, 2);
    assert!(site.audit().iter().any(|wrong| wrong.contains("was not fenced then")));
}

/// A mark of one host that is sent under the name of another: when the first one fails, the other is alive.
#[test]
fn a_mark_under_the_name_of_another_host() {
    if lacks_evidence() {
        return;
    }
    for is_mark in [false, true] {
        let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
        let fencing = site.fencing("ctl1", "compute1");
        let mark = renamed(&fencing, "compute1", "compute2.example.org");
        let plug = HostName::parse("compute2.example.org").ok();
        site.publish(if is_mark { mark } else { Entry::Fencing(Fencing { plug, ..fencing }) });
        alerter.run(&mut site, 10);
        site.outage("compute1", "ctl2");
        alerter.run(&mut site, 40);
        assert_eq!(notified(&site), ["compute1"], "a mark: {is_mark}");
    }
}

/// A mark of a live host under the id of another host's fencing, which everybody can read in the register.
#[test]
fn a_mark_under_the_id_of_another_hosts_fencing() {
    if lacks_evidence() {
        return;
    }
    for controller in CONTROLLERS {
        let mut site = Site::new(&["compute1", "compute2"]);
        let mut alerter = Alerter::start(&site, controller);
        alerter.run(&mut site, 2);
        site.die("compute1");
        let fencing = site.fencing("ctl1", "compute1");
        site.mark("ctl1", &fencing);
        site.publish(renamed(&fencing, "compute2", "compute2.example.org"));
        alerter.run(&mut site, 2);
        site.seen_fenced("compute1");
        alerter.run(&mut site, 40);
        site.assert_all_notified();
    }
}

/// A mark of a live host under the id that the next `node_fenced` of another host will have.
#[test]
fn a_mark_under_the_id_that_evidence_of_another_host_will_make() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
    let fencing = site.fencing("ctl1", "compute2");
    let Entry::Mark(mut forged) = renamed(&fencing, "compute2", "compute2.example.org") else {
        panic!("it is an entry of a mark")
    };
    forged.mark.id = MarkId::of_node_fenced(&HostName::parse("compute1").unwrap(), site.now.seconds());
    site.publish(Entry::Mark(forged));
    site.die("compute1");
    site.hosts.get_mut("compute1").unwrap().fenced = site.now.seconds();
    alerter.run(&mut site, 60);
    assert!(!notified(&site).contains(&"compute2"), "{:?}", site.notified);
}

/// A host failed, was reported, and is back. A forged fencing of today claims a connection from shortly before that outage,
/// and the alerter moves to a controller that has not seen the evidence of it yet.
#[test]
fn an_entry_that_claims_old_evidence() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.advance(30.0);
    let before = site.now - Duration::from_secs(20);
    site.outage("compute1", "ctl1");
    alerter.run(&mut site, 20);
    site.back("compute1", "ctl2");
    site.advance(600.0);
    alerter.run(&mut site, 20);
    let incarnation = Some(Incarnation::new("ctl1", 9, before.seconds()));
    let forged = Fencing { incarnation, ..site.fencing("ctl1", "compute1") };
    site.publish(Entry::Fencing(forged));
    Alerter::start(&site, "ctl3").run(&mut site, 60);
    site.assert_all_notified();
}

/// Two forged fencings: the second one says that it is an operator's word.
#[test]
fn a_word_of_an_operator_that_only_the_register_has() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    for origin in [Origin::Fencer, Origin::Operator] {
        site.publish(Entry::Fencing(Fencing { origin, ..site.fencing("ctl2", "compute1") }));
        alerter.run(&mut site, 20);
    }
    assert_eq!(alerter.standings("compute1"), ["unproven"]);
    assert!(site.notified.is_empty());
}

/// An operator's release can be forged as well: it counts where root gave it, and nowhere else.
#[test]
fn a_forged_release() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    let fencing = site.fencing("ctl1", "compute1");
    let (mark, at) = (fencing.id.into(), site.now);
    let (actor, reason) = ("alice".to_owned(), "I checked".to_owned());
    site.publish(Entry::Fencing(fencing));
    site.publish(Entry::Decision(Decision {
        id: NoteId::generate(),
        about: About::Release(mark),
        at,
        actor,
        reason,
    }));
    alerter.run(&mut site, 20);
    assert!(site.notified.is_empty());
}
