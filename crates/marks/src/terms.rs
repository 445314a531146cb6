//! A route's terms: its conditions for a mark beyond its turn. Pure: the time is an argument.

use std::time::Duration;

use crate::delivery::Delivery;
use crate::mark::MarkRow;
use crate::time::Timestamp;

/// The word of a hold of a mark whose host is back: only who insists releases it, since that host lives.
pub const RETURNED: &str = "returned";
/// The word of a hold by age, which ends when the clock is corrected.
pub const STALE: &str = "stale";

/// A route's conditions for a mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// `after`: another route comes first.
    pub after: Option<After>,
    /// `if-returned`: what happens to a mark whose host is back before the route got it.
    pub if_returned: IfReturned,
    /// `stale-after`: a mark that was not sent within this time after its host failed is held.
    pub stale_after: Option<Duration>,
    /// It reports a return, which must not be sent once the host has failed again.
    pub notifies_return: bool,
    /// Each of its returns ends what its own mark began. Otherwise the return of a host's newest mark stands for all.
    pub ends_each: bool,
}

/// Another route that comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Its name.
    pub route: String,
    /// This long after a mark was made it is sent all the same.
    pub limit: Duration,
}

/// What happens to a mark that was not sent before its host came back (design, section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfReturned {
    /// It is sent: the host's instances died all the same.
    #[default]
    Deliver,
    /// It is held: the controller might act on a host that is well.
    Hold,
    /// It is cancelled.
    Cancel,
}

impl IfReturned {
    /// Every word of the configuration.
    pub const WORDS: [(&str, Self); 3] =
        [("deliver", Self::Deliver), ("hold", Self::Hold), ("cancel", Self::Cancel)];
}

/// The terms' decision on a delivery whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may be sent.
    Go,
    /// It is held until an operator releases it: a machine word and a sentence.
    Hold(&'static str, String),
    /// It ends: a machine word and a sentence.
    Cancel(&'static str, String),
}

impl Terms {
    /// The decision on a delivery now. An operator's release overrides conditions that held when it was given.
    pub fn ruling(&self, mark: &MarkRow, delivery: &Delivery, now: Timestamp) -> Ruling {
        let is_news = |at: &Timestamp| delivery.released_at.is_none_or(|released| *at > released);
        match (mark.return_known_at.filter(is_news), self.if_returned) {
            (Some(_), IfReturned::Hold) => return Ruling::Hold(RETURNED, returned(mark, delivery)),
            (Some(_), IfReturned::Cancel) => return Ruling::Cancel(RETURNED, returned(mark, delivery)),
            _ => {}
        }
        match self.stale_after {
            Some(limit) if delivery.released_at.is_none() && now.since(mark.failure_time) > limit => {
                Ruling::Hold(
                    STALE,
                    format!("it failed more than {} s ago{}", limit.as_secs(), doubt(delivery)),
                )
            }
            _ => Ruling::Go,
        }
    }
}

fn returned(mark: &MarkRow, delivery: &Delivery) -> String {
    let node = &mark.node;
    format!("{node} came back before route {} got its mark{}", delivery.route, doubt(delivery))
}

/// The operator has to know this before a decision.
fn doubt(delivery: &Delivery) -> &'static str {
    if delivery.ambiguous > 0 { "; an earlier attempt may have arrived" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::tests::delivery as to;
    use crate::mark::tests::row;

    const FAILED: Timestamp = Timestamp(1_000_000);

    fn mark(return_known_at: Option<Timestamp>) -> MarkRow {
        MarkRow { failure_time: FAILED, returned_at: return_known_at, return_known_at, ..row() }
    }

    fn delivery(released_at: Option<Timestamp>, ambiguous: u32) -> Delivery {
        Delivery { released_at, ambiguous, ..to("recovery") }
    }

    fn word(ruling: &Ruling) -> String {
        match ruling {
            Ruling::Go => "go".to_owned(),
            Ruling::Hold(kind, _) => format!("hold {kind}"),
            Ruling::Cancel(kind, _) => format!("cancel {kind}"),
        }
    }

    #[test]
    fn a_host_that_is_back_is_sent_held_or_cancelled_as_configured() {
        for (_, if_returned) in IfReturned::WORDS {
            let terms = Terms { if_returned, ..Terms::default() };
            let of = |back| word(&terms.ruling(&mark(back), &delivery(None, 0), FAILED));
            let expected = match if_returned {
                IfReturned::Deliver => "go",
                IfReturned::Hold => "hold returned",
                IfReturned::Cancel => "cancel returned",
            };
            assert_eq!((of(Some(FAILED)).as_str(), of(None).as_str()), (expected, "go"));
        }
    }

    #[test]
    fn what_is_stale_is_held_and_no_sooner() {
        let terms = Terms { stale_after: Some(Duration::from_secs(60)), ..Terms::default() };
        let after = |seconds| {
            let now = FAILED + Duration::from_secs(seconds);
            word(&terms.ruling(&mark(None), &delivery(None, 0), now))
        };
        assert_eq!((after(60).as_str(), after(61).as_str()), ("go", "hold stale"));
    }

    /// The broken variants: the same delivery without an operator's release, and a host that came back after the release.
    #[test]
    fn what_an_operator_released_goes_whatever_the_terms_were() {
        let (released, late) = (FAILED + Duration::from_secs(1), FAILED + Duration::from_secs(2));
        for (_, if_returned) in IfReturned::WORDS {
            let terms = Terms { if_returned, stale_after: Some(Duration::ZERO), ..Terms::default() };
            let of = |back, released| terms.ruling(&mark(Some(back)), &delivery(released, 0), late);
            assert_eq!([of(FAILED, Some(released)), of(released, Some(released))], [Ruling::Go, Ruling::Go]);
            assert_ne!(of(FAILED, None), Ruling::Go);
            assert_eq!(of(late, Some(released)) == Ruling::Go, if_returned == IfReturned::Deliver);
        }
    }

    #[test]
    fn the_operator_is_shown_that_it_may_have_arrived() {
        let terms = Terms { if_returned: IfReturned::Hold, ..Terms::default() };
        for (ambiguous, expected) in [(0, false), (1, true)] {
            let Ruling::Hold(_, sentence) =
                terms.ruling(&mark(Some(FAILED)), &delivery(None, ambiguous), FAILED)
            else {
                panic!("it is held")
            };
            assert_eq!(sentence.contains("may have arrived"), expected, "{sentence}");
        }
    }
}
