//! The built daemon under a service manager that the test plays: what it is sent, and when the watchdog is not fed.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alerter::state::supervisor::WEDGED;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tests::installed::{self, source};
use tests::process::Bound;
use tests::programs::{Site, built};
use tests::receiver::Receiver;
use tests::trials::Group;

/// Longer than anything here takes, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);

/// Its tests; they stop a thread of another process.
pub(crate) fn group() -> Group {
    let tests = tests::trials![the_manager_is_notified_and_a_wedged_journal_starves_the_watchdog];
    Group { cannot: installed::lacks_root(), tests }
}

/// Tests that need systemd's own tool, and why it cannot run here, if it cannot.
pub(crate) fn verified() -> Group {
    let asked = Command::new("systemd-analyze").arg("--version").output();
    let cannot = asked.err().map(|error| format!("systemd-analyze cannot be run: {error}"));
    Group { cannot, tests: tests::trials![the_unit_is_one_that_systemd_takes] }
}

struct Supervised {
    child: Bound,
    socket: UnixDatagram,
}

impl Supervised {
    fn start(site: &Site) -> Self {
        let place = site.directory().join("notify");
        let socket = UnixDatagram::bind(&place).unwrap();
        let mut command = Command::new(built("nova-host-alerter").unwrap());
        command
            .args(["run", "--config"])
            .arg(site.config())
            .env("NOTIFY_SOCKET", place)
            .env("WATCHDOG_USEC", "4000000");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: Bound(command.spawn().unwrap()), socket }
    }

    /// The next message, if there is one within this time.
    fn next(&self, within: Duration) -> Option<String> {
        let mut buffer = [0; 4096];
        self.socket.set_read_timeout(Some(within.max(Duration::from_millis(1)))).unwrap();
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    /// Everything up to a message that begins so.
    fn until(&self, beginning: &str) -> Vec<String> {
        let mut all = Vec::new();
        while !all.last().is_some_and(|last: &String| last.starts_with(beginning)) {
            all.push(self.next(LIMIT).unwrap_or_else(|| panic!("no {beginning}: {all:?}")));
        }
        all
    }

    /// The daemon's thread of this name.
    fn thread(&self, name: &str) -> Pid {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().map(Result::unwrap);
        let is_it = |task: &fs::DirEntry| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
        };
        let found = tasks.into_iter().find(is_it).unwrap();
        Pid::from_raw(found.file_name().to_str().unwrap().parse().unwrap())
    }
}

/// S3-4: ready after the first poll; the watchdog is fed while there is nothing to do, and not while the journal's thread is
/// stopped, though the runtime turns and answers: the OCF agent's monitor fails by the same state. The broken variant that feeds
/// it by a timer of its own feeds it six times meanwhile, and the monitor that asks only whether it answers finds it well.
fn the_manager_is_notified_and_a_wedged_journal_starves_the_watchdog() {
    let receiver = Receiver::on_loopback().unwrap();
    let site = Site::new(receiver.address()).unwrap();
    let mut daemon = Supervised::start(&site);
    let well = "STATUS=notifies 1 route(s), and nothing is wrong";
    let first = daemon.until("READY=1");
    assert!(first.iter().any(|message| message == well) || daemon.until(well).len() < 5, "{first:?}");
    for _ in 0..4 {
        daemon.until("WATCHDOG=1");
    }
    assert_eq!(monitor(&site), (Some(0), "the daemon works\n".to_owned()));
    let journal = daemon.thread("journal");
    ptrace::attach(journal).unwrap();
    waitpid(journal, Some(WaitPidFlag::__WALL)).unwrap();
    let (begun, mut fed) = (Instant::now(), 0);
    while let Some(message) = daemon.next(Duration::from_secs(6).saturating_sub(begun.elapsed())) {
        fed += usize::from(message == "WATCHDOG=1");
    }
    assert!(fed <= 1, "fed {fed} times by a daemon that does not get on");
    let (code, said) = monitor(&site);
    assert!(
        code == Some(1) && said.starts_with("nothing is sent: the engine has made no progress"),
        "{said}"
    );
    ptrace::detach(journal, None).unwrap();
    daemon.until("WATCHDOG=1");
    assert_eq!(monitor(&site).0, Some(0));
    kill(Pid::from_raw(daemon.child.id().cast_signed()), Signal::SIGTERM).unwrap();
    daemon.until("STOPPING=1");
    assert!(daemon.child.wait().unwrap().success());
}

/// How the OCF agent's monitor ends, and what it says.
fn monitor(site: &Site) -> (Option<i32>, String) {
    let mut command = Command::new(built("nova-host-alerter").unwrap());
    let ran = command.args(["status", "--ocf", "--config"]).arg(site.config()).output().unwrap();
    (ran.status.code(), String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// S1-32: what `systemd-analyze verify` has to say of the unit.
fn the_unit_is_one_that_systemd_takes() {
    let unit = fs::read_to_string(source("packaging/systemd/nova-host-alerter.service")).unwrap();
    assert!(
        unit.contains("Type=notify\n")
            && unit.contains(&format!("WatchdogSec={}\n", WEDGED.as_secs()))
            && unit.contains("Restart=on-failure\n")
    );
    let room = tempfile::tempdir().unwrap();
    let place = room.path().join("nova-host-alerter.service");
    let program = built("nova-host-alerter").unwrap();
    fs::write(&place, unit.replace("/usr/sbin/nova-host-alerter", program.to_str().unwrap())).unwrap();
    let ran = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&place).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("nova-host-alerter")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}
