//! What a receiver's answers mean, and what it acted upon. Pure.

use std::fmt;
use std::time::Duration;

use drivers::Outcome;
use serde::{Deserialize, Serialize};

use super::script::{Act, Check, Sending, Wants};

/// Between two attempts where the receiver names no pause; an `http` route begins with it too.
const USUAL: Duration = Duration::from_secs(1);

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// An answer with this status.
    Answer(u16),
    /// A page for people with this status, which acknowledges nothing.
    Page(u16),
    /// None, and why.
    None(String),
    /// Nobody read it.
    Unread,
}

/// A line of the receiver's own list of what it acted upon.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Acted {
    id: String,
    event_type: String,
    hostname: String,
}

/// Whether something was found to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Right,
    Wrong,
    NotChecked,
}

/// What was found by one check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    /// What was sent, and what was expected.
    pub(super) sent: &'static str,
    /// The answers, or why nothing was sent.
    pub(super) came: String,
    /// Whether the answers were right.
    pub(super) answers: Verdict,
    /// Whether the receiver acted as it must.
    pub(super) acted: Verdict,
    /// What is wrong, one sentence each.
    pub(super) wrong: Vec<String>,
}

/// When a message is sent again: where the receiver asks for it, and the patience is not over. `passed` is the time since its
/// first attempt began: slow answers use the patience up too.
pub(super) fn pause(outcome: &Outcome, passed: Duration, patience: Duration) -> Option<Duration> {
    let (Outcome::Retry(failure) | Outcome::Unreachable(failure)) = outcome else { return None };
    let pause = failure.after.unwrap_or(USUAL).max(USUAL);
    (passed.saturating_add(pause) <= patience).then_some(pause)
}

/// What was found. `attempts` has for each message its attempts; `acted` is the receiver's own list, if there is one.
pub(super) fn finding(check: &Check, attempts: &[Vec<Came>], acted: Option<&[Acted]>) -> Finding {
    let of_answers: Vec<String> =
        check.sends.iter().zip(attempts).filter_map(|(sending, came)| wrong_answer(sending, came)).collect();
    let of_acts = acted.map(|acted| wrong_acts(check, acted));
    let verdict = |wrong: &[String]| if wrong.is_empty() { Verdict::Right } else { Verdict::Wrong };
    Finding {
        answers: verdict(&of_answers),
        acted: of_acts.as_deref().map_or(Verdict::NotChecked, verdict),
        wrong: of_answers.into_iter().chain(of_acts.into_iter().flatten()).collect(),
        came: attempts.iter().map(|came| shown(came)).collect::<Vec<_>>().join("; "),
        ..unsent(check, "")
    }
}

/// A check that was not made.
pub(super) fn unsent(check: &Check, why: &str) -> Finding {
    Finding {
        check: check.name,
        sent: check.says,
        came: why.to_owned(),
        answers: Verdict::NotChecked,
        acted: Verdict::NotChecked,
        wrong: Vec::new(),
    }
}

impl Finding {
    /// Of both: what is wrong is wrong, and what was not checked is not right.
    pub(super) fn verdict(&self) -> Verdict {
        match (self.answers, self.acted) {
            (Verdict::Wrong, _) | (_, Verdict::Wrong) => Verdict::Wrong,
            (Verdict::Right, Verdict::Right) => Verdict::Right,
            _ => Verdict::NotChecked,
        }
    }
}

/// `3 times 503, then 202`.
fn shown(attempts: &[Came]) -> String {
    let of = |same: &[Came]| match same.len() {
        1 => same[0].to_string(),
        times => format!("{times} times {}", same[0]),
    };
    attempts.chunk_by(|one, next| one == next).map(of).collect::<Vec<_>>().join(", then ")
}

impl fmt::Display for Came {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(status) => status.fmt(f),
            Self::Page(status) => write!(f, "{status}, a page for people"),
            Self::None(why) => why.fmt(f),
            Self::Unread => "not read".fmt(f),
        }
    }
}

