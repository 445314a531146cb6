//! What is stored of a mark: the request that Senlin gets for each target, and what finds the targets. Pure.

use marks::host::HostName;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{NO_HOST, bytes};
use crate::times::seconds;

/// How far Senlin's clock may be behind ours, in seconds.
const SLACK: i64 = 60;

/// A kind of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    /// The word for one.
    pub(super) key: &'static str,
    /// Their path, and the key of the route that names them.
    pub(super) path: &'static str,
    /// The action of a recovery.
    pub(super) action: &'static str,
    /// The rejection of one that does not exist.
    pub(super) unknown: &'static str,
}

/// Single nodes.
pub(super) const NODE: Whose =
    Whose { key: "node", path: "nodes", action: "NODE_RECOVER", unknown: "unknown-node" };
/// Whole clusters.
pub(super) const CLUSTER: Whose =
    Whose { key: "cluster", path: "clusters", action: "CLUSTER_RECOVER", unknown: "unknown-cluster" };

/// How a target is recovered, with the parameters of this operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `REBOOT`; hard or soft, or Senlin's default if unset.
    Reboot(Option<&'static str>),
    /// `REBUILD`.
    Rebuild,
    /// `RECREATE`.
    Recreate {
        /// Seconds for the deletion of the old one.
        delete_timeout: Option<u32>,
        /// Whether the new one is made even if the old one cannot be deleted.
        force: Option<bool>,
    },
}

/// The recovery that Senlin is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The operation.
    pub operation: Operation,
    /// Whether Senlin first checks that it is needed; from 1.6 on.
    pub check: Option<bool>,
    /// Whether a cluster is filled up to its capacity; from 1.7 on.
    pub check_capacity: Option<bool>,
}

/// What is stored of a mark. Serialised in the order of its fields.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Stored {
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Request>,
    /// The microversion of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// Pacemaker's name of the host.
    node: String,
    /// What Nova calls the host.
    pub(super) host: String,
    failure_time: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Request {
    recover: Recover,
}

/// These keys and no other: a Senlin that does not know one of them refuses the request.
#[derive(Debug, Deserialize, Serialize)]
struct Recover {
    operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_params: Option<Params>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check_capacity: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct Params {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_timeout: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    force_recreate: Option<bool>,
}

impl Operation {
    fn word(&self) -> &'static str {
        match self {
            Self::Reboot(_) => "REBOOT",
            Self::Rebuild => "REBUILD",
            Self::Recreate { .. } => "RECREATE",
        }
    }

    fn params(&self) -> Option<Params> {
        let params = match *self {
            Self::Reboot(kind) => Params { r#type: kind.map(str::to_owned), ..Params::default() },
            Self::Rebuild => Params::default(),
            Self::Recreate { delete_timeout, force } => {
                Params { delete_timeout, force_recreate: force, ..Params::default() }
            }
        };
        (params != Params::default()).then_some(params)
    }
}

impl Recovery {
    /// The oldest microversion that has all of it.
    fn version(&self) -> Option<String> {
        let version = match (self.check, self.check_capacity) {
            (_, Some(_)) => Some("clustering 1.7"),
            (Some(_), None) => Some("clustering 1.6"),
            (None, None) => None,
        };
        version.map(str::to_owned)
    }
}

/// The body for a host that failed.
pub(super) fn of_mark(mark: &Mark, host: &HostName, recovery: &Recovery) -> Vec<u8> {
    let recover = Recover {
        operation: recovery.operation.word().to_owned(),
        operation_params: recovery.operation.params(),
        check: recovery.check,
        check_capacity: recovery.check_capacity,
    };
    bytes(&Stored {
        request: Some(Request { recover }),
        version: recovery.version(),
        node: mark.node.as_str().to_owned(),
        host: host.as_str().to_owned(),
        failure_time: mark.failure_time.rfc3339_seconds(),
    })
}

/// A test: a host that cannot exist, and no request.
pub(super) fn of_test(now: Timestamp) -> Vec<u8> {
    let (node, host, failure_time) = (NO_HOST.to_owned(), NO_HOST.to_owned(), now.rfc3339_seconds());
    bytes(&Stored { request: None, version: None, node, host, failure_time })
}

impl Stored {
    /// Reads it; `None` if this driver did not make it.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let stored: Self = serde_json::from_slice(bytes).ok()?;
        let has_time = seconds(&stored.failure_time).is_some();
        let is_good = stored.request.is_none() == stored.is_test() && HostName::parse(&stored.node).is_ok();
        (has_time && is_good).then_some(stored)
    }

