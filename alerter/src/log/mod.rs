//! The daemon's log: one sentence with fields for each event, to syslog and to stderr.

pub mod record;
pub mod sinks;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use record::Record;
use sinks::Sinks;

/// The log of the whole process.
static OUTPUT: OnceLock<Arc<Output>> = OnceLock::new();
/// Its level.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

/// `[log]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `level`: events below it are not logged.
    pub level: Level,
    /// `to`: where lines go, beside stderr.
    pub to: To,
}

/// Where lines go, beside stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The syslog socket, unless the systemd journal reads stderr: no line stands there twice.
    Syslog,
    /// Nowhere else.
    Stderr,
}

/// Starts logging for the rest of the process. Events of the libraries come through only as warnings.
pub fn start(rules: Rules) {
    let output = Arc::new(Output { sinks: Mutex::new(Sinks::new(rules.to)) });
    let _only_once = OUTPUT.set(Arc::clone(&output));
    let (filter, handle) = reload::Layer::new(LevelFilter::from_level(rules.level));
    tracing_subscriber::registry().with(Lines { output }.with_filter(filter)).init();
    let _only_once = LEVEL.set(handle);
}

/// Changes the rules; without a log it does nothing.
pub fn put(rules: Rules) {
    let (Some(output), Some(level)) = (OUTPUT.get(), LEVEL.get()) else { return };
    *output.sinks() = Sinks::new(rules.to);
    let _the_log_has_ended = level.reload(LevelFilter::from_level(rules.level));
}

impl To {
    /// What shows the log that goes there.
    pub fn how_to_read(self) -> &'static str {
        match self {
            Self::Stderr => "stderr of the process that started it",
            Self::Syslog if Path::new("/run/systemd/journal/socket").exists() => {
                "`journalctl -t nova-host-alerter`"
            }
            Self::Syslog => "`grep -rs nova-host-alerter /var/log`",
        }
    }
}

struct Output {
    sinks: Mutex<Sinks>,
}

impl Output {
    fn sinks(&self) -> MutexGuard<'_, Sinks> {
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner)
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
        if is_ours(meta.target()) || *meta.level() <= Level::WARN {
            self.output.sinks().write(&Record::of(event));
        }
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
