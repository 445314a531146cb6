//! `off` as the fencer calls it: where the mark device must stand, and where that is read.

use std::process::Command;

use marks::fencing::{Incarnation, Origin};

use crate::common::{AGENT, Outcome, Store, World, have_namespaces, run};

const RESOURCES: &str = r#"<primitive id="power" class="stonith" type="fence_x"/>
<primitive id="mark" class="stonith" type="fence_mark"/>
<template id="t" class="stonith" type="fence_mark"/><primitive id="mark2" template="t"/>"#;

const STATUS: &str = r#"<node_state id="1" uname="ctl1"><lrm id="1"><lrm_resources><lrm_resource id="compute1" type="remote" class="ocf" provider="pacemaker">
<lrm_rsc_op id="compute1_last_0" operation="start" call-id="12" rc-code="0" op-status="0" last-rc-change="1795191514"/>
<lrm_rsc_op id="compute1_monitor_60000" operation="monitor" call-id="13" rc-code="0" op-status="0" last-rc-change="1795191515"/>
<lrm_rsc_op id="compute1_last_failure_0" operation="monitor" call-id="13" rc-code="1" op-status="4" last-rc-change="1795191600"/>
</lrm_resource></lrm_resources></lrm></node_state>"#;

fn cib(levels: &str, status: &str) -> String {
    format!(
        "<cib><configuration><crm_config/><nodes><node id=\"1\" uname=\"ctl1\"/></nodes><resources>{RESOURCES}</resources><constraints/>\
         <fencing-topology>{levels}</fencing-topology></configuration><status>{status}</status></cib>"
    )
}

fn level(target: &str, index: u32, devices: &str) -> String {
    format!(
        "<fencing-level id=\"l{index}{devices}\" target=\"{target}\" index=\"{index}\" devices=\"{devices}\"/>"
    )
}

fn pattern(text: &str, devices: &str) -> String {
    format!("<fencing-level id=\"p{devices}\" target-pattern=\"{text}\" index=\"1\" devices=\"{devices}\"/>")
}

/// A controller whose running cluster answers with `live`, if at all, and whose disk holds `stored`, if anything.
fn controller(live: Option<&str>, stored: Option<&str>) -> World {
    let world = World::new();
    let answer = live.map_or("exit 102".to_owned(), |cib| format!("cat <<'X'\n{cib}\nX"));
    world.file("usr/sbin/cibadmin", format!("#!/bin/sh\n{answer}\n"), 0o755);
    if let Some(cib) = stored {
        world.file("var/lib/pacemaker/cib/cib.xml", format!("<?xml version=\"1.0\"?>\n{cib}"), 0o600);
    } else {
        world.file("var/lib/pacemaker/cib/.wh", "", 0o600);
    }
    world
}

fn fence(world: &World, store: &Store, more: &str) -> Outcome {
    asked(world, &store.off(more))
}

/// The agent, as the fencer runs it.
fn asked(world: &World, input: &str) -> Outcome {
    let mut command: Command = world.command(AGENT);
    command.env("PCMK_service", "pacemaker-fenced");
    run(command, input.as_bytes())
}

