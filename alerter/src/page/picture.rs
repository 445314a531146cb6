//! What the page shows, read through a connection of its own: never more often than once a second, however many look.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use marks::delivery::{Delivery, State};
use marks::journal::{Journal, JournalError, MarkRow, Recent, Role};
use marks::time::Timestamp;

use crate::control::api::Daemon;
use crate::control::server;
use crate::metrics::{Figures, breakers};
use crate::policy::{self, Hold};
use crate::shared::Shared;
use crate::timeline::Episode;

/// The last days.
pub(super) const SPAN: Duration = Duration::from_secs(7 * 86_400);
/// So many marks are read, open ones and others each; the rest is counted.
const MOST: u32 = 2000;
/// The least time between two looks at the journal.
const PACE: Duration = Duration::from_secs(1);
/// At most a tenth of a processor is used for looking.
const SHARE: u32 = 10;

/// Everything at one moment.
pub(super) struct Picture {
    pub(super) now: Timestamp,
    pub(super) figures: Arc<Figures>,
    /// Of the daemon, or why the journal cannot be read.
    pub(super) daemon: Result<Daemon, String>,
    /// The word of each route's endpoint, as in the metrics.
    pub(super) breakers: BTreeMap<String, &'static str>,
    /// Open marks, the oldest first.
    pub(super) open: Vec<Open>,
    pub(super) episodes: Vec<Episode>,
}

/// An open mark.
pub(super) struct Open {
    pub(super) recent: Recent,
    pub(super) state: State,
    pub(super) hold: Option<Held>,
}

/// Why it is held.
pub(super) struct Held {
    /// A word of the policy, or of a route's terms.
    pub(super) word: String,
    /// Whose terms hold it, where it is not the policy.
    pub(super) route: Option<String>,
    pub(super) why: Option<String>,
    /// What to do.
    pub(super) advice: String,
    pub(super) since: Timestamp,
    pub(super) until: Option<Timestamp>,
}

/// Who looks finds the newest picture here.
pub(super) struct Desk {
    shared: Arc<Shared>,
    journal: Arc<Mutex<Option<Journal>>>,
    newest: tokio::sync::Mutex<Option<(Instant, Arc<Picture>)>>,
}

impl Desk {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, journal: Arc::default(), newest: tokio::sync::Mutex::default() }
    }

    /// The newest picture. Whoever comes while one is made waits for that one.
    pub(super) async fn picture(&self) -> Arc<Picture> {
        let mut newest = self.newest.lock().await;
        if let Some((good_until, picture)) = &*newest
            && Instant::now() < *good_until
        {
            return Arc::clone(picture);
        }
        let (shared, journal) = (Arc::clone(&self.shared), Arc::clone(&self.journal));
        let begun = Instant::now();
        let made = tokio::task::spawn_blocking(move || Picture::take(&shared, &journal));
        let picture = Arc::new(made.await.expect("a panic anywhere ends the whole daemon"));
        let rest = (begun.elapsed() * SHARE).max(PACE);
        *newest = Some((begun + rest, Arc::clone(&picture)));
        picture
    }
}

impl Picture {
    fn take(shared: &Shared, kept: &Mutex<Option<Journal>>) -> Self {
        let mut kept = kept.lock().expect("a panic anywhere ends the whole daemon");
        let (now, figures, breakers) = (Timestamp::now(), shared.figures(), breakers(shared));
        match read(shared, &mut kept, now) {
            Ok((daemon, recent)) => {
                let episodes = recent.iter().map(episode).collect();
                let is_open = |recent: &Recent| recent.mark.settled.is_none();
                let open = recent.into_iter().filter(is_open).map(Open::of).collect();
                Self { now, figures, daemon: Ok(daemon), breakers, open, episodes }
            }
            Err(why) => {
                *kept = None;
                let (open, episodes) = (Vec::new(), Vec::new());
                Self { now, figures, daemon: Err(why.to_string()), breakers, open, episodes }
            }
        }
    }
}

fn read(
    shared: &Shared,
    kept: &mut Option<Journal>,
    now: Timestamp,
) -> Result<(Daemon, Vec<Recent>), JournalError> {
    let journal = match kept {
        Some(journal) => journal,
        None => kept.insert(Journal::open(&shared.settings().store.path, Role::Reader)?),
    };
    Ok((server::daemon(shared, journal, now)?, journal.recent(now - SPAN, MOST)?))
}

impl Open {
    fn of(recent: Recent) -> Self {
        let hold = Held::of(&recent);
        let state = State::of_mark(None, hold.is_some(), &recent.deliveries);
        Self { recent, state, hold }
    }
}

impl Held {
    /// A doubt about the mark itself comes first, then the policy, then a route's own terms.
    fn of(recent: &Recent) -> Option<Self> {
        if recent.mark.settled.is_some() {
            return None;
        }
        Self::by_doubt(&recent.mark).or_else(|| Self::by_policy(recent)).or_else(|| Self::by_terms(recent))
    }

    fn by_doubt(mark: &MarkRow) -> Option<Self> {
        let doubt = *policy::doubts(mark).first()?;
        Some(Self::new(doubt, mark, mark.made_at))
    }

    fn by_policy(recent: &Recent) -> Option<Self> {
        let held = recent.held.as_ref()?;
        let hold = held.words.iter().find_map(|word| Hold::parse(word))?;
        let (why, until) = (Some(held.why.clone()), held.until);
        let advice = hold.advice(&recent.mark.id.to_string(), why.as_deref());
        Some(Self { why, until, advice, ..Self::new(hold, &recent.mark, held.since) })
    }

    fn by_terms(recent: &Recent) -> Option<Self> {
        let is_kept = |one: &&Delivery| one.state == State::Held && !one.waits_in_chain();
        let delivery = recent.deliveries.iter().find(is_kept)?;
        let (last, id) = (delivery.last.as_ref(), recent.mark.id);
        Some(Self {
            word: last.map_or("held", |last| &last.kind).to_owned(),
            route: Some(delivery.route.clone()),
            why: last.map(|last| last.detail.clone()),
            advice: format!(
                "to tell it all the same, run `nova-host-alerter release {id} --reason TEXT`, else `nova-host-alerter unmark {id}`"
            ),
            since: last.map_or(recent.mark.made_at, |last| last.at),
            until: None,
        })
    }

    fn new(hold: Hold, mark: &MarkRow, since: Timestamp) -> Self {
        let (word, advice) = (hold.as_str().to_owned(), hold.advice(&mark.id.to_string(), None));
        Self { word, route: None, why: None, advice, since, until: None }
    }
}

fn episode(recent: &Recent) -> Episode {
    let held = Held::of(recent).map(|held| (held.since, None));
    Episode::of(&recent.mark, &recent.deliveries, held.into_iter().collect())
}
