//! The driver that docs/drivers/write.md takes as its example, with a real directory: taken, taken twice, refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::{fs, thread};

use alerter::config;
use drivers::event::TimeFormat;
use drivers::{Driver, Kind, Outcome};
use marks::time::Timestamp;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, geteuid, setfsuid};
use tempfile::TempDir;

use crate::route::{BODY, LONG, deliver, id, word};
use samples::left_out::leave_out;

/// `main.rs` gives it the modules that it would find in `crates/drivers/src`.
#[path = "../../../docs/examples/spool-driver.rs"]
#[expect(unreachable_pub, reason = "it is public where a driver stands among the others")]
mod spool;

use spool::{Options, Spool};

/// As the registry would have it.
const KINDS: &[Kind] = &[spool::KIND];

fn into(directory: &Path) -> Spool {
    Spool::new(Options { directory: directory.to_owned(), timeout: LONG, time_format: TimeFormat::Epoch })
}

async fn leave(directory: &Path) -> Outcome {
    deliver(&into(directory)).await
}

async fn word_of(directory: &Path) -> String {
    word(&leave(directory).await)
}

/// What lies in a directory, in the order of the names.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

fn file() -> String {
    format!("{}.json", id())
}

#[tokio::test]
async fn a_mark_becomes_one_file_with_the_stored_bytes() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(word_of(dir.path()).await, "acknowledged");
    assert_eq!(names(dir.path()), [file()]);
    assert_eq!(fs::read(dir.path().join(file())).unwrap(), BODY);
}

/// The answer to the first was lost: the second says the same, and changes nothing.
#[tokio::test]
async fn a_mark_that_is_there_is_acknowledged_again() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(word_of(dir.path()).await, "acknowledged");
    let first = fs::metadata(dir.path().join(file())).unwrap();
    assert_eq!(word_of(dir.path()).await, "acknowledged");
    let second = fs::metadata(dir.path().join(file())).unwrap();
    assert_eq!(first.modified().unwrap(), second.modified().unwrap());
    assert_eq!(names(dir.path()), [file()]);
}

/// The broken variants: a driver that writes over what is there, and one that compares no more than the length.
#[tokio::test]
async fn other_bytes_of_the_same_name_stay_as_they_are() {
    for other in [b"".to_vec(), b"another".to_vec(), vec![b'x'; BODY.len()], [BODY, b"\n"].concat()] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(file()), &other).unwrap();
        assert_eq!(word_of(dir.path()).await, "rejected other-bytes");
        assert_eq!(fs::read(dir.path().join(file())).unwrap(), other);
        assert_eq!(names(dir.path()), [file()]);
    }
}

#[tokio::test]
async fn what_is_no_file_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&dir.path().join(file()), nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert_eq!(word_of(dir.path()).await, "rejected other-bytes");
}

/// A driver that was killed leaves the beginning of a file under its other name.
#[tokio::test]
async fn half_a_file_is_never_taken_for_a_mark() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(format!(".{}.part", id())), &BODY[..7]).unwrap();
    assert_eq!(word_of(dir.path()).await, "acknowledged");
    assert_eq!(names(dir.path()), [file()]);
    assert_eq!(fs::read(dir.path().join(file())).unwrap(), BODY);
}

#[tokio::test]
async fn a_directory_that_is_gone_gets_the_mark_as_soon_as_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("spool");
    assert_eq!(word_of(&place).await, "unreachable missing");
    fs::write(&place, "").unwrap();
    assert_eq!(word_of(&place).await, "refused not-writable");
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    assert_eq!(word_of(&place).await, "acknowledged");
}

/// Runs this with a file system of its own on a directory, which nobody else sees: a mount namespace belongs to a thread
/// and to those that it starts.
fn on_a_small_disk(test: impl FnOnce(&Path) + Send + 'static) {
    if !geteuid().is_root() {
        return leave_out("private mounts are not possible here (root is needed)");
    }
    // Removed when the mount has gone with its thread.
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_owned();
    let ran = thread::spawn(move || small_disk(&place).map(|()| test(&place)));
    if let Err(why) = ran.join().unwrap() {
        leave_out(&format!("private mounts are not possible here ({why})"));
    }
}

fn small_disk(place: &Path) -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    mount(Some("none"), place, Some("tmpfs"), MsFlags::empty(), Some("size=64k"))
}

