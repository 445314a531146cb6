use marks::fencing::Fencing;
use marks::id::{FencingId, MarkId, NoteId};
use marks::mark::{Doubt, Settlement, Standing};
use marks::register::{About, Acknowledgement, Decision, Ending, Returned, Scope, Settled, Watermark};

use super::*;

const NOW: i64 = 1_800_000_000;

fn second(second: i64) -> Timestamp {
    Timestamp::from_seconds(second)
}

fn host(text: &str) -> HostName {
    HostName::parse(text).unwrap()
}

/// compute1 is away and was fenced then; its newest connection is that.
fn cib(fenced: i64, connected: i64) -> Cib {
    let xml = format!(
        r#"<cib><configuration><crm_config/><nodes><node id="1" uname="ctl1"/><node id="2" uname="CTL2.example.org"/></nodes>
          <resources><primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/></resources><constraints/></configuration>
          <status><node_state id="1" uname="ctl1"><lrm id="1"><lrm_resources><lrm_resource id="compute1"><lrm_rsc_op id="x"
            operation="start" rc-code="0" call-id="7" last-rc-change="{connected}"/></lrm_resource></lrm_resources></lrm></node_state>
          <node_state remote_node="true" id="compute1" uname="compute1" in_ccm="false" node_fenced="{fenced}"/></status></cib>"#
    );
    Cib::parse(&xml).unwrap()
}

fn around(cib: &Cib) -> Around<'_> {
    Around { controller: "ctl1.example.org", cib: Some(cib), journal_since: second(NOW - 5000) }
}

fn id() -> MarkId {
    FencingId::generate().into()
}

fn settled(by: &str, at: i64) -> Entry {
    Entry::Settled(Settled { mark: id(), how: Settlement::Acknowledged, at: second(at), by: by.into() })
}

fn taken(by: &str, at: i64) -> Entry {
    Entry::Acknowledged(Acknowledgement { mark: id(), route: "r".into(), at: second(at), by: by.into() })
}

fn fencing(asked: i64, connected: i64) -> Fencing {
    Fencing {
        seen_by: "ctl2".into(),
        incarnation: Some(Incarnation::new("ctl1", 7, connected)),
        ..samples::fencing("compute1", second(asked))
    }
}

fn mark(failed: i64, made: i64, connected: i64) -> MarkEntry {
    let mut entry = samples::entry(&fencing(failed, connected), "ctl2");
    (entry.mark.id, entry.made_at) = (id(), second(made));
    entry
}

fn judged(entry: &Entry) -> Result<(), Reason> {
    let cib = cib(0, NOW - 9000);
    credible(entry, &around(&cib), &Known::default())
}

/// D: what no key vouches for counts for nothing, of whatever kind and time. What a key vouches for counts whatever its time, since
/// this controller's clock may be behind: the broken variant voids what another alerter and its operators did.
#[test]
fn what_no_key_vouches_for_counts_for_nothing() {
    let (actor, reason, by) = (|| "alice".to_owned(), || "x".to_owned(), || "ctl2".to_owned());
    let decision = |at, about| {
        let id = NoteId::generate();
        Entry::Decision(Decision { id, about, at: second(at), actor: actor(), reason: reason() })
    };
    let all = |at: i64| {
        [
            Entry::Fencing(fencing(at, NOW - 9000)),
            Entry::Again(fencing(NOW, at)),
            Entry::Mark(mark(at, NOW, NOW - 9000)),
            Entry::Mark(mark(NOW, at, NOW - 9000)),
            Entry::Mark(mark(NOW, NOW, at)),
            settled("ctl2", at),
            taken("ctl2", at),
            Entry::Returned(Returned { mark: id(), at: second(at), by: by() }),
            decision(at, About::Pause { scope: Scope::All, until: None }),
            decision(at, About::Release(id())),
            Entry::Ending(Ending {
                id: NoteId::generate(),
                at: second(at),
                actor: actor(),
                reason: reason(),
            }),
            Entry::Watermark(Watermark { id: NoteId::generate(), at: second(at), by: by() }),
        ]
    };
    let cib = cib(0, NOW - 9000);
    for at in [NOW - 3600, NOW, NOW + 10 * 365 * 86_400] {
        for entry in all(at) {
            assert_eq!(judged(&entry), Ok(()), "{entry:?}");
            for why in [Unsealed::Unknown, Unsealed::Forged] {
                let behind = Behind { is_sealed: false, unsealed: Some(why) };
                let bare = credible(&entry, &around(&cib), &Known { behind, ..Known::default() });
                assert_eq!(bare, Err(Reason::Unsealed(why)), "{entry:?}");
            }
        }
    }
}

