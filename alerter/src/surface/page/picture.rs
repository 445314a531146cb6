//! What the page shows, read through a connection of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use journal::{Damage, Done, Journal, Recent, Role, Rows};
use marks::delivery::State;
use marks::id::NoteId;
use marks::time::Timestamp;

use crate::control::api::Daemon;
use crate::control::status;
use crate::policy::Hold;
use crate::problem::{self, Limits, Place, Problem};
use crate::state::{self, Figures, Shared};

/// A browser does not wait longer than this for a new page.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// For so long a host that has settled stands in the table.
const SHOWN_AFTER: Duration = Duration::from_secs(86_400);
/// So many marks are read, open ones and others each; the rest is counted.
const MOST: u32 = 2000;

/// Everything at one moment.
pub(super) struct Picture {
    pub(super) now: Timestamp,
    pub(super) figures: Arc<Figures>,
    /// Of the daemon, or why the journal cannot be read.
    pub(super) daemon: Result<Daemon, String>,
    /// What is wrong, once for each cause, the worst first.
    pub(super) problems: Vec<Problem>,
    /// Open marks, the oldest first.
    pub(super) open: Vec<Row>,
    /// Marks that settled within a day, the newest first.
    pub(super) ended: Vec<Row>,
    /// Marks whose own row cannot be believed.
    pub(super) damaged: Vec<Damage>,
    /// Fencings without a mark yet.
    pub(super) unmarked: usize,
}

/// A mark in the table.
pub(super) struct Row {
    pub(super) recent: Recent,
    pub(super) state: State,
    /// What the policy holds it for.
    pub(super) hold: Option<Hold>,
    /// The operator who decided that.
    pub(super) holder: Option<String>,
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
            problems: Vec::new(),
            open: Vec::new(),
            ended: Vec::new(),
            damaged: Vec::new(),
            unmarked: 0,
        }
    }

    fn of(shared: &Shared, now: Timestamp, read: Read) -> Self {
        let Read { daemon, recent, unmarked, deciders } = read;
        let place = state::place(&shared.base.settings());
        let problems = problems(&daemon, &recent, now, &place);
        let (open, ended): (Vec<Recent>, Vec<Recent>) =
            recent.sound.into_iter().partition(|recent| recent.mark.settled.is_none());
        let rows = |all: Vec<Recent>| all.into_iter().map(|recent| Row::of(recent, &deciders)).collect();
        Self {
            now,
            figures: shared.figures(),
            daemon: Ok(daemon),
            problems,
            open: rows(open),
            ended: rows(ended),
            damaged: recent.damaged,
            unmarked,
        }
    }
}

/// Who made each decision that is in force.
type Deciders = BTreeMap<NoteId, String>;

/// What stands in the journal.
struct Read {
    daemon: Daemon,
    recent: Rows<Recent>,
    unmarked: usize,
    deciders: Deciders,
}

fn read(shared: &Shared, kept: &mut Option<Journal>, now: Timestamp) -> Done<Read> {
    let journal = match kept {
        Some(journal) => journal,
        None => kept.insert(Journal::open(&shared.base.settings().store.path, Role::Reader)?),
    };
    let daemon = status::daemon(shared, Some(journal), now)?;
    let unmarked = journal.unfolded_fencings()?.sound.len();
    let decisions = journal.decisions_in_force(now)?.sound.into_iter();
    let deciders = decisions.map(|decision| (decision.id, decision.actor)).collect();
    Ok(Read { daemon, recent: journal.recent(now - SHOWN_AFTER, MOST)?, unmarked, deciders })
}

impl Row {
    fn of(recent: Recent, deciders: &Deciders) -> Self {
        let (hold, state) = (problem::holds(&recent).first().copied(), problem::stage(&recent));
        let decision = recent.held.as_ref().and_then(|held| held.cause.decision);
        let holder = decision.and_then(|decision| deciders.get(&decision)).cloned();
        Self { recent, state, hold, holder }
    }
}

/// What is wrong, as `status` says it.
fn problems(daemon: &Daemon, recent: &Rows<Recent>, now: Timestamp, place: &Place) -> Vec<Problem> {
    let configured: BTreeSet<String> = daemon.routes.iter().map(|route| route.name.clone()).collect();
    let open: Vec<&Recent> = recent.sound.iter().filter(|recent| recent.mark.settled.is_none()).collect();
    let view = (now, Limits::default(), place);
    let mut all = problem::with_marks(daemon.problems.iter(), &open, Some(&configured), view);
    if !recent.damaged.is_empty() {
        all.push(problem::damaged(&recent.damaged.iter().collect::<Vec<_>>(), place));
    }
    all.sort_by_key(|one| Reverse(one.level));
    all
}
