//! A stored message of a `nova` route: a host's compute service, and its wanted state. Pure.

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};
use site::text_if;

use super::service::Service;
use crate::event::{NO_HOST, bytes};

/// The reason for disabling a service, unless the route sets another.
pub(super) const REASON: &str = "nova-host-alerter: fenced, down since {failure_time}";
/// Our name: every reason must have it.
pub(super) const WHO: &str = "nova-host-alerter";
/// The place of the failure's time in a reason: the time distinguishes the reasons of two marks.
const TIME: &str = "{failure_time}";
/// Longest reason that Nova takes, in characters.
const LONGEST: usize = 255;

/// Serialised in the order of its fields. Nova never gets it: the request depends on the service's present state too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    /// The mark's id.
    id: String,
    /// The host, as Nova knows it.
    pub(super) host: String,
    /// The failure's time.
    failure_time: String,
    /// The service's wanted state; `None` for a test.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) forced_down: Option<bool>,
    /// The reason for disabling the service, if this mark disables it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) disabled_reason: Option<String>,
}

/// The message of a mark: its host is down, or is back.
pub(super) fn of_mark(mark: &Mark, host: &HostName, forced_down: bool, reason: Option<&str>) -> Vec<u8> {
    let failure_time = mark.failure_time.rfc3339_seconds();
    let disabled_reason = reason.map(|reason| reason.replace(TIME, &failure_time));
    let (id, host) = (mark.id.to_string(), host.as_str().to_owned());
    bytes(&Stored { id, host, failure_time, forced_down: Some(forced_down), disabled_reason })
}

/// The message of its return, made of the failure's message: it undoes what that one did, whatever the route is now.
pub(super) fn of_return(stored: &[u8]) -> Option<Vec<u8>> {
    let stored = Stored::read(stored).filter(|stored| stored.forced_down == Some(true))?;
    Some(bytes(&Stored { forced_down: Some(false), ..stored }))
}

/// A test: a host that cannot exist, and no change.
pub(super) fn of_test(id: &MarkId, now: Timestamp) -> Vec<u8> {
    let (id, failure_time) = (id.to_string(), now.rfc3339_seconds());
    bytes(&Stored { id, host: NO_HOST.to_owned(), failure_time, forced_down: None, disabled_reason: None })
}

/// Reads the reason for disabling a service.
pub(super) fn reason(text: &str) -> Result<String, String> {
    let length = text.replace(TIME, &Timestamp(0).rfc3339_seconds()).chars().count();
    let rest = text.replacen(TIME, "", 1);
    let is_good = length <= LONGEST
        && text.contains(WHO)
        && text.contains(TIME)
        && !rest.contains(['{', '}'])
        && !text.contains(char::is_control);
    let why = format!(
        "must be one line of at most {LONGEST} characters that names {WHO}, with {TIME} in it once and no other braces"
    );
    text_if(is_good, text, &why)
}

impl Stored {
    /// Reads it; `None` if this driver did not make it.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Whether it is a test.
    pub(super) fn is_test(&self) -> bool {
        self.forced_down.is_none()
    }

    /// Whether this very mark has disabled the service.
    pub(super) fn has_disabled(&self, service: &Service) -> bool {
        service.is_disabled
            && self.disabled_reason.is_some()
            && self.disabled_reason == service.disabled_reason
    }

    /// The reason for disabling it. Another's reason stays, or it would be lost. The reason of an earlier mark of this
    /// host is replaced, or the mark that ends it would be unknown.
    pub(super) fn reason_for(&self, service: &Service) -> Option<&str> {
        let standing = service.disabled_reason.as_deref().unwrap_or_default();
        let own = self.disabled_reason.as_deref()?;
        (!service.is_disabled || self.is_like(own, standing)).then_some(own)
    }

