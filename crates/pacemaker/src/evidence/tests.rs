//! What is written is read back; what is planted is set apart.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use marks::host::HostName;
use marks::id::OperationId;
use marks::time::Timestamp;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::unistd::geteuid;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn evidence() -> Evidence {
    Evidence {
        target: HostName::parse("Compute1").unwrap(),
        action: Action::Reboot,
        outcome: Outcome::Success,
        operation: OperationId::parse("e19eab25-6556-4644-89e9-f9bf9b151b87").unwrap(),
        at: Moment::from_micros(1_795_188_458_012_345).unwrap(),
        executor: Label::lossy("ctl3"),
        client: Label::lossy("pacemaker-controld.64"),
        origin: Label::lossy("ctl3"),
    }
}

fn at(micros: u64) -> Evidence {
    Evidence { at: Moment::from_micros(micros).unwrap(), ..evidence() }
}

fn open(room: &TempDir) -> Directory {
    fs::set_permissions(room.path(), Permissions::from_mode(0o700)).unwrap();
    Directory::open(room.path(), geteuid()).unwrap()
}

fn room() -> (TempDir, Directory) {
    let room = tempfile::tempdir().unwrap();
    let directory = open(&room);
    (room, directory)
}

fn flaws(directory: &Directory) -> Vec<(String, &'static str)> {
    let broken = directory.read_all().unwrap().broken;
    broken.into_iter().map(|broken| (broken.name, broken.flaw.kind())).collect()
}

#[test]
fn events_come_back_in_the_order_of_their_times() {
    let (room, directory) = room();
    for micros in [1_795_188_458_000_002, 7, 1_795_188_458_000_001] {
        directory.write(&at(micros)).unwrap();
    }
    let reading = directory.read_all().unwrap();
    let times: Vec<u64> = reading.sound.iter().map(|found| found.evidence.at.micros()).collect();
    assert_eq!(times, [7, 1_795_188_458_000_001, 1_795_188_458_000_002]);
    assert!(reading.broken.is_empty() && !reading.more);
    let path = room.path().join(reading.sound[0].name.as_str());
    assert!(path.ends_with("000000000000000007-e19eab25-6556-4644-89e9-f9bf9b151b87.alert"));
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
    assert_eq!(reading.sound[0].evidence.target.as_str(), "Compute1");
    assert_eq!(reading.sound[0].evidence.at.timestamp(), Timestamp(0));
}

#[test]
fn the_same_event_again_is_one_file() {
    let (room, directory) = room();
    assert_eq!(directory.write(&evidence()).unwrap(), directory.write(&evidence()).unwrap());
    assert_eq!(fs::read_dir(room.path()).unwrap().count(), 1);
}

/// The format is a contract between releases: a change needs a new version.
#[test]
fn the_format_stays_as_it_is() {
    let text = concat!(
        r#"{"version":1,"target":"Compute1","action":"reboot","rc":0,"#,
        r#""operation":"e19eab25-6556-4644-89e9-f9bf9b151b87","at_micros":1795188458012345,"#,
        r#""executor":"ctl3","client":"pacemaker-controld.64","origin":"ctl3"}"#,
        "\n"
    );
    assert_eq!(String::from_utf8(record::encode(&evidence())).unwrap(), text);
    assert_eq!(record::decode(&EventName::of(&evidence()), text.as_bytes()), Ok(evidence()));
}

fn join(micros: u64) -> Join {
    Join { node: HostName::parse("Ctl3").unwrap(), at: Moment::from_micros(micros).unwrap() }
}

#[test]
fn a_node_that_joined_is_read_apart_from_the_fencings() {
    let (room, directory) = room();
    let names: Vec<EventName> =
        [9, 7].map(|micros| directory.write_join(&join(micros)).unwrap()).into_iter().collect();
    directory.write(&at(8)).unwrap();
    let reading = directory.read_all().unwrap();
    let joins: Vec<&Join> = reading.joins.iter().map(|found| &found.join).collect();
    assert_eq!(joins, [&join(7), &join(9)]);
    assert_eq!((reading.sound.len(), reading.broken.len()), (1, 0));
    assert_eq!(EventName::parse(names[0].as_str()).as_ref(), Some(&names[0]));
    directory.remove(&names[0]).unwrap();
    assert_eq!(fs::read_dir(room.path()).unwrap().count(), 2);
}

#[test]
fn the_format_of_a_join_stays_as_it_is() {
    let name = "000000000000000007-13ae98cd-2572-8f5a-abad-ecc2ef53f823.join";
    let text = "{\"version\":1,\"node\":\"Ctl3\",\"at_micros\":7}\n";
    assert_eq!(EventName::of_join(&join(7)).as_str(), name);
    assert_eq!(String::from_utf8(record::encode_join(&join(7))).unwrap(), text);
    assert_eq!(record::decode_join(&EventName::of_join(&join(7)), text.as_bytes()), Ok(join(7)));
}

