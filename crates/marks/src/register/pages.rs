//! Pages of the register: one writer's entries, packed into a few keys that are used again and again. No other writer
//! changes them while their writer exists ([`superseded`]), so that no write waits for another controller's. The state is
//! the union of all pages.
//!
//! Page 0 is the head, which gets new entries. When it is full, they become a page of their own. A reader begins with the
//! head, whose `last` is the number of the last page. So a reader misses nothing at any time, as long as no entry leaves
//! its old page within [`MOVED`].
//!
//! A controller that has joined may have got only some pages: attrd passes its values on only if no other controller
//! joins at that moment (seen on 2.1.5: two controllers booted together, and one never got what the third had). So a head
//! names the other heads that its writer had seen. A controller that lacks one of these is incomplete, and must conclude
//! nothing from a missing entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::KEPT;
use super::code::{escape, unescape};
use super::entries::Entries;
use super::entry::{Entry, ValueError};
use super::key::Key;
use super::seal::SealKeys;
use crate::time::Timestamp;

/// The prefix of a writer's name in the list of seen heads: no entry's key begins so.
const SEEN: char = '@';
/// The first field of every page.
const VERSION: &str = "2";
/// Bytes of a page before it is packed. Entries pack to a sixth: some 13 KiB in the register.
pub const PAGE_MAX: usize = 80 << 10;
/// None of our pages is longer.
const UNPACKED_MAX: usize = 256 << 10;
/// Longer than a reader takes from its first page to its last.
pub const MOVED: Duration = Duration::from_secs(5);
/// zlib's usual compromise.
const LEVEL: u8 = 6;

/// The head.
pub const HEAD: u16 = 0;

/// The writer of a page: a part of this software, on one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer {
    /// The part.
    pub part: Part,
    /// The controller's name, as the kernel has it.
    pub controller: String,
}

/// A part of this software that writes pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// `fence_mark`: fencings.
    Agent,
    /// The alerter: all that it knows.
    Alerter,
}

impl Part {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Agent, Self::Alerter];

    /// Its word in the register.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Alerter => "alerter",
        }
    }
}

impl Writer {
    /// Reads the displayed form; `None` if it is no writer's.
    pub fn parse(text: &str) -> Option<Self> {
        let (part, controller) = text.split_once('.')?;
        let part = Part::ALL.into_iter().find(|it| it.as_str() == part)?;
        let controller = unescape(controller).filter(|name| !name.is_empty())?;
        Some(Self { part, controller })
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.part.as_str(), escape(&self.controller))
    }
}

/// A page's header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// When it was written, by its writer's clock, always later than the previous time.
    pub at: Timestamp,
    /// In the head: the number of the last page; otherwise 0.
    pub last: u16,
    /// In an alerter's head: until when entries of controllers without a key count; 0 if they do not (see
    /// [`super::plain_until`]).
    pub plain_until: Timestamp,
    /// In the head: the dates of other writers' heads that its writer had seen.
    pub seen: BTreeMap<Writer, Timestamp>,
}

/// A page that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its header.
    pub head: Head,
    /// Root on some controller of this cluster wrote it.
    pub is_sealed: bool,
    /// Its entries.
    pub entries: Entries,
}

/// The text of a page in this place, sealed if there is a key.
pub fn write(writer: &Writer, number: u16, head: &Head, entries: &[Entry], keys: &SealKeys) -> String {
    let seen = head.seen.iter().map(|(writer, at)| format!("{SEEN}{writer}={}\n", at.0));
    let lines = entries.iter().map(|entry| format!("{}={}\n", entry.key(), entry.value()));
    let lines: String = seen.chain(lines).collect();
    let packed = URL_SAFE_NO_PAD.encode(compress_to_vec(lines.as_bytes(), LEVEL));
    let text = format!("{VERSION};{};{};{};{packed}", head.at.0, head.last, head.plain_until.0);
    let seal = keys.seal(&place(writer, number), &text).unwrap_or_default();
    format!("{text};{seal}")
}

/// Reads a page back. Anybody who can write the register may have written it.
///
/// # Errors
/// [`ValueError`]: nothing of it can be used.
pub fn read(writer: &Writer, number: u16, page: &str, keys: &SealKeys) -> Result<Page, ValueError> {
    if page.split_once(';').is_none_or(|(version, _)| version != VERSION) {
        return Err(ValueError::Version);
    }
    let (text, seal) = page.rsplit_once(';').ok_or(ValueError::Malformed)?;
    let is_sealed = keys.opens(&place(writer, number), text, seal);
    let limit = if is_sealed { UNPACKED_MAX } else { PAGE_MAX };
    let (mut head, lines) = unpack(text, limit).ok_or(ValueError::Malformed)?;
    let mut entries = Entries::default();
    for line in lines.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        match key.strip_prefix(SEEN) {
            Some(other) => head.seen.extend(seen(other, value)),
            None => entries.take(key, value),
        }
    }
    // Foreign bad lines are reported once, however many they are.
    entries.apart.truncate(if is_sealed { usize::MAX } else { 1 });
    Ok(Page { head, is_sealed, entries })
}

