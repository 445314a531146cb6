//! Asks Nova what became of the instances of failed hosts, if the configuration names a Nova. No mark waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use drivers::Failure;
use drivers::instances::Instances;
use journal::{Journal, JournalError, NewHistory};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::{MarkRow, Settlement};
use marks::recovery::{Case, Host, Recovery, Rules, Seen};
use marks::time::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::lost::Lost;
use crate::config;
use crate::recovery::kept::Kept;
use crate::recovery::news::{News, advance, has_news, sight};
use crate::recovery::{Sight, Unanswered};
use crate::serving;
use crate::state::Shared;

/// How often it is checked whether a question is due.
const TICK: Duration = Duration::from_secs(1);
/// How many hosts are asked for at once.
const AT_ONCE: usize = 4;
/// Of so many single instances Nova may know nothing in one round; more than that is Nova's own trouble.
const FAILURES: usize = 3;
/// A mark is followed for so much longer than Nova is asked: the end of the questions is noted in that time.
const MARGIN: Duration = Duration::from_secs(3600);
/// How often files of marks that are gone are removed.
const PRUNING: Duration = Duration::from_secs(86_400);

/// Follows the configuration until `stop`.
pub async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let pick = |settings: &config::Settings| settings.recovery.clone();
    let run = |config: &config::Recovery, stop| follow(Arc::clone(&shared), config.clone(), stop);
    serving::follow(&shared.base, pick, run, stop).await;
}

/// Asks as this configuration says, until `stop`.
pub async fn follow(shared: Arc<Shared>, config: config::Recovery, stop: CancellationToken) {
    let mut watcher = Watcher::new(shared, config);
    let mut answered = None;
    while !stop.is_cancelled() {
        if let Err(error) = watcher.round(answered.take()).await {
            // The engine meets the same fault and logs it.
            tracing::debug!(kind = error.kind(), "recoveries cannot be followed: {error}");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(TICK) => {}
            Some(Ok(answer)) = watcher.asking.join_next() => answered = Some(answer),
            Some(Ok(answer)) = watcher.lost.asking.join_next() => Lost::take_in(&watcher.shared, answer),
        }
    }
    watcher.asking.shutdown().await;
    watcher.lost.asking.shutdown().await;
    *watcher.shared.recoveries() = None;
}

/// One outage that is followed.
struct Followed {
    row: MarkRow,
    recovery: Recovery,
    is_asked: bool,
    tried: Option<Instant>,
    unanswered: Option<Unanswered>,
    /// A question has ended, with or without an answer.
    is_known: bool,
}

/// What Nova said of one host, as far as it said it.
struct Answer {
    mark: MarkId,
    recovery: Recovery,
    failure: Option<Failure>,
}

struct Watcher {
    shared: Arc<Shared>,
    config: config::Recovery,
    kept: Kept,
    followed: BTreeMap<MarkId, Followed>,
    asking: JoinSet<Answer>,
    /// Hosts that the cluster has lost.
    lost: Lost,
    version: Option<(i64, i64)>,
    pruned: Option<Instant>,
}

impl Watcher {
    fn new(shared: Arc<Shared>, config: config::Recovery) -> Self {
        let kept = Kept::beside(&shared.base.settings().store.path);
        let (followed, asking) = (BTreeMap::new(), JoinSet::new());
        Self { shared, config, kept, followed, asking, lost: Lost::default(), version: None, pruned: None }
    }

    async fn round(&mut self, answered: Option<Answer>) -> Result<(), JournalError> {
        if let Some(answer) = answered {
            self.take_in(answer).await?;
        }
        self.read_marks().await?;
        self.advance_all().await?;
        if self.shared.acting.is_allowed() {
            self.lost.ask(&self.shared, &self.config.nova);
            self.ask();
        }
        let sights = self.followed.values().filter(|one| one.recovery.ended.is_none());
        let sights = sights.map(|one| {
            // Of a mark that lacks something nothing is asked.
            let is_known = one.is_known || one.row.lacks().next().is_some();
            Sight { is_known, ..sight(&one.recovery, &one.row, one.unanswered.clone()) }
        });
        let sights = sights.collect();
        *self.shared.recoveries() = Some(sights);
        Ok(())
    }

