//! A real journal with a real route, and the daemon's own refresher beside them: without the daemon's clock of a minute.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::config::{self, Route};
use alerter::daemon::refresher;
use alerter::state::Shared;
use anyhow::{Context as _, ensure};
use drivers::{Message, Outcome, Step};
use journal::{Capacity, DueDelivery, Ended, Journal, JournalError, NewDelivery, Role, Taken, Verdict};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::refresh::Refresh;
use marks::returning::Membership;
use marks::terms::Terms;
use marks::time::Timestamp;
use tests::programs::Site;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use tests::alertmanager::Alertmanager;

/// Between two rounds.
const ROUND: Duration = Duration::from_millis(200);

/// The controller's side.
pub(crate) struct Controller {
    runtime: Runtime,
    shared: Arc<Shared>,
    route: Arc<Route>,
    stop: CancellationToken,
    _site: Site,
}

impl Controller {
    pub(crate) fn begin(alertmanager: &Alertmanager) -> anyhow::Result<Self> {
        let site = Site::with(&alertmanager.route())?;
        let settings = config::load(&site.config())?;
        let route = Arc::clone(settings.routes.first().context("there is a route")?);
        let (store, _thread) = Store::start(Journal::open(&site.journal(), Role::Alerter)?)?;
        let shared = Arc::new(Shared::new(Base::new(settings, store, None)));
        shared.acting.allow(Duration::MAX);
        Ok(Self { runtime: runtime()?, shared, route, stop: CancellationToken::new(), _site: site })
    }

    /// Begins to refresh, as the daemon does, but more often.
    pub(crate) fn refresh(&self) -> anyhow::Result<()> {
        let usual = self.route.driver.refreshed().context("it is refreshed")?;
        let refresh = Refresh { every: ROUND, ..usual };
        let (shared, route) = (Arc::clone(&self.shared), Arc::clone(&self.route));
        let (stop, runtime) = (self.stop.clone(), runtime()?);
        // It ends with this value.
        let _thread = thread::spawn(move || runtime.block_on(refresher::keep(shared, route, refresh, stop)));
        Ok(())
    }

    /// A host has failed a minute ago, and its mark is made.
    pub(crate) fn mark(&self, host: &str) -> anyhow::Result<MarkRow> {
        let now = Timestamp::now() - Duration::from_secs(60);
        let first = samples::fencing(host, now);
        let row = samples::mark(&first);
        let body = self.route.driver.body(&row.to_mark().context("it has a name")?);
        let new = NewDelivery { route: self.name(Step::Failure), body, required: true, link: None };
        let made = row.clone();
        self.journal(move |journal| {
            journal.append_fencing(&first)?;
            journal.make_mark(&made, Taken::Fencing(&first), &[new], now)
        })?;
        Ok(row)
    }

    /// It is seen to be back, and the return is made, by a clock that is so much ahead.
    pub(crate) fn come_back(&self, row: &MarkRow, ahead: Duration) -> anyhow::Result<()> {
        let (now, mark) = (Timestamp::now(), row.to_mark().context("it has a name")?);
        let returned = now + ahead;
        let body = self.route.driver.return_body(&mark, &[], returned);
        let new = NewDelivery { route: self.name(Step::Return), body, required: false, link: None };
        self.journal(move |journal| {
            journal.note_return(mark.id, returned, now)?;
            journal.add_deliveries(&mark, &[new], now)
        })
    }

    /// Delivers what is due on a step of the route, as the engine does.
    pub(crate) fn deliver(&self, step: Step) -> anyhow::Result<()> {
        let now = Timestamp::now() + Duration::from_millis(1);
        let (route, target) = (self.name(step), self.route.driver.target());
        let begun = self.journal(move |journal| {
            let members = journal.recent(Timestamp(0), 99)?.sound.into_iter().map(|recent| recent.mark.node);
            let membership = Some(Arc::new(Membership { at: now, members: members.collect() }));
            let terms = Terms { notifies_return: step == Step::Return, ..Terms::default() };
            let capacity = Capacity { membership, terms, target, ..Capacity::of(&route, 9) };
            journal.dispatch(&[], &[capacity], None, now)
        })?;
        ensure!(begun.begun.len() == 1, "{begun:?}");
        begun.begun.iter().try_for_each(|due| self.deliver_one(step, due))
    }

    fn deliver_one(&self, step: Step, due: &DueDelivery) -> anyhow::Result<()> {
        self.send(step, due.mark.id, &due.delivery.body)?;
        let verdict = Verdict::Acknowledged { reference: None, detail: "HTTP 200".into(), then: Vec::new() };
        let ended = Ended { mark: due.mark.id, route: self.name(step), verdict, at: Timestamp::now() };
        self.journal(move |journal| journal.dispatch(&[ended], &[], None, Timestamp::now()).map(drop))
    }

    /// One exchange, of which the journal learns nothing.
    pub(crate) fn send(&self, step: Step, id: MarkId, body: &[u8]) -> anyhow::Result<()> {
        let message = Message { step, id: &id, body, ambiguous: 0, attempts: 1, is_released: false };
        let outcome = self.runtime.block_on(self.route.driver.deliver(message));
        ensure!(matches!(outcome, Outcome::Acknowledged { .. }), "{outcome:?}");
        Ok(())
    }

    pub(crate) fn driver(&self) -> &dyn drivers::Driver {
        &*self.route.driver
    }

    fn name(&self, step: Step) -> String {
        self.route.name.of_step(step).as_str().to_owned()
    }

    fn journal<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Journal) -> Result<T, JournalError> + Send + 'static,
    ) -> anyhow::Result<T> {
        Ok(self.runtime.block_on(self.shared.base.store.run(work))?)
    }
}

fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
