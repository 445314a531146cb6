//! The daemon's loop: fold what was fenced, start what is due, wait for the next reason to look.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use marks::journal::{DueDelivery, Journal, JournalError, Rows};
use marks::time::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::config::Route;
use crate::delivery::trouble::Troubles;
use crate::delivery::{self, schedule};
use crate::intake::apply;
use crate::shared::Shared;
use crate::watch::{Identity, Watch};

/// How long the engine waits before it looks again at a journal that it could not write.
const JOURNAL_PAUSE: Duration = Duration::from_secs(1);

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
        shared.report_damage(&open.damaged);
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
        self.shared.store.run(move |journal| apply::take_in(journal, &shared)).await?;
        let (shared, room) = (Arc::clone(&self.shared), self.room());
        let (due, next) =
            self.shared.store.run(move |journal| look_for_work(journal, &shared, &room)).await?;
        self.shared.report_damage(&due.damaged);
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
        self.attempts.spawn(async move { (route, delivery::attempt(shared, due).await) });
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
