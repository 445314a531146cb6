//! From the journal of this controller to the register of the cluster: at once, or by a later call after a failure.

use std::time::{Duration, Instant};

use journal::{Agent, JournalError};
use marks::fencing::Fencing;
use marks::register::{Entries, Entry, KEPT, Key, Register};
use marks::time::Timestamp;
use pacemaker::register::RegisterError;

use crate::call::{Call, OWN_LIMIT};
use crate::check::{Compared, compare};
use crate::failure::Failure;
use crate::pages::Turn;
use crate::settings::Settings;
use crate::{pages, watch};

/// The time limit of the register. A lost controller delays it for about three seconds.
const REGISTER_LIMIT: Duration = Duration::from_secs(10);
/// The time limit of earlier calls' leftovers: a fencing must not wait longer for them.
const LEFTOVERS_LIMIT: Duration = Duration::from_secs(2);
/// How many are written again at once: each takes about 20 ms.
const BATCH: usize = 50;
/// The time limit for noting what was published.
const NOTE_LIMIT: Duration = Duration::from_secs(1);
/// Before the agent's own limit, so that there is time for an answer.
const RESERVE: Duration = Duration::from_secs(2);

/// Fencings that the journal has and the register lacks.
pub(crate) fn unpublished(journal: &Agent, register: Register) -> Result<Vec<Fencing>, JournalError> {
    if register == Register::None {
        return Ok(Vec::new());
    }
    // The register drops older ones: their end could not be seen there.
    Ok(journal.unpublished(Timestamp::now() - KEPT)?.sound)
}

/// Publishes a fencing that is safe in the journal, and then earlier calls' leftovers. Failed ones stay there.
pub(crate) fn after_journal(call: &Call, settings: &Settings, fencing: &Fencing) {
    let limit = soon(call, REGISTER_LIMIT);
    let turn = Turn::of(call, limit);
    let Some(leftovers) = still_unpublished(settings, fencing) else { return };
    let mut published = Vec::new();
    let own = std::slice::from_ref(fencing);
    let all = if settings.has_pages() {
        spread((call, settings, &turn), &[own, &leftovers].concat(), &mut published, limit)
    } else {
        let first = each(call, settings, own, &mut published, limit);
        first.and_then(|()| each(call, settings, &leftovers, &mut published, soon(call, LEFTOVERS_LIMIT)))
    };
    note(call, settings, published);
    if let Err(e) = all {
        call.report.warning(&format!(
            "the register {} lacks fencings of this controller: {e}; the next off or monitor publishes them",
            settings.register().as_str()
        ));
    }
}

/// The other fencings that the register lacks; `None` where another call has published this one while it waited for its turn:
/// when a rack dies, few calls write for all. One whose mark an alerter has ended meanwhile is no leftover, and is published all the
/// same. A journal that cannot be read has no leftovers.
fn still_unpublished(settings: &Settings, fencing: &Fencing) -> Option<Vec<Fencing>> {
    let (own, id, key) = (settings.clone(), fencing.id, Key::Fencing(fencing.id).to_string());
    let read = watch::in_time(NOTE_LIMIT, move || {
        let (journal, register) = (own.open_store()?, own.register());
        Ok::<_, JournalError>((journal.is_published(register, &key)?, unpublished(&journal, register)?))
    });
    let Some(Ok((is_published, mut all))) = read else { return Some(Vec::new()) };
    all.retain(|other| other.id != id);
    (!is_published).then_some(all)
}

/// Publishes what earlier calls could not, and what was lost with the register. Checks whether the register can be read.
///
/// # Errors
/// [`Failure`]: something is not in the register, or it cannot be read.
pub(crate) fn catch_up(call: &Call, settings: &Settings, journal: &Agent) -> Result<(), Failure> {
    let register = settings.register();
    if register == Register::None {
        return Ok(());
    }
    publish_waiting(call, settings, journal)?;
    let found = pacemaker::register::read(register, &settings.tools(&call.paths), end(call))?.believed();
    if let Some(first) = found.apart.first() {
        let (count, key) = (found.apart.len(), &first.key);
        call.report
            .warning(&format!("{count} entries of the register cannot be used: find out who wrote {key}"));
    }
    write_again(call, settings, journal, &found)
}

fn publish_waiting(call: &Call, settings: &Settings, journal: &Agent) -> Result<(), Failure> {
    let waiting = || unpublished(journal, settings.register());
    if waiting()?.is_empty() {
        return Ok(());
    }
    let limit = soon(call, REGISTER_LIMIT);
    let turn = Turn::of(call, limit);
    // Another call may have published them while this one waited.
    let (waiting, mut published) = (waiting()?, Vec::new());
    let done = spread((call, settings, &turn), &waiting, &mut published, limit);
    note(call, settings, published);
    Ok(done?)
}

/// Compares fencings that were in the register, without a known end, with its present content.
fn write_again(call: &Call, settings: &Settings, journal: &Agent, found: &Entries) -> Result<(), Failure> {
    let (register, now) = (settings.register(), Timestamp::now());
    let fencings = journal.unsettled(register, now - KEPT)?.sound;
    let Compared { ended, lost } = compare(fencings, found, settings.coalesce, now);
    let entries: Vec<Entry> = lost.into_iter().take(BATCH).map(Entry::Again).collect();
    if entries.is_empty() {
        note(call, settings, ended);
        return Ok(());
    }
    call.report.warning(&format!(
        "the register {} has lost {} fencing(s) of this controller: they are written again",
        register.as_str(),
        entries.len()
    ));
    let (standing, error) = put_again(call, settings, &entries);
    note(call, settings, ended.into_iter().chain(standing).collect());
    error.map_or(Ok(()), |error| Err(error.into()))
}

