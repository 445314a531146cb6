//! From the journal of this controller to the register of the cluster: at once, or by a later call after a failure.

use std::time::{Duration, Instant};

use marks::fencing::Fencing;
use marks::register::{Entries, Entry, Key, Register};
use register::{Access, Done, RegisterError};

use crate::call::{Call, OWN_LIMIT};
use crate::check::{Compared, compare};
use crate::failure::Failure;
use crate::pages::{self, Turn};
use crate::settings::Settings;
use crate::store::{self, Answer, Request};

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

/// Publishes a fencing that is safe in the journal, and then earlier calls' leftovers. Failed ones stay there.
pub(crate) fn after_journal(call: &Call, settings: &Settings, fencing: &Fencing, known: Answer) {
    let limit = soon(call, REGISTER_LIMIT);
    let turn = Turn::of(call, limit);
    let known = if turn.has_waited { known_now(call, settings, fencing) } else { known };
    let Some(leftovers) = known.others_than(fencing.id) else { return };
    let mut published = Vec::new();
    let (own, access) = (std::slice::from_ref(fencing), settings.access(&call.paths));
    let all = if access.has_pages() {
        spread((call, &access, &turn), &[own, &leftovers].concat(), &mut published, limit)
    } else {
        let first = each((call, &access), own, &mut published, limit);
        first.and_then(|()| each((call, &access), &leftovers, &mut published, soon(call, LEFTOVERS_LIMIT)))
    };
    note(call, settings, published);
    if let Err(e) = all {
        call.report.warning(&format!(
            "the register {} lacks fencings of this controller: {e}; the next off or monitor publishes them",
            settings.register().as_str()
        ));
    }
}

/// What the register lacks, after another call had its turn, which may have published this fencing: when a rack dies, few calls write for
/// all. One whose mark an alerter has ended meanwhile is no leftover, and is published all the same. A journal that cannot be read has no
/// leftovers.
fn known_now(call: &Call, settings: &Settings, fencing: &Fencing) -> Answer {
    store::ask(call, settings, Request::Lacks(fencing.id), NOTE_LIMIT).unwrap_or_default()
}

/// Publishes what earlier calls could not, and what was lost with the register. Checks whether the register can be read.
///
/// # Errors
/// [`Failure`]: something is not in the register, or it cannot be read.
pub(crate) fn catch_up(call: &Call, settings: &Settings, known: Answer) -> Result<(), Failure> {
    let register = settings.register();
    if register == Register::None {
        return Ok(());
    }
    if !known.lacking.is_empty() {
        publish_waiting(call, settings)?;
    }
    let found = settings.access(&call.paths).read(end(call))?.believed();
    if let Some(first) = found.apart.first() {
        let (count, key) = (found.apart.len(), &first.key);
        call.report
            .warning(&format!("{count} entries of the register cannot be used: find out who wrote {key}"));
    }
    write_again(call, settings, known.stood, &found)
}

fn publish_waiting(call: &Call, settings: &Settings) -> Result<(), Failure> {
    let limit = soon(call, REGISTER_LIMIT);
    let turn = Turn::of(call, limit);
    // Another call may have published them while this one waited.
    let (waiting, mut published) =
        (store::ask(call, settings, Request::Check, store::LIMIT)?.lacking, Vec::new());
    let done = spread((call, &settings.access(&call.paths), &turn), &waiting, &mut published, limit);
    note(call, settings, published);
    Ok(done?)
}

/// Compares fencings that were in the register, without a known end, with its present content.
fn write_again(
    call: &Call,
    settings: &Settings,
    stood: Vec<Fencing>,
    found: &Entries,
) -> Result<(), Failure> {
    let register = settings.register();
    let Compared { ended, lost } = compare(stood, found, settings.coalesce);
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
    let mut published = ended;
    let done = put_again(call, &settings.access(&call.paths), &entries, &mut published);
    note(call, settings, published);
    Ok(done?)
}

fn put_again(call: &Call, access: &Access, entries: &[Entry], published: &mut Vec<String>) -> Done {
    let limit = soon(call, REGISTER_LIMIT);
    if access.has_pages() {
        pages::add(&Turn::of(call, limit), access, entries, limit)?;
        published.extend(entries.iter().map(|entry| entry.key().to_string()));
        return Ok(());
    }
    let (standing, done) = access.publish_all(entries, limit).result();
    published.extend(standing.iter().map(Key::to_string));
    done
}

/// On this agent's pages, or without a key each separately.
fn spread(
    (call, access, turn): (&Call, &Access, &Turn),
    fencings: &[Fencing],
    published: &mut Vec<String>,
    deadline: Instant,
) -> Done {
    if !access.has_pages() || fencings.is_empty() {
        return each((call, access), fencings, published, deadline);
    }
    // One that does not fit never will, and must not block the others.
    let all: Vec<Entry> = fencings.iter().cloned().map(Entry::Fencing).collect();
    let (fit, unfit): (Vec<Entry>, Vec<Entry>) = all.into_iter().partition(Entry::is_fit);
    unfit.iter().for_each(|entry| call.report.warning(&RegisterError::unfit(entry).to_string()));
    pages::add(turn, access, &fit, deadline)?;
    published.extend(fit.iter().map(|entry| entry.key().to_string()));
    Ok(())
}

/// One after the other up to the first failure.
fn each(
    (call, access): (&Call, &Access),
    fencings: &[Fencing],
    published: &mut Vec<String>,
    deadline: Instant,
) -> Done {
    for fencing in fencings {
        match access.publish(&Entry::Fencing(fencing.clone()), deadline) {
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
    if let Err(why) = store::ask(call, settings, Request::Note(&published), NOTE_LIMIT) {
        call.report.warning(&format!("the next call will publish these fencings once more: {why}"));
    }
}

/// The latest time for an answer of the register.
pub(crate) fn end(call: &Call) -> Instant {
    call.started + call.delay() + OWN_LIMIT - RESERVE
}

fn soon(call: &Call, limit: Duration) -> Instant {
    end(call).min(Instant::now() + limit)
}