/// Exchanges on this thread.
fn here(exchange: impl Future<Output = String>) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(exchange)
}

/// A full disk passes: nothing of the attempt stays there, and the next one after it takes the mark.
#[test]
fn a_full_disk_is_asked_again() {
    on_a_small_disk(|place| {
        let filler = place.join("filler");
        fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
        assert_eq!(here(word_of(place)), "retry full");
        assert_eq!(names(place), ["filler"]);
        fs::remove_file(filler).unwrap();
        assert_eq!(here(word_of(place)), "acknowledged");
        assert_eq!(names(place), [file()]);
    });
}

#[test]
fn a_disk_that_is_read_only_waits_for_somebody() {
    on_a_small_disk(|place| {
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(Some("none"), place, None::<&str>, read_only, None::<&str>).unwrap();
        assert_eq!(here(word_of(place)), "refused not-writable");
    });
}

/// Root may write into every directory: a thread, with those that it starts, goes by the rights of another user.
#[test]
fn a_directory_of_others_waits_for_somebody() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let place = dir.path().to_owned();
    let asked = thread::spawn(move || {
        let _before = setfsuid(Uid::from_raw(65534));
        here(word_of(&place))
    });
    assert_eq!(asked.join().unwrap(), "refused not-writable");
}

#[test]
fn a_test_is_no_failure_of_a_host() {
    let body = into(Path::new("/")).test_body(&id(), Timestamp::now());
    assert!(String::from_utf8(body).unwrap().contains(r#""event_type":"test""#));
}

/// A configuration with this route, `DIR` being a directory with a plain `file` in it.
fn configured(route: &str) -> (TempDir, Result<config::Settings, Vec<String>>) {
    let dir = tempfile::tempdir().unwrap();
    let toml = dir.path().join("alerter.toml");
    fs::write(dir.path().join("file"), "").unwrap();
    fs::write(&toml, format!("[spool.a]\n{}", route.replace("DIR", dir.path().to_str().unwrap()))).unwrap();
    fs::set_permissions(&toml, fs::Permissions::from_mode(0o644)).unwrap();
    let place = format!("{}:", toml.display());
    let said = |problems: site::ConfigErrors| {
        problems.to_string().lines().map(|line| line.replace(&place, "")).collect()
    };
    let read = config::load_with(&toml, KINDS).map_err(said);
    (dir, read)
}

#[test]
fn a_directory_is_a_route() {
    let all =
        "directory = \"DIR\"\ntimeout = 300\ntime-format = \"rfc3339\"\nhosts = [\"a*\"]\nrequired = false";
    for (route, others) in [("directory = \"DIR\"", ""), (all, "\n[spool.b]\ndirectory = \"DIR\"")] {
        let (dir, settings) = configured(&format!("{route}{others}"));
        let driver = &settings.unwrap().routes[0].driver;
        assert_eq!((driver.kind(), driver.endpoint()), ("spool", dir.path().to_str().unwrap().to_owned()));
    }
}

#[test]
fn each_mistake_has_its_sentence() {
    let absolute = "2:13: must be the absolute path of a directory, such as /var/spool/recovery";
    for (route, expected) in [
        ("", "1:8: [spool.a] has no directory: set it to the one that takes the files"),
        ("directory = \"\"", absolute),
        ("directory = \"spool\"", absolute),
        ("directory = [\"DIR\"]", "2:13: must be text in quotes, not a list"),
        ("directory = \"DIR/file\"", "2:13: it is no directory: name one, or remove what is there"),
        ("directory = \"DIR/no\"", "2:13: the directory cannot be used (entity not found): make it first"),
        ("directory = \"DIR\"\ntimeout = 0", "3:11: must be from 1 to 300"),
        ("directory = \"DIR\"\ntime-format = \"x\"", "3:15: unknown word; known are: \"epoch\", \"rfc3339\""),
    ] {
        assert_eq!(configured(route).1.unwrap_err(), [expected], "{route}");
    }
}

/// The message for an unknown key lists the keys of every route, then the driver's own.
#[test]
fn another_key_is_unknown() {
    let said = configured("directory = \"DIR\"\nurl = \"x\"").1.unwrap_err().concat();
    assert!(said.starts_with("3:1: unknown key url in [spool.a]; known are: hosts, "), "{said}");
    assert!(said.ends_with(", directory, timeout, time-format"), "{said}");
}
