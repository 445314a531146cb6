//! The register as the agent uses it: tools of a cluster that answer, fail or hang, and journals that do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fence_agent::call::Call;
use fence_agent::paths::Paths;
use fence_agent::{check, off};
use marks::mark::Settlement;
use marks::register::{Entry, Key, Register, Settled};
use marks::time::Timestamp;
use register::{Access, SealKeys};
use rusqlite::Connection;

use crate::common::{AGENT, Store, World, call_of, fencings, have_injection, have_namespaces, run};

/// Keeps every update in a file, and answers from there.
const WORKS: &str = r#"
for word; do case $word in --name=*) name=${word#--name=} ;; --node=*) key=${word#--node=} ;; --update=*) value=${word#--update=} ;; esac; done
case " $* " in *" --update="*) echo update >> "$D/calls"; printf %s "$value" > "$D/register/$name@$key"; exit 0 ;; esac
test -n "$(ls "$D/register")" || exit 78
echo '<pacemaker-result>'
for file in "$D"/register/"$name@"*; do
  test -e "$file" || continue
  case " $* " in *" --all "*) ;; *) test "${file##*@}" = "$key" || continue ;; esac
  echo "<attribute name=\"$name\" value=\"$(cat "$file")\" host=\"${file##*@}\"/>"
done
echo '</pacemaker-result>'"#;

/// A secret as Corosync's.
const SECRET: [u8; 64] = *b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

struct Controller {
    store: Store,
    paths: Paths,
}

impl Controller {
    fn new(attrd_updater: &str) -> Self {
        let store = Store::new();
        fs::create_dir(store.dir.path().join("register")).unwrap();
        let controller = Self { paths: store.paths(), store };
        controller.put("cibadmin", "echo '<cib/>'");
        controller.put("attrd_updater", attrd_updater);
        controller
    }

    /// Without a key and with one: both registers must have the same.
    fn both(attrd_updater: &str) -> [Self; 2] {
        [Self::new(attrd_updater), Self::keyed(attrd_updater)]
    }

    fn keyed(attrd_updater: &str) -> Self {
        let controller = Self::new(attrd_updater);
        fs::write(controller.at("authkey"), SECRET).unwrap();
        fs::set_permissions(controller.at("authkey"), fs::Permissions::from_mode(0o400)).unwrap();
        controller
    }

    fn keys(&self) -> SealKeys {
        site::seal_keys(&self.at("register.key"), &self.paths.cluster_key).0
    }

    /// Renamed into place, so that the old one may still run.
    fn put(&self, tool: &str, script: &str) {
        let (path, new) = (self.at(tool), self.at("new"));
        let place = self.store.dir.path().display();
        samples::program(&new, format!("#!/bin/sh\nD={place}\n{script}\n").as_bytes());
        fs::rename(new, path).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.store.dir.path().join(name)
    }

    fn call(&self, action: &str, more: &str) -> Call {
        let input = format!("action={action}\n{}register=attrd\n{more}", self.store.place());
        call_of(&self.paths, false, &input)
    }

    fn off(&self, more: &str) -> Result<(), String> {
        let call = self.call("off", &format!("nodename=compute1\n{more}"));
        let target = call.target().unwrap();
        off::run(&call, &target).map_err(|e| e.to_string())
    }

    fn monitor_of_the_fencer(&self) -> Result<(), String> {
        let call = Call { from_fencer: true, ..self.call("monitor", "") };
        check::monitor(&call).map_err(|e| e.to_string())
    }

    fn registered(&self) -> Vec<Entry> {
        if fs::read_dir(self.at("register")).unwrap().next().is_none() {
            return Vec::new();
        }
        let works = Controller::new(WORKS);
        fs::remove_dir(works.at("register")).unwrap();
        std::os::unix::fs::symlink(self.at("register"), works.at("register")).unwrap();
        let limit = Instant::now() + Duration::from_secs(20);
        let (tools, keys) = (works.paths.tools.clone(), self.keys());
        let read = Access { tools, keys, ..Access::to(Register::Attrd, None) }.read(limit).unwrap();
        assert!(read.apart.is_empty() && !read.is_partial, "{read:?}");
        let is_fencing = |key: &&Key| matches!(key, Key::Fencing(_));
        let sealed = if self.keys().is_empty() { 0 } else { read.sound.keys().filter(is_fencing).count() };
        assert_eq!(read.sealed.iter().filter(is_fencing).count(), sealed, "{read:?}");
        read.sound.into_values().collect()
    }

    fn journalled(&self) -> Vec<Entry> {
        fencings(&self.store.path()).into_iter().map(Entry::Fencing).collect()
    }

    fn updates(&self) -> usize {
        fs::read_to_string(self.at("calls")).unwrap_or_default().lines().count()
    }
}

/// S1-23, S1-27: the same fencing in both, each published once.
#[test]
fn a_fencing_is_in_the_journal_and_in_the_register() {
    for controller in Controller::both(WORKS) {
        assert_eq!(controller.off(""), Ok(()));
        assert_eq!(controller.off(""), Ok(()));
        assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
        assert_eq!(controller.registered(), controller.journalled());
        assert_eq!((controller.registered().len(), controller.updates()), (2, 2));
    }
}

