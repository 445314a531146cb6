//! What Masakari's answer means for a mark. Pure.

use super::body::Stored;
use super::row::Row;
use super::row::Unseen;
use crate::driver::{Failure, LOCKED_OUT, Outcome};
use crate::openstack::{described, usual};
use crate::web::Answer;

/// Why Masakari stored nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It has a notification of this host from about that time.
    Duplicate,
    /// The host is on maintenance: Masakari recovers it, or a person or an earlier recovery set that.
    Maintenance,
}

/// Reads the answer to a notification; `stored` is `None` if the stored bytes are none.
///
/// # Errors
/// Masakari knows the host already. It does not say whether by this very notification.
pub(super) fn reply(answer: &Answer, stored: Option<&Stored>) -> Result<Outcome, Doubt> {
    let message = answer.message();
    let is_test = stored.is_some_and(Stored::is_test);
    match doubt(answer.status, &message) {
        Some(doubt) => Err(doubt),
        None if is_test && is_unknown_host(answer.status, &message) => {
            Ok(Outcome::Acknowledged { reference: None })
        }
        None => Ok(outcome(answer, &message, stored)),
    }
}

/// Both meanings of 409 differ in their text alone.
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

fn outcome(answer: &Answer, message: &str, stored: Option<&Stored>) -> Outcome {
    let says = |kind, advice: &str| described("Masakari", answer, kind, advice);
    match answer.status {
        202 => taken(answer, stored),
        400 | 404 if is_unknown_host(answer.status, message) => Outcome::Rejected(says(
            "unknown-host",
            ": no segment has a host of exactly this name: add it there, or set host-name, or its name in host-names",
        )),
        400 if message.starts_with("Malformed request URL") => {
            Outcome::Refused(says("misconfigured", ": check endpoint and project").or_after(LOCKED_OUT))
        }
        _ => usual("Masakari", answer, &[]),
    }
}

/// The notification's id in Masakari, if the answer shows this very one: any web server can answer 202. A repetition
/// finds one that Masakari took all the same.
fn taken(answer: &Answer, stored: Option<&Stored>) -> Outcome {
    let row = Row::read(&answer.json()["notification"]);
    match row.filter(|row| stored.is_some_and(|stored| row.is(stored))) {
        Some(row) => Outcome::Acknowledged { reference: Some(row.uuid) },
        None => Outcome::Unknown(described(
            "Masakari",
            answer,
            "protocol",
            " and did not show our notification: check what the catalog, or endpoint, names",
        )),
    }
}

/// How a doubt ends after Masakari was asked for this very notification. `found`: its id, that there is none, or why that
/// is unknown. `was_ambiguous`: an earlier attempt of this mark may have arrived. That counts only for a duplicate, and
/// only if the user may not read notifications: a lost attempt proves nothing, and a host is on maintenance for many
/// reasons.
pub(super) fn settle(doubt: Doubt, found: Result<Option<String>, Unseen>, was_ambiguous: bool) -> Outcome {
    match (doubt, found) {
        (_, Ok(Some(uuid))) => Outcome::Acknowledged { reference: Some(uuid) },
        (_, Err(Unseen::NotNow(_))) => Outcome::Retry(Failure::new(
            "conflict",
            "Masakari answered 409 and did not show whether it has this notification",
        )),
        (Doubt::Duplicate, Err(Unseen::Hidden(_))) if was_ambiguous => {
            Outcome::Acknowledged { reference: None }
        }
        (Doubt::Duplicate, found) => Outcome::Rejected(Failure::new("duplicate", &duplicate(found))),
        (Doubt::Maintenance, found) => Outcome::Held(Failure::new("maintenance", &maintenance(found))),
    }
}

/// For people: another notification of the host.
fn duplicate(found: Result<Option<String>, Unseen>) -> String {
    match found.map_err(why) {
        Ok(_) => "Masakari has another notification of this host from about that time: check whether it recovered the host, then end the mark".to_owned(),
        Err(why) => format!("Masakari has a notification of this host from about that time, and {why}"),
    }
}

