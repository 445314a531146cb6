//! The daemon's log: one sentence with fields for each event, to journald or syslog and to stderr, and kept for those that follow it.

pub mod clean;
pub mod fold;
pub mod journald;
pub mod record;
pub mod ring;
mod rules;
pub mod sinks;
pub mod syslog;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use marks::time::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use fold::Fold;
use record::Record;
use ring::Ring;
use sinks::Sinks;

pub use rules::{Format, LINES_PER_MINUTE, Rules, To};

/// The log of the whole process.
static OUTPUT: OnceLock<Arc<Output>> = OnceLock::new();
/// Its level.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();
/// Lines that were folded into others.
static SUPPRESSED: AtomicU64 = AtomicU64::new(0);

/// Starts logging for the rest of the process. Events of the libraries come through only as warnings.
pub fn start(rules: Rules) {
    let output = Arc::new(Output {
        fold: Mutex::new(Fold::new(rules.lines_per_minute)),
        sinks: Mutex::new(Sinks::new(rules)),
        ring: Ring::default(),
        is_folding: Notify::new(),
    });
    let _only_once = OUTPUT.set(Arc::clone(&output));
    let (filter, handle) = reload::Layer::new(LevelFilter::from_level(rules.level));
    tracing_subscriber::registry().with(Lines { output }.with_filter(filter)).init();
    let _only_once = LEVEL.set(handle);
}

/// Changes the rules; without a log it does nothing.
pub fn put(rules: Rules) {
    let (Some(output), Some(level)) = (OUTPUT.get(), LEVEL.get()) else { return };
    // In one step: lines that are folded between two steps would be lost.
    let mut old = std::mem::replace(&mut *output.fold(), Fold::new(rules.lines_per_minute));
    output.write_all(old.all());
    *output.sinks.lock().unwrap_or_else(PoisonError::into_inner) = Sinks::new(rules);
    let _the_log_has_ended = level.reload(LevelFilter::from_level(rules.level));
}

/// How many lines this process has folded into others.
pub fn suppressed() -> u64 {
    SUPPRESSED.load(Ordering::Relaxed)
}

/// The last events, for those that follow the log; none without a log.
pub fn ring() -> Option<&'static Ring> {
    OUTPUT.get().map(|output| &output.ring)
}

/// Logs at the end of each window what was folded in it, until `stop`.
pub async fn sweep(stop: CancellationToken) {
    let Some(output) = OUTPUT.get() else { return };
    while !stop.is_cancelled() {
        let rest = output.fold().rest(Instant::now());
        tokio::select! {
            () = stop.cancelled() => {}
            () = output.is_folding.notified() => {}
            () = tokio::time::sleep(rest.unwrap_or_default()), if rest.is_some() => {
                let due = output.fold().due(Instant::now());
                output.write_all(due);
            }
        }
    }
    flush();
}

/// Logs what was folded and not logged yet, before the process ends.
pub fn flush() {
    if let Some(output) = OUTPUT.get() {
        let left = output.fold().all();
        output.write_all(left);
    }
}

struct Output {
    fold: Mutex<Fold>,
    sinks: Mutex<Sinks>,
    ring: Ring,
    /// A window with folded lines has begun, which ends by time.
    is_folding: Notify,
}

impl Output {
    fn take(&self, record: Record) {
        let (said, is_new) = {
            let mut fold = self.fold();
            let said = fold.take(record, Instant::now());
            (said, fold.took_first())
        };
        self.write_all(said);
        if is_new {
            self.is_folding.notify_one();
        }
    }

    fn write_all(&self, records: Vec<Record>) {
        for record in records {
            SUPPRESSED.fetch_add(record.more, Ordering::Relaxed);
            self.sinks.lock().unwrap_or_else(PoisonError::into_inner).write(&record);
            self.ring.push(&record, Timestamp::now());
        }
    }

    fn fold(&self) -> MutexGuard<'_, Fold> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Lines {
    output: Arc<Output>,
}

/// Whether an event is this program's own: of libraries only warnings count.
pub fn is_ours(target: &str) -> bool {
    ["alerter", "drivers", "nova_host_alerter"].contains(&target.split("::").next().unwrap_or_default())
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let meta = event.metadata();
        if !is_ours(meta.target()) && *meta.level() > Level::WARN {
            return;
        }
        self.output.take(Record::of(event));
    }
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    /// The broken variant knows the crate of the daemon alone, and what a driver says of its new certificates is lost.
    #[test]
    fn what_a_driver_says_is_ours() {
        let said = ["alerter::engine", "drivers::kept", "nova_host_alerter"];
        assert!(said.into_iter().all(is_ours));
        assert!(!["hyper_util::client", "reqwest::connect", "alerters"].into_iter().any(is_ours));
        assert!(!said.into_iter().all(|target| target.starts_with("alerter")));
    }
}
