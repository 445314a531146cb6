//! What a log would show as a warning.

use std::sync::{Arc, Mutex};

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
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    /// What came since the last look.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
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