/// For people: a host on maintenance.
fn maintenance(found: Result<Option<String>, Unseen>) -> String {
    match found.map_err(why) {
        Ok(_) => "the host is on maintenance in Masakari, which rejects its notifications: check whether it was recovered".to_owned(),
        Err(why) => format!("the host is on maintenance in Masakari: check whether it was recovered; {why}"),
    }
}

fn why(unseen: Unseen) -> String {
    match unseen {
        Unseen::Hidden(_) => {
            "the user may not read which mark it is for: allow the user to list notifications, segments and hosts".to_owned()
        }
        Unseen::NotNow(outcome) | Unseen::Never(outcome) => {
            let why = outcome.failure().map(|failure| failure.detail.as_str()).unwrap_or_default();
            format!("it could not be read: {why}")
        }
    }
}

/// Why a question found nothing. A 401 to a new token, while other requests are taken, means the access rules of an
/// application credential: Keystone's middleware answers so.
pub(super) fn unseen(answer: &Answer) -> Unseen {
    match usual("Masakari", answer, &[]).of_a_question() {
        outcome if matches!(answer.status, 401 | 403) => Unseen::Hidden(outcome),
        outcome @ Outcome::Retry(_) => Unseen::NotNow(outcome),
        outcome => Unseen::Never(outcome),
    }
}

#[cfg(test)]
mod tests {
    use marks::time::Timestamp;
    use serde_json::json;

    use super::super::body;
    use super::*;
    use crate::web::expected as usual;

    const DUPLICATE: &str = r#"{"conflictingRequest": {"code": 409, "message": "Notification received from host compute1 of type COMPUTE_HOST is duplicate."}}"#;
    const MAINTENANCE: &str = r#"{"conflictingRequest": {"code": 409, "message": "Notification received from host maint1 of type 'COMPUTE_HOST' is ignored as the host is already under maintenance."}}"#;
    const UNKNOWN: &str =
        r#"{"badRequest": {"code": 400, "message": "Host with name nosuch could not be found."}}"#;
    const OTHER_PROJECT: &str = r#"{"badRequest": {"code": 400, "message": "Malformed request URL: URL's project_id 'a' doesn't match Context's project_id 'b'"}}"#;
    const FLAT: &str = r#"{"message": "The server is currently unavailable. <br /><br />\nThe Keystone service is temporarily unavailable.\n\n", "code": "503 Service Unavailable", "title": "Service Unavailable"}"#;

    fn word(reply: &Result<Outcome, Doubt>) -> (&'static str, &'static str) {
        match reply {
            Err(Doubt::Duplicate) => ("doubt", "duplicate"),
            Err(Doubt::Maintenance) => ("doubt", "maintenance"),
            Ok(outcome) => outcome.words(),
        }
    }

    fn stored() -> Stored {
        let host = marks::host::HostName::parse("compute1").unwrap();
        Stored::read(&body::of_mark(&host, Timestamp::from_seconds(1_784_600_001), &[])).unwrap()
    }

    fn of(status: u16, body: &str) -> (&'static str, &'static str) {
        word(&reply(&Answer::of(status, body, None), Some(&stored())))
    }

