//! Who writes pages of the register.

use std::fmt;

use super::code::{escape, unescape};

/// The writer of a page: a part of this software, on one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer {
    /// The part.
    pub part: Part,
    /// The controller's name, as the kernel has it.
    pub controller: String,
}

/// A part of this software that writes pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// `fence_mark`: fencings.
    Agent,
    /// The alerter: all that it knows.
    Alerter,
}

impl Part {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Agent, Self::Alerter];

    /// Its word in the register.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Alerter => "alerter",
        }
    }

    /// This part on a controller.
    pub fn on(self, controller: &str) -> Writer {
        Writer { part: self, controller: controller.to_owned() }
    }
}

impl Writer {
    /// Reads the displayed form; `None` if it is no writer's.
    pub fn parse(text: &str) -> Option<Self> {
        let (part, controller) = text.split_once('.')?;
        let part = Part::ALL.into_iter().find(|it| it.as_str() == part)?;
        let controller = unescape(controller).filter(|name| !name.is_empty())?;
        Some(Self { part, controller })
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.part.as_str(), escape(&self.controller))
    }
}
