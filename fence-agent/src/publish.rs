//! From the journal of this controller to the register of the cluster: at once, or by a later call where that failed.

use std::time::{Duration, Instant};

use marks::fencing::Fencing;
use marks::journal::{Journal, JournalError, Role};
use marks::register::{Entry, Key, Register, RegisterError};
use marks::time::Timestamp;

use crate::call::{Call, Failure};
use crate::run::OWN_LIMIT;
use crate::settings::Settings;
use crate::watch;

/// How long the register may take. A lost controller holds it up for about three seconds.
const REGISTER_LIMIT: Duration = Duration::from_secs(10);
/// What was left over from earlier calls may hold up a fencing no longer than this.
const LEFTOVERS_LIMIT: Duration = Duration::from_secs(2);
/// What was published may be noted for so long.
const NOTE_LIMIT: Duration = Duration::from_secs(1);
/// Before the agent's own limit ends all, so that there is time for an answer.
const RESERVE: Duration = Duration::from_secs(2);
/// Older fencings are not published: no alerter makes a mark of them (its `horizon`).
const WORTH_PUBLISHING: Duration = Duration::from_secs(24 * 3600);

/// What the journal knows and the register does not.
pub(crate) fn unpublished(journal: &Journal, register: Register) -> Result<Vec<Fencing>, JournalError> {
    if register == Register::None {
        return Ok(Vec::new());
    }
    Ok(journal.unpublished(Timestamp::now() - WORTH_PUBLISHING)?.sound)
}

/// Publishes a fencing that is safe in the journal, and then what earlier calls left over. What fails stays there.
pub(crate) fn after_journal(call: &Call, settings: &Settings, fencing: &Fencing, leftovers: &[Fencing]) {
    let register = settings.register();
    let mut published = Vec::new();
    let own = each(call, register, std::slice::from_ref(fencing), &mut published, soon(call, REGISTER_LIMIT));
    let all = own.and_then(|()| each(call, register, leftovers, &mut published, soon(call, LEFTOVERS_LIMIT)));
    note(call, settings, published);
    if let Err(e) = all {
        call.report.warning(&format!(
            "the register {} does not hold every fencing of this controller: {e}; the next off or monitor publishes them",
            register.as_str()
        ));
    }
}

/// Publishes what earlier calls could not, and looks whether the register can be read.
///
/// # Errors
/// [`Failure`]: something is not in the register, or it cannot be read.
pub(crate) fn catch_up(call: &Call, settings: &Settings, journal: &Journal) -> Result<(), Failure> {
    let register = settings.register();
    if register == Register::None {
        return Ok(());
    }
    let waiting = unpublished(journal, register)?;
    let mut published = Vec::new();
    let done = each(call, register, &waiting, &mut published, soon(call, REGISTER_LIMIT));
    note(call, settings, published);
    done?;
    let apart = register.read(&call.paths.tools, end(call))?.apart;
    if let Some(first) = apart.first() {
        let (count, key) = (apart.len(), &first.key);
        call.report.warning(&format!("{count} entries of the register cannot be used: look who wrote {key}"));
    }
    Ok(())
}

/// One after the other up to the first failure.
fn each(
    call: &Call,
    register: Register,
    fencings: &[Fencing],
    published: &mut Vec<String>,
    deadline: Instant,
) -> Result<(), RegisterError> {
    for fencing in fencings {
        match register.publish(&call.paths.tools, &[Entry::Fencing(fencing.clone())], deadline) {
            // These will never be there, and must not keep the others back.
            Err(e @ (RegisterError::Unfit { .. } | RegisterError::Other { .. })) => {
                call.report.warning(&e.to_string());
            }
            done => {
                done?;
                published.push(Key::Fencing(fencing.id).to_string());
            }
        }
    }
    Ok(())
}

/// The journal is opened again for it: it was closed while the cluster was waited for. Both copies are there, so that a disk
/// that has become slow meanwhile holds the answer up no longer than this.
fn note(call: &Call, settings: &Settings, published: Vec<String>) {
    if published.is_empty() {
        return;
    }
    let settings = settings.clone();
    let why = match watch::in_time(NOTE_LIMIT, move || note_in_journal(&settings, &published)) {
        Some(Ok(())) => return,
        Some(Err(e)) => e.to_string(),
        None => format!("the journal did not take it within {} s", NOTE_LIMIT.as_secs()),
    };
    call.report.warning(&format!("what is in the register will be written there once more: {why}"));
}

fn note_in_journal(settings: &Settings, published: &[String]) -> Result<(), JournalError> {
    Journal::open(&settings.store, Role::Agent)?.note_published(settings.register(), published)
}

/// When the register must have answered at the latest.
pub(crate) fn end(call: &Call) -> Instant {
    call.started + call.delay() + OWN_LIMIT - RESERVE
}

fn soon(call: &Call, limit: Duration) -> Instant {
    end(call).min(Instant::now() + limit)
}
