//! How the register is kept: in which pages, with which key, how large it is, and what is wrong with that.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use marks::host::HostName;
use marks::register::{Entries, Entry, Key, Part, Register, Writer};
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use register::pages::{self, Heads, Line, PageWrites, Pages};
use register::{Paged, SealKeys, is_understood};

use super::matter::{Fault, Matter};
use super::upkeep;

/// So many writers of pages that no key here opens are named.
const NAMED: usize = 4;
/// An answer of attrd must be no longer than 128 KiB. More than a quarter of that is a fault.
const QUARTER: usize = 32 << 10;
/// attrd of a controller that joins may start a moment later than the cluster says, or may be busy.
const SETTLED: Duration = Duration::from_secs(15);
/// A controller counts as gone if it has written nothing for so long: one that joins may write before the CIB shows it.
const QUIET: Duration = Duration::from_secs(3600);
/// All pages are written again at least so often.
const OFTEN: Duration = Duration::from_secs(3600);

/// How the register is kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// Its pages, where this controller has a key and writes some.
    pub pages: Option<Paged>,
    /// Bytes of the longest answer that reading it takes; none where nothing limits that.
    pub longest_answer: Option<usize>,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

impl Kept {
    /// Of what was read. A register that cannot be read is reported elsewhere.
    pub(super) fn of(
        read: Option<&Entries>,
        paged: Option<Paged>,
        (keys, complaints): (&SealKeys, Vec<String>),
    ) -> Self {
        let mut faults: Vec<Fault> = paged.iter().flat_map(|paged| faults_of(paged, keys)).collect();
        if read.is_some() && keys.is_empty() && complaints.is_empty() {
            faults.push((Matter::RegisterKey, NO_KEY.to_owned()));
        }
        faults.extend(complaints.into_iter().map(|why| (Matter::RegisterKey, why)));
        let partial = read.filter(|entries| entries.is_partial);
        faults.extend(partial.map(|_| (Matter::RegisterPartial, PARTIAL.to_owned())));
        let longest_answer = paged.as_ref().map(|paged| paged.longest_answer);
        Self { pages: paged.filter(|_| !keys.is_empty()), longest_answer, faults }
    }
}

fn faults_of(paged: &Paged, keys: &SealKeys) -> impl Iterator<Item = Fault> + use<> {
    let unopened: Vec<String> = paged.unopened().take(NAMED).map(ToString::to_string).collect();
    let is_another = !keys.is_empty() && !unopened.is_empty();
    let other = is_another.then(|| (Matter::RegisterKey, other_key(&unopened.join(", "))));
    size(paged.longest_answer).into_iter().chain(other)
}

const NO_KEY: &str = "this controller has no register key: every member of haclient can forge entries, for example that a mark was acknowledged";
const PARTIAL: &str = "this controller lacks a part of the register that another controller had: older marks whose hosts may be back are held";

fn other_key(writers: &str) -> String {
    format!(
        "pages of the register ({writers}) are not sealed with this controller's key: another key sealed them, or they are forged"
    )
}

fn size(longest: usize) -> Option<Fault> {
    let (kibibytes, quarter) = (longest >> 10, QUARTER >> 10);
    let what = || {
        format!(
            "the longest answer of the register has {kibibytes} KiB, more than {quarter} of the 128 KiB that fit"
        )
    };
    (longest > QUARTER).then(|| (Matter::RegisterSize, what()))
}

/// The writes that bring this alerter's pages to what is wanted; with `all` also pages that are right already.
pub fn own_writes(
    there: (&Pages, Timestamp),
    (writer, wanted): (&Writer, &[Line]),
    (heads, all): (&Heads, bool),
    now: Timestamp,
) -> Option<PageWrites> {
    let lost = lost(heads, there.0, writer, wanted);
    pages::own_writes(there, (writer, wanted, is_understood), (&lost, all), now)
}

