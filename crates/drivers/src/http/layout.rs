//! How a body is laid out.

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;

use crate::event::{self, TimeFormat, cloudevents, doctor};

/// How a body is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The standard event.
    #[default]
    Standard,
    /// The standard event with the extensions.
    Extended,
    /// An event of OPNFV Doctor.
    Doctor,
    /// A CloudEvent.
    CloudEvents {
        /// Its source: a URI, or the path of one.
        source: String,
    },
}

impl Layout {
    /// The body of a failure.
    pub(super) fn failure(&self, mark: &Mark, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_mark(mark, format),
            Self::Extended => event::extended(mark, format),
            Self::Doctor => doctor::of_mark(mark),
            Self::CloudEvents { source } => cloudevents::of_mark(mark, source, format),
        }
    }

    /// The body of a return.
    pub(super) fn back(&self, mark: &Mark, returned: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_return(mark, returned, format),
            Self::Extended => event::extended_return(mark, returned, format),
            Self::Doctor => doctor::of_return(mark, returned),
            Self::CloudEvents { source } => cloudevents::of_return(mark, returned, source, format),
        }
    }

    /// The body of a test.
    pub(super) fn test(&self, id: &MarkId, now: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_test(id, now, format),
            Self::Extended => event::extended_test(id, now, format),
            Self::Doctor => doctor::of_test(id, now),
            Self::CloudEvents { source } => cloudevents::of_test(id, now, source, format),
        }
    }
}
