//! A register that root seals: what a controller vouches for there is proven at once, and what nobody has sealed has no effect but a word
//! in `status` and in the log (SECURITY.md, T3).

use std::time::Duration;

use marks::fencing::{Fencing, Incarnation, Origin};
use marks::host::HostName;
use marks::id::{FencingId, MarkId, NoteId};
use marks::mark::{Settlement, Source};
use marks::register::{
    About, Acknowledgement, Decision, Entry, Key, MarkEntry, Operation, Returned, Scope, Settled, Watermark,
};
use marks::time::Timestamp;

use crate::site::{Alerter, CONTROLLERS, ROUTES, Site, mark_of, started};

fn begun(hosts: &[&'static str], controller: &'static str) -> (Site, Alerter) {
    started(Site::new(hosts).with_key(), controller)
}

fn settled(mark: MarkId, by: &str, at: Timestamp) -> Entry {
    Entry::Settled(Settled { mark, how: Settlement::Acknowledged, at, by: by.into() })
}

/// S1-16: a host dies, and another controller records it; `on` takes so long that Pacemaker has not said a word of it. The broken variant
/// waits for that.
#[test]
fn what_another_controller_has_sealed_is_proven_at_once() {
    for has_key in [true, false] {
        let site = Site::new(&["compute1"]);
        let (mut site, mut alerter) = started(if has_key { site.with_key() } else { site }, "ctl1");
        site.die("compute1");
        site.off("ctl2", "compute1");
        alerter.pass(&mut site);
        alerter.pass(&mut site);
        let standing = if has_key { "journal" } else { "unproven" };
        assert_eq!(alerter.standings("compute1"), [standing]);
        assert_eq!(site.notified.len(), if has_key { ROUTES.len() } else { 0 });
    }
}

/// The mark of an alerter that was lost with its controller: it goes out as it is, whether Pacemaker remembers anything or not.
#[test]
fn a_sealed_mark_of_a_lost_controller_goes_out() {
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    site.down.extend(ROUTES);
    site.die("compute1");
    let fencing = site.off("ctl1", "compute1");
    first.run(&mut site, 4);
    site.lost.insert("ctl1");
    site.register.remove(&Key::Fencing(fencing));
    site.down.clear();
    let second = Alerter::at_work(&mut site, "ctl2", 4);
    assert_eq!(second.standings("compute1"), ["journal"]);
    site.assert_all_notified();
}

/// Everything that a member of `haclient` can say of an open mark, in the name of each controller and of one that does not exist, while
/// the alerter runs and before the next one starts: the mark is notified, and each entry is said to count for nothing.
#[test]
fn forgeries_have_no_effect_but_a_word() {
    for (by, moves) in CONTROLLERS.into_iter().chain(["ctl9"]).flat_map(|by| [(by, false), (by, true)]) {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.down.extend(ROUTES);
        let id: FencingId = site.outage("compute1", "ctl3");
        alerter.run(&mut site, 10);
        let forged = forgeries(id.into(), by, site.now);
        forged.iter().for_each(|entry| site.publish(entry.clone()));
        if moves {
            alerter = Alerter::start(&site, "ctl2");
        }
        alerter.run(&mut site, 4);
        let unseen: Vec<Key> = forged
            .iter()
            .map(Entry::key)
            .filter(|key| {
                !alerter.refuses(key)
                    && site.register.contains_key(key)
                    && !site.sealed.as_ref().unwrap().contains(key)
            })
            .collect();
        assert_eq!(unseen, [], "{by} {moves}");
        site.down.clear();
        alerter.run(&mut site, 30);
        assert!(site.audit().is_empty(), "{by} {moves}: {:#?}", site.audit());
    }
}

fn forgeries(mark: MarkId, by: &str, at: Timestamp) -> Vec<Entry> {
    let (by, id) = (by.to_owned(), NoteId::generate());
    let decide = |about| {
        let id = NoteId::generate();
        Entry::Decision(Decision { id, about, at, actor: by.clone(), reason: "forged".into() })
    };
    let taken = |route: &str| Acknowledgement { mark, route: route.into(), at, by: by.clone() };
    let mut all: Vec<Entry> = ROUTES.iter().map(|route| Entry::Acknowledged(taken(route))).collect();
    all.extend([
        settled(mark, &by, at),
        Entry::Returned(Returned { mark, at, by: by.clone() }),
        decide(About::Pause { scope: Scope::All, until: None }),
        decide(About::Release(mark)),
        Entry::Watermark(Watermark { id, at: Timestamp(0), by: by.clone() }),
    ]);
    all
}

/// A fencing that is not true in one of its fields, for each of them; the last one is a likely one.
fn odd_fencings(like: &Fencing) -> Vec<Fencing> {
    let with = |change: &dyn Fn(&mut Fencing)| {
        let mut odd = Fencing { id: FencingId::generate(), ..like.clone() };
        change(&mut odd);
        odd
    };
    let (early, late) = (like.asked_at - Duration::from_secs(60), Timestamp(2_100_000_000_000));
    vec![
        with(&|it| it.node = HostName::parse("compute2").unwrap()),
        with(&|it| it.plug = HostName::parse("other.example.net").ok()),
        with(&|it| it.given_domain = Some("example.net".into())),
        with(&|it| it.given_shared_storage = Some(false)),
        with(&|it| it.given_shared_storage = Some(true)),
        with(&|it| it.asked_at = early),
        with(&|it| (it.asked_at, it.committed_at) = (late, late)),
        with(&|it| it.committed_at = early),
        with(&|it| it.seen_by = "ctl9".into()),
        with(&|it| it.origin = Origin::Operator),
        with(&|it| it.incarnation = None),
        with(&|it| it.incarnation = Some(Incarnation::new("ctl2", 9, late.seconds()))),
        with(&|it| it.already_down = Some(true)),
        with(&|_| {}),
    ]
}

/// The same of a mark.
fn odd_marks(like: &MarkEntry) -> Vec<MarkEntry> {
    let with = |change: &dyn Fn(&mut MarkEntry)| {
        let mut odd = like.clone();
        odd.mark.id = FencingId::generate().into();
        change(&mut odd);
        odd
    };
    let (early, late) = (like.made_at - Duration::from_secs(60), Timestamp(2_100_000_000_000));
    vec![
        with(&|it| it.mark.node = HostName::parse("compute2").unwrap()),
        with(&|it| it.mark.fqdn = HostName::parse("other.example.net").unwrap()),
        with(&|it| it.mark.on_shared_storage = false),
        with(&|it| it.mark.failure_time = early),
        with(&|it| (it.mark.failure_time, it.mark.generated_time, it.made_at) = (late, late, late)),
        with(&|it| it.mark.generated_time = early),
        with(&|it| {
            it.source = Source::NodeFenced;
            it.mark.id = MarkId::of_node_fenced(&it.mark.node, it.mark.failure_time.seconds());
        }),
        with(&|it| it.incarnation = None),
        with(&|it| it.made_by = "ctl9".into()),
        with(&|_| {}),
    ]
}

/// What was sent, but for the id of its operation, and how many marks there are.
type Told = (Vec<(String, String)>, usize);
/// What is planted, and at which step.
type Planted<'e> = (&'e dyn Fn(&Site) -> Vec<Entry>, u8);

