//! What the page shows, read through a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use journal::{Damage, Journal, JournalError, Recent, Role, Rows};
use marks::delivery::State;
use marks::time::Timestamp;

use crate::control::api::Daemon;
use crate::control::status;
use crate::policy::{self, Hold};
use crate::problem::{self, DeliverySight, Finding, Place, Problem};
use crate::state::{self, Figures, Shared};
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
    /// Where an operator has to go.
    pub(super) place: Place,
    /// Fencings without a mark yet.
    pub(super) unmarked: usize,
}

/// An open mark.
pub(super) struct Open {
    pub(super) recent: Recent,
    pub(super) state: State,
    /// What is wrong with it.
    pub(super) problems: Vec<Problem>,
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
            place: state::place(&shared.base.settings()),
            unmarked: 0,
        }
    }

    fn of(shared: &Shared, now: Timestamp, read: Read) -> Self {
        let Rows { sound: recent, damaged } = read.recent;
        let episodes = recent.iter().map(episode).collect();
        let is_open = |recent: &Recent| recent.mark.settled.is_none();
        let place = state::place(&shared.base.settings());
        let of = |recent| Open::of(recent, now, &place);
        let open = recent.into_iter().filter(is_open).map(of).collect();
        let (figures, breakers) = (shared.figures(), breakers(shared));
        Self {
            now,
            figures,
            daemon: Ok(read.daemon),
            breakers,
            open,
            episodes,
            damaged,
            place,
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
    fn of(recent: Recent, now: Timestamp, place: &Place) -> Self {
        let of = |one: Finding| one.problem(&recent.mark, now, place);
        let problems: Vec<Problem> = found(&recent).into_iter().map(of).collect();
        let state = match recent.damaged.is_empty() {
            true => State::of_mark(None, problems.iter().any(|one| one.kind.is_hold()), &recent.deliveries),
            false => State::Quarantined,
        };
        Self { recent, state, problems }
    }
}

/// A doubt about the mark itself comes first, then the policy.
fn found(recent: &Recent) -> Vec<Finding> {
    let mark = &recent.mark;
    let doubt = policy::doubts(mark).first().map(|doubt| Finding::doubt(*doubt, mark.made_at));
    let held = doubt.or_else(|| {
        let held = recent.held.as_ref()?;
        let hold = held.words.iter().find_map(|word| Hold::parse(word))?;
        Some(Finding::held(hold, &held.why, &held.cause, held.since, held.until))
    });
    let deliveries = recent.deliveries.iter().map(DeliverySight::from);
    problem::of_mark(mark, held, !recent.damaged.is_empty(), None, deliveries)
}

fn episode(recent: &Recent) -> Episode {
    let held = found(recent).iter().find_map(Finding::held_since).filter(|_| recent.mark.settled.is_none());
    Episode::of(&recent.mark, &recent.deliveries, held.map(|since| (since, None)).into_iter().collect())
}
