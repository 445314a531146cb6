//! When the engine polls the cluster, and what it writes into the register.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use journal::{Done, Journal, RegisterWait};
use marks::register::{Entries, Entry, Key, Part, Register};
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use register::pages::{self, Heads, Line, PageWrites, Pages};
use register::{Paged, is_understood};

use crate::cluster::{self, Cluster, POLL, Rewriting, Trust, View};
use crate::daemon::checks;
use crate::daemon::watch::Watch;
use crate::intake::coverage;
use crate::intake::upkeep::Upkeep;
use crate::lock::lock;
use crate::moment::Moment;
use crate::state::Shared;

/// How often Pacemaker's fencing history is read where nothing waits for it.
const HISTORY: Duration = Duration::from_secs(10);
/// How often this process notes that it runs, while it waits for the register.
const BEAT: Duration = Duration::from_secs(1);
/// Two polls are not closer than this, however often something changes.
const SPACING: Duration = Duration::from_millis(50);
/// How often the register is asked for news while there is nothing to do: a mark that another controller writes into attrd is pushed to
/// nobody, and is to be sent within two seconds.
const NEWS: Duration = Duration::from_millis(1700);
/// How often the CIB's version is asked for then, if no host is away.
const CIB_NEWS: Duration = Duration::from_millis(6500);
/// How often everything is read then. So late may come what has no version: the fencing history, and of the configuration what changed
/// without a change of the hosts.
const EVERYTHING: Duration = Duration::from_secs(45);
/// How often the register is compared with the journal where no mark is new.
pub const UPKEEP: Duration = Duration::from_millis(100);
/// A mark that cannot be written into the register for so long is sent all the same (design, section 6).
const PATIENCE: Duration = Duration::from_secs(60);
/// Stands in the journal beside the keys of entries: this controller has written pages into that register.
pub const PAGES: &str = "pages";
/// How often the register is searched for entries that have had their time.
const CLEARING: Duration = Duration::from_secs(60);

/// Polls the cluster and writes the register for the engine.
pub struct Poller {
    cluster: Cluster,
    watch: Watch,
    view: Option<Arc<View>>,
    trust: Trust,
    woken: bool,
    history_read: Option<Instant>,
    /// When the register, and when the CIB, was asked for news.
    asked: [Option<Instant>; 2],
    upkept: Option<Instant>,
    cleared: Option<Instant>,
    /// The comparison was put off.
    deferred: bool,
    upkeep: Arc<Mutex<Upkeep>>,
    rewriting: Rewriting,
    heads: Heads,
    /// The pages as they were written since the last poll.
    written: Option<(Instant, Pages)>,
}

impl Poller {
    /// Nothing was seen yet.
    pub fn new(cluster: Cluster, watch: Watch) -> Self {
        Self {
            cluster,
            watch,
            view: None,
            trust: Trust::default(),
            woken: false,
            history_read: None,
            asked: [None; 2],
            upkept: None,
            cleared: None,
            deferred: false,
            upkeep: Arc::default(),
            rewriting: Rewriting::default(),
            heads: Heads::default(),
            written: None,
        }
    }

    /// A poll that is not older than [`POLL`], and newer than whatever woke the engine.
    pub async fn poll(&mut self, shared: &Shared) -> Arc<View> {
        self.woken |= shared.base.looks.is_awaited();
        if let Some(view) = self.view.as_ref().filter(|_| !self.is_due()) {
            return Arc::clone(view);
        }
        self.poll_now(shared, false).await
    }