/// compute1 is fenced by power alone, while this stands in the register; it is there before the host dies, before Pacemaker says so, or
/// before the next alerter starts.
fn told(began: Timestamp, silent: bool, planted: Option<Planted<'_>>) -> Told {
    let mut site = Site::at(began, &["compute1", "compute2"]).with_key();
    if silent {
        site.replace("domain = \"example.org\"\non-shared-storage = true\n", "");
    }
    let mut alerter = Alerter::at_work(&mut site, "ctl1", 2);
    for step in 0..3 {
        if let Some((entries, _)) = planted.filter(|(_, at)| *at == step) {
            entries(&site).into_iter().for_each(|entry| site.publish(entry));
        }
        match step {
            0 => site.die("compute1"),
            1 => drop(site.seen_fenced("compute1")),
            _ => alerter = Alerter::start(&site, "ctl2"),
        }
        alerter.run(&mut site, if step == 0 { 2 } else { 24 });
    }
    let wrong: Vec<String> = site.audit().into_iter().filter(|it| !it.contains("was not notified")).collect();
    assert_eq!(wrong, Vec::<String>::new());
    let said = |id: &str, body: &[u8]| String::from_utf8_lossy(body).replace(id, "ID");
    let sent = site.notified.iter().map(|it| (it.route.clone(), said(&it.id, &it.body))).collect();
    (sent, site.known_marks())
}

/// C11: whatever stands in the register without a seal, what is sent of a host that power alone fenced is the same, and so is the number
/// of marks. All stand there together, and each alone in one of the six cases. The broken variant takes fencings and marks without a seal in, and the alert proves what they say.
#[test]
fn nothing_without_a_seal_shapes_what_is_sent() {
    let began = Timestamp::from_seconds(Timestamp::now().seconds());
    let all = |site: &Site| -> Vec<Entry> {
        let like = site.fencing("ctl3", "compute1");
        let marks = odd_marks(&mark_of(&like, "ctl3")).into_iter().map(Entry::Mark);
        odd_fencings(&like).into_iter().map(Entry::Fencing).chain(marks).collect()
    };
    let fields = all(&Site::at(began, &["compute1"])).len();
    for (case, (silent, step)) in
        [(false, 0), (false, 1), (false, 2), (true, 0), (true, 1), (true, 2)].into_iter().enumerate()
    {
        let untouched = told(began, silent, None);
        assert_eq!(untouched.0.is_empty(), silent, "without a name nothing can be sent");
        assert_eq!(
            told(began, silent, Some((&all, step))),
            untouched,
            "all, planted at step {step}, silent: {silent}"
        );
        for field in (case..fields).step_by(6) {
            let one = |site: &Site| vec![all(site).swap_remove(field)];
            let touched = told(began, silent, Some((&one, step)));
            assert_eq!(touched, untouched, "field {field}, planted at step {step}, silent: {silent}");
        }
    }
}

