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
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use marks::register::{KEPT, Part, Why, Writer};
use marks::time::Timestamp;

use crate::seal::SealKeys;

/// An entry as it stands there: its key, and its value.
pub type Line = (String, String);

/// The prefix of a writer's name in the list of seen heads: no entry's key begins so.
const SEEN: char = '@';
/// The first field of every page.
const VERSION: &str = "2";
/// Bytes of a page before it is packed. Entries pack to a sixth: some 13 KiB in the register.
pub const PAGE_MAX: usize = 80 << 10;
/// No line of an entry is shorter. What a page without a seal has beyond that is not read: it takes no more memory than one of ours.
const LINE_MIN: usize = 40;
/// None of our pages is longer.
const UNPACKED_MAX: usize = 256 << 10;
/// Longer than a reader takes from its first page to its last.
pub const MOVED: Duration = Duration::from_secs(5);
/// zlib's usual compromise.
const LEVEL: u8 = 6;

/// The head.
pub const HEAD: u16 = 0;

/// A page's header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// When it was written, by its writer's clock, always later than the previous time.
    pub at: Timestamp,
    /// In the head: the number of the last page; otherwise 0.
    pub last: u16,
    /// In an alerter's head: until when entries of controllers without a key count; 0 if they do not (see
    /// [`crate::plain_until`]).
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
    pub lines: Vec<Line>,
}

/// The text of a page in this place, sealed if there is a key.
pub fn write(writer: &Writer, number: u16, head: &Head, lines: &[Line], keys: &SealKeys) -> String {
    let seen = head.seen.iter().map(|(writer, at)| format!("{SEEN}{writer}={}\n", at.0));
    let lines = lines.iter().map(|(key, value)| format!("{key}={value}\n"));
    let lines: String = seen.chain(lines).collect();
    let packed = URL_SAFE_NO_PAD.encode(compress_to_vec(lines.as_bytes(), LEVEL));
    let text = format!("{VERSION};{};{};{};{packed}", head.at.0, head.last, head.plain_until.0);
    let seal = keys.seal(&place(writer, number), &text).unwrap_or_default();
    format!("{text};{seal}")
}

/// Reads a page back. Anybody who can write the register may have written it.
///
/// # Errors
/// [`Why`]: nothing of it can be used.
pub fn read(writer: &Writer, number: u16, page: &str, keys: &SealKeys) -> Result<Page, Why> {
    if page.split_once(';').is_none_or(|(version, _)| version != VERSION) {
        return Err(Why::Version);
    }
    let (text, seal) = page.rsplit_once(';').ok_or(Why::Malformed)?;
    let is_sealed = keys.opens(&place(writer, number), text, seal);
    let (limit, most) = if is_sealed { (UNPACKED_MAX, usize::MAX) } else { (PAGE_MAX, PAGE_MAX / LINE_MIN) };
    let (mut head, lines) = unpack(text, limit).ok_or(Why::Malformed)?;
    let mut own = Vec::new();
    for line in lines.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        match key.strip_prefix(SEEN) {
            Some(other) => head.seen.extend(seen(other, value)),
            None if own.len() < most => own.push((key.to_owned(), value.to_owned())),
            None => break,
        }
    }
    Ok(Page { head, is_sealed, lines: own })
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

pub(crate) fn sealed_head(own: &BTreeMap<u16, Page>) -> Option<&Head> {
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

/// A page to write: its number, and all its entries.
pub type Write = (u16, Vec<Line>);

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

/// The writes that bring a writer's own pages to what is `wanted`; none where there is nothing to do. With `all` also pages that are right
/// already: a controller that has joined may lack them. A head that names a `lost` one is written again too: a reader would miss what that
/// said. What is not understood stays: another release wrote it, and reads it when it is back.
pub fn own_writes(
    (pages, plain_until): (&Pages, Timestamp),
    (writer, wanted, is_understood): (&Writer, &[Line], impl Fn(&Line) -> bool),
    (lost, all): (&BTreeSet<Writer>, bool),
    now: Timestamp,
) -> Option<PageWrites> {
    let (none, all) = (BTreeMap::new(), all || !lost.is_empty());
    let (writes, last) = plan(pages.get(writer).unwrap_or(&none), (wanted, is_understood), all, now);
    let mut head = Head { last, ..head(pages, writer, plain_until, now) };
    head.seen.retain(|other, _| !lost.contains(other));
    (!writes.is_empty()).then(|| PageWrites { writer: writer.clone(), writes, head })
}

impl PageWrites {
    /// Takes note of what the writer's pages hold once that is written.
    pub fn note(&self, pages: &mut Pages) {
        let own = pages.entry(self.writer.clone()).or_default();
        for (number, lines) in &self.writes {
            own.insert(*number, Page { head: self.head_of(*number), is_sealed: true, lines: lines.clone() });
        }
    }

    /// The header of a page.
    pub(crate) fn head_of(&self, number: u16) -> Head {
        if number == HEAD { self.head.clone() } else { Head { at: self.head.at, ..Head::default() } }
    }
}

/// The entries on a writer's sealed pages.
pub fn standing<'p>(pages: &'p Pages, writer: &Writer) -> impl Iterator<Item = &'p Line> + use<'p> {
    let own = pages.get(writer).into_iter().flat_map(BTreeMap::values).filter(|page| page.is_sealed);
    own.flat_map(|page| &page.lines)
}