    /// The marks as they are now, if the journal has changed.
    async fn read_marks(&mut self) -> Result<(), JournalError> {
        let since = Timestamp::now() - self.config.rules.ask_for - MARGIN;
        let known = self.version;
        let read = move |journal: &mut Journal| {
            let version = journal.version()?;
            if known == Some(version) {
                return Ok(None);
            }
            Ok(Some((version, journal.marks_that_count(since)?.sound)))
        };
        let Some((version, mut rows)) = self.shared.base.store.run(read).await? else { return Ok(()) };
        self.version = Some(version);
        let mut before = std::mem::take(&mut self.followed);
        // The later outage of a host begins with what the earlier one knows.
        rows.sort_by_key(|row| row.failure_time);
        let new: Vec<_> = rows.iter().map(|row| row.id).filter(|mark| !before.contains_key(mark)).collect();
        let read =
            |files: &Kept| new.into_iter().filter_map(|mark| Some((mark, files.read(mark)?))).collect();
        let mut kept: BTreeMap<MarkId, Recovery> = self.kept.apart(read).await;
        for row in rows {
            let one = before.remove(&row.id).unwrap_or_else(|| self.begin(row.clone(), kept.remove(&row.id)));
            self.followed.insert(row.id, Followed { row, ..one });
        }
        self.prune().await
    }

    fn begin(&self, row: MarkRow, kept: Option<Recovery>) -> Followed {
        let earlier = self.followed.values().filter(|one| one.row.node == row.node);
        let earlier = earlier.max_by_key(|one| one.row.failure_time).map(|one| one.recovery.carried());
        let recovery = kept.or(earlier).unwrap_or_default();
        Followed { row, recovery, is_asked: false, tried: None, unanswered: None, is_known: false }
    }

    /// Files of marks that are not in the journal any more go.
    async fn prune(&mut self) -> Result<(), JournalError> {
        if self.pruned.is_some_and(|at| at.elapsed() < PRUNING) {
            return Ok(());
        }
        self.pruned = Some(Instant::now());
        let mut marks = self.kept.apart(Kept::marks).await;
        let gone = move |journal: &mut Journal| {
            marks.retain(|mark| matches!(journal.find_mark(*mark), Ok(None)));
            Ok(marks)
        };
        let gone = self.shared.base.store.run(gone).await?;
        if !gone.is_empty() {
            self.kept.apart(move |files| gone.iter().for_each(|mark| files.remove(*mark))).await;
            info!("what was known of the recovery of hosts went with their old marks");
        }
        Ok(())
    }

    /// Asks for those that are due, a few at once: the one that has waited longest first.
    fn ask(&mut self) {
        let (rules, now) = (self.config.rules, Timestamp::now());
        let due = self.followed.values_mut().filter(|one| one.is_due(&rules, now));
        // A mark without a name is not sent, and Nova may know its host by that name alone.
        let mut due: Vec<_> = due.filter_map(|one| Some((one.row.to_mark()?, one))).collect();
        due.sort_by_key(|(_, one)| one.tried);
        for (mark, one) in due.into_iter().take(AT_ONCE.saturating_sub(self.asking.len())) {
            (one.is_asked, one.tried) = (true, Some(Instant::now()));
            let (nova, recovery) = (Arc::clone(&self.config.nova), one.recovery.clone());
            let (name, has_returned) = (nova.host_of(&mark), one.row.returned_at.is_some());
            let every = rules.every;
            self.asking.spawn(async move {
                let (recovery, failure) = question(&nova, &name, has_returned, recovery, every).await;
                Answer { mark: mark.id, recovery, failure }
            });
        }
    }

    async fn take_in(&mut self, answer: Answer) -> Result<(), JournalError> {
        let Some(one) = self.followed.get_mut(&answer.mark) else { return Ok(()) };
        (one.is_asked, one.is_known) = (false, true);
        one.note(answer.failure);
        let Recovery { ended, late_since, .. } = one.recovery;
        let answered = Some(Recovery { ended, late_since, ..answer.recovery });
        self.advance_one(answer.mark, answered, &self.taken_over()).await
    }

    async fn advance_all(&mut self) -> Result<(), JournalError> {
        let open = self.followed.values().filter(|one| one.recovery.ended.is_none());
        let (open, later): (Vec<_>, _) = (open.map(|one| one.row.id).collect(), self.taken_over());
        for mark in open {
            self.advance_one(mark, None, &later).await?;
        }
        Ok(())
    }

    /// The last failure of each host that was acknowledged, and about which Nova has answered: its mark has the instances now.
    fn taken_over(&self) -> BTreeMap<HostName, Timestamp> {
        let mut last = BTreeMap::new();
        for Followed { row, recovery, .. } in self.followed.values() {
            let is_acknowledged = matches!(row.settled, Some((Settlement::Acknowledged, _)));
            if is_acknowledged && recovery.began_at.is_some() {
                let at = last.entry(row.node.clone()).or_insert(row.failure_time);
                *at = row.failure_time.max(*at);
            }
        }
        last
    }

