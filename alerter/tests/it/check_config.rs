//! `check-config` and `run` of the built program: what an operator sees of a configuration, and the exit codes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const WRONG_CONFIGURATION: i32 = 78;

pub(crate) fn alerter(config: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nova-host-alerter"));
    command.args(words).arg("--config").arg(config).env("RUST_BACKTRACE", "1").output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A directory with a configuration that has this text.
fn site(config: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("alerter.toml");
    fs::write(&file, config).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    (directory, file)
}

/// S1-48: deployment can ask whether a configuration is good, and gets one line.
#[test]
fn a_good_configuration_is_one_line_and_zero() {
    let (directory, file) = site(
        "[hosts]\ndomain = \"x.org\"\non-shared-storage = true\n[http.recovery]\nurl = \"http://127.0.0.1:1/\"\n",
    );
    let store = format!("[store]\npath = \"{}/state/marks.db\"\n", directory.path().display());
    fs::write(&file, store + &fs::read_to_string(&file).unwrap()).unwrap();
    let answer = alerter(&file, &["check-config"]);
    assert_eq!(answer.status.code(), Some(0));
    assert_eq!(text(&answer.stdout).lines().count(), 1);
    let json: serde_json::Value =
        serde_json::from_slice(&alerter(&file, &["check-config", "--json"]).stdout).unwrap();
    assert_eq!((&json["valid"], &json["routes"]), (&true.into(), &1.into()));
}

/// S1-38: what one host may lack must not stop the alerter for all, so it is a warning where the hosts are not known. The broken
/// variants say it: of all hosts, or of each group.
#[test]
fn a_configuration_that_does_not_say_what_a_mark_needs_is_good_with_a_warning() {
    let warnings = |said: &str| {
        let (directory, file) = site(&format!("{said}[http.recovery]\nurl = \"http://127.0.0.1:1/\"\n"));
        let store = format!("[store]\npath = \"{}/state/marks.db\"\n", directory.path().display());
        fs::write(&file, store + &fs::read_to_string(&file).unwrap()).unwrap();
        let answer = alerter(&file, &["check-config"]);
        let lines = text(&answer.stdout);
        let answer = alerter(&file, &["check-config", "--json"]);
        let is_said = ["no-storage", "no-fqdn"].iter().any(|word| lines.contains(word));
        assert_eq!((answer.status.code(), lines.contains("warning: ")), (Some(0), is_said));
        let json: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
        json["warnings"].to_string()
    };
    let east = "[groups.east]\nhosts = [\"e*\"]\non-shared-storage = true\n";
    for silent in ["", "[hosts]\ndomain = \"x.org\"\n", east] {
        assert!(warnings(silent).contains("no-storage"), "{silent}");
    }
    let (named, rest) = ("[hosts]\ndomain = \"x.org\"\n", "[groups.default]\non-shared-storage = false\n");
    let each = "[hosts.names]\ncompute1 = \"compute1.x.org\"\n";
    let storage = "on-shared-storage = false\n";
    for said in
        [format!("{named}{storage}"), format!("{named}{east}{rest}"), format!("[hosts]\n{storage}{each}")]
    {
        assert_eq!(warnings(&said), "[]", "{said}");
    }
    for said in ["".to_owned(), east.to_owned(), format!("[hosts]\n{storage}")] {
        assert!(warnings(&said).contains("no-fqdn"), "{said}");
    }
}

/// Every problem is a line `FILE:LINE:COL: message`, for people, for `--json`, and where the daemon refuses to start.
#[test]
fn a_bad_configuration_is_a_line_for_each_problem_and_78() {
    let (_directory, file) =
        site("[http.a]\nurl = \"https://admin:s3kr1t@h/\"\ntimeuot = 3\n[log]\nlevel = s3kr1t\n");
    let checked = alerter(&file, &["check-config"]);
    let run = alerter(&file, &["run"]);
    let json = alerter(&file, &["check-config", "--json"]);
    for answer in [&checked, &run, &json] {
        assert_eq!(answer.status.code(), Some(WRONG_CONFIGURATION));
        let said = text(&answer.stdout) + &text(&answer.stderr);
        assert!(!said.contains("s3kr1t") && !said.contains("backtrace"), "{said}");
    }
    let at = |line: &str, place: &str| line.starts_with(&format!("{}:{place}: ", file.display()));
    for lines in [text(&checked.stdout), text(&run.stderr)] {
        let places: Vec<bool> =
            lines.lines().zip(["2:7", "3:1", "5:9"]).map(|(line, place)| at(line, place)).collect();
        assert_eq!(places, [true, true, true], "{lines}");
    }
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["valid"], json["problems"].as_array().unwrap().len()), (&false.into(), 3));
}