/// An alerter with another key has notified of a host that is back: what it says is not believed, and the host is not notified once
/// more. The broken variant takes every end without a seal for a forgery.
#[test]
fn what_an_alerter_with_another_key_has_notified_is_held() {
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    first.meets_outage(&mut site, "compute1", "ctl2", 20);
    site.assert_all_notified();
    site.back("compute1", "ctl2");
    site.ended_by("ctl8");
    site.sealed.as_mut().unwrap().retain(|key| matches!(key, Key::Fencing(_)));
    site.advance(60.0);
    let second = Alerter::at_work(&mut site, "ctl2", 40);
    site.assert_all_notified();
    assert_eq!(second.standings("compute1"), ["outcome-unknown"]);
}

/// Pages are lacking on the next alerter's controller, and one of them says that a host was notified that is back: nothing is notified
/// once more, and when the page comes the mark has ended. The broken variant goes by what is not there.
#[test]
fn where_pages_are_lacking_nobody_is_notified_again() {
    for is_partial in [true, false] {
        let (mut site, mut first) = begun(&["compute1"], "ctl1");
        first.meets_outage(&mut site, "compute1", "ctl2", 20);
        site.assert_all_notified();
        site.back("compute1", "ctl2");
        let (whole, notified) = (site.register.clone(), site.notified.len());
        site.register.retain(|key, _| matches!(key, Key::Fencing(_) | Key::Mark(_)));
        site.is_partial = is_partial;
        site.advance(60.0);
        let mut second = Alerter::at_work(&mut site, "ctl3", 20);
        if !is_partial {
            assert!(site.notified.len() > notified, "the broken variant notifies once more");
            continue;
        }
        assert_eq!(second.standings("compute1"), ["outcome-unknown"]);
        (site.register, site.is_partial) = (whole, false);
        second.run(&mut site, 20);
        assert!(second.marks("compute1")[0].settled.is_some());
        site.assert_all_notified();
    }
}

/// A page that was lacking has a fencing of long ago, which another alerter counted to a mark that it held. The broken variants notify of
/// it, and of a host that is back: it appeared only now and this clock is behind, and it stands there without a mark.
#[test]
fn what_comes_back_with_a_page_is_not_new() {
    for behind in [0, -360] {
        let (mut site, _) = started(Site::new(&["compute1"]).with_clocks([0, behind, 0]), "ctl1");
        let first = site.fencing("ctl3", "compute1");
        site.mark("ctl3", &first);
        let (mark, at, by) = (MarkId::of_node_fenced(&first.node, 1), site.now, "ctl1".into());
        site.seal(Entry::Operation(Operation { id: first.id.into(), mark, at, by }));
        let page = std::mem::take(&mut site.register);
        site.is_partial = true;
        site.advance(300.0);
        let mut second = Alerter::at_work(&mut site, "ctl2", 20);
        (site.register, site.is_partial) = (page, false);
        second.run(&mut site, 20);
        assert_eq!((second.standings("compute1"), site.notified.len()), (vec!["outcome-unknown"], 0));
    }
}

/// What fails while pages are lacking is notified, after a minute: only an earlier alerter could have done so before.
#[test]
fn where_pages_are_lacking_what_is_new_goes() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.is_partial = true;
    alerter.run(&mut site, 4);
    alerter.meets_outage(&mut site, "compute1", "ctl2", 70);
    site.assert_all_notified();
}

/// A sealed page of long ago is put back, or a configuration with it: its mark is not new. It is held where its host may be back, and
/// the broken variant sends it.
#[test]
fn a_sealed_mark_that_is_found_long_after_is_held() {
    let mut site = Site::at(Timestamp::now() - Duration::from_secs(4 * 86_400), &["compute1"]).with_key();
    site.down.extend(ROUTES);
    let mut first = Alerter::start(&site, "ctl1");
    first.meets_outage(&mut site, "compute1", "ctl3", 20);
    site.back("compute1", "ctl3");
    site.register.retain(|key, _| matches!(key, Key::Mark(_)));
    site.advance(3.0 * 86_400.0);
    site.down.clear();
    let second = Alerter::at_work(&mut site, "ctl2", 20);
    assert_eq!(second.standings("compute1"), ["unproven"]);
    assert!(site.notified.is_empty(), "{:?}", site.notified);
}
