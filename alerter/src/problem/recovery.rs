//! What is wrong with the recovery of hosts whose marks were acknowledged. Pure.

use std::time::Duration;

use marks::time::Timestamp;

use super::{Kind, Problem};
use crate::recovery::{Late, Sight, Unanswered};
use crate::words::{counted, named};

/// A Nova that does not answer for a shorter time is no news: it may be restarting.
const PATIENCE: Duration = Duration::from_secs(600);

/// What is wrong with one.
pub(super) fn of(sight: &Sight) -> impl Iterator<Item = Problem> {
    let late = sight.late.as_ref().map(|late| about(sight, late.since, not_recovered(&sight.node, late)));
    let unanswered = sight.unanswered.as_ref();
    late.into_iter().chain(unanswered.map(|gone| about(sight, gone.since, unknown(&sight.node, gone))))
}

fn about(sight: &Sight, since: Timestamp, problem: Problem) -> Problem {
    let subject = Some(sight.mark.to_string());
    Problem { hosts: vec![sight.node.clone()], since: Some(since), subject, ..problem }
}

/// When an instance may be evacuated by hand takes more than a sentence to say: the runbook says it.
fn not_recovered(node: &str, late: &Late) -> Problem {
    let count = counted(late.left.len(), "instance is", "instances are");
    let what = format!("{count} not known to be up after {node} failed: {}", named(&late.left));
    let then = format!(
        "find out in the recovery controller why; `nova-host-alerter show {node}` has the outage, and the runbook not-recovered says when an instance may be evacuated by hand"
    );
    Problem { then, ..Problem::of(Kind::NotRecovered, what) }
}

fn unknown(node: &str, gone: &Unanswered) -> Problem {
    let what = format!("it is not known whether the instances of {node} are up: {}", gone.why);
    Problem { news_at: Some(gone.since + PATIENCE), ..Problem::of(Kind::RecoveryUnknown, what) }
}

#[cfg(test)]
mod tests {
    use marks::id::FencingId;
    use marks::recovery::Tally;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn sight() -> Sight {
        Sight {
            mark: FencingId::generate().into(),
            node: "compute7".into(),
            tally: Tally::default(),
            late: None,
            unanswered: None,
            is_known: true,
        }
    }

    /// The broken variant advises an evacuation: Nova accepts a second one while the first is under way.
    #[test]
    fn what_is_left_is_named_with_what_to_do() {
        assert_eq!(of(&sight()).count(), 0);
        let left = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let gone = Unanswered { since: NOW, why: "HTTP 503".into() };
        let sight = Sight { late: Some(Late { since: NOW, left }), unanswered: Some(gone), ..sight() };
        let [late, unknown] = <[Problem; 2]>::try_from(of(&sight).collect::<Vec<_>>()).unwrap();
        assert_eq!(late.what, "4 instances are not known to be up after compute7 failed: a, b, c and 1 more");
        assert!(!late.then.contains("openstack") && late.not_yet_news(NOW).is_none());
        assert_eq!((unknown.not_yet_news(NOW), unknown.degrades), (Some(PATIENCE), false));
    }
}
