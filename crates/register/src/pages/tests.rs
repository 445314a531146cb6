use proptest::prelude::*;

use super::*;

/// An entry; a few dozen fill a page. Every tenth of the first ones is of a release that is not here now.
fn entry(number: u32) -> Line {
    let kind = if number < 300 && number % 10 == 9 { "n" } else { "p" };
    (format!("{kind}.{number:036}"), "x".repeat(940))
}

fn is_understood((key, _): &Line) -> bool {
    key.starts_with("p.")
}

fn keys_of(lines: &[Line]) -> impl Iterator<Item = String> {
    lines.iter().map(|(key, _)| key.clone())
}

fn keys() -> SealKeys {
    SealKeys::derive([&b"secret"[..]])
}

fn writer() -> Writer {
    Part::Agent.on("ctl1.example.org")
}

fn at(at: i64) -> Head {
    Head { at: Timestamp(at), ..Head::default() }
}

/// A register of one writer, and a reader of it, at every step.
#[derive(Default)]
struct Model {
    pages: BTreeMap<u16, Page>,
    wanted: Vec<Line>,
    now: Timestamp,
    next: u32,
    /// The rest of the last plan.
    queue: Vec<Write>,
    last: u16,
    reader: Option<Reader>,
    /// The entries that a reader could find at any time, and that are still wanted, or not understood.
    published: BTreeSet<String>,
    /// The head goes first: the broken variant.
    is_hasty: bool,
}

/// Reads one page after the other.
struct Reader {
    began: Timestamp,
    /// What was published when it began and stayed wanted since.
    expected: BTreeSet<String>,
    found: BTreeSet<String>,
    last: u16,
    next: u16,
}

#[derive(Clone, Debug)]
enum Step {
    Add(u32),
    Remove(usize, usize),
    Wait(u64),
    Write,
    Read,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1_u32..30).prop_map(Step::Add),
        2 => (0_usize..400, 1_usize..60).prop_map(|(from, count)| Step::Remove(from, count)),
        2 => (1_u64..7_000).prop_map(Step::Wait),
        6 => Just(Step::Write),
        6 => Just(Step::Read),
    ]
}

impl Model {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Add(count) => {
                self.wanted.extend((self.next..self.next + count).map(entry));
                self.next += count;
            }
            Step::Remove(from, count) => self.remove(from, count),
            Step::Wait(milliseconds) => self.now = self.now + Duration::from_millis(milliseconds),
            Step::Write => self.write(),
            Step::Read => return self.read(),
        }
        Ok(())
    }

    fn remove(&mut self, from: usize, count: usize) {
        let from = from.min(self.wanted.len());
        let gone = self.wanted.drain(from..(from + count).min(self.wanted.len()));
        for (key, _) in gone.filter(is_understood) {
            self.published.remove(&key);
            if let Some(reader) = &mut self.reader {
                reader.expected.remove(&key);
            }
        }
    }

    /// One write of the plan, or a new plan after the last write.
    fn write(&mut self) {
        if self.queue.is_empty() {
            (self.queue, self.last) = plan(&self.pages, (&self.wanted, is_understood), false, self.now);
            if !self.is_hasty {
                self.queue.reverse();
            }
        }
        let Some((number, lines)) = self.queue.pop() else { return };
        let head = Head { at: self.now, last: self.last, ..Head::default() };
        let text = write(&writer(), number, &head, &lines, &keys());
        assert!(lines.iter().map(length).sum::<usize>() <= PAGE_MAX);
        self.pages.insert(number, read(&writer(), number, &text, &keys()).unwrap());
        let last = self.pages.get(&HEAD).map_or(HEAD, |page| page.head.last);
        let reached = self.pages.range(..=last).flat_map(|(_, page)| keys_of(&page.lines));
        let wanted: BTreeSet<String> = keys_of(&self.wanted).collect();
        self.published.extend(reached.filter(|key| wanted.contains(key) || key.starts_with("n.")));
    }

    /// What is to stand there in the end.
    fn meant(&self) -> BTreeSet<String> {
        keys_of(&self.wanted).chain(self.published.iter().cloned()).collect()
    }

    fn standing(&self) -> BTreeSet<String> {
        self.pages.values().flat_map(|page| keys_of(&page.lines)).collect()
    }

    /// The next page; at the end nothing may have been missed.
    fn read(&mut self) -> Result<(), String> {
        let (now, head, published) = (self.now, self.pages.get(&HEAD), &self.published);
        let reader = self.reader.get_or_insert_with(|| Reader {
            began: now,
            expected: published.clone(),
            found: BTreeSet::new(),
            last: head.map_or(HEAD, |page| page.head.last),
            next: HEAD,
        });
        let page = self.pages.get(&reader.next);
        reader.found.extend(page.into_iter().flat_map(|page| keys_of(&page.lines)));
        reader.next += 1;
        if reader.next <= reader.last {
            return Ok(());
        }
        let done = self.reader.take().expect("it reads");
        let missed = done.expected.difference(&done.found).count();
        let is_slow = now.since(done.began) >= MOVED;
        if missed > 0 && !is_slow { Err(format!("{missed} entries were missed")) } else { Ok(()) }
    }

    /// Nothing changes any more.
    fn settle(&mut self) {
        for _ in 0..200 {
            self.write();
            self.now = self.now + MOVED;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 32 } else { 2000 }))]

    /// A reader at any time misses no published and still wanted entry; in the end exactly the wanted entries are there, and all that is
    /// not understood, on a few pages, and nothing is written any more.
    #[test]
    fn a_reader_misses_nothing_and_pages_stay_few(steps in prop::collection::vec(step(), 1..120)) {
        let mut model = Model::default();
        for step in &steps {
            prop_assert_eq!(model.step(step), Ok(()), "{:?}", step);
        }
        model.settle();
        prop_assert_eq!(plan(&model.pages, (&model.wanted, is_understood), false, model.now).0, vec![]);
        prop_assert_eq!(model.standing(), model.meant());
        let used = model.pages.values().filter(|page| !page.lines.is_empty()).count();
        let need = (model.meant().len() * length(&entry(0))).div_ceil(PAGE_MAX);
        prop_assert!(used <= need * 2 + 1, "{used} pages where {need} are needed");
    }

    #[test]
    fn whatever_stands_there_is_read_or_refused(text in "[2-3];[0-9a-z]{0,20};[0-9]{0,6};[0-9]{0,3};[A-Za-z0-9_-]{0,40};.{0,30}") {
        if let Ok(page) = read(&writer(), 0, &text, &keys()) {
            prop_assert!(!page.is_sealed);
        }
    }
}

