//! Journals that cannot be used: exit 1, one clear line, and the files stay unchanged.

use std::fs;

use rusqlite::Connection;

use crate::common::{AGENT, Outcome, Store, World, call, have_namespaces, run};

fn off(store: &Store) -> Outcome {
    call(&store.off("nodename=compute1"))
}

#[test]
fn a_file_that_is_no_journal_is_left_alone() {
    let store = Store::filled();
    for content in [
        "#!/bin/sh\necho not a database, but some script of somebody\n".repeat(20),
        String::new(),
        "short".to_owned(),
    ] {
        for suffix in ["-wal", "-shm"] {
            let _absent = fs::remove_file(store.directory().join(format!("marks.db{suffix}")));
        }
        fs::write(store.path(), &content).unwrap();
        off(&store).is_one_line_failure("compute1 is not marked: ");
        assert_eq!(fs::read_to_string(store.path()).unwrap(), content);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_reported() {
    let store = Store::new();
    for path in [
        "/proc/none/marks.db",
        "/dev/null/marks.db",
        "/",
        "relative/marks.db",
        "/nonexistent/deeper/marks.db",
    ] {
        call(&format!("action=off\nnodename=compute1\nstore={path}\ncreate_store=1\n"))
            .is_one_line_failure("compute1 is not marked: ");
    }
    assert!(!store.directory().exists());
}

/// A full disk: no mark is claimed, and the next call on the same journal succeeds when there is room again.
#[test]
fn a_full_disk_is_reported() {
    if !have_namespaces() {
        return;
    }
    let mut world = World::new();
    world.mount("mount -t tmpfs -o size=1m,mode=711 none /mnt");
    let program = "sh -c 'export S=\"action=off\nnodename=compute1\nregister=none\nstore=/mnt/j/marks.db\ncreate_store=1\n\"
        printf %s \"$S\" | $AGENT || exit 90
        dd if=/dev/zero of=/mnt/filler bs=4k 2>/dev/null; dd if=/dev/zero of=/mnt/filler2 bs=1 2>/dev/null
        n=0; while printf %s \"$S\" | $AGENT 2>/mnt/../tmp/none; do n=$((n+1)); test $n -lt 500 || exit 91; done
        printf %s \"$S\" | $AGENT; test $? -eq 1 || exit 92
        printf \"action=monitor\nregister=none\nstore=/mnt/j/marks.db\ncreate_store=1\n\" | $AGENT && exit 93
        rm /mnt/filler /mnt/filler2; printf %s \"$S\" | $AGENT || exit 94'";
    let mut command = world.command(&program.replace("/mnt/../tmp/none", "/dev/null"));
    command.env("AGENT", AGENT);
    let outcome = run(command, b"");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stderr.matches("no room").count(), 2, "{outcome:?}");
}

#[test]
fn a_read_only_mount_is_reported() {
    let Some(store) = Store::apart() else { return };
    call(&store.off("nodename=first")).is_silent_success();
    let mut world = World::new();
    let directory = store.directory();
    world.mount(&format!("mount --bind {0} {0}; mount -o remount,ro,bind {0}", directory.display()));
    run(world.command(AGENT), store.off("nodename=compute1").as_bytes())
        .is_one_line_failure("compute1 is not marked: ");
    run(world.command(AGENT), store.input("monitor").as_bytes()).is_one_line_failure("");
    assert_eq!(store.fencings().len(), 1);
}

/// Another process holds the write lock forever: the agent waits its five seconds, fails, and works again afterwards.
#[test]
fn a_lock_that_is_held_is_reported() {
    let store = Store::filled();
    let holder = Connection::open(store.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    off(&store).is_one_line_failure("another process has locked");
    drop(holder);
    off(&store).is_silent_success();
}
