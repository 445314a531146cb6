//! What is stored of a mark: the body that Heat gets for each resource, and what finds the resources. Pure.

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::driver::Step;
use crate::event::{NO_HOST, bytes};
use crate::times::seconds;

/// How each of our reasons begins.
pub(super) const OURS: &str = "nova-host-alerter, mark ";

/// What is stored of a mark. Serialised in the order of its fields.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Stored {
    patch: Patch,
    /// Pacemaker's name of the host.
    node: String,
    /// What Nova calls the host.
    pub(super) host: String,
    generated_time: String,
    #[serde(skip)]
    pub(super) step: Step,
}

/// These keys and no other.
#[derive(Debug, Deserialize, Serialize)]
struct Patch {
    mark_unhealthy: bool,
    resource_status_reason: String,
}

/// The body for a host that failed. `host` is what Nova calls it.
pub(super) fn of_mark(mark: &Mark, host: &HostName) -> Vec<u8> {
    write(&mark.id, true, "failed and was fenced", mark.node.as_str(), host.as_str(), mark.generated_time)
}

/// The body for a host that is back.
pub(super) fn of_return(mark: &Mark, host: &HostName) -> Vec<u8> {
    write(&mark.id, false, "is back", mark.node.as_str(), host.as_str(), mark.generated_time)
}

/// A test: of a host that cannot exist. It is never sent.
pub(super) fn of_test(id: &MarkId, now: Timestamp) -> Vec<u8> {
    write(id, false, "is a test", NO_HOST, NO_HOST, now)
}

fn write(id: &MarkId, unhealthy: bool, what: &str, node: &str, host: &str, time: Timestamp) -> Vec<u8> {
    let resource_status_reason = format!("{OURS}{id}: host {node} {what}");
    let patch = Patch { mark_unhealthy: unhealthy, resource_status_reason };
    let (node, host, generated_time) = (node.to_owned(), host.to_owned(), time.rfc3339_seconds());
    bytes(&Stored { patch, node, host, generated_time, step: Step::default() })
}

impl Stored {
    /// Reads it; `None` if this driver did not make it.
    pub(super) fn read(bytes: &[u8], step: Step) -> Option<Self> {
        let stored = Self { step, ..serde_json::from_slice(bytes).ok()? };
        let is_good = HostName::parse(&stored.node).is_ok() && seconds(&stored.generated_time).is_some();
        is_good.then_some(stored)
    }

    /// Pacemaker's name of the host. `None` for a test, which concerns all that is configured.
    pub(super) fn node(&self) -> Option<HostName> {
        HostName::parse(&self.node).ok().filter(|_| !self.is_test())
    }

    /// Whether it is a test.
    pub(super) fn is_test(&self) -> bool {
        self.host == NO_HOST
    }

    /// Whether it is about the servers that are on the host now.
    pub(super) fn wants_servers(&self) -> bool {
        self.step != Step::Return
    }

    /// Whether something was made after the mark, so that it did not fail with the host.
    pub(super) fn precedes(&self, made: Option<&str>) -> bool {
        made.and_then(seconds) > seconds(&self.generated_time)
    }

    /// Whether this is our reason for this very mark.
    pub(super) fn is_own_reason(&self, reason: &str) -> bool {
        let id = self.patch.resource_status_reason.strip_prefix(OURS).and_then(|text| text.get(..=36));
        reason.strip_prefix(OURS).and_then(|text| text.get(..=36)).is_some_and(|own| Some(own) == id)
    }

    /// What Heat gets: the same bytes at every attempt.
    pub(super) fn patch(&self) -> Vec<u8> {
        bytes(&self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::tests::mark;

    /// S2-3: two keys, and a boolean, not a text.
    #[test]
    fn a_patch_has_the_documented_keys_and_no_other() {
        let stored = Stored::read(&of_mark(&mark(), &mark().fqdn), Step::Failure).unwrap();
        let golden = concat!(
            r#"{"mark_unhealthy":true,"resource_status_reason":"nova-host-alerter, mark "#,
            r#"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b: host compute1 failed and was fenced"}"#
        );
        assert_eq!(String::from_utf8(stored.patch()).unwrap(), golden);
        assert_eq!((stored.host.as_str(), stored.node()), ("Compute1.my.cloud.com", Some(mark().node)));
        let back = Stored::read(&of_return(&mark(), &mark().node), Step::Return).unwrap();
        assert!(String::from_utf8(back.patch()).unwrap().starts_with(r#"{"mark_unhealthy":false,"#));
        assert!(Stored::read(b"{}", Step::Failure).is_none());
    }

    #[test]
    fn a_test_is_of_no_host() {
        let test = of_test(&mark().id, Timestamp(0));
        assert!(Stored::read(&test, Step::Failure).unwrap().is_test());
        assert!(!String::from_utf8(test).unwrap().contains("true"));
    }

    /// The broken variant takes any reason of ours.
    #[test]
    fn a_reason_is_that_of_one_mark() {
        let stored = Stored::read(&of_mark(&mark(), &mark().fqdn), Step::Return).unwrap();
        let own = "nova-host-alerter, mark 0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b: host compute1 failed";
        let other = own.replace("5a6b", "5a6c");
        assert!(stored.is_own_reason(own) && !stored.is_own_reason(&other));
        assert!(other.starts_with(OURS), "the broken variant");
        for reason in ["", "CHECK failed", OURS, "mark 0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b"] {
            assert!(!stored.is_own_reason(reason), "{reason}");
        }
    }

    #[test]
    fn what_was_made_after_the_mark_did_not_fail_with_it() {
        let stored = Stored::read(&of_mark(&mark(), &mark().fqdn), Step::Failure).unwrap();
        assert!(stored.precedes(Some("2026-07-21T02:13:22Z")));
        for made in [Some("2026-07-21T02:13:21Z"), Some("2026-07-21T02:13:20"), Some("soon"), None] {
            assert!(!stored.precedes(made), "{made:?}");
        }
    }
}
