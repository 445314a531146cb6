//! Ids: made once, when the fencing is written, and the same on every retry.

use std::fmt;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::{Uuid, uuid};

use crate::host::HostName;

/// Namespace of the ids that are computed from a host and an operation. Changing it would send old outages again.
const OPERATIONS: Uuid = uuid!("6f1d2c0e-8a57-4b6b-9d39-5e0c7a41b2d8");

/// An id that every controller works out alike: a UUIDv8 of the first bytes of a SHA-256 (RFC 9562, appendix B.2).
pub fn worked_out(namespace: &Uuid, name: &str) -> Uuid {
    let digest = Sha256::new().chain_update(namespace).chain_update(name).finalize();
    Uuid::new_v8(*digest.first_chunk().expect("a SHA-256 has 32 bytes"))
}

/// The text is not a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID")]
pub struct IdError;

/// Id of one fencing: a UUIDv7, so that ids sort by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct FencingId(Uuid);

impl FencingId {
    /// A new id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Reads an id in its hyphenated form.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        Uuid::try_parse(text).map(Self).map_err(|_| IdError)
    }
}

impl fmt::Display for FencingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// Id that Pacemaker's fencer gave to one fencing operation: the same on every controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct OperationId(Uuid);

impl OperationId {
    /// Reads an id in its hyphenated form; no other form, so that one operation has one spelling.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let id = Uuid::try_parse(text).map_err(|_| IdError)?;
        if id.is_nil() || !id.hyphenated().to_string().eq_ignore_ascii_case(text) {
            return Err(IdError);
        }
        Ok(Self(id))
    }

    /// The id in place of an operation's for a node that has joined: computed from its name, without case.
    pub fn of_join(node: &HostName) -> Self {
        let name = format!("{} join", node.as_str().to_ascii_lowercase());
        Self(worked_out(&OPERATIONS, &name))
    }

    /// The id in place of an operation's for `node_fenced`: computed from the host, without case, and the second (epoch) in the CIB.
    pub fn of_node_fenced(host: &HostName, second: i64) -> Self {
        let name = format!("{} node_fenced {second}", host.as_str().to_ascii_lowercase());
        Self(worked_out(&OPERATIONS, &name))
    }
}

impl From<FencingId> for OperationId {
    fn from(fencing: FencingId) -> Self {
        Self(fencing.0)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// Id of one mark, and the idempotency key of its deliveries: the id of the mark's first fencing, or
/// [`MarkId::of_operation`] if there is only evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct MarkId(Uuid);

impl MarkId {
    /// Reads an id in its hyphenated form.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        Uuid::try_parse(text).map(Self).map_err(|_| IdError)
    }

    /// The id of a mark made from evidence: of the host, without case, and the operation, so that every
    /// controller computes the same one.
    pub fn of_operation(host: &HostName, operation: OperationId) -> Self {
        let name = format!("{} {operation}", host.as_str().to_ascii_lowercase());
        Self(worked_out(&OPERATIONS, &name))
    }
}

impl MarkId {
    /// The id of a mark made from `node_fenced`: of the host and the second (epoch) in the CIB, the same on all
    /// controllers.
    pub fn of_node_fenced(host: &HostName, second: i64) -> Self {
        Self(OperationId::of_node_fenced(host, second).0)
    }

    /// Whether it was computed from evidence, not taken from a fencing.
    pub fn is_worked_out(self) -> bool {
        self.0.get_version_num() == 8
    }
}

/// Id of an entry of the register that is neither a fencing nor a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NoteId(Uuid);

impl NoteId {
    /// A new id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Reads an id in its hyphenated form.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        Uuid::try_parse(text).map(Self).map_err(|_| IdError)
    }
}

impl fmt::Display for NoteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl From<FencingId> for MarkId {
    fn from(first: FencingId) -> Self {
        Self(first.0)
    }
}

impl fmt::Display for MarkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_carries_the_id_of_its_first_fencing() {
        let fencing = FencingId::generate();
        assert_eq!(MarkId::from(fencing).to_string(), fencing.to_string());
        assert_eq!(FencingId::parse(&fencing.to_string()), Ok(fencing));
        assert_eq!(MarkId::parse("compute1"), Err(IdError));
    }

    const OPERATION: &str = "e19eab25-6556-4644-89e9-f9bf9b151b87";

    /// A known answer, computed by another program: a change would send outages again under another id.
    #[test]
    fn every_controller_arrives_at_the_same_id() {
        let id = |host: &str, operation: &str| {
            let operation = OperationId::parse(operation).unwrap();
            MarkId::of_operation(&HostName::parse(host).unwrap(), operation).to_string()
        };
        assert_eq!(id("compute1", OPERATION), "ccf6fb09-2f88-89f5-9ac6-8079e9b47cea");
        assert_eq!(id("COMPUTE1", &OPERATION.to_uppercase()), id("compute1", OPERATION));
        assert_ne!(id("compute2", OPERATION), id("compute1", OPERATION));
        assert_ne!(id("compute1", "e19eab25-6556-4644-89e9-f9bf9b151b88"), id("compute1", OPERATION));
    }

    #[test]
    fn an_operation_has_one_spelling() {
        assert_eq!(OperationId::parse(&OPERATION.to_uppercase()).unwrap().to_string(), OPERATION);
        let braced = format!("{{{OPERATION}}}");
        let nil = "00000000-0000-0000-0000-000000000000";
        for bad in ["", "(none)", nil, &OPERATION.replace('-', ""), &braced, &format!("urn:uuid:{OPERATION}")]
        {
            assert_eq!(OperationId::parse(bad), Err(IdError), "{bad}");
        }
    }
}