fn seen(writer: &str, at: &str) -> Option<(Writer, Timestamp)> {
    Some((Writer::parse(writer)?, Timestamp(at.parse().ok()?)))
}

fn unpack(text: &str, limit: usize) -> Option<(Head, String)> {
    let [_, at, last, plain_until, packed] = text.split(';').collect::<Vec<_>>().try_into().ok()?;
    let packed = URL_SAFE_NO_PAD.decode(packed).ok()?;
    let lines = decompress_to_vec_with_limit(&packed, limit).ok()?;
    let time = |text: &str| text.parse().ok().map(Timestamp);
    let (at, last, plain_until) = (time(at)?, last.parse().ok()?, time(plain_until)?);
    Some((Head { at, last, plain_until, seen: BTreeMap::new() }, String::from_utf8(lines).ok()?))
}

fn place(writer: &Writer, number: u16) -> String {
    format!("{writer};{number}")
}

/// All pages that were found, by writer and number.
pub type Pages = BTreeMap<Writer, BTreeMap<u16, Page>>;

/// Writers with a page that this controller lacks: the head is missing, or older than another writer had seen, or a page
/// that the head names is missing. Only root's word counts; and nothing that the register would have dropped by age is
/// missed.
pub fn gaps(pages: &Pages, now: Timestamp) -> BTreeSet<&Writer> {
    let seen = pages.values().filter_map(sealed_head).flat_map(|head| &head.seen);
    let late = seen.filter(|(writer, at)| now.since(**at) < KEPT && !has_head(pages, writer, **at));
    let late = late.map(|(writer, _)| writer);
    let is_young = |own| sealed_head(own).is_some_and(|head| now.since(head.at) < KEPT);
    let torn = pages.iter().filter(|(_, own)| is_young(own) && whole(own).is_none());
    late.chain(torn.map(|(writer, _)| writer)).collect()
}

/// Whether a writer's head of that date or a newer one is there.
fn has_head(pages: &Pages, writer: &Writer, at: Timestamp) -> bool {
    pages.get(writer).and_then(sealed_head).is_some_and(|head| head.at >= at)
}

/// The head, if every page that it names is there. One that somebody without the key has overwritten is not.
fn whole(own: &BTreeMap<u16, Page>) -> Option<&Head> {
    let has = |number| own.get(&number).is_some_and(|page| page.is_sealed);
    sealed_head(own).filter(|head| (HEAD..=head.last).all(has))
}

pub(super) fn sealed_head(own: &BTreeMap<u16, Page>) -> Option<&Head> {
    own.get(&HEAD).filter(|page| page.is_sealed).map(|page| &page.head)
}

/// The list of seen heads for a writer's own head; `now` is its clock. Heads that it saw before stay in the list as long
/// as the register keeps anything, even if they are gone. A forged own head does not count.
pub fn head(pages: &Pages, writer: &Writer, plain_until: Timestamp, now: Timestamp) -> Head {
    let own = pages.get(writer).and_then(sealed_head).cloned().unwrap_or_default();
    let (mut seen, mut latest) = (own.seen, own.at);
    for (other, theirs) in pages.iter().filter(|(other, _)| *other != writer) {
        let Some(head) = sealed_head(theirs) else { continue };
        latest = latest.max(head.seen.get(writer).copied().unwrap_or_default());
        let at = seen.entry(other.clone()).or_default();
        *at = (*at).max(head.at);
    }
    seen.retain(|_, at| now.since(*at) < KEPT);
    Head { at: now.max(latest + Duration::from_millis(1)), last: HEAD, plain_until, seen }
}

/// A page to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Its number.
    pub number: u16,
    /// In the head: the number of the last page.
    pub last: u16,
    /// All its entries.
    pub entries: Vec<Entry>,
}

/// The writes that bring a writer's own pages to what is `wanted`, in order. Of duplicate keys the first counts. Pure.
pub fn plan(own: &BTreeMap<u16, Page>, wanted: &[Entry], now: Timestamp) -> Vec<Write> {
    Draft::planned(own, wanted, now).writes(own)
}

