//! How a body is laid out.

use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::refresh::Refresh;
use marks::time::Timestamp;
use reqwest::Url;

use super::return_url::ReturnUrl;
use crate::driver::Outcome;
use crate::event::template::Template;
use crate::event::{self, TimeFormat, alertmanager, cloudevents, doctor, pagerduty};
use crate::web::BodySecret;

/// Alertmanager keeps alerts in its memory alone.
const REFRESH: Refresh =
    Refresh { every: Duration::from_secs(60), failure: alertmanager::OPEN, back: Duration::from_secs(600) };

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
    /// An event of PagerDuty.
    PagerDuty {
        /// The integration key, which is in no stored body.
        routing_key: BodySecret,
    },
    /// An alert of Alertmanager.
    Alertmanager,
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
            Self::Doctor => doctor::of_mark(mark),
            Self::CloudEvents { source } => cloudevents::of_mark(mark, source, format),
            Self::PagerDuty { .. } => pagerduty::of_mark(mark, format),
            Self::Alertmanager => alertmanager::of_mark(mark),
            Self::Template { template, .. } => template.of_mark(mark, format),
        }
    }

    /// The body of a return.
    pub(super) fn back(&self, mark: &Mark, returned: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_return(mark, returned, format),
            Self::Extended => event::extended_return(mark, returned, format),
            Self::Doctor => doctor::of_return(mark, returned),
            Self::CloudEvents { source } => cloudevents::of_return(mark, returned, source, format),
            Self::PagerDuty { .. } => pagerduty::of_return(mark, returned, format),
            Self::Alertmanager => alertmanager::of_return(mark, returned),
            Self::Template { template, .. } => template.of_return(mark, returned, format),
        }
    }

    /// The body of a test.
    pub(super) fn test(&self, id: &MarkId, now: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_test(id, now, format),
            Self::Extended => event::extended_test(id, now, format),
            Self::Doctor => doctor::of_test(id, now),
            Self::CloudEvents { source } => cloudevents::of_test(id, now, source, format),
            Self::PagerDuty { .. } => pagerduty::of_test(id, now, format),
            Self::Alertmanager => alertmanager::of_test(id, now),
            Self::Template { template, .. } => template.of_test(id, now, format),
        }
    }

    /// The secret that belongs into what is sent.
    pub(super) fn secret(&self) -> Option<&BodySecret> {
        match self {
            Self::PagerDuty { routing_key } => Some(routing_key),
            _ => None,
        }
    }

    /// A stored body as it is sent: with its secret, if it is of the form that has one.
    ///
    /// # Errors
    /// There is no secret.
    pub(super) fn sent(&self, body: &[u8]) -> Result<Vec<u8>, Outcome> {
        match self.secret().filter(|_| pagerduty::is_one(body)) {
            Some(secret) => secret.within(body),
            None => Ok(body.to_vec()),
        }
    }

    /// Where the return of this mark goes, if not to the route's `url`.
    pub(super) fn return_url(&self, id: &MarkId) -> Option<Url> {
        match self {
            Self::Template { return_url: Some(url), .. } => Some(url.of(id)),
            _ => None,
        }
    }

    /// What stays open at the receiver if no return ends it. What a template opens is not known.
    pub(super) fn left_open(&self) -> Option<String> {
        match self {
            Self::PagerDuty { .. } => Some("nothing closes an incident but an operator".to_owned()),
            Self::Alertmanager => {
                let days = REFRESH.failure.as_secs() / 86_400;
                Some(format!("nothing ends an alert before {days} days have passed"))
            }
            _ => None,
        }
    }

    /// How its receiver is kept up to date.
    pub(super) fn refreshed(&self) -> Option<Refresh> {
        (*self == Self::Alertmanager).then_some(REFRESH)
    }
}