/// Their keys.
pub fn keys_on<'p>(pages: &'p Pages, writer: &Writer) -> BTreeSet<&'p str> {
    standing(pages, writer).map(|(key, _)| key.as_str()).collect()
}

/// The pages that a writer has to write, in order, and the number of its last page; with `all` also unchanged ones. Of duplicate keys the
/// first counts. Pure.
fn plan(
    own: &BTreeMap<u16, Page>,
    wanted: (&[Line], impl Fn(&Line) -> bool),
    all: bool,
    now: Timestamp,
) -> (Vec<Write>, u16) {
    let mut draft = Draft::of(own, wanted, now);
    draft.gather_sparse();
    draft.fill_head();
    let last = last_used(&draft.pages);
    // The head goes last: entries that leave it are elsewhere by then.
    let head = draft.pages.remove_entry(&HEAD);
    let in_order = draft.pages.into_iter().chain(head);
    let is_meant =
        |(number, lines): &Write| all || differs(own.get(number), lines, (*number == HEAD).then_some(last));
    (in_order.filter(is_meant).collect(), last)
}

/// The number of the last page with an entry.
fn last_used(pages: &BTreeMap<u16, Vec<Line>>) -> u16 {
    pages.iter().rfind(|(_, lines)| !lines.is_empty()).map_or(HEAD, |(number, _)| *number)
}

/// Whether a page is not there yet as it is to be; in the head also the number of the last page.
fn differs(page: Option<&Page>, lines: &[Line], last: Option<u16>) -> bool {
    let Some(page) = page.filter(|page| page.is_sealed) else { return true };
    let there: BTreeSet<&Line> = page.lines.iter().collect();
    let is_same = lines.len() == there.len() && lines.iter().all(|line| there.contains(line));
    !is_same || last.is_some_and(|last| page.head.last != last)
}

/// The writes that empty pages of former writers: of other alerters, since only one is active, and of any part on
/// controllers that are gone. Only if each of their entries is covered elsewhere. None is said of one that is not understood; it stays.
pub fn superseded(
    (pages, plain_until): (&Pages, Timestamp),
    writer: &Writer,
    is_gone: impl Fn(&str) -> bool,
    is_covered: impl Fn(&Line) -> Option<bool>,
    now: Timestamp,
) -> Vec<PageWrites> {
    let is_done = |other: &Writer| other.part == Part::Alerter || is_gone(&other.controller);
    let done = pages.iter().filter(|(other, own)| {
        let mut said = own.values().flat_map(|page| &page.lines).filter_map(&is_covered).peekable();
        let has_entries = said.peek().is_some();
        *other != writer && is_done(other) && sealed_head(own).is_some() && has_entries && said.all(|is| is)
    });
    let left = |page: &Page| -> Vec<Line> {
        let left = page.lines.iter().filter(|line| page.is_sealed && is_covered(line).is_none());
        left.cloned().collect()
    };
    let writes = |(other, own): (&Writer, &BTreeMap<u16, Page>)| {
        let rest: BTreeMap<u16, Vec<Line>> = own.iter().map(|(number, page)| (*number, left(page))).collect();
        let head = Head { last: last_used(&rest), ..head(pages, other, plain_until, now) };
        PageWrites { writer: other.clone(), writes: rest.into_iter().rev().collect(), head }
    };
    done.map(writes).collect()
}

/// The pages as they will be.
struct Draft {
    pages: BTreeMap<u16, Vec<Line>>,
    /// The entries that no page has.
    missing: Vec<Line>,
}

