//! `off` outside of a fencer: what it writes, and what it never does.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use marks::fencing::Origin;
use marks::time::Timestamp;

use crate::common::{AGENT, Store, World, agent, call, call_with, fencings, have_namespaces, run, start};

/// S1-23, S1-39: the mark is on disk with the time at which the agent was asked. The design decides otherwise than
/// conformance 19 and 20 only in this: each `off` is one more fencing, and the alerter folds them.
#[test]
fn a_fencing_is_written_and_nothing_is_said() {
    let store = Store::new();
    let before = Timestamp::now();
    let more = "nodename=Compute1\nplug=compute1.my.cloud.com\ndomain=my.cloud.com\nno_shared_storage=1";
    call(&store.off(more)).is_silent_success();
    let after = Timestamp::now();
    let fencing = store.fencings().pop().unwrap();
    assert_eq!(fencing.node.as_str(), "Compute1");
    assert_eq!(fencing.plug.as_ref().map(marks::host::HostName::as_str), Some("compute1.my.cloud.com"));
    assert_eq!(fencing.given_domain.as_deref(), Some("my.cloud.com"));
    assert_eq!(fencing.given_shared_storage, Some(false));
    assert_eq!((fencing.origin, fencing.incarnation, fencing.already_down), (Origin::Shell, None, None));
    assert!([before, fencing.asked_at, fencing.committed_at, after].is_sorted());
    assert_eq!(fencing.seen_by, fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim());
}

/// S1-53: `off` comes again when a level is retried; every one is kept.
#[test]
fn every_off_is_one_more_fencing() {
    let store = Store::new();
    for _ in 0..3 {
        call(&store.off("nodename=compute1")).is_silent_success();
    }
    let mut ids: Vec<String> = store.fencings().iter().map(|fencing| fencing.id.to_string()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

/// S1-55: options of `fence_compute` that once skipped a mark, or made one, do neither.
#[test]
fn record_only_and_disable_neither_skip_nor_make_a_mark() {
    let store = Store::new();
    for word in ["1", "2", "Disabled", "disabled", "True", "yes"] {
        call(&store.off(&format!("nodename=compute1\nrecord_only={word}"))).is_silent_success();
    }
    assert_eq!(store.fencings().len(), 6);
    for action in ["monitor", "status", "validate-all", "disable", "on"] {
        call(&format!("{}record_only=1\nnodename=compute1\n", store.input(action)));
    }
    assert_eq!(store.fencings().len(), 6);
}

/// Conformance 23, S1-53: nothing but `off` touches a mark, and the fencer understands the answer.
#[test]
fn other_actions_are_refused_and_touch_nothing() {
    let store = Store::filled();
    let bytes = || ["marks.db", "marks.db-wal"].map(|name| fs::read(store.directory().join(name)).unwrap());
    let before = bytes();
    for action in [
        "on",
        "reboot",
        "enable",
        "disable",
        "list",
        "list-status",
        "start",
        "stop",
        "cycle",
        "diag",
        "of",
        "off off",
    ] {
        call(&format!("{}nodename=first\n", store.input(action))).is_one_line_failure("Unrecognised action");
        call_with(["-o", action, "-n", "first", "--store", store.path().to_str().unwrap()])
            .is_one_line_failure("Unrecognised action");
    }
    assert_eq!(bytes(), before);
}

/// Conformance 37: any working directory, any umask, no environment, no open descriptors beside the three.
#[test]
fn the_surroundings_do_not_matter() {
    let store = Store::new();
    for (directory, umask) in [("/", "000"), ("/proc", "777"), ("/dev", "026")] {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask}; cd {directory}; exec {AGENT}")]).env_clear();
        run(command, store.off("nodename=compute1").as_bytes()).is_silent_success();
    }
    let modes = |path| std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).unwrap()) & 0o7777;
    assert_eq!(modes(store.directory()), 0o711);
    for entry in fs::read_dir(store.directory()).unwrap() {
        assert_eq!(modes(entry.unwrap().path()), 0o600);
    }
    let mut command = agent();
    command.env("LC_ALL", "tr_TR.UTF-8").env("PATH", "").env("TZ", "Asia/Kathmandu");
    run(command, store.off("nodename=compute1").as_bytes()).is_silent_success();
    assert_eq!(store.fencings().len(), 4);
}

/// Conformance 22 and 40, S1-51: no network, no cluster, no other program: what a shell's `off` asks of the system.
#[test]
fn no_network_and_no_other_program() {
    let Some(store) = Store::traced() else { return };
    let trace = store.dir.path().join("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-e", "trace=%network,%process", "-o", trace.to_str().unwrap(), AGENT])
        .env_remove("PCMK_service");
    run(command, store.off("nodename=compute1").as_bytes()).is_silent_success();
    let trace = fs::read_to_string(trace).unwrap();
    assert_eq!(complaint(&trace), None, "{trace}");
    // What the check is for: a trace with one forbidden call must not pass.
    for line in [
        "7 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_IP) = 3",
        "7 execve(\"/usr/sbin/attrd_updater\", []) = 0",
        "7 vfork() = 8",
    ] {
        assert!(complaint(&format!("{trace}{line}\n")).is_some(), "{line}");
    }
}

