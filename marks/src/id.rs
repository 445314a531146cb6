//! Ids: made once, when the fencing is written, and the same on every retry.

use std::fmt;

use serde::Serialize;
use uuid::Uuid;

/// A text that is no UUID.
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

/// Id of one mark, and the idempotency key of its deliveries: the id of the mark's first fencing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct MarkId(Uuid);

impl MarkId {
    /// Reads an id in its hyphenated form.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        Uuid::try_parse(text).map(Self).map_err(|_| IdError)
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
}
