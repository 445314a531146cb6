//! What this product changes outside of itself. Each driver and `setup` list their writes, and `docs/writes.md` shows all
//! of them: a test compares.

use std::fmt;

use reqwest::Method;

/// One write: what it changes, what guards it, and how it is undone.
#[derive(Debug)]
pub struct Write {
    /// The change.
    pub what: What,
    /// What must hold before it is done.
    pub guard: &'static str,
    /// How an operator undoes it.
    pub undo: &'static str,
}

/// A change.
#[derive(Debug)]
pub enum What {
    /// A request to an OpenStack service, and its effect.
    Request(&'static Request, &'static str),
    /// Something else.
    Other(&'static str),
}

/// A request that changes something in an OpenStack service.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its path behind the service's address, with capitals for the variable parts.
    pub path: &'static str,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(Request { method, path }, what) => write!(f, "`{method} {path}`: {what}"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl Write {
    /// Its row of the page.
    pub fn row(&self) -> String {
        format!("| {} | {} | {} |", self.what, self.guard, self.undo)
    }
}
