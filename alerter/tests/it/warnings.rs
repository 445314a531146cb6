//! What a log would show as a warning.

use std::sync::{Arc, Mutex, Once};

use alerter::log::is_ours;
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::route::SECRET;

/// Keeps the warnings of this program, and takes none with the secret in it.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Listens on this thread until the guard goes.
    pub(crate) fn listen(&self) -> DefaultGuard {
        before_listening();
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    /// What came since the last reading.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A place in the code that logs for the first time asks its own thread's subscriber alone, while there is one in the program. Where
/// another test's thread has none, the place stays silent for every listener (`has_just_one` in tracing-core's callsites). So all threads
/// get a subscriber.
pub(crate) fn before_listening() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry())
            .expect("no test installs a log for the whole program");
    });
    tracing::callsite::rebuild_interest_cache();
}

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::WARN && is_ours(event.metadata().target()) {
            let said = format!("{event:?}");
            assert!(!said.contains(SECRET), "{said}");
            self.0.lock().unwrap().push(said);
        }
    }
}
