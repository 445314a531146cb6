//! The newest page. One thread makes it: never two at a time, and never more often than once a second, however many browsers
//! ask and however long the disk takes.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;

use super::picture::{PATIENCE, Picture};
use super::view;
use crate::state::Shared;

/// The least time between two readings of the journal.
const PACE: Duration = Duration::from_secs(1);
/// At most a tenth of a processor is used for it.
const SHARE: u32 = 10;
/// However long one took: what is older is not shown as if it were new.
const LONGEST: Duration = Duration::from_secs(10);

/// What was made last.
struct Made {
    good_until: Instant,
    page: Bytes,
    /// The same for those who ask when it is old and no new one comes.
    late: Bytes,
}

impl Made {
    fn of(picture: &Picture, begun: Instant) -> Self {
        let (page, late) = view::texts(picture);
        Self { good_until: begun + good_for(begun.elapsed()), page: page.into(), late: late.into() }
    }

    fn is_good(&self) -> bool {
        Instant::now() < self.good_until
    }
}

/// For how long after its beginning a page is good that took so long to make.
fn good_for(took: Duration) -> Duration {
    took.saturating_mul(SHARE).max(PACE).min(took.saturating_add(LONGEST))
}

/// The thread as requests see it. It ends when this is dropped.
pub(super) struct PageCache {
    wanted: mpsc::SyncSender<()>,
    newest: watch::Receiver<Made>,
    patience: Duration,
}

impl PageCache {
    /// A cache on which the pictures of this daemon come.
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let first = Picture::unread(shared, "it has not answered yet".to_owned());
        // Between two pictures the thread keeps nothing that a stop waits for.
        let (shared, mut journal) = (Arc::downgrade(shared), None);
        Self::with(&first, PATIENCE, move || Some(Picture::take(&*shared.upgrade()?, &mut journal)))
    }

    fn with(
        first: &Picture,
        patience: Duration,
        take: impl FnMut() -> Option<Picture> + Send + 'static,
    ) -> Self {
        let now = Instant::now();
        let (made, newest) = watch::channel(Made { good_until: now, ..Made::of(first, now) });
        // One request more is kept than the one that is served: what is asked for meanwhile is the same.
        let (wanted, asked) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("page".into());
        // Without a thread nobody makes a page, and the first one says that it is old.
        let _too_many = thread.spawn(move || make_all(&asked, &made, take));
        Self { wanted, newest, patience }
    }

    /// The newest page; where none comes in time, the last one, which says that it is old.
    pub(super) async fn page(&self) -> Bytes {
        let mut newest = self.newest.clone();
        if !newest.borrow().is_good() {
            let _asked_for_already = self.wanted.try_send(());
        }
        match timeout(self.patience, newest.wait_for(Made::is_good)).await {
            Ok(Ok(made)) => made.page.clone(),
            _ => self.newest.borrow().late.clone(),
        }
    }
}

fn make_all(
    asked: &mpsc::Receiver<()>,
    newest: &watch::Sender<Made>,
    mut take: impl FnMut() -> Option<Picture>,
) {
    for () in asked {
        // It may have been asked for while that one was made.
        if newest.borrow().is_good() {
            continue;
        }
        let begun = Instant::now();
        let Some(picture) = take() else { return };
        newest.send_replace(Made::of(&picture, begun));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::view::tests::picture;
    use super::*;

    fn says(page: &Bytes, words: &str) -> bool {
        String::from_utf8_lossy(page).contains(words)
    }

    /// The broken variant shows what it saw after a minute's hang for nine minutes more, as if it were of now.
    #[test]
    fn a_page_is_never_good_for_long() {
        let seconds = Duration::from_secs;
        assert_eq!(good_for(Duration::from_millis(3)), PACE);
        assert_eq!(good_for(Duration::from_millis(400)), seconds(4));
        assert_eq!(good_for(seconds(60)), seconds(60) + LONGEST);
    }

    /// The disk hangs. The broken variant makes a picture for each request, or lets requests wait for it.
    #[tokio::test]
    async fn a_disk_that_hangs_costs_one_thread_and_nobody_waits_for_it() {
        let (go_on, hangs) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        let cache = PageCache::with(&picture(), Duration::from_millis(5), move || {
            count.fetch_add(1, Ordering::Relaxed);
            begun.send(()).ok()?;
            hangs.recv().ok()?;
            Some(picture())
        });
        for _ in 0..20 {
            let late = cache.page().await;
            assert!(says(&late, "UNKNOWN whether") && !says(&late, "No fenced host waits to be reported"));
        }
        begins.recv().unwrap();
        assert_eq!(taken.load(Ordering::Relaxed), 1);
        go_on.send(()).unwrap();
        let mut newest = cache.newest.clone();
        newest.changed().await.unwrap();
        assert!(says(&newest.borrow().page, "No fenced host waits to be reported."));
    }
}
