//! The closed set of checks, by the version of the answer's format.

use std::borrow::Cow;

use marks::register::Register;

/// The version of the format and of the set of names: another name is another minor version.
pub(super) const VERSION: &str = "1.0";

/// What is checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The journal can be read and written.
    Store,
    /// The register of this word can be read and written.
    Register(&'static str),
    /// The loop that sends marks keeps running.
    Drain,
    /// Nothing waits for an operator.
    Queue,
    /// A route accepts its marks.
    Driver(String),
    /// No group has more hosts down than its limit allows.
    Storm,
    /// The whole configuration is in force.
    Config,
}

impl Check {
    /// The check of a register; none where there is none.
    pub fn of_register(register: Register) -> Option<Self> {
        (register != Register::None).then(|| Self::Register(register.as_str()))
    }

    /// Its name in the answer.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Store => "store".into(),
            Self::Register(word) => (*word).into(),
            Self::Drain => "drain".into(),
            Self::Queue => "queue".into(),
            Self::Driver(route) => format!("driver.{route}").into(),
            Self::Storm => "storm".into(),
            Self::Config => "config".into(),
        }
    }

    /// Whether it can fail: only faults that keep this process from its own work. A restart would not fix the fault of an endpoint.
    pub fn may_fail(&self) -> bool {
        matches!(self, Self::Store | Self::Register(_) | Self::Drain)
    }

    /// The draft's word for what it is about.
    pub(super) fn component(&self) -> &'static str {
        match self {
            Self::Store | Self::Register(_) => "datastore",
            Self::Drain | Self::Queue | Self::Driver(_) | Self::Storm | Self::Config => "component",
        }
    }
}
