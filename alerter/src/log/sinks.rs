//! Where a line goes: stderr, and the syslog socket where the manager's journal does not read stderr.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use site::{Severity, Syslog};
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
        Self { syslog: syslog.then(|| Syslog::at(Path::new(SOCKET), "nova-host-alerter")), stderr_is_journal }
    }

    /// Writes a line; a line that nothing takes is lost, without a wait.
    pub fn write(&mut self, record: &Record) {
        let (level, text) = (record.level, record.text());
        if let Some(syslog) = &mut self.syslog {
            syslog.send(severity(level), &text);
        }
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

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::LOG_ERR,
        Level::WARN => Severity::LOG_WARNING,
        Level::INFO => Severity::LOG_INFO,
        _ => Severity::LOG_DEBUG,
    }
}