/// Returns the keys of those that are there, and the first fault.
fn put_again(call: &Call, settings: &Settings, entries: &[Entry]) -> (Vec<String>, Option<RegisterError>) {
    let (tools, limit) = (settings.tools(&call.paths), soon(call, REGISTER_LIMIT));
    let keys = |all: &[Entry]| all.iter().map(|entry| entry.key().to_string()).collect();
    if settings.has_pages() {
        return match pages::add(&Turn::of(call, limit), (settings.register(), tools), entries, limit) {
            Ok(()) => (keys(entries), None),
            Err(e) => (Vec::new(), Some(e)),
        };
    }
    let done = pacemaker::register::publish_all(settings.register(), &tools, entries, limit);
    let failed = done.failed.into_iter().map(|(_, error)| error);
    (done.standing.iter().map(Key::to_string).collect(), done.stopped.into_iter().chain(failed).next())
}

/// On this agent's pages, or without a key each separately.
pub(crate) fn spread(
    (call, settings, turn): (&Call, &Settings, &Turn),
    fencings: &[Fencing],
    published: &mut Vec<String>,
    deadline: Instant,
) -> Result<(), RegisterError> {
    if !settings.has_pages() || fencings.is_empty() {
        return each(call, settings, fencings, published, deadline);
    }
    // One that does not fit never will, and must not block the others.
    let all: Vec<Entry> = fencings.iter().cloned().map(Entry::Fencing).collect();
    let (fit, unfit): (Vec<Entry>, Vec<Entry>) = all.into_iter().partition(Entry::is_fit);
    unfit.iter().for_each(|entry| call.report.warning(&RegisterError::unfit(entry).to_string()));
    pages::add(turn, (settings.register(), settings.tools(&call.paths)), &fit, deadline)?;
    published.extend(fit.iter().map(|entry| entry.key().to_string()));
    Ok(())
}

/// One after the other up to the first failure.
fn each(
    call: &Call,
    settings: &Settings,
    fencings: &[Fencing],
    published: &mut Vec<String>,
    deadline: Instant,
) -> Result<(), RegisterError> {
    let tools = settings.tools(&call.paths);
    for fencing in fencings {
        match pacemaker::register::publish(
            settings.register(),
            &tools,
            &[Entry::Fencing(fencing.clone())],
            deadline,
        ) {
            // These will never be there, and must not block the others.
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

/// Opens the journal again, which was closed while waiting for the cluster. Both copies exist, so a slow disk delays the
/// answer only by this time.
fn note(call: &Call, settings: &Settings, published: Vec<String>) {
    if published.is_empty() {
        return;
    }
    let settings = settings.clone();
    let why = match watch::in_time(NOTE_LIMIT, move || note_in_journal(&settings, &published)) {
        Some(Ok(())) => return,
        Some(Err(e)) => e.to_string(),
        None => format!("the journal did not store it within {} s", NOTE_LIMIT.as_secs()),
    };
    call.report.warning(&format!("the next call will publish these fencings once more: {why}"));
}

fn note_in_journal(settings: &Settings, published: &[String]) -> Result<(), JournalError> {
    settings.open_store()?.note_published(settings.register(), published)
}

/// The latest time for an answer of the register.
pub(crate) fn end(call: &Call) -> Instant {
    call.started + call.delay() + OWN_LIMIT - RESERVE
}

fn soon(call: &Call, limit: Duration) -> Instant {
    end(call).min(Instant::now() + limit)
}

#[cfg(test)]
mod tests {
    use journal::{Journal, Role, Taken};
    use site::Site;

    use super::*;
    use crate::given::tests_support::given;

    /// A quick alerter has its mark acknowledged before the agent has its turn. The broken variant takes the end for a publication by
    /// another call, and the register never hears of the fencing.
    #[test]
    fn what_has_ended_before_its_turn_is_published_and_what_another_call_has_published_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("state/marks.db");
        let text = store.display().to_string();
        let settings =
            Settings::new(&given(&[("store", &text), ("create_store", "1")]), Site::default()).unwrap();
        let mut journal = Journal::open(&store, Role::Alerter).unwrap();
        let [ended, waiting] = ["compute1", "compute2"].map(|host| samples::fencing(host, Timestamp::now()));
        for fencing in [&ended, &waiting] {
            journal.append_fencing(fencing).unwrap();
        }
        let mark = samples::mark(&ended);
        journal.make_mark(&mark, Taken::Fencing(&ended), &[], Timestamp::now()).unwrap();
        assert!(journal.dismiss(mark.id, "acknowledged", "a test", Timestamp::now()).unwrap());
        assert_eq!(still_unpublished(&settings, &ended), Some(vec![waiting.clone()]));
        journal.note_published(Register::Attrd, &[Key::Fencing(ended.id).to_string()]).unwrap();
        assert_eq!(still_unpublished(&settings, &ended), None);
        assert_eq!(still_unpublished(&settings, &waiting), Some(Vec::new()));
    }
}
