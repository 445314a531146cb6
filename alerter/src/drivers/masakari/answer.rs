//! What Masakari's answer means for a mark. Pure: the table is here and nowhere else.

use super::lookup::Unseen;
use crate::drivers::{Failure, LOCKED_OUT, Outcome};
use crate::openstack::{Answer, Trouble, told, usual};

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// That is what came of it.
    Ended(Outcome),
    /// Masakari knows of the host already; whether by this very notification, it does not say.
    Doubt(Doubt),
}

/// Why Masakari stored nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It has a notification of this host from about that time.
    Duplicate,
    /// The host is on maintenance: it is recovering it already, or somebody, or an earlier recovery, has put it there.
    Maintenance,
}

/// Reads an answer.
pub(super) fn verdict(answer: &Answer, is_test: bool) -> Verdict {
    let message = answer.message();
    match doubt(answer.status, &message) {
        Some(doubt) => Verdict::Doubt(doubt),
        None if is_test && is_unknown_host(answer.status, &message) => {
            Verdict::Ended(Outcome::Acknowledged { reference: None })
        }
        None => Verdict::Ended(outcome(answer, &message)),
    }
}

/// The two meanings of 409 differ in their text alone.
fn doubt(status: u16, message: &str) -> Option<Doubt> {
    match status {
        409 if message.contains("already under maintenance") => Some(Doubt::Maintenance),
        409 if message.contains("is duplicate") => Some(Doubt::Duplicate),
        _ => None,
    }
}

fn is_unknown_host(status: u16, message: &str) -> bool {
    matches!(status, 400 | 404)
        && message.starts_with("Host with name")
        && message.contains("could not be found")
}

fn outcome(answer: &Answer, message: &str) -> Outcome {
    let says = |kind, advice: &str| told("Masakari", answer, kind, advice);
    match answer.status {
        202 => Outcome::Acknowledged { reference: reference(answer) },
        400 | 404 if is_unknown_host(answer.status, message) => Outcome::Rejected(says(
            "unknown-host",
            ": it has no host of this name in any segment, spelled exactly so: add it there, or set host-name or [hosts.names]",
        )),
        400 if message.starts_with("Malformed request URL") => {
            Outcome::Refused(says("misconfigured", ": check endpoint and project").or_after(LOCKED_OUT))
        }
        _ => usual("Masakari", answer),
    }
}

/// Masakari's own name for the notification.
fn reference(answer: &Answer) -> Option<String> {
    let body = answer.json();
    let uuid = body["notification"]["notification_uuid"].as_str()?;
    (uuid.len() <= 36).then(|| uuid.chars().filter(|c| !c.is_control()).collect())
}

/// What a doubt comes to, after Masakari was asked for this very notification: its name, that there is none, or that it
/// could not be learnt. `was_ambiguous`: an earlier attempt of this mark may have arrived. That counts only where Masakari
/// does not show what it has: an attempt that got lost on its way proves nothing.
pub(super) fn settle(doubt: Doubt, found: Result<Option<String>, Unseen>, was_ambiguous: bool) -> Outcome {
    match (doubt, found) {
        (_, Ok(Some(uuid))) => Outcome::Acknowledged { reference: Some(uuid) },
        (_, Err(Unseen::Never(_))) if was_ambiguous => Outcome::Acknowledged { reference: None },
        (Doubt::Duplicate, Ok(None)) => Outcome::Rejected(Failure::new(
            "duplicate",
            "Masakari has another notification of this host from about that time and takes no second one: see there whether it recovered the host, then end the mark",
        )),
        (Doubt::Maintenance, Ok(None)) => Outcome::Held(Failure::new(
            "maintenance",
            "Masakari has the host on maintenance and takes nothing about it: see there whether it was recovered",
        )),
        (Doubt::Duplicate, Err(Unseen::Never(_))) => Outcome::Rejected(Failure::new(
            "duplicate",
            "Masakari has a notification of this host from about that time, and the user may not look which: let it list notifications, segments and hosts",
        )),
        (Doubt::Maintenance, Err(Unseen::Never(_))) => Outcome::Held(Failure::new(
            "maintenance",
            "Masakari has the host on maintenance, and the user may not look whether for this: let it list notifications, segments and hosts, and see there",
        )),
        (_, Err(Unseen::NotNow(_))) => Outcome::Retry(Failure::new(
            "conflict",
            "Masakari answered 409, and did not say whether it has this notification",
        )),
    }
}

