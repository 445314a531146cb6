//! What became of a notification: whether Masakari recovered the host. Pure.

use std::time::Duration;

use marks::time::Timestamp;

use super::body::Stored;
use super::lookup::ago;
use super::row::Row;
use crate::driver::{Failure, Outcome};

/// What Masakari's notifications of the host mean for the mark. A recovery that takes longer than `within` hangs:
/// Masakari never resumes one whose engine died.
pub(super) fn outcome(rows: &[Row], stored: &Stored, within: Duration, now: Timestamp) -> Outcome {
    let ours = || rows.iter().filter(|row| row.is(stored));
    let is = |wanted: &'static str| move |row: &&Row| row.status == wanted;
    // Somebody sent it again after the first had failed.
    let later = rows.iter().filter(|row| row.is_failure() && row.is_after(stored)).find(is("finished"));
    if let Some(row) = later {
        return finished(row);
    }
    // Two controllers may have sent it at the same moment, and Masakari may have taken both.
    if let Some(row) = ours().find(|row| row.is_open()) {
        return open(row, stored, within, now);
    }
    let over = |word| ours().find(is(word));
    if let Some(row) = over("finished") {
        return finished(row);
    }
    match over("failed").or_else(|| over("ignored")).or_else(|| ours().next()) {
        Some(row) => Outcome::Rejected(failure(row, stored)),
        None => Outcome::Rejected(Failure::new(
            "not-found",
            &format!(
                "Masakari does not have the notification of {}: check there whether it recovered the host",
                stored.host
            ),
        )),
    }
}

fn finished(row: &Row) -> Outcome {
    Outcome::Acknowledged { reference: Some(row.uuid.clone()) }
}

/// What an unfinished notification means.
pub(super) fn open(row: &Row, stored: &Stored, within: Duration, now: Timestamp) -> Outcome {
    let since = ago(row.created.unwrap_or(row.generated), now);
    let (uuid, status, host) = (&row.uuid, &row.status, &stored.host);
    if Duration::from_secs(since) <= within {
        let says = format!("Masakari recovers {host}: its notification {uuid} is {status}");
        return Outcome::Wait(Failure::new("recovering", &says));
    }
    let says = format!(
        "Masakari has not finished the recovery of {host}: notification {uuid} is {status} for {since} s; check Masakari's engine, and evacuate the rest by hand"
    );
    Outcome::Rejected(Failure::new("recovery-hangs", &says))
}

fn failure(row: &Row, stored: &Stored) -> Failure {
    let (uuid, host) = (&row.uuid, &stored.host);
    match row.status.as_str() {
        "failed" => Failure::new(
            "recovery-failed",
            &format!(
                "Masakari failed to recover {host}: see `openstack notification show {uuid}`, and evacuate the rest by hand"
            ),
        ),
        "ignored" => Failure::new(
            "recovery-ignored",
            &format!(
                "Masakari accepted notification {uuid} of {host} and ignored it: enable the host's segment, and evacuate the host by hand"
            ),
        ),
        _ => Failure::new(
            "recovery-unclear",
            &format!(
                "Masakari shows an unknown status for notification {uuid} of {host}: check there whether it recovered the host"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: i64 = 1_784_600_001;
    const WITHIN: Duration = Duration::from_secs(1800);

    fn stored() -> Stored {
        let body = super::super::body::of_mark(
            &marks::host::HostName::parse("c1").unwrap(),
            Timestamp::from_seconds(AT),
            &[],
        );
        Stored::read(&body).unwrap()
    }

    fn row(after: i64, status: &str) -> Row {
        let (uuid, status, generated) = (format!("a{after}"), status.to_owned(), AT + after);
        Row {
            uuid,
            status,
            payload: stored().payload,
            generated,
            created: Some(AT + after + 5),
            changed: None,
        }
    }

    /// The outcome and its word, after so many seconds.
    fn of(rows: &[Row], after: i64) -> (&'static str, &'static str) {
        let outcome = outcome(rows, &stored(), WITHIN, Timestamp::from_seconds(AT + after));
        (outcome.as_str(), outcome.failure().map_or("", |failure| failure.kind))
    }

    #[test]
    fn every_status_has_its_outcome() {
        for (status, soon, late) in [
            ("new", ("wait", "recovering"), ("rejected", "recovery-hangs")),
            ("running", ("wait", "recovering"), ("rejected", "recovery-hangs")),
            ("error", ("wait", "recovering"), ("rejected", "recovery-hangs")),
            ("finished", ("acknowledged", ""), ("acknowledged", "")),
            ("failed", ("rejected", "recovery-failed"), ("rejected", "recovery-failed")),
            ("ignored", ("rejected", "recovery-ignored"), ("rejected", "recovery-ignored")),
            ("FINISHED", ("rejected", "recovery-unclear"), ("rejected", "recovery-unclear")),
        ] {
            assert_eq!((of(&[row(0, status)], 60), of(&[row(0, status)], 7200)), (soon, late), "{status}");
        }
        assert_eq!(of(&[], 60), ("rejected", "not-found"));
        assert_eq!(of(&[row(0, "new")], 1805).0, "wait", "the time counts from when Masakari took it");
        assert_eq!(of(&[row(0, "new")], 1806).0, "rejected");
        assert_eq!(of(&[row(0, "new")], -3600).0, "wait", "a clock that is slow");
    }

    /// Both of two that were taken at once count; the broken variant reads the first alone.
    #[test]
    fn a_recovery_is_over_when_all_of_ours_are() {
        let both = |one, other| of(&[row(0, one), row(0, other)], 60);
        assert_eq!(both("finished", "running").0, "wait");
        assert_eq!(both("failed", "error").0, "wait");
        assert_eq!(both("failed", "finished").0, "acknowledged");
        assert_eq!(both("ignored", "failed").1, "recovery-failed");
        assert_eq!(of(&[row(0, "finished")], 60).0, "acknowledged", "the broken variant");
    }

    /// An operator sends it again, and that one is finished.
    #[test]
    fn a_later_recovery_of_the_host_will_do() {
        assert_eq!(of(&[row(0, "failed"), row(600, "finished")], 900).0, "acknowledged");
        assert_eq!(of(&[row(0, "failed"), row(600, "running")], 900).1, "recovery-failed");
        let mut back = row(600, "finished");
        back.payload["event"] = "STARTED".into();
        assert_eq!(of(&[row(0, "failed"), back], 900).1, "recovery-failed", "it only came back");
    }
}
