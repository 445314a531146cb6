//! What is wrong with the recovery of hosts whose marks were acknowledged. Pure.

use std::time::Duration;

use super::{Kind, Problem};
use crate::recovery::{Sight, Trouble};
use crate::words::{counted, named};

/// A Nova that does not answer for a shorter time is no news: it may be restarting.
const PATIENCE: Duration = Duration::from_secs(600);

/// What is wrong with one, if anything is.
pub(super) fn of(sight: &Sight) -> Option<Problem> {
    let node = &sight.node;
    let about = |since, problem| Problem {
        hosts: vec![node.clone()],
        since: Some(since),
        subject: Some(sight.mark.to_string()),
        ..problem
    };
    Some(match sight.trouble.as_ref()? {
        Trouble::Late { since, left } => {
            let count = counted(left.len(), "instance does", "instances do");
            let what = format!("{count} not run on another host after {node} failed: {}", named(left));
            let then = format!(
                "check the recovery controller, and evacuate each of them by hand (`openstack server evacuate`) if the host is surely off; `nova-host-alerter show {node}` has the outage"
            );
            about(*since, Problem { then, ..Problem::of(Kind::NotRecovered, what) })
        }
        Trouble::Unknown { since, why } => {
            let what = format!("it is not known whether the instances of {node} run elsewhere: {why}");
            let news_at = Some(*since + PATIENCE);
            about(*since, Problem { news_at, ..Problem::of(Kind::RecoveryUnknown, what) })
        }
    })
}

#[cfg(test)]
mod tests {
    use marks::id::FencingId;
    use marks::recovery::Tally;
    use marks::time::Timestamp;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn sight(trouble: Option<Trouble>) -> Sight {
        Sight {
            mark: FencingId::generate().into(),
            node: "compute7".into(),
            tally: Tally::default(),
            trouble,
        }
    }

    /// `nova host-evacuate NAME` takes every host whose name begins so. The broken variant advises it.
    #[test]
    fn what_is_left_is_named_with_what_to_do() {
        assert_eq!(of(&sight(None)), None);
        let left = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let late = of(&sight(Some(Trouble::Late { since: NOW, left }))).unwrap();
        assert_eq!(
            late.what,
            "4 instances do not run on another host after compute7 failed: a, b, c and 1 more"
        );
        assert!(!late.then.contains("host-evacuate") && late.not_yet_news(NOW).is_none());
        let unknown = of(&sight(Some(Trouble::Unknown { since: NOW, why: "HTTP 503".into() }))).unwrap();
        assert_eq!((unknown.not_yet_news(NOW), unknown.degrades), (Some(PATIENCE), false));
    }
}
