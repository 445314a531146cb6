//! The syslog socket, in either of its two formats.

use std::fmt::Write as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use marks::time::Timestamp;
use syslog::{Facility, Formatter3164, LogFormat, Severity};
use tracing::Level;

use super::journald::priority;
use super::record::Record;
use super::rules::{Format, Rules};

/// Where syslog listens.
pub const SOCKET: &str = "/dev/log";

/// The program's name there.
const NAME: &str = "nova-host-alerter";

/// The facility `daemon`, as RFC 5424 numbers it.
const DAEMON: u8 = 3;

/// The syslog socket, which comes and goes with the syslog daemon: ours runs for years, that one is restarted.
#[derive(Debug)]
pub struct Syslog {
    path: PathBuf,
    socket: Option<UnixDatagram>,
    format: Format,
    enterprise: Option<u32>,
    host: String,
}

impl Syslog {
    /// It is connected to when there is something to log.
    pub fn at(path: impl Into<PathBuf>, rules: Rules) -> Self {
        let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned());
        let (format, enterprise) = (rules.format, rules.enterprise);
        Self { path: path.into(), socket: None, format, enterprise, host: host.unwrap_or_default() }
    }

    /// Whether it was taken. Over a new socket where the old one fails.
    pub fn send(&mut self, record: &Record) -> bool {
        let line = match self.format {
            Format::Rfc3164 => rfc3164(record),
            Format::Rfc5424 => self.rfc5424(record, Timestamp::now()),
        };
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

    /// RFC 5424, section 6: PRI VERSION TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA MSG. The crate's own has only
    /// numbers for MSGID, which is the word of the kind here.
    fn rfc5424(&self, record: &Record, at: Timestamp) -> Vec<u8> {
        let time = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
        let (priority, pid) = (DAEMON * 8 + priority(record.level), std::process::id());
        let (host, kind) = (word(&self.host, 255), word(record.field("kind").unwrap_or_default(), 32));
        let (data, text) = (self.structured_data(record), record.text());
        format!("<{priority}>1 {time:.3} {host} {NAME} {pid} {kind} {data} {text}").into_bytes()
    }

    /// `origin` is IANA's own; a name of ours wants a private enterprise number behind it.
    fn structured_data(&self, record: &Record) -> String {
        let mut data = format!("[origin software=\"{NAME}\" swVersion=\"{}\"]", env!("CARGO_PKG_VERSION"));
        if let Some(number) = self.enterprise {
            let _to_a_string = write!(data, "[nha@{number}");
            for (name, value) in &record.fields {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace(']', "\\]");
                let _to_a_string = write!(data, " {}=\"{value}\"", word(name, 32));
            }
            data.push(']');
        }
        data
    }
}

/// As syslog(3) writes it, without the host, which the daemon knows.
fn rfc3164(record: &Record) -> Vec<u8> {
    let (facility, process) = (Facility::LOG_DAEMON, NAME.to_owned());
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

/// A field of the header, which has no blanks; `-` where there is nothing to say.
fn word(text: &str, most: usize) -> String {
    let word: String = text.chars().filter(char::is_ascii_graphic).take(most).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(message: &str) -> Record {
        let mut record = Record::new(Level::WARN, "x.rs", 1);
        message.clone_into(&mut record.message);
        record
    }

    /// The broken variant, a blocking socket, never comes back from this.
    #[test]
    fn a_syslog_that_hangs_costs_lines_and_no_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let _never_read = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::at(&path, Rules::default());
        for _ in 0..10_000 {
            syslog.send(&record("a line"));
        }
    }

    #[test]
    fn a_restarted_syslog_gets_the_next_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut syslog = Syslog::at(&path, Rules::default());
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

    /// RFC 5424, 6.3.3: a quotation mark, a backslash and a closing bracket are escaped in a value.
    #[test]
    fn the_newer_format_has_structured_data() {
        let rules = Rules { format: Format::Rfc5424, enterprise: Some(32473), ..Rules::default() };
        let mut syslog = Syslog::at("/nonexistent", rules);
        "ctl1".clone_into(&mut syslog.host);
        let mut record = record("it refuses");
        record.fields = vec![("mark", "1".into()), ("kind", "no-route".into()), ("error", "a\"b]\\".into())];
        let line = String::from_utf8(syslog.rfc5424(&record, Timestamp(1_700_000_000_123))).unwrap();
        let (pid, version) = (std::process::id(), env!("CARGO_PKG_VERSION"));
        let wanted = format!(
            "<28>1 2023-11-14T22:13:20.123Z ctl1 nova-host-alerter {pid} no-route \
             [origin software=\"nova-host-alerter\" swVersion=\"{version}\"]\
             [nha@32473 mark=\"1\" kind=\"no-route\" error=\"a\\\"b\\]\\\\\"] \
             it refuses mark=1 kind=no-route error=\"a\\\"b]\\\\\""
        );
        assert_eq!(line, wanted);
        record.fields.clear();
        syslog.enterprise = None;
        let line = String::from_utf8(syslog.rfc5424(&record, Timestamp(0))).unwrap();
        assert!(
            line.contains(" - [origin ") && line.ends_with("] it refuses") && !line.contains("nha@"),
            "{line}"
        );
    }
}
