//! The daemon's loop: take in fencings, begin what is due, record the answers, wait for the next reason to go on.

mod reloading;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::{Capacity, Done, DueDelivery, Ended, Journal, JournalError};
use marks::id::MarkId;
use marks::time::Timestamp;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::cluster::View;
use crate::config::Route;
use crate::daemon::poller::{self, Poller};
use crate::daemon::pruning::Pruner;
use crate::daemon::watch::{Identity, Watch};
use crate::daemon::{checks, outboxes, unproven};
use crate::delivery::answers::{Answer, Answers};
use crate::delivery::outbox::{FRESH, Outbox};
use crate::delivery::trouble::{self, Troubles};
use crate::delivery::{self, endpoint};
use crate::health::Check;
use crate::intake::apply;
use crate::intake::start::{self, Serving};
use crate::moment::{self, Moment};
use crate::policy::steer;
use crate::probes::{Conclusion, Prober};
use crate::state::Shared;

/// How long the engine waits before it tries again a journal that it could not write.
const JOURNAL_PAUSE: Duration = Duration::from_secs(1);

/// How often routes are checked that wait for another one, if no poll of the cluster does it.
const ORDER: Duration = Duration::from_secs(1);

/// How often the engine searches for what has become too old, and for marks without a delivery.
const HOUSEKEEPING: Duration = Duration::from_secs(60);