/// S0-34, S1-24: the fencer's `off` marks if the mark device is the last of at least two, in every level that has one;
/// anywhere else the fencer would take the mark for a fencing.
#[test]
fn only_behind_another_device() {
    let good = level("compute1", 1, "power,mark");
    for (levels, fine) in [
        (good.clone(), true),
        (good.clone() + &level("compute1", 2, "power"), true),
        (level("compute1", 1, "power,mark2"), true),
        (pattern("^compute[0-9]+$", "power,mark"), true),
        (pattern("compute", "power,mark") + &pattern("storage", "mark"), true),
        (good.clone() + &pattern("compute", "mark"), true),
        (good.clone() + &level("compute2", 1, "mark"), true),
        (String::new(), false),
        (level("compute1", 1, "power"), false),
        (level("compute2", 1, "power,mark"), false),
        (level("compute1", 1, "mark"), false),
        (level("compute1", 1, "mark2"), false),
        (level("compute1", 1, "mark,power"), false),
        (level("compute1", 1, "mark,mark2"), false),
        (good.clone() + &level("compute1", 2, "mark"), false),
        (level("compute1", 1, "power") + &level("compute1", 1, "mark"), false),
        (level("compute1", 12, "power,mark"), false),
        (pattern("^compute[0-9]+$", "mark"), false),
        (pattern("compute\\d", "power,mark"), false),
        (pattern("compute1.", "power,mark"), false),
    ] {
        let Some(store) = Store::apart() else { return };
        let outcome =
            fence(&controller(Some(&cib(&levels, "")), None), &store, "nodename=compute1\nplug=compute1");
        if fine {
            outcome.is_silent_success();
        } else {
            outcome.is_one_line_failure("compute1 is not marked: ");
        }
        assert_eq!(store.fencings().len(), usize::from(fine), "{levels}");
        assert!(fine || !store.directory().exists(), "{levels}");
    }
}

