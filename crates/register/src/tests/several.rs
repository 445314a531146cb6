//! Several entries at once, present ones, and deleted ones.

use super::*;

const CONTROLLER: &str = "/usr/sbin/cibadmin";

/// A cluster whose CIB is a file, changed by the installed `cibadmin`.
fn real_cib() -> Option<Cluster> {
    let cluster = Cluster::new();
    let empty = std::process::Command::new(CONTROLLER).arg("--empty").output().ok()?.stdout;
    let foreign = r#"<cluster_property_set id="cib-bootstrap-options"><nvpair id="w" name="have-watchdog" value="false"/></cluster_property_set>"#;
    let text = String::from_utf8(empty).unwrap();
    let text = text.replacen("<crm_config/>", &format!("<crm_config>{foreign}</crm_config>"), 1);
    assert!(text.contains(foreign), "{text}");
    fs::write(cluster.dir.path().join("cib.xml"), text).unwrap();
    cluster.put("cibadmin", REAL);
    Some(cluster)
}

const REAL: &str = r#"CIB_file="$D/cib.xml" exec /usr/sbin/cibadmin "$@""#;

impl Cluster {
    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }

    /// How often the configuration was changed.
    fn epoch(&self) -> u32 {
        let text = self.file("cib.xml");
        let (_, rest) = text.split_once(" epoch=\"").unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    }

    fn publish_all(&self, register: Register, entries: &[Entry]) -> Published {
        self.to(register).publish_all(entries, within(ENOUGH))
    }

    fn clear(&self, register: Register, keys: &[Key]) -> Result<(), &'static str> {
        self.to(register).clear(keys, within(ENOUGH)).map_err(|e| e.kind())
    }

    fn keys(&self, register: Register) -> Vec<Key> {
        self.read(register).unwrap().sound.into_keys().collect()
    }

    fn forge(&self, key: &Key, value: &str) {
        fs::write(self.dir.path().join(format!("attrd/host-failure/{key}")), value).unwrap();
    }
}

fn keys(entries: &[Entry]) -> Vec<Key> {
    entries.iter().map(Entry::key).collect()
}

fn failures(published: Published) -> Vec<(Key, &'static str)> {
    published.failed.into_iter().map(|(key, error)| (key, error.kind())).collect()
}

/// Many entries, as of a busy week.
fn many(count: u128) -> Vec<Entry> {
    let acknowledged = (1..=count).map(|number| {
        let mark = MarkId::parse(&uuid::Uuid::from_u128(number).to_string()).unwrap();
        let (route, by) = ("masakari-east".to_owned(), "ctl1".to_owned());
        Entry::Acknowledged(Acknowledgement { mark, route, at: Timestamp(1_795_191_516_000), by })
    });
    sample_entries().into_iter().chain(acknowledged).collect()
}

/// S1-27, S1-28: a busy week takes a few places, not hundreds, of the administrator's ring of a hundred old
/// configurations.
#[test]
fn many_entries_are_few_changes_of_the_cib() {
    let Some(cluster) = real_cib() else { return };
    let (entries, before) = (many(500), cluster.epoch());
    let published = cluster.publish_all(Register::Cib, &entries);
    assert!(published.failed.is_empty() && published.stopped.is_none(), "{published:?}");
    assert_eq!(published.standing, keys(&entries));
    assert_eq!(cluster.keys(Register::Cib).len(), entries.len());
    let written = cluster.epoch();
    assert!(written - before <= 4, "{}", written - before);
    assert_eq!(cluster.publish_all(Register::Cib, &entries).standing, keys(&entries));
    assert_eq!(cluster.epoch(), written, "nothing is written twice");
    let mut kept = keys(&entries);
    let old = kept.split_off(3);
    assert_eq!(cluster.clear(Register::Cib, &old), Ok(()));
    assert_eq!(cluster.keys(Register::Cib), kept);
    let cleared = cluster.epoch();
    assert!(cleared - written <= 4, "{}", cleared - written);
    assert_eq!(cluster.clear(Register::Cib, &old), Ok(()));
    assert_eq!(cluster.epoch(), cleared, "nothing is deleted twice");
    assert!(cluster.file("cib.xml").contains("cib-bootstrap-options"));
}

/// Two alerters may write the same of one mark; a fencing or a decision has one writer.
#[test]
fn another_word_on_the_same_mark_stands() {
    for entry in sample_entries() {
        let cluster = Cluster::new();
        let standing = entry.value().replace("ctl1", "ctl9").replace("root", "someone");
        assert_ne!(standing, entry.value());
        cluster.forge(&entry.key(), &standing);
        let own_id = matches!(entry, Entry::Fencing(_) | Entry::Decision(_));
        let published = cluster.publish_all(Register::Attrd, std::slice::from_ref(&entry));
        if own_id {
            assert_eq!(failures(published), [(entry.key(), "other-value")]);
        } else {
            assert_eq!(published.standing, [entry.key()], "{published:?}");
        }
        if !matches!(entry, Entry::Fencing(_)) {
            let alone = cluster.to(Register::Attrd).publish(&entry, within(ENOUGH));
            assert_eq!(alone.map_err(|e| e.kind()), if own_id { Err("other-value") } else { Ok(()) });
        }
        assert_eq!(
            cluster.file(&format!("attrd/host-failure/{}", entry.key())),
            standing,
            "it was not written over"
        );
    }
}

