//! `status`, `monitor` and `validate-all`: answers without a mark.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use fence_agent::check;
use fence_agent::paths::Paths;

use crate::common::{AGENT, Store, World, call, call_of, call_with, run};

/// S1-26, conformance 28: upstream's scenario for `status`, in its three ways.
#[test]
fn status_says_whether_a_name_may_be_marked() {
    for outcome in [
        call("action=status\nnodename=compute1\n"),
        call_with(["-o", "status", "-n", "compute1"]),
        call_with(["--action", "status", "--plug", "compute1"]),
        call("action=status\nplug=compute1\nhosts=storage*, COMPUTE?\n"),
    ] {
        outcome.is_silent_success();
    }
    call("action=status\nnodename=compute10\nhosts=compute?\n")
        .is_one_line_failure("compute10 may not be marked");
    call("action=status\n").is_one_line_failure("no host was given");
    call("action=status\nnodename=compute1\nhosts=a;b\n").is_one_line_failure("hosts");
}

/// A controller is a cluster node by corosync's word, and only its own name in `hosts` lets it be marked.
#[test]
fn a_cluster_node_needs_its_own_name() {
    let Some(store) = Store::apart() else { return };
    let world = World::new();
    let nodes = "nodelist {\n  node {\n    name: ctl1\n    ring0_addr: 10.0.0.1\n  }\n}\n";
    world.file("etc/corosync/corosync.conf", nodes, 0o644);
    let ask = |action: &str, more: &str| {
        run(world.command(AGENT), format!("{}{more}", store.input(action)).as_bytes())
    };
    for action in ["off", "status"] {
        ask(action, "nodename=CTL1\n").is_one_line_failure("cluster node");
        ask(action, "nodename=ctl1\nhosts=ctl*\n").is_one_line_failure("cluster node");
    }
    assert!(!store.directory().exists());
    ask("status", "nodename=ctl1\nhosts=compute*,Ctl1\n").is_silent_success();
    ask("off", "nodename=ctl1\nhosts=compute*,Ctl1\n").is_silent_success();
    ask("off", "nodename=compute1\n").is_silent_success();
    assert_eq!(store.fencings().len(), 2);
}

/// Conformance 27: no side effects, the dummy host of `stonith_admin --validate` passes, and 1 for invalid options.
#[test]
fn validate_all_reads_the_options_alone() {
    let store = Store::new();
    let ask = |more: &str| call(&format!("{}{more}", store.input("validate-all")));
    ask("").is_silent_success();
    ask("nodename=node1\nport=node1\nhosts=compute*\n").is_silent_success();
    for (bad, needle) in [
        ("delay=soon\n", "delay"),
        ("power_wait=3s\n", "power_wait"),
        ("insecure=perhaps\n", "insecure"),
        ("retry_on=x\n", "retry_on"),
        ("hosts=a b\n", "hosts"),
        ("domain=a/b\n", "domain"),
        ("store=marks.db\n", "store"),
        ("register=zookeeper\n", "register"),
    ] {
        ask(bad).is_one_line_failure(needle);
    }
    ask("register=attrd\n").is_silent_success();
    ask("register=cib\n").is_silent_success();
    let both = ask("delay=soon\nregister=zookeeper\n");
    assert!(both.stderr.contains("delay") && both.stderr.contains("register"), "all at once: {both:?}");
    assert!(!store.directory().exists());
}

/// A stand-in for a controller: what `cibadmin` answers, and how the agent is called.
struct Controller {
    store: Store,
    paths: Paths,
}

impl Controller {
    fn new(cibadmin: &str) -> Self {
        let store = Store::new();
        let paths = store.paths();
        samples::program(&paths.tools.cibadmin, format!("#!/bin/sh\n{cibadmin}\n").as_bytes());
        Self { store, paths }
    }

    fn with_cib(configuration: &str) -> Self {
        let controller = Self::new("cat \"$(dirname \"$0\")\"/live.xml");
        fs::write(controller.store.dir.path().join("live.xml"), format!("<cib>{configuration}</cib>"))
            .unwrap();
        controller
    }

    fn monitor(&self, from_fencer: bool, more: &str) -> Result<(), String> {
        let input = format!("{}{more}", self.store.input("monitor"));
        check::monitor(&call_of(&self.paths, from_fencer, &input)).map_err(|e| e.to_string())
    }
}

fn configuration(mark_parameters: &str, levels: &str) -> String {
    format!(
        "<configuration><crm_config/><nodes/><resources><primitive id=\"power\" class=\"stonith\" type=\"fence_x\"/>\
         <primitive id=\"mark\" class=\"stonith\" type=\"fence_mark\"><instance_attributes id=\"i\">{mark_parameters}</instance_attributes></primitive>\
         </resources><fencing-topology>{levels}</fencing-topology></configuration>"
    )
}

