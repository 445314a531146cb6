//! The daemon's loop: fold what was fenced, start what is due, wait for the next reason to look.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use marks::delivery::Delivery;
use marks::journal::{Damage, DueDelivery, Gate, Journal, JournalError};
use marks::time::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::cluster::View;
use crate::config::Route;
use crate::delivery::endpoint::{Change, Endpoint};
use crate::delivery::trouble::Troubles;
use crate::delivery::{self, schedule};
use crate::intake::apply;
use crate::lookout::Lookout;
use crate::shared::Shared;
use crate::watch::{Identity, Watch};

/// How long the engine waits before it looks again at a journal that it could not write.
const JOURNAL_PAUSE: Duration = Duration::from_secs(1);

/// Two clocks that keep time differ by less than this from one pass to the next.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// A route, and what an exchange has changed about its endpoint.
type Attempted = (String, Result<Option<Change>, JournalError>);

/// The loop with the attempts that are under way.
pub struct Engine {
    shared: Arc<Shared>,
    watch: Watch,
    identity: Identity,
    /// None where there is no cluster to ask.
    lookout: Option<Lookout>,
    attempts: JoinSet<Attempted>,
    /// Both clocks at the last pass.
    clocks: (Instant, Timestamp),
}

impl Engine {
    /// Takes up what a former daemon left.
    ///
    /// # Errors
    /// The journal cannot be read or written.
    pub async fn start(
        shared: Arc<Shared>,
        watch: Watch,
        identity: Identity,
        lookout: Option<Lookout>,
    ) -> Result<Self, JournalError> {
        let now = Timestamp::now();
        let open = shared.store.run(move |journal| {
            let unknown = journal.recover(now)?;
            journal.put_off_no_longer_than(now + schedule::CAP)?;
            Ok((unknown, journal.open_deliveries()?))
        });
        let (unknown, open) = open.await?;
        if unknown > 0 {
            warn!(
                unknown,
                "attempts were cut off when the last daemon ended; they may have arrived and are made again"
            );
        }
        shared.report_damage(&open.damaged);
        // No mark waits for a route that was not required and is not configured any more.
        let tried = open.sound.iter().filter(|d| d.required || shared.route(&d.route).is_some());
        *shared.troubles() = Troubles::from_open_deliveries(tried);
        let endpoints = endpoints(&shared, &open.sound, now);
        *shared.endpoints() = endpoints;
        let (attempts, clocks) = (JoinSet::new(), (Instant::now(), now));
        Ok(Self { shared, watch, identity, lookout, attempts, clocks })
    }

