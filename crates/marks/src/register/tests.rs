use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::fencing::{Fencing, Incarnation, Origin};
use crate::host::HostName;
use crate::id::{FencingId, MarkId, NoteId, OperationId};
use crate::mark::{Mark, Settlement, Source};
use crate::time::Timestamp;

const ID: &str = "0199c2a4-7d1e-7b3a-9f00-0123456789ab";
const KEY: &str = "f.0199c2a4-7d1e-7b3a-9f00-0123456789ab";
const VALUE: &str = "1;_43ompute1;:c1.my.cloud.com;1795191514123;1795191514200;ctl1;fencer;:ctl2_2f12_2f1795191000;;y;n;:_2fa_2040_20s";

pub(super) fn entry() -> Entry {
    Entry::Fencing(Fencing {
        id: FencingId::parse(ID).unwrap(),
        node: HostName::parse("Compute1").unwrap(),
        plug: Some(HostName::parse("c1.my.cloud.com").unwrap()),
        asked_at: Timestamp(1_795_191_514_123),
        committed_at: Timestamp(1_795_191_514_200),
        seen_by: "ctl1".into(),
        origin: Origin::Fencer,
        incarnation: Some(Incarnation::new("ctl2", 12, 1_795_191_000)),
        already_down: Some(false),
        given_domain: None,
        given_shared_storage: Some(true),
        cause: Some("/a 40 s".into()),
    })
}

/// One entry of each kind, as it is in the register.
fn samples() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("samples.txt").lines().map(|line| line.split_once(' ').unwrap())
}

/// The same entries.
fn sample_entries() -> [Entry; 14] {
    let (id, note) = (MarkId::parse(ID).unwrap(), NoteId::parse(ID).unwrap());
    let (at, by) = (|second: i64| Timestamp(1_795_191_000_000 + second * 1000), || "ctl1".to_owned());
    let mark = Mark {
        id,
        node: HostName::parse("Compute1").unwrap(),
        fqdn: HostName::parse("c1.my.cloud.com").unwrap(),
        on_shared_storage: false,
        failure_time: Timestamp(1_795_191_514_123),
        generated_time: Timestamp(1_795_191_514_200),
    };
    let incarnation = Some(Incarnation::new("ctl2", 12, 1_795_191_000));
    let rack = || Scope::Group("Rack_1".into());
    let host = Scope::Host(HostName::parse("Compute1").unwrap());
    let decided = |number: u8, about, second, reason: &str| {
        let id = NoteId::parse(&format!("{}b{number}", &ID[..34])).unwrap();
        Entry::Decision(Decision { id, about, at: at(second), actor: "root".into(), reason: reason.into() })
    };
    let (about, actor, reason) = (About::Release(id), "root".into(), "power was cut; seen".into());
    [
        entry(),
        Entry::Mark(MarkEntry {
            mark,
            source: Source::NodeFenced,
            incarnation,
            made_by: by(),
            made_at: at(515),
        }),
        Entry::Acknowledged(Acknowledgement {
            mark: id,
            route: "East_masakari.1".into(),
            at: at(516),
            by: by(),
        }),
        Entry::Settled(Settled { mark: id, how: Settlement::Acknowledged, at: at(517), by: by() }),
        Entry::Returned(Returned { mark: id, at: at(520), by: by() }),
        Entry::Operation(Operation { id: operation(), mark: id, at: at(521), by: by() }),
        Entry::Decision(Decision { id: note, about, at: at(518), actor, reason }),
        decided(1, About::ReleaseGroup("Rack_1".into()), 521, "seen"),
        decided(2, About::Pause { scope: Scope::All, until: None }, 522, "move"),
        decided(3, About::Pause { scope: rack(), until: Some(at(600)) }, 523, "move"),
        decided(4, About::Maintenance { scope: host, until: at(601) }, 524, "new disk"),
        decided(5, About::Maintenance { scope: rack(), until: at(602) }, 525, "new disk"),
        Entry::Ending(Ending {
            id: NoteId::parse("0199c2a4-7d1e-7b3a-9f00-0123456789b5").unwrap(),
            at: at(526),
            actor: "root".into(),
            reason: "done".into(),
        }),
        Entry::Watermark(Watermark { id: note, at: at(519), by: by() }),
    ]
}

