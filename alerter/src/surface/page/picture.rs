//! What the page shows, read through a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use journal::{Damage, Journal, JournalError, Recent, Role, Rows};
use marks::delivery::{Delivery, State};
use marks::mark::MarkRow;
use marks::time::Timestamp;

use crate::control::api::Daemon;
use crate::control::status;
use crate::policy::{self, Hold};
use crate::state::{Figures, Shared};
use crate::surface::metrics::breakers;
use crate::surface::timeline::Episode;

/// Who looks does not wait longer than this for a new page.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// The last days.
pub(super) const SPAN: Duration = Duration::from_secs(7 * 86_400);
/// So many marks are read, open ones and others each; the rest is counted.
const MOST: u32 = 2000;

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
    /// Marks whose own row cannot be believed.
    pub(super) damaged: Vec<Damage>,
    /// Fencings without a mark yet.
    pub(super) unmarked: usize,
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

impl Picture {
    /// What there is now. `kept` is the connection, which is opened where it is not.
    pub(super) fn take(shared: &Shared, kept: &mut Option<Journal>) -> Self {
        let now = Timestamp::now();
        match read(shared, kept, now) {
            Ok(read) => Self::of(shared, now, read),
            Err(why) => {
                *kept = None;
                Self::unread(shared, why.to_string())
            }
        }
    }

    /// What is known without the journal.
    pub(super) fn unread(shared: &Shared, why: String) -> Self {
        Self {
            now: Timestamp::now(),
            figures: shared.figures(),
            daemon: Err(why),
            breakers: breakers(shared),
            open: Vec::new(),
            episodes: Vec::new(),
            damaged: Vec::new(),
            unmarked: 0,
        }
    }

    fn of(shared: &Shared, now: Timestamp, read: Read) -> Self {
        let Rows { sound: recent, damaged } = read.recent;
        let episodes = recent.iter().map(episode).collect();
        let is_open = |recent: &Recent| recent.mark.settled.is_none();
        let open = recent.into_iter().filter(is_open).map(Open::of).collect();
        let (figures, breakers) = (shared.figures(), breakers(shared));
        Self {
            now,
            figures,
            daemon: Ok(read.daemon),
            breakers,
            open,
            episodes,
            damaged,
            unmarked: read.unmarked,
        }
    }
}

/// What stands in the journal.
struct Read {
    daemon: Daemon,
    recent: Rows<Recent>,
    unmarked: usize,
}

fn read(shared: &Shared, kept: &mut Option<Journal>, now: Timestamp) -> Result<Read, JournalError> {
    let journal = match kept {
        Some(journal) => journal,
        None => kept.insert(Journal::open(&shared.base.settings().store.path, Role::Reader)?),
    };
    let daemon = status::daemon(shared, journal, now)?;
    let unmarked = journal.unfolded_fencings()?.sound.len();
    Ok(Read { daemon, recent: journal.recent(now - SPAN, MOST)?, unmarked })
}

impl Open {
    fn of(recent: Recent) -> Self {
        let hold = Held::of(&recent);
        let state = match recent.damaged.is_empty() {
            true => State::of_mark(None, hold.is_some(), &recent.deliveries),
            false => State::Quarantined,
        };
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
        let advice = hold.advice(&recent.mark.id.to_string(), held.cause.scope.as_ref());
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
                "to tell it all the same, run `nova-host-alerter release {id} --reason TEXT`, else `nova-host-alerter unmark {id} --reason TEXT`"
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
