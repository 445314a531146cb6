//! The daemon's loop: fold what was fenced, start what is due, wait for the next reason to look.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use marks::delivery::State;
use marks::journal::{
    Damage, DueDelivery, Journal, JournalError, MarkRow, NewDelivery, Resolved, Rows, Verdict,
};
use marks::mark::Mark;
use marks::time::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::config::{Route, Settings};
use crate::drivers::{Failure, Message, Outcome};
use crate::intake::{self, Fold};
use crate::schedule;
use crate::store::Store;
use crate::trouble::Troubles;
use crate::watch::{Identity, Watch};

/// How long the engine waits before it looks again at a journal that it could not write.
const JOURNAL_PAUSE: Duration = Duration::from_secs(1);

/// What the engine and the control socket share.
pub struct Shared {
    /// The configuration, fixed for the life of the daemon.
    pub settings: Settings,
    /// The journal.
    pub store: Store,
    /// Says that something was changed from here.
    pub poke: Notify,
    troubles: Mutex<Troubles>,
    journal_trouble: Mutex<Option<String>>,
}

impl Shared {
    /// New state; nothing is wrong yet.
    pub fn new(settings: Settings, store: Store) -> Self {
        Self {
            settings,
            store,
            poke: Notify::new(),
            troubles: Mutex::default(),
            journal_trouble: Mutex::default(),
        }
    }

    /// The routes in trouble.
    pub fn troubles(&self) -> MutexGuard<'_, Troubles> {
        self.troubles.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// Why the daemon works, but not well; one sentence each. Answered from memory.
    pub fn reasons(&self, now: Timestamp) -> Vec<String> {
        let mut reasons = self.troubles().lasting(now, self.settings.degraded_after);
        reasons.extend(self.journal_trouble().clone());
        reasons
    }

    fn journal_trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.journal_trouble.lock().expect("a panic anywhere ends the whole daemon")
    }

    fn route(&self, name: &str) -> Option<&Route> {
        self.settings.routes.iter().find(|route| route.name.as_str() == name)
    }
}

/// The loop with the attempts that are under way.
pub struct Engine {
    shared: Arc<Shared>,
    watch: Watch,
    identity: Identity,
    attempts: JoinSet<(String, Result<(), JournalError>)>,
    /// How many of them each route has: one that hangs must not use up another's.
    under_way: HashMap<String, usize>,
}

impl Engine {
    /// Takes up what a former daemon left.
    ///
    /// # Errors
    /// The journal cannot be read or written.
    pub async fn start(shared: Arc<Shared>, watch: Watch, identity: Identity) -> Result<Self, JournalError> {
        let now = Timestamp::now();
        let open = shared.store.run(move |journal| {
            let unknown = journal.recover(now, now + schedule::CAP)?;
            Ok((unknown, journal.open_deliveries()?))
        });
        let (unknown, open) = open.await?;
        if unknown > 0 {
            warn!(
                unknown,
                "attempts were cut off when the last daemon ended; they may have arrived and are made again"
            );
        }
        report_damage(&open.damaged);
        *shared.troubles() = Troubles::from_open_deliveries(&open.sound);
        Ok(Self { shared, watch, identity, attempts: JoinSet::new(), under_way: HashMap::new() })
    }

    /// Runs until `stop`, or until the journal is beyond use.
    ///
    /// # Errors
    /// A journal that cannot be trusted any more: Pacemaker starts a new daemon, which looks at it afresh.
    pub async fn run(&mut self, stop: &CancellationToken) -> Result<(), JournalError> {
        while !stop.is_cancelled() {
            let next = match self.pass().await {
                Ok(next) => {
                    *self.shared.journal_trouble() = None;
                    next
                }
                Err(error) => Some(self.survive(error)?),
            };
            self.wait(next, stop).await?;
        }
        Ok(())
    }

    /// Lets attempts that are under way end, for at most `grace`. What is cut off counts as unknown.
    pub async fn drain(&mut self, grace: Duration) {
        let ended = tokio::time::timeout(grace, async { while self.attempts.join_next().await.is_some() {} });
        if ended.await.is_err() {
            warn!(
                under_way = self.attempts.len(),
                "attempts were cut off by the stop; they are made again at the next start"
            );
            self.attempts.shutdown().await;
        }
    }

    /// One look at everything; gives the wait until the next thing is due.
    async fn pass(&mut self) -> Result<Option<Duration>, JournalError> {
        if !self.identity.holds() {
            let reason = "the file was replaced or removed while the daemon ran".to_owned();
            return Err(JournalError::Damaged { path: self.shared.settings.store.path.clone(), reason });
        }
        let shared = Arc::clone(&self.shared);
        self.shared.store.run(move |journal| take_in(journal, &shared)).await?;
        let (shared, room) = (Arc::clone(&self.shared), self.room());
        let (due, next) =
            self.shared.store.run(move |journal| look_for_work(journal, &shared, &room)).await?;
        report_damage(&due.damaged);
        for delivery in due.sound {
            self.begin(delivery).await?;
        }
        Ok(next)
    }

