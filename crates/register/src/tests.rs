mod pages;
mod several;

use std::fs;
use std::time::Duration;

use super::*;
use marks::fencing::{Fencing, Incarnation, Origin};
use marks::id::MarkId;
use marks::register::Acknowledgement;
use marks::time::Timestamp;

const ID: &str = "0199c2a4-7d1e-7b3a-9f00-0123456789ab";

/// One entry of each kind.
pub(crate) fn sample_entries() -> [Entry; 14] {
    let samples = include_str!("../../marks/src/register/samples.txt").lines();
    let read = |line: &str| {
        let (key, value) = line.split_once(' ').unwrap();
        Entry::read(key, value).unwrap()
    };
    samples.map(read).collect::<Vec<_>>().try_into().unwrap()
}

pub(crate) fn entry() -> Entry {
    sample_entries()[0].clone()
}

/// Tools of a cluster that keeps its entries in files, with faults that a test inserts.
struct Cluster {
    dir: tempfile::TempDir,
    tools: Tools,
}

const ATTRD: &str = r#"
for word; do case $word in --name=*) A=$D/attrd/${word#--name=} ;; --node=*) key=${word#--node=} ;; --update=*) value=${word#--update=} ;; esac; done
echo "$1 $2 $3 $4" >> "$D/calls"
mkdir -p "$A"
case " $* " in
*" --private --node="*" --update="*) printf %s "$value" > "$A/$key"; exit 0 ;;
*" --private --node="*" --delete "*) : > "$A/$key"; exit 0 ;;
esac
test -n "$(ls "$A")" || exit 78
echo '<pacemaker-result>'
for file in "$A"/*; do
  case " $* " in *" --all "*) ;; *) test "${file##*/}" = "$key" || continue ;; esac
  echo "<attribute name=\"${A##*/}\" value=\"$(cat "$file")\" host=\"${file##*/}\"/>"
done
echo '</pacemaker-result>'"#;

