//! A stored message of a `kubernetes` route: a fenced host, and what is to become of it. Pure.

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{NO_HOST, bytes};

/// What a route does with a fenced host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Its Node gets the out-of-service taint.
    Taint,
    /// Its Node gets the condition `HostFenced`.
    Condition,
    /// An external remediation controller gets an object made from a template.
    Remediation,
    /// Its Machine is annotated for the MachineHealthCheck that watches it.
    Annotate,
}

impl Mode {
    /// The words of the key `mode`.
    pub(super) const WORDS: [(&str, Self); 4] = [
        ("taint", Self::Taint),
        ("condition", Self::Condition),
        ("remediation", Self::Remediation),
        ("annotate", Self::Annotate),
    ];

    /// Its word.
    pub(super) fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, mode)| *mode == self).map_or("", |(word, _)| word)
    }
}

/// Serialised in the order of its fields. Kubernetes never gets it: a request depends on the object's present state too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    /// The mark's id.
    pub(super) id: String,
    /// The host, as Kubernetes knows it.
    pub(super) host: String,
    /// The failure's time in RFC 3339, with whole seconds.
    pub(super) failure_time: String,
    /// Whether `fence_mark` recorded that the host was switched off. Evidence alone may be that of a reboot.
    pub(super) off: bool,
    /// What is to be done; `None` for a test.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) mode: Option<Mode>,
}

/// The message of a mark, and of its confirmation and its return.
pub(super) fn of_mark(mark: &Mark, host: &HostName, mode: Mode) -> Vec<u8> {
    bytes(&Stored {
        id: mark.id.to_string(),
        host: lower(host),
        failure_time: mark.failure_time.rfc3339_seconds(),
        off: !mark.id.is_worked_out(),
        mode: Some(mode),
    })
}

/// A test: a host that cannot exist, and no change.
pub(super) fn of_test(id: &MarkId, now: Timestamp) -> Vec<u8> {
    let (id, host, failure_time) = (id.to_string(), NO_HOST.to_owned(), now.rfc3339_seconds());
    bytes(&Stored { id, host, failure_time, off: true, mode: None })
}

/// Kubernetes has no capitals in names: a kubelet lowers them too.
pub(super) fn lower(host: &HostName) -> String {
    host.as_str().to_ascii_lowercase()
}

impl Stored {
    /// Reads it; `None` if this driver did not make it.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// When the host failed, in seconds.
    pub(super) fn failed_at(&self) -> i64 {
        crate::times::seconds(&self.failure_time).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use marks::id::OperationId;

    use super::*;
    use crate::event::tests::mark;

    #[test]
    fn the_body_says_what_becomes_of_which_host() {
        let mark = mark();
        let golden = concat!(
            r#"{"id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","host":"compute1.my.cloud.com","#,
            r#""failure_time":"2026-07-21T02:13:20Z","off":true,"mode":"taint"}"#
        );
        assert_eq!(String::from_utf8(of_mark(&mark, &mark.fqdn, Mode::Taint)).unwrap(), golden);
        let stored = Stored::read(golden.as_bytes()).unwrap();
        assert_eq!((stored.mode, stored.failed_at()), (Some(Mode::Taint), 1_784_600_000));
    }

    /// The broken variant counts each fencing as an off: a host that Pacemaker rebooted is about to come back.
    #[test]
    fn only_a_record_of_fence_mark_says_that_the_host_is_off() {
        let operation = OperationId::parse("0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6c").unwrap();
        let evidence = Mark { id: MarkId::of_operation(&mark().node, operation), ..mark() };
        let is_off = |mark: &Mark| Stored::read(&of_mark(mark, &mark.fqdn, Mode::Taint)).unwrap().off;
        assert_eq!((is_off(&mark()), is_off(&evidence)), (true, false));
    }

    #[test]
    fn a_test_is_of_no_host_and_wants_nothing() {
        let test = Stored::read(&of_test(&mark().id, Timestamp(0))).unwrap();
        assert_eq!((test.host.as_str(), test.mode), (NO_HOST, None));
    }

    /// The broken variant takes a message of the standard event, or one with more in it, for its own.
    #[test]
    fn the_bytes_of_others_are_not_read() {
        let standard = crate::event::Event::of_mark(&mark(), crate::event::TimeFormat::Epoch).bytes();
        let more = br#"{"id":"x","host":"h","failure_time":"t","off":true,"mode":"taint","force":true}"#;
        for body in [&standard[..], b"", b"{}", b"null", more] {
            assert_eq!(Stored::read(body), None);
        }
    }
}
