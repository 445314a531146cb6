//! The change that Nova is asked for, made of the stored message and the service's state. Pure.

use serde::Serialize;

use super::body::Stored;
use super::service::Service;

/// One call changes all of it, or nothing. Serialised in the order of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    /// Whether Nova counts it as down.
    #[serde(skip_serializing_if = "Option::is_none")]
    forced_down: Option<bool>,
    /// Whether new instances are put there: `enabled` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// The reason for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_reason: Option<String>,
}

impl Change {
    /// The change from the service's present state to the message's.
    pub(super) fn of(stored: &Stored, service: &Service) -> Self {
        match stored.forced_down {
            // Sent even if it is down already: only an answer of Nova acknowledges.
            Some(true) => Self::down(stored.reason_for(service)),
            // Somebody has changed the service since: it may have been forced down by hand.
            Some(false) if !stored.has_disabled(service) => Self::default(),
            Some(false) => Self::up(service.forced_down),
            None => Self::default(),
        }
    }

    fn down(reason: Option<&str>) -> Self {
        let status = reason.map(|_| "disabled");
        Self { forced_down: Some(true), status, disabled_reason: reason.map(str::to_owned) }
    }

    fn up(is_forced_down: bool) -> Self {
        Self { forced_down: is_forced_down.then_some(false), status: Some("enabled"), disabled_reason: None }
    }

    /// Whether everything is as wanted.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this is the service after the change.
    pub(super) fn is_seen_in(&self, service: &Service) -> bool {
        let is_down = self.forced_down.is_none_or(|wanted| wanted == service.forced_down);
        let is_set = self.status.is_none_or(|wanted| (wanted == "disabled") == service.is_disabled);
        is_down
            && is_set
            && (self.disabled_reason.is_none() || self.disabled_reason == service.disabled_reason)
    }

    /// The service's id in Nova, and whether it was left as it was when the host came back.
    pub(super) fn reference(&self, service: &Service) -> String {
        match self.is_nothing() {
            true => format!("{} left-alone", service.id),
            false => service.id.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "nova-host-alerter 2026-07-21T02:13:20Z";
    const EARLIER: &str = "nova-host-alerter 2026-07-20T01:00:00Z";

    fn service(forced_down: bool, disabled: Option<&str>) -> Service {
        let reason = disabled.map(str::to_owned);
        let (id, is_disabled) = ("s".to_owned(), disabled.is_some());
        Service { id, forced_down, is_disabled, disabled_reason: reason, ..Service::default() }
    }

    fn stored(forced_down: bool, disables: bool) -> Stored {
        let mut body = serde_json::json!({"id": "x", "host": "h", "failure_time": "2026-07-21T02:13:20Z", "forced_down": forced_down});
        if disables {
            body["disabled_reason"] = OWN.into();
        }
        Stored::read(body.to_string().as_bytes()).unwrap()
    }

    /// The request, and the reference's suffix.
    fn of(stored: &Stored, forced_down: bool, disabled: Option<&str>) -> (String, String) {
        let service = service(forced_down, disabled);
        let change = Change::of(stored, &service);
        (String::from_utf8(crate::event::bytes(&change)).unwrap(), change.reference(&service))
    }

    #[test]
    fn a_failed_host_is_forced_down_and_disabled_where_it_is_not() {
        let both = format!(r#"{{"forced_down":true,"status":"disabled","disabled_reason":"{OWN}"}}"#);
        let down = r#"{"forced_down":true}"#;
        for (disables, is_down, standing, expected) in [
            (false, false, None, down),
            (false, true, Some("alice"), down),
            (true, false, None, both.as_str()),
            (true, true, Some(OWN), both.as_str()),
            (true, true, Some(EARLIER), both.as_str()),
            (true, false, Some("alice"), down),
            (true, false, Some(""), down),
        ] {
            let (asked, reference) = of(&stored(true, disables), is_down, standing);
            assert_eq!((asked.as_str(), reference.as_str()), (expected, "s"), "{standing:?}");
        }
    }

    /// Only our own change is undone, and only its reason shows that it is ours. One broken variant enables any disabled
    /// service, another forces up any host.
    #[test]
    fn a_host_that_is_back_is_as_it_was() {
        let both = r#"{"forced_down":false,"status":"enabled"}"#;
        for (disables, is_down, standing, expected) in [
            (false, true, None, "{}"),
            (false, true, Some("alice"), "{}"),
            (false, false, None, "{}"),
            (true, true, Some(OWN), both),
            (true, false, Some(OWN), r#"{"status":"enabled"}"#),
            (true, true, Some("alice"), "{}"),
            (true, true, Some(EARLIER), "{}"),
            (true, true, None, "{}"),
            (true, false, Some("alice"), "{}"),
            (true, false, None, "{}"),
        ] {
            let stored = stored(false, disables);
            let (asked, reference) = of(&stored, is_down, standing);
            let expected_reference = if expected == "{}" { "s left-alone" } else { "s" };
            assert_eq!((asked.as_str(), reference.as_str()), (expected, expected_reference), "{standing:?}");
        }
        assert_ne!(Change::up(true), Change::of(&stored(false, true), &service(true, Some("alice"))));
    }

    #[test]
    fn an_answer_shows_the_change_or_it_is_none() {
        let change = Change::of(&stored(true, true), &service(false, None));
        assert!(change.is_seen_in(&service(true, Some(OWN))));
        for other in [service(false, Some(OWN)), service(true, None), service(true, Some("alice"))] {
            assert!(!change.is_seen_in(&other), "{other:?}");
        }
        let change = Change::of(&stored(false, true), &service(true, Some(OWN)));
        assert!(change.is_seen_in(&service(false, None)));
        assert!(!change.is_seen_in(&service(true, None)) && !change.is_seen_in(&service(false, Some(OWN))));
    }
}