/// The loop with the attempts that are under way.
pub struct Engine {
    shared: Arc<Shared>,
    watch: Watch,
    identity: Identity,
    /// None where there is no cluster to ask.
    poller: Option<Poller>,
    /// One task for each exchange that may be under way at once.
    exchanges: JoinSet<()>,
    /// Bare connections to endpoints that are away.
    knocks: JoinSet<()>,
    coming: UnboundedReceiver<Answer>,
    sender: UnboundedSender<Answer>,
    answers: Answers,
    /// Begun in the journal, not sent, and to be taken back.
    unsent: Vec<DueDelivery>,
    /// The first pass is still to come.
    is_new: bool,
    /// Something may be new in the journal or in the cluster.
    wants_poll: bool,
    /// Something was recorded since the last poll: the register is behind.
    is_behind: bool,
    polled: Option<Instant>,
    /// After the last pass nothing was open, due or under way: the cluster is asked for news alone, and polled where it has any.
    is_quiet: bool,
    kept_house: Option<Instant>,
    /// What removes what nothing needs any more.
    pruner: Pruner,
    /// After a reload, until its effect on marks is done: the routes that have another driver now.
    renewed: Option<Vec<String>>,
    /// Open marks from here on may lack deliveries of the configuration.
    serving: Option<Serving>,
    /// The daemon has to stop: work that may take long is left to the next one.
    stop: CancellationToken,
    /// The probes that ask whether hosts are really down.
    prober: Prober,
    /// Both clocks at the last pass.
    clocks: Moment,
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
        poller: Option<Poller>,
    ) -> Done<Self> {
        let clocks = Moment::now();
        let now = clocks.wall;
        let tried = shared.base.store.run(move |journal| {
            let newest = journal.newest_at()?;
            let unknown = start::recover(journal, now)?;
            Ok((newest, unknown, journal.tried()?))
        });
        let (newest, unknown, tried) = tried.await?;
        if unknown > 0 {
            warn!(
                unknown,
                "attempts were cut off when the last daemon ended: they may have arrived, and are repeated"
            );
        }
        let new = outboxes::new(&shared, &tried, now);
        *shared.routes.outboxes() = new;
        // No mark waits for a route that was not required and is not configured any more.
        let tried =
            tried.into_iter().filter(|tried| tried.required || shared.base.route(&tried.route).is_some());
        *shared.routes.troubles() = Troubles::from_former(tried);
        let (sender, coming) = mpsc::unbounded_channel();
        let answers = Answers::default();
        let (exchanges, knocks) = (JoinSet::new(), JoinSet::new());
        Ok(Self {
            shared,
            watch,
            identity,
            poller,
            exchanges,
            knocks,
            coming,
            sender,
            answers,
            unsent: Vec::new(),
            is_new: true,
            wants_poll: true,
            is_behind: false,
            polled: None,
            is_quiet: false,
            kept_house: None,
            pruner: Pruner::new(clocks.instant, newest),
            renewed: None,
            serving: Some(Serving::default()),
            stop: CancellationToken::new(),
            prober: Prober::default(),
            clocks,
        })
    }

    /// Runs until `stop`, or until the journal is beyond use.
    ///
    /// # Errors
    /// A journal that cannot be trusted any more: Pacemaker starts a new daemon, which opens it again.
    pub async fn run(&mut self, stop: &CancellationToken) -> Done {
        self.stop = stop.clone();
        while !stop.is_cancelled() {
            self.reload().await;
            let shared = Arc::clone(&self.shared);
            let passed = shared.health.track(Check::Store, checks::journal_fault, self.pass()).await;
            checks::after_pass(&shared, passed.is_ok());
            self.shared.passed.notify_one();
            self.report_to_supervisor(passed.is_err());
            let next = match passed {
                Ok(next) => {
                    *self.shared.journal_trouble() = None;
                    next
                }
                Err(error) => {
                    // The work of this pass is still to be done.
                    self.wants_poll = true;
                    let pause = self.survive(error)?;
                    tokio::select! {
                        () = tokio::time::sleep(pause) => continue,
                        () = stop.cancelled() => return Ok(()),
                    }
                }
            };
            let next = next.into_iter().chain(self.shared.supervisor.rest()).min();
            self.wait(next, stop).await;
        }
        Ok(())
    }

    /// A pass has ended: it has polled, unless it was the very first one, or it has met a fault that the daemon survives.
    fn report_to_supervisor(&self, failed: bool) {
        let is_up = failed || !self.wants_poll || self.poller.is_some();
        self.shared.supervisor.passed(is_up, || sentence(&self.shared, Timestamp::now()));
    }

    /// Lets attempts that are under way end, for at most `grace`. What is cut off counts as unknown.
    pub async fn drain(&mut self, grace: Duration) {
        let taken_back = self.take_back(Outbox::remove_all).await;
        let ended = async { while self.exchanges.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, ended).await.is_err() {
            warn!(
                under_way = self.exchanges.len(),
                "attempts were cut off by the stop: they may have arrived, and are repeated at the next start"
            );
            self.exchanges.shutdown().await;
        }
        if let Err(error) = taken_back.and(self.record_all().await) {
            let kind = error.kind();
            error!(
                kind,
                "{error}; answers could not be recorded, so the next daemon sends those marks again"
            );
        }
    }

    async fn record_all(&mut self) -> Done {
        self.gather();
        while !self.answers.is_empty() {
            self.dispatch(Vec::new()).await?;
        }
        Ok(())
    }

    /// Before the daemon ends: the last acknowledgements go into the register, so that the next alerter does not send those marks
    /// again. The daemon ends even if that fails.
    pub async fn leave(&mut self, grace: Duration) {
        self.shared.base.seen().news = true;
        let Some(poller) = &mut self.poller else { return };
        let kept = tokio::time::timeout(grace, async {
            poller.poll(&self.shared).await;
            poller.keep_up(&self.shared).await
        });
        if !matches!(kept.await, Ok(Ok(()))) {
            warn!(
                "the register may lack the last acknowledgements: the next alerter may send those marks again"
            );
        }
    }

    /// Does all that is due; gives the wait until the next thing is due.
    async fn pass(&mut self) -> Done<Option<Duration>> {
        if !self.identity.holds() {
            let reason = "the file was replaced or removed while the daemon ran".to_owned();
            return Err(JournalError::Damaged {
                path: self.shared.base.settings().store.path.clone(),
                reason,
            });
        }
        self.mind_the_clock().await?;
        self.bring_what_is_new().await?;
        if self.stop.is_cancelled() {
            return Ok(None);
        }
        self.gather();
        // Without a cluster the first pass polls nothing: it sends what an older daemon left.
        let polls = self.polls_now() && !(self.is_new && self.poller.is_none());
        if polls && self.is_quiet && !self.wants_poll && !self.has_news().await {
            return Ok(self.rest());
        }
        self.is_quiet = false;
        while polls && self.record_is_due() {
            // A poll may take long.
            self.dispatch(Vec::new()).await?;
        }
        // Before the poll, not after it: on a slow disk the view would be too old to act on.
        let now = Moment::now();
        self.take_back(|outbox| outbox.remove_stale(now)).await?;
        if polls && !self.take_in().await? {
            self.take_back(Outbox::remove_all).await?;
            return Ok(self.poller.as_ref().map(Poller::rest));
        }
        // Only this poll may have brought the hosts' groups.
        self.bring_what_is_new().await?;
        if self.stop.is_cancelled() {
            return Ok(None);
        }
        let mut next = self.dispatch(self.capacity()).await?;
        while self.record_is_due() {
            next = self.dispatch(self.capacity()).await?;
        }
        self.is_new = false;
        self.ask_hosts();
        self.keep_house().await?;
        self.pruner.pass(&self.shared).await?;
        let due = self.due(next);
        self.is_quiet = due.is_none() && self.has_nothing_to_do().await?;
        let beat = checks::beat(self.shared.base.settings().healthcheck.ttl);
        let others = [beat, self.pruner.rest(Instant::now())];
        Ok(due.into_iter().chain(self.rest()).chain(others).min())
    }

    /// When the next thing is due that was begun or planned.
    fn due(&self, next: Option<Duration>) -> Option<Duration> {
        let moment = Moment::now();
        // Before the outboxes are locked: the journal's thread may hold this lock for a while.
        let planned = self.shared.policy.steering().next().map(|at| at.since(moment.wall));
        let outboxes = self.shared.routes.outboxes();
        let probe = outboxes.values().filter_map(|outbox| outbox.endpoint.rest(moment.instant)).min();
        let stale = outboxes.values().filter_map(|outbox| outbox.stays_fresh(moment)).min();
        let ordered = self.shared.base.settings().routes.iter().any(|route| route.terms.after.is_some());
        let order = (ordered && self.poller.is_none()).then_some(ORDER);
        next.into_iter().chain(probe).chain(stale).chain(order).chain(planned).min()
    }

    /// Whether answers wait that are to be recorded now.
    fn record_is_due(&self) -> bool {
        self.answers.rest(Instant::now(), !self.exchanges.is_empty()) == Some(Duration::ZERO)
    }

    /// The schedule is kept in the wall clock's time. If that is set back, nothing may wait until it has caught up. If it is set
    /// forward, everything is due, and each endpoint's window limits what it gets.
    async fn mind_the_clock(&mut self) -> Done {
        let (then, now) = (self.clocks, Moment::now());
        let set = now.set_since(then).unwrap_or_default();
        self.pruner.mind_the_clock(set, now.instant);
        if set < 0 {
            let limit = now.wall + endpoint::CAP;
            self.shared.base.store.run(move |journal| journal.put_off_no_longer_than(limit)).await?;
            let seconds = endpoint::CAP.as_secs();
            warn!(
                "the clock was set back: retries that were due by its old time are made within {seconds} s"
            );
        }
        // A start waits for no journal that is locked: the first pass looks what was set before it.
        if set != 0 || self.is_new {
            let boot = moment::boot();
            self.shared.base.store.run(move |journal| journal.mind_the_clock(&boot, now.wall)).await?;
        }
        // The start moves with the clock, so that what was written before it stays before it.
        let mut started = self.shared.base.started();
        *started = Timestamp(started.0.saturating_add(set));
        self.clocks = now;
        Ok(())
    }

    /// Takes up the answers that have come.
    fn gather(&mut self) {
        while let Ok(answer) = self.coming.try_recv() {
            self.answers.add(answer, Instant::now());
        }
        while self.exchanges.try_join_next().is_some() {}
    }

    /// In one step: records the first answers, begins what is due and has capacity, and sends it. Gives the wait until the next thing
    /// is due. After an error the answers are still there.
    async fn dispatch(&mut self, capacity: Vec<Capacity>) -> Done<Option<Duration>> {
        let is_due = self.record_is_due() || capacity.is_empty();
        let group = if is_due { self.answers.group() } else { &[] };
        let count = group.len();
        let ended: Vec<Ended> = group.iter().map(|answer| answer.ended.clone()).collect();
        let started = *self.shared.base.started();
        let wait = self.poller.as_ref().map(|poller| poller.wait(started));
        let asked = capacity.clone();
        let state = Arc::clone(&self.shared);
        let work = move |journal: &mut Journal| {
            let now = Timestamp::now();
            // An ended attempt frees a place: in a group that is sent a few at a time, the next mark is chosen after it.
            let comes_first = capacity.is_empty() || state.policy.steering().is_limited();
            let (first, then) = if comes_first { (ended, Vec::new()) } else { (Vec::new(), ended) };
            let mut dispatched = journal.dispatch(&first, &[], wait, now)?;
            if !capacity.is_empty() {
                steer::keep_up(journal, state.policy(), (&capacity, wait), now)?;
                dispatched.add(journal.dispatch(&then, &capacity, wait, now)?);
            }
            // What is due but has no capacity, or is behind another mark of its host, waits for an attempt to end.
            let next = journal.next_due(now, &capacity);
            Ok((dispatched, next.map(|next| next.map(|at| at.since(now).min(endpoint::LONGEST_ASKED)))))
        };
        // What has begun is sent or taken back, whatever else fails.
        let (dispatched, next) = self.shared.base.store.run(work).await?;
        self.answers.group().iter().zip(&dispatched.recorded).for_each(|(answer, recorded)| {
            self.shared.metrics.answered(answer, *recorded);
        });
        self.answers.remove(count, Instant::now());
        self.shared.supervisor.gets_on();
        self.is_behind |= count > 0;
        self.shared.base.damages.report(&dispatched.damaged);
        dispatched.kept.iter().for_each(delivery::report_kept);
        self.take_up(dispatched.begun, &asked);
        self.send();
        self.knock();
        match dispatched.kept.is_empty() {
            true => next,
            false => self.shared.forget_troubles().await.and(Ok(Some(Duration::ZERO))),
        }
    }

    fn take_up(&self, mut begun: Vec<DueDelivery>, asked: &[Capacity]) {
        let (left, now) = (self.poller.as_ref().map_or(FRESH, Poller::permitted_for), Moment::now());
        if left.is_zero() && !begun.is_empty() {
            warn!(
                "writing the attempts took too long: the cluster's state is stale and nothing was sent; check the journal's disk and the load of this controller"
            );
        }
        let mut outboxes = self.shared.routes.outboxes();
        for Capacity { route, places, .. } in asked {
            let own = begun.extract_if(.., |due| due.delivery.route == *route).collect();
            if let Some(outbox) = outboxes.get_mut(route) {
                outbox.take_up(own, *places, left, now);
            }
        }
    }

    /// Whether something may be new.
    fn polls_now(&self) -> bool {
        self.wants_poll || self.rest().is_some_and(|rest| rest.is_zero())
    }

    /// Polls the cluster, if there is one, takes in what is new and brings the register up to date. Says whether marks may be sent
    /// now.
    async fn take_in(&mut self) -> Done<bool> {
        let permitted = match &mut self.poller {
            Some(poller) => {
                let is_permitted = poll(&self.shared, poller).await?;
                is_permitted && !steer::waits_for_cib(self.shared.policy(), Timestamp::now())
            }
            None => take_view(&self.shared, None).await.map(|()| true)?,
        };
        (self.wants_poll, self.is_behind, self.polled) = (false, false, Some(Instant::now()));
        Ok(permitted)
    }

    /// Whether the cluster has anything new; what it has is then polled.
    async fn has_news(&mut self) -> bool {
        match &mut self.poller {
            Some(poller) => poller.has_news(&self.shared).await,
            None => true,
        }
    }

    /// Whether nothing is open, under way or waited for, so that nothing needs a view of the cluster that is fresh enough to act on.
    async fn has_nothing_to_do(&self) -> Done<bool> {
        let is_busy = !self.exchanges.is_empty()
            || !self.answers.is_empty()
            || !self.unsent.is_empty()
            || self.is_behind
            || self.wants_poll
            || self.renewed.is_some()
            || self.poller.as_ref().is_none_or(|poller| !poller.permits() || poller.is_behind())
            || self.shared.base.seen().is_waiting();
        if is_busy {
            return Ok(false);
        }
        self.shared
            .base
            .store
            .run(|journal| Ok(!journal.has_open_marks()? && journal.unfolded_fencings()?.count() == 0))
            .await
    }

    /// How long until the cluster is to be polled, or asked for news.
    fn rest(&self) -> Option<Duration> {
        let poller = self.poller.as_ref()?;
        if self.is_quiet {
            return Some(poller.long_rest());
        }
        if !poller.permits() {
            return Some(Duration::ZERO);
        }
        let since = self.polled.map_or(Duration::MAX, |at| at.elapsed());
        let upkeep = self.is_behind.then(|| poller::UPKEEP.saturating_sub(since));
        Some(upkeep.into_iter().fold(poller.rest(), Duration::min))
    }

    /// Takes back attempts that began in the journal and cannot be sent now: they begin again later. After an error they are still to
    /// be taken back.
    async fn take_back(&mut self, remove: impl FnMut(&mut Outbox) -> Vec<DueDelivery>) -> Done {
        self.unsent.extend(self.shared.routes.outboxes().values_mut().flat_map(remove));
        if self.unsent.is_empty() {
            return Ok(());
        }
        let unsent = self.unsent.clone();
        self.shared
            .base
            .store
            .run(move |journal| journal.take_back(&keys(&unsent), Timestamp::now()))
            .await?;
        self.unsent.clear();
        Ok(())
    }

    /// Has exactly the hosts probed whose marks wait for that.
    fn ask_hosts(&mut self) {
        let wanted = self.shared.policy.steering().to_probe();
        for (mark, host, confirm) in &wanted {
            self.prober.want(*mark, host, confirm);
        }
        self.prober.keep_only(&wanted.iter().map(|(mark, ..)| *mark).collect());
        self.post_conclusions();
    }

    /// A conclusion that could not be acted on is posted again.
    fn post_conclusions(&mut self) {
        let steering = self.shared.policy.steering();
        let is_news = |(mark, conclusion): &(MarkId, Conclusion)| {
            let known = steering.probe_of(*mark);
            *conclusion == Conclusion::Confirmed && known.is_some_and(|probe| *probe != Conclusion::Confirmed)
        };
        let news: HashMap<MarkId, Conclusion> =
            self.prober.conclusions().into_iter().filter(is_news).collect();
        self.wants_poll |= !news.is_empty();
        self.shared.policy.conclusions().extend(news);
    }

    /// What need not be done at once.
    async fn keep_house(&mut self) -> Done {
        if self.kept_house.is_some_and(|done| done.elapsed() < HOUSEKEEPING) {
            return Ok(());
        }
        let state = Arc::clone(&self.shared);
        let work = move |journal: &mut Journal| {
            let now = Timestamp::now();
            start::serve_unserved(journal, &state.base, now)?;
            trouble::check_stranded(journal, &state.base, &state.routes)?;
            unproven::warn(journal, &state, now)?;
            for route in &state.base.settings().routes {
                if let Some(limit) = route.terms.stale_after {
                    journal.free_stale(route.name.as_str(), now - limit, now)?;
                }
            }
            journal.cancel_unrequired(now - state.base.settings().intake.horizon, now)
        };
        let cancelled = self.shared.base.store.run(work).await?;
        self.kept_house = Some(Instant::now());
        if cancelled > 0 {
            warn!(
                cancelled,
                "deliveries of settled marks to routes that are not required were cancelled: see [intake] horizon"
            );
        }
        Ok(())
    }

    /// How many more attempts each route may have begun, in the order of the configuration.
    fn capacity(&self) -> Vec<Capacity> {
        let (now, mut outboxes) = (Instant::now(), self.shared.routes.outboxes());
        let settings = self.shared.base.settings();
        let members = self.shared.base.members(Timestamp::now());
        let ask = |route: &Arc<Route>| {
            let capacity = outboxes.get_mut(route.name.as_str())?.ask(route, now);
            Some(Capacity { membership: members.clone(), ..capacity })
        };
        settings.routes.iter().filter_map(ask).collect()
    }

    /// Starts as many exchanges as there is capacity for.
    fn send(&mut self) {
        let now = Moment::now();
        let mut outboxes = self.shared.routes.outboxes();
        for outbox in outboxes.values_mut() {
            while let Some(due) = outbox.next(now) {
                let route = self.shared.base.route(&due.delivery.route);
                let route = route.expect("a route's outbox goes with it");
                let exchange = delivery::serve(self.shared.sending(), route, due, self.sender.clone());
                self.exchanges.spawn(exchange);
            }
        }
    }

    /// Asks endpoints that are away.
    fn knock(&mut self) {
        for (route, peer) in self.shared.routes.knocks(Instant::now()) {
            self.knocks.spawn(delivery::knock(self.shared.sending(), route, peer));
        }
    }

    /// Returns when there is a reason for another pass.
    async fn wait(&mut self, next: Option<Duration>, stop: &CancellationToken) {
        if self.wants_poll {
            return;
        }
        let next = next.map(|wait| Instant::now() + wait);
        loop {
            let record = self.answers.rest(Instant::now(), !self.exchanges.is_empty());
            if record == Some(Duration::ZERO) {
                return;
            }
            let record = record.map(|rest| Instant::now() + rest);
            match self.event(next.into_iter().chain(record).min(), stop).await {
                Event::Membership => {
                    self.wants_poll = true;
                    return;
                }
                Event::Time => return,
                Event::Answer(answer) => self.answers.add(answer, Instant::now()),
                Event::Ended => {}
            }
            let now = Instant::now();
            if self.shared.routes.outboxes().values().any(|outbox| outbox.is_running_dry(now)) {
                return;
            }
        }
    }

    async fn event(&mut self, next: Option<Instant>, stop: &CancellationToken) -> Event {
        let timer = async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let timer = pin!(timer);
        let cluster = async {
            match &mut self.poller {
                Some(poller) => poller.changed().await,
                None => std::future::pending().await,
            }
        };
        let cluster = pin!(cluster);
        tokio::select! {
            () = stop.cancelled() => Event::Time,
            () = cluster => Event::Membership,
            () = self.watch.changed() => Event::Membership,
            () = self.shared.poke.notified() => Event::Membership,
            () = timer => Event::Time,
            () = self.prober.changed() => {
                *self.shared.policy.conclusions() = self.prober.conclusions();
                Event::Time
            }
            Some(answer) = self.coming.recv() => Event::Answer(answer),
            Some(_) = self.exchanges.join_next() => Event::Ended,
            Some(_) = self.knocks.join_next() => Event::Ended,
        }
    }

    /// Some faults pass (a full disk, a stuck lock): log such a fault once and go on.
    fn survive(&self, error: JournalError) -> Done<Duration> {
        if !error.may_pass() {
            return Err(error);
        }
        let sentence = error.to_string();
        let mut trouble = self.shared.journal_trouble();
        if trouble.as_ref().is_none_or(|(_, said)| *said != sentence) {
            error!(kind = error.kind(), "{sentence}; marks and answers are kept, and written later");
            let since = trouble.as_ref().map_or_else(Instant::now, |(since, _)| *since);
            *trouble = Some((since, sentence));
        }
        Ok(JOURNAL_PAUSE)
    }
}

