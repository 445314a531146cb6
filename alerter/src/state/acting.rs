//! Until when the alerter may act, for parts that send beside the engine.

use std::time::Duration;

use tokio::sync::watch;

use crate::moment::Moment;

/// The engine's newest word on it.
#[derive(Debug)]
pub struct Acting(watch::Sender<Permit>);

/// For how long, and since when.
#[derive(Clone, Copy, Debug)]
struct Permit {
    at: Moment,
    left: Duration,
}

impl Permit {
    /// By the clock that says more: a machine that was stopped polls first.
    fn holds(&self, now: Moment) -> bool {
        now.since(self.at) < self.left
    }
}

impl Default for Acting {
    /// Not before the engine says so.
    fn default() -> Self {
        Self(watch::Sender::new(Permit { at: Moment::now(), left: Duration::ZERO }))
    }
}

impl Acting {
    /// It may act for so long from now on; not at all with zero.
    pub fn allow(&self, left: Duration) {
        self.0.send_replace(Permit { at: Moment::now(), left });
    }

    /// Whether it may act at this moment.
    pub fn is_allowed(&self) -> bool {
        self.0.borrow().holds(Moment::now())
    }

    /// Returns as soon as it may.
    pub async fn allowed(&self) {
        let mut news = self.0.subscribe();
        let _its_sender_is_here = news.wait_for(|permit| permit.holds(Moment::now())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant goes by the monotonic clock alone, which stands still with the machine.
    #[test]
    fn a_permit_ends_by_either_clock() {
        let (at, left) = (Moment::now(), Duration::from_secs(2));
        let permit = Permit { at, left };
        assert!(permit.holds(at));
        for late in [Moment { instant: at.instant + left, ..at }, Moment { wall: at.wall + left, ..at }] {
            assert!(!permit.holds(late));
        }
        let careless = |late: Moment| late.instant.duration_since(at.instant) < left;
        assert!(careless(Moment { wall: at.wall + left, ..at }));
    }

    #[tokio::test]
    async fn nobody_acts_before_the_engine_allows_it() {
        let acting = Acting::default();
        assert!(!acting.is_allowed());
        acting.allow(Duration::MAX);
        acting.allowed().await;
        assert!(acting.is_allowed());
        acting.allow(Duration::ZERO);
        assert!(!acting.is_allowed());
    }
}