/// S1-26, S1-51: whatever the register does, the journal's copy is enough; the next call publishes missing fencings.
#[test]
fn a_register_that_fails_is_caught_up_with() {
    // The third answers and stores nothing, the last never answers: the agent waits for it as long as it has time.
    for broken in ["exit 102", "echo '<pacemaker-result>'", "echo '<pacemaker-result/>'", "exec sleep 1000"] {
        for controller in Controller::both(broken) {
            let call = controller.call("off", "nodename=compute1\n");
            let started = Instant::now() - Duration::from_secs(17);
            let call = Call { started, ..call };
            assert!(off::run(&call, &call.target().unwrap()).is_ok(), "{broken}");
            assert_eq!((controller.journalled().len(), controller.registered().len()), (1, 0), "{broken}");
            controller.put("attrd_updater", WORKS);
            assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
            assert_eq!(controller.registered(), controller.journalled(), "{broken}");
        }
    }
    let missing = Controller::new(WORKS);
    fs::remove_file(missing.at("attrd_updater")).unwrap();
    assert_eq!(missing.off(""), Ok(()));
    assert!(missing.monitor_of_the_fencer().unwrap_err().contains("attrd_updater"));
    missing.put("attrd_updater", WORKS);
    assert_eq!(missing.off(""), Ok(()), "the next off publishes it too");
    assert_eq!(missing.registered(), missing.journalled());
    assert_eq!(missing.registered().len(), 2);
}

/// The journal's lock is free while the cluster is waited for: the tool itself can take it.
#[test]
fn the_journal_is_closed_while_the_register_is_written() {
    let script = "for fd in /proc/$PPID/fd/*; do readlink \"$fd\"; done > \"$D/open\"\n";
    let controller = Controller::new(&format!("{script}{WORKS}"));
    assert_eq!(controller.off(""), Ok(()));
    let open = fs::read_to_string(controller.at("open")).unwrap();
    let journal = controller.store.path().display().to_string();
    assert!(!open.is_empty() && !open.contains(&journal), "{open}");
}

/// S1-26: without a journal the register is the copy; without both there is none, and `off` says so.
#[test]
fn without_a_journal_the_register_is_enough() {
    for controller in Controller::both(WORKS) {
        assert_eq!(controller.off("store=/proc/none/marks.db\n"), Ok(()));
        assert_eq!(controller.registered().len(), 1);
        let none = controller.off("store=/proc/none/marks.db\nregister=none\n").unwrap_err();
        assert!(none.contains("/proc/none"), "{none}");
        let broken = Controller::new("exit 102");
        let call = broken.call("off", "nodename=compute1\nstore=/proc/none/marks.db\n");
        let call = Call { started: Instant::now() - Duration::from_secs(17), ..call };
        let both = off::run(&call, &call.target().unwrap()).unwrap_err().to_string();
        assert!(both.contains("/proc/none") && both.contains("attrd_updater"), "{both}");
    }
}

/// A typo in the device's `store` makes no second journal: the mark's place is the register. Asked for, a new one is made.
#[test]
fn a_store_that_is_not_there_leads_to_the_register() {
    for controller in Controller::both(WORKS) {
        let directory = controller.store.directory();
        assert_eq!(controller.off("create_store=0\n"), Ok(()));
        assert!(controller.registered().len() == 1 && !directory.exists());
        let none = controller.off("create_store=0\nregister=none\n").unwrap_err();
        assert!(none.contains("there is no journal at") && none.contains("correct store"), "{none}");
        let monitor = controller.call("monitor", "create_store=0\n");
        assert!(check::monitor(&monitor).is_err() && !directory.exists());
        assert_eq!(controller.off(""), Ok(()));
        assert_eq!((controller.registered().len(), controller.journalled().len()), (2, 1));
        assert_eq!(controller.off("create_store=0\n"), Ok(()), "it exists now");
    }
}

/// S1-26: a newer release has changed the journal in the middle of an outage: the fencing stands in the register, and the journal is
/// as it was.
#[test]
fn a_journal_of_the_next_schema_leads_to_the_register() {
    for controller in Controller::both(WORKS) {
        assert_eq!(controller.off(""), Ok(()));
        let newer = Connection::open(controller.store.path()).unwrap();
        newer.pragma_update(None, "user_version", 2).unwrap();
        assert_eq!(controller.off(""), Ok(()));
        assert_eq!(controller.registered().len(), 2);
        newer.pragma_update(None, "user_version", 1).unwrap();
        assert_eq!(controller.journalled().len(), 1);
    }
}

/// A register that comes back while there is still no copy is used.
#[test]
fn without_a_journal_the_register_is_tried_again() {
    let once = "test -e \"$D/tried\" || { : > \"$D/tried\"; exit 102; }\n";
    let controller = Controller::new(&format!("{once}{WORKS}"));
    assert_eq!(controller.off("store=/proc/none/marks.db\n"), Ok(()));
    assert_eq!(controller.registered().len(), 1);
}

