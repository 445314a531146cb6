//! What Heat's and Nova's answers mean for a mark. Pure.

use super::body::{OURS, Stored};
use super::found::Found;
use crate::driver::{Failure, Outcome, Step};
use crate::openstack::usual;
use crate::web::{Answer, Meaning, Pause};

/// What came of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Patched {
    /// It is as wanted.
    Done,
    /// It was not touched, or does not exist any more.
    Left,
    /// It was not taken; others may be.
    NotTaken(Outcome),
}

impl Found {
    /// What came of it already; `None` if Heat has to get the change.
    pub(super) fn standing(&self, stored: &Stored) -> Option<Patched> {
        let is_failed = self.status == "CHECK_FAILED";
        let is_own = is_failed && stored.is_own_reason(&self.reason);
        match (stored.step, is_own) {
            _ if stored.is_test() => Some(Patched::Left),
            (Step::Return, true) => None,
            (Step::Return, false) => Some(Patched::Left),
            // Heat has already marked it for this mark.
            (Step::Failure, true) => Some(Patched::Done),
            // Heat made it after the mark, or somebody else has marked it, who must take that back.
            _ if stored.precedes(self.made.as_deref()) => Some(Patched::Left),
            _ if is_failed && !self.reason.starts_with(OURS) => Some(Patched::Left),
            _ => None,
        }
    }
}

/// The sum of all resources.
#[derive(Debug, Default)]
pub(super) struct Tally {
    done: usize,
    left: usize,
    busy: Option<Outcome>,
    not_taken: Option<Outcome>,
}

impl Tally {
    /// Counts one.
    pub(super) fn add(&mut self, patched: Patched) {
        match patched {
            Patched::Done => self.done += 1,
            Patched::Left => self.left += 1,
            Patched::NotTaken(outcome @ Outcome::Retry(_)) => self.busy = Some(outcome),
            Patched::NotTaken(outcome) => self.not_taken = Some(outcome),
        }
    }

    /// Acknowledged only if nothing is left to do.
    pub(super) fn outcome(self) -> Outcome {
        let done = match self.done {
            0 => "no resource".to_owned(),
            1 => "1 resource".to_owned(),
            done => format!("{done} resources"),
        };
        let reference = match self.left {
            0 => done,
            left => format!("{done}, {left} left alone"),
        };
        self.busy.or(self.not_taken).unwrap_or(Outcome::Acknowledged { reference: Some(reference) })
    }
}

/// Heat locks a resource, or its stack, while it works on it.
static DELTAS: &[Meaning] = &[Meaning::of(|status| status == 409, Outcome::Retry, "conflict", Pause::Wished)
    .saying(": the resource is being worked on")];

/// Reads the answer to a PATCH. Its body is `null` where it was taken.
///
/// # Errors
/// Heat would take none of the others either.
pub(super) fn of_patch(answer: &Answer) -> Result<Patched, Outcome> {
    match answer.status {
        200..=299 => Ok(Patched::Done),
        404 if answer.is_absent() => Ok(Patched::Left),
        status => match usual("Heat", answer, DELTAS) {
            outcome if status == 409 || matches!(outcome, Outcome::Rejected(_)) => {
                Ok(Patched::NotTaken(outcome))
            }
            outcome => Err(outcome),
        },
    }
}

/// The outcome after Heat was sent something: the rest is open, whatever the reason.
pub(super) fn left_open(outcome: Outcome, is_over: bool) -> Outcome {
    let why = "the time limit ended before Heat got every resource: the next attempt continues from there";
    match outcome {
        Outcome::Unreachable(_) if is_over => Outcome::Unknown(Failure::new("timeout", why)),
        outcome => outcome.left_open(),
    }
}

/// The configuration names something that does not exist.
pub(super) fn no_such(kind: &'static str, what: &str, key: &str) -> Outcome {
    let why = format!("Heat has no {what}: correct {key}; the other resources of this host are marked");
    Outcome::Rejected(Failure::new(kind, &why))
}

/// The configuration says where it lives, and no service can say whether that is still true.
pub(super) fn no_server(found: &Found) -> Outcome {
    let why = format!(
        "the resource {} is not a server of Nova, so it is unknown whether it is still on this host: find out, and mark it by hand if it failed",
        found.path.trim_start_matches("/stacks/")
    );
    Outcome::Rejected(Failure::new("not-a-server", &why))
}

#[cfg(test)]
mod tests {
    use marks::id::MarkId;
    use marks::mark::Mark;

    use super::super::body;
    use super::*;
    use crate::web::expected as usual;

    const GONE: &str = r#"{"code": 404, "title": "Not Found", "explanation": "x", "error": {"type": "EntityNotFound", "traceback": null, "message": "The Resource (x) could not be found in Stack y."}}"#;
    const BUSY: &str = r#"{"code": 409, "title": "Conflict", "error": {"type": "ActionInProgress", "traceback": null, "message": "Stack x already has an action (UPDATE) in progress."}}"#;