    /// Pacemaker's name of the host. `None` for a test, which concerns all that is configured.
    pub(super) fn node(&self) -> Option<HostName> {
        HostName::parse(&self.node).ok().filter(|_| !self.is_test())
    }

    /// Whether it is a test.
    pub(super) fn is_test(&self) -> bool {
        self.node == NO_HOST
    }

    /// Whether something began after the failure.
    pub(super) fn is_since(&self, begun: &str) -> bool {
        let failed = seconds(&self.failure_time).unwrap_or(i64::MAX);
        seconds(begun).is_some_and(|begun| begun >= failed.saturating_sub(SLACK))
    }

    /// What Senlin gets: the same bytes at every attempt.
    pub(super) fn request(&self) -> Vec<u8> {
        bytes(&self.request)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn mark() -> Mark {
        Mark { failure_time: Timestamp(1_784_600_001_001), ..crate::event::tests::mark() }
    }

    /// S0-30, S0-32, S0-33: the operation as configured, with its own parameters and no others.
    #[test]
    fn a_request_has_the_documented_keys_and_no_other() {
        let request = |operation, check, check_capacity| {
            let body = of_mark(&mark(), &mark().fqdn, &Recovery { operation, check, check_capacity });
            let stored = Stored::read(&body).unwrap();
            (String::from_utf8(stored.request()).unwrap(), stored.version)
        };
        let recreate = |delete_timeout, force| Operation::Recreate { delete_timeout, force };
        for (got, expected, version) in [
            (request(Operation::Rebuild, None, None), r#"{"recover":{"operation":"REBUILD"}}"#, None),
            (
                request(Operation::Reboot(Some("HARD")), Some(true), None),
                r#"{"recover":{"operation":"REBOOT","operation_params":{"type":"HARD"},"check":true}}"#,
                Some("clustering 1.6"),
            ),
            (request(recreate(None, None), None, None), r#"{"recover":{"operation":"RECREATE"}}"#, None),
            (
                request(recreate(Some(60), Some(true)), Some(false), Some(true)),
                r#"{"recover":{"operation":"RECREATE","operation_params":{"delete_timeout":60,"force_recreate":true},"check":false,"check_capacity":true}}"#,
                Some("clustering 1.7"),
            ),
        ] {
            assert_eq!(got, (expected.to_owned(), version.map(str::to_owned)));
        }
    }

    #[test]
    fn a_test_asks_for_nothing() {
        let stored = Stored::read(&of_test(Timestamp(0))).unwrap();
        assert!(stored.is_test());
        assert_eq!(stored.request(), b"null");
        for text in ["{}", r#"{"node":"compute1","failure_time":"2026-07-21T02:13:21Z"}"#] {
            assert!(Stored::read(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn clocks_may_differ_a_little() {
        let recovery = Recovery { operation: Operation::Rebuild, check: None, check_capacity: None };
        let stored = Stored::read(&of_mark(&mark(), &mark().fqdn, &recovery)).unwrap();
        assert!(stored.is_since("2026-07-21T02:13:21Z") && stored.is_since("2026-07-21T02:12:30"));
        assert!(!stored.is_since("2026-07-21T02:12:20Z") && !stored.is_since(""));
    }
}