/// C11: whatever its kind, what no key vouches for counts for nothing. The broken variant lets fencings and marks count.
#[test]
fn what_no_key_vouches_for_is_not_believed() {
    for entry in sample_entries() {
        let (key, sound) = (entry.key(), [(entry.key(), entry)].into());
        let sealed = Entries { sound, ..Entries::default() };
        for why in [Unsealed::Forged, Unsealed::Unknown] {
            let unsealed = Entries { unsealed: [(key.clone(), why)].into(), ..sealed.clone() };
            assert!(unsealed.believed().sound.is_empty(), "{key}");
        }
        assert_eq!(sealed.clone().believed(), sealed);
    }
}

fn host() -> impl Strategy<Value = HostName> {
    "[A-Za-z0-9][A-Za-z0-9_-]{0,20}(\\.[A-Za-z0-9_-]{1,9}){0,3}"
        .prop_map(|name| HostName::parse(&name).unwrap())
}

fn fencing() -> impl Strategy<Value = Fencing> {
    let origin =
        prop_oneof![Just(Origin::Fencer), Just(Origin::Shell), Just(Origin::Operator), Just(Origin::Api)];
    let names = (host(), option::of(host()), "\\PC{0,40}");
    let times = (any::<i64>(), any::<i64>(), any::<u128>());
    let given = (
        option::of("\\PC{0,40}"),
        option::of("\\PC{0,40}"),
        option::of(any::<bool>()),
        option::of(any::<bool>()),
    );
    (names, times, origin, (given, option::of("[ -~]{1,160}"))).prop_map(
        |((node, plug, seen_by), (asked, committed, id), origin, (given, cause))| Fencing {
            id: FencingId::parse(&uuid::Uuid::from_u128(id).to_string()).unwrap(),
            node,
            plug,
            asked_at: Timestamp(asked),
            committed_at: Timestamp(committed),
            seen_by,
            origin,
            incarnation: given.0.map(Incarnation::from_journal),
            already_down: given.3,
            given_domain: given.1,
            given_shared_storage: given.2,
            cause,
        },
    )
}

fn mark_id() -> impl Strategy<Value = MarkId> {
    any::<u128>().prop_map(|id| MarkId::parse(&uuid::Uuid::from_u128(id).to_string()).unwrap())
}

fn note_id() -> impl Strategy<Value = NoteId> {
    any::<u128>().prop_map(|id| NoteId::parse(&uuid::Uuid::from_u128(id).to_string()).unwrap())
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp)
}

fn mark_entry() -> impl Strategy<Value = Entry> {
    let sources = prop_oneof![
        Just(Source::Fencing),
        Just(Source::Alert),
        Just(Source::History),
        Just(Source::NodeFenced)
    ];
    let mark = (mark_id(), host(), host(), any::<bool>(), time(), time());
    let mark = mark.prop_map(|(id, node, fqdn, on_shared_storage, failure_time, generated_time)| Mark {
        id,
        node,
        fqdn,
        on_shared_storage,
        failure_time,
        generated_time,
    });
    (mark, sources, option::of("\\PC{0,40}"), "\\PC{0,40}", time()).prop_map(
        |(mark, source, incarnation, made_by, made_at)| {
            let incarnation = incarnation.map(Incarnation::from_journal);
            Entry::Mark(MarkEntry { mark, source, incarnation, made_by, made_at })
        },
    )
}

fn about() -> impl Strategy<Value = About> {
    let group = || "\\PC{1,40}".prop_map(Scope::Group);
    prop_oneof![
        mark_id().prop_map(About::Release),
        "\\PC{1,40}".prop_map(About::ReleaseGroup),
        (prop_oneof![Just(Scope::All), group()], option::of(time()))
            .prop_map(|(scope, until)| About::Pause { scope, until }),
        (prop_oneof![group(), host().prop_map(Scope::Host)], time())
            .prop_map(|(scope, until)| About::Maintenance { scope, until }),
    ]
}

