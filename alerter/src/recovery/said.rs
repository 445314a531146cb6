//! How it is said.

use std::time::Duration;

use marks::recovery::{End, Recovery, Tally};
use marks::time::Timestamp;
use serde::Serialize;

use crate::words::{counted, length, named, utc};
use site::blanked;

/// What became of the instances of a host, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// How many are where.
    #[serde(flatten)]
    pub tally: Tally,
    /// The names of those that are left.
    pub left: Vec<String>,
    /// When Nova was asked last.
    pub asked_at: Option<Timestamp>,
    /// When the last one was found up, if none is left.
    pub last_up: Option<Timestamp>,
    /// How it ended.
    pub ended: Option<End>,
    /// The same in one sentence.
    pub what: String,
}

/// What became of the instances of this host, which failed at `failed`.
pub fn sentence(recovery: &Recovery, node: &str, failed: Timestamp) -> Sentence {
    let last_up = recovery.last_up();
    Sentence {
        tally: recovery.tally(),
        left: shown(recovery.left()),
        asked_at: recovery.asked_at,
        last_up,
        ended: recovery.ended.map(|(end, _)| end),
        what: what(recovery, node, failed),
    }
}

/// Names for people: a tenant chose them.
pub(super) fn shown(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(|name| blanked(name).take(64).collect()).collect()
}

fn what(recovery: &Recovery, node: &str, failed: Timestamp) -> String {
    let tally = recovery.tally();
    if recovery.began_at.is_none() {
        return "Nova has not answered yet".to_owned();
    }
    if matches!(recovery.ended, Some((End::NothingSeen, _))) {
        return format!(
            "Nova has no instance on {node}; it is not known which there were, since Nova first answered after the acknowledgement"
        );
    }
    if recovery.instances.is_empty() {
        return format!("Nova has no instance on {node}");
    }
    let deleted = match tally.deleted {
        0 => String::new(),
        count => format!("; {} deleted", counted(count, "was", "were")),
    };
    let downtime = recovery.last_up().map(|at| last(at, at.since(failed))).unwrap_or_default();
    let reason = recovery.ended.map(|(end, _)| reason(end)).unwrap_or_default();
    format!("{}{}{deleted}{downtime}{reason}", up(tally, node), rest(tally, node, &shown(recovery.left())))
}

fn up(tally: Tally, node: &str) -> String {
    let runs = if tally.all == 1 { "instance runs" } else { "instances run" };
    let elsewhere = format!("{} of {} {runs} elsewhere", tally.elsewhere, tally.all);
    match tally.again {
        0 => elsewhere,
        again => format!("{elsewhere}, {} on {node} again", counted(again, "runs", "run")),
    }
}

/// Why Nova is not asked any more, where that is not seen by the numbers.
fn reason(end: End) -> &'static str {
    match end {
        End::Recovered | End::NothingSeen | End::HostBack => "",
        End::FailedAgain => "; the host failed again: see its later outage",
        End::NotReported => "; the mark ended without an acknowledgement",
        End::GaveUp => "; Nova is not asked any more, since ask-for is over",
    }
}

/// What is left, by name.
fn rest(tally: Tally, node: &str, left: &[String]) -> String {
    let there = (tally.there > 0).then(|| format!("{} still on {node}", counted(tally.there, "is", "are")));
    let moving = (tally.moving > 0).then(|| format!("{} not up yet", counted(tally.moving, "is", "are")));
    match there.into_iter().chain(moving).collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        parts => format!(", {}: {}", parts.join(", "), named(left)),
    }
}

fn last(at: Timestamp, downtime: Duration) -> String {
    format!("; the last was found up at {}, {} after the failure", utc(at), length(downtime))
}

#[cfg(test)]
mod tests {
    use marks::recovery::{Host, Seen};
    use samples::instance as seen;

    use super::*;

    const FAILED: Timestamp = Timestamp(1_800_000_000_000);

    fn after(seconds: u64) -> Timestamp {
        FAILED + Duration::from_secs(seconds)
    }

    #[test]
    fn it_is_said_in_one_sentence() {
        let says = |recovery: &Recovery| sentence(recovery, "compute7", FAILED).what;
        let mut recovery = Recovery::default();
        assert_eq!(says(&recovery), "Nova has not answered yet");
        let ids: Vec<String> = (0..44).map(|number| format!("{number:02}")).collect();
        recovery.note_host(ids.iter().map(|id| seen(id, "c7")).collect(), Host::Away, after(1));
        recovery.note_host(ids[41..].iter().map(|id| seen(id, "c7")).collect(), Host::Away, after(60));
        for id in recovery.unknown() {
            recovery.note_one(&id, "c7", Some(&seen(&id, "c8")), after(60));
        }
        assert_eq!(
            says(&recovery),
            "41 of 44 instances run elsewhere, 3 are still on compute7: web-41, web-42, web-43"
        );
        recovery.note_host(Vec::new(), Host::Away, after(120));
        recovery.note_one("41", "c7", None, after(120));
        assert_eq!(
            says(&recovery),
            "41 of 43 instances run elsewhere, 2 are not up yet: web-42, web-43; 1 was deleted"
        );
        for id in recovery.unknown() {
            recovery.note_one(&id, "c7", Some(&seen(&id, "c8")), after(192));
        }
        let all = "43 of 43 instances run elsewhere; 1 was deleted; the last was found up at 2027-01-15 08:03:12Z, 3 min 12 s after the failure";
        assert_eq!(says(&recovery), all);
        let mut none = Recovery::default();
        none.note_host(Vec::new(), Host::Away, after(1));
        assert_eq!(says(&none), "Nova has no instance on compute7");
    }

    #[test]
    fn a_host_that_is_back_has_its_instances_again() {
        let mut recovery = Recovery::default();
        let both = || ["a", "b"].map(|id| seen(id, "c7")).to_vec();
        recovery.note_host(both(), Host::Away, after(1));
        recovery.note_host(both(), Host::Back { is_up: true }, after(60));
        let says = |recovery: &Recovery| sentence(recovery, "compute7", FAILED).what;
        assert_eq!(says(&recovery), "0 of 2 instances run elsewhere, 2 run on compute7 again");
        let gave_up = Recovery { ended: Some((End::GaveUp, after(60))), ..Recovery::default() };
        let mut left = Recovery { began_at: Some(FAILED), ..gave_up };
        left.note_host(vec![seen("a", "c7")], Host::Away, after(60));
        let all = "0 of 1 instance runs elsewhere, 1 is still on compute7: web-a; Nova is not asked any more, since ask-for is over";
        assert_eq!(says(&left), all);
    }

    /// The broken variant shows a tenant's control characters on root's terminal.
    #[test]
    fn a_name_cannot_write_on_the_terminal() {
        let mut recovery = Recovery::default();
        let name = "\x1b[31mroot\u{202e}".to_owned() + &"x".repeat(300);
        recovery.note_host(vec![Seen { name, ..seen("a", "c7") }], Host::Away, FAILED);
        let said = sentence(&recovery, "compute7", FAILED);
        assert!(!said.what.contains('\x1b') && !said.what.contains('\u{202e}'), "{}", said.what);
        assert_eq!(said.left[0].chars().count(), 64);
    }
}