/// The same with every page, also unchanged ones: for a controller that has joined and may lack them.
pub fn plan_all(own: &BTreeMap<u16, Page>, wanted: &[Entry], now: Timestamp) -> Vec<Write> {
    Draft::planned(own, wanted, now).in_order(|_| true)
}

/// The writes that empty pages of former writers: of other alerters, since only one is active, and of any part on
/// controllers that are gone. Only if each of their entries is covered elsewhere.
pub fn superseded(
    pages: &Pages,
    writer: &Writer,
    is_gone: impl Fn(&str) -> bool,
    is_covered: impl Fn(&Entry) -> bool,
) -> Vec<(Writer, Vec<Write>)> {
    let is_done = |other: &Writer| other.part == Part::Alerter || is_gone(&other.controller);
    let done = pages.iter().filter(|(other, own)| {
        let said = || own.values().flat_map(|page| page.entries.sound.values());
        *other != writer
            && is_done(other)
            && sealed_head(own).is_some()
            && said().next().is_some()
            && said().all(&is_covered)
    });
    let emptied = |number: &u16| Write { number: *number, last: HEAD, entries: Vec::new() };
    done.map(|(other, own)| (other.clone(), own.keys().rev().map(emptied).collect())).collect()
}

/// The pages as they will be.
struct Draft {
    pages: BTreeMap<u16, Vec<Entry>>,
    /// The entries that no page has.
    missing: Vec<Entry>,
}

impl Draft {
    fn planned(own: &BTreeMap<u16, Page>, wanted: &[Entry], now: Timestamp) -> Self {
        let mut draft = Self::of(own, wanted, now);
        draft.gather_sparse();
        draft.fill_head();
        draft
    }

    /// Wanted entries stay in place. A copy that was moved into the head long enough ago counts only there.
    fn of(own: &BTreeMap<u16, Page>, wanted: &[Entry], now: Timestamp) -> Self {
        let mut left: BTreeMap<Key, &Entry> = BTreeMap::new();
        for entry in wanted {
            left.entry(entry.key()).or_insert(entry);
        }
        let (mut pages, mut placed): (BTreeMap<u16, Vec<Entry>>, _) = (BTreeMap::new(), BTreeSet::new());
        // A page that the head names and that is lost is written again; a forged one does not count.
        let last = sealed_head(own).map_or(HEAD, |head| head.last);
        pages.extend((HEAD + 1..=last).chain(own.keys().copied()).map(|number| (number, Vec::new())));
        for (number, page) in own.iter().filter(|(_, page)| page.is_sealed) {
            let is_old = now.since(page.head.at) >= MOVED;
            let kept = page
                .entries
                .sound
                .iter()
                .filter(|(key, entry)| left.get(key) == Some(entry) && !placed.contains(*key));
            let kept: Vec<Entry> = kept.map(|(_, entry)| entry.clone()).collect();
            // A reader may have passed a young page before it was written: the other copy stays too.
            if is_old || *number != HEAD {
                placed.extend(kept.iter().map(Entry::key));
            }
            pages.insert(*number, kept);
        }
        let here: BTreeSet<Key> = pages.values().flatten().map(Entry::key).collect();
        let missing = wanted.iter().filter(|entry| {
            !here.contains(&entry.key()) && left.get(&entry.key()).is_some_and(|it| std::ptr::eq(*it, *entry))
        });
        Self { missing: missing.cloned().collect(), pages }
    }

    /// If there are more than twice as many pages as needed, the entries of the emptiest are copied into the head; a
    /// later plan removes them from that page.
    fn gather_sparse(&mut self) {
        let size = |entries: &Vec<Entry>| entries.iter().map(length).sum::<usize>();
        let others = || self.pages.iter().filter(|(number, entries)| **number != HEAD && !entries.is_empty());
        let need = others().map(|(_, entries)| size(entries)).sum::<usize>().div_ceil(PAGE_MAX);
        if others().count() <= need * 2 {
            return;
        }
        let head: BTreeSet<Key> = self.pages.get(&HEAD).into_iter().flatten().map(Entry::key).collect();
        let emptiest = others().min_by_key(|(_, entries)| size(entries)).map(|(_, entries)| entries.clone());
        self.missing.extend(emptiest.into_iter().flatten().filter(|entry| !head.contains(&entry.key())));
    }

    /// Missing entries go into the head; what it cannot take becomes pages.
    fn fill_head(&mut self) {
        let head = self.pages.entry(HEAD).or_default();
        head.append(&mut self.missing);
        let mut chunks = chunks(std::mem::take(head));
        let rest = chunks.pop().unwrap_or_default();
        for chunk in chunks {
            let free = (1..=u16::MAX).find(|number| self.pages.get(number).is_none_or(Vec::is_empty));
            self.pages.insert(free.expect("2.6 GB of entries fit nowhere else either"), chunk);
        }
        self.pages.insert(HEAD, rest);
    }

