//! The agent's output: to the system log, and on standard error at most one line about a failure.
//!
//! Neither can delay fencing: the log's socket never blocks, and a missing log is no error.

use std::io::Write as _;
use std::path::PathBuf;

use site::{Severity, Syslog, blanked};

/// The STONITH agent's name in the system log and on standard error.
pub const IDENT: &str = "fence_mark";

/// The destinations of reports, and their level.
#[derive(Clone, Debug)]
pub struct Report {
    ident: &'static str,
    socket: PathBuf,
    quiet: bool,
    verbose: bool,
}

impl Report {
    /// `quiet` keeps standard error empty; `verbose` also shows warnings and notices there.
    pub fn new(socket: PathBuf, quiet: bool, verbose: bool) -> Self {
        Self { ident: IDENT, socket, quiet, verbose }
    }

    /// The same for another program.
    #[must_use]
    pub fn of(self, ident: &'static str) -> Self {
        Self { ident, ..self }
    }

    /// Why nothing was done: the one line that Pacemaker shows.
    pub fn failure(&self, text: &str) {
        self.say(Severity::LOG_ERR, text, !self.quiet);
    }

    /// Something to check, although the agent did its work.
    pub fn warning(&self, text: &str) {
        self.say(Severity::LOG_WARNING, text, self.verbose && !self.quiet);
    }

    /// What was done.
    pub fn notice(&self, text: &str) {
        self.say(Severity::LOG_NOTICE, text, self.verbose && !self.quiet);
    }

    fn say(&self, severity: Severity, text: &str, on_stderr: bool) {
        let line: String = blanked(text).collect();
        let _nobody_listens = Syslog::at(&self.socket, self.ident).send(severity, &line);
        if on_stderr {
            let _nobody_listens = writeln!(std::io::stderr(), "{}: {line}", self.ident);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn the_log_gets_one_datagram_for_each_report() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = UnixDatagram::bind(&path).unwrap();
        Report::new(path, true, false).warning("two\nlines\u{1b}[2J");
        let mut buffer = [0; 500];
        let length = log.recv(&mut buffer).unwrap();
        let line = std::str::from_utf8(&buffer[..length]).unwrap();
        assert!(line.starts_with("<28>") && line.ends_with("]: two lines [2J"), "{line}");
        assert!(line.contains("fence_mark["), "{line}");
    }
}