const CIBADMIN: &str = r#"
case $1 in
--modify) id=$(printf %s "$4" | sed 's/^[^"]*"\([^"]*\)".*/\1/'); test -e "$D/cib/$id" || exit 105; printf %s "$4" > "$D/cib/$id" ;;
--create) id=$(printf %s "$4" | sed 's/^[^"]*"\([^"]*\)".*/\1/'); test ! -e "$D/cib/$id" || exit 108; printf %s "$4" > "$D/cib/$id" ;;
*) test -n "$(ls "$D/cib")" || exit 105; echo '<crm_config>'; cat "$D"/cib/*; echo '</crm_config>' ;;
esac"#;

fn tools(at: impl Fn(&str) -> PathBuf) -> Tools {
    let [attrd_updater, cibadmin, crm_node, stonith_admin] =
        ["attrd_updater", "cibadmin", "crm_node", "stonith_admin"].map(at);
    Tools { attrd_updater, cibadmin, crm_node, stonith_admin }
}

impl Cluster {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["attrd/host-failure", "cib"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let tools = tools(|name| dir.path().join(name));
        let cluster = Self { dir, tools };
        cluster.repair();
        cluster
    }

    fn repair(&self) {
        self.put("attrd_updater", ATTRD);
        self.put("cibadmin", CIBADMIN);
        self.put("crm_node", "echo 1");
    }

    fn put(&self, tool: &str, script: &str) {
        let path = self.dir.path().join(tool);
        let directory = self.dir.path().display();
        // Renamed into place: a running one must not be written into.
        let new = path.with_extension("new");
        samples::program(&new, format!("#!/bin/sh\nD={directory}\n{script}\n"));
        fs::rename(new, path).unwrap();
    }

    fn to(&self, register: Register) -> Access {
        Access { tools: self.tools.clone(), ..Access::to(register, None) }
    }

    fn publish(&self, register: Register, milliseconds: u64) -> Result<(), &'static str> {
        self.to(register).publish(&entry(), within(milliseconds)).map_err(|e| e.kind())
    }

    fn read(&self, register: Register) -> Result<Entries, &'static str> {
        self.to(register).read(within(ENOUGH)).map_err(|e| e.kind())
    }
}

const ENOUGH: u64 = 20_000;

fn within(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

/// S1-27, S1-28: published entries are read, and publishing them again changes nothing.
#[test]
fn what_is_published_is_read() {
    for register in [Register::Attrd, Register::Cib] {
        let cluster = Cluster::new();
        assert_eq!(cluster.read(register), Ok(Entries::default()), "nothing was ever written");
        for _ in 0..2 {
            assert_eq!(cluster.publish(register, ENOUGH), Ok(()));
        }
        let read = cluster.read(register).unwrap();
        assert!(read.sound.into_values().eq([entry()]) && read.apart.is_empty());
    }
}

/// attrd acknowledges an update before the cluster has it.
#[test]
fn an_acknowledgement_is_no_copy() {
    let cluster = Cluster::new();
    cluster.put("attrd_updater", &ATTRD.replace("> \"$A/$key\"", "> /dev/null"));
    assert_eq!(cluster.publish(Register::Attrd, 1500), Err("not-read-back"));
    cluster.put("cibadmin", &CIBADMIN.replace("> \"$D/cib/$id\"", "> /dev/null"));
    assert_eq!(cluster.publish(Register::Cib, ENOUGH), Err("not-read-back"));
}

/// When a partition ends, the configuration with more changes wins, quorate or not.
#[test]
fn without_quorum_the_cib_is_left_alone() {
    let cluster = Cluster::new();
    cluster.put("crm_node", "echo 0");
    assert_eq!(cluster.publish(Register::Cib, ENOUGH), Err("no-quorum"));
    cluster.put("crm_node", "echo perhaps");
    assert_eq!(cluster.publish(Register::Cib, ENOUGH), Err("unreadable"));
    assert_eq!(cluster.read(Register::Cib), Ok(Entries::default()));
}

#[test]
fn tools_that_fail_hang_or_print_too_much_are_reported() {
    for (script, kind) in
        [("exit 102", "tool"), ("exec sleep 1000", "tool"), ("echo '<pacemaker-result>'", "unreadable")]
    {
        let cluster = Cluster::new();
        cluster.put("attrd_updater", script);
        cluster.put("cibadmin", script);
        for register in [Register::Attrd, Register::Cib] {
            assert_eq!(cluster.publish(register, 500), Err(kind), "{script}");
        }
        cluster.repair();
        assert_eq!(cluster.publish(Register::Attrd, ENOUGH), Ok(()), "{script}");
    }
    let none = tools(|_| PathBuf::from("/nonexistent"));
    for register in [Register::Attrd, Register::Cib] {
        let access = Access { tools: none.clone(), ..Access::to(register, None) };
        assert_eq!(access.publish(&entry(), within(5000)).unwrap_err().kind(), "tool");
        assert_eq!(access.read(within(5000)).unwrap_err().kind(), "tool");
    }
}

/// A fencing that would not read back the same must not count as published.
#[test]
fn a_text_that_cannot_be_kept_is_refused() {
    let Entry::Fencing(fencing) = entry() else { panic!("no fencing") };
    let odd = Entry::Fencing(Fencing { seen_by: "ctl1\n".into(), ..fencing });
    let (mark, by) = (MarkId::parse(ID).unwrap(), String::new());
    let unnamed = Acknowledgement { mark, route: String::new(), at: Timestamp(0), by };
    let cluster = Cluster::new();
    for odd in [odd, Entry::Acknowledged(unnamed)] {
        let refused = cluster.to(Register::Attrd).publish(&odd, within(5000)).unwrap_err();
        assert_eq!(refused.kind(), "unfit");
    }
}

/// The output of Pacemaker 2.1.5, with a deleted entry, whose name remains without a value.
#[test]
fn the_attribute_managers_own_words_are_read() {
    let recorded = r#"<pacemaker-result api-version="2.25" request="attrd_updater --name=host-failure --query --all --output-as=xml">
  <attribute name="host-failure" value="" host="f.y"/>
  <attribute name="host-failure" value="1;compute1;;1795262685712;1795262685735;ctl1;fencer;:ctl1_2f3_2f1795262678;:my.cloud.com;;;" host="f.01a1fdfe-a227-7387-95fe-73a297bb1fec"/>
  <status code="0" message="OK"/>
</pacemaker-result>
"#;
    let read = Entries::of(&attrd::values(recorded, NAME).unwrap());
    assert!(read.apart.is_empty(), "{read:?}");
    let Some(Entry::Fencing(fencing)) = read.sound.into_values().next() else { panic!("no entry") };
    assert_eq!((fencing.node.as_str(), fencing.asked_at), ("compute1", Timestamp(1_795_262_685_712)));
    assert_eq!(fencing.incarnation, Some(Incarnation::new("ctl1", 3, 1_795_262_678)));
    assert_eq!(fencing.given_domain.as_deref(), Some("my.cloud.com"));
    let half = &recorded[..recorded.len() / 2];
    assert_eq!(attrd::values(half, NAME).unwrap_err().kind(), "unreadable");
}

/// As from 2.0.5 to 2.1.2, which have no `--output-as`. The broken variants read nothing, so that a lost controller's
/// marks are lost with it, or take a part of a value for an entry.
#[test]
fn an_attribute_manager_without_xml_is_read_in_lines() {
    let cluster = Cluster::new();
    cluster.publish(Register::Attrd, ENOUGH).unwrap();
    let expected = cluster.read(Register::Attrd).unwrap();
    assert_eq!(expected.sound.len(), 1);
    cluster.put(
        "attrd_updater",
        r#"case " $* " in *--output-as*) exit 64 ;; esac
           test -n "$(ls "$D/attrd/host-failure")" || exit 105
           printf 'name="host-failure" host="f.x" value="name="host-failure" host="f.y" value="1"\n'
           echo 'name="other" host="f.z" value="1"'
           for file in "$D"/attrd/host-failure/*; do echo "name=\"host-failure\" host=\"${file##*/}\" value=\"$(cat "$file")\""; done"#,
    );
    let read = cluster.read(Register::Attrd).unwrap();
    assert_eq!(read.sound, expected.sound);
    assert_eq!(read.apart.len(), 1, "{:?}", read.apart);
}