fn operation() -> OperationId {
    OperationId::parse("e19eab25-6556-4644-89e9-f9bf9b151b87").unwrap()
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let settlements = prop_oneof![
        Just(Settlement::Acknowledged),
        Just(Settlement::Dismissed),
        Just(Settlement::Cancelled),
        Just(Settlement::Expired)
    ];
    prop_oneof![
        fencing().prop_map(Entry::Fencing),
        mark_entry(),
        (mark_id(), "\\PC{1,40}", time(), "\\PC{0,40}")
            .prop_map(|(mark, route, at, by)| Entry::Acknowledged(Acknowledgement { mark, route, at, by })),
        (mark_id(), settlements, time(), "\\PC{0,40}")
            .prop_map(|(mark, how, at, by)| Entry::Settled(Settled { mark, how, at, by })),
        (mark_id(), time(), "\\PC{0,40}").prop_map(|(mark, at, by)| Entry::Returned(Returned {
            mark,
            at,
            by
        })),
        (mark_id(), time(), "\\PC{0,40}")
            .prop_map(|(mark, at, by)| { Entry::Operation(Operation { id: operation(), mark, at, by }) }),
        (note_id(), about(), time(), "\\PC{0,40}", "\\PC{0,200}").prop_map(
            |(id, about, at, actor, reason)| Entry::Decision(Decision { id, about, at, actor, reason })
        ),
        (note_id(), time(), "\\PC{0,40}", "\\PC{0,200}")
            .prop_map(|(id, at, actor, reason)| Entry::Ending(Ending { id, at, actor, reason })),
        (note_id(), time(), "\\PC{0,40}").prop_map(|(id, at, by)| Entry::Watermark(Watermark { id, at, by })),
    ]
}

fn read(pairs: &[(&str, &str)]) -> Entries {
    let mut entries = Entries::default();
    pairs.iter().for_each(|(key, value)| entries.take(key, value));
    entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A whole entry survives the register, in an alphabet that every backend stores unchanged.
    #[test]
    fn every_entry_comes_back(entry in any_entry()) {
        let (key, value) = (entry.key().to_string(), entry.value());
        let safe = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | ':' | ';' | '_' | '-');
        prop_assert!(key.chars().chain(value.chars()).all(safe), "{}", value);
        let read = read(&[(&key, &value)]);
        prop_assert!(entry.is_fit());
        prop_assert_eq!(read.sound.into_iter().collect::<Vec<_>>(), [(entry.key(), entry)]);
    }

    /// The value under a key is either one that we would have written, or unusable.
    #[test]
    fn no_value_is_too_odd(kind in "[fmasropwx]", fields in "[a-z0-9:;_.+-]{0,80}", at in 0..200_usize, junk in ".{0,3}") {
        let tail = if kind == "a" { ".east" } else { "" };
        let text = format!("{kind}.{ID}{tail}");
        let sound = samples().find(|(key, _)| key.starts_with(&kind)).map_or(VALUE, |(_, value)| value);
        let mut bent: String = sound.chars().take(at).collect::<String>() + &junk;
        bent.extend(sound.chars().skip(at));
        for value in [format!("1;{fields}"), bent] {
            let read = read(&[(&text, &value)]);
            prop_assert!(read.sound.values().all(|entry| entry.value() == value));
        }
    }

    /// Any member of haclient can write anything: it never hides a sound entry, and never counts as one in another
    /// spelling.
    #[test]
    fn hostile_entries_stay_apart(host in "\\PC{0,60}", value in "\\PC{1,60}", tail in "[ -~]{0,12}") {
        let cut: String = VALUE.chars().take(tail.len() * 8).collect::<String>() + &tail;
        let pairs = [(host.as_str(), value.as_str()), (KEY, VALUE), ("f.x", &cut), (KEY, &cut)];
        let read = read(&pairs);
        prop_assert_eq!(read.sound.get(&entry().key()), Some(&entry()));
        prop_assert_eq!(read.sound.len(), 1);
        prop_assert!(read.apart.iter().all(|apart| apart.key.len() <= 64 && apart.key.is_ascii()));
    }
}

/// The form is a contract between the releases of a cluster that is being upgraded.
#[test]
fn the_form_of_an_entry_is_fixed() {
    for ((key, value), entry) in samples().zip(sample_entries()) {
        assert_eq!((entry.key().to_string().as_str(), entry.value().as_str()), (key, value));
        assert_eq!(Entry::parse(Key::parse(key).unwrap(), value), Ok(entry));
    }
}

