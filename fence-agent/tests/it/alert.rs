//! The real `alert_mark`, run as Pacemaker runs it: as a user without rights, with an environment and nothing else.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use nix::sys::stat::Mode;
use nix::unistd::{Uid, User, chown, geteuid, mkfifo};
use pacemaker::evidence::{self, Directory, Reading};
use tempfile::TempDir;

use crate::common::{Outcome, QUIETLY, have_injection, run};
use samples::left_out::{lacks, leave_out};

const OPERATION: &str = "e19eab25-6556-4644-89e9-f9bf9b151b87";

/// `nobody`: a user who is not the directory's owner.
const NOBODY: u32 = 65534;

/// An evidence directory as the package makes it, and the agent in a place where its user can run it.
struct Post {
    room: TempDir,
    owner: Uid,
}

impl Post {
    /// `None`, with the reason, if this machine cannot run programs as another user.
    fn new() -> Option<Self> {
        if !geteuid().is_root() {
            leave_out("only root can run programs as another user");
            return None;
        }
        if lacks(&["setpriv"]) {
            return None;
        }
        let cluster = User::from_name(evidence::OWNER).unwrap();
        let owner = cluster.map_or(Uid::from_raw(NOBODY - 1), |user| user.uid);
        let room = tempfile::tempdir().unwrap();
        fs::set_permissions(room.path(), Permissions::from_mode(0o711)).unwrap();
        let post = Self { room, owner };
        // The build directory may be closed to that user.
        samples::program(&post.agent(), fs::read(env!("CARGO_BIN_EXE_alert_mark")).unwrap());
        DirBuilder::new().mode(0o700).create(post.directory()).unwrap();
        chown(&post.directory(), Some(owner), None).unwrap();
        Some(post)
    }

    fn agent(&self) -> PathBuf {
        self.room.path().join("alert_mark")
    }

    fn directory(&self) -> PathBuf {
        self.room.path().join("evidence")
    }

    /// The agent, under a tracer if given, as that user and with the environment of a real alert.
    fn command_of(&self, user: Uid, tracer: &[&str]) -> Command {
        let user = user.to_string();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"])
            .args(tracer)
            .arg(self.agent())
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .envs([
                ("CRM_alert_kind", "fencing"),
                ("CRM_alert_node", "compute1"),
                ("CRM_alert_task", "st_notify_fence"),
                ("CRM_alert_rc", "0"),
                ("CRM_alert_timestamp_epoch", "1795188458"),
                ("CRM_alert_timestamp_usec", "012345"),
            ])
            .env("CRM_alert_desc", sentence("reboot", "OK"))
            .env("CRM_alert_recipient", self.directory());
        command
    }

    fn command(&self) -> Command {
        self.command_of(self.owner, &[])
    }

    fn alert(&self) -> Outcome {
        run(self.command(), b"")
    }

    /// What root reads in the directory.
    fn reading(&self) -> Reading {
        Directory::open(&self.directory(), self.owner).unwrap().read_all().unwrap()
    }

