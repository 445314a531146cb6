//! Where a line goes: journald or syslog, and stderr.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;

use super::journald::{self, Journald};
use super::record::Record;
use super::rules::{Rules, To};
use super::syslog::{self, Syslog};

/// The ways that are configured, in the order in which they are tried.
#[derive(Debug)]
pub struct Sinks {
    journald: Option<Journald>,
    syslog: Option<Syslog>,
    /// stderr is connected to the systemd journal, which has these lines already.
    stderr_is_journal: bool,
}

impl Sinks {
    /// Connects to none yet: without a log the daemon runs all the same.
    pub fn new(rules: Rules) -> Self {
        Self::at(rules, Path::new(journald::SOCKET), Path::new(syslog::SOCKET))
    }

    fn at(rules: Rules, journald: &Path, syslog: &Path) -> Self {
        let journald = matches!(rules.to, To::Auto | To::Journald).then(|| Journald::at(journald));
        let syslog = matches!(rules.to, To::Auto | To::Syslog).then(|| Syslog::at(syslog, rules));
        Self { journald, syslog, stderr_is_journal: stderr_is_journal() }
    }

    /// Writes a line; a line that no sink takes is lost, without a wait.
    pub fn write(&mut self, record: &Record) {
        let in_journal = self.journald.as_mut().is_some_and(|journald| journald.send(record));
        if !in_journal && let Some(syslog) = &mut self.syslog {
            syslog.send(record);
        }
        if !(in_journal && self.stderr_is_journal) {
            to_stderr(record);
        }
    }
}

/// A closed or full stderr must not stop a delivery: a pipe that has room takes a line of ours whole.
fn to_stderr(record: &Record) {
    let stderr = std::io::stderr();
    let has_room = {
        let mut asked = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
        poll(&mut asked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    };
    if has_room {
        let line = format!("{}: {}\n", record.level, record.text());
        let _nobody_reads = stderr.lock().write_all(line.as_bytes());
    }
}

/// As systemd.exec(5) has it: `JOURNAL_STREAM` names the device and inode of what is connected to the journal.
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    fstat(std::io::stderr()).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use tracing::Level;

    use super::*;

    /// The broken variant decides once at the start: what is said while journald restarts is lost.
    #[test]
    fn journald_takes_it_where_it_listens_and_else_syslog() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let log = UnixDatagram::bind(place("log")).unwrap();
        let mut sinks = Sinks::at(Rules::default(), &place("journal"), &place("log"));
        let heard = |socket: &UnixDatagram| {
            let mut buffer = [0; 1024];
            socket.set_nonblocking(true).unwrap();
            socket.recv(&mut buffer).is_ok()
        };
        let record = Record::new(Level::ERROR, "x.rs", 1);
        sinks.write(&record);
        assert!(heard(&log));
        let journal = UnixDatagram::bind(place("journal")).unwrap();
        sinks.write(&record);
        assert!(heard(&journal) && !heard(&log));
        drop(journal);
        std::fs::remove_file(place("journal")).unwrap();
        sinks.write(&record);
        assert!(heard(&log));
    }
}
