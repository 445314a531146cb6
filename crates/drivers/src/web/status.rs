//! The outcome of a status: one table for all. A driver states where its controller differs, and why. Pure.

use std::time::Duration;

use super::answer::SHORTEST_THROTTLE;
use crate::driver::{Failure, LOCKED_OUT, Outcome};

/// How long to wait before the next attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pause {
    /// As the alerter's own schedule has it.
    Usual,
    /// As long as the endpoint asks.
    Wished,
    /// The same, but with a minimum.
    Throttled,
    /// Until somebody lets us in, without notifying the alerter.
    LockedOut,
}

/// Statuses with the same meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    holds: fn(u16) -> bool,
    end: fn(Failure) -> Outcome,
    /// The word for machines.
    pub(crate) word: &'static str,
    pause: Pause,
    /// The text for people behind the status. If it is empty, the caller derives it from the word.
    pub(crate) advice: &'static str,
}

impl Meaning {
    /// The outcome of these statuses, its word, and the wait.
    pub(crate) const fn of(
        holds: fn(u16) -> bool,
        end: fn(Failure) -> Outcome,
        word: &'static str,
        pause: Pause,
    ) -> Self {
        Self { holds, end, word, pause, advice: "" }
    }

    /// The same with this advice.
    pub(crate) const fn saying(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }

    /// The outcome, with `detail` for people. `wish` is the endpoint's `Retry-After`.
    pub(crate) fn outcome(&self, detail: &str, wish: Option<Duration>) -> Outcome {
        let failure = Failure::new(self.word, detail);
        (self.end)(match self.pause {
            Pause::Usual => failure,
            Pause::Wished => failure.after(wish),
            Pause::Throttled => failure.after(Some(wish.unwrap_or_default().max(SHORTEST_THROTTLE))),
            Pause::LockedOut => failure.or_after(LOCKED_OUT),
        })
    }
}

/// The table. None of it acknowledges: the driver knows which status does, and with which body.
static USUAL: &[Meaning] = &[
    Meaning::of(|status| matches!(status, 400 | 413 | 422), Outcome::Rejected, "rejected", Pause::Usual),
    Meaning::of(|status| status == 401, Outcome::Refused, "credentials", Pause::LockedOut),
    Meaning::of(|status| status == 403, Outcome::Refused, "forbidden", Pause::LockedOut),
    Meaning::of(|status| status == 409, Outcome::Retry, "conflict", Pause::Wished),
    Meaning::of(|status| status == 429, Outcome::Retry, "throttled", Pause::Throttled),
    Meaning::of(
        |status| matches!(status, 408 | 425 | 503 | 507 | 520..=529),
        Outcome::Retry,
        "unavailable",
        Pause::Wished,
    ),
    // It may be done all the same.
    Meaning::of(|status| matches!(status, 500 | 502 | 504), Outcome::Unknown, "server-error", Pause::Wished),
    Meaning::of(|status| matches!(status, 300..=399), Outcome::Refused, "redirect", Pause::Usual),
    Meaning::of(|status| matches!(status, 400..=599), Outcome::Refused, "misconfigured", Pause::Usual),
];
/// An unknown status is not a refusal.
static PROTOCOL: Meaning = Meaning::of(|_| true, Outcome::Unknown, "protocol", Pause::Usual);

/// The outcome of a status, with `deltas` before the table.
pub(crate) fn meaning(deltas: &[Meaning], status: u16) -> Meaning {
    *deltas.iter().chain(USUAL).find(|row| (row.holds)(status)).unwrap_or(&PROTOCOL)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The table, written a second time.
    pub(crate) fn expected(status: u16) -> (&'static str, &'static str) {
        match status {
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

    #[test]
    fn each_pause_has_its_reason() {
        let pause = |status, wish: Option<u64>| {
            let outcome = meaning(&[], status).outcome("", wish.map(Duration::from_secs));
            outcome.failure().and_then(|failure| failure.after).map(|after| after.as_secs())
        };
        for status in [409, 500, 503] {
            assert_eq!((pause(status, None), pause(status, Some(7))), (None, Some(7)), "{status}");
        }
        assert_eq!([None, Some(1), Some(60)].map(|wish| pause(429, wish)), [Some(5), Some(5), Some(60)]);
        assert_eq!([401, 403].map(|status| pause(status, Some(7))), [Some(60); 2]);
        assert_eq!([302, 400, 404, 200].map(|status| pause(status, Some(7))), [None; 4]);
    }
}
