//! The agent's output: to the system log, and on standard error at most one line about a failure.
//!
//! Neither can delay fencing: the log's socket never blocks, and a missing log is no error.

use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process;

use syslog::{Facility, Formatter3164, Logger};

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

#[derive(Clone, Copy)]
enum Level {
    Error,
    Warning,
    Notice,
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
        self.say(Level::Error, text, !self.quiet);
    }

    /// Something to check, although the agent did its work.
    pub fn warning(&self, text: &str) {
        self.say(Level::Warning, text, self.verbose && !self.quiet);
    }

    /// What was done.
    pub fn notice(&self, text: &str) {
        self.say(Level::Notice, text, self.verbose && !self.quiet);
    }

    fn say(&self, level: Level, text: &str, on_stderr: bool) {
        let line = one_line(text);
        let _nobody_listens = self.log(level, &line);
        if on_stderr {
            let _nobody_listens = writeln!(std::io::stderr(), "{}: {line}", self.ident);
        }
    }

    fn log(&self, level: Level, line: &str) -> Result<(), syslog::Error> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect(&self.socket)?;
        let process = self.ident.to_owned();
        let formatter =
            Formatter3164 { facility: Facility::LOG_DAEMON, hostname: None, process, pid: process::id() };
        let mut logger = Logger::new(Datagram(socket), formatter);
        match level {
            Level::Error => logger.err(line),
            Level::Warning => logger.warning(line),
            Level::Notice => logger.notice(line),
        }
    }
}

/// Sends a message in one piece, in the form of the system log.
struct Datagram(UnixDatagram);

impl Write for Datagram {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.send(bytes)
    }

    fn write_fmt(&mut self, line: std::fmt::Arguments<'_>) -> std::io::Result<()> {
        self.0.send(line.to_string().as_bytes()).map(drop)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A message must not resemble two, nor control a terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
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

    /// A log daemon that hangs must not hold up fencing.
    #[test]
    fn a_full_log_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let _never_read = UnixDatagram::bind(&path).unwrap();
        let report = Report::new(path, true, false);
        for _ in 0..2000 {
            report.notice("x");
        }
    }
}
