//! Pacemaker's sentence about a fencing operation. Only it has the action and the id.

use marks::id::OperationId;
use pacemaker::evidence::Action;

/// The parts of `Operation ACTION of TARGET by EXECUTOR for CLIENT@ORIGIN: STATUS[ (REASON)] (ref=UUID)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description<'a> {
    pub(super) action: Action,
    /// A node, "a human", "the cluster".
    pub(super) executor: &'a str,
    pub(super) client: &'a str,
    pub(super) origin: &'a str,
    /// Whether the status is success.
    pub(super) done: bool,
    pub(super) operation: OperationId,
}

impl<'a> Description<'a> {
    /// Reads the sentence about `target`; the reason in it is any text, so the id is the one at the very end.
    pub(super) fn parse(text: &'a str, target: &str) -> Option<Self> {
        let (action, rest) = text.strip_prefix("Operation ")?.split_once(" of ")?;
        let (named, rest) = rest.split_at_checked(target.len())?;
        if !named.eq_ignore_ascii_case(target) {
            return None;
        }
        let (executor, rest) = rest.strip_prefix(" by ")?.split_once(" for ")?;
        let (asked_by, rest) = rest.split_once(": ")?;
        let (client, origin) = asked_by.rsplit_once('@')?;
        let (status, operation) = rest.strip_suffix(')')?.rsplit_once(" (ref=")?;
        Some(Self {
            action: Action::parse(action)?,
            executor,
            client,
            origin,
            done: status == "OK" || status.starts_with("OK ("),
            operation: OperationId::parse(operation).ok()?,
        })
    }
}