    /// The pages that differ from the present ones, and the head if the number of pages has changed.
    fn writes(self, own: &BTreeMap<u16, Page>) -> Vec<Write> {
        let last = self.last();
        self.in_order(|number| {
            let Some(page) = own.get(&number) else { return true };
            let same = |entries: &Vec<Entry>| {
                entries.len() == page.entries.sound.len()
                    && entries.iter().all(|entry| page.entries.sound.get(&entry.key()) == Some(entry))
            };
            !(page.is_sealed && self.pages.get(&number).is_some_and(same))
                || (number == HEAD && page.head.last != last)
        })
    }

    fn last(&self) -> u16 {
        let used = self.pages.iter().filter(|(_, entries)| !entries.is_empty());
        used.map(|(number, _)| *number).max().unwrap_or(HEAD)
    }

    /// The head goes last: entries that leave it are elsewhere by then.
    fn in_order(&self, is_meant: impl Fn(u16) -> bool) -> Vec<Write> {
        let last = self.last();
        let order = self.pages.range(1..).chain(self.pages.get_key_value(&HEAD));
        let meant = order.filter(|(number, _)| is_meant(**number));
        let write = |(number, entries): (&u16, &Vec<Entry>)| Write {
            number: *number,
            last: if *number == HEAD { last } else { 0 },
            entries: entries.clone(),
        };
        meant.map(write).collect()
    }
}

fn length(entry: &Entry) -> usize {
    entry.key().to_string().len() + entry.value().len() + "=\n".len()
}

/// Chunks in order, each of at most a page; a longer entry alone.
fn chunks(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let (mut chunks, mut size) = (vec![Vec::new()], 0);
    for entry in entries {
        let length = length(&entry);
        if size + length > PAGE_MAX && size > 0 {
            chunks.push(Vec::new());
            size = 0;
        }
        size += length;
        chunks.last_mut().expect("there is a chunk from the beginning").push(entry);
    }
    chunks
}

#[cfg(test)]
mod tests;

/// What each head's pages said, by the head's writer and date.
#[derive(Debug, Default)]
pub struct Heads(BTreeMap<(Writer, Timestamp), BTreeSet<Key>>);

impl Heads {
    /// Takes note of the heads that are there. Of each writer it keeps the newest that it has read too, and what `own`, this
    /// alerter's, names: an older configuration may be loaded twice.
    pub fn note(&mut self, pages: &Pages, own: &Writer) {
        let mut meant = named(pages, own);
        for (writer, theirs) in pages.iter().filter(|(writer, _)| *writer != own) {
            let is_understood = theirs.values().all(|page| page.entries.apart.is_empty());
            let Some(head) = whole(theirs).filter(|_| is_understood) else { continue };
            let said = || theirs.values().flat_map(|page| page.entries.sound.keys().cloned()).collect();
            self.0.entry((writer.clone(), head.at)).or_insert_with(said);
            meant.insert((writer.clone(), head.at));
        }
        // In order: the last of each writer is its newest.
        let newest: BTreeMap<Writer, Timestamp> = self.0.keys().cloned().collect();
        meant.extend(newest);
        self.0.retain(|head, _| meant.contains(head));
    }

    /// The writers of whom `own` head names one that is gone, where all that it said is in `wanted`: a reader of the pages that
    /// have all of `wanted` lacks nothing of it.
    pub fn lost(&self, pages: &Pages, own: &Writer, wanted: &[Entry]) -> BTreeSet<Writer> {
        let mut gone = named(pages, own);
        gone.retain(|(writer, at)| !has_head(pages, writer, *at));
        if gone.is_empty() {
            return BTreeSet::new();
        }
        let wanted: BTreeSet<Key> = wanted.iter().map(Entry::key).collect();
        // A fencing that an agent wrote again was written without its mark; the mark says more.
        let is_wanted = |key: &Key| {
            wanted.contains(key) || matches!(key, Key::Again(id) if wanted.contains(&Key::Mark((*id).into())))
        };
        gone.retain(|head| self.0.get(head).is_some_and(|said| said.iter().all(is_wanted)));
        gone.into_iter().map(|(writer, _)| writer).collect()
    }
}

/// The heads that this writer's own names.
fn named(pages: &Pages, own: &Writer) -> BTreeSet<(Writer, Timestamp)> {
    let head = pages.get(own).and_then(sealed_head);
    head.into_iter().flat_map(|head| &head.seen).map(|(writer, at)| (writer.clone(), *at)).collect()
}
