//! The copies of a fencing: in the journal of this controller, and in the register of the cluster. One copy is enough.

use std::thread;
use std::time::{Duration, Instant};

use marks::fencing::Fencing;
use marks::register::{Entry, Register};
use register::{Done, RegisterError};

use crate::call::Call;
use crate::failure::{JournalGap, KeepError};
use crate::pages::{self, Turn};
use crate::publish;
use crate::settings::Settings;
use crate::store::{self, Request};

/// The pause before a failed register is tried again, while there is no copy.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Stores a fencing. `Ok` means that there is a copy: in the journal, or read back from the register.
///
/// # Errors
/// [`KeepError`]: there is surely none.
pub fn keep(call: &Call, settings: &Settings, fencing: &Fencing) -> Result<(), KeepError> {
    let end = publish::end(call);
    // The journal is closed then: the register may wait for the cluster.
    let journal = |limit| store::ask(call, settings, Request::Append(fencing), limit);
    if settings.register() == Register::None {
        journal(end.saturating_duration_since(Instant::now()))?;
    } else {
        match journal(store::LIMIT) {
            Ok(known) => publish::after_journal(call, settings, fencing, known),
            Err(gap) => return register_alone(call, settings, (fencing, gap), end),
        }
    }
    call.report.notice(&format!("{} is marked, fencing {}", fencing.node, fencing.id));
    Ok(())
}

fn register_alone(
    call: &Call,
    settings: &Settings,
    (fencing, journal): (&Fencing, JournalGap),
    end: Instant,
) -> Result<(), KeepError> {
    let word = settings.register().as_str();
    while let Err(e) = in_register(call, settings, fencing, end) {
        if Instant::now() + RETRY_PAUSE >= end || matches!(e, RegisterError::Unfit { .. }) {
            return Err(KeepError::Both { journal, word, register: Box::new(e) });
        }
        thread::sleep(RETRY_PAUSE);
    }
    call.report.failure(&format!(
        "{} is marked in the register {word} alone, fencing {}: {journal}",
        fencing.node, fencing.id
    ));
    Ok(())
}

fn in_register(call: &Call, settings: &Settings, fencing: &Fencing, end: Instant) -> Done {
    let (entry, access) = (Entry::Fencing(fencing.clone()), settings.access(&call.paths));
    match access.has_pages() {
        true if entry.is_fit() => pages::add(&Turn::of(call, end), &access, &[entry], end),
        _ => access.publish(&entry, end),
    }
}
