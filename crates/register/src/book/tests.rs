use proptest::prelude::*;

use std::collections::BTreeMap;

use marks::fencing::Fencing;
use marks::id::{MarkId, NoteId};
use marks::mark::Settlement;
use marks::register::{Entry, Settled, Unsealed, Watermark};

use super::*;
use crate::pages::Head;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
/// There is a key, and no upgrade is under way.
const OVER: (bool, Timestamp) = (false, Timestamp(0));

fn fencing(seen_by: &str, asked_at: i64) -> Entry {
    let Entry::Fencing(like) = crate::tests::entry() else { panic!("no fencing") };
    let at = Timestamp(asked_at);
    Entry::Fencing(Fencing { asked_at: at, committed_at: at, seen_by: seen_by.into(), ..like })
}

fn end(by: &str) -> Entry {
    let mark = MarkId::parse("0199c2a4-7d1e-7b3a-9f00-000000000001").unwrap();
    Entry::Settled(Settled { mark, how: Settlement::Acknowledged, at: NOW, by: by.into() })
}

fn watermark() -> Entry {
    let id = NoteId::parse("0199c2a4-7d1e-7b3a-9f00-000000000002").unwrap();
    Entry::Watermark(Watermark { id, at: Timestamp(0), by: "ctl1".into() })
}

fn lines(all: &[Entry]) -> Vec<Line> {
    all.iter().map(Entry::line).collect()
}

fn beside(all: &[Entry]) -> Entries {
    Entries::of(&lines(all))
}

/// The head of this writer, with these entries, written now.
fn page(part: Part, controller: &str, is_sealed: bool, all: &[Entry]) -> Pages {
    let head = Head { at: NOW, ..Head::default() };
    let page = Page { head, is_sealed, lines: lines(all) };
    Pages::from([(part.on(controller), BTreeMap::from([(HEAD, page)]))])
}

/// For an entry: whether root on its controller wrote it, and why it does not count.
fn seal(pages: &Pages, plain: &[Entry], is_keyless: bool) -> (bool, Option<Unsealed>) {
    let plain = beside(plain);
    let all = united(pages, &plain, (is_keyless, plain_until(pages, &plain, true, NOW)), NOW);
    let key = all.sound.keys().find(|key| !matches!(key, Key::Watermark(_))).expect("it stands there");
    (all.sealed.contains(key), all.unsealed.get(key).copied())
}

/// S1-16: the broken variant takes an alerter's copy of a fencing for root's entry of the named controller: a reader
/// copies a forged one.
#[test]
fn only_its_own_agent_vouches_for_a_fencing() {
    let own = |part, by| seal(&page(part, by, true, &[fencing("ctl1", 7)]), &[], false);
    assert_eq!(own(Part::Agent, "ctl1"), (true, None));
    assert_eq!(own(Part::Agent, "ctl2"), (false, None));
    assert_eq!(own(Part::Alerter, "ctl1"), (false, None));
    let forged = page(Part::Agent, "ctl1", false, &[fencing("ctl1", 7)]);
    assert_eq!(seal(&forged, &[], false), (false, Some(Unsealed::Unknown)));
    assert_eq!(seal(&forged, &[], true), (false, None), "without a key they cannot be distinguished");
}

/// Root's copy decides what the fencing is: a forged one under the same key with an earlier time does not count.
#[test]
fn a_forged_fencing_stands_in_no_true_ones_way() {
    let read = page(Part::Alerter, "ctl2", true, &[fencing("ctl1", 7)]);
    let all = united(&read, &beside(&[fencing("ctl1", 3)]), OVER, NOW);
    assert_eq!(all.sound.values().next(), Some(&fencing("ctl1", 7)));
}

/// However many foreign bad lines a page has, they are reported once.
#[test]
fn what_a_stranger_writes_is_said_once() {
    let bad = [1, 2, 3].map(|number| (format!("x.{number}"), "1".to_owned())).to_vec();
    for (is_sealed, said) in [(true, 3), (false, 1)] {
        let mut pages = page(Part::Alerter, "ctl1", is_sealed, &[]);
        pages.values_mut().flat_map(BTreeMap::values_mut).for_each(|page| page.lines = bad.clone());
        assert_eq!(united(&pages, &Entries::default(), OVER, NOW).apart.len(), said);
    }
}