/// Why the engine wakes.
enum Event {
    /// Something may be new.
    Membership,
    /// Something is due.
    Time,
    /// An attempt has ended.
    Answer(Answer),
    /// An outbox has nothing more to send, or an endpoint has answered a bare connection.
    Ended,
}

fn keys(due: &[DueDelivery]) -> Vec<(MarkId, &str)> {
    due.iter().map(|due| (due.mark.id, due.delivery.route.as_str())).collect()
}

/// Says whether marks may be sent now.
async fn poll(shared: &Arc<Shared>, poller: &mut Poller) -> Done<bool> {
    let view = poller.poll(shared).await;
    take_view(shared, Some(view)).await?;
    let wanted = std::mem::take(&mut shared.base.seen().history_wanted);
    if wanted {
        let view = poller.poll_now(shared, true).await;
        take_view(shared, Some(view)).await?;
    }
    poller.keep_up(shared).await?;
    if !poller.permits() {
        // Writing the register may have made the view too old: poll again, and take that in before it is acted on.
        let view = poller.poll(shared).await;
        take_view(shared, Some(view)).await?;
    }
    Ok(poller.permits())
}

async fn take_view(shared: &Arc<Shared>, view: Option<Arc<View>>) -> Done {
    let state = Arc::clone(shared);
    let work = move |journal: &mut Journal| {
        apply::take_in(journal, (&state.base, &state.accounts), view.as_deref())?;
        let now = Timestamp::now();
        steer::steer(journal, state.policy(), now)?;
        let is_permitted = view.as_ref().is_none_or(|view| view.acts_on().is_ok());
        if is_permitted { Ok(()) } else { steer::stop_chains(journal, state.policy(), now) }
    };
    shared.base.store.run(work).await
}

/// The daemon's state in one sentence; from memory.
fn sentence(shared: &Shared, now: Timestamp) -> String {
    let routes = shared.base.settings().own_routes().count();
    let reasons = shared.reasons(now);
    match reasons.as_slice() {
        [] => format!("notifies {routes} route(s), and nothing is wrong"),
        [only] => format!("degraded: {only}"),
        [first, more @ ..] => format!("degraded: {first}; and {} more reason(s), see `status`", more.len()),
    }
}