/// The last attempt counts: before it the receiver asked for another.
fn wrong_answer(sending: &Sending, attempts: &[Came]) -> Option<String> {
    let (wants, expected) = (sending.wants, sending.wants.in_words());
    match attempts.last()? {
        Came::Unread => None,
        Came::None(why) => Some(format!("there is no answer: {why}")),
        Came::Page(_) if wants == Wants::Nothing => None,
        Came::Page(status) => Some(format!(
            "the answer is {status} with a page for people (HTML), which acknowledges nothing, expected is {expected}: send no body, or JSON"
        )),
        Came::Answer(status) if wants.takes(*status) => None,
        Came::Answer(status) if (300..400).contains(status) => Some(format!(
            "the answer is {status}: a redirect accepts nothing and is not followed, expected is {expected}"
        )),
        Came::Answer(status @ (401 | 403)) if wants == Wants::Accepted => Some(format!(
            "the answer is {status}, expected is {expected}: check --bearer-file and --secret-file"
        )),
        Came::Answer(status) if attempts.len() > 1 => Some(format!(
            "the answer is still {status} after {} attempts, expected is {expected}",
            attempts.len()
        )),
        Came::Answer(status) => Some(format!("the answer is {status}, expected is {expected}")),
    }
}

impl Wants {
    fn takes(self, status: u16) -> bool {
        let is_accepted = (200..300).contains(&status);
        match self {
            Self::Accepted => is_accepted,
            Self::Rejected => is_rejected(status),
            Self::Ignored => is_accepted || is_rejected(status),
            // The others ask for a repetition.
            Self::Denied => (400..500).contains(&status) && !matches!(status, 408 | 409 | 425 | 429),
            Self::Nothing => true,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Accepted => "2xx",
            Self::Rejected => "400 or 422",
            Self::Ignored => "2xx, 400 or 422",
            Self::Denied => "401, 403 or another 4xx that asks for no repetition",
            Self::Nothing => "nothing",
        }
    }
}

fn is_rejected(status: u16) -> bool {
    matches!(status, 400 | 422)
}

/// Whether everything is in the list that must be there.
pub(super) fn has_all(check: &Check, acted: &[Acted]) -> bool {
    check.acts.iter().all(|act| acted.iter().any(|one| one.is(act)))
}

fn wrong_acts(check: &Check, acted: &[Acted]) -> Vec<String> {
    let own = |one: &&Acted| check.sends.iter().any(|sending| one.has_id(&sending.id.to_string()));
    let own: Vec<&Acted> = acted.iter().filter(own).collect();
    let is_there = |act: &&Act| own.iter().any(|one| one.is(act));
    let all = || check.acts.iter().chain(check.may.iter().filter(is_there));
    let counted = all().filter_map(|act| wrong_count(act, &own));
    let is_expected = |one: &Acted| all().any(|act| one.is(act));
    let unexpected = own.iter().filter(|one| !is_expected(one)).map(|one| {
        format!("the receiver acted upon a {:?} of {:?}, which it must not", one.event_type, one.hostname)
    });
    counted.chain(unexpected).collect()
}

fn wrong_count(act: &Act, own: &[&Acted]) -> Option<String> {
    let times = own.iter().filter(|one| one.is(act)).count();
    let wrong = match times {
        1 => return None,
        0 => "did not act upon".to_owned(),
        times => format!("acted {times} times upon"),
    };
    Some(format!("the receiver {wrong} the {} {} of {}, expected is once", act.event_type, act.id, act.host))
}

impl Acted {
    fn has_id(&self, id: &str) -> bool {
        self.id.eq_ignore_ascii_case(id)
    }

    /// Upper and lower case of a host's name are the same.
    fn is(&self, act: &Act) -> bool {
        self.has_id(&act.id.to_string())
            && self.event_type == act.event_type
            && self.hostname.eq_ignore_ascii_case(&act.host)
    }
}
