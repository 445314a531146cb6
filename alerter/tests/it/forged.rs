//! Entries that a member of `haclient` wrote into the register: they may keep a host from being
//! sent, as root on a controller can do, but no live host is reported for them.

use marks::fencing::Fencing;
use marks::host::HostName;
use marks::register::Entry;

use crate::site::{Alerter, Site, begun, mark_of};

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
        other.meets_outage(&mut site, "compute1", "ctl2", 40);
        alerter.run(&mut site, 40);
        assert_eq!((notified(&site), site.notified.len()), (vec!["compute1"], 2), "once to each route");
    }
}

/// A mark of a further fencing of an outage that was notified, under another name: the broken variant takes the proof of that fencing for
/// one of another outage, and notifies of it once more.
#[test]
fn a_mark_of_a_further_fencing() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 30);
    assert_eq!(site.notified.len(), 2);
    let again = site.fencing("ctl2", "compute1");
    site.publish(renamed(&again, "compute1", "elsewhere.example.net"));
    site.mark("ctl2", &again);
    alerter.meets_fencing(&mut site, "compute1", 60);
    assert_eq!(alerter.standings("compute1").last(), Some(&"fenced-again"));
    assert_eq!(site.notified.len(), 2);
}

/// The broken variant of all rows here: a forged mark that an operator believed is sent, and the audit says so.
#[test]
fn a_forged_mark_that_was_released_is_caught() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
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
    for is_mark in [false, true] {
        let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
        let fencing = site.fencing("ctl1", "compute1");
        let mark = renamed(&fencing, "compute1", "compute2.example.org");
        let plug = HostName::parse("compute2.example.org").ok();
        site.publish(if is_mark { mark } else { Entry::Fencing(Fencing { plug, ..fencing }) });
        alerter.run(&mut site, 10);
        alerter.meets_outage(&mut site, "compute1", "ctl2", 40);
        assert_eq!(notified(&site), ["compute1"], "a mark: {is_mark}");
    }
}