impl Draft {
    /// Wanted entries stay in place, and what is not understood. A copy that was moved into the head long enough ago counts only there.
    fn of(
        own: &BTreeMap<u16, Page>,
        (wanted, is_understood): (&[Line], impl Fn(&Line) -> bool),
        now: Timestamp,
    ) -> Self {
        let mut left: BTreeMap<&str, &Line> = BTreeMap::new();
        for line in wanted {
            left.entry(&line.0).or_insert(line);
        }
        let (mut pages, mut placed): (BTreeMap<u16, Vec<Line>>, _) = (BTreeMap::new(), BTreeSet::new());
        // A page that the head names and that is lost is written again; a forged one does not count.
        let last = sealed_head(own).map_or(HEAD, |head| head.last);
        pages.extend((HEAD + 1..=last).chain(own.keys().copied()).map(|number| (number, Vec::new())));
        for (number, page) in own.iter().filter(|(_, page)| page.is_sealed) {
            let is_old = now.since(page.head.at) >= MOVED;
            let is_wanted = |line: &Line| left.get(line.0.as_str()) == Some(&line) || !is_understood(line);
            let is_kept = |line: &&Line| is_wanted(line) && !placed.contains(*line);
            let kept: Vec<&Line> = page.lines.iter().filter(is_kept).collect();
            pages.insert(*number, kept.iter().copied().cloned().collect());
            // A reader may have passed a young page before it was written: the other copy stays too.
            if is_old || *number != HEAD {
                placed.extend(kept);
            }
        }
        let standing: BTreeSet<&Line> = pages.values().flatten().collect();
        left.retain(|_, line| !standing.contains(*line));
        // Each once, in the order of what is wanted.
        let missing =
            wanted.iter().filter(|line| left.get(line.0.as_str()).is_some_and(|it| std::ptr::eq(*it, *line)));
        Self { missing: missing.cloned().collect(), pages }
    }

    /// If there are more than twice as many pages as needed, the entries of the emptiest are copied into the head; a
    /// later plan removes them from that page.
    fn gather_sparse(&mut self) {
        let size = |lines: &Vec<Line>| lines.iter().map(length).sum::<usize>();
        let others = || self.pages.iter().filter(|(number, lines)| **number != HEAD && !lines.is_empty());
        let need = others().map(|(_, lines)| size(lines)).sum::<usize>().div_ceil(PAGE_MAX);
        if others().count() <= need * 2 {
            return;
        }
        let head: BTreeSet<&Line> = self.pages.get(&HEAD).into_iter().flatten().collect();
        let emptiest = others().min_by_key(|(_, lines)| size(lines)).into_iter().flat_map(|(_, lines)| lines);
        self.missing.extend(emptiest.filter(|line| !head.contains(line)).cloned());
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
}

fn length((key, value): &Line) -> usize {
    key.len() + value.len() + "=\n".len()
}

/// Chunks in order, each of at most a page; a longer entry alone.
fn chunks(lines: Vec<Line>) -> Vec<Vec<Line>> {
    let (mut chunks, mut size) = (vec![Vec::new()], 0);
    for line in lines {
        let length = length(&line);
        if size + length > PAGE_MAX && size > 0 {
            chunks.push(Vec::new());
            size = 0;
        }
        size += length;
        chunks.last_mut().expect("there is a chunk from the beginning").push(line);
    }
    chunks
}

/// What each head's pages said, by the head's writer and date.
#[derive(Debug, Default)]
pub struct Heads(BTreeMap<(Writer, Timestamp), BTreeSet<String>>);

impl Heads {
    /// Takes note of the heads that are there. Of each writer it keeps the newest that it has read too, and what `own`, this
    /// alerter's, names: an older configuration may be loaded twice.
    pub fn note(&mut self, pages: &Pages, own: &Writer, is_understood: impl Fn(&Line) -> bool) {
        let mut meant = named(pages, own);
        for (writer, theirs) in pages.iter().filter(|(writer, _)| *writer != own) {
            let lines = || theirs.values().flat_map(|page| &page.lines);
            let Some(at) = whole(theirs).map(|head| (writer.clone(), head.at)) else { continue };
            if !self.0.contains_key(&at) {
                if !lines().all(&is_understood) {
                    continue;
                }
                self.0.insert(at.clone(), lines().map(|(key, _)| key.clone()).collect());
            }
            meant.insert(at);
        }
        // In order: the last of each writer is its newest.
        let newest: BTreeMap<Writer, Timestamp> = self.0.keys().cloned().collect();
        meant.extend(newest);
        self.0.retain(|head, _| meant.contains(head));
    }

    /// The writers of whom `own` head names one that is gone, where all that it said is wanted: a reader of the pages that
    /// have all that is wanted lacks nothing of it.
    pub fn lost(&self, pages: &Pages, own: &Writer, is_wanted: impl Fn(&String) -> bool) -> BTreeSet<Writer> {
        let mut gone = named(pages, own);
        gone.retain(|(writer, at)| !has_head(pages, writer, *at));
        gone.retain(|head| self.0.get(head).is_some_and(|said| said.iter().all(&is_wanted)));
        gone.into_iter().map(|(writer, _)| writer).collect()
    }
}

/// The heads that this writer's own names.
fn named(pages: &Pages, own: &Writer) -> BTreeSet<(Writer, Timestamp)> {
    let head = pages.get(own).and_then(sealed_head);
    head.into_iter().flat_map(|head| &head.seen).map(|(writer, at)| (writer.clone(), *at)).collect()
}

#[cfg(test)]
mod tests;
