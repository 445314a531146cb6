//! Sightings that wait for a better witness, each since it was first seen here, by the monotonic clock: a time that lies ahead,
//! or a clock that is set, makes none of them wait for longer. A restart starts the wait again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use marks::sighting::Sighting;
use marks::time::Timestamp;

/// A sighting waits for the record of `fence_mark`: Pacemaker reports a fencing at once, and the record comes with a register or a
/// journal that may be busy for some seconds.
pub const EVIDENCE_GRACE: Duration = Duration::from_secs(10);
/// A sighting that was not seen for so long is gone from its source.
const GONE: Duration = Duration::from_secs(3600);

/// One of them.
#[derive(Clone, Debug)]
pub struct Waited {
    /// What waits.
    pub sighting: Sighting,
    /// When it was first seen.
    pub since: Timestamp,
    /// How long it waits at most.
    pub patience: Duration,
    first: Instant,
    last: Instant,
    /// When its host was last a member since.
    up: Instant,
}

impl Waited {
    /// Until when, by the clock as it went when it was first seen.
    pub fn until(&self) -> Timestamp {
        self.since + self.patience
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    all: BTreeMap<String, Waited>,
}

impl Waiting {
    /// How long a sighting has been known here.
    pub fn waited(&self, key: &str, now: Instant) -> Duration {
        self.all.get(key).map_or(Duration::ZERO, |waited| now.saturating_duration_since(waited.first))
    }

    /// When it was first seen, by this controller's clock as it went then; none where it does not wait.
    pub fn first_seen(&self, key: &str) -> Option<Timestamp> {
        self.all.get(key).map(|waited| waited.since)
    }

    /// Whether its host was a member long after that: it is of an outage before that life.
    pub fn was_up(&self, key: &str) -> bool {
        self.all.get(key).is_some_and(|waited| waited.up - waited.first >= EVIDENCE_GRACE)
    }

    /// Its host is a member now.
    pub fn is_up(&mut self, key: &str, now: Instant) {
        self.all.get_mut(key).into_iter().for_each(|waited| waited.up = now);
    }

    /// Has it wait. Says whether it was not known before.
    pub fn wait(
        &mut self,
        sighting: &Sighting,
        wall: Timestamp,
        (now, patience): (Instant, Duration),
    ) -> bool {
        self.all.retain(|_, waited| now.saturating_duration_since(waited.last) < GONE);
        if let Some(known) = self.all.get_mut(&sighting.key()) {
            (known.last, known.patience) = (now, patience);
            return false;
        }
        let sighting = sighting.clone();
        let waited = Waited { sighting, since: wall, patience, first: now, last: now, up: now };
        self.all.insert(waited.sighting.key(), waited).is_none()
    }

    /// It waits no more.
    pub fn forget(&mut self, key: &str) {
        self.all.remove(key);
    }

    /// Every one, by its key.
    pub fn all(&self) -> impl Iterator<Item = &Waited> {
        self.all.values()
    }
}

#[cfg(test)]
mod tests {
    use marks::host::HostName;
    use marks::sighting::Witness;

    use super::*;

    /// S1-16: whatever its time says, a sighting has waited as long as it has been known here.
    #[test]
    fn a_sighting_waits_from_first_sight() {
        let (mut waiting, now, wall) = (Waiting::default(), Instant::now(), Timestamp::from_seconds(1000));
        let node = HostName::parse("compute1").unwrap();
        let at = Timestamp::from_seconds(1_000_000);
        let seen = Sighting { node, witness: Witness::History, at, by_human: false };
        let patience = Duration::from_secs(20);
        let later = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(waiting.waited(&seen.key(), now), Duration::ZERO);
        assert!(waiting.wait(&seen, wall, (now, patience)));
        assert!(!waiting.wait(&seen, wall - patience, (later(5), patience)), "it is known");
        waiting.is_up(&seen.key(), later(5));
        assert!(!waiting.was_up(&seen.key()), "a host that was just fenced may still look so");
        waiting.is_up(&seen.key(), later(12));
        assert!(!waiting.wait(&seen, wall, (later(14), patience)) && waiting.was_up(&seen.key()));
        assert_eq!(waiting.waited(&seen.key(), later(21)), Duration::from_secs(21));
        assert_eq!(waiting.all().map(Waited::until).collect::<Vec<_>>(), [wall + patience]);
        let other = Sighting { at: wall, ..seen.clone() };
        waiting.wait(&other, wall, (later(4000), patience));
        assert_eq!(waiting.all().count(), 1, "what is gone is forgotten");
        waiting.forget(&other.key());
        assert_eq!(waiting.all().count(), 0);
    }
}
