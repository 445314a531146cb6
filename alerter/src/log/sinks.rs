//! Where a line goes: stderr, and the syslog socket where the manager's journal does not read stderr.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use syslog::{Facility, Formatter3164, LogFormat, Severity};
use tracing::Level;

use super::To;
use super::record::Record;

/// Where syslog listens; journald does too.
const SOCKET: &str = "/dev/log";

/// The ways that are configured.
#[derive(Debug)]
pub struct Sinks {
    syslog: Option<Syslog>,
    stderr_is_journal: bool,
}

impl Sinks {
    /// Connects to nothing yet: without a log the daemon runs all the same.
    pub fn new(to: To) -> Self {
        let stderr_is_journal = stderr_is_journal();
        let syslog = to == To::Syslog && !stderr_is_journal;
        Self { syslog: syslog.then(|| Syslog::at(Path::new(SOCKET))), stderr_is_journal }
    }

    /// Writes a line; a line that nothing takes is lost, without a wait.
    pub fn write(&mut self, record: &Record) {
        if let Some(syslog) = &mut self.syslog {
            syslog.send(record);
        }
        let (level, text) = (record.level, record.text());
        to_stderr(&match self.stderr_is_journal {
            // As sd-daemon(3) has it: the journal takes the level from the number.
            true => format!("<{}>{text}\n", severity(level) as u8),
            false => format!("{level}: {text}\n"),
        });
    }
}

/// A closed or full stderr must not stop a delivery: a pipe that has room takes a line of ours whole.
fn to_stderr(line: &str) {
    let stderr = std::io::stderr();
    let has_room = {
        let mut asked = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
        poll(&mut asked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    };
    if has_room {
        let _nobody_reads = stderr.lock().write_all(line.as_bytes());
    }
}

/// As systemd.exec(5) has it: `JOURNAL_STREAM` names the device and inode of what is connected to the journal.
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    fstat(std::io::stderr()).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// The syslog socket, which comes and goes with the syslog daemon: ours runs for years, that one is restarted.
#[derive(Debug)]
struct Syslog {
    path: PathBuf,
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// It is connected to when there is something to log.
    fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), socket: None }
    }

    /// Whether it was taken. Over a new socket where the old one fails.
    fn send(&mut self, record: &Record) -> bool {
        let line = rfc3164(record);
        self.try_send(&line) || {
            self.socket = self.connect();
            self.try_send(&line)
        }
    }

    fn try_send(&self, line: &[u8]) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.send(line).is_ok())
    }

    /// The socket does not block: a syslog daemon that hangs costs lines, never a delivery.
    fn connect(&self) -> Option<UnixDatagram> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        socket.connect(&self.path).ok()?;
        Some(socket)
    }
}

/// As syslog(3) writes it, without the host, which the daemon knows.
fn rfc3164(record: &Record) -> Vec<u8> {
    let (facility, process) = (Facility::LOG_DAEMON, "nova-host-alerter".to_owned());
    let formatter = Formatter3164 { facility, hostname: None, process, pid: std::process::id() };
    let mut line = Vec::new();
    let _to_memory = formatter.format(&mut line, severity(record.level), record.text());
    line
}

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::LOG_ERR,
        Level::WARN => Severity::LOG_WARNING,
        Level::INFO => Severity::LOG_INFO,
        _ => Severity::LOG_DEBUG,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(message: &str) -> Record {
        let mut record = Record::new(Level::WARN);
        message.clone_into(&mut record.message);
        record
    }

    /// The broken variant, a blocking socket, never comes back from this.
    #[test]
    fn a_syslog_that_hangs_costs_lines_and_no_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let _never_read = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::at(&path);
        for _ in 0..10_000 {
            syslog.send(&record("a line"));
        }
    }

    #[test]
    fn a_restarted_syslog_gets_the_next_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut syslog = Syslog::at(&path);
        assert!(!syslog.send(&record("nobody listens yet")));
        for line in ["first", "after a restart"] {
            let listener = UnixDatagram::bind(&path).unwrap();
            assert!(syslog.send(&record(line)));
            let mut buffer = [0; 256];
            let length = listener.recv(&mut buffer).unwrap();
            let got = String::from_utf8_lossy(&buffer[..length]).into_owned();
            assert!(
                got.starts_with("<28>") && got.contains(" nova-host-alerter[") && got.ends_with(line),
                "{got}"
            );
            std::fs::remove_file(&path).unwrap();
        }
    }
}
