//! How the register is kept: in which pages, with which key, how large it is, and what is wrong with that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use marks::host::HostName;
use marks::register::pages::{self, Head, Heads, Page, Pages, Part, Write, Writer};
use marks::register::{Entries, Entry, Key, Register, SealKeys};
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use pacemaker::register::Paged;

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

/// What is to be written into the pages of one writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageWrites {
    /// Whose pages.
    pub writer: Writer,
    /// In this order.
    pub writes: Vec<Write>,
    /// The head of the pages.
    pub head: Head,
}

/// The alerter of this controller.
pub fn alerter(controller: &str) -> Writer {
    Writer { part: Part::Alerter, controller: controller.to_owned() }
}

/// The writes that bring this alerter's own pages to what is wanted; with `all` also pages that are right already. None where there
/// is nothing to do. A head that names a lost one is written again too: the next alerter would miss what that said.
pub fn own_writes(
    (pages, plain_until): (&Pages, Timestamp),
    (writer, wanted): (&Writer, &[Entry]),
    (heads, all): (&Heads, bool),
    now: Timestamp,
) -> Option<PageWrites> {
    let none = BTreeMap::new();
    let own = pages.get(writer).unwrap_or(&none);
    let lost = heads.lost(pages, writer, wanted);
    let mut head = pages::head(pages, writer, plain_until, now);
    head.seen.retain(|other, _| !lost.contains(other));
    let plan = if all || !lost.is_empty() { pages::plan_all } else { pages::plan };
    let writes = plan(own, wanted, now);
    (!writes.is_empty()).then(|| PageWrites { writer: writer.clone(), writes, head })
}

/// Takes note of what a writer's pages hold once that is written.
pub fn written(pages: &mut Pages, done: &PageWrites) {
    let own = pages.entry(done.writer.clone()).or_default();
    for Write { number, last, entries } in &done.writes {
        let sound = entries.iter().map(|entry| (entry.key(), entry.clone())).collect();
        let head = Head { last: *last, ..done.head.clone() };
        let entries = Entries { sound, ..Entries::default() };
        own.insert(*number, Page { head, is_sealed: true, entries });
    }
}

/// The keys on a writer's sealed pages.
pub fn standing(pages: &Pages, writer: &Writer) -> BTreeSet<Key> {
    let own = pages.get(writer).into_iter().flat_map(BTreeMap::values).filter(|page| page.is_sealed);
    own.flat_map(|page| page.entries.sound.keys().cloned()).collect()
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
    let ours = standing(&paged.pages, writer);
    // If Pacemaker and the kernel name controllers differently, it is not known which are gone.
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

/// Entries outside of pages that nobody needs: they stand on our pages, or have had their time.
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
