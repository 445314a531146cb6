//! What became of a notification: whether Masakari recovered the host. Pure.

use std::time::Duration;

use marks::time::Timestamp;

use super::body::Stored;
use super::lookup::ago;
use super::row::Row;
use crate::driver::{Failure, Outcome};

/// What it means for the mark that Masakari has these notifications of its host. A recovery that takes longer than `within`
/// hangs: Masakari never goes on with one whose engine died.
pub(super) fn outcome(rows: &[Row], told: &Stored, within: Duration, now: Timestamp) -> Outcome {
    let ours = || rows.iter().filter(|row| row.is(told));
    let is = |wanted: &'static str| move |row: &&Row| row.status == wanted;
    // Somebody told it once more, after the first had failed.
    let later = rows.iter().filter(|row| row.is_failure() && row.is_after(told)).find(is("finished"));
    if let Some(row) = later {
        return finished(row);
    }
    // Two controllers may have told it at the same moment, and Masakari may have taken both.
    if let Some(row) = ours().find(|row| row.is_open()) {
        return open(row, told, within, now);
    }
    let over = |word| ours().find(is(word));
    if let Some(row) = over("finished") {
        return finished(row);
    }
    match over("failed").or_else(|| over("ignored")).or_else(|| ours().next()) {
        Some(row) => Outcome::Rejected(failure(row, told)),
        None => Outcome::Rejected(Failure::new(
            "not-found",
            &format!(
                "Masakari has no such notification of {}: see there whether it recovered the host",
                told.host
            ),
        )),
    }
}

fn finished(row: &Row) -> Outcome {
    Outcome::Acknowledged { reference: Some(row.uuid.clone()) }
}

/// What an unfinished notification means.
pub(super) fn open(row: &Row, told: &Stored, within: Duration, now: Timestamp) -> Outcome {
    let since = ago(row.created.unwrap_or(row.generated), now);
    let (uuid, status, host) = (&row.uuid, &row.status, &told.host);
    if Duration::from_secs(since) <= within {
        let says = format!("Masakari recovers {host}: its notification {uuid} is {status}");
        return Outcome::Wait(Failure::new("recovering", &says));
    }
    let says = format!(
        "Masakari does not come to an end with {host}: its notification {uuid} is {status} since {since} s: look at its engine, and evacuate by hand what is still there"
    );
    Outcome::Rejected(Failure::new("recovery-hangs", &says))
}

fn failure(row: &Row, told: &Stored) -> Failure {
    let (uuid, host) = (&row.uuid, &told.host);
    match row.status.as_str() {
        "failed" => Failure::new(
            "recovery-failed",
            &format!(
                "Masakari failed to recover {host}: see `openstack notification show {uuid}`, and evacuate by hand what is still there"
            ),
        ),
        "ignored" => Failure::new(
            "recovery-ignored",
            &format!(
                "Masakari took notification {uuid} of {host} and ignored it: enable the host's segment, and evacuate the host by hand"
            ),
        ),
        _ => Failure::new(
            "recovery-unclear",
            &format!(
                "Masakari has another word for what became of notification {uuid} of {host} than is known here"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: i64 = 1_784_600_001;
    const WITHIN: Duration = Duration::from_secs(1800);

    fn told() -> Stored {
        let body = super::super::body::of_mark(
            &marks::host::HostName::parse("c1").unwrap(),
            Timestamp::from_seconds(AT),
            &[],
        );
        Stored::read(&body).unwrap()
    }

    fn row(after: i64, status: &str) -> Row {
        let (uuid, status, generated) = (format!("a{after}"), status.to_owned(), AT + after);
        Row { uuid, status, payload: told().payload, generated, created: Some(AT + after + 5), changed: None }
    }

    /// The outcome and its word, after so many seconds.
    fn of(rows: &[Row], after: i64) -> (&'static str, &'static str) {
        let outcome = outcome(rows, &told(), WITHIN, Timestamp::from_seconds(AT + after));
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
        assert_eq!(of(&[row(0, "new")], 1805).0, "wait", "from when Masakari took it");
        assert_eq!(of(&[row(0, "new")], 1806).0, "rejected");
        assert_eq!(of(&[row(0, "new")], -3600).0, "wait", "a clock that is slow");
    }

    /// Both of two that were taken at once count; the broken variant looks at the first.
    #[test]
    fn a_recovery_is_over_when_all_of_ours_are() {
        let both = |one, other| of(&[row(0, one), row(0, other)], 60);
        assert_eq!(both("finished", "running").0, "wait");
        assert_eq!(both("failed", "error").0, "wait");
        assert_eq!(both("failed", "finished").0, "acknowledged");
        assert_eq!(both("ignored", "failed").1, "recovery-failed");
        assert_eq!(of(&[row(0, "finished")], 60).0, "acknowledged", "the broken variant");
    }

    /// An operator tells it again, and that is finished.
    #[test]
    fn a_later_recovery_of_the_host_will_do() {
        assert_eq!(of(&[row(0, "failed"), row(600, "finished")], 900).0, "acknowledged");
        assert_eq!(of(&[row(0, "failed"), row(600, "running")], 900).1, "recovery-failed");
        let mut back = row(600, "finished");
        back.payload["event"] = "STARTED".into();
        assert_eq!(of(&[row(0, "failed"), back], 900).1, "recovery-failed", "it only came back");
    }
}