/// An end counts by its seal; during an upgrade also from a writer that was never seen to seal. The broken variants trust
/// a writer that seals otherwise, or trust anybody after the upgrade, or before any alerter had a key.
#[test]
fn an_end_without_a_seal_counts_in_an_upgrade_alone() {
    let sealed = |until| {
        let mut pages = page(Part::Alerter, "ctl2", true, &[]);
        pages.values_mut().for_each(|own| own.get_mut(&HEAD).unwrap().head.plain_until = until);
        pages
    };
    let (later, over) = (NOW + KEPT, NOW);
    let plain = |by: &str| [end(by)];
    assert_eq!(seal(&page(Part::Alerter, "ctl1", true, &plain("ctl1")), &[], false), (true, None));
    assert_eq!(seal(&sealed(later), &plain("ctl1"), false), (false, None));
    assert_eq!(seal(&sealed(later), &plain("ctl2"), false), (false, Some(Unsealed::Forged)));
    assert_eq!(seal(&sealed(over), &plain("ctl1"), false), (false, Some(Unsealed::Unknown)));
    assert_eq!(seal(&Pages::new(), &plain("ctl1"), false), (false, Some(Unsealed::Unknown)));
    assert_eq!(seal(&Pages::new(), &[end("ctl1"), watermark()], false), (false, None));
    assert_eq!(seal(&sealed(over), &plain("ctl2"), true), (false, None));
}

/// The first alerter with a key grants that time to those without, and all others follow it; an entry that no root wrote,
/// and an agent, begin none. Nor does an alerter that has written pages itself, where the heads of all alerters were deleted and an entry was
/// added as if one without a key had been there first. The broken variant grants the time again.
#[test]
fn an_upgrade_has_an_end() {
    let was_there = beside(&[watermark()]);
    assert_eq!(plain_until(&Pages::new(), &was_there, true, NOW), NOW + KEPT);
    assert_eq!(plain_until(&Pages::new(), &was_there, false, NOW), Timestamp(0));
    assert_eq!(plain_until(&Pages::new(), &beside(&[end("ctl1")]), true, NOW), Timestamp(0));
    let head = |part, is_sealed| plain_until(&page(part, "ctl1", is_sealed, &[]), &was_there, true, NOW);
    assert_eq!(head(Part::Alerter, true), Timestamp(0));
    assert_eq!((head(Part::Agent, true), head(Part::Alerter, false)), (NOW + KEPT, NOW + KEPT));
}

/// A controller has lost its key, or gone back to the former release, and has ended a mark since: that may be true. The
/// broken variant counts it as forged, and the mark is sent again.
#[test]
fn what_is_later_than_the_last_seal_may_be_true() {
    let later = |by: &str| match end(by) {
        Entry::Settled(end) => Entry::Settled(Settled { at: NOW + KEPT, ..end }),
        other => other,
    };
    let sealed = page(Part::Alerter, "ctl2", true, &[]);
    assert_eq!(seal(&sealed, &[end("ctl2")], false), (false, Some(Unsealed::Forged)));
    assert_eq!(seal(&sealed, &[later("ctl2")], false), (false, Some(Unsealed::Unknown)));
}

/// A package was replaced under a daemon of the former release: `fence_mark` seals, and the daemon's ends count until it
/// is restarted.
#[test]
fn the_two_parts_of_a_controller_may_be_of_two_releases() {
    let agent = page(Part::Agent, "ctl1", true, &[]);
    let all = [end("ctl1"), watermark()];
    assert_eq!(seal(&agent, &all, false), (false, None));
    assert_eq!(seal(&agent, &[fencing("ctl1", 7)], false), (false, Some(Unsealed::Forged)));
}

/// Three controllers' entries on a few matters, each with another time, sealed or not.
fn story() -> impl Strategy<Value = (usize, bool, Entry)> {
    (0_usize..3, any::<bool>(), 0_u8..4, 0_i64..4).prop_map(|(by, is_sealed, number, at)| {
        let mark = MarkId::parse(&format!("0199c2a4-7d1e-7b3a-9f00-{number:012}")).unwrap();
        let by_name = format!("ctl{by}");
        let end = Settled { mark, how: Settlement::Acknowledged, at: Timestamp(at), by: by_name };
        (by, is_sealed, Entry::Settled(end))
    })
}

proptest! {
    /// A forged entry never changes what root wrote.
    #[test]
    fn what_is_sealed_counts_whatever_is_forged(stories in prop::collection::vec(story(), 0..12)) {
        let mut pages = Pages::new();
        for by in 0..3 {
            let own: Vec<Entry> =
                stories.iter().filter(|(who, is_sealed, _)| *who == by && *is_sealed).map(|(.., entry)| entry.clone()).collect();
            pages.extend(page(Part::Alerter, &format!("ctl{by}"), true, &own));
        }
        let forged: Vec<Entry> = stories.iter().filter(|(_, is_sealed, _)| !is_sealed).map(|(.., entry)| entry.clone()).collect();
        let (alone, all) = (united(&pages, &Entries::default(), OVER, NOW), united(&pages, &beside(&forged), OVER, NOW));
        prop_assert!(alone.sound.iter().all(|(key, entry)| all.sound.get(key) == Some(entry)));
        prop_assert_eq!(&all.sealed, &alone.sealed);
        prop_assert!(all.sound.keys().all(|key| all.sealed.contains(key) != all.unsealed.contains_key(key)));
    }
}
