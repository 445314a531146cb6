//! The shipped confinement: what systemd takes from the daemon, and the profiles of AppArmor and SELinux.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tests::installed::{self, source};
use tests::programs::{Site, built};
use tests::receiver::Receiver;
use tests::trials::Group;

use crate::path::{json, until};

const UNIT: &str = "packaging/systemd/nova-host-alerter.service";
const TOOLS: [&str; 5] = ["systemd-analyze", "strace", "setpriv", "apparmor_parser", "checkmodule"];

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        the_exposure_is_not_above_the_recorded_one,
        the_daemon_runs_with_what_the_unit_leaves_it,
        the_profiles_compile,
    ];
    Group { cannot: installed::cannot(&TOOLS), tests }
}

fn text(path: &str) -> String {
    fs::read_to_string(source(path)).unwrap()
}

/// The figure of `docs/hardening.md`, in tenths.
fn recorded() -> u32 {
    let page = text("docs/hardening.md");
    let (_, behind) = page.split_once("`systemd-analyze security`: **").expect("the figure is there");
    let (figure, _) = behind.split_once("**").expect("and ends");
    figure.replace('.', "").parse().unwrap()
}

/// Whether systemd finds a unit no more exposed than that, in tenths.
fn is_at_most(unit: &str, threshold: u32) -> bool {
    let room = TempDir::new().unwrap();
    let place = room.path().join("nova-host-alerter.service");
    fs::write(&place, unit).unwrap();
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--no-pager", &format!("--threshold={threshold}")]);
    analyze.arg(place).output().unwrap().status.success()
}

/// The recorded figure is this unit's, and one system call filter less is seen.
fn the_exposure_is_not_above_the_recorded_one() {
    let (unit, recorded) = (text(UNIT), recorded());
    assert!(is_at_most(&unit, recorded), "worse than {recorded} tenths");
    assert!(!is_at_most(&unit, recorded - 1), "better: write the new figure into docs/hardening.md");
    assert!(!is_at_most(&unit.replace("SystemCallFilter=", "#SystemCallFilter="), recorded));
}

/// Values of a key of the unit, in one line.
fn values(key: &str) -> String {
    let unit = text(UNIT);
    let lines = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    lines.map(|value| value.trim_start_matches('~')).collect::<Vec<_>>().join(" ")
}

/// The system calls of a set, with those of the sets in it.
fn calls_of(set: &str) -> BTreeSet<String> {
    let said = Command::new("systemd-analyze").args(["syscall-filter", "--no-pager", set]).output().unwrap();
    let lines = String::from_utf8(said.stdout).unwrap();
    let words = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (sets, calls): (Vec<_>, Vec<_>) = words.skip(1).partition(|word| word.starts_with('@'));
    let inner = sets.into_iter().flat_map(calls_of);
    calls.into_iter().map(str::to_owned).chain(inner).collect()
}

/// The system calls that strace has written down.
fn calls_in(log: &Path) -> BTreeSet<String> {
    let lines = fs::read_to_string(log).unwrap();
    let names = lines.lines().filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('('));
    let known = names
        .filter(|(name, _)| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
    known.map(|(name, _)| name.to_owned()).filter(|name| !name.is_empty()).collect()
}

/// S1-32: a fencing is sent, with an exec route's program beside it, by a daemon without the capabilities that the unit takes away,
/// and no call of daemon or program is outside of the unit's set.
fn the_daemon_runs_with_what_the_unit_leaves_it() {
    let receiver = Receiver::on_loopback().unwrap();
    let site = Site::with(&format!(
        "[http.recovery]\nurl = \"http://{}/\"\nallow-http = true\n[exec.pager]\ncommand = [\"/bin/sh\", \"-c\", \"cat >/dev/null\"]\n",
        receiver.address()
    ))
    .unwrap();
    site.fence("compute1").unwrap();
    let log = site.directory().join("calls");
    let daemon = confined(&site, &log);
    until("both routes have taken the mark", || is_settled(&site));
    end(daemon, &site);
    let allowed = calls_of(&values("SystemCallFilter"));
    let made = calls_in(&log);
    assert!(made.contains("fsync") && made.contains("connect") && made.contains("execve"), "{made:?}");
    let outside: Vec<_> = made.difference(&allowed).collect();
    assert!(outside.is_empty(), "outside of the unit's set: {outside:?}");
    assert!(!allowed.contains("mount") && !allowed.contains("ptrace"), "the set is a set");
}

/// The alerter under strace, without capabilities and without new privileges.
fn confined(site: &Site, log: &Path) -> Child {
    let without: Vec<String> = values("CapabilityBoundingSet")
        .split_whitespace()
        .map(|name| format!("-{}", name.trim_start_matches("CAP_").to_lowercase()))
        .collect();
    assert!(without.contains(&"-sys_admin".to_owned()), "{without:?}");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(log);
    command.args(["setpriv", "--no-new-privs", "--bounding-set", &without.join(","), "--"]);
    command.arg(built("nova-host-alerter").unwrap()).arg("run").arg("--config").arg(site.config());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn is_settled(site: &Site) -> bool {
    json(site, &["list", "--all"])[0]["state"] == "acknowledged"
}

/// strace passes its own end on to nobody: the alerter is ended by its own id.
fn end(mut daemon: Child, site: &Site) {
    let pid = json(site, &["status"])["daemon"]["pid"].as_i64().expect("it runs");
    kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGTERM).unwrap();
    daemon.wait().unwrap();
}

fn apparmor(profile: &str) -> Output {
    let room = TempDir::new().unwrap();
    let place = room.path().join("profile");
    fs::write(&place, profile).unwrap();
    Command::new("apparmor_parser").args(["-Q", "-K"]).arg(place).output().unwrap()
}

fn selinux(module: &str) -> Output {
    let room = TempDir::new().unwrap();
    let place = room.path().join("nova_host_alerter.te");
    fs::write(&place, module).unwrap();
    let compiled = room.path().join("nova_host_alerter.mod");
    Command::new("checkmodule").args(["-M", "-m", "-o"]).arg(compiled).arg(place).output().unwrap()
}

/// The real compilers take both, and neither takes one with a slip in it.
fn the_profiles_compile() {
    let profile = text("packaging/apparmor/usr.sbin.nova-host-alerter");
    let parsed = apparmor(&profile);
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
    assert!(!apparmor(&profile.replace("capability chown,", "capability chwon,")).status.success());

    let module = text("packaging/selinux/nova_host_alerter.te");
    let compiled = selinux(&module);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    assert!(!selinux(&module.replace("    type node_t;\n", "")).status.success(), "an unknown type");
}