    /// How many more attempts each route may have under way.
    fn room(&self) -> Vec<(String, usize)> {
        let settings = &self.shared.settings;
        let room = |route: &Route| {
            let name = route.name.as_str().to_owned();
            let used = self.under_way.get(&name).copied().unwrap_or(0);
            (name, settings.max_in_flight.saturating_sub(used))
        };
        settings.routes.iter().map(room).collect()
    }

    async fn begin(&mut self, due: DueDelivery) -> Result<(), JournalError> {
        let (mark, route) = (due.mark.id, due.delivery.route.clone());
        self.shared.store.run(move |journal| journal.begin_attempt(mark, &route)).await?;
        let (shared, route) = (Arc::clone(&self.shared), due.delivery.route.clone());
        *self.under_way.entry(route.clone()).or_default() += 1;
        self.attempts.spawn(async move { (route, attempt(shared, due).await) });
        Ok(())
    }

    async fn wait(&mut self, next: Option<Duration>, stop: &CancellationToken) -> Result<(), JournalError> {
        let timer = async {
            match next {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        let timer = pin!(timer);
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            () = self.watch.changed() => Ok(()),
            () = self.shared.poke.notified() => Ok(()),
            () = timer => Ok(()),
            Some(Ok((route, ended))) = self.attempts.join_next() => {
                self.under_way.entry(route).and_modify(|count| *count = count.saturating_sub(1));
                ended
            }
        }
    }

    /// Some faults pass (a full disk, a stuck lock): say so once and go on. Others do not.
    fn survive(&self, error: JournalError) -> Result<Duration, JournalError> {
        if !matches!(error.kind(), "full" | "busy" | "read-only") {
            return Err(error);
        }
        let sentence = error.to_string();
        let mut trouble = self.shared.journal_trouble();
        if trouble.as_deref() != Some(&sentence) {
            error!(kind = error.kind(), "{sentence}; marks are kept and tried again");
            *trouble = Some(sentence);
        }
        Ok(JOURNAL_PAUSE)
    }
}

/// Folds every new fencing into a mark, and names marks that had no name before.
///
/// # Errors
/// As any write.
pub fn take_in(journal: &mut Journal, shared: &Shared) -> Result<(), JournalError> {
    let now = Timestamp::now();
    let (rules, coalesce) = (&shared.settings.hosts, shared.settings.coalesce);
    let fencings = journal.unfolded_fencings()?;
    report_damage(&fencings.damaged);
    for fencing in fencings.sound {
        let outages = journal.outages_of(&fencing.node)?;
        match intake::fold(&fencing, &outages, rules, coalesce) {
            Fold::Mark(row) => {
                let deliveries = row.told().map(|mark| deliveries(shared, &mark)).unwrap_or_default();
                journal.make_mark(&fencing, &row, &deliveries, now)?;
                announce(&row);
            }
            Fold::Join(outage) => {
                journal.add_to_mark(&fencing, outage.mark, now)?;
                info!(mark = %outage.mark, "{} was fenced again in the same outage", fencing.node);
            }
            Fold::SetAside => {
                let reason = format!("{} is not covered by [hosts] match and is not told", fencing.node);
                journal.set_aside(&fencing, &reason, now)?;
                warn!("{reason}");
            }
        }
    }
    Ok(())
}

fn announce(row: &MarkRow) {
    match &row.fqdn {
        Some(fqdn) => info!(mark = %row.id, "{} was fenced and will be told as {fqdn}", row.node),
        None => {
            error!(mark = %row.id, "{} was fenced and is held (no-fqdn): set [hosts] domain or a name in [hosts.names]", row.node);
        }
    }
}

fn deliveries(shared: &Shared, mark: &Mark) -> Vec<NewDelivery> {
    let new =
        |route: &Route| NewDelivery { route: route.name.as_str().to_owned(), body: route.driver.body(mark) };
    shared.settings.routes.iter().map(new).collect()
}

/// After a start: marks that were held for want of a name, and open marks made before a route was configured.
///
/// # Errors
/// As any write.
pub fn catch_up(journal: &mut Journal, shared: &Shared) -> Result<(), JournalError> {
    let now = Timestamp::now();
    let open = journal.open_marks()?;
    report_damage(&open.damaged);
    for row in open.sound {
        match row.told() {
            Some(mark) => add_missing_routes(journal, shared, &mark, now)?,
            None => name(journal, shared, row, now)?,
        }
    }
    Ok(())
}

fn add_missing_routes(
    journal: &mut Journal,
    shared: &Shared,
    mark: &Mark,
    now: Timestamp,
) -> Result<(), JournalError> {
    let existing = journal.deliveries_of(mark.id)?;
    // A damaged row has no believable route: adding one beside it could tell the same mark twice.
    if !existing.damaged.is_empty() {
        return Ok(());
    }
    let mut missing = deliveries(shared, mark);
    missing.retain(|new| existing.sound.iter().all(|old| old.route != new.route));
    for old in existing.sound.iter().filter(|old| !old.state.is_final() && shared.route(&old.route).is_none())
    {
        warn!(mark = %mark.id, "{} still waits for route {}, which is not configured any more: configure it again, or end the mark with `unmark`", mark.node, old.route);
    }
    if missing.is_empty() { Ok(()) } else { journal.add_deliveries(mark.id, &missing, now) }
}

fn name(
    journal: &mut Journal,
    shared: &Shared,
    mut row: MarkRow,
    now: Timestamp,
) -> Result<(), JournalError> {
    let first = journal.fencings_of(row.id)?.sound.into_iter().next();
    row.fqdn = first.and_then(|first| intake::told_name(&first, &shared.settings.hosts));
    let Some(mark) = row.told() else {
        announce(&row);
        return Ok(());
    };
    let deliveries = deliveries(shared, &mark);
    journal.name_mark(&Resolved { mark, deliveries }, now)?;
    announce(&row);
    Ok(())
}

type Work = (Rows<DueDelivery>, Option<Duration>);

fn look_for_work(
    journal: &mut Journal,
    shared: &Shared,
    room: &[(String, usize)],
) -> Result<Work, JournalError> {
    let now = Timestamp::now();
    let mut due = Rows { sound: Vec::new(), damaged: Vec::new() };
    for (route, room) in room {
        let of_route = journal.due(now, route, *room)?;
        due.sound.extend(of_route.sound);
        due.damaged.extend(of_route.damaged);
    }
    let routes: Vec<String> =
        shared.settings.routes.iter().map(|route| route.name.as_str().to_owned()).collect();
    // What is due now but has no room, or stands behind another mark of its host, is looked at when an attempt ends.
    let next = journal.next_due(now, &routes)?.map(|at| at.since(now).min(schedule::LONGEST_ASKED));
    Ok((due, next))
}

/// One exchange, and what it came to on record. The record is tried until it holds: an acknowledgement that is
/// forgotten would be asked for again.
async fn attempt(shared: Arc<Shared>, due: DueDelivery) -> Result<(), JournalError> {
    let route =
        shared.route(&due.delivery.route).expect("only deliveries on configured routes are looked for");
    let message = Message { id: &due.mark.id, body: &due.delivery.body };
    let outcome = route.driver.deliver(message).await;
    let verdict = judge(&shared, &due, &outcome);
    loop {
        let (mark, name, kept) = (due.mark.id, due.delivery.route.clone(), verdict.clone());
        let write = move |journal: &mut Journal| journal.finish_attempt(mark, &name, &kept, Timestamp::now());
        match shared.store.run(write).await {
            Ok(_settled) => return Ok(()),
            Err(error) if matches!(error.kind(), "full" | "busy" | "read-only") => {
                error!(mark = %due.mark.id, kind = error.kind(), "the answer about {} could not be written down and is kept in memory: {error}", due.mark.node);
                tokio::time::sleep(JOURNAL_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Turns a driver's outcome into what is written down, and says what is news.
fn judge(shared: &Shared, due: &DueDelivery, outcome: &Outcome) -> Verdict {
    let (state, ambiguous, failure) = match outcome {
        Outcome::Acknowledged { reference } => return accepted(shared, due, reference.clone()),
        Outcome::Retry(failure) => (State::Pending, false, failure),
        Outcome::Unknown(failure) => (State::Pending, true, failure),
        Outcome::Refused(failure) => (State::Parked, false, failure),
    };
    let wait = schedule::wait(due.delivery.attempts.saturating_add(1), fastrand::f64(), failure.after);
    report_failure(shared, due, failure, wait);
    let (kind, detail) = (failure.kind.to_owned(), failure.detail.clone());
    Verdict::Again { state, ambiguous, kind, detail, next_due: Timestamp::now() + wait }
}

fn accepted(shared: &Shared, due: &DueDelivery, reference: Option<String>) -> Verdict {
    let (mark, route) = (&due.mark, &due.delivery.route);
    if shared.troubles().accepted(route) {
        info!("route {route} accepts again");
    }
    let attempts = due.delivery.attempts.saturating_add(1);
    info!(mark = %mark.id, attempts, "{} is acknowledged by route {route}", mark.node);
    Verdict::Acknowledged { reference, detail: format!("{route} acknowledged it at attempt {attempts}") }
}

fn report_failure(shared: &Shared, due: &DueDelivery, failure: &Failure, wait: Duration) {
    let (mark, route) = (&due.mark, &due.delivery.route);
    let news = shared.troubles().failed(route, failure.kind, &failure.detail, Timestamp::now());
    if news {
        warn!(mark = %mark.id, kind = failure.kind, "{} is not accepted by route {route}: {}; next attempt in {} s", mark.node, failure.detail, wait.as_secs());
    }
}

fn report_damage(damaged: &[Damage]) {
    for damage in damaged {
        error!(
            "the {} row {} is damaged; it is not sent and not dropped: look at it with `nova-host-alerter show`",
            damage.table, damage.key
        );
    }
}

/// How many open deliveries each route has.
///
/// # Errors
/// As any read.
pub fn waiting(journal: &Journal) -> Result<HashMap<String, usize>, JournalError> {
    let mut waiting = HashMap::new();
    for delivery in journal.open_deliveries()?.sound {
        *waiting.entry(delivery.route).or_default() += 1;
    }
    Ok(waiting)
}
