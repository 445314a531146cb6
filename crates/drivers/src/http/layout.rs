//! How a body is laid out.

use crate::event::Event;
use crate::event::template::Template;

/// How a body is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The standard event.
    #[default]
    Standard,
    /// The standard event with the extensions.
    Extended,
    /// By the operator's template.
    Template(Template),
}

impl Layout {
    /// The body of an event.
    pub(super) fn write(&self, event: Event<'_>) -> Vec<u8> {
        match self {
            Self::Standard => event.bytes(),
            Self::Extended => event.extended(),
            Self::Template(template) => template.write(&event),
        }
    }
}