/// Behind agents that leave the host running nothing is marked, whatever they report; `monitor` complains too.
/// Negative control: the same levels with a power device in them.
#[test]
fn only_behind_a_device_that_cuts_power() {
    for agent in [
        "fence_heuristics_ping",
        "fence_dummy",
        "fence_compute",
        "fence_evacuate",
        "fence_watchdog",
        "fence_kdump",
        "fence_scsi",
        "external/ssh",
    ] {
        let weak = format!(r#"<primitive id="weak" class="stonith" type="{agent}"/>"#);
        let with = |levels: &str| cib(levels, "").replace("<resources>", &format!("<resources>{weak}"));
        let alone = level("compute1", 1, "weak,mark") + &level("compute1", 2, "power");
        let Some(store) = Store::apart() else { return };
        let world = controller(Some(&with(&alone)), None);
        let outcome = fence(&world, &store, "nodename=compute1\nplug=compute1");
        outcome.is_one_line_failure("compute1 is not marked: ");
        outcome.is_one_line_failure(&format!("no device before it that cuts power (weak ({agent})"));
        assert!(!store.directory().exists(), "{agent}");
        asked(&world, &store.input("monitor"))
            .is_one_line_failure("level 1 for compute1 has no device before it that cuts power");
        let good = with(&level("compute1", 1, "weak,power,mark"));
        fence(&controller(Some(&good), None), &store, "nodename=compute1").is_silent_success();
    }
}

/// The cluster recovers its own virtual machines, and no device fences them: they are not marked, and a name in `hosts`
/// is an error. Negative control: the same host as a remote node.
#[test]
fn a_guest_node_is_not_marked() {
    let Some(store) = Store::apart() else { return };
    let guest = r#"<primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain"><meta_attributes id="m"><nvpair id="n" name="remote-node" value="compute1"/></meta_attributes></primitive>"#;
    let good = cib(&level("compute1", 1, "power,mark"), "");
    let world = controller(Some(&good.replace("<resources>", &format!("<resources>{guest}"))), None);
    fence(&world, &store, "nodename=compute1")
        .is_one_line_failure("compute1 is not marked: it is a guest node");
    assert!(!store.directory().exists());
    let monitor = |hosts: &str| asked(&world, &format!("{}hosts={hosts}\n", store.input("monitor")));
    monitor("compute*,compute1").is_one_line_failure("hosts names compute1: it is a guest node");
    assert!(!format!("{:?}", monitor("compute*")).contains("guest node"), "a pattern means the others");
    fence(&controller(Some(&good), None), &store, "nodename=compute1").is_silent_success();
}

/// The design, section 6: the fencing carries the host's last good connection.
#[test]
fn the_fencing_carries_the_incarnation() {
    let Some(store) = Store::apart() else { return };
    let levels = level("compute1", 1, "power,mark");
    fence(&controller(Some(&cib(&levels, STATUS)), None), &store, "nodename=compute1").is_silent_success();
    let fencing = store.fencings().pop().unwrap();
    assert_eq!(fencing.incarnation, Some(Incarnation::new("ctl1", 13, 1795191515)));
    assert_eq!(fencing.origin, Origin::Fencer);
}

/// The design, section 6: it carries what the CIB says of an earlier fencing; a file of it says nothing.
#[test]
fn the_fencing_says_whether_the_host_was_down_already() {
    let levels = level("compute1", 1, "power,mark");
    for (attribute, wanted) in
        [(r#"node_fenced="0""#, Some(false)), (r#"node_fenced="1795191514""#, Some(true)), ("", None)]
    {
        let state = format!(
            r#"<node_state remote_node="true" id="compute1" uname="compute1" in_ccm="false" {attribute}/>"#
        );
        let Some(store) = Store::apart() else { return };
        fence(&controller(Some(&cib(&levels, &state)), None), &store, "nodename=Compute1")
            .is_silent_success();
        assert_eq!(store.fencings()[0].already_down, wanted, "{attribute}");
    }
}

/// The local CIB is asked for two seconds, then the file counts; with neither there is no mark.
#[test]
fn a_silent_cluster_leads_to_the_file() {
    if !have_namespaces() {
        return;
    }
    let good = cib(&level("compute1", 1, "power,mark"), "");
    let bad = cib(&level("compute1", 1, "mark"), "");
    let store = Store::new();
    fence(&controller(None, Some(&good)), &store, "nodename=compute1").is_silent_success();
    assert_eq!((&store.fencings()[0].incarnation, store.fencings()[0].already_down), (&None, None));
    let slow = controller(None, Some(&good));
    slow.file("usr/sbin/cibadmin", "#!/bin/sh\nexec sleep 1000\n", 0o755);
    fence(&slow, &store, "nodename=compute1").is_silent_success();
    fence(&controller(None, Some(&bad)), &store, "nodename=compute1").is_one_line_failure("only device");
    fence(&controller(Some(&good), Some(&bad)), &store, "nodename=compute1").is_silent_success();
    let mut blind = controller(None, None);
    blind.mount("mount -t tmpfs none /var/lib/pacemaker");
    fence(&blind, &store, "nodename=compute1").is_one_line_failure("the CIB cannot be read");
    let mut garbled = controller(Some("<cib><configuration>"), None);
    garbled.mount("mount -t tmpfs none /var/lib/pacemaker");
    fence(&garbled, &store, "nodename=compute1").is_one_line_failure("the CIB cannot be read");
    assert_eq!(store.fencings().len(), 3);
}

/// A cluster node in the CIB counts as one, also if corosync does not name it.
#[test]
fn the_cib_too_says_who_is_a_cluster_node() {
    let Some(store) = Store::apart() else { return };
    let world = controller(Some(&cib(&level("ctl1", 1, "power,mark"), "")), None);
    world.file("etc/corosync/corosync.conf", "", 0o644);
    fence(&world, &store, "nodename=ctl1").is_one_line_failure("cluster node");
    fence(&world, &store, "nodename=ctl1\nhosts=ctl1,compute*").is_silent_success();
    assert_eq!(store.fencings().len(), 1);
}

/// Any value of `PCMK_service` counts: an agent that is asked by Pacemaker is never taken for one in a shell.
#[test]
fn any_pacemaker_is_a_fencer() {
    let Some(store) = Store::apart() else { return };
    let world = controller(Some(&cib("", "")), None);
    for value in ["", "pacemaker-fenced", "pacemaker-execd", "x"] {
        let mut command = world.command(AGENT);
        command.env("PCMK_service", value);
        run(command, store.off("nodename=compute1").as_bytes()).is_one_line_failure("no level");
    }
    assert!(!store.directory().exists());
}
