//! How the register is kept: in which pages, with which key, how large it is, and what is wrong with that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use marks::host::HostName;
use marks::register::pages::{self, Head, Page, Pages, Part, Write, Writer};
use marks::register::{Entries, Entry, Key, Register, SealKeys};
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use pacemaker::register::Paged;

use super::matter::{Fault, Matter};
use super::upkeep;

/// So many writers are named whose pages no key here opens.
const NAMED: usize = 4;
/// An answer of attrd must be no longer than 128 KiB. More than a quarter of that is said.
const QUARTER: usize = 32 << 10;
/// attrd of a controller that joins may be there a moment later than the cluster says, or may have been busy with another one.
const SETTLED: Duration = Duration::from_secs(15);
/// For so long a controller that is gone has written nothing: one that joins may write before the CIB says that it is there.
const QUIET: Duration = Duration::from_secs(3600);
/// All pages are written again so often, whatever happened.
const OFTEN: Duration = Duration::from_secs(3600);

/// How the register is kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// Its pages, where this controller has a key and writes some.
    pub pages: Option<Paged>,
    /// Bytes of the longest answer that is needed to read all of it; none where nothing limits that.
    pub longest_answer: Option<usize>,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

impl Kept {
    /// Of what was read; where nothing could be, that is said elsewhere.
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

const NO_KEY: &str = "this controller has no key for the register: every member of haclient can write there that a host was told of";
const PARTIAL: &str = "this controller's attrd lacks a part of the register that another one has seen: marks from before this alerter's start whose hosts may be back are held";

fn other_key(writers: &str) -> String {
    format!(
        "pages of the register are not sealed with this controller's key ({writers}): another key sealed them, or they are forged"
    )
}

fn size(longest: usize) -> Option<Fault> {
    let (kibibytes, quarter) = (longest >> 10, QUARTER >> 10);
    let what = || {
        format!(
            "an answer of the register has {kibibytes} KiB, more than {quarter} of the 128 that it may have"
        )
    };
    (longest > QUARTER).then(|| (Matter::RegisterSize, what()))
}

/// What is to be written into the pages of one writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageWrites {
    /// Whose.
    pub writer: Writer,
    /// In this order.
    pub writes: Vec<Write>,
    /// What its head says of pages.
    pub head: Head,
}

/// The alerter of this controller.
pub fn alerter(controller: &str) -> Writer {
    Writer { part: Part::Alerter, controller: controller.to_owned() }
}

/// What brings this alerter's own pages to what is wanted; with `all` also those that are as they should be. None where there is nothing
/// to do.
pub fn own_writes(
    (pages, plain_until): (&Pages, Timestamp),
    (writer, wanted): (&Writer, &[Entry]),
    all: bool,
    now: Timestamp,
) -> Option<PageWrites> {
    let none = BTreeMap::new();
    let own = pages.get(writer).unwrap_or(&none);
    let plan = if all { pages::plan_all } else { pages::plan };
    let writes = plan(own, wanted, now);
    let head = pages::head(pages, writer, plain_until, now);
    (!writes.is_empty()).then(|| PageWrites { writer: writer.clone(), writes, head })
}

/// What stands on a writer's pages once that is written.
pub fn written(pages: &mut Pages, done: &PageWrites) {
    let own = pages.entry(done.writer.clone()).or_default();
    for Write { number, last, entries } in &done.writes {
        let sound = entries.iter().map(|entry| (entry.key(), entry.clone())).collect();
        let head = Head { last: *last, ..done.head.clone() };
        let entries = Entries { sound, ..Entries::default() };
        own.insert(*number, Page { head, is_sealed: true, entries });
    }
}

/// The keys that stand on a writer's sealed pages.
pub fn standing(pages: &Pages, writer: &Writer) -> BTreeSet<Key> {
    let own = pages.get(writer).into_iter().flat_map(BTreeMap::values).filter(|page| page.is_sealed);
    own.flat_map(|page| page.entries.sound.keys().cloned()).collect()
}

/// What empties the pages of writers that are done: everything on them stands on ours, or has had its time.
pub fn superseded(
    paged: &Paged,
    writer: &Writer,
    (entries, cib): (&Entries, &Cib),
    now: Timestamp,
) -> Vec<PageWrites> {
    // What is lacking here may stand on these pages alone.
    if entries.is_partial {
        return Vec::new();
    }
    let ours = standing(&paged.pages, writer);
    // Where Pacemaker calls controllers otherwise than the kernel does, nobody can say who is gone.
    let is_known = cib.has_controller(&writer.controller);
    let is_gone = |controller: &str| {
        is_known && is_quiet(paged, controller, now) && !cib.has_controller_online(controller)
    };
    let is_over = upkeep::has_had_its_time(entries, now);
    let done = pages::superseded(&paged.pages, writer, is_gone, |entry| {
        ours.contains(&entry.key()) || is_over(entry)
    });
    let head = |other: &Writer| pages::head(&paged.pages, other, paged.plain_until, now);
    done.into_iter().map(|(other, writes)| PageWrites { head: head(&other), writer: other, writes }).collect()
}

/// Whether the agent of a controller has written nothing for long.
fn is_quiet(paged: &Paged, controller: &str, now: Timestamp) -> bool {
    let agent = Writer { part: Part::Agent, controller: controller.to_owned() };
    let head = paged.pages.get(&agent).and_then(|own| own.get(&pages::HEAD));
    head.is_some_and(|page| now.since(page.head.at) > QUIET)
}

/// Entries that stand on their own, and that nobody reads any more once no upgrade is under way: what stands on our pages, or has had its
/// time.
pub fn left_over(paged: &Paged, writer: &Writer, now: Timestamp) -> Vec<Key> {
    let (ours, is_over) = (standing(&paged.pages, writer), upkeep::has_had_its_time(&paged.plain, now));
    let gone = paged.plain.sound.iter().filter(|(key, entry)| ours.contains(key) || is_over(entry));
    gone.map(|(key, _)| key.clone()).collect()
}

/// The controllers that take part in the cluster now.
fn online(cib: &Cib) -> BTreeSet<HostName> {
    let is_member = |node: &&HostName| cib.membership(node) == Some(true);
    cib.cluster_nodes().iter().filter(is_member).cloned().collect()
}

/// When all pages are written again: to controllers that have joined, of which attrd may have told them nothing.
#[derive(Debug, Default)]
pub struct Rewriting {
    members: BTreeSet<HostName>,
    joined: Option<Instant>,
    done: Option<Instant>,
}

impl Rewriting {
    /// Takes note of who takes part, and says whether all is to be written now. Once at the start, so that all is sealed with the key of
    /// today; in the CIB no more, where each controller has all of it, and each writing is a change of the configuration.
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