/// The first forbidden call. The agent starts itself once more, to be at the journal; threads and local sockets are its own.
fn complaint(trace: &str) -> Option<&str> {
    let is_other = |line: &&str| line.contains("execve(") && !line.contains("execve(\"/proc/self/exe\"");
    let starts = trace.lines().filter(is_other).skip(1);
    // Calls, not names: the checkout may be called anything.
    let is_clone = |line: &str| ["clone(", "clone3("].iter().any(|call| line.contains(call));
    let forks = trace
        .lines()
        .filter(|line| line.contains("fork(") || (is_clone(line) && !line.contains("CLONE_THREAD")));
    let network = trace.lines().filter(|line| line.contains("socket(") && !line.contains("AF_UNIX"));
    starts.chain(forks.filter(|line| !line.contains("resumed")).skip(1)).chain(network).next()
}

/// Conformance 29: the delay is real, and only `off` has it.
#[test]
fn the_delay_is_real_and_only_for_off() {
    let store = Store::new();
    let begin = Instant::now();
    let pending = start(agent(), store.off("nodename=compute1\ndelay=2").as_bytes());
    assert!(store.fencings().is_empty());
    assert_eq!(pending.wait_with_output().unwrap().status.code(), Some(0));
    assert!(begin.elapsed() >= Duration::from_secs(2));
    let fencing = &store.fencings()[0];
    assert!(fencing.committed_at.since(fencing.asked_at) >= Duration::from_secs(2), "{fencing:?}");
    // A delay that was waited for would outlast any test run.
    for action in ["metadata", "status", "monitor", "validate-all", "on"] {
        call(&format!("{}nodename=compute1\ndelay=86400\n", store.input(action)));
    }
}

/// S1-14: a whole rack fails at once.
#[test]
fn sixty_four_agents_at_once() {
    let store = Store::new();
    let children: Vec<_> =
        (0..64).map(|n| start(agent(), store.off(&format!("nodename=compute{n}")).as_bytes())).collect();
    for child in children {
        let outcome: crate::common::Outcome = child.wait_with_output().unwrap().into();
        outcome.is_silent_success();
    }
    let mut nodes: Vec<String> = store.fencings().iter().map(|fencing| fencing.node.to_string()).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 64);
}

/// The journal, the domain and the register come from the site's configuration; parameters override it, and a broken
/// file costs a warning, never the mark.
#[test]
fn the_site_says_where_and_parameters_override() {
    if !have_namespaces() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let world = World::new();
    let site = |name: &str| {
        format!(
            "[store]\npath = \"{}/{name}/marks.db\"\nregister = \"attrd\"\n[hosts]\ndomain = \"site.example\"\n",
            dir.path().display()
        )
    };
    world.file("etc/nova-host-alerter/alerter.toml", site("site"), 0o600);
    run(world.command(AGENT), b"action=off\nnodename=compute1\n").is_silent_success();
    let of = |name: &str| fencings(&dir.path().join(name).join("marks.db"));
    assert_eq!(of("site")[0].given_domain.as_deref(), Some("site.example"));
    let elsewhere = |more: &str| {
        let place = format!("{}/own/marks.db", dir.path().display());
        format!("action=off\nnodename=compute1\nstore={place}\n{more}domain=own.example\n")
    };
    run(world.command(AGENT), format!("{}register=none\n", elsewhere("")).as_bytes())
        .is_one_line_failure("only the configured one is created: correct store");
    assert!(!dir.path().join("own").exists(), "it may be a typo");
    let own = elsewhere("create_store=1\n");
    run(world.command(AGENT), own.as_bytes()).is_silent_success();
    assert_eq!(of("own")[0].given_domain.as_deref(), Some("own.example"));
    world.file("etc/nova-host-alerter/alerter.toml", "[store\npath = 1\n", 0o600);
    let ran = run(world.command(AGENT), format!("{own}verbose=1\n").as_bytes());
    assert!(ran.code == Some(0) && ran.stderr.contains("alerter.toml"), "{ran:?}");
    assert_eq!((of("site").len(), of("own").len()), (1, 2));
    // A mark would go to the default journal, which may not be the alerter's: monitor reports that before it happens.
    let monitor = |more: &str| run(world.command(AGENT), format!("action=monitor\n{more}").as_bytes());
    assert!(monitor("").code == Some(1) && monitor("").stderr.contains("alerter.toml"), "{:?}", monitor(""));
    let with_store = monitor(&format!("store={}/own/marks.db\n", dir.path().display()));
    assert!(!with_store.stderr.contains("alerter.toml"), "{with_store:?}");
}