    /// Every name in the directory, drafts too.
    fn names(&self) -> Vec<String> {
        names(&self.directory())
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn sentence(action: &str, status: &str) -> String {
    format!(
        "Operation {action} of compute1 by ctl3 for pacemaker-controld.64@ctl3: {status} (ref={OPERATION})"
    )
}

#[test]
fn a_fencing_leaves_one_file_for_its_owner_alone() {
    let Some(post) = Post::new() else { return };
    post.alert().is_silent_success();
    let reading = post.reading();
    let [found] = reading.sound.as_slice() else { panic!("{reading:?}") };
    assert_eq!(found.evidence.operation.to_string(), OPERATION);
    assert_eq!((found.evidence.target.as_str(), found.evidence.outcome.rc()), ("compute1", 0));
    assert_eq!(post.names(), [format!("001795188458012345-{OPERATION}.alert")]);
    let file = post.directory().join(found.name.as_str()).metadata().unwrap();
    assert_eq!((file.mode() & 0o7777, file.uid(), file.nlink()), (0o600, post.owner.as_raw(), 1));
}

#[test]
fn a_cluster_node_that_joins_leaves_one_file() {
    let Some(post) = Post::new() else { return };
    for (node, id, desc) in [("ctl3", "3", "lost"), ("compute1", "0", "member"), ("ctl3", "3", "member")] {
        let mut command = post.command();
        command.env("CRM_alert_kind", "node").env("CRM_alert_node", node);
        command.env("CRM_alert_nodeid", id).env("CRM_alert_desc", desc);
        run(command, b"").is_silent_success();
    }
    let reading = post.reading();
    let [found] = reading.joins.as_slice() else { panic!("{reading:?}") };
    assert_eq!((found.join.node.as_str(), found.join.at.micros()), ("ctl3", 1_795_188_458_012_345));
    assert_eq!(post.names(), [found.name.as_str()]);
    assert!(reading.sound.is_empty() && reading.broken.is_empty());
}

#[test]
fn other_alerts_leave_nothing_and_say_nothing() {
    let Some(post) = Post::new() else { return };
    for kind in ["node", "resource", "attribute", ""] {
        let mut command = post.command();
        command.env("CRM_alert_kind", kind);
        run(command, b"").is_silent_success();
    }
    let mut bare = Command::new(post.agent());
    bare.env_clear();
    run(bare, b"").is_silent_success();
    assert!(post.names().is_empty());
}

#[test]
fn a_hostile_alert_is_one_line_and_no_file() {
    let Some(post) = Post::new() else { return };
    let long = "x".repeat(100 * 1024);
    let odd = OsStr::from_bytes(b"comp\xff\xfeute1");
    let table: [(&str, &OsStr, &str); 7] = [
        ("CRM_alert_node", "../../etc/passwd".as_ref(), "its node"),
        ("CRM_alert_node", odd, "its node"),
        ("CRM_alert_node", long.as_ref(), "its node"),
        ("CRM_alert_desc", long.as_ref(), "description"),
        ("CRM_alert_desc", "two\nlines\u{1b}[2J".as_ref(), "description"),
        ("CRM_alert_rc", odd, "result code"),
        ("CRM_alert_recipient", "admin@example.org".as_ref(), "recipient"),
    ];
    for (name, value, needle) in table {
        let mut command = post.command();
        command.env(name, value);
        run(command, b"").fails_with_one_line("alert_mark", needle);
    }
    assert!(post.names().is_empty());
}

/// Who asked and what was said of it may be in any encoding: that costs no evidence of a fencing.
#[test]
fn a_byte_that_is_no_text_costs_no_evidence() {
    let Some(post) = Post::new() else { return };
    let good = sentence("reboot", "OK");
    let free =
        ["by ctl", "for pacemaker", "@ctl", ": OK"].map(|words| good.find(words).unwrap() + words.len());
    for (number, at) in free.into_iter().enumerate() {
        let mut bytes = good.clone().into_bytes();
        let odd: &[u8] = if at == free[3] { b" (\xff)" } else { b"\xff" };
        bytes.splice(at..at, odd.iter().copied());
        let mut command = post.command();
        command.env("CRM_alert_timestamp_usec", number.to_string());
        command.env("CRM_alert_desc", OsStr::from_bytes(&bytes));
        run(command, b"").is_silent_success();
        assert_eq!(post.names().len(), number + 1, "{}", String::from_utf8_lossy(&bytes));
    }
}

/// It makes no directory: otherwise anybody could make it first.
#[test]
fn a_directory_that_cannot_be_used_is_a_failure() {
    let Some(post) = Post::new() else { return };
    let with = |recipient: &Path| {
        let mut command = post.command();
        command.env("CRM_alert_recipient", recipient);
        run(command, b"")
    };
    with(&post.room.path().join("missing")).fails_with_one_line("alert_mark", "there is no directory");
    let link = post.room.path().join("link");
    symlink(post.directory(), &link).unwrap();
    with(&link).fails_with_one_line("alert_mark", "not a plain directory");
    fs::set_permissions(post.directory(), Permissions::from_mode(0o500)).unwrap();
    post.alert().fails_with_one_line("alert_mark", "chmod 0700");
    fs::set_permissions(post.directory(), Permissions::from_mode(0o777)).unwrap();
    post.alert().fails_with_one_line("alert_mark", "chmod 0700");
    assert!(post.names().is_empty() && !post.room.path().join("missing").exists());
}

/// Root refuses a directory that anybody else could have written, also one that `alert_mark` did write.
#[test]
fn the_reader_refuses_a_directory_of_others() {
    let Some(post) = Post::new() else { return };
    post.alert().is_silent_success();
    let kind = || Directory::open(&post.directory(), post.owner).map_or_else(|e| e.kind(), |_| "none");
    assert_eq!(kind(), "none");
    fs::set_permissions(post.directory(), Permissions::from_mode(0o770)).unwrap();
    assert_eq!(kind(), "insecure");
    fs::set_permissions(post.directory(), Permissions::from_mode(0o700)).unwrap();
    chown(&post.directory(), Some(Uid::from_raw(NOBODY)), None).unwrap();
    assert_eq!(kind(), "insecure");
    chown(&post.directory(), Some(Uid::from_raw(0)), None).unwrap();
    assert_eq!(kind(), "insecure");
}

/// Files that the cluster's user plants beside an event are set apart, untouched, and the event is read all the same.
#[test]
fn what_is_planted_is_set_apart() {
    let Some(post) = Post::new() else { return };
    post.alert().is_silent_success();
    let place = |n: u64| post.directory().join(format!("{n:018}-{OPERATION}.alert"));
    let outside = post.room.path().join("outside");
    fs::write(&outside, b"root's").unwrap();
    symlink("/etc/shadow", place(1)).unwrap();
    fs::hard_link(&outside, place(2)).unwrap();
    mkfifo(&place(3), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    File::create(place(4)).unwrap().set_len(1 << 40).unwrap();
    fs::write(place(5), b"{}").unwrap();
    for number in 3..=5 {
        chown(&place(number), Some(post.owner), None).unwrap();
    }
    // Root's own file, with a single name.
    fs::write(place(6), b"{}").unwrap();
    let reading = post.reading();
    let kinds: Vec<_> = reading.broken.iter().map(|broken| broken.flaw.kind()).collect();
    assert_eq!(kinds, ["not-plain", "owner", "not-plain", "too-large", "content", "owner"]);
    assert_eq!(reading.sound.len(), 1);
    assert_eq!(post.names().len(), 7);
    assert_eq!(fs::read(&outside).unwrap(), b"root's");
}

/// Calls of the agent that change something outside of the process.
const WRITE_CLASS: &[&str] =
    &["openat", "write", "fsync", "fdatasync", "rename", "renameat", "renameat2", "unlinkat", "close"];

fn traced(post: &Post, call: &str, injection: &str) -> Outcome {
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{injection}"));
    let tracer = [&["strace"], &QUIETLY[..], &["-e", &trace, "-e", &inject]].concat();
    run(post.command_of(post.owner, &tracer), b"")
}

/// What a run may have left for the reader: no event or a whole one, and after exit 0 that one.
fn verdict(exit: Option<i32>, reading: &Reading) -> Result<(), &'static str> {
    match (exit, reading.sound.len(), reading.broken.len()) {
        (_, _, 1..) => Err("a part of a file"),
        (Some(0), 0, 0) => Err("exit 0 without a file"),
        (_, 0 | 1, 0) => Ok(()),
        _ => Err("more than one file"),
    }
}

/// Kills the agent at every call of one name, until a run ends unharmed; then the same event is written again.
fn sweep(call: &str) -> usize {
    for number in 1..1000 {
        let post = Post::new().expect("it was there before the sweep");
        let outcome = traced(&post, call, &format!("signal=KILL:when={number}"));
        assert_eq!(verdict(outcome.code, &post.reading()), Ok(()), "{call} {number}: {outcome:?}");
        post.alert().is_silent_success();
        assert_eq!(post.reading().sound.len(), 1, "after another alert: {call} {number}");
        if outcome.code == Some(0) {
            return number - 1;
        }
    }
    panic!("{call} never ended");
}

/// After a kill at any instant there is no evidence or a whole one, and nothing that blocks the next.
#[test]
fn killed_at_any_write_it_leaves_all_or_nothing() {
    if Post::new().is_none() || !have_injection() {
        return;
    }
    let sweeps: Vec<_> = WRITE_CLASS.iter().map(|call| thread::spawn(|| sweep(call))).collect();
    let points: usize = sweeps.into_iter().map(|sweep| sweep.join().expect("the sweep holds")).sum();
    assert!(points > 10, "only {points} places to die were found");
}

/// The sweep must catch a writer that puts the event under its name at once.
#[test]
fn the_verdict_catches_what_it_is_for() {
    let Some(post) = Post::new() else { return };
    assert_eq!(verdict(Some(0), &post.reading()), Err("exit 0 without a file"));
    assert_eq!(verdict(None, &post.reading()), Ok(()));
    post.alert().is_silent_success();
    assert_eq!(verdict(None, &post.reading()), Ok(()));
    let file = post.directory().join(&post.names()[0]);
    File::options().write(true).open(file).unwrap().set_len(30).unwrap();
    assert_eq!(verdict(None, &post.reading()), Err("a part of a file"));
}

/// A full or failing disk, at every call: exit 1 with one line and no draft left, or no harm.
#[test]
fn a_failing_disk_is_a_failure() {
    if Post::new().is_none() || !have_injection() {
        return;
    }
    for (call, error, at_least) in [("write", "ENOSPC", 1), ("fsync", "EIO", 2), ("renameat", "EROFS", 1)] {
        let mut failures = 0;
        for number in 1..100 {
            let post = Post::new().expect("it was there before");
            let outcome = traced(&post, call, &format!("error={error}:when={number}"));
            assert_eq!(verdict(outcome.code, &post.reading()), Ok(()), "{call} {number}: {outcome:?}");
            assert!(post.names().iter().all(|name| !name.starts_with('.')), "{call} {number}");
            if outcome.code == Some(0) {
                break;
            }
            failures += 1;
            // Where no process can write, the one that is waited for cannot say it either.
            if call != "write" {
                outcome.fails_with_one_line("alert_mark", "compute1 was not written");
            }
        }
        assert!(failures >= at_least, "{call}: {failures}");
    }
}

/// What is missing for evidence that survives a power cut: the file synced before its rename, the directory after it.
fn undurable(calls: &[String]) -> Option<&'static str> {
    let at = |name: &str, needle: &str| {
        calls.iter().rposition(|line| line.contains(name) && line.contains(needle))
    };
    let (synced, renamed) = (at("fsync(", ".alert"), at("renameat", ".alert"));
    match (synced, renamed, at("fsync(", "evidence>)")) {
        (None, ..) => Some("the file is not synced"),
        (_, None, _) => Some("the file gets no name"),
        (synced, renamed, _) if synced > renamed => Some("the file is synced too late"),
        (_, renamed, directory) if directory < renamed => Some("the directory is not synced"),
        _ => None,
    }
}

#[test]
fn success_comes_after_the_syncs() {
    let Some(post) = Post::new() else { return };
    if !have_injection() {
        return;
    }
    let trace = post.room.path().join("trace");
    File::create(&trace).unwrap();
    chown(&trace, Some(post.owner), None).unwrap();
    let calls = "trace=fsync,rename,renameat,renameat2";
    let tracer = ["strace", "-f", "-qq", "-y", "-e", calls, "-o", trace.to_str().unwrap()];
    run(post.command_of(post.owner, &tracer), b"").is_silent_success();
    let calls = samples::calls(&fs::read_to_string(trace).unwrap());
    assert_eq!(undurable(&calls), None, "{calls:#?}");
    // A writer that leaves one of them out must be caught.
    let without = |needle: &str| {
        calls.iter().filter(|l| !(l.starts_with("fsync") && l.contains(needle))).cloned().collect::<Vec<_>>()
    };
    assert_eq!(undurable(&without(".alert")), Some("the file is not synced"), "{calls:#?}");
    assert_eq!(undurable(&without("evidence>)")), Some("the directory is not synced"), "{calls:#?}");
}
