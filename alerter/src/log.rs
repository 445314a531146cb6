//! The daemon's log: one sentence with fields an event, to stderr and to syslog.

use std::fmt::Write as _;
use std::io::Write as _;
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
    let ours = Lines { syslog: syslog_socket().map(Mutex::new), level };
    tracing_subscriber::registry().with(ours.with_filter(LevelFilter::from_level(level))).init();
}

type Syslog = Logger<LoggerBackend, Formatter3164>;

/// No syslog socket is no reason not to run: stderr is there.
fn syslog_socket() -> Option<Syslog> {
    let process = "nova-host-alerter".to_owned();
    let formatter =
        Formatter3164 { facility: Facility::LOG_DAEMON, hostname: None, process, pid: std::process::id() };
    syslog::unix(formatter).ok()
}

struct Lines {
    syslog: Option<Mutex<Syslog>>,
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
        if let Some(syslog) = &self.syslog {
            self.to_syslog(syslog, *meta.level(), &line);
        }
    }
}

impl Lines {
    fn to_syslog(&self, syslog: &Mutex<Syslog>, level: Level, line: &str) {
        let Ok(mut syslog) = syslog.lock() else { return };
        let _socket_gone = match level {
            Level::ERROR => syslog.err(line),
            Level::WARN => syslog.warning(line),
            Level::INFO => syslog.info(line),
            _ => syslog.debug(line),
        };
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

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let sentence = Sentence { message: "a\nb\x1b[31m".into(), fields: " x=\r\ny".repeat(1000) };
        let line = sentence.finish();
        assert!(line.chars().all(|c| !c.is_control()));
        assert_eq!(line.chars().count(), LINE);
    }
}
