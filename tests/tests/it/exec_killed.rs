//! A program of an `exec` route and the daemon that is killed while it runs: it never meets a second run of itself.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::libc::O_NONBLOCK;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use tempfile::TempDir;
use tests::programs::Site;
use tests::trials::Group;

/// Much longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Its tests; they need nothing but this machine.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        a_killed_daemon_takes_its_programs_with_it,
        a_program_ends_with_its_guard,
        a_daemon_that_is_asked_to_end_leaves_no_program,
        the_guard_keeps_the_journal_from_the_next_daemon,
    ])
}

/// A program and its child that take no notice of being asked to end. Both hold the pipe `$1` open for as long as they live, and
/// the lock `$2`: a second run beside the first finds it held. The first line has the guard, the leader of their group.
const STUBBORN: &str = r#"trap '' TERM HUP INT
exec 3> "$1" 9> "$2"
if flock --nonblock 9; then echo "begun $(cut -d ' ' -f 5 /proc/$$/stat)" >&3; else echo beside >&3; fi
/bin/sh -c 'trap "" TERM HUP INT; echo child >&3; exec sleep 1000' &
exec sleep 1000"#;

/// A site with that program, and where it reports.
struct Room {
    site: Site,
    reports: Reports,
    _own: TempDir,
}

/// What the programs say, line by line; the end of the lines is the end of all of them.
struct Reports {
    lines: Receiver<String>,
    /// Keeps the pipe from ending before anybody has opened it.
    own: Option<File>,
}

impl Reports {
    fn at(pipe: &PathBuf) -> Self {
        mkfifo(pipe, Mode::S_IRWXU).unwrap();
        let from = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(pipe).unwrap();
        let own = Some(OpenOptions::new().write(true).open(pipe).unwrap());
        // The other end is there now: from here on it waits.
        let from = File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&from))).unwrap();
        let (to, lines) = channel();
        thread::spawn(move || {
            BufReader::new(from).lines().map_while(Result::ok).try_for_each(|line| to.send(line))
        });
        Self { lines, own }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(LIMIT).expect("the program says something")
    }

    /// Both have begun; gives their guard.
    fn begun(&self) -> Pid {
        let first = self.next();
        let guard = first.strip_prefix("begun ").unwrap_or_else(|| panic!("{first}")).parse().unwrap();
        assert_eq!(self.next(), "child");
        Pid::from_raw(guard)
    }

    /// No process is left that could report.
    fn all_gone(&mut self) -> bool {
        self.own = None;
        matches!(self.lines.recv_timeout(LIMIT), Err(std::sync::mpsc::RecvTimeoutError::Disconnected))
    }
}

impl Room {
    fn new() -> Self {
        let own = TempDir::new().unwrap();
        let [pipe, lock] = ["reports", "lock"].map(|name| own.path().join(name));
        let reports = Reports::at(&pipe);
        let command = ["/bin/sh", "-c", STUBBORN, "sh", pipe.to_str().unwrap(), lock.to_str().unwrap()];
        let command = serde_json::to_string(&command).unwrap();
        let site = Site::with(&format!("[exec.recovery]\ncommand = {command}\n")).unwrap();
        Self { site, reports, _own: own }
    }

    /// In the middle of a run.
    fn running() -> (Self, Pid) {
        let mut room = Self::new();
        room.site.start().unwrap();
        room.site.fence("compute1").unwrap();
        let guard = room.reports.begun();
        (room, guard)
    }
}

/// S1-16: SIGKILL, the OOM killer, a watchdog: nobody warned the program, and it is gone with its child, before the mark is sent
/// once more. A daemon that does not guard it leaves both, and the second run finds the first one's lock.
fn a_killed_daemon_takes_its_programs_with_it() {
    let (mut room, _) = Room::running();
    room.site.end(Signal::SIGKILL).unwrap();
    room.site.start().unwrap();
    room.reports.begun();
    room.site.end(Signal::SIGKILL).unwrap();
    assert!(room.reports.all_gone(), "a program outlives its daemon");
}

fn a_daemon_that_is_asked_to_end_leaves_no_program() {
    let (mut room, _) = Room::running();
    room.site.end(Signal::SIGTERM).unwrap();
    assert!(room.reports.all_gone());
}

/// Without a guard the program could outlive the daemon: it ends, and is tried again with another.
fn a_program_ends_with_its_guard() {
    let (mut room, guard) = Room::running();
    kill(guard, Signal::SIGKILL).unwrap();
    assert_ne!(room.reports.begun(), guard);
    room.site.end(Signal::SIGKILL).unwrap();
    assert!(room.reports.all_gone());
}

/// The next daemon wants the journal's lock, and waits for the process that has it: the guard keeps it until the group is killed.
fn the_guard_keeps_the_journal_from_the_next_daemon() {
    let (mut room, guard) = Room::running();
    let held = std::fs::read_link(format!("/proc/{guard}/fd/1")).unwrap();
    let lock = room.site.journal().with_extension("db.lock");
    assert_eq!(held, lock.canonicalize().unwrap());
    room.site.end(Signal::SIGKILL).unwrap();
    assert!(room.reports.all_gone());
}