/// The writers of whom this alerter's head names one that is gone, where all that it said is wanted.
fn lost(heads: &Heads, pages: &Pages, writer: &Writer, wanted: &[Line]) -> BTreeSet<Writer> {
    let is_there = |key: String| wanted.iter().any(|(wanted, _)| *wanted == key);
    heads.lost(pages, writer, |key| match Key::parse(key) {
        // A fencing that an agent wrote again was written without its mark; the mark says more.
        Some(Key::Again(id)) if is_there(Key::Mark(id.into()).to_string()) => true,
        _ => is_there(key.clone()),
    })
}

/// The writes that empty pages of writers that are gone: everything on them stands on ours, or has had its time.
pub fn superseded(
    paged: &Paged,
    writer: &Writer,
    (entries, cib): (&Entries, &Cib),
    now: Timestamp,
) -> Vec<PageWrites> {
    // What this controller lacks may be on these pages alone.
    if entries.is_partial {
        return Vec::new();
    }
    let ours = pages::keys_on(&paged.pages, writer);
    // If Pacemaker and the kernel name controllers differently, it is not known which are gone.
    let is_known = cib.has_controller(&writer.controller);
    let is_gone = |controller: &str| {
        is_known && is_quiet(paged, controller, now) && !cib.has_controller_online(controller)
    };
    let is_over = upkeep::has_had_its_time(entries, now);
    let is_covered = |(key, value): &Line| {
        let entry = Entry::read(key, value).ok()?;
        Some(ours.contains(key.as_str()) || is_over(&entry))
    };
    pages::superseded((&paged.pages, paged.plain_until), writer, is_gone, is_covered, now)
}

/// Whether the agent of a controller has written nothing for long.
fn is_quiet(paged: &Paged, controller: &str, now: Timestamp) -> bool {
    let head = paged.pages.get(&Part::Agent.on(controller)).and_then(|own| own.get(&pages::HEAD));
    head.is_some_and(|page| now.since(page.head.at) > QUIET)
}

/// Entries outside of pages that nobody needs: they stand on our pages, or have had their time.
pub fn left_over(paged: &Paged, writer: &Writer, now: Timestamp) -> Vec<Key> {
    let ours = pages::keys_on(&paged.pages, writer);
    let is_over = upkeep::has_had_its_time(&paged.plain, now);
    let is_ours = |key: &Key| ours.contains(key.to_string().as_str());
    let gone = paged.plain.sound.iter().filter(|(key, entry)| is_ours(key) || is_over(entry));
    gone.map(|(key, _)| key.clone()).collect()
}

/// The controllers that take part in the cluster now.
fn online(cib: &Cib) -> BTreeSet<HostName> {
    let is_member = |node: &&HostName| cib.membership(node) == Some(true);
    cib.cluster_nodes().iter().filter(is_member).cloned().collect()
}

/// When all pages are written again: attrd may not have sent them to controllers that have joined.
#[derive(Debug, Default)]
pub struct Rewriting {
    members: BTreeSet<HostName>,
    joined: Option<Instant>,
    done: Option<Instant>,
}

impl Rewriting {
    /// Takes note of the members, and says whether all is to be written now. At the start it is, so that all is sealed with today's
    /// key. In the CIB it never is again: each controller has all of it, and each write changes the configuration.
    pub fn is_due(&mut self, register: Register, cib: &Cib, now: Instant) -> bool {
        let members = online(cib);
        if members.difference(&self.members).next().is_some() {
            self.joined = Some(now);
        }
        self.members = members;
        let Some(done) = self.done else { return true };
        if register != Register::Attrd {
            return false;
        }
        let is_old = now.saturating_duration_since(done) >= OFTEN;
        let since = |joined: Instant| done < joined || (done < joined + SETTLED && joined + SETTLED <= now);
        is_old || self.joined.is_some_and(since)
    }

    /// All was written.
    pub fn note_done(&mut self, now: Instant) {
        self.done = Some(now);
    }
}

#[cfg(test)]
mod tests;