#[test]
fn a_field_more_or_less_is_malformed() {
    for (key, value) in samples() {
        let key = Key::parse(key).unwrap();
        let cut = value.rsplit_once(';').unwrap().0;
        for bad in [cut, &format!("{value};"), &value.replacen("1;", "1;;", 1)] {
            assert_eq!(Entry::parse(key.clone(), bad), Err(Why::Malformed), "{bad}");
        }
        assert_eq!(Entry::parse(key, &value.replacen("1;", "2;", 1)), Err(Why::Version));
    }
}

/// No value exists for what no operator can decide: a pause of one host, a maintenance of everything or without an end.
#[test]
fn a_decision_that_nobody_can_take_is_malformed() {
    let key = Key::parse("p.0199c2a4-7d1e-7b3a-9f00-0123456789ab").unwrap();
    for (about, sound) in [
        ("pause;all:;", true),
        ("pause;host:c1;", false),
        ("pause;all:x;", false),
        ("pause;group:;", false),
        ("pause;rack:1;", false),
        ("pause;group:a;+5", false),
        ("maintenance;host:c1;5", true),
        ("maintenance;host:c1;", false),
        ("maintenance;all:;5", false),
        ("maintenance;host:..;5", false),
        ("release-group;group:a;", true),
        ("release-group;group:a;5", false),
        ("release-group;all:;", false),
        ("release;all:;", false),
        ("stop;all:;", false),
    ] {
        let read = Entry::parse(key.clone(), &format!("1;{about};1;root;why"));
        assert_eq!(read.is_ok(), sound, "{about}: {read:?}");
    }
}

#[test]
fn keys_of_others_are_none_of_ours() {
    for other in [
        "f.",
        "f",
        "compute1",
        "x.0199c2a4-7d1e-7b3a-9f00-0123456789ab",
        "a.0199c2a4-7d1e-7b3a-9f00-0123456789ab",
        "a.0199c2a4-7d1e-7b3a-9f00-0123456789ab.",
        "a.0199c2a4-7d1e-7b3a-9f00-0123456789ab.Masakari",
        "a.0199c2a4-7d1e-7b3a-9f00-0123456789ab._61",
        "m.0199c2a4-7d1e-7b3a-9f00-0123456789ab.x",
        "p.0199c2a4-7d1e-7b3a-9f00-0123456789ab.",
        "p.0199c2a4-7d1e-7b3a-9f00-0123456789ab.END",
        "p..end",
        &KEY.to_uppercase(),
        &KEY.replace('-', ""),
    ] {
        assert_eq!(Key::parse(other), None, "{other}");
    }
}

#[test]
fn each_odd_value_is_distinguished() {
    let newer = VALUE.replacen("1;", "2;", 1);
    for (value, why) in [
        (newer.as_str(), Why::Version),
        ("", Why::Malformed),
        ("1", Why::Malformed),
        (&VALUE.replace("_43ompute1", "_43ompute 1"), Why::Malformed),
        (&VALUE.replace("_43ompute1", "Compute1"), Why::Malformed),
        (&VALUE.replace(";1795191514123", ";+1795191514123"), Why::Malformed),
        (&VALUE.replace("fencer", "nobody"), Why::Malformed),
        (&format!("{VALUE};"), Why::Malformed),
        (&VALUE.replace("ctl1;", "ctl2;"), Why::Second),
    ] {
        let read = read(&[(KEY, VALUE), (KEY, value), ("compute1", "1")]);
        assert_eq!(read.sound.len(), 1, "{value}");
        let expected = [(!value.is_empty()).then_some(why), Some(Why::Key)].into_iter().flatten();
        assert!(read.apart.iter().map(|apart| apart.why).eq(expected), "{value}: {:?}", read.apart);
    }
}

#[test]
fn words_are_read_as_they_are_written() {
    for register in [Register::Attrd, Register::Cib, Register::Etcd, Register::None] {
        assert_eq!(Register::parse(register.as_str()), Some(register));
    }
    assert_eq!((Register::parse("zookeeper"), Register::parse("Attrd")), (None, None));
}
