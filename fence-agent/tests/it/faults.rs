//! Deaths and faults at every system call of one `off` that writes: the shipped agent under `strace`.

use std::fs;
use std::process::Command;
use std::thread;

use crate::common::{AGENT, Outcome, QUIETLY, Store, call, have_injection, run};

/// Calls that change something outside of the process.
const WRITE_CLASS: &[&str] = &[
    "write",
    "pwrite64",
    "pwritev",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fallocate",
    "rename",
    "renameat2",
    "link",
    "unlink",
    "unlinkat",
    "mkdir",
    "chmod",
    "fchmod",
    "fchmodat",
];

/// Runs one `off` while something is done to its system calls.
fn off_with(store: &Store, injection: &str) -> Outcome {
    let mut command = Command::new("strace");
    let call = format!("trace={}", injection.split(':').next().unwrap_or_default());
    command.args(QUIETLY).args(["-e", &call, "-e", &format!("inject={injection}"), AGENT]);
    command.env_remove("PCMK_service");
    run(command, store.off("nodename=compute1").as_bytes())
}

/// What a run may have left behind: exit 0 says that the fencing is there, and there is never more than one.
fn verdict(exit: Option<i32>, fencings: usize) -> Result<(), &'static str> {
    match (exit, fencings) {
        (Some(0), 0) => Err("exit 0 without a fencing"),
        (Some(2), _) => Err("exit 2 says \"off\" to the fencer"),
        (_, 0 | 1) => Ok(()),
        _ => Err("more than one fencing"),
    }
}

#[test]
fn the_verdict_catches_what_it_is_for() {
    assert!(verdict(Some(0), 0).is_err() && verdict(None, 2).is_err() && verdict(Some(2), 1).is_err());
    assert!(
        [(Some(0), 1), (None, 0), (None, 1), (Some(1), 1)].iter().all(|(code, n)| verdict(*code, *n).is_ok())
    );
}

/// Kills the agent at every call of one name, on journals that `prepare` makes, until a run ends unharmed.
fn sweep(call_name: &str, prepare: fn() -> Store, before: usize) -> usize {
    for number in 1..1000 {
        let store = prepare();
        let outcome = off_with(&store, &format!("{call_name}:signal=KILL:when={number}"));
        let fencings = store.fencings().len() - before;
        let label = format!("{call_name} {number}: {outcome:?}, {fencings} fencings");
        assert_eq!(verdict(outcome.code, fencings), Ok(()), "{label}");
        call(&store.off("nodename=compute1")).is_silent_success();
        assert_eq!(store.fencings().len(), before + fencings + 1, "after a retry: {label}");
        if outcome.code == Some(0) {
            return number - 1;
        }
    }
    panic!("{call_name} never ended");
}

fn sweep_all(prepare: fn() -> Store, before: usize) -> usize {
    let sweeps: Vec<_> =
        WRITE_CLASS.iter().map(|name| thread::spawn(move || sweep(name, prepare, before))).collect();
    sweeps.into_iter().map(|sweep| sweep.join().expect("the sweep holds")).sum()
}

/// S1-16, conformance 21 and 34: killed at any instant there is no fencing or exactly one, and a retry marks; the same while the
/// journal itself is being made.
#[test]
fn killed_at_any_write_it_leaves_all_or_nothing() {
    if !have_injection() {
        return;
    }
    for (prepare, before, least) in [(Store::filled as fn() -> Store, 1, 10), (Store::new, 0, 30)] {
        let points = sweep_all(prepare, before);
        assert!(points > least, "only {points} places to die were found");
    }
}

/// Every file that an `off` writes to, and every sync, in order.
fn writes(store: &Store) -> Vec<String> {
    let trace = store.dir.path().join("trace");
    let mut command = Command::new("strace");
    let calls = ["-f", "-qq", "-y", "-e", "trace=pwrite64,fsync,fdatasync", "-o"];
    command.args(calls).arg(&trace).arg(AGENT).env_remove("PCMK_service");
    run(command, store.off("nodename=compute1").as_bytes()).is_silent_success();
    samples::calls(&fs::read_to_string(trace).unwrap())
}

/// What is missing for a mark that survives a power cut: the log synced after its last write, then the directory.
fn undurable(writes: &[String], directory: &str) -> Option<&'static str> {
    let last = |found: &dyn Fn(&str) -> bool| writes.iter().rposition(|line| found(line));
    let is_sync = |line: &str| line.starts_with("fsync(") || line.starts_with("fdatasync(");
    let written = last(&|line| line.starts_with("pwrite64(") && line.contains("marks.db-wal>"));
    let synced = last(&|line| is_sync(line) && line.contains("marks.db-wal>"));
    let directory = last(&|line| is_sync(line) && line.contains(&format!("{directory}>")));
    match (written, synced, directory) {
        (None, ..) => Some("nothing was written"),
        (written, synced, _) if synced < written => Some("the log is not synced"),
        (_, synced, directory) if directory < synced => Some("the directory is not synced"),
        _ => None,
    }
}

/// S1-23: exit 0 comes after the log and the directory are on disk.
#[test]
fn success_comes_after_the_syncs() {
    let Some(store) = Store::traced() else { return };
    let directory = store.directory().display().to_string();
    let writes = writes(&store);
    assert_eq!(undurable(&writes, &directory), None, "{writes:?}");
    // An agent that leaves out one of them (as with `synchronous=OFF`) must be caught.
    let without = |needle: &str| {
        writes.iter().filter(|l| !(l.contains("sync(") && l.contains(needle))).cloned().collect::<Vec<_>>()
    };
    assert_eq!(undurable(&without("marks.db-wal>"), &directory), Some("the log is not synced"));
    let unsynced = without(&format!("{directory}>"));
    assert_eq!(undurable(&unsynced, &directory), Some("the directory is not synced"));
}

/// A disk that fails a sync: the log's, and the directory's, which SQLite itself would pass over.
#[test]
fn a_failed_sync_is_a_failure() {
    let Some(probe) = Store::traced() else { return };
    let syncs: Vec<String> = writes(&probe).into_iter().filter(|line| line.contains("sync(")).collect();
    let directory = format!("{}>", probe.directory().display());
    assert!(syncs.last().unwrap().contains(&directory), "{syncs:?}");
    for (number, line) in (1..).zip(&syncs) {
        let store = Store::filled();
        // From the log's sync on one failure is enough; SQLite asks for the directory once before the agent does.
        let when = if line.contains("-wal>") { number.to_string() } else { format!("{number}+") };
        let outcome = off_with(&store, &format!("fsync:error=EIO:when={when}"));
        assert_eq!(outcome.code, Some(1), "{line}: {outcome:?}");
        assert!(outcome.stderr.starts_with("fence_mark: compute1 is not marked: "), "{outcome:?}");
        call(&store.off("nodename=compute1")).is_silent_success();
    }
    let store = Store::filled();
    let last = off_with(&store, &format!("fsync:error=EIO:when={}", syncs.len()));
    assert_eq!(last.code, Some(1), "the agent's own sync of the directory: {last:?}");
}
