//! What a program's end means for a mark. Pure: only this file has the table of exit codes.

use std::time::Duration;

use marks::escapes::without_escapes;
use serde_json::{Map, Value};

use crate::driver::{Failure, LOCKED_OUT, LONGEST_WISH, Outcome, printable};
use crate::program::{End, STDOUT_BYTES};

/// What a code says, as sysexits.h has it: its outcome, the word for machines, and the same for people.
type Code = (i32, fn(Failure) -> Outcome, &'static str, &'static str);

const CODES: [Code; 5] = [
    (65, Outcome::Rejected, "rejected", "the program does not accept this message (65)"),
    (69, Outcome::Unreachable, "unreachable", "the program cannot reach the endpoint (69)"),
    (75, Outcome::Retry, "unavailable", "the endpoint cannot accept the message now, says the program (75)"),
    (77, Outcome::Refused, "credentials", "the endpoint denies the program access (77)"),
    (78, Outcome::Refused, "misconfigured", "the program says that its configuration is wrong (78)"),
];

/// The outcome of a run. Only 0 acknowledges, whatever the program printed.
pub(super) fn outcome(end: &End, words: &Words) -> Outcome {
    let unknown = |kind, clause: &str| Outcome::Unknown(words.failure(kind, clause));
    match end {
        End::Exit(0) => Outcome::Acknowledged { reference: words.reference.clone() },
        End::Exit(code) => match CODES.iter().find(|(known, ..)| known == code) {
            Some((77, outcome, kind, clause)) => outcome(words.failure(kind, clause).or_after(LOCKED_OUT)),
            Some((_, outcome, kind, clause)) => outcome(words.failure(kind, clause)),
            None => unknown(
                "unknown-exit",
                &format!("the program ended with {code}, so it is unknown whether it accepted the message"),
            ),
        },
        End::Signal(signal) => unknown("signal", &format!("the program was ended by signal {signal}")),
        End::Timeout(limit) => {
            let clause = format!("the program did not end within {} s and was killed", limit.as_secs());
            unknown("timeout", &clause)
        }
        End::Lost => unknown("unknown-exit", "the system did not report how the program ended"),
        End::NotStarted { why, passes } => {
            let failure = Failure::new("not-started", &format!("the program cannot be started: {why}"));
            if *passes { Outcome::Retry(failure) } else { Outcome::Refused(failure) }
        }
    }
}

/// What a program printed beside its exit code. It explains an outcome and never changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    reference: Option<String>,
    detail: Option<String>,
    retry_after: Option<Duration>,
    /// The last line of standard error.
    complaint: Option<String>,
    /// Standard output was neither empty nor one JSON object.
    pub(super) is_odd: bool,
}

impl Words {
    /// Reads both outputs. A field of another type counts as missing.
    pub(super) fn read(stdout: &[u8], stderr: &[u8]) -> Self {
        let object = object(stdout);
        let is_odd = object.is_none();
        let object = object.unwrap_or_default();
        Self {
            reference: object.get("reference").and_then(Value::as_str).and_then(text),
            detail: object.get("detail").and_then(Value::as_str).and_then(text),
            retry_after: object.get("retry_after").and_then(Value::as_f64).and_then(wish),
            complaint: String::from_utf8_lossy(stderr).lines().rev().find_map(text),
            is_odd,
        }
    }

    fn failure(&self, kind: &'static str, clause: &str) -> Failure {
        let mut detail = clause.to_owned();
        for more in self.detail.iter().chain(&self.complaint) {
            detail.push_str(": ");
            detail.push_str(more);
        }
        Failure::new(kind, &detail).after(self.retry_after)
    }
}

/// Nothing reads as an empty object.
fn object(stdout: &[u8]) -> Option<Map<String, Value>> {
    if stdout.trim_ascii().is_empty() && stdout.len() <= STDOUT_BYTES {
        return Some(Map::new());
    }
    let fits = Some(stdout).filter(|stdout| stdout.len() <= STDOUT_BYTES)?;
    serde_json::from_slice(fits).ok()
}

fn text(text: &str) -> Option<String> {
    let text = printable(without_escapes(text).trim());
    (!text.trim().is_empty()).then_some(text)
}

