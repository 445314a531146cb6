//! What a mode does, as data: what is written and how that ends. Pure.

use marks::time::Timestamp;

use super::body::Stored;
use super::object::{Object, Turn, Whose, done, gone, life};
use crate::driver::Outcome;

/// A mode: a row of the table of modes.
pub(super) struct Row {
    /// Whether it is about the host's Machine, not about its Node.
    pub(super) is_of_machine: bool,
    /// What the account must be able to do, as RBAC names it: verb, group, and resource with its part.
    pub(super) rights: &'static [[&'static str; 3]],
    /// What may be left there of the host, and how somebody undoes it by hand.
    pub(super) undo: &'static str,
    /// How the object changes; `None` if another object is made instead.
    pub(super) change: Option<Change>,
}

/// The change of an object that is there.
pub(super) struct Change {
    /// What is added to the object's path for a change: the name of a part with rights of its own.
    pub(super) part: &'static str,
    /// How the patch is meant.
    pub(super) patch: &'static str,
    /// The outcome where the host has no such object.
    pub(super) unknown: fn(&str) -> Outcome,
    /// For which mark the object was changed.
    pub(super) whose: fn(&Object, &Stored) -> Whose,
    /// The outcome where nothing is left to do for a failure.
    pub(super) standing: fn(&Object, &Stored) -> Option<Outcome>,
    /// What is next for the object of a host that was fenced, and shows no life.
    pub(super) set: fn(&Object, &Case<'_>) -> Turn,
    /// What is next for an object that this mark has changed, after the host's return.
    pub(super) clear: fn(&Object, &Case<'_>) -> Turn,
}

/// A mark whose turn it is.
pub(super) struct Case<'a> {
    pub(super) stored: &'a Stored,
    pub(super) now: Timestamp,
    /// The number of this attempt.
    pub(super) attempt: u32,
    /// The Node beside a Machine, where the server has it too.
    pub(super) node: Option<&'a Object>,
}

impl Change {
    /// The host was fenced.
    pub(super) fn set(&self, object: Option<&Object>, case: &Case<'_>) -> Turn {
        let Some(object) = object else { return (self.unknown)(&case.stored.host).into() };
        let sign = object.sign().max(case.node.and_then(Object::sign));
        let standing = (self.standing)(object, case.stored);
        let ended = standing.or_else(|| life(sign, case.stored, case.now));
        ended.map_or_else(|| (self.set)(object, case), Turn::from)
    }

    /// The host is back: what this mark has changed ends, and nothing else.
    pub(super) fn clear(&self, object: Option<&Object>, case: &Case<'_>) -> Turn {
        let Some(object) = object else { return gone().into() };
        match (self.whose)(object, case.stored) {
            Whose::Ours => (self.clear)(object, case),
            _ => done(object, "left-alone").into(),
        }
    }
}

/// The outcome for a failure where this was done for such a mark; `None` if it is to be done.
pub(super) fn standing(object: &Object, whose: Whose) -> Option<Outcome> {
    let why = match whose {
        Whose::Ours => "",
        Whose::Nobodys => "set-by-another",
        Whose::Later => "overtaken",
        // An earlier mark's of ours is this one's from now on.
        Whose::Earlier => return None,
    };
    Some(done(object, why))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Ten seconds after the failure of [`super::super::object::tests::stored`], at the first attempt.
    pub(in super::super) fn case(stored: &Stored) -> Case<'_> {
        Case { stored, now: Timestamp(1_784_600_010_000), attempt: 1, node: None }
    }
}
