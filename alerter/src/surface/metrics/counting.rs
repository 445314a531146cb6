//! Has the journal counted now and then, and keeps the figures in memory. Counting has a connection and a thread of its own, so that
//! no mark waits for it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use journal::{Done, Journal, Role};
use marks::time::Timestamp;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::intake::account;
use crate::moment::Moment;
use crate::policy::groups::Groups;
use crate::state::{Figures, Shared};

/// Two counts are not closer than this, however often something changes.
const SPACING: Duration = Duration::from_secs(1);
/// Counting takes at most one part in so many of the time.
const SHARE: u32 = 20;
/// Without any change it is counted again after this time.
const LONGEST: Duration = Duration::from_secs(30);
/// What takes long to count is counted so seldom,
const SELDOM: Duration = Duration::from_secs(60);
/// unless there are no more marks than this.
const FEW: u64 = 2000;
/// So long a stop waits for a count that is under way.
const GRACE: Duration = Duration::from_secs(2);

/// Counts after each pass of the engine, until `stop`. When this has returned, the connection is closed.
pub async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let path = shared.base.settings().store.path.clone();
    let Ok(counter) = Counter::start(path) else { return };
    let counting = async {
        loop {
            let begun = Instant::now();
            counter.count(&shared).await;
            let rest = SPACING.max(begun.elapsed() * SHARE);
            sleep(rest).await;
            let _changed_or_not = timeout(LONGEST.saturating_sub(rest), shared.passed.notified()).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = counting => {}
    }
    counter.end().await;
}

/// Counts once, at this moment.
///
/// # Errors
/// As any read of the journal.
pub fn count_now(journal: &Journal, shared: &Shared) -> Done<Figures> {
    Counting::default().count(journal, shared)
}

/// Who waits for a count; what is counted goes into `Shared`.
type Asked = (Arc<Shared>, oneshot::Sender<()>);

/// The thread.
struct Counter {
    ask: mpsc::Sender<Asked>,
    ended: oneshot::Receiver<()>,
}

impl Counter {
    fn start(path: PathBuf) -> std::io::Result<Self> {
        let (ask, asked) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name("figures".into()).spawn(move || {
            answer_all(&path, &asked);
            let _nobody_waits = end.send(());
        })?;
        Ok(Self { ask, ended })
    }

    async fn count(&self, shared: &Arc<Shared>) {
        let (done, counted) = oneshot::channel();
        // A thread that is not there any more counts nothing; the age of the figures says so.
        let _it_has_ended = self.ask.send((Arc::clone(shared), done));
        let _either = counted.await;
    }

    async fn end(self) {
        drop(self.ask);
        let _too_long = timeout(GRACE, self.ended).await;
    }
}

fn answer_all(path: &Path, asked: &mpsc::Receiver<Asked>) {
    let (mut open, mut counting) = (None, Counting::default());
    for (shared, done) in asked {
        let counted = reader(&mut open, path).and_then(|journal| counting.count(journal, &shared));
        match counted {
            Ok(figures) => shared.put_figures(figures),
            // The engine meets the same fault and logs it. A file that was exchanged is opened again.
            Err(error) => {
                debug!(kind = error.kind(), "the journal could not be counted: {error}");
                open = None;
            }
        }
        drop(shared);
        let _nobody_waits = done.send(());
    }
}

fn reader<'j>(open: &'j mut Option<Journal>, path: &Path) -> Done<&'j Journal> {
    if open.is_none() {
        *open = Some(Journal::open(path, Role::Reader)?);
    }
    Ok(open.as_ref().expect("it was just opened"))
}

/// What is remembered from one count to the next.
#[derive(Default)]
struct Counting {
    last: Option<(i64, journal::Figures)>,
    groups: Groups,
    /// When everything was counted, and on which routes.
    whole: Option<(Instant, Vec<String>)>,
}

impl Counting {
    fn count(&mut self, journal: &Journal, shared: &Shared) -> Done<Figures> {
        let counted = self.count_journal(journal, shared)?;
        let damage = shared.base.damages.known();
        shared.base.damages.put(&damage, &journal.still_damaged(&damage)?);
        let groups = self.groups.count(shared.policy(), journal)?;
        Ok(Figures { journal: counted, groups })
    }

    fn count_journal(&mut self, journal: &Journal, shared: &Shared) -> Done<journal::Figures> {
        let settings = shared.base.settings();
        let routes: Vec<String> = settings.routes.iter().map(|route| route.name.to_string()).collect();
        let now = Timestamp::now();
        let (version, _) = journal.version()?;
        let known = self.last.take().map(|(of, figures)| (of == version, figures));
        let whole = self.whole.as_ref().filter(|(at, of)| at.elapsed() < SELDOM && *of == routes);
        let counted = match (known, whole) {
            (Some((true, last)), Some(_)) => {
                journal::Figures { at: Some(now), bytes: journal.size(), ..last }
            }
            (Some((_, last)), Some(_)) if last.marks.all() > FEW => {
                journal.figures(&routes, Some(&last), now)?
            }
            _ => {
                let counted = journal.figures(&routes, None, now)?;
                account::check(journal, &shared.base, &shared.accounts, Moment::now())?;
                self.whole = Some((Instant::now(), routes));
                counted
            }
        };
        self.last = Some((version, counted.clone()));
        Ok(counted)
    }
}
