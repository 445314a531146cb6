use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process;

pub use syslog::Severity;
use syslog::{Facility, Formatter3164, LogFormat as _};

/// The socket of the system log, which comes and goes with its daemon. It is connected to when there is something to log.
#[derive(Debug)]
pub struct Syslog {
    path: PathBuf,
    program: &'static str,
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// The log at this socket, for the lines of a program.
    pub fn at(path: &Path, program: &'static str) -> Self {
        Self { path: path.to_owned(), program, socket: None }
    }

    /// Sends a line, over a new socket where the old one fails; whether it was taken.
    pub fn send(&mut self, severity: Severity, text: &str) -> bool {
        let line = self.line(severity, text);
        self.try_send(&line) || {
            self.socket = self.connect().ok();
            self.try_send(&line)
        }
    }

    fn try_send(&self, line: &[u8]) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.send(line).is_ok())
    }

    /// The socket does not block: a log daemon that hangs costs lines and no time.
    fn connect(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect(&self.path)?;
        Ok(socket)
    }

    /// As syslog(3) writes it (RFC 3164), without the host, which the log daemon knows.
    fn line(&self, severity: Severity, text: &str) -> Vec<u8> {
        let (facility, process) = (Facility::LOG_DAEMON, self.program.to_owned());
        let formatter = Formatter3164 { facility, hostname: None, process, pid: process::id() };
        let mut line = Vec::new();
        let _to_memory = formatter.format(&mut line, severity, text);
        line
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The broken variant, a blocking socket, never comes back from this.
    #[test]
    fn a_log_that_hangs_costs_lines_and_no_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let _never_read = UnixDatagram::bind(&path).unwrap();
        let mut log = Syslog::at(&path, "x");
        let taken = (0..10_000).filter(|_| log.send(Severity::LOG_INFO, "a line")).count();
        assert!((1..10_000).contains(&taken), "{taken}");
    }

    #[test]
    fn a_restarted_log_gets_the_next_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = Syslog::at(&path, "fence_mark");
        assert!(!log.send(Severity::LOG_ERR, "nobody listens yet"));
        for text in ["first", "after a restart"] {
            let listener = UnixDatagram::bind(&path).unwrap();
            assert!(log.send(Severity::LOG_WARNING, text));
            let mut buffer = [0; 256];
            let length = listener.recv(&mut buffer).unwrap();
            let got = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let wanted = format!(" fence_mark[{}]: {text}", process::id());
            assert!(got.starts_with("<28>") && got.ends_with(&wanted), "{got}");
            assert_eq!(got.find(" fence_mark"), Some("<28>Nov  8 03:04:05".len()), "{got}");
            fs::remove_file(&path).unwrap();
        }
    }
}