/// The broken variant writes the head before its leaving entries are elsewhere.
#[test]
fn a_head_that_goes_first_has_readers_miss_something() {
    let mut model = Model { is_hasty: true, ..Model::default() };
    let mut steps = vec![Step::Add(70), Step::Write, Step::Add(70), Step::Write, Step::Read, Step::Read];
    let missed = steps.drain(..).find_map(|step| model.step(&step).err());
    assert_eq!(missed, Some("70 entries were missed".to_owned()));
}

/// A thousand rounds of marks that come and go in the same few keys.
#[test]
fn the_keys_are_used_again() {
    let mut model = Model::default();
    let mut most = 0;
    for _ in 0..100 {
        model.step(&Step::Add(25)).unwrap();
        model.settle_once();
        let over = model.wanted.len().saturating_sub(100);
        model.remove(0, over);
        model.settle_once();
        most = most.max(model.pages.keys().copied().max().unwrap());
    }
    assert!(most <= 8, "page {most} of what fits on 3");
}

impl Model {
    fn settle_once(&mut self) {
        self.write();
        while !self.queue.is_empty() {
            self.write();
        }
        self.now = self.now + MOVED;
    }
}

#[test]
fn a_page_is_bound_to_its_place_and_its_key() {
    let text = write(&writer(), 1, &at(5), &[entry(1)], &keys());
    let page = read(&writer(), 1, &text, &keys()).unwrap();
    assert!(page.is_sealed && page.head == at(5) && page.lines.len() == 1);
    assert!(text.is_ascii() && !text.contains(['"', '<', '&', ' ']), "{text}");
    let other = Writer { controller: "ctl2".into(), ..writer() };
    let of_another_cluster = SealKeys::derive([&b"another"[..]]);
    for (writer, number, keys) in [
        (other, 1, keys()),
        (writer(), 2, keys()),
        (writer(), 1, of_another_cluster),
        (writer(), 1, SealKeys::default()),
    ] {
        let page = read(&writer, number, &text, &keys).unwrap();
        assert!(!page.is_sealed && page.lines.len() == 1, "{writer} {number}");
    }
    let unsealed = write(&writer(), 1, &at(5), &[entry(1)], &SealKeys::default());
    assert!(unsealed.ends_with(';') && !read(&writer(), 1, &unsealed, &keys()).unwrap().is_sealed);
}