/// A journal that another process holds forever counts as none; the fencing is in the register, with the same id if both
/// are written after all.
#[test]
fn a_journal_that_is_held_leads_to_the_register() {
    for controller in Controller::both(WORKS) {
        assert_eq!(controller.off(""), Ok(()));
        let holder = Connection::open(controller.store.path()).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(controller.off(""), Ok(()));
        assert_eq!((controller.journalled().len(), controller.registered().len()), (1, 2));
    }
}

/// A disk that hangs: the register does not wait for it, and the whole agent ends in time.
#[test]
fn a_journal_that_hangs_leads_to_the_register() {
    if !have_injection() || !have_namespaces() {
        return;
    }
    let controller = Controller::new(WORKS);
    assert_eq!(controller.off(""), Ok(()));
    let world = World::new();
    world.file("usr/sbin/attrd_updater", fs::read(controller.at("attrd_updater")).unwrap(), 0o755);
    let hang = "strace -f -qq -o /dev/null -e inject=fdatasync,fsync:delay_enter=10000000";
    let input = format!("action=off\nnodename=compute1\n{}register=attrd\n", controller.store.place());
    let outcome = run(world.command(&format!("{hang} {AGENT}")), input.as_bytes());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("alone") && outcome.stderr.contains("check its disk"), "{outcome:?}");
    assert_eq!(controller.registered().len(), 2);
}

/// The monitor of the fencer fails where the register cannot be read, before it is needed.
#[test]
fn monitor_says_that_the_register_is_out_of_reach() {
    let controller = Controller::new("exit 102");
    assert!(controller.monitor_of_the_fencer().unwrap_err().contains("register attrd"));
    let shell = controller.call("monitor", "");
    assert!(check::monitor(&shell).is_ok(), "from a shell without a cluster it is a warning");
    controller.put("attrd_updater", WORKS);
    assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
}

impl Controller {
    /// All controllers were stopped: attrd forgets.
    fn lose_the_register(&self) {
        for file in fs::read_dir(self.at("register")).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
    }

    /// What an alerter on another controller writes.
    fn write(&self, entry: &Entry) {
        fs::write(self.at("register").join(format!("host-failure@{}", entry.key())), entry.value()).unwrap();
    }
}

/// B2: a fencing that was in the register and is lost is written again, once, marked so: its sender may be lost too.
#[test]
fn monitor_writes_again_what_the_register_has_lost() {
    for controller in Controller::both(WORKS) {
        assert_eq!(controller.off(""), Ok(()));
        assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
        controller.lose_the_register();
        let again: Vec<Entry> = fencings(&controller.store.path()).into_iter().map(Entry::Again).collect();
        for _ in 0..2 {
            assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
            assert_eq!(controller.registered(), again);
        }
        assert_eq!(controller.updates(), 2, "a fencing and its repetition");
        controller.lose_the_register();
        assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
        assert_eq!(controller.registered(), again, "however often it is lost");
    }
}

/// B2: an ended fencing never comes back, however often the register is lost.
#[test]
fn what_has_ended_is_not_written_again() {
    let controller = Controller::new(WORKS);
    assert_eq!(controller.off(""), Ok(()));
    let fencing = fencings(&controller.store.path()).remove(0);
    let (how, by) = (Settlement::Acknowledged, "ctl2".to_owned());
    controller.write(&Entry::Settled(Settled { mark: fencing.id.into(), how, at: Timestamp::now(), by }));
    assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
    for _ in 0..2 {
        controller.lose_the_register();
        assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
        assert_eq!(controller.registered(), []);
    }
}

/// A register that cannot be written when it was lost: the monitor of the fencer fails, and the next one writes it.
#[test]
fn what_cannot_be_written_again_is_written_by_the_next_monitor() {
    for controller in Controller::both(WORKS) {
        assert_eq!(controller.off(""), Ok(()));
        controller.lose_the_register();
        let mute = format!("case \" $* \" in *\" --update=\"*) exit 102 ;; esac\n{WORKS}");
        controller.put("attrd_updater", &mute);
        assert!(controller.monitor_of_the_fencer().unwrap_err().contains("register attrd"));
        controller.put("attrd_updater", WORKS);
        assert_eq!(controller.monitor_of_the_fencer(), Ok(()));
        assert_eq!(controller.registered().len(), 1);
    }
}

/// A power failure of a whole rack: as many calls as hosts at the same moment. The broken variant takes no turns, and
/// calls overwrite each other's page.
#[test]
fn calls_at_the_same_moment_keep_each_others_fencings() {
    let controller = Controller::keyed(WORKS);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| controller.off(""))).collect();
        calls.into_iter().for_each(|call| assert_eq!(call.join().unwrap(), Ok(())));
    });
    assert_eq!(controller.registered().len(), 8);
}

/// A key that others can read counts as none: the host is marked, and that is reported.
#[test]
fn a_key_that_cannot_be_used_keeps_nobody_from_being_marked() {
    let controller = Controller::keyed(WORKS);
    fs::set_permissions(controller.at("authkey"), fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(controller.off(""), Ok(()));
    assert!(controller.keys().is_empty());
    assert_eq!(controller.registered(), controller.journalled());
}
