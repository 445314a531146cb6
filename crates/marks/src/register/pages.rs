//! Pages of the register: what one writer says there, packed into a few keys that are used for ever. Nobody else writes them while it is
//! there ([`superseded`]), so that no write waits for another controller's, and the state is the union of all pages.
//!
//! Page 0 is the head, which gets what is new. What it cannot take any more becomes a page of its own. Whoever reads begins with
//! the head, whose `last` says how many others there are. So a reader may be in between at any time and misses nothing, as long as
//! nothing leaves a page that it has moved from within [`MOVED`].
//!
//! A controller that has joined may have got some pages and not others: attrd hands on what it knows only where nobody else joins at
//! that moment (seen on 2.1.5: two controllers booted together, and one stayed without all that the third knew). So a head says
//! which other heads its writer had seen. Who lacks one of these does not know everything, and must not go by what is not there.

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

/// Before the name of a writer that was seen: no entry's key begins so.
const SEEN: char = '@';
/// The first field of every page.
const VERSION: &str = "2";
/// Bytes of a page before it is packed. Entries pack to a sixth: some 13 KiB in the register.
pub const PAGE_MAX: usize = 80 << 10;
/// Longer ones are nobody's of us.
const UNPACKED_MAX: usize = 256 << 10;
/// Longer than a reader takes from its first page to its last.
pub const MOVED: Duration = Duration::from_secs(5);
/// zlib's usual compromise.
const LEVEL: u8 = 6;

/// The head.
pub const HEAD: u16 = 0;

/// Who writes a page: a part of this software, on one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer {
    /// Which part.
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
    /// Reads what is displayed; `None` for what no writer is called.
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

/// What a page says of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// When it was written, by its writer's clock: later than what it wrote before.
    pub at: Timestamp,
    /// In the head: the number of the last page; else 0.
    pub last: u16,
    /// In an alerter's head: until when what controllers without a key write counts; 0 where none does (see
    /// [`super::plain_until`]).
    pub plain_until: Timestamp,
    /// In the head: the dates of other writers' heads that its writer had seen.
    pub seen: BTreeMap<Writer, Timestamp>,
}

/// A page as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// What it says of pages.
    pub head: Head,
    /// Root on some controller of this cluster wrote it.
    pub is_sealed: bool,
    /// What it says.
    pub entries: Entries,
}

/// The text of a page in this place. It is sealed where there is a key.
pub fn write(writer: &Writer, number: u16, head: &Head, entries: &[Entry], keys: &SealKeys) -> String {
    let seen = head.seen.iter().map(|(writer, at)| format!("{SEEN}{writer}={}\n", at.0));
    let lines = entries.iter().map(|entry| format!("{}={}\n", entry.key(), entry.value()));
    let lines: String = seen.chain(lines).collect();
    let packed = URL_SAFE_NO_PAD.encode(compress_to_vec(lines.as_bytes(), LEVEL));
    let text = format!("{VERSION};{};{};{};{packed}", head.at.0, head.last, head.plain_until.0);
    let seal = keys.seal(&place(writer, number), &text).unwrap_or_default();
    format!("{text};{seal}")
}

/// Reads a page back. It may come from anybody who can write the register.
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
    // Somebody's odd lines are said once, however many they are.
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

/// Writers of whom this controller lacks a page: an older head was found than another writer had seen, or none, or not every page that
/// the head names. Only root's word counts; and of what is older than the register keeps anything nobody lacks a thing.
pub fn gaps(pages: &Pages, now: Timestamp) -> BTreeSet<&Writer> {
    let heads = || pages.iter().filter_map(|(writer, own)| Some((writer, sealed_head(own)?)));
    let seen = heads().flat_map(|(_, head)| &head.seen);
    let is_here = |writer: &Writer, at: Timestamp| {
        pages.get(writer).and_then(sealed_head).is_some_and(|head| head.at >= at)
    };
    let late = seen.filter(|(writer, at)| now.since(**at) < KEPT && !is_here(writer, **at));
    let late = late.map(|(writer, _)| writer);
    let has_all = |writer: &Writer, last: u16| {
        pages.get(writer).is_some_and(|own| (HEAD..=last).all(|number| own.contains_key(&number)))
    };
    let torn = heads().filter(|(writer, head)| !has_all(writer, head.last)).map(|(writer, _)| writer);
    late.chain(torn).collect()
}

pub(super) fn sealed_head(own: &BTreeMap<u16, Page>) -> Option<&Head> {
    own.get(&HEAD).filter(|page| page.is_sealed).map(|page| &page.head)
}

/// What a writer that has found these writes into its head; `now` is its clock's time. What it had seen before it has seen, also where
/// it is gone, for as long as the register keeps anything. What a forger has put in its place says nothing.
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

/// One page to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which.
    pub number: u16,
    /// The number of the last page, in the head.
    pub last: u16,
    /// All that it is to say; nothing more than that.
    pub entries: Vec<Entry>,
}

/// What brings a writer's own pages to what is `wanted`, in the order in which it is to be written. Of what is wanted twice the first
/// counts. Pure.
pub fn plan(own: &BTreeMap<u16, Page>, wanted: &[Entry], now: Timestamp) -> Vec<Write> {
    Draft::planned(own, wanted, now).writes(own)
}

/// The same with every page, also those that are as they should be: to a controller that has joined, and may not have got them.
pub fn plan_all(own: &BTreeMap<u16, Page>, wanted: &[Entry], now: Timestamp) -> Vec<Write> {
    Draft::planned(own, wanted, now).in_order(|_| true)
}

/// What empties the pages of writers that are done: of other alerters, since one alone acts, and of whatever is on controllers that are
/// gone. Only where each of their entries is covered elsewhere.
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

/// Pages as they are to become.
struct Draft {
    pages: BTreeMap<u16, Vec<Entry>>,
    /// What no page has.
    missing: Vec<Entry>,
}

impl Draft {
    fn planned(own: &BTreeMap<u16, Page>, wanted: &[Entry], now: Timestamp) -> Self {
        let mut draft = Self::of(own, wanted, now);
        draft.gather_sparse();
        draft.fill_head();
        draft
    }

    /// What is still wanted stays where it is. A copy that was moved into the head long enough ago counts there alone.
    fn of(own: &BTreeMap<u16, Page>, wanted: &[Entry], now: Timestamp) -> Self {
        let mut left: BTreeMap<Key, &Entry> = BTreeMap::new();
        for entry in wanted {
            left.entry(entry.key()).or_insert(entry);
        }
        let (mut pages, mut placed): (BTreeMap<u16, Vec<Entry>>, _) = (BTreeMap::new(), BTreeSet::new());
        // A page that the head names and that is lost is written anew; one that a forger has put in its place says nothing.
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
            // A young page may have been written after a reader had passed it: the other copy stays too.
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

    /// Where pages are more than twice as many as they need be, what the emptiest has is copied into the head; it leaves that page
    /// by a later plan.
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

    /// What is missing goes into the head; what that cannot take becomes pages.
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

    /// What differs from what stands there, and the head where the others are not as many as before.
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

    /// The head behind the others: what it does not say any more stands there already.
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

/// In their order, each as long as a page may be; an entry that is longer alone.
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