    /// S2-4, S2-5, S2-6, S2-7: any 2xx is an answer, `null` too; which failures block the other resources, and which do
    /// not.
    #[test]
    fn one_that_is_busy_or_not_taken_keeps_no_other_waiting() {
        let of = |status: u16, body: &str| match of_patch(&Answer::of(status, body, None)) {
            Ok(Patched::Done) => ("done", ("", "")),
            Ok(Patched::Left) => ("left", ("", "")),
            Ok(Patched::NotTaken(outcome)) => ("not taken", outcome.words()),
            Err(outcome) => ("ended", outcome.words()),
        };
        for status in 0..=1000 {
            let expected = match status {
                200..=299 => ("done", ("", "")),
                400 | 409 | 413 | 422 => ("not taken", usual(status)),
                _ => ("ended", usual(status)),
            };
            assert_eq!(of(status, "null"), expected, "{status}");
        }
        assert_eq!(of(404, GONE), ("left", ("", "")), "it vanished meanwhile");
        assert_eq!(of(409, BUSY), ("not taken", ("retry", "conflict")));
    }

    /// Only all of them acknowledge; what passes by itself is asked again soon.
    #[test]
    fn the_sum_is_as_bad_as_its_worst_part() {
        let busy = || Patched::NotTaken(Outcome::Retry(Failure::new("conflict", "")));
        let not = || Patched::NotTaken(Outcome::Rejected(Failure::new("rejected", "")));
        let sum = |parts: Vec<Patched>| {
            let mut tally = Tally::default();
            parts.into_iter().for_each(|part| tally.add(part));
            match tally.outcome() {
                Outcome::Acknowledged { reference } => reference.unwrap(),
                other => other.as_str().to_owned(),
            }
        };
        assert_eq!(sum(vec![]), "no resource");
        assert_eq!(sum(vec![Patched::Done, Patched::Done]), "2 resources");
        assert_eq!(sum(vec![Patched::Left, Patched::Done]), "1 resource, 1 left alone");
        assert_eq!(sum(vec![Patched::Done, busy(), not()]), "retry");
        assert_eq!(sum(vec![not(), Patched::Done]), "rejected");
    }

    /// Keystone is away, or too slow for the rest: Heat keeps what it has taken. The broken variant reports "nothing was
    /// sent", and the route would get one mark at a time.
    #[test]
    fn an_endpoint_that_got_something_is_not_unreachable() {
        let away = || Outcome::Unreachable(Failure::new("keystone", ""));
        assert_eq!(left_open(away(), true).words(), ("unknown", "timeout"));
        assert_eq!(left_open(away(), false).words(), ("unknown", "keystone"));
        let careless = |outcome: Outcome, _| outcome;
        assert_eq!(careless(away(), true).words(), ("unreachable", "keystone"));
        let busy = || Outcome::Retry(Failure::new("conflict", ""));
        assert_eq!(left_open(busy(), true), busy());
    }

    const PATCH: Option<Patched> = None;
    const LEAVE: Option<Patched> = Some(Patched::Left);
    const DONE: Option<Patched> = Some(Patched::Done);

    fn stored(step: Step, id: &str) -> Stored {
        let mark = Mark { id: MarkId::parse(id).unwrap(), ..crate::event::tests::mark() };
        let bytes = match step {
            Step::Return => body::of_return(&mark, &mark.fqdn),
            _ => body::of_mark(&mark, &mark.fqdn),
        };
        Stored::read(&bytes, step).unwrap()
    }

    /// S2-8: `false` goes only where this mark's own `true` went, and `true` never overwrites another's. The broken
    /// variant goes by the status alone.
    #[test]
    fn only_our_own_is_taken_back() {
        let (ours, other) = ("0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b", "0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6c");
        let reason = |id: &str| format!("{OURS}{id}: host compute1 failed and was fenced");
        let found = |status: &str, reason: String, made: &str| Found {
            path: String::new(),
            physical: String::new(),
            status: status.to_owned(),
            reason,
            made: Some(made.to_owned()),
            kind: String::new(),
        };
        let (before, after) = ("2026-07-20T00:00:00Z", "2026-07-22T00:00:00Z");
        for (status, reason, made, failure, back) in [
            ("CREATE_COMPLETE", String::new(), before, PATCH, LEAVE),
            ("CREATE_COMPLETE", String::new(), after, LEAVE, LEAVE),
            ("CHECK_FAILED", reason(ours), before, DONE, PATCH),
            ("CHECK_FAILED", reason(other), before, PATCH, LEAVE),
            ("CHECK_FAILED", "seen by somebody".to_owned(), before, LEAVE, LEAVE),
            ("CHECK_COMPLETE", reason(ours), before, PATCH, LEAVE),
            ("UPDATE_FAILED", reason(ours), before, PATCH, LEAVE),
        ] {
            let one = found(status, reason, made);
            assert_eq!(one.standing(&stored(Step::Failure, ours)), failure, "{one:?}");
            assert_eq!(one.standing(&stored(Step::Return, ours)), back, "{one:?}");
        }
        let careless = |one: &Found| one.status == "CHECK_FAILED";
        assert!(careless(&found("CHECK_FAILED", "seen by somebody".to_owned(), before)));
    }
}