fn wish(seconds: f64) -> Option<Duration> {
    let wanted = Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_WISH.as_secs_f64()));
    (!wanted.is_zero()).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The table, written a second time.
    fn expected(code: i32) -> (&'static str, &'static str) {
        match code {
            0 => ("acknowledged", ""),
            65 => ("rejected", "rejected"),
            69 => ("unreachable", "unreachable"),
            75 => ("retry", "unavailable"),
            77 => ("refused", "credentials"),
            78 => ("refused", "misconfigured"),
            _ => ("unknown", "unknown-exit"),
        }
    }

    fn word(outcome: &Outcome) -> (&'static str, &'static str) {
        (outcome.as_str(), outcome.failure().map_or("", |failure| failure.kind))
    }

    #[test]
    fn every_other_end_has_its_outcome() {
        let not_started = |passes| End::NotStarted { why: "Permission denied".to_owned(), passes };
        for (end, expected) in [
            (End::Signal(9), ("unknown", "signal")),
            (End::Timeout(Duration::from_secs(30)), ("unknown", "timeout")),
            (End::Lost, ("unknown", "unknown-exit")),
            (not_started(true), ("retry", "not-started")),
            (not_started(false), ("refused", "not-started")),
        ] {
            assert_eq!(word(&outcome(&end, &Words::default())), expected, "{end:?}");
        }
    }

    #[test]
    fn what_the_program_says_explains_its_code() {
        let words = Words::read(
            br#"{"reference": "job\n7", "detail": "the queue is full", "retry_after": 90, "more": [1]}"#,
            b"first\nthe last \x1b[31mline\n\n",
        );
        assert!(!words.is_odd);
        let failure = outcome(&End::Exit(75), &words).failure().cloned().unwrap();
        assert_eq!(
            failure.detail,
            "the endpoint cannot accept the message now, says the program (75): the queue is full: the last line"
        );
        assert_eq!(failure.after, Some(Duration::from_secs(90)));
        let reference = Some("job 7".to_owned());
        assert_eq!(outcome(&End::Exit(0), &words), Outcome::Acknowledged { reference });
    }

    #[test]
    fn what_is_no_json_object_is_not_used() {
        for odd in
            ["OK", "[]", "\"x\"", "7", "{\"reference\":\"a\"", "{} {}", "{\"reference\":\"a\"}x", "\u{0}"]
        {
            let words = Words::read(odd.as_bytes(), b"");
            assert_eq!(words, Words { is_odd: true, ..Words::default() }, "{odd}");
        }
        for nothing in
            ["", "\n", "{}", " {} \n", "{\"reference\":7,\"detail\":null}", "{\"reference\":\" \\n\"}"]
        {
            assert_eq!(Words::read(nothing.as_bytes(), b"\n \n"), Words::default(), "{nothing}");
        }
        let long = |size: usize| " ".repeat(size - 17) + r#"{"reference":"a"}"#;
        assert!(!Words::read(long(STDOUT_BYTES).as_bytes(), b"").is_odd);
        assert!(Words::read(long(STDOUT_BYTES + 1).as_bytes(), b"").is_odd);
        assert!(Words::read(" ".repeat(STDOUT_BYTES + 1).as_bytes(), b"").is_odd);
    }

    proptest! {
        /// Whatever the program prints, the code alone decides, and what is shown is short and printable.
        #[test]
        fn no_output_changes_the_outcome(stdout in ".{0,300}", text in ".{0,400}", stderr in any::<Vec<u8>>(), code in 0..=255i32) {
            let object = serde_json::json!({ "reference": text, "detail": text, "retry_after": 5 });
            for stdout in [stdout, object.to_string()] {
                let words = Words::read(stdout.as_bytes(), &stderr);
                let outcome = outcome(&End::Exit(code), &words);
                prop_assert_eq!(word(&outcome), expected(code));
                let shown = match &outcome {
                    Outcome::Acknowledged { reference } => reference.clone().unwrap_or_default(),
                    _ => outcome.failure().map(|failure| failure.detail.clone()).unwrap_or_default(),
                };
                prop_assert!(shown.chars().count() <= Failure::DETAIL);
                prop_assert!(shown.chars().all(|c| !c.is_control()));
            }
        }
    }
}