    /// Says what is new, and keeps it. `answered`: what is known with a new answer. `later`: [`Self::taken_over`].
    async fn advance_one(
        &mut self,
        mark: MarkId,
        answered: Option<Recovery>,
        later: &BTreeMap<HostName, Timestamp>,
    ) -> Result<(), JournalError> {
        let Some(one) = self.followed.get_mut(&mark) else { return Ok(()) };
        let (now, rules) = (Timestamp::now(), &self.config.rules);
        let failed_again = later.get(&one.row.node).is_some_and(|at| *at > one.row.failure_time);
        let case = Case { mark: &one.row, rules, failed_again };
        if answered.is_none() && !has_news(&one.recovery, &case, now) {
            return Ok(());
        }
        let mut recovery = answered.unwrap_or_else(|| one.recovery.clone());
        let news = advance(&mut recovery, one.recovery.began_at.is_some(), &case, now);
        // What cannot be written is said again: after the next answer, or in the next round.
        record(&self.shared, &one.row, news, now).await?;
        one.recovery = recovery;
        if one.recovery.began_at.is_none() {
            return Ok(());
        }
        let known = one.recovery.clone();
        if let Err(error) = self.kept.apart(move |files| files.write(mark, &known)).await {
            warn!(mark = %mark, "what became of the instances of {} cannot be kept: {error}", one.row.node);
        }
        Ok(())
    }
}

impl Followed {
    fn is_due(&self, rules: &Rules, now: Timestamp) -> bool {
        let rests = self.tried.is_some_and(|at| at.elapsed() < rules.every);
        !self.is_asked && !rests && self.recovery.is_due(rules, now)
    }

    /// Logs once that Nova does not answer, and once that it does again.
    fn note(&mut self, failure: Option<Failure>) {
        let node = &self.row.node;
        match (failure, self.unanswered.take()) {
            (Some(failure), known) => {
                let is_new = known.as_ref().is_none_or(|known| known.why != failure.detail);
                if is_new {
                    warn!(
                        kind = failure.kind,
                        "Nova does not say what became of the instances of {node}: {}", failure.detail
                    );
                }
                let since = known.map_or_else(Timestamp::now, |known| known.since);
                self.unanswered = Some(Unanswered { since, why: failure.detail });
            }
            (None, Some(_)) => info!("Nova says again what became of the instances of {node}"),
            (None, None) => {}
        }
    }
}

/// The host's list, and then each instance that has left it; what is not asked in time is asked first in the next round.
async fn question(
    nova: &Instances,
    name: &str,
    has_returned: bool,
    mut recovery: Recovery,
    time: Duration,
) -> (Recovery, Option<Failure>) {
    let (found, host) = match whole(nova, name, has_returned).await {
        Ok(answer) => answer,
        Err(failure) => return (recovery, Some(failure)),
    };
    recovery.note_host(found, host, Timestamp::now());
    let (started, mut has_answer, mut failures) = (Instant::now(), false, Vec::new());
    for id in recovery.unknown() {
        match nova.one(&id).await {
            Ok(seen) => {
                recovery.note_one(&id, name, seen.as_ref(), Timestamp::now());
                has_answer = true;
            }
            Err(failure) => failures.push(failure),
        }
        recovery.asked(&id);
        let is_too_much = failures.len() > FAILURES;
        if is_too_much || started.elapsed() >= time {
            return (recovery, failures.pop().filter(|_| is_too_much || !has_answer));
        }
    }
    (recovery, None)
}

/// What is on the host, and whether it is back with its nova-compute. Half of that is no answer: instances that run there would count
/// as down.
async fn whole(nova: &Instances, name: &str, has_returned: bool) -> Result<(Vec<Seen>, Host), Failure> {
    let found = nova.on(name).await?;
    let host = if has_returned { Host::Back { is_up: nova.is_up(name).await? } } else { Host::Away };
    Ok((found, host))
}

async fn record(shared: &Shared, row: &MarkRow, news: Vec<News>, now: Timestamp) -> Result<(), JournalError> {
    let (mark, node) = (row.id, row.node.clone());
    for (word, detail) in news {
        info!(mark = %mark, host = %node, "{node}: {detail}");
        let node = node.clone();
        let append = move |journal: &mut Journal| {
            let row = NewHistory::new(now, word, &detail, "nova-host-alerter");
            journal.append_history(&NewHistory { mark: Some(mark), node: Some(&node), ..row })
        };
        shared.base.store.run(append).await?;
    }
    Ok(())
}