/// Controllers that write a page each, and get only some pages of the others.
#[derive(Clone, Debug)]
enum Event {
    /// This one writes, with the pages it has.
    Writes(usize),
    /// That one gets the page of this one.
    Gets(usize, usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0_usize..3).prop_map(Event::Writes),
        (0_usize..3, 0_usize..3).prop_map(|(a, b)| Event::Gets(a, b))
    ]
}

fn named(number: usize) -> Writer {
    Part::Alerter.on(&format!("ctl{number}"))
}

proptest! {
    /// A controller that has a page but not a page known to its writer knows that it lacks one; a controller that has all
    /// pages known to those writers lacks nothing.
    #[test]
    fn who_lacks_what_others_knew_knows_it(events in prop::collection::vec(event(), 0..40)) {
        let mut views: [Pages; 3] = Default::default();
        // The known pages at each write, by writer and date.
        let mut known: BTreeMap<(Writer, Timestamp), Vec<(Writer, Timestamp)>> = BTreeMap::new();
        for (now, event) in (1..).map(Timestamp).zip(events) {
            match event {
                Event::Writes(who) => {
                    let writer = named(who);
                    let dates = |view: &Pages| view.iter().map(|(w, own)| (w.clone(), own[&HEAD].head.at)).collect();
                    let before: Vec<(Writer, Timestamp)> = dates(&views[who]);
                    let head = head(&views[who], &writer, Timestamp(0), now);
                    known.insert((writer.clone(), head.at), before);
                    let text = write(&writer, HEAD, &head, &[], &keys());
                    let page = read(&writer, HEAD, &text, &keys()).unwrap();
                    prop_assert_eq!(&page.head, &head);
                    views[who].entry(writer).or_default().insert(HEAD, page);
                }
                Event::Gets(who, of) => {
                    let Some(own) = views[of].get(&named(of)).cloned() else { continue };
                    views[who].insert(named(of), own);
                }
            }
        }
        for view in &views {
            let has = |(writer, at): &(Writer, Timestamp)| {
                view.get(writer).is_some_and(|own| own[&HEAD].head.at >= *at)
            };
            let pages = view.iter().map(|(writer, own)| (writer.clone(), own[&HEAD].head.at));
            let lacks = pages.flat_map(|page| known[&page].clone()).any(|it| !has(&it));
            prop_assert!(!lacks || !gaps(view, Timestamp(99)).is_empty());
            prop_assert!(gaps(view, Timestamp(99)).iter().all(|writer| !view.contains_key(*writer) || lacks_newer(view, writer)));
        }
    }
}

/// A page names a newer head of the writer than there is.
fn lacks_newer(view: &Pages, writer: &Writer) -> bool {
    let there = view[writer][&HEAD].head.at;
    view.values().any(|own| own[&HEAD].head.seen.get(writer).is_some_and(|at| *at > there))
}

/// Only root can stop an alerter with a list of seen heads.
#[test]
fn what_a_forger_has_seen_is_no_gap() {
    let seen = BTreeMap::from([(named(7), Timestamp(9))]);
    let head = Head { seen, ..at(5) };
    for (keys_of_writer, gaps_found) in [(keys(), 1), (SealKeys::default(), 0)] {
        let text = write(&named(1), HEAD, &head, &[], &keys_of_writer);
        let page = read(&named(1), HEAD, &text, &keys()).unwrap();
        let pages = Pages::from([(named(1), BTreeMap::from([(HEAD, page)]))]);
        assert_eq!(gaps(&pages, Timestamp(9)).len(), gaps_found);
        assert_eq!(gaps(&pages, Timestamp(9) + KEPT).len(), 0, "a writer that never comes back");
    }
}

#[test]
fn what_none_of_us_wrote_is_no_page() {
    let bomb = URL_SAFE_NO_PAD.encode(compress_to_vec(&vec![b'x'; UNPACKED_MAX + 1], LEVEL));
    let bad = [
        "2;1;0;0;!;",
        "2;1;0;0;",
        "2;x;0;0;;",
        "2;1;70000;0;;",
        "2;1;0;0;AAAA;",
        &format!("2;1;0;0;{bomb};"),
        "2;",
        "2;1;0;x;;",
    ];
    for text in bad {
        assert_eq!(read(&writer(), 0, text, &keys()), Err(Why::Malformed), "{text:.40}");
    }
    for text in ["", "1;compute1", "3;1;0;0;;", "22;1;0;0;;"] {
        assert_eq!(read(&writer(), 0, text, &keys()), Err(Why::Version), "{text}");
    }
    let odd = URL_SAFE_NO_PAD.encode(compress_to_vec(b"x.1=1;a\nw.1\n", LEVEL));
    let page = read(&writer(), 0, &format!("2;1;0;0;{odd};"), &keys()).unwrap();
    assert_eq!(keys_of(&page.lines).collect::<Vec<_>>(), ["x.1", "w.1"]);
}