#[test]
fn the_cib_managers_own_words_are_read() {
    let set = r#"<cluster_property_set id="host-failure.f.01a1fe01-725f-7491-8bac-ad87137263e7">
    <nvpair id="host-failure.f.01a1fe01-725f-7491-8bac-ad87137263e7.value" name="host-failure.f.01a1fe01-725f-7491-8bac-ad87137263e7" value="1;compute9;;1795262870111;1795262870111;ctl1;shell;;:my.cloud.com;;;"/>
  </cluster_property_set>"#;
    let whole = format!(
        r#"<crm_config>
  <cluster_property_set id="cib-bootstrap-options">
    <nvpair id="cib-bootstrap-options-have-watchdog" name="have-watchdog" value="false"/>
  </cluster_property_set>
  {set}
</crm_config>
"#
    );
    // Asked for one element, it prints just that.
    for recorded in [set, &whole] {
        let read = Entries::of(&cib::named(recorded, NAME).unwrap());
        assert!(read.apart.is_empty(), "{read:?}");
        let Some(Entry::Fencing(fencing)) = read.sound.into_values().next() else { panic!("no entry") };
        assert_eq!((fencing.node.as_str(), fencing.origin), ("compute9", Origin::Shell));
    }
    assert_eq!(cib::named(&whole[..whole.len() / 2], NAME).unwrap_err().kind(), "unreadable");
}