fn level(target: &str, index: u32, devices: &str) -> String {
    format!("<fencing-level id=\"l{index}\" {target} index=\"{index}\" devices=\"{devices}\"/>")
}

/// The design, section 9: every level of the topology is checked, not only those of one host.
#[test]
fn monitor_finds_a_mark_device_in_the_wrong_place() {
    let good = level("target=\"compute1\"", 1, "power,mark");
    let fine =
        Controller::with_cib(&configuration("", &(good.clone() + &level("target=\"compute1\"", 2, "power"))));
    assert_eq!(fine.monitor(true, ""), Ok(()));
    for bad in [
        level("target=\"compute2\"", 1, "mark"),
        level("target-pattern=\"storage.*\"", 1, "mark,power"),
        level("target-attribute=\"a\" target-value=\"b\"", 3, "power,mark,mark"),
    ] {
        let controller = Controller::with_cib(&configuration("", &(good.clone() + &bad)));
        assert!(controller.monitor(true, "").unwrap_err().contains("mark device in level"), "{bad}");
        assert!(controller.monitor(false, "").is_err(), "{bad}");
    }
    assert_eq!(Controller::with_cib(&configuration("", "")).monitor(true, ""), Ok(()), "a warning alone");
}

/// The agent's own limit must fit into the fencer's.
#[test]
fn monitor_finds_a_limit_that_is_too_short() {
    let parameter = |name: &str, value: &str| format!("<nvpair id=\"n\" name=\"{name}\" value=\"{value}\"/>");
    for (mark, more, fine) in [
        (parameter("pcmk_off_timeout", "40s"), "", true),
        (parameter("pcmk_off_timeout", "30"), "", true),
        (parameter("pcmk_off_timeout", "29s"), "", false),
        (parameter("pcmk_off_timeout", "1min"), "", false),
        (parameter("stonith-timeout", "20s"), "", false),
        (parameter("pcmk_off_timeout", "40s"), "delay=11\n", false),
    ] {
        let controller = Controller::with_cib(&configuration(&mark, &level("target=\"c\"", 1, "power,mark")));
        let result = controller.monitor(true, more);
        assert_eq!(result.is_ok(), fine, "{mark} {more} {result:?}");
        assert!(fine || result.unwrap_err().contains("pcmk_off_*"), "{mark}");
    }
}

/// Under the fencer an unknown cluster is a failure; in a shell without one it is not.
#[test]
fn monitor_without_a_cluster() {
    for silent in ["exit 102", "exec sleep 1000"] {
        let controller = Controller::new(silent);
        assert!(controller.monitor(true, "").unwrap_err().contains("the CIB cannot be read"));
        assert_eq!(controller.monitor(false, ""), Ok(()));
    }
    let broken = Controller::new("exit 102");
    fs::write(&broken.paths.cib, "<cib><configuration>").unwrap();
    assert!(broken.monitor(false, "").is_err(), "Pacemaker runs here, and its CIB is damaged");
    let alone = configuration("", &level("target=\"c\"", 1, "mark"));
    fs::write(&broken.paths.cib, format!("<cib>{alone}</cib>")).unwrap();
    assert!(broken.monitor(true, "").unwrap_err().contains("mark device in level"), "the file is judged too");
}

/// Conformance 25, S1-26: a mark that could not be written now is a failure, and nothing is left behind.
#[test]
fn monitor_says_whether_a_mark_could_be_written() {
    let controller = Controller::new("exit 102");
    assert_eq!(controller.monitor(false, ""), Ok(()));
    call(&controller.store.off("nodename=compute1")).is_silent_success();
    let content = || {
        ["marks.db", "marks.db-wal"].map(|name| fs::read(controller.store.directory().join(name)).unwrap())
    };
    let before = content();
    assert_eq!(controller.monitor(false, ""), Ok(()));
    assert_eq!(content(), before);
    assert_eq!(controller.store.fencings().len(), 1);
    fs::set_permissions(controller.store.directory(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(controller.monitor(false, "").unwrap_err().contains("chmod 0711"));
    fs::set_permissions(controller.store.directory(), fs::Permissions::from_mode(0o711)).unwrap();
    fs::write(controller.store.path(), "not a journal, and long enough to be read as one".repeat(100))
        .unwrap();
    assert!(controller.monitor(false, "").is_err());
    assert!(controller.monitor(false, "store=/proc/marks/marks.db\n").is_err());
}
