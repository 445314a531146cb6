//! How a body is laid out.

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;

use crate::event::template::Template;
use crate::event::{self, TimeFormat};

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
    /// The body of a failure.
    pub(super) fn failure(&self, mark: &Mark, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_mark(mark, format),
            Self::Extended => event::extended(mark, format),
            Self::Template(template) => template.of_mark(mark, format),
        }
    }

    /// The body of a return.
    pub(super) fn back(&self, mark: &Mark, returned: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_return(mark, returned, format),
            Self::Extended => event::extended_return(mark, returned, format),
            Self::Template(template) => template.of_return(mark, returned, format),
        }
    }

    /// The body of a test.
    pub(super) fn test(&self, id: &MarkId, now: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_test(id, now, format),
            Self::Extended => event::extended_test(id, now, format),
            Self::Template(template) => template.of_test(id, now, format),
        }
    }
}