    /// Runs until `stop`, or until the journal is beyond use.
    ///
    /// # Errors
    /// A journal that cannot be trusted any more: Pacemaker starts a new daemon, which looks at it afresh.
    pub async fn run(&mut self, stop: &CancellationToken) -> Result<(), JournalError> {
        while !stop.is_cancelled() {
            let passed = self.pass().await;
            self.shared.looked.notify_one();
            let next = match passed {
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

    /// Before the daemon ends: what was acknowledged last goes into the register, so that the next alerter does not tell
    /// it again. Whatever comes of it, the daemon ends.
    pub async fn leave(&mut self, grace: Duration) {
        self.shared.seen().news = true;
        let Some(lookout) = &mut self.lookout else { return };
        let kept = tokio::time::timeout(grace, async {
            lookout.look(&self.shared).await;
            lookout.keep_up(&self.shared).await
        });
        if !matches!(kept.await, Ok(Ok(()))) {
            warn!("the register may lack what was acknowledged last: the next alerter may tell it once more");
        }
    }

    /// One look at everything; gives the wait until the next thing is due.
    async fn pass(&mut self) -> Result<Option<Duration>, JournalError> {
        if !self.identity.holds() {
            let reason = "the file was replaced or removed while the daemon ran".to_owned();
            return Err(JournalError::Damaged { path: self.shared.settings.store.path.clone(), reason });
        }
        self.mind_the_clock().await?;
        let permitted = self.take_in().await?;
        let rest = self.lookout.as_ref().map(Lookout::rest);
        if !permitted {
            return Ok(rest);
        }
        let (room, gate) = (self.room(), self.lookout.as_ref().map(Lookout::gate));
        let horizon = self.shared.settings.intake.horizon;
        let begin = move |journal: &mut Journal| {
            let now = Timestamp::now();
            Ok((journal.cancel_unrequired(now - horizon, now)?, Work::begin(journal, &room, gate)))
        };
        let (cancelled, work) = self.shared.store.run(begin).await?;
        if cancelled > 0 {
            warn!(
                cancelled,
                "settled marks are not told any more to routes that are not required: see [intake] horizon"
            );
        }
        self.shared.report_damage(&work.damaged);
        for due in work.begun {
            self.spawn(due);
        }
        let now = Instant::now();
        let probe = self.shared.endpoints().values().filter_map(|endpoint| endpoint.rest(now)).min();
        work.fault.map_or(Ok(work.next.into_iter().chain(rest).chain(probe).min()), Err)
    }

    /// The schedule is written in the wall clock's time: where that was set back, nothing may wait for it to come round
    /// again. Set forward, everything is due, and each endpoint's window is what it gets.
    async fn mind_the_clock(&mut self) -> Result<(), JournalError> {
        let (now, shown) = (Instant::now(), Timestamp::now());
        let (then, at) = self.clocks;
        if shown + CLOCK_SLACK < at + (now - then) {
            let limit = shown + schedule::CAP;
            self.shared.store.run(move |journal| journal.put_off_no_longer_than(limit)).await?;
            let seconds = schedule::CAP.as_secs();
            warn!("the clock was set back: what was put off by its old time is tried within {seconds} s");
        }
        self.clocks = (now, shown);
        Ok(())
    }

    /// Looks at the cluster, where there is one, folds what is new and brings the register up to date. Says whether marks
    /// may be told now.
    async fn take_in(&mut self) -> Result<bool, JournalError> {
        let Some(lookout) = &mut self.lookout else {
            fold(&self.shared, None).await?;
            return Ok(true);
        };
        let view = lookout.look(&self.shared).await;
        fold(&self.shared, Some(view)).await?;
        let wanted = std::mem::take(&mut self.shared.seen().history_wanted);
        if wanted {
            let view = lookout.look_now(&self.shared, true).await;
            fold(&self.shared, Some(view)).await?;
        }
        lookout.keep_up(&self.shared).await?;
        if !lookout.permits() {
            // Writing may have taken long; where it did not, the answer stays no.
            lookout.look(&self.shared).await;
        }
        Ok(lookout.permits())
    }

    /// How many more attempts each route may have under way, in the order of the configuration.
    fn room(&self) -> Vec<(String, usize)> {
        let (now, endpoints) = (Instant::now(), self.shared.endpoints());
        let room = |route: &Route| {
            let name = route.name.as_str().to_owned();
            let room = endpoints.get(&name).map_or(0, |endpoint| endpoint.room(now));
            (name, room)
        };
        self.shared.settings.routes.iter().map(room).collect()
    }

    fn spawn(&mut self, due: DueDelivery) {
        let (shared, route) = (Arc::clone(&self.shared), due.delivery.route.clone());
        self.shared.endpoints().entry(route.clone()).and_modify(Endpoint::begin);
        self.attempts.spawn(async move { (route, delivery::attempt(shared, due).await) });
    }

    async fn wait(&mut self, next: Option<Duration>, stop: &CancellationToken) -> Result<(), JournalError> {
        match self.event(next, stop).await {
            Some((route, change)) => self.note(route, change?).await,
            None => Ok(()),
        }
    }

    /// Returns when there is a reason to look again: with the attempt that has ended, where it is that.
    async fn event(&mut self, next: Option<Duration>, stop: &CancellationToken) -> Option<Attempted> {
        let timer = async {
            match next {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        let timer = pin!(timer);
        let cluster = async {
            match &mut self.lookout {
                Some(lookout) => lookout.changed().await,
                None => std::future::pending().await,
            }
        };
        let cluster = pin!(cluster);
        tokio::select! {
            () = stop.cancelled() => None,
            () = cluster => None,
            () = self.watch.changed() => None,
            () = self.shared.poke.notified() => None,
            () = timer => None,
            Some(Ok(attempted)) = self.attempts.join_next() => Some(attempted),
        }
    }

    /// Where the fault was the endpoint's, no mark waits for its sake any longer.
    async fn note(&mut self, route: String, change: Option<Change>) -> Result<(), JournalError> {
        match change {
            None | Some(Change::Opened) => Ok(()),
            Some(Change::Parked | Change::Recovered) => {
                let wake = move |journal: &mut Journal| journal.wake_parked(&route, Timestamp::now());
                match self.shared.store.run(wake).await {
                    // They are tried all the same, when their own time has come.
                    Err(error) if error.may_pass() => self.survive(error).map(drop),
                    woken => woken.map(drop),
                }
            }
        }
    }

    /// Some faults pass (a full disk, a stuck lock): say so once and go on. Others do not.
    fn survive(&self, error: JournalError) -> Result<Duration, JournalError> {
        if !error.may_pass() {
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

/// One for each route. What a former daemon found in trouble is probed at once, but however often daemons start, no
/// oftener than once a second.
fn endpoints(shared: &Shared, open: &[Delivery], now: Timestamp) -> HashMap<String, Endpoint> {
    let settings = &shared.settings;
    let new = |route: &Route| {
        let name = route.name.as_str().to_owned();
        let own = open.iter().filter(|delivery| delivery.route == name);
        let last = own.filter_map(|delivery| delivery.last.as_ref()).map(|attempt| attempt.at).max();
        let endpoint = match last {
            None => Endpoint::new(settings.max_in_flight),
            Some(at) => {
                let wait = schedule::FLOOR.saturating_sub(now.since(at));
                Endpoint::in_trouble(settings.max_in_flight, Instant::now() + wait)
            }
        };
        (name, endpoint)
    };
    settings.routes.iter().map(new).collect()
}

async fn fold(shared: &Arc<Shared>, view: Option<Arc<View>>) -> Result<(), JournalError> {
    let state = Arc::clone(shared);
    shared.store.run(move |journal| apply::take_in(journal, &state, view.as_deref())).await
}

/// What a look at the journal led to.
struct Work {
    /// Deliveries of which the journal says that an attempt begins now: each must be made.
    begun: Vec<DueDelivery>,
    damaged: Vec<Damage>,
    /// Until the next delivery is due.
    next: Option<Duration>,
    /// What kept the journal from saying it of more.
    fault: Option<JournalError>,
}

impl Work {
    /// Looks and begins in one go: between the two no operator can end a mark.
    fn begin(journal: &mut Journal, room: &[(String, usize)], gate: Option<Gate>) -> Self {
        let mut work = Self { begun: Vec::new(), damaged: Vec::new(), next: None, fault: None };
        work.fault = work.collect(journal, room, gate, Timestamp::now()).err();
        work
    }

    fn collect(
        &mut self,
        journal: &mut Journal,
        room: &[(String, usize)],
        gate: Option<Gate>,
        now: Timestamp,
    ) -> Result<(), JournalError> {
        for (route, room) in room {
            self.begin_on(journal, (route, *room), gate, now)?;
        }
        // What is due now but has no room, or stands behind another mark of its host, is looked at when an attempt ends.
        let routes: Vec<String> = room.iter().map(|(route, _)| route.clone()).collect();
        self.next = journal.next_due(now, &routes)?.map(|at| at.since(now).min(schedule::LONGEST_ASKED));
        Ok(())
    }

    /// A damaged row takes nobody's place: where one was found, it is looked for others.
    fn begin_on(
        &mut self,
        journal: &mut Journal,
        (route, mut room): (&str, usize),
        gate: Option<Gate>,
        now: Timestamp,
    ) -> Result<(), JournalError> {
        while room > 0 {
            let due = journal.due(now, route, room, gate)?;
            let was_damaged = !due.damaged.is_empty();
            self.damaged.extend(due.damaged);
            room = if was_damaged { room - due.sound.len() } else { 0 };
            for due in due.sound {
                let delivery = journal.begin_attempt(due.mark.id, route)?;
                self.begun.push(DueDelivery { delivery, ..due });
            }
        }
        Ok(())
    }
}