    /// What Masakari shows of a notification of this time.
    fn row(generated: &str, host_status: &str) -> String {
        let payload = json!({"event": "STOPPED", "cluster_status": "OFFLINE", "host_status": host_status});
        json!({"notification": {"notification_uuid": "9b1ebd5c-0000", "status": "new",
            "generated_time": generated, "payload": payload}})
        .to_string()
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
            (202, DUPLICATE, ("unknown", "protocol")),
            (503, FLAT, ("retry", "unavailable")),
        ] {
            assert_eq!(of(status, body), expected, "{status} {body}");
        }
    }

    /// S1-16: exactly 202 with this very notification acknowledges. The broken variant takes any 202: a web server's,
    /// half a body, another notification.
    #[test]
    fn only_a_notification_that_is_shown_is_acknowledged() {
        let whole = row("2026-07-21T02:13:21.000000", "NORMAL");
        let taken = reply(&Answer::of(202, &whole, None), Some(&stored()));
        let reference = Some("9b1ebd5c-0000".to_owned());
        assert_eq!(taken, Ok(Outcome::Acknowledged { reference }));
        let (half, later) = (&whole[..whole.len() - 9], row("2026-07-21T02:13:22Z", "NORMAL"));
        let (other, unnamed) =
            (row("2026-07-21T02:13:21Z", "UNKNOWN"), whole.replace("notification_uuid", "id"));
        for body in ["", "<html>", "null", "{}", half, &later, &other, &unnamed] {
            assert_eq!(of(202, body), ("unknown", "protocol"), "{body}");
        }
        assert_eq!(word(&reply(&Answer::of(202, &whole, None), None)), ("unknown", "protocol"));
        assert_eq!(of(200, &whole), ("unknown", "protocol"));
        let careless = |status: u16| if status == 202 { "acknowledged" } else { "unknown" };
        assert_ne!(careless(202), of(202, "").0, "the broken variant");
    }

    /// A 409 acknowledges only a notification that Masakari shows, or a duplicate of what may have arrived if the user
    /// may not read. The broken variants take any 409 after an attempt that may have arrived: also for a host on
    /// maintenance since its last recovery, and if the question itself failed.
    #[test]
    fn a_conflict_alone_acknowledges_nothing() {
        let refused = || Outcome::Refused(Failure::new("forbidden", "no"));
        let (hidden, never) = (|| Err(Unseen::Hidden(refused())), || Err(Unseen::Never(refused())));
        let not_now = || Err(Unseen::NotNow(Outcome::Retry(Failure::new("unavailable", ""))));
        for (doubt, unseen) in [(Doubt::Duplicate, "rejected"), (Doubt::Maintenance, "held")] {
            let of = |found, was_ambiguous| settle(doubt, found, was_ambiguous).as_str();
            for was_ambiguous in [false, true] {
                let found = settle(doubt, Ok(Some("u".to_owned())), was_ambiguous);
                assert_eq!(found, Outcome::Acknowledged { reference: Some("u".to_owned()) });
                assert_eq!(of(not_now(), was_ambiguous), "retry");
                assert_eq!(of(Ok(None), was_ambiguous), unseen);
                assert_eq!(of(never(), was_ambiguous), unseen);
            }
            assert_eq!(of(hidden(), false), unseen);
            let careless = |was_ambiguous: bool| if was_ambiguous { "acknowledged" } else { unseen };
            assert_ne!(careless(true), of(Ok(None), true));
            assert_ne!(careless(true), of(never(), true));
        }
        assert_eq!(settle(Doubt::Duplicate, hidden(), true), Outcome::Acknowledged { reference: None });
        assert_eq!(settle(Doubt::Maintenance, hidden(), true).as_str(), "held");
    }

    /// The answers to a question, as a table once more.
    #[test]
    fn a_question_can_always_be_put_again() {
        for status in (0..=1000).filter(|status| *status != 200) {
            let expected = match (status, usual(status)) {
                (401 | 403, outcome) => ("hidden", outcome),
                (_, ("unknown" | "retry", kind)) => ("not now", ("retry", kind)),
                (_, outcome) => ("never", outcome),
            };
            let seen = match unseen(&Answer::of(status, "", None)) {
                Unseen::NotNow(outcome) => ("not now", outcome.words()),
                Unseen::Hidden(outcome) => ("hidden", outcome.words()),
                Unseen::Never(outcome) => ("never", outcome.words()),
            };
            assert_eq!(seen, expected, "{status}");
        }
        let cut_off = crate::web::Fault::Timeout.outcome();
        assert_eq!((cut_off.as_str(), cut_off.clone().of_a_question().as_str()), ("unknown", "retry"));
    }

    /// Only a test may name a host that does not exist: by then token, role, policy and database have all worked.
    #[test]
    fn a_test_ends_where_its_host_is_unknown() {
        let test = Stored::read(&body::of_test(Timestamp(0))).unwrap();
        let of_test = |status, body| word(&reply(&Answer::of(status, body, None), Some(&test))).0;
        assert_eq!(of_test(400, UNKNOWN), "acknowledged");
        assert_eq!(of_test(400, ""), "rejected");
        assert_eq!(of_test(403, UNKNOWN), "refused");
    }
}
