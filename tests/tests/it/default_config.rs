//! The configuration file that the packages ship: every key in it is one that the program knows, with a value it takes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use tempfile::TempDir;
use tests::installed::source;
use tests::programs::built;
use tests::trials::Group;

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    let tests = tests::trials![as_shipped_only_a_route_is_missing, every_commented_setting_is_valid];
    Group { cannot: None, tests }
}

fn check(text: &str) -> Output {
    let room = TempDir::new().unwrap();
    let file = room.path().join("alerter.toml");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    Command::new(built("nova-host-alerter").unwrap())
        .args(["check-config", "--config"])
        .arg(file)
        .output()
        .unwrap()
}

fn shipped() -> String {
    fs::read_to_string(source("packaging/alerter.toml")).unwrap()
}

/// Settings are commented out without a blank, sentences with one.
fn every_setting_of(text: &str) -> String {
    let settings = text.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| !line.is_empty());
    settings.filter(|line| !line.starts_with(' ')).fold(String::new(), |all, line| all + line + "\n")
}

/// A machine that was only installed has told nobody where to report: that is said, and nothing else.
fn as_shipped_only_a_route_is_missing() {
    let output = check(&shipped());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(78), "{output:?}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("no route is configured"), "{said}");
}

/// S1-48: what an administrator finds in the file is what the program reads.
fn every_commented_setting_is_valid() {
    let settings = every_setting_of(&shipped()).replace("ca-file = \"/etc", "#");
    let settings = settings.replace("/usr/local/libexec/tell-recovery", "/bin/true");
    let output = check(&settings);
    assert!(output.status.success(), "{settings}\n{output:?}");

    let misspelled = settings.replace("coalesce", "coalesec");
    assert_eq!(check(&misspelled).status.code(), Some(78), "a key that is not known must be seen");
}
