//! journald's own socket: a datagram of fields, each on a line of its own.

use std::fmt::Write as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use tracing::Level;

use super::record::Record;

/// Where journald listens.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// The fields of ours that have a name of their own in the journal.
const NAMES: [(&str, &str); 4] =
    [("mark", "MARK_ID"), ("host", "HOST_NODE"), ("route", "ROUTE"), ("kind", "KIND")];

/// The socket, which comes and goes with journald.
#[derive(Debug)]
pub struct Journald {
    path: PathBuf,
    socket: Option<UnixDatagram>,
}

impl Journald {
    /// It is connected to when there is something to log.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), socket: None }
    }

    /// Whether journald has taken it. Over a new socket where the old one fails.
    pub fn send(&mut self, record: &Record) -> bool {
        let datagram = datagram(record);
        self.try_send(&datagram) || {
            self.socket = self.connect();
            self.try_send(&datagram)
        }
    }

    fn try_send(&self, datagram: &str) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.send(datagram.as_bytes()).is_ok())
    }

    /// The socket does not block: a journald that hangs costs lines, never a delivery.
    fn connect(&self) -> Option<UnixDatagram> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        socket.connect(&self.path).ok()?;
        Some(socket)
    }
}

/// No value has a line end in it, so the plain form will do.
fn datagram(record: &Record) -> String {
    let Record { file, line, .. } = record;
    let mut all = format!(
        "MESSAGE={}\nPRIORITY={}\nSYSLOG_IDENTIFIER=nova-host-alerter\nSYSLOG_FACILITY=3\nCODE_FILE={file}\nCODE_LINE={line}\n",
        record.text(),
        priority(record.level)
    );
    for (name, value) in &record.fields {
        let known = NAMES.iter().find(|(ours, _)| ours == name);
        let name = known.map_or_else(|| format!("NHA_{}", upper(name)), |(_, theirs)| (*theirs).to_owned());
        let _to_a_string = writeln!(all, "{name}={value}");
    }
    all
}

/// The journal's names have capitals, digits and underscores.
fn upper(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// As syslog counts.
pub fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search for a mark finds its lines by a field.
    #[test]
    fn the_journal_gets_fields() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let mut journald = Journald::at(&path);
        let mut record = Record::new(Level::WARN, "delivery.rs", 7);
        record.message = "it refuses".to_owned();
        record.fields = vec![("mark", "1".into()), ("host", "c1".into()), ("listen-at", "a b".into())];
        assert!(!journald.send(&record), "nobody listens");
        let listener = UnixDatagram::bind(&path).unwrap();
        assert!(journald.send(&record));
        let mut buffer = [0; 1024];
        let length = listener.recv(&mut buffer).unwrap();
        let got = std::str::from_utf8(&buffer[..length]).unwrap();
        assert_eq!(
            got,
            "MESSAGE=it refuses mark=1 host=c1 listen-at=\"a b\"\nPRIORITY=4\nSYSLOG_IDENTIFIER=nova-host-alerter\nSYSLOG_FACILITY=3\n\
             CODE_FILE=delivery.rs\nCODE_LINE=7\nMARK_ID=1\nHOST_NODE=c1\nNHA_LISTEN_AT=a b\n"
        );
    }
}