    /// Whether two reasons differ in their time alone.
    fn is_like(&self, own: &str, standing: &str) -> bool {
        let time = own
            .split_once(&self.failure_time)
            .and_then(|(before, after)| standing.strip_prefix(before)?.strip_suffix(after));
        time.is_some_and(|time| Timestamp::parse(time).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::tests::mark;

    fn stored(forced_down: bool, reason: Option<&str>) -> Stored {
        let mark = mark();
        Stored::read(&of_mark(&mark, &mark.fqdn, forced_down, reason)).unwrap()
    }

    #[test]
    fn the_body_says_what_becomes_of_whose_service() {
        let mark = mark();
        let golden = concat!(
            r#"{"id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","host":"Compute1.my.cloud.com","#,
            r#""failure_time":"2026-07-21T02:13:20Z","forced_down":true,"#,
            r#""disabled_reason":"nova-host-alerter: fenced, down since 2026-07-21T02:13:20Z"}"#
        );
        let body = of_mark(&mark, &mark.fqdn, true, Some(REASON));
        assert_eq!(String::from_utf8(body).unwrap(), golden);
        let body = String::from_utf8(of_mark(&mark, &mark.node, false, None)).unwrap();
        assert!(
            body.ends_with(r#""host":"compute1","failure_time":"2026-07-21T02:13:20Z","forced_down":false}"#)
        );
    }

    /// The broken variant makes it of the route as it is now, and then no longer recognises the old reason.
    #[test]
    fn a_return_is_of_what_was_sent() {
        let mark = mark();
        let failed = of_mark(&mark, &mark.node, true, Some(REASON));
        let back = of_mark(&mark, &mark.node, false, Some(REASON));
        assert_eq!(of_return(&failed), Some(back.clone()));
        assert_ne!(of_mark(&mark, &mark.fqdn, false, Some("nova-host-alerter, {failure_time}")), back);
        let standard = crate::event::Event::of_mark(&mark, crate::event::TimeFormat::Epoch).bytes();
        for other in [&standard[..], b"", &of_test(&mark.id, Timestamp(0)), &back] {
            assert_eq!(of_return(other), None);
        }
    }

    /// Another driver's stored bytes under this route's name are not ours. The broken variant forces down any `host` in
    /// them.
    #[test]
    fn the_bytes_of_others_are_not_read() {
        let standard = crate::event::Event::of_mark(&mark(), crate::event::TimeFormat::Epoch).bytes();
        let like_ours =
            br#"{"id":"x","host":"compute1","failure_time":"t","forced_down":true,"evacuate":true}"#;
        for body in [&standard[..], b"", b"{}", b"null", like_ours] {
            assert_eq!(Stored::read(body), None);
        }
        assert!(serde_json::from_slice::<serde_json::Value>(like_ours).unwrap()["forced_down"] == true);
    }

    #[test]
    fn a_test_is_of_no_host_and_wants_nothing() {
        let test = Stored::read(&of_test(&mark().id, Timestamp(0))).unwrap();
        assert!(test.is_test() && test.host == NO_HOST && !stored(true, None).is_test());
        assert_eq!((test.forced_down, test.disabled_reason), (None, None));
    }

    #[test]
    fn a_reason_names_who_and_when() {
        assert!(reason(REASON).is_ok());
        let long = |filling: usize| format!("{WHO} {TIME} {}", "x".repeat(filling));
        let rest = LONGEST - (WHO.len() + " 2026-07-21T02:13:20Z ".len());
        assert!(reason(&long(rest)).is_ok() && reason(&long(rest + 1)).is_err());
        for text in [
            "",
            WHO,
            "down since {failure_time}",
            "nova-host-alerter {failure_time} {failure_time}",
            "nova-host-alerter {failure_time} {id}",
            "nova-host-alerter {failure_time}\n",
        ] {
            assert!(reason(text).unwrap_err().starts_with("must be one line"), "{text}");
        }
    }

    fn service(disabled_reason: Option<&str>) -> Service {
        let reason = disabled_reason.map(str::to_owned);
        let (id, forced_down, is_disabled) = ("s".to_owned(), true, true);
        Service { id, forced_down, is_disabled, disabled_reason: reason, ..Service::default() }
    }

    /// The broken variant goes by the name in a reason: a colleague who quotes it loses the rest of the text.
    #[test]
    fn whose_reason_stands_there_is_known() {
        let own = "nova-host-alerter: fenced, down since 2026-07-21T02:13:20Z";
        let earlier = "nova-host-alerter: fenced, down since 2026-07-20T01:00:00Z";
        let noted = format!("{own}; alice: keep it, bad memory");
        let stored = stored(true, Some(REASON));
        for (standing, is_this_marks, gives_way) in [
            (Some(own), true, true),
            (Some(earlier), false, true),
            (Some(noted.as_str()), false, false),
            (Some("nova-host-alerter: fenced, down since "), false, false),
            (Some("alice: bad memory"), false, false),
            (Some(""), false, false),
            (None, false, false),
        ] {
            let service = service(standing);
            assert_eq!(stored.has_disabled(&service), is_this_marks, "{standing:?}");
            assert_eq!(stored.reason_for(&service).is_some(), gives_way, "{standing:?}");
        }
        assert!(noted.contains(WHO), "the broken variant takes this one for ours");
        let enabled = Service { is_disabled: false, ..service(None) };
        assert_eq!(stored.reason_for(&enabled), Some(own));
        assert!(!stored.has_disabled(&Service { is_disabled: false, ..service(Some(own)) }));
    }
}
