//! The host is back: whether this mark caused Masakari's maintenance of it, so that it may end. Pure.

use std::time::Duration;

use marks::time::Timestamp;

use super::body::Stored;
use super::lookup::{Host, ago};
use super::row::Row;
use crate::driver::{Failure, Outcome};
use crate::openstack::{described, usual};
use crate::web::Answer;

/// So long a recovery may take. It begins after three minutes (`wait_period_after_service_update`), and then takes up to a
/// minute and a half for three instances.
const LONGEST: Duration = Duration::from_secs(1800);

/// What is sent. It changes no other field of the host.
pub(super) const CLEARED: &[u8] = br#"{"host": {"on_maintenance": false}}"#;

/// Why the maintenance does not end, if it may not, or if there is none. `rows` are the host's notifications from the time of ours
/// on.
pub(super) fn ended(host: &Host, rows: &[Row], about: &Stored, now: Timestamp) -> Option<Outcome> {
    if !host.on_maintenance {
        return Some(Outcome::Acknowledged { reference: None });
    }
    let is_open = |row: &&Row| row.is_open() && (row.is(about) || row.is_failure());
    if let Some(row) = rows.iter().find(is_open) {
        return Some(open(row, about, now));
    }
    let who = somebody_else(host, rows, about)?;
    let says =
        format!("{} is on maintenance in Masakari, and {who}: end it there if the host is well", host.name);
    Some(Outcome::Rejected(Failure::new("not-ours", &says)))
}

/// What an unfinished notification means. Masakari never resumes one whose engine died.
fn open(row: &Row, stored: &Stored, now: Timestamp) -> Outcome {
    let since = ago(row.created.unwrap_or(row.generated), now);
    let (uuid, status, host) = (&row.uuid, &row.status, &stored.host);
    if Duration::from_secs(since) <= LONGEST {
        let says = format!("Masakari recovers {host}: its notification {uuid} is {status}");
        return Outcome::Wait(Failure::new("recovering", &says));
    }
    let says = format!(
        "Masakari has not finished the recovery of {host}: notification {uuid} is {status} for {since} s; check Masakari's engine, and evacuate the rest by hand"
    );
    Outcome::Rejected(Failure::new("recovery-hangs", &says))
}

/// What put the host on maintenance, if not the notification of this mark.
fn somebody_else(host: &Host, rows: &[Row], about: &Stored) -> Option<String> {
    let is_over = |row: &&Row| matches!(row.status.as_str(), "finished" | "failed");
    if let Some(later) = rows.iter().filter(is_over).find(|row| row.is_failure() && row.is_after(about)) {
        return Some(format!("a later notification ({}) set that", later.uuid));
    }
    let ours: Vec<&Row> = rows.iter().filter(|row| row.is(about)).filter(is_over).collect();
    if ours.is_empty() {
        return Some("no notification of this mark set that".to_owned());
    }
    // Masakari sets maintenance before it begins, and ends the notification when it is done.
    let done = ours.iter().filter_map(|row| row.changed).max();
    let is_later = host.changed.zip(done).is_some_and(|(host, done)| host > done);
    is_later.then(|| "the host was changed after its recovery".to_owned())
}

/// What came of it.
pub(super) fn cleared(answer: &Answer, host: &Host) -> Outcome {
    let message = answer.message();
    let says = |kind, advice: &str| {
        described("Masakari", answer, kind, &format!(" to the end of {}'s maintenance{advice}", host.name))
    };
    match answer.status {
        200 if answer.json()["host"]["on_maintenance"] == false => Outcome::Acknowledged { reference: None },
        // The next attempt asks again, and sees the result.
        200 => Outcome::Unknown(says("protocol", " and did not show the result")),
        409 if message.contains("in-use") => Outcome::Wait(says("recovering", "")),
        404 if message.starts_with("No host") || message.starts_with("No failover segment") => {
            Outcome::Rejected(says("unknown-host", ""))
        }
        _ => usual("Masakari", answer, &[]).of_a_question(),
    }
}