    /// Whether there is a reason to poll, while there is nothing to do: something has changed, or nobody has read everything for long.
    pub async fn has_news(&mut self, shared: &Shared) -> bool {
        let Some(view) = self.view.clone().filter(|view| !self.woken && view.taken.elapsed() < EVERYTHING)
        else {
            return true;
        };
        self.trust.note(Moment::now());
        // A host that comes back may fail again at once: when it came back must be known.
        let are_all_there = view.cib.as_ref().is_ok_and(|cib| cib.has_all_remotes());
        let limit = if are_all_there && self.cluster.register() != Register::Cib { CIB_NEWS } else { NEWS };
        let with_cib = self.since_asked(1) >= limit;
        let now = Instant::now();
        let is_news = self.cluster.has_news(view, with_cib).await;
        self.asked = [Some(now), if with_cib { Some(now) } else { self.asked[1] }];
        if !is_news {
            shared.base.seen().note_no_news(with_cib, Moment::now());
            checks::after_poll(shared);
        }
        is_news
    }

    /// Whether the register is still to be compared with the journal.
    pub fn is_behind(&self) -> bool {
        self.deferred
    }

    /// How long ago the register, or the CIB, was asked.
    fn since_asked(&self, of: usize) -> Duration {
        let polled = self.view.as_ref().map(|view| view.taken);
        self.asked[of].max(polled).map_or(Duration::MAX, |at| at.elapsed())
    }

    /// How long the engine may sleep while there is nothing to do.
    pub fn long_rest(&self) -> Duration {
        if self.woken { Duration::ZERO } else { NEWS.saturating_sub(self.since_asked(0)) }
    }

    /// A poll at this moment.
    pub async fn poll_now(&mut self, shared: &Shared, with_history: bool) -> Arc<View> {
        self.woken = false;
        self.trust.note(Moment::now());
        let with_history = with_history || self.history_read.is_none_or(|read| read.elapsed() >= HISTORY);
        let settings = shared.base.settings();
        let own = move |cib: &Cib| coverage::own_hosts(&settings.hosts, cib);
        let cluster = self.cluster.clone();
        // The first reading takes seconds where there are thousands of hosts.
        let view = self.attending(async move { cluster.poll(with_history, own).await }).await;
        if with_history {
            self.history_read = Some(view.taken);
        }
        if view.entries.is_err() {
            shared.metrics.register_unread();
        }
        shared.base.seen().note(&view);
        shared.base.looks.note_seen(view.taken);
        checks::after_poll(shared);
        self.view = Some(Arc::clone(&view));
        view
    }

    fn is_due(&self) -> bool {
        let age = self.view.as_ref().map(|view| view.taken.elapsed());
        age.is_none_or(|age| age >= if self.woken { SPACING } else { POLL })
    }

    /// How long the engine may sleep.
    pub fn rest(&self) -> Duration {
        let age = self.view.as_ref().map_or(POLL, |view| view.taken.elapsed());
        let rest = if self.woken { SPACING } else { POLL }.saturating_sub(age);
        let upkeep = self.upkept.map_or(Duration::ZERO, |done| UPKEEP.saturating_sub(done.elapsed()));
        if self.deferred { rest.min(upkeep) } else { rest }
    }

    /// Returns when something in the cluster may have changed.
    pub async fn changed(&mut self) {
        self.watch.changed().await;
        self.woken = true;
    }

    /// Whether marks may be sent now: with quorum, and with a register that was read a moment ago or, without one, what this controller
    /// vouches for.
    pub fn permits(&self) -> bool {
        let view =
            self.view.as_ref().filter(|view| view.is_fresh() && self.trust.allows(view.taken, Moment::now()));
        view.is_some_and(|view| view.acts_on().is_ok())
    }

    /// How much longer marks may be sent.
    pub fn permitted_for(&self) -> Duration {
        self.view.as_ref().filter(|_| self.permits()).map_or(Duration::ZERO, |view| view.stays_fresh())
    }

    /// Marks that are not in the register yet stay back for a while, and others than our own while etcd is lost.
    pub fn wait(&self, started: Timestamp) -> RegisterWait {
        let is_alone = self.view.as_ref().is_some_and(|view| view.vouches_alone());
        RegisterWait {
            register: self.cluster.register(),
            waited_since: Timestamp::now() - PATIENCE,
            own_since: is_alone.then_some(started),
        }
    }

