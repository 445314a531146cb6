//! The examples for certain sites: a table of them, what stands in each level afterwards, and what Pacemaker's scheduler does.

use std::fs;

use marks::host::HostName;
use pacemaker::cib::Cib;
use tests::installed;
use tests::trials::Named;

use super::cluster::{Cluster, Tool, loaded, read};

pub(super) fn tests() -> Vec<Named> {
    tests::trials![
        two_controllers,
        three_controllers,
        a_watchdog,
        a_host_that_dumps,
        remote_nodes_with_and_without_a_reconnect_interval,
        from_fence_compute_to_the_mark,
        a_migration_that_does_not_wait_is_caught,
        a_level_that_can_succeed_without_the_mark_is_caught,
    ]
}

/// How Pacemaker takes up a host again whose fencing is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// It starts the connection in the same transition.
    AtOnce,
    /// It waits for the `reconnect_interval`.
    Later,
}

/// What an example shows.
struct Situation {
    /// The examples to load behind the first one, in order.
    loads: &'static [&'static str],
    controllers: usize,
    /// Target and its levels, a blank between two of them.
    topology: &'static [(&'static str, &'static str)],
    /// Compute hosts whose loss is simulated.
    lost: &'static [(&'static str, Again)],
}

const TWO_CONTROLLERS: Situation = Situation {
    loads: &[],
    controllers: 2,
    topology: &[("compute1", "power-compute1,mark power-compute1")],
    lost: &[("compute1", Again::Later)],
};

const THREE_CONTROLLERS: Situation = Situation {
    loads: &["three-controllers"],
    controllers: 3,
    topology: &[("compute1", "power-compute1,mark power-compute1")],
    lost: &[("compute1", Again::Later)],
};

const SBD: Situation = Situation {
    loads: &["three-controllers", "sbd"],
    controllers: 3,
    topology: &[
        ("compute1", "power-compute1,mark power-compute1"),
        ("compute2", "watchdog"),
        ("ctl1", "power-ctl1 watchdog"),
        ("ctl2", "power-ctl2 watchdog"),
        ("ctl3", "power-ctl3 watchdog"),
    ],
    lost: &[("compute1", Again::Later), ("compute2", Again::Later)],
};

const KDUMP: Situation = Situation {
    loads: &["kdump"],
    controllers: 2,
    topology: &[("compute1", "kdump-compute1 power-compute1,mark power-compute1")],
    lost: &[("compute1", Again::Later)],
};

const REMOTE_NODES: Situation = Situation {
    loads: &["remote-nodes"],
    controllers: 2,
    topology: &[
        ("compute1", "power-compute1,mark power-compute1"),
        ("compute2", "power-compute2,mark power-compute2"),
    ],
    lost: &[("compute1", Again::Later), ("compute2", Again::AtOnce)],
};

impl Situation {
    /// Loads it with both tools, and checks what Pacemaker makes of it.
    fn check(&self) {
        for tool in [Tool::Crmsh, Tool::Pcs] {
            let cluster = Cluster::of(&members(tool, self.controllers));
            for name in self.loads {
                cluster.load(tool, &tool.example(name));
            }
            cluster.assert_verified();
            self.check_levels(&cluster);
            for (host, again) in self.lost {
                assert_fenced(&cluster, host, *again);
            }
            assert_fails_over(&cluster);
        }
    }

    fn check_levels(&self, cluster: &Cluster) {
        for (target, wanted) in self.topology {
            assert_eq!(cluster.topology(target), *wanted, "{target}");
            assert_eq!(complaints(cluster, target), [""; 0], "{target}");
        }
        let targets = cluster.at("count(//fencing-level[not(@target=preceding-sibling::*/@target)])");
        assert_eq!(targets, self.topology.len().to_string());
    }
}

/// What `fence_mark` would refuse in the levels of this host.
fn complaints(cluster: &Cluster, host: &str) -> Vec<String> {
    let cib = Cib::parse(&fs::read_to_string(cluster.cib()).unwrap()).unwrap();
    let levels = cib.mark_levels_of(&HostName::parse(host).unwrap());
    assert!(levels.iter().all(|level| level.certain));
    levels.iter().filter_map(pacemaker::cib::MarkLevel::complaint).collect()
}

/// Levels that can succeed, have another behind them, and leave no mark. The last one is the net below a failing mark.
fn unmarked(topology: &str) -> Vec<&str> {
    let levels: Vec<_> = topology.split(' ').collect();
    let before_the_net = levels.split_last().map_or(&[][..], |(_, others)| others);
    before_the_net.iter().filter(|devices| !devices.ends_with(",mark")).copied().collect()
}