#[test]
fn one_that_fails_keeps_no_other_back_but_a_tool_that_hangs_ends_all() {
    let cluster = Cluster::new();
    let mut entries = sample_entries().to_vec();
    let (mark, by) = (MarkId::parse(ID).unwrap(), String::new());
    entries.push(Entry::Acknowledged(Acknowledgement { mark, route: String::new(), at: Timestamp(0), by }));
    let with = |fault: &str| format!("case \"$*\" in *--node=s.*--update=*) {fault} ;; esac\n{ATTRD}");
    cluster.put("attrd_updater", &with("exit 1"));
    let published = cluster.publish_all(Register::Attrd, &entries);
    assert!(published.stopped.is_none());
    assert_eq!(published.standing.len(), entries.len() - 2);
    let last = entries.last().unwrap();
    assert_eq!(failures(published), [(last.key(), "unfit"), (entries[3].key(), "tool")]);
    cluster.put("attrd_updater", &with("exit 0"));
    let published = cluster.to(Register::Attrd).publish_all(&entries[..4], within(2000));
    assert_eq!(failures(published), [(entries[3].key(), "not-read-back")]);
    cluster.put("attrd_updater", &with("exec sleep 1000"));
    let published = cluster.to(Register::Attrd).publish_all(&entries[..4], within(6000));
    assert_eq!(published.standing, keys(&entries[..3]));
    assert_eq!(published.stopped.map(|e| e.kind()), Some("tool"));
}

/// A tool takes a tenth of a second, and a host waits. The broken variants ask for a stranger's value until the end of the time, or once more
/// after each rejection.
#[test]
fn what_cannot_change_is_not_asked_again() {
    let cluster = Cluster::new();
    let settled = &sample_entries()[3];
    cluster.put("attrd_updater", &ATTRD.replace(r#"printf %s "$value""#, "printf %s other"));
    for calls in [3, 4] {
        let published = cluster.publish_all(Register::Attrd, std::slice::from_ref(settled));
        assert_eq!(failures(published), [(settled.key(), "other-value")], "none of us wrote that");
        assert_eq!(cluster.file("calls").lines().count(), calls, "read, written, read; read");
    }
    cluster.put("cibadmin", r#"echo cibadmin $1 >> "$D/calls"; test "$1" = --create && exit 1; exit 105"#);
    let calls = || cluster.file("calls").lines().filter(|line| line.starts_with("cibadmin")).count();
    for entry in [&entry(), settled] {
        assert_eq!(cluster.to(Register::Cib).publish(entry, within(ENOUGH)).unwrap_err().kind(), "tool");
    }
    assert_eq!(calls(), 2, "inserted");
    let published = cluster.publish_all(Register::Cib, std::slice::from_ref(settled));
    assert_eq!(failures(published), [(settled.key(), "tool")]);
    assert_eq!(calls(), 5, "inserted, read, and inserted alone");
}

/// If the settlement were deleted first, an alerter that reads in between would send the rest as a new outage.
#[test]
fn a_settlement_is_deleted_last() {
    let cluster = Cluster::new();
    let entries = sample_entries();
    assert!(cluster.publish_all(Register::Attrd, &entries).stopped.is_none());
    let mut backwards = keys(&entries);
    backwards.reverse();
    assert_eq!(cluster.clear(Register::Attrd, &backwards), Ok(()));
    assert_eq!(cluster.keys(Register::Attrd), []);
    let calls = cluster.file("calls");
    let deleted: Vec<&str> = calls
        .lines()
        .filter(|line| line.ends_with("--delete"))
        .filter_map(|line| line.split("--node=").nth(1)?.split('.').next())
        .collect();
    assert_eq!((deleted.first(), deleted.last(), deleted.len()), (Some(&"f"), Some(&"s"), entries.len()));
    assert_eq!(cluster.clear(Register::Attrd, &backwards), Ok(()));
    cluster.forge(&entries[0].key(), &entry().value());
    let deaf = ATTRD.replace(r#": > "$A/$key""#, ":");
    assert_ne!(deaf, ATTRD);
    cluster.put("attrd_updater", &deaf);
    let cleared = cluster.to(Register::Attrd).clear(&backwards, within(4000));
    assert_eq!(cleared.unwrap_err().kind(), "not-gone");
}