/// D: `s.` from a controller that does not exist.
#[test]
fn only_a_controller_of_the_cluster_ends_a_mark() {
    for entry in [settled, taken] {
        for known in ["ctl2", "ctl2.example.org", "CTL2"] {
            assert_eq!(judged(&entry(known, NOW)), Ok(()), "{known}");
        }
        for stranger in ["ctl9", "compute1", "", "ctl22"] {
            assert_eq!(judged(&entry(stranger, NOW)), Err(Reason::Stranger(stranger.to_owned())));
        }
    }
    let cib = cib(0, NOW);
    let elsewhere = Around { controller: "node-a", ..around(&cib) };
    let judged = credible(&settled("node-b", NOW), &elsewhere, &Known::default());
    assert_eq!(judged, Ok(()), "Pacemaker has other names than the kernel: nobody can say who is one");
}

/// D: `s.` that names this controller. A journal that is younger than it cannot know.
#[test]
fn what_this_controller_did_stands_in_its_journal() {
    let cib = cib(0, NOW);
    let judged = |by, at, is_on_record| {
        let known = Known { is_on_record, ..Known::default() };
        [settled, taken].map(|entry| credible(&entry(by, at), &around(&cib), &known))
    };
    for by in ["ctl1", "ctl1.example.org", "CTL1"] {
        assert_eq!(judged(by, NOW, true), [Ok(()), Ok(())]);
        assert_eq!(judged(by, NOW, false), [Err(Reason::NotOurs), Err(Reason::NotOurs)], "{by}");
        assert_eq!(judged(by, NOW - 5001, false), [Ok(()), Ok(())], "the journal was lost since");
    }
}

/// D: `r.` although the CIB says that the host is away. The broken variant of each row is the one behind it.
#[test]
fn the_cib_knows_better_than_the_register_whether_a_host_has_been_back() {
    let (failed, connected) = (NOW - 1000, NOW - 9000);
    let outage = Outage {
        mark: id(),
        first: second(failed),
        newest: second(failed),
        incarnations: vec![Incarnation::new("ctl1", 7, connected)],
        fenced_at: None,
        returned_at: None,
        settled: None,
        made_at: second(failed),
        is_proven: true,
    };
    let node = host("compute1");
    let judged = |fenced, connection, back| {
        let cib = cib(fenced, connection);
        let entry = Entry::Returned(Returned { mark: outage.mark, at: second(back), by: "ctl2".into() });
        credible(&entry, &around(&cib), &Known { outage: Some((&node, &outage)), ..Known::default() })
    };
    assert_eq!(judged(failed + 5, connected, NOW), Err(Reason::Away));
    assert_eq!(judged(failed + 5, connected, failed + 1), Err(Reason::Away), "it was not back before");
    assert_eq!(judged(failed + 5, failed + 100, failed + 100), Ok(()), "there was a connection");
    assert_eq!(judged(0, connected, NOW), Ok(()), "nothing says that it was fenced");
    for later in [30, 600] {
        let again = judged(failed + later, connected, failed + later - 15);
        assert_eq!(again, Ok(()), "it has failed again since");
    }
    assert_eq!(judged(failed + 600, connected, NOW), Err(Reason::Away), "and has not been back from that");
}

/// D: an `m.` beside a real `f.` that says something else.
#[test]
fn a_mark_says_what_the_rules_here_make_of_its_fencing() {
    let made = mark(NOW - 100, NOW - 99, NOW - 9000);
    let ours = MarkRow { standing: Standing::Doubtful(Doubt::OutcomeUnknown), ..made.row() };
    let cib = cib(0, NOW);
    let judged = |entry: &MarkEntry| {
        credible(&Entry::Mark(entry.clone()), &around(&cib), &Known { ours: Some(&ours), ..Known::default() })
    };
    assert_eq!(judged(&made), Ok(()));
    assert_eq!(judged(&MarkEntry { made_at: second(NOW), made_by: "ctl9".into(), ..made.clone() }), Ok(()));
    let with = |change: &dyn Fn(&mut MarkEntry)| {
        let mut other = made.clone();
        change(&mut other);
        judged(&other).unwrap_err()
    };
    assert_eq!(with(&|it| it.mark.fqdn = host("compute2.example.org")), Reason::Differs(What::Name));
    assert_eq!(with(&|it| it.mark.node = host("compute2")), Reason::Differs(What::Host));
    assert_eq!(with(&|it| it.mark.on_shared_storage = false), Reason::Differs(What::SharedStorage));
    assert_eq!(with(&|it| it.mark.failure_time = second(NOW - 200)), Reason::Differs(What::Times));
    assert_eq!(with(&|it| it.mark.generated_time = second(NOW - 200)), Reason::Differs(What::Times));
    assert_eq!(with(&|it| it.incarnation = None), Reason::Differs(What::Connection));
}
