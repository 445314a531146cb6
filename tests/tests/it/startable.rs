//! `check-config` refuses each configuration with which `run` does not start.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;
use tempfile::TempDir;
use tests::installed;
use tests::programs::built;
use tests::trials::Group;

/// Its tests. Only for root does `check-config` open the journal.
pub(crate) fn group() -> Group {
    let tests =
        tests::trials![what_run_refuses_is_no_valid_configuration, what_may_be_missing_is_made_by_run];
    Group { cannot: installed::lacks_root(), tests }
}

/// A directory, and a configuration whose journal lies somewhere in it.
struct Place {
    room: TempDir,
    journal: PathBuf,
}

impl Place {
    fn new(journal: &str) -> Self {
        let room = TempDir::new().unwrap();
        let journal = room.path().join(journal);
        let text = format!(
            "[store]\npath = \"{}\"\nregister = \"none\"\n[hosts]\ndomain = \"example.org\"\non-shared-storage = true\n[log]\nto = \"stderr\"\n[http.recovery]\nurl = \"http://127.0.0.1:9/\"\n",
            journal.display()
        );
        let config = room.path().join("alerter.toml");
        fs::write(&config, text).unwrap();
        fs::set_permissions(config, Permissions::from_mode(0o600)).unwrap();
        Self { room, journal }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn command(&self, word: &str) -> Command {
        let mut command = Command::new(built("nova-host-alerter").unwrap());
        command.arg(word).arg("--config").arg(self.path("alerter.toml")).stdin(Stdio::null());
        command
    }

    fn said(&self, word: &str) -> Output {
        self.command(word).output().unwrap()
    }
}

fn directory(path: &Path, mode: u32) {
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn file(path: &Path, text: &str) {
    directory(path.parent().unwrap(), 0o711);
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// Of a newer release.
fn newer(path: &Path) {
    file(path, "");
    let journal = Connection::open(path).unwrap();
    journal.execute_batch("PRAGMA application_id = 1313358129; PRAGMA user_version = 2").unwrap();
}

/// Makes an obstacle for a daemon.
type Breaks = fn(&Place);

/// The journal's place, the obstacle, and the message.
const OBSTACLES: [(&str, Breaks, &str); 10] = [
    ("none/state/marks.db", |_| {}, "No such file or directory"),
    ("none/at/all/marks.db", |_| {}, "No such file or directory"),
    ("state/marks.db", |place| directory(&place.path("state"), 0o777), "others than its owner"),
    ("open/state/marks.db", |place| directory(&place.path("open"), 0o777), "others than its owner"),
    ("state/marks.db", |place| file(&place.path("state"), ""), "not a plain directory"),
    ("state/marks.db", |place| directory(&place.path("state/marks.db"), 0o711), "not a plain file"),
    (
        "state/marks.db",
        |place| file(&place.journal, "this is no journal, and never was one"),
        "no SQLite database",
    ),
    ("state/marks.db", |place| newer(&place.journal), "but this release supports only"),
    ("state/marks.db", |place| directory(&place.path("state/control.sock"), 0o711), "control socket"),
    (LONG, |_| {}, "which has"),
];

/// The journal's own path is short enough for everything; the control socket's beside it is not.
const LONG: &str =
    "a-directory-with-a-very-long-name-so-that-no-socket-can-be-made-in-it-by-anybody-on-this-system/db";

/// S1-32: with the same words, and with them first: the agent takes the first line for the reason of a start that failed, and
/// Pacemaker keeps 128 characters of it. A `check-config` that reads the files alone says `valid`, and the next start fails.
fn what_run_refuses_is_no_valid_configuration() {
    let mut passed = Vec::new();
    for (journal, breaks, why) in OBSTACLES {
        let place = Place::new(journal);
        breaks(&place);
        let run = place.said("run");
        let words = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(!run.status.success(), "{journal}: it runs");
        let check = place.said("check-config");
        let text = String::from_utf8_lossy(&check.stdout).into_owned();
        let first = text.lines().next().unwrap_or_default();
        if check.status.success() || !first.contains(why) || !words.contains(first) {
            passed.push(format!("{journal}, {why}: check-config says {text:?}, and run says {words:?}"));
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
}

/// The directory of the journal itself is made: that it is not there yet is no obstacle, and nothing is made for the check.
fn what_may_be_missing_is_made_by_run() {
    let place = Place::new("state/marks.db");
    let check = place.said("check-config");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    assert!(!place.path("state").exists());
}
