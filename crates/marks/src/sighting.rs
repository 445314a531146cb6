//! A sighting: one successful fencing of a host, reported by a witness other than `fence_mark`.

use crate::host::HostName;
use crate::id::{MarkId, OperationId};
use crate::mark::{Proof, Source};
use crate::time::Timestamp;

/// The witness of a fencing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Witness {
    /// Pacemaker's alert, kept by `alert_mark`.
    Alert(OperationId),
    /// Pacemaker's fencing history.
    History,
    /// `node_fenced` in the CIB, epoch seconds.
    NodeFenced,
}

/// One fencing that was done: never a failed or pending one, never an unfencing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The host's Pacemaker node name.
    pub node: HostName,
    /// The witness.
    pub witness: Witness,
    /// When the operation ended.
    pub at: Timestamp,
    /// Whether an operator's confirmation is its only basis (`stonith_admin --confirm`).
    pub by_human: bool,
}

impl Sighting {
    /// Its key, which distinguishes it from every other sighting.
    pub fn key(&self) -> String {
        let node = self.node.as_str().to_ascii_lowercase();
        match self.witness {
            Witness::Alert(operation) => format!("alert {node} {operation}"),
            Witness::History => format!("history {node} {}", self.at.seconds()),
            Witness::NodeFenced => format!("node-fenced {node} {}", self.at.seconds()),
        }
    }

    /// The id by which every controller knows it. A line of the history has none: each controller dates it by its own clock.
    pub fn operation(&self) -> Option<OperationId> {
        match self.witness {
            Witness::Alert(operation) => Some(operation),
            Witness::NodeFenced => Some(OperationId::of_node_fenced(&self.node, self.at.seconds())),
            Witness::History => None,
        }
    }

    /// The id of the mark that it makes if there is no other.
    pub fn mark_id(&self) -> MarkId {
        match self.witness {
            Witness::Alert(operation) => MarkId::of_operation(&self.node, operation),
            Witness::History | Witness::NodeFenced => MarkId::of_node_fenced(&self.node, self.at.seconds()),
        }
    }

    /// The origin of the mark that it makes.
    pub fn source(&self) -> Source {
        match self.witness {
            Witness::Alert(_) => Source::Alert,
            Witness::History => Source::History,
            Witness::NodeFenced => Source::NodeFenced,
        }
    }

    /// The proof that it gives a mark.
    pub fn proof(&self) -> Proof {
        match self.witness {
            Witness::Alert(_) => Proof::Alert,
            Witness::History => Proof::History,
            Witness::NodeFenced => Proof::NodeFenced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One fencing that three witnesses report has three keys; without the operation's id, the key is the only identity.
    #[test]
    fn the_witness_decides_what_it_is_known_by() {
        let node = HostName::parse("Compute1").unwrap();
        let operation = OperationId::parse("e19eab25-6556-4644-89e9-f9bf9b151b87").unwrap();
        let fenced = MarkId::of_node_fenced(&node, 7);
        for (witness, key, id, source, proof) in [
            (
                Witness::Alert(operation),
                format!("alert compute1 {operation}"),
                MarkId::of_operation(&node, operation),
                Source::Alert,
                Proof::Alert,
            ),
            (Witness::History, "history compute1 7".to_owned(), fenced, Source::History, Proof::History),
            (
                Witness::NodeFenced,
                "node-fenced compute1 7".to_owned(),
                fenced,
                Source::NodeFenced,
                Proof::NodeFenced,
            ),
        ] {
            let sighting = Sighting { node: node.clone(), witness, at: Timestamp(7999), by_human: false };
            assert_eq!((sighting.key(), sighting.mark_id()), (key, id));
            assert_eq!((sighting.source(), sighting.proof()), (source, proof));
        }
    }
}