/// What a question that was not answered means.
pub(super) fn unasked(trouble: &Trouble) -> Outcome {
    again(trouble.outcome())
}

/// Why a question brought nothing to see.
pub(super) fn unseen(answer: &Answer) -> Unseen {
    match again(usual("Masakari", answer)) {
        outcome if answer.status == 401 => Unseen::NotNow(outcome),
        outcome @ Outcome::Retry(_) => Unseen::NotNow(outcome),
        outcome => Unseen::Never(outcome),
    }
}

/// Unlike a notification, a question can be put again without a thought.
pub(super) fn again(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Unknown(failure) => Outcome::Retry(failure),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUPLICATE: &str = r#"{"conflictingRequest": {"code": 409, "message": "Notification received from host compute1 of type COMPUTE_HOST is duplicate."}}"#;
    const MAINTENANCE: &str = r#"{"conflictingRequest": {"code": 409, "message": "Notification received from host maint1 of type 'COMPUTE_HOST' is ignored as the host is already under maintenance."}}"#;
    const UNKNOWN: &str =
        r#"{"badRequest": {"code": 400, "message": "Host with name nosuch could not be found."}}"#;
    const OTHER_PROJECT: &str = r#"{"badRequest": {"code": 400, "message": "Malformed request URL: URL's project_id 'a' doesn't match Context's project_id 'b'"}}"#;
    const FLAT: &str = r#"{"message": "The server is currently unavailable. <br /><br />\nThe Keystone service is temporarily unavailable.\n\n", "code": "503 Service Unavailable", "title": "Service Unavailable"}"#;

    fn word(verdict: &Verdict) -> (&'static str, &'static str) {
        match verdict {
            Verdict::Doubt(Doubt::Duplicate) => ("doubt", "duplicate"),
            Verdict::Doubt(Doubt::Maintenance) => ("doubt", "maintenance"),
            Verdict::Ended(outcome) => {
                (outcome.as_str(), outcome.failure().map_or("", |failure| failure.kind))
            }
        }
    }

    fn of(status: u16, body: &str) -> (&'static str, &'static str) {
        word(&verdict(&Answer::of(status, body, None), false))
    }

    /// What the table says, written a second time as a table.
    fn expected(status: u16) -> (&'static str, &'static str) {
        match status {
            202 => ("acknowledged", ""),
            300..=399 => ("refused", "redirect"),
            400 | 413 | 422 => ("rejected", "rejected"),
            401 => ("refused", "credentials"),
            403 => ("refused", "forbidden"),
            408 | 425 | 503 | 507 | 520..=529 => ("retry", "unavailable"),
            409 => ("retry", "conflict"),
            429 => ("retry", "throttled"),
            500 | 502 | 504 => ("unknown", "server-error"),
            402..=599 => ("refused", "misconfigured"),
            _ => ("unknown", "protocol"),
        }
    }

    /// S1-16: exactly 202 acknowledges by itself: another 2xx is something else than Masakari.
    #[test]
    fn every_status_has_its_outcome() {
        for status in 0..=1000 {
            assert_eq!(of(status, ""), expected(status), "{status}");
        }
    }

    #[test]
    fn every_message_has_its_meaning() {
        for (status, body, expected) in [
            (409, DUPLICATE, ("doubt", "duplicate")),
            (409, MAINTENANCE, ("doubt", "maintenance")),
            (409, r#"{"conflictingRequest": {"code": 409, "message": "in use"}}"#, ("retry", "conflict")),
            (400, UNKNOWN, ("rejected", "unknown-host")),
            (400, OTHER_PROJECT, ("refused", "misconfigured")),
            (400, "null", ("rejected", "rejected")),
            (500, DUPLICATE, ("unknown", "server-error")),
            (202, DUPLICATE, ("acknowledged", "")),
            (503, FLAT, ("retry", "unavailable")),
        ] {
            assert_eq!(of(status, body), expected, "{status} {body}");
        }
        let uuid = r#"{"notification": {"notification_uuid": "9b1ebd5c-0000"}}"#;
        let reference = Some("9b1ebd5c-0000".to_owned());
        let taken = verdict(&Answer::of(202, uuid, None), false);
        assert_eq!(taken, Verdict::Ended(Outcome::Acknowledged { reference }));
    }

    /// A 409 acknowledges only what Masakari shows, or what may have arrived where it shows nothing. The broken variants
    /// take any, and any after an attempt that may have arrived.
    #[test]
    fn a_conflict_alone_acknowledges_nothing() {
        let never = || Err(Unseen::Never(Outcome::Refused(Failure::new("forbidden", ""))));
        let not_now = || Err(Unseen::NotNow(Outcome::Retry(Failure::new("unavailable", ""))));
        let shown = || Ok(Some("u".to_owned()));
        for (doubt, unseen) in [(Doubt::Duplicate, "rejected"), (Doubt::Maintenance, "held")] {
            let of = |found, was_ambiguous| settle(doubt, found, was_ambiguous).as_str();
            for was_ambiguous in [false, true] {
                let found = settle(doubt, shown(), was_ambiguous);
                assert_eq!(found, Outcome::Acknowledged { reference: Some("u".to_owned()) });
                assert_eq!(of(not_now(), was_ambiguous), "retry");
                assert_eq!(of(Ok(None), was_ambiguous), unseen);
            }
            assert_eq!((of(never(), false), of(never(), true)), (unseen, "acknowledged"));
            let careless = |was_ambiguous: bool| if was_ambiguous { "acknowledged" } else { unseen };
            assert_ne!(careless(true), of(Ok(None), true));
        }
    }

    /// The answers to a question, as a table once more.
    #[test]
    fn a_question_can_always_be_put_again() {
        for status in (0..=1000).filter(|status| *status != 200) {
            let (seen, expected) = match status {
                300..=399 => ("never", ("refused", "redirect")),
                401 => ("not now", ("refused", "credentials")),
                403 => ("never", ("refused", "forbidden")),
                400 | 413 | 422 => ("never", ("rejected", "rejected")),
                408 | 425 | 503 | 507 | 520..=529 => ("not now", ("retry", "unavailable")),
                500 | 502 | 504 => ("not now", ("retry", "server-error")),
                409 => ("not now", ("retry", "conflict")),
                429 => ("not now", ("retry", "throttled")),
                402..=599 => ("never", ("refused", "misconfigured")),
                _ => ("not now", ("retry", "protocol")),
            };
            let (when, outcome) = match unseen(&Answer::of(status, "", None)) {
                Unseen::NotNow(outcome) => ("not now", outcome),
                Unseen::Never(outcome) => ("never", outcome),
            };
            assert_eq!((when, word(&Verdict::Ended(outcome))), (seen, expected), "{status}");
        }
        let cut_off = Trouble::Fault(crate::drivers::http::Fault::Timeout);
        assert_eq!((cut_off.outcome().as_str(), unasked(&cut_off).as_str()), ("unknown", "retry"));
    }

    /// Only a test may be of a host that does not exist: token, role, policy and database were all asked on the way there.
    #[test]
    fn a_test_ends_where_its_host_is_unknown() {
        let of_test = |status, body| word(&verdict(&Answer::of(status, body, None), true)).0;
        assert_eq!(of_test(400, UNKNOWN), "acknowledged");
        assert_eq!(of_test(400, ""), "rejected");
        assert_eq!(of_test(403, UNKNOWN), "refused");
    }
}
