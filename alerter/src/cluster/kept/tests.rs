use marks::id::NoteId;
use std::collections::BTreeMap;

use marks::register::{SETTLED_MAX, Watermark};
use register::pages::{HEAD, Head, Page};
use register::{plain_until, united};

use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// Of these cluster nodes, those are members.
fn cib_of(all: &[&str], members: &[&str]) -> Cib {
    let node = |name: &&str| format!(r#"<node id="{name}" uname="{name}"/>"#);
    let state = |name: &&str| {
        let is_in = members.contains(name);
        format!(r#"<node_state id="{name}" uname="{name}" in_ccm="{is_in}" crmd="online"/>"#)
    };
    let (nodes, states): (String, String) = (all.iter().map(node).collect(), all.iter().map(state).collect());
    let xml =
        format!("<cib><configuration><nodes>{nodes}</nodes></configuration><status>{states}</status></cib>");
    Cib::parse(&xml).unwrap()
}

fn cib(members: &[&str]) -> Cib {
    cib_of(&["ctl1", "ctl2", "ctl3"], members)
}

fn entry(by: &str) -> Entry {
    Entry::Watermark(Watermark { id: NoteId::generate(), at: NOW, by: by.into() })
}

fn alerter(controller: &str) -> Writer {
    Part::Alerter.on(controller)
}

fn lines(all: &[Entry]) -> Vec<Line> {
    all.iter().map(Entry::line).collect()
}

/// What stands there once this alerter has written that.
fn after(mut paged: Paged, wanted: &[Entry]) -> Paged {
    let until = plain_until(&paged.pages, &paged.plain, true, NOW);
    let there = (&paged.pages, until);
    if let Some(writes) =
        own_writes(there, (&alerter("ctl1"), &lines(wanted)), (&Heads::default(), false), NOW)
    {
        writes.note(&mut paged.pages);
    }
    paged
}

#[test]
fn own_pages_come_to_what_is_wanted_and_are_written_again_for_those_who_join() {
    let wanted = [entry("ctl1"), entry("ctl1")];
    let (paged, wanted) = (after(Paged::default(), &wanted), lines(&wanted));
    let keys = wanted.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(pages::keys_on(&paged.pages, &alerter("ctl1")), keys);
    let there = (&paged.pages, Timestamp(0));
    let writes = |all| own_writes(there, (&alerter("ctl1"), &wanted), (&Heads::default(), all), NOW);
    assert_eq!(writes(false), None);
    let again = writes(true).unwrap();
    assert_eq!(again.writes.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [HEAD]);
    assert!(again.head.at > paged.pages[&alerter("ctl1")][&HEAD].head.at, "attrd passes over the same");
    assert!(pages::keys_on(&paged.pages, &alerter("ctl2")).is_empty());
}

/// The broken variants empty the pages of another alerter while they alone say something, or of the agent of a controller that is there.
#[test]
fn what_is_taken_over_is_emptied_and_what_stood_alone_goes() {
    let (shared, alone) = (entry("ctl2"), entry("ctl2"));
    let says = |writer: Writer, all: &[&Entry]| PageWrites {
        writer,
        writes: vec![(HEAD, all.iter().map(|it| it.line()).collect())],
        head: Head { at: NOW, ..Head::default() },
    };
    let agent = Part::Agent.on("ctl3.my.cloud.com");
    let mut paged = after(Paged::default(), std::slice::from_ref(&shared));
    says(alerter("ctl2"), &[&shared]).note(&mut paged.pages);
    says(agent.clone(), &[&shared]).note(&mut paged.pages);
    says(alerter("ctl4"), &[&shared, &alone]).note(&mut paged.pages);
    let emptied = |members: &[&str], after: Duration, is_partial: bool| -> Vec<Writer> {
        let entries = Entries { is_partial, ..Entries::default() };
        let all = superseded(&paged, &alerter("ctl1"), (&entries, &cib(members)), NOW + after);
        all.into_iter().map(|done| done.writer).collect()
    };
    let (all, two, hours) = (&["ctl1", "ctl2", "ctl3"], &["ctl1", "ctl2"], QUIET * 2);
    assert_eq!(emptied(all, hours, false), [alerter("ctl2")]);
    assert_eq!(emptied(two, QUIET, false), [alerter("ctl2")], "it may just be joining");
    assert_eq!(emptied(two, hours, false), [agent, alerter("ctl2")]);
    assert_eq!(emptied(two, hours, true), [], "what is lacking here may stand there alone");
    paged.plain = Entries::of(&lines(&[shared.clone(), alone]));
    assert_eq!(left_over(&paged, &alerter("ctl1"), NOW), [shared.key()]);
}

/// attrd may send nothing to a controller that joins (docs/registers.md): everything is written once it is there, and a moment later.
#[test]
fn all_is_written_again_when_a_controller_joins() {
    let (mut rewriting, now) = (Rewriting::default(), Instant::now());
    let later = |seconds| now + Duration::from_secs(seconds);
    assert!(rewriting.is_due(Register::Attrd, &cib(&["ctl1"]), now), "nobody knows what the others have");
    rewriting.note_done(later(1));
    assert!(!rewriting.is_due(Register::Attrd, &cib(&["ctl1"]), later(2)));
    assert!(rewriting.is_due(Register::Attrd, &cib(&["ctl1"]), later(20)), "a moment later");
    rewriting.note_done(later(20));
    assert!(!rewriting.is_due(Register::Attrd, &cib(&["ctl1"]), later(100)));
    assert!(rewriting.is_due(Register::Attrd, &cib(&["ctl1", "ctl2"]), later(101)));
    assert!(rewriting.is_due(Register::Attrd, &cib(&["ctl1", "ctl2"]), later(102)), "it was not written");
    rewriting.note_done(later(103));
    assert!(!rewriting.is_due(Register::Attrd, &cib(&["ctl1", "ctl2"]), later(104)));
    assert!(rewriting.is_due(Register::Attrd, &cib(&["ctl1", "ctl2"]), later(117)));
    rewriting.note_done(later(117));
    assert!(!rewriting.is_due(Register::Attrd, &cib(&["ctl1"]), later(200)), "one has left");
    assert!(rewriting.is_due(Register::Attrd, &cib(&["ctl1"]), later(4000)));
    assert!(!rewriting.is_due(Register::Cib, &cib(&["ctl1"]), later(4000)));
    assert!(Rewriting::default().is_due(Register::Cib, &cib(&["ctl1"]), now), "with the key of today");
}

/// What is wrong is said; a register without pages of others' keys says nothing.
#[test]
fn what_is_wrong_with_the_register_is_said() {
    let keys = SealKeys::derive([&b"secret"[..]]);
    let words = |paged: Paged, keys: &SealKeys, complaints: &[&str], is_partial| -> Vec<Matter> {
        let entries = Entries { is_partial, ..Entries::default() };
        let complaints = complaints.iter().map(|&it| it.to_owned()).collect();
        let kept = Kept::of(Some(&entries), Some(paged), (keys, complaints));
        kept.faults.iter().map(|(matter, _)| *matter).collect()
    };
    let sound = || after(Paged::default(), &[entry("ctl1")]);
    assert_eq!(words(sound(), &keys, &[], false), []);
    assert_eq!(words(sound(), &SealKeys::default(), &[], false), [Matter::RegisterKey]);
    assert_eq!(
        words(sound(), &SealKeys::default(), &["it is short"], true),
        [Matter::RegisterKey, Matter::RegisterPartial]
    );
    let mut other = sound();
    other.pages.values_mut().for_each(|own| own.values_mut().for_each(|page| page.is_sealed = false));
    assert_eq!(words(other, &keys, &[], false), [Matter::RegisterKey]);
    let large = |longest_answer| Paged { longest_answer, ..sound() };
    assert_eq!(words(large(QUARTER), &keys, &[], false), []);
    assert_eq!(words(large(QUARTER + 1), &keys, &[], false), [Matter::RegisterSize]);
    let unread = Kept::of(None, None, (&SealKeys::default(), Vec::new()));
    assert_eq!(unread.faults, []);
}

/// There is a key, and no upgrade is under way.
const OVER: (bool, Timestamp) = (false, Timestamp(0));
const CONTROLLERS: [&str; 10] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];

/// What one message of attrd would take to answer for the number that says most.
fn longest(pages: &Pages) -> usize {
    let text = |(writer, own): (&Writer, &BTreeMap<u16, Page>), number: u16| {
        own.get(&number).map_or(0, |page| {
            pages::write(writer, number, &page.head, &page.lines, &SealKeys::derive([&b"secret"[..]])).len()
        })
    };
    (HEAD..20).map(|number| pages.iter().map(|own| text(own, number)).sum()).max().unwrap_or_default()
}

fn settled(fencing: &marks::fencing::Fencing, at: Timestamp, by: &str) -> Vec<Entry> {
    let mark = fencing.id.into();
    let how = marks::mark::Settlement::Acknowledged;
    let entry = marks::register::MarkEntry::of_row(&marks::mark::MarkRow {
        id: mark,
        fqdn: Some(fencing.node.clone()),
        ..samples::mark_of("compute1", at)
    });
    let taken = marks::register::Acknowledgement { mark, route: "recovery".into(), at, by: by.into() };
    let end = marks::register::Settled { mark, how, at, by: by.into() };
    vec![
        Entry::Fencing(fencing.clone()),
        Entry::Mark(entry.unwrap()),
        Entry::Acknowledged(taken),
        Entry::Settled(end),
    ]
}

/// Ten controllers come and go in turn, three at a time, and each alerter in turn knows what the one before it knew. Whatever they leave
/// behind is taken over: the longest answer stays small, and what is open stands there at every moment. The broken variant leaves the
/// pages of those that are gone as they are, and grows with every controller.
#[test]
fn ten_controllers_come_and_go() {
    let mut sizes = Vec::new();
    for takes_over in [true, false] {
        let (mut paged, mut now) = (Paged::default(), NOW);
        let (mut open, mut ended): (Vec<Entry>, Vec<Entry>) = (Vec::new(), Vec::new());
        for round in 0..30 {
            let online: Vec<&str> = (0..3).map(|number| CONTROLLERS[(round + number) % 10]).collect();
            let (active, agent) = (alerter(online[0]), Part::Agent.on(online[1]));
            let fencings: Vec<_> = (0..40).map(|_| samples::fencing("compute1", now)).collect();
            let new: Vec<Entry> = fencings.iter().cloned().map(Entry::Fencing).collect();
            write_all(&mut paged.pages, &agent, &new, now);
            open.extend(new);
            for _ in 0..3 {
                now = now + pages::MOVED * 2;
                let wanted = [&open[..], &ended].concat();
                write_all(&mut paged.pages, &active, &wanted, now);
                let entries = united(&paged.pages, &paged.plain, OVER, now);
                assert!(open.iter().all(|entry| entries.sound.get(&entry.key()) == Some(entry)));
                assert!(!entries.is_partial);
                let done = superseded(&paged, &active, (&entries, &cib_of(&CONTROLLERS, &online)), now);
                done.iter().filter(|_| takes_over).for_each(|done| done.note(&mut paged.pages));
            }
            // All but a few were acknowledged.
            for it in open.split_off(open.len().min(round / 3)).iter().filter_map(Entry::fencing) {
                ended.extend(settled(it, now, &active.controller));
            }
            let over = ended.len().saturating_sub(SETTLED_MAX * 4);
            ended.drain(..over);
        }
        sizes.push(longest(&paged.pages));
    }
    assert!(sizes[0] <= QUARTER && sizes[1] > QUARTER, "{sizes:?}");
}

fn write_all(pages: &mut Pages, writer: &Writer, wanted: &[Entry], now: Timestamp) {
    let there = (&*pages, Timestamp(0));
    if let Some(writes) = own_writes(there, (writer, &lines(wanted)), (&Heads::default(), false), now) {
        writes.note(pages);
    }
}

/// An administrator loads an old configuration while the alerter writes what it has read in a newer one. Its head then names a head of the
/// agent that is gone. Its next head does so no more, where all that the agent said is wanted: the next alerter lacks nothing. The broken
/// variants name it for seven days, or hide that something is lacking: what is not wanted here, or what stood on a page that was not there.
#[test]
fn an_old_configuration_behind_a_write_leaves_no_gap() {
    let (agent, own) = (Part::Agent.on("ctl2"), alerter("ctl1"));
    let (known, new, fencing) = (entry("ctl2"), entry("ctl2"), samples::fencing("compute1", NOW));
    // The agent writes a fencing again that a loaded configuration lacks.
    let (again, story) = (Entry::Again(fencing.clone()), settled(&fencing, NOW, "ctl1"));
    let same = std::slice::from_ref(&new);
    for (notes, new, wanted, is_whole, is_partial) in [
        (true, &new, same, true, false),
        (false, &new, same, true, true),
        (true, &new, &[], true, true),
        (true, &new, same, false, true),
        (true, &again, &story, true, false),
        (true, &again, &story[..1], true, true),
    ] {
        let (mut pages, mut heads) = (Pages::new(), Heads::default());
        write_all(&mut pages, &agent, std::slice::from_ref(&known), NOW);
        let old = pages.clone();
        let mut restored = old.clone();
        write_all(&mut pages, &agent, &[known.clone(), new.clone()], NOW + Duration::from_secs(1));
        if !is_whole {
            pages.get_mut(&agent).and_then(|own| own.get_mut(&HEAD)).unwrap().head.last = 1;
        }
        let wanted = [std::slice::from_ref(&known), wanted].concat();
        for second in 2..5 {
            let (now, there) = (NOW + Duration::from_secs(second), (&pages, Timestamp(0)));
            if notes {
                heads.note(&pages, &own, is_understood);
                // The old configuration was there for a moment before.
                heads.note(&old, &own, is_understood);
            }
            if let Some(writes) = own_writes(there, (&own, &lines(&wanted)), (&heads, false), now) {
                writes.note(&mut restored);
            }
            pages = restored.clone();
        }
        let now = NOW + Duration::from_secs(9);
        let read = united(&pages, &Entries::default(), OVER, now);
        assert_eq!(read.is_partial, is_partial, "{notes} {new:?} {is_whole}");
        heads.note(&pages, &own, is_understood);
        let there = (&pages, Timestamp(0));
        assert_eq!(
            own_writes(there, (&own, &lines(&wanted)), (&heads, false), now),
            None,
            "it is written once"
        );
    }
}