/// A writer's head names a page that is missing, or that somebody without the key has overwritten: it may have had an end. The broken
/// variants check heads alone, or take whatever is there.
#[test]
fn a_page_that_the_head_names_and_is_not_there_is_a_gap() {
    let gaps_with = |second: Option<SealKeys>| {
        let page = |number: u16, last: u16, its_keys: &SealKeys| {
            let text = write(&named(1), number, &Head { last, ..at(5) }, &[], its_keys);
            (number, read(&named(1), number, &text, &keys()).unwrap())
        };
        let mut own = BTreeMap::from([page(HEAD, 1, &keys())]);
        own.extend(second.map(|its_keys| page(1, 0, &its_keys)));
        let pages = Pages::from([(named(1), own)]);
        [Timestamp(9), Timestamp(9) + KEPT].map(|now| gaps(&pages, now).len())
    };
    assert_eq!(gaps_with(Some(keys())), [0, 0]);
    // After the time for which entries are kept nothing on it counts any more.
    assert_eq!((gaps_with(None), gaps_with(Some(SealKeys::default()))), ([1, 0], [1, 0]));
}

/// Pages of inactive alerters are emptied once all their entries are elsewhere, and pages of agents once their controller
/// is gone. The broken variants empty entries that are nowhere else, and new entries of a living controller's agent.
#[test]
fn what_is_covered_elsewhere_is_emptied() {
    let entry = entry(1);
    let page = |writer: &Writer| {
        let text = write(writer, HEAD, &at(5), std::slice::from_ref(&entry), &keys());
        BTreeMap::from([(HEAD, read(writer, HEAD, &text, &keys()).unwrap())])
    };
    let agent = Part::Agent.on("ctl2");
    let pages: Pages =
        [named(1), named(2), agent.clone()].into_iter().map(|it| (it.clone(), page(&it))).collect();
    let emptied = |is_gone: bool, is_covered: bool| -> Vec<Writer> {
        let there = (&pages, Timestamp(0));
        let done = superseded(there, &named(1), |_| is_gone, |_| Some(is_covered), Timestamp(9));
        assert!(done.iter().all(|done| done.writes == [(HEAD, vec![])] && done.head.last == HEAD));
        done.into_iter().map(|done| done.writer).collect()
    };
    assert_eq!(emptied(false, true), [named(2)]);
    assert_eq!(emptied(true, true), [agent, named(2)]);
    assert_eq!(emptied(true, false), []);
}

/// What another release wrote stays on the page of its writer: also beside an entry of this release under the same key, where that writer is
/// gone, and on a page that is not the head. The broken variants write it over, or seal what a stranger wrote.
#[test]
fn what_another_release_wrote_stays() {
    let (known, strange, forged) = (entry(1), entry(9), entry(19));
    let newer = (known.0.clone(), "3;newer".to_owned());
    let knows = |line: &Line| is_understood(line) && line.1 != "3;newer";
    let page = |is_sealed, lines: &[&Line]| {
        let lines = lines.iter().map(|line| (*line).clone()).collect();
        Page { head: Head { last: 1, ..at(5) }, is_sealed, lines }
    };
    let own = [page(true, &[&known, &newer]), page(true, &[&strange]), page(false, &[&forged])];
    let mut pages = Pages::from([(named(2), (HEAD..).zip(own).collect())]);
    let said = |pages: &Pages| standing(pages, &named(2)).cloned().collect::<BTreeSet<Line>>();
    let theirs = BTreeSet::from([newer, strange]);
    for wanted in [&[][..], &[known]] {
        let own = (&named(2), wanted, knows);
        let writes = own_writes((&pages, Timestamp(0)), own, (&BTreeSet::new(), false), Timestamp(9));
        writes.unwrap().note(&mut pages);
        assert_eq!(said(&pages), theirs.iter().chain(wanted).cloned().collect());
    }
    pages.get_mut(&named(2)).unwrap().insert(2, page(false, &[&forged]));
    let covered = |line: &Line| knows(line).then_some(true);
    let emptied =
        |pages: &Pages| superseded((pages, Timestamp(0)), &named(1), |_| true, covered, Timestamp(9));
    emptied(&pages).iter().for_each(|writes| writes.note(&mut pages));
    assert_eq!((said(&pages), gaps(&pages, Timestamp(9)).len()), (theirs, 0));
    assert_eq!(emptied(&pages), [], "it is done once");
}