    /// Writes what the register lacks, and removes what has had its time.
    ///
    /// # Errors
    /// As any read of the journal; what the register does is no error here.
    pub async fn keep_up(&mut self, shared: &Arc<Shared>) -> Done {
        let kept = self.write_what_lacks(shared).await;
        // What was written now stands there when the next poll has read it.
        self.woken |= shared.base.looks.is_awaited();
        kept
    }

    async fn write_what_lacks(&mut self, shared: &Arc<Shared>) -> Done {
        let Some(view) = self.view.clone() else { return Ok(()) };
        let Ok(entries) = view.permits() else { return Ok(()) };
        let news = std::mem::take(&mut shared.base.seen().news);
        self.deferred = !news && self.upkept.is_some_and(|done| done.elapsed() < UPKEEP);
        if self.deferred {
            return Ok(());
        }
        self.upkept = Some(Instant::now());
        let Some(wanted) = self.wanted(shared, &view).await? else { return Ok(()) };
        let Some(paged) = &view.kept.pages else {
            let standing = self.publish(shared, &wanted, (entries, view.taken)).await;
            self.note(shared, standing).await?;
            return self.clear(shared, &wanted, entries).await;
        };
        let standing = self.keep_pages(shared, (&view, paged), &wanted).await;
        self.note(shared, standing).await?;
        self.clear_pages(shared, (&view, paged), entries).await
    }

    /// Writes entries that the register lacks outside of pages; gives the keys of those that it has then.
    async fn publish(
        &mut self,
        shared: &Shared,
        wanted: &[Entry],
        (found, taken): (&Entries, Instant),
    ) -> Vec<String> {
        let lacking = cluster::missing(wanted, found);
        let mut standing: Vec<Key> =
            wanted.iter().map(Entry::key).filter(|key| found.sound.contains_key(key)).collect();
        if lacking.is_empty() {
            shared.base.looks.note_whole(taken);
        } else {
            standing.extend(self.write(shared, lacking).await);
        }
        standing.iter().map(Key::to_string).collect()
    }

    /// Brings this alerter's pages to what is wanted; gives the keys of the entries that they hold then.
    async fn keep_pages(
        &mut self,
        shared: &Shared,
        (view, paged): (&View, &Paged),
        wanted: &[Entry],
    ) -> Vec<String> {
        let (writer, now) = (Part::Alerter.on(&shared.base.controller), Timestamp::now());
        let written = self.written.as_ref().filter(|(at, _)| *at >= view.taken);
        let mut pages = written.map_or(&paged.pages, |(_, pages)| pages).clone();
        let (register, instant) = (self.cluster.register(), Instant::now());
        let all = view.cib.as_ref().is_ok_and(|cib| self.rewriting.is_due(register, cib, instant));
        let lines: Vec<Line> = wanted.iter().map(Entry::line).collect();
        self.heads.note(&pages, &writer, is_understood);
        let there = (&pages, paged.plain_until);
        let writes = cluster::own_writes(there, (&writer, &lines), (&self.heads, all), now);
        if written.is_none() && writes.is_none() {
            shared.base.looks.note_whole(view.taken);
        }
        if let Some(writes) = writes
            && self.write_pages(shared, writes.clone()).await
        {
            if all {
                self.rewriting.note_done(Instant::now());
            }
            writes.note(&mut pages);
            self.written = Some((Instant::now(), pages.clone()));
        }
        let standing = pages::keys_on(&pages, &writer);
        lines.into_iter().map(|(key, _)| key).filter(|key| standing.contains(key.as_str())).collect()
    }

    /// Says whether all was written.
    async fn write_pages(&mut self, shared: &Shared, writes: PageWrites) -> bool {
        let cluster = self.cluster.clone();
        note_writing(shared, self.attending(cluster.write_pages(writes)).await)
    }

