//! Who asks for something through the API, and what they may do.

use marks::fencing::Origin;
use marks::host::HostName;

use crate::config::api::Token;
use crate::words::person;

/// The header in which a command says who runs it.
pub(crate) const OPERATOR: &str = "x-operator";

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// Somebody at the control socket.
    Local {
        /// The kernel's word.
        uid: u32,
        /// Their own, which may be wrong.
        name: Option<String>,
    },
    /// Somebody with a token, at an address of the API.
    Remote {
        /// Whose it is, and what it may do.
        token: Token,
    },
}

impl Caller {
    /// As the history names them.
    pub(super) fn actor(&self) -> String {
        match self {
            Self::Local { uid, name: Some(name) } => format!("{} (uid {uid})", person(name)),
            Self::Local { uid, name: None } => format!("uid {uid}"),
            Self::Remote { token } => format!("{} (API)", token.name),
        }
    }

    /// The origin of a failure that they report. A network proves nothing.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Local { .. } => Origin::Operator,
            Self::Remote { .. } => Origin::Api,
        }
    }

    /// Whether their word alone makes a mark where there is no cluster to ask.
    pub(super) fn is_trusted_alone(&self) -> bool {
        match self {
            Self::Local { .. } => true,
            Self::Remote { token } => token.trust_marks,
        }
    }

    /// Whether they may say anything of this host: a token may of those that its table names.
    pub(super) fn may_mark(&self, node: &HostName) -> bool {
        match self {
            Self::Local { .. } => true,
            Self::Remote { token } => token.hosts.as_ref().is_some_and(|hosts| hosts.covers(node)),
        }
    }

    /// Whether they may speak for this route, or for any where none is named.
    pub(super) fn may_confirm(&self, route: Option<&str>) -> bool {
        match (self, route) {
            (Self::Local { .. }, _) => true,
            (Self::Remote { token }, Some(route)) => token.routes.iter().any(|own| own == route),
            (Self::Remote { token }, None) => !token.routes.is_empty(),
        }
    }
}
