//! How a body is laid out.

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::Url;

use super::return_url::ReturnUrl;
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
    Template {
        /// The template.
        template: Template,
        /// Where returns go, if not to the route's `url`.
        return_url: Option<ReturnUrl>,
    },
}

impl Layout {
    /// The same with the address of returns, where the body is by a template.
    pub(super) fn with_return_url(self, url: Option<ReturnUrl>) -> Self {
        match self {
            Self::Template { template, .. } => Self::Template { template, return_url: url },
            other => other,
        }
    }

    /// The body of a failure.
    pub(super) fn failure(&self, mark: &Mark, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_mark(mark, format),
            Self::Extended => event::extended(mark, format),
            Self::Template { template, .. } => template.of_mark(mark, format),
        }
    }

    /// The body of a return.
    pub(super) fn back(&self, mark: &Mark, returned: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_return(mark, returned, format),
            Self::Extended => event::extended_return(mark, returned, format),
            Self::Template { template, .. } => template.of_return(mark, returned, format),
        }
    }

    /// The body of a test.
    pub(super) fn test(&self, id: &MarkId, now: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_test(id, now, format),
            Self::Extended => event::extended_test(id, now, format),
            Self::Template { template, .. } => template.of_test(id, now, format),
        }
    }

    /// Where the return of this mark goes, if not to the route's `url`.
    pub(super) fn return_url(&self, id: &MarkId) -> Option<Url> {
        match self {
            Self::Template { return_url: Some(url), .. } => Some(url.of(id)),
            _ => None,
        }
    }
}