    /// Empties the pages of writers that are gone, and removes what controllers without a key have left.
    async fn clear_pages(
        &mut self,
        shared: &Shared,
        (view, paged): (&View, &Paged),
        entries: &Entries,
    ) -> Done {
        if !self.clears_now(shared).await? {
            return Ok(());
        }
        let (writer, now) = (Part::Alerter.on(&shared.base.controller), Timestamp::now());
        let Ok(cib) = &view.cib else { return Ok(()) };
        for done in cluster::superseded(paged, &writer, (&entries.clone().believed(), cib), now) {
            tracing::info!(writer = %done.writer, "the register's pages of a controller that is gone are taken over and emptied");
            self.write_pages(shared, done).await;
        }
        let over = cluster::left_over(paged, &writer, now);
        self.remove(over).await;
        Ok(())
    }

    /// The entries that the register should have.
    async fn wanted(&self, shared: &Arc<Shared>, view: &Arc<View>) -> Done<Option<Vec<Entry>>> {
        let (state, upkeep, view) = (Arc::clone(shared), Arc::clone(&self.upkeep), Arc::clone(view));
        let register = self.cluster.register();
        let read = move |journal: &mut Journal| match view.permits() {
            Ok(found) => lock(&upkeep).wanted(journal, &state.base, (register, found), Timestamp::now()),
            Err(_) => Ok(None),
        };
        shared.base.store.run(read).await
    }

    /// Waits for long work, and keeps noting that this process runs.
    async fn attending<T>(&mut self, work: impl Future<Output = T>) -> T {
        let (mut work, mut beat) = (pin!(work), tokio::time::interval(BEAT));
        loop {
            let done = tokio::select! {
                done = &mut work => Some(done),
                _ = beat.tick() => None,
            };
            self.trust.note(Moment::now());
            if let Some(done) = done {
                return done;
            }
        }
    }

    /// Gives the keys of the entries that are in the register now.
    async fn write(&mut self, shared: &Shared, lacking: Vec<Entry>) -> Vec<Key> {
        let cluster = self.cluster.clone();
        let (standing, done) = self.attending(cluster.publish(lacking)).await.result();
        note_writing(shared, done);
        standing
    }

    async fn note(&self, shared: &Shared, standing: Vec<String>) -> Done {
        let register = self.cluster.register();
        let pages = self.written.is_some().then(|| PAGES.to_owned());
        let keys: Vec<String> = standing.into_iter().chain(pages).collect();
        shared.base.store.run(move |journal| journal.note_published(register, &keys)).await
    }

    async fn clear(&mut self, shared: &Shared, wanted: &[Entry], found: &Entries) -> Done {
        if self.clears_now(shared).await? {
            self.remove(cluster::over(wanted, found, Timestamp::now())).await;
        }
        Ok(())
    }

    /// Whether it is time to remove what has had its time; in the journal it is removed here.
    async fn clears_now(&mut self, shared: &Shared) -> Done<bool> {
        if self.cleared.is_some_and(|done| done.elapsed() < CLEARING) {
            return Ok(false);
        }
        self.cleared = Some(Instant::now());
        let now = Timestamp::now();
        shared.base.store.run(move |journal| journal.forget_sightings(now - cluster::KEPT, now)).await?;
        Ok(true)
    }

    /// Removes entries outside of pages.
    async fn remove(&mut self, over: Vec<Key>) {
        if over.is_empty() {
            return;
        }
        let count = over.len();
        let cluster = self.cluster.clone();
        match self.attending(cluster.clear(over)).await {
            Ok(()) => {
                tracing::info!(count, "entries that are not needed any more were removed from the register");
            }
            Err(error) => tracing::warn!(kind = error.kind(), "old entries stay in the register: {error}"),
        }
    }
}

/// Takes note of the result of a write; says whether all was written.
fn note_writing(shared: &Shared, done: register::Done) -> bool {
    let fault = done.err().map(|error| error.to_string());
    let is_written = fault.is_none();
    if !is_written {
        shared.metrics.register_unwritten();
    }
    shared.base.seen().note_writing(fault);
    is_written
}