/// The first example in a cluster of so many controllers.
fn members(tool: Tool, controllers: usize) -> String {
    let two = loaded(tool);
    let third =
        r#"<node_state id="3" uname="ctl3" in_ccm="true" crmd="online" join="member" expected="member"/>"#;
    match controllers {
        2 => two.to_owned(),
        3 => two
            .replace("</nodes>", r#"<node id="3" uname="ctl3"/></nodes>"#)
            .replace("</status>", &format!("{third}</status>")),
        other => panic!("no example has {other} controllers"),
    }
}

/// A lost connection fences the host; how it comes back is `again`. With a `reconnect_interval`, not without quorum.
fn assert_fenced(cluster: &Cluster, host: &str, again: Again) {
    let settled = cluster.settled();
    let plan = settled.when_lost(host, &[]);
    let fencing = format!("Fencing {host} (reboot)");
    let (_, behind) = plan.split_once(&fencing).unwrap_or_else(|| panic!("{host} is not fenced: {plan}"));
    let connected = behind.lines().any(|line| line.contains(host) && line.contains("start on"));
    assert_eq!(if connected { Again::AtOnce } else { Again::Later }, again, "{plan}");

    if again == Again::AtOnce {
        // Pacemaker 2.1.5 fences it all the same; others do not.
        return;
    }
    let without_quorum = settled.when_lost(host, &["--quorum", "false"]);
    assert!(!without_quorum.contains("Fencing"), "{without_quorum}");
}

/// The controller of the alerter dies: it is fenced, and the alerter starts elsewhere, without waiting for that.
fn assert_fails_over(cluster: &Cluster) {
    let settled = cluster.settled();
    let home = settled.runs("alerter");
    let plan = settled.when_dead(&home, &[]);
    assert!(plan.contains(&format!("Fencing {home} (reboot)")), "{plan}");
    assert!(moves(&plan, &home), "{plan}");
    let new = plan.lines().find(|line| line.contains("alerter ") && line.contains("start on "));
    assert!(new.is_some_and(|line| !line.contains(&home) && line.contains("on ctl")), "{plan}");
}

fn moves(plan: &str, home: &str) -> bool {
    plan.lines().any(|line| {
        line.contains("Move") && line.contains(" alerter ") && line.contains(&format!("( {home} ->"))
    })
}

/// S1-21: either of two controllers is enough to fence, to mark and to notify.
fn two_controllers() {
    TWO_CONTROLLERS.check();
}

/// S1-21: any two of three are.
fn three_controllers() {
    THREE_CONTROLLERS.check();
}

/// S1-21: a level of the word watchdog has no mark behind it, since none would be run; a host with power has no watchdog to be assumed from.
fn a_watchdog() {
    SBD.check();
    for tool in [Tool::Crmsh, Tool::Pcs] {
        let text = tool.example("sbd");
        assert!(text.contains("pcmk_host_list=\"ctl1 ctl2 ctl3 compute2\""), "compute1 has a power device");
    }
}

/// S1-24: a host that dumps is left to finish, and every other host is marked behind its power device.
fn a_host_that_dumps() {
    KDUMP.check();
}

/// S1-21: both ways fence alike; they differ in when the host is connected again.
fn remote_nodes_with_and_without_a_reconnect_interval() {
    REMOTE_NODES.check();
}

/// fence_mark's own check does not see a level in front that leaves no mark: that host would be reported late, from Pacemaker's word alone.
fn a_level_that_can_succeed_without_the_mark_is_caught() {
    for situation in [TWO_CONTROLLERS, THREE_CONTROLLERS, REMOTE_NODES] {
        for (_, topology) in situation.topology {
            assert_eq!(unmarked(topology), [""; 0]);
        }
    }
    // There Pacemaker's alert makes the mark: `fence_mark` refuses behind a device that cuts no power.
    assert_eq!(unmarked(KDUMP.topology[0].1), ["kdump-compute1"]);
}

/// What NovaEvacuate still has to do at first, and what is left when it has done it.
const EVACUATING: &str = r#"
attrd_updater() {
    test -e "$HOME/waited" && value=no || value=yes
    echo "name=\"evacuate\" host=\"compute1.my.cloud.com\" value=\"$value\""
}
sleep() { echo "waits with $(grep -c NovaEvacuate "${CIB_file:-$CIB}") NovaEvacuate"; touch "$HOME/waited"; }
"#;

fn migrated(tool: Tool, change: impl Fn(String) -> String) -> (Cluster, String) {
    let before = fs::read_to_string(installed::source("tests/data/fence-compute.xml")).unwrap();
    let cluster = Cluster::of(&before);
    let script = match tool {
        Tool::Crmsh => read("crmsh-migrate-fence-compute.sh"),
        Tool::Pcs => read("pcs-migrate-fence-compute.sh"),
    };
    let said = cluster.run(tool, EVACUATING, &change(script));
    (cluster, said)
}

/// S1-25: a cluster with `fence_compute` and `NovaEvacuate` becomes one with the mark and the alerter; what was under way ends before.
fn from_fence_compute_to_the_mark() {
    for tool in [Tool::Crmsh, Tool::Pcs] {
        let (cluster, said) = migrated(tool, |script| script);
        assert!(said.contains("waits with 1 NovaEvacuate"), "{said}");
        cluster.assert_verified();
        let levels = cluster.topology("compute1");
        assert!(
            levels.starts_with("power-compute1,mark") && complaints(&cluster, "compute1").is_empty(),
            "{levels}"
        );
        let old = "count(//primitive[@type='fence_compute' or @type='NovaEvacuate' or @type='Dummy'])";
        assert_eq!(cluster.at(old), "0");
        assert_eq!(cluster.at("count(//nvpair[@value='unfencing'])"), "0");
        assert_fenced(&cluster, "compute1", Again::Later);
        assert_fails_over(&cluster);
    }
}

/// The broken variant: without the loop `NovaEvacuate` would go with its work undone, and nobody would report that host.
fn a_migration_that_does_not_wait_is_caught() {
    let (_, said) =
        migrated(Tool::Pcs, |script| script.replace("while attrd_updater", "while false && attrd_updater"));
    assert!(!said.contains("waits with"), "{said}");
}