/// A page of this writer, with that head.
fn one(writer: &Writer, is_sealed: bool, head: &Head, all: &[Line]) -> BTreeMap<u16, Page> {
    let keys = if is_sealed { keys() } else { SealKeys::default() };
    let text = write(writer, HEAD, head, all, &keys);
    BTreeMap::from([(HEAD, read(writer, HEAD, &text, &self::keys()).unwrap())])
}

/// A forged page counts as missing, whatever its date. The broken variant goes by the date.
#[test]
fn a_page_that_was_written_over_is_a_gap() {
    let seen = BTreeMap::from([(named(2), Timestamp(5))]);
    for (is_sealed, lacking) in [(true, 0), (false, 1)] {
        let late = Head { at: Timestamp(i64::MAX), ..Head::default() };
        let pages = Pages::from([
            (named(1), one(&named(1), true, &Head { seen: seen.clone(), ..at(6) }, &[])),
            (named(2), one(&named(2), is_sealed, &late, &[])),
        ]);
        assert_eq!(gaps(&pages, Timestamp(9)).len(), lacking);
    }
}

/// A forged page in a writer's own place changes nothing that the writer seals: neither its list of seen heads, nor its
/// date, nor its entries. The broken variant takes it over, and every controller lacks a page of a writer that does not
/// exist.
#[test]
fn a_writer_seals_nothing_that_it_did_not_write() {
    let seen = BTreeMap::from([(named(7), Timestamp(i64::MAX))]);
    let forged = Head { at: Timestamp(i64::MAX), last: 64, seen, ..Head::default() };
    let wanted = [entry(1)];
    let mut pages = Pages::from([(named(1), one(&named(1), false, &forged, &wanted))]);
    let own = pages.get_mut(&named(1)).unwrap();
    own.insert(64, Page { lines: own[&HEAD].lines.clone(), ..Page::default() });
    assert_eq!(head(&pages, &named(1), Timestamp(0), Timestamp(9)), at(9));
    let (writes, last) = plan(&pages[&named(1)], (&wanted, is_understood), false, Timestamp(9));
    assert_eq!((writes.last().unwrap(), last), (&(HEAD, wanted.to_vec()), HEAD));
    assert!(writes.iter().all(|(number, lines)| *number == HEAD || lines.is_empty()));
}

/// Later than what others have seen of it, also if its own page was lost; an old head is dropped from the list.
#[test]
fn a_head_is_later_than_all_that_was_seen_of_it() {
    let now = Timestamp(9) + KEPT;
    let seen = BTreeMap::from([(named(1), now + MOVED), (named(3), Timestamp(8))]);
    let pages = Pages::from([(named(2), one(&named(2), true, &Head { seen, ..at(7) }, &[]))]);
    let written = head(&pages, &named(1), Timestamp(0), now);
    assert_eq!((written.at, written.seen.len()), (now + MOVED + Duration::from_millis(1), 0));
}

/// A page between others was deleted: its entries are on it again, or at least the page is.
#[test]
fn a_page_that_was_lost_is_written_again() {
    let wanted: Vec<Line> = (0..200).map(entry).collect();
    let mut model = Model { wanted, now: Timestamp(1), ..Model::default() };
    model.settle();
    assert!(model.pages.len() > 2);
    model.pages.remove(&1);
    model.settle();
    let last = model.pages[&HEAD].head.last;
    assert!((HEAD..=last).all(|number| model.pages.contains_key(&number)));
    assert_eq!(model.standing(), keys_of(&model.wanted).collect::<BTreeSet<String>>());
}

/// The seal is checked before a page is unpacked: a foreign page is short.
#[test]
fn what_a_stranger_packs_is_bounded() {
    let head = "2;1;0;0";
    let packed = |lines: &str| URL_SAFE_NO_PAD.encode(compress_to_vec(lines.as_bytes(), LEVEL));
    let many = format!("{head};{};", packed(&"x=1\n".repeat(PAGE_MAX / 4)));
    assert_eq!(read(&writer(), 0, &many, &keys()).unwrap().lines.len(), PAGE_MAX / LINE_MIN);
    let long = format!("{head};{};", packed(&"x=1\n".repeat(PAGE_MAX)));
    assert_eq!(read(&writer(), 0, &long, &keys()), Err(Why::Malformed));
}
