//! Places for connections. The daemon's own work needs descriptors too, so clients have a part of them only, at all doors together.
//! Where there is no place left, the oldest connection gives way that has not asked anything yet.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex};

use nix::sys::resource::{Resource, getrlimit};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::lock::lock;

/// Connections at once at one door.
const AT_ONE: usize = 64;
/// All clients together have one of so many descriptors.
const PART: u64 = 4;
/// One door leaves as many places to the others.
const DOORS: usize = 2;

/// Those of the process.
static PLACES: LazyLock<Arc<Places>> = LazyLock::new(|| Arc::new(Places::with(part_of_descriptors)));

/// The limit may be changed while the daemon runs (prlimit).
fn part_of_descriptors() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
    usize::try_from(limit / PART).unwrap_or(usize::MAX)
}

struct Places {
    /// How many there are in all.
    most: fn() -> usize,
    open: Mutex<Open>,
    freed: Notify,
}

/// The connections, the oldest first.
#[derive(Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Connection>,
}

struct Connection {
    door: u64,
    /// Whether the head of its request has come.
    asks: bool,
    end: CancellationToken,
}

impl Places {
    fn with(most: fn() -> usize) -> Self {
        Self { most, open: Mutex::default(), freed: Notify::new() }
    }
}

impl Open {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn count(&self, of: impl Fn(&Connection) -> bool) -> usize {
        self.all.values().filter(|one| of(one)).count()
    }

    /// Makes room where there is none: the oldest of these that asks nothing ends. `None` if all of them ask.
    fn make_room(&mut self, most: usize, of: impl Fn(&Connection) -> bool) -> Option<()> {
        if self.count(&of) < most {
            return Some(());
        }
        let (&oldest, _) = self.all.iter().find(|(_, one)| !one.asks && of(one))?;
        self.all.remove(&oldest)?.end.cancel();
        Some(())
    }

    /// The door with the most connections that ask nothing.
    fn busiest(&self) -> Option<u64> {
        let silent = |door| self.count(|one| one.door == door && !one.asks);
        self.all.values().filter(|one| !one.asks).map(|one| one.door).max_by_key(|door| silent(*door))
    }
}

/// Where connections come in.
#[derive(Clone)]
pub(crate) struct Door {
    places: Arc<Places>,
    number: u64,
}

impl Door {
    /// One more door of the process.
    pub(crate) fn new() -> Self {
        Self::of(&PLACES)
    }

    fn of(places: &Arc<Places>) -> Self {
        let number = lock(&places.open).number();
        Self { places: Arc::clone(places), number }
    }

    /// A place for a connection; `None` if each one that it could have is taken by a request that is being answered.
    fn take(&self) -> Option<Place> {
        let (most, door) = ((self.places.most)(), self.number);
        let at_one = AT_ONE.min(most / DOORS).max(1);
        let mut open = lock(&self.places.open);
        open.make_room(at_one, |one| one.door == door)?;
        let busiest = open.busiest();
        if open.all.len() >= most.max(1) {
            open.make_room(0, |one| Some(one.door) == busiest)?;
        }
        let (number, end) = (open.number(), CancellationToken::new());
        open.all.insert(number, Connection { door, asks: false, end: end.clone() });
        Some(Place { places: Arc::clone(&self.places), number, end })
    }

    /// A place, as soon as there is one.
    pub(crate) async fn wait(&self) -> Place {
        let mut freed = pin!(self.places.freed.notified());
        loop {
            freed.as_mut().enable();
            if let Some(place) = self.take() {
                return place;
            }
            freed.as_mut().await;
            freed.set(self.places.freed.notified());
        }
    }
}

/// One connection's.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    end: CancellationToken,
}

impl Place {
    /// Cancelled when the connection has to give way.
    pub(crate) fn end(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Its request is there: it gives way to nobody.
    pub(crate) fn asks(&self) {
        if let Some(own) = lock(&self.places.open).all.get_mut(&self.number) {
            own.asks = true;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.open).all.remove(&self.number);
        self.places.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doors<const N: usize>(most: fn() -> usize) -> [Door; N] {
        let places = Arc::new(Places::with(most));
        std::array::from_fn(|_| Door::of(&places))
    }

    fn silent(door: &Door, count: usize) -> Vec<Place> {
        (0..count).map(|_| door.take().expect("the oldest gives way")).collect()
    }

    fn ended(places: &[Place]) -> usize {
        places.iter().filter(|place| place.end.is_cancelled()).count()
    }

    /// The broken variants keep the newest out, or end the newest.
    #[test]
    fn the_oldest_that_asks_nothing_gives_way() {
        let [door] = doors(|| 1000);
        let all = silent(&door, AT_ONE);
        all[0].asks();
        let _next = door.take().unwrap();
        assert_eq!((ended(&all), all[1].end.is_cancelled()), (1, true));
        let more = silent(&door, 1000);
        assert_eq!((ended(&all), ended(&more)), (AT_ONE - 1, 1000 - (AT_ONE - 1)), "the first one asks");
    }

    /// The broken variant ends a request that is being answered.
    #[test]
    fn where_all_ask_nobody_gives_way() {
        let [door] = doors(|| 1000);
        let mut all = silent(&door, AT_ONE);
        all.iter().for_each(Place::asks);
        assert!(door.take().is_none() && ended(&all) == 0);
        all.pop();
        assert!(door.take().is_some());
    }

    /// The broken variants count each door by itself, or end a connection of the quiet door.
    #[test]
    fn all_doors_together_have_a_part_of_the_descriptors() {
        let [loud, other, quiet] = doors(|| 20);
        let own = silent(&quiet, 2);
        let (first, second) = (silent(&loud, 40), silent(&other, 40));
        let left = first.len() + second.len() - ended(&first) - ended(&second);
        assert_eq!((left, ended(&own)), (18, 0));
        assert!(quiet.take().is_some());
    }

    /// A limit that leaves next to nothing still serves.
    #[test]
    fn there_is_one_place_at_least() {
        for most in [|| 0, || 1, || 2, || 3] {
            let [one, other] = doors(most);
            let first = one.take().unwrap();
            assert!(other.take().is_some());
            drop(first);
        }
    }

    #[tokio::test]
    async fn who_waits_has_the_next_place() {
        let [door] = doors(|| 2);
        let first = door.take().unwrap();
        first.asks();
        let waits = tokio::spawn({
            let door = door.clone();
            async move { door.wait().await.number }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waits.await.unwrap() > 0);
    }
}
