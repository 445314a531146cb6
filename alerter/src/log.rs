//! The daemon's log: one sentence with fields an event, to stderr and to syslog.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use syslog::{Facility, Formatter3164, Logger, LoggerBackend};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Longest line: a host name or an answer from outside must not fill the log.
const LINE: usize = 1024;

/// Starts logging for the rest of the process. Events of the libraries come through only as warnings.
pub fn start(level: Level) {
    let ours = Lines { syslog: Mutex::new(Syslog::at(SOCKET)), level };
    tracing_subscriber::registry().with(ours.with_filter(LevelFilter::from_level(level))).init();
}

/// Where syslog listens.
const SOCKET: &str = "/dev/log";

/// The syslog socket, which comes and goes with the syslog daemon: ours runs for years, that one is restarted.
struct Syslog {
    path: PathBuf,
    logger: Option<Logger<LoggerBackend, Formatter3164>>,
}

impl Syslog {
    /// No socket is no reason not to run: stderr is there.
    fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), logger: None }
    }

    /// Sends a line; where that fails, once more over a new socket.
    fn send(&mut self, level: Level, line: &str) {
        if !self.try_send(level, line) {
            self.logger = connect(&self.path);
            self.try_send(level, line);
        }
    }

    fn try_send(&mut self, level: Level, line: &str) -> bool {
        let Some(logger) = &mut self.logger else { return false };
        let sent = match level {
            Level::ERROR => logger.err(line),
            Level::WARN => logger.warning(line),
            Level::INFO => logger.info(line),
            _ => logger.debug(line),
        };
        sent.is_ok()
    }
}

/// The socket does not block: a syslog daemon that hangs costs lines, never a delivery.
fn connect(path: &Path) -> Option<Logger<LoggerBackend, Formatter3164>> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect(path).ok()?;
    let process = "nova-host-alerter".to_owned();
    let formatter =
        Formatter3164 { facility: Facility::LOG_DAEMON, hostname: None, process, pid: std::process::id() };
    Some(Logger::new(LoggerBackend::Unix(socket), formatter))
}

struct Lines {
    syslog: Mutex<Syslog>,
    level: Level,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let meta = event.metadata();
        let ours = meta.target().starts_with("alerter") || meta.target().starts_with("nova_host_alerter");
        if *meta.level() > self.level || (!ours && *meta.level() > Level::WARN) {
            return;
        }
        let mut line = Sentence::default();
        event.record(&mut line);
        let line = line.finish();
        // A closed or full stderr must not stop a delivery.
        let _nobody_reads = writeln!(std::io::stderr(), "{}: {line}", meta.level());
        if let Ok(mut syslog) = self.syslog.lock() {
            syslog.send(*meta.level(), &line);
        }
    }
}

/// The message first, then `name=value` of every field, without control characters.
#[derive(Default)]
struct Sentence {
    message: String,
    fields: String,
}

impl Visit for Sentence {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _to_a_string = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

impl Sentence {
    fn finish(self) -> String {
        let line = self.message + &self.fields;
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LINE).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant, a blocking socket, never comes back from this.
    #[test]
    fn a_syslog_that_hangs_costs_lines_and_no_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let _never_read = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::at(&path);
        for _ in 0..10_000 {
            syslog.send(Level::INFO, "a line");
        }
    }

    #[test]
    fn a_restarted_syslog_gets_the_next_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut syslog = Syslog::at(&path);
        syslog.send(Level::INFO, "nobody listens yet");
        for line in ["first", "after a restart"] {
            let listener = UnixDatagram::bind(&path).unwrap();
            syslog.send(Level::WARN, line);
            let mut buffer = [0; 256];
            let length = listener.recv(&mut buffer).unwrap();
            let got = String::from_utf8_lossy(&buffer[..length]).into_owned();
            assert!(got.starts_with("<28>") && got.ends_with(line), "{got}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let sentence = Sentence { message: "a\nb\x1b[31m".into(), fields: " x=\r\ny".repeat(1000) };
        let line = sentence.finish();
        assert!(line.chars().all(|c| !c.is_control()));
        assert_eq!(line.chars().count(), LINE);
    }
}