#[test]
fn a_content_that_no_event_has_is_set_apart() {
    let (room, directory) = room();
    let name = EventName::of(&evidence());
    let good = String::from_utf8(record::encode(&evidence())).unwrap();
    let table = [
        (String::new(), "content"),
        (good[..good.len() / 2].to_owned(), "content"),
        (good.replace(r#""rc":0,"#, ""), "content"),
        (good.replace(r#""rc":0"#, r#""rc":0,"rc":1"#), "content"),
        (good.replace(r#""rc":0"#, r#""rc":0,"more":1"#), "content"),
        (good.replace("Compute1", "../x"), "content"),
        (good.replace("reboot", "cycle"), "content"),
        (good.replace("pacemaker", r"a\nb"), "content"),
        (good.replace("\"ctl3\"", &format!("\"{}\"", "x".repeat(256))), "content"),
        (good.replace(r#""version":1"#, r#""version":2"#), "version"),
        (format!("{good}{good}"), "content"),
        ("[".repeat(4000), "content"),
        (good.replace("012345", "012346"), "mismatch"),
    ];
    for (text, kind) in table {
        fs::write(room.path().join(name.as_str()), &text).unwrap();
        assert_eq!(flaws(&directory), [(name.to_string(), kind)], "{text:.300}");
    }
    fs::write(room.path().join(name.as_str()), b"\xff\xfe").unwrap();
    assert_eq!(flaws(&directory), [(name.to_string(), "content")]);
}

/// The checks apply to the directory that was opened, whatever has its name now.
#[test]
fn a_directory_exchanged_meanwhile_is_not_the_one_that_is_read() {
    let (room, _) = room();
    let (path, away) = (room.path().join("evidence"), room.path().join("away"));
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    let directory = Directory::open(&path, geteuid()).unwrap();
    directory.write(&evidence()).unwrap();
    fs::rename(&path, &away).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("planted"), b"").unwrap();
    let reading = directory.read_all().unwrap();
    assert_eq!((reading.sound.len(), reading.broken.len()), (1, 0));
}

/// Ten thousand broken files took a quarter of a processor: each was opened at every reading. The broken variant
/// remembers none.
#[test]
fn a_broken_file_is_read_once_and_then_in_turn() {
    let (room, directory) = room();
    let mut known = Known::default();
    for micros in 0..1000 {
        fs::write(room.path().join(EventName::of(&at(micros)).as_str()), b"junk").unwrap();
    }
    let first = directory.read_new(&mut known).unwrap();
    assert_eq!((first.read, first.broken.len()), (1000, 1000));
    directory.write(&at(5000)).unwrap();
    directory.write(&at(7)).unwrap();
    let second = directory.read_new(&mut known).unwrap();
    assert!(second.read <= 102, "two new ones, and a hundred in their turn: {}", second.read);
    let times: Vec<u64> = second.sound.iter().map(|found| found.evidence.at.micros()).collect();
    assert_eq!(times, [7, 5000], "another file in the place of a broken one is read at once");
    assert_eq!(second.broken.len(), 999);
    second.sound.iter().for_each(|found| directory.remove(&found.name).unwrap());
    fs::write(room.path().join(EventName::of(&at(900)).as_str()), record::encode(&at(900))).unwrap();
    let readings: Vec<Reading> = (0..11).map(|_| directory.read_new(&mut known).unwrap()).collect();
    assert!(readings.iter().all(|reading| reading.read <= 101 && reading.broken.len() >= 998));
    let found =
        readings.iter().any(|reading| reading.sound.iter().any(|found| found.evidence.at.micros() == 900));
    assert!(found, "one that was repaired in place has its turn");
}

#[test]
fn what_was_taken_in_is_removed_and_nothing_else() {
    let (room, directory) = room();
    let name = directory.write(&evidence()).unwrap();
    fs::write(room.path().join("junk"), b"").unwrap();
    directory.remove(&name).unwrap();
    directory.remove(&name).unwrap();
    assert_eq!(flaws(&directory), [("junk".to_owned(), "name")]);
    assert!(directory.read_all().unwrap().sound.is_empty());
}

/// The alerter wakes when a file is closed: by then it must have its name.
#[test]
fn the_wake_up_comes_when_the_file_has_its_name() {
    let (room, directory) = room();
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
    inotify.add_watch(room.path(), AddWatchFlags::IN_CLOSE_WRITE).unwrap();
    let name = directory.write(&evidence()).unwrap();
    let woken: Vec<_> = inotify.read_events().unwrap().into_iter().filter_map(|event| event.name).collect();
    assert_eq!(woken, [name.as_str()]);
}

fn label() -> impl Strategy<Value = Label> {
    // Quotes and backslashes double in JSON: the longest file.
    prop_oneof![".{0,40}", "[\"\\\\]{250,300}", "\\PC{255,300}"].prop_map(|text| Label::lossy(&text))
}

prop_compose! {
    fn any_evidence()(
        target in "[A-Za-z0-9][A-Za-z0-9_-]{0,254}",
        action in 0..3_usize,
        rc in any::<i32>(),
        operation in "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
        micros in 0..=Moment::MAX,
        who in [label(), label(), label()],
    ) -> Evidence {
        let [executor, client, origin] = who;
        Evidence {
            target: HostName::parse(&target).unwrap(),
            action: Action::ALL[action],
            outcome: Outcome::from_rc(rc),
            operation: OperationId::parse(&operation).unwrap(),
            at: Moment::from_micros(micros).unwrap(),
            executor, client, origin,
        }
    }
}

proptest! {
    #[test]
    fn every_event_survives_its_file(evidence in any_evidence()) {
        let bytes = record::encode(&evidence);
        prop_assert!(bytes.len() <= MAX_FILE, "{} bytes", bytes.len());
        let name = EventName::of(&evidence);
        prop_assert_eq!(EventName::parse(name.as_str()), Some(name.clone()));
        let read = record::decode(&name, &bytes).unwrap();
        prop_assert_eq!(read.target.as_str(), evidence.target.as_str());
        prop_assert_eq!(read, evidence);
    }

    #[test]
    fn no_content_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(record::decode(&EventName::of(&evidence()), &bytes).is_err());
    }

}
