//! How long the OCF agent waits: for a daemon that stalls, for one that does not stop, and for a program that does not end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use tests::installed;
use tests::trials::Named;

use super::{DEGRADED, GENERIC, KILLED, Resource, SUCCESS, Said, agent_text, lives, said};

/// Its tests.
pub(super) fn tests() -> Vec<Named> {
    tests::trials![
        a_stall_is_no_failure,
        a_daemon_that_stays_silent_is_broken_before_the_cluster_gives_up,
        what_does_not_end_does_not_keep_monitor,
        a_stalled_daemon_is_killed_long_before_the_cluster_gives_up,
    ]
}

/// Longer than an alerter was once given (0.8 s), and shorter than three failures in a row.
const STALL: Duration = Duration::from_secs(2);
/// What Pacemaker keeps of a reason.
const KEPT: usize = 128;

/// The action of this agent, for so many seconds.
fn within(resource: &Resource, agent: &Path, action: &str, seconds: u32) -> Said {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", &seconds.to_string(), "sh"]).arg(agent).arg(action);
    said(&resource.dress(&mut command).output().unwrap())
}

/// The disk is busy, a virtual machine is moved: the daemon goes on. The broken variant is the patience of 0.8 s.
fn a_stall_is_no_failure() {
    let resource = Resource::new();
    resource.expect("start", SUCCESS);
    let pid = resource.recorded();
    kill(pid, Signal::SIGSTOP).unwrap();
    let mut command = Command::new("sh");
    command.arg(installed::source("ocf/nova-host-alerter")).arg("monitor");
    let monitor = resource.dress(&mut command).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(STALL);
    kill(pid, Signal::SIGCONT).unwrap();
    let said = said(&monitor.wait_with_output().unwrap());
    assert_eq!((said.code, said.reasons.len()), (SUCCESS, 0), "{said:?}");
}

/// With the limit of the metadata, and with a short one. Pacemaker keeps the reason's beginning: it is the cause, without advice
/// to start what runs.
fn a_daemon_that_stays_silent_is_broken_before_the_cluster_gives_up() {
    let mut resource = Resource::new();
    resource.expect("start", SUCCESS);
    kill(resource.recorded(), Signal::SIGSTOP).unwrap();
    for limit in [20, 6] {
        resource.timeout = limit * 1000;
        let said = within(&resource, &installed::source("ocf/nova-host-alerter"), "monitor", limit - 2);
        assert_eq!((said.code, said.reasons.len()), (GENERIC, 1), "{said:?}");
        let reason = &said.reasons[0];
        assert!(reason.starts_with("the daemon does not answer") && reason.len() <= KEPT, "{reason}");
        assert!(!reason.contains("start it") && !reason.contains("crm_resource"), "{reason}");
    }
}

/// A program that hangs on some of the questions, as one does that reads a dead disk.
fn hanging(resource: &Resource, on: &str) -> std::path::PathBuf {
    let (program, real) = (resource.path("program"), resource.binary.display());
    let text = format!("#!/bin/sh\ncase \" $* \" in {on}) exec sleep 1000;; esac\nexec {real} \"$@\"\n");
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// Each question alone, and all of them one after the other, end before the cluster gives up. The broken variant gives each
/// its own time.
fn what_does_not_end_does_not_keep_monitor() {
    let mut resource = Resource::new();
    resource.expect("start", SUCCESS);
    resource.timeout = 6_000;
    // The daemon runs with another journal, so that every question is asked.
    let sound = fs::read_to_string(resource.config()).unwrap();
    resource.configure(&sound.replace("marks.db", "other.db"));
    let agent = installed::source("ocf/nova-host-alerter");
    let real = resource.binary.clone();
    let cases = [
        ("*--ocf*", GENERIC),
        ("*--process*", DEGRADED),
        ("*check-config*", DEGRADED),
        ("*--process*|*check-config*", DEGRADED),
        ("*", GENERIC),
    ];
    for (on, code) in cases {
        resource.binary = hanging(&resource, on);
        let said = within(&resource, &agent, "monitor", 4);
        assert_eq!((said.code, said.reasons.len()), (code, 1), "{on}: {said:?}");
        resource.binary.clone_from(&real);
    }

    let broken = resource.path("agent");
    let sound = r#"[ "$left" -le "$1" ] || left=$1"#;
    assert!(agent_text().contains(sound));
    fs::write(&broken, agent_text().replace(sound, "left=$1")).unwrap();
    resource.binary = hanging(&resource, "*--process*|*check-config*");
    assert_eq!(within(&resource, &broken, "monitor", 4).code, KILLED, "the broken variant is seen");
    resource.binary = real;
}

/// A daemon stops within 10 s, and meanwhile no alerter runs. The broken variant waits for two thirds of the limit.
fn a_stalled_daemon_is_killed_long_before_the_cluster_gives_up() {
    let mut resource = Resource::new();
    resource.expect("start", SUCCESS);
    let pid = resource.recorded();
    kill(pid, Signal::SIGSTOP).unwrap();
    resource.timeout = 60_000;
    let said = within(&resource, &installed::source("ocf/nova-host-alerter"), "stop", 20);
    assert_eq!(said.code, SUCCESS, "{said:?}");
    assert!(!lives(pid));
}
