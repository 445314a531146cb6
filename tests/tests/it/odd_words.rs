//! Words and variables that are no text: each program says what is wrong, or does without them, and none panics.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::{Command, Output, Stdio};

use alerter::cli::Cli;
use clap::CommandFactory as _;
use tests::programs::built;
use tests::trials::Group;

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        a_word_that_is_no_text_is_a_mistake,
        a_variable_that_is_no_text_does_no_harm
    ])
}

fn odd() -> OsString {
    OsString::from_vec(b"a\xff".to_vec())
}

fn run(name: &str, words: &[OsString], variables: &[&str]) -> Output {
    // A word may be the name of a file that is written.
    let room = tempfile::tempdir().unwrap();
    let mut command = Command::new(built(name).unwrap());
    command.args(words).current_dir(&room).envs(variables.iter().map(|name| (name, odd())));
    command.stdin(Stdio::null()).output().unwrap()
}

/// A panic ends a program by SIGABRT, or with 101.
fn assert_no_panic(name: &str, words: &[OsString], variables: &[&str]) {
    let ended = run(name, words, variables);
    let said = String::from_utf8_lossy(&ended.stderr);
    let is_panic =
        said.contains("panicked") || ended.status.code().is_none_or(|code| code == 101 || code == 134);
    assert!(!is_panic, "{name} {words:?} {variables:?}: {}: {said}", ended.status);
}

/// Each command's path, with each of its options that has a value.
fn lines(command: &clap::Command, before: &[OsString]) -> Vec<Vec<OsString>> {
    let mut all = vec![before.to_vec()];
    let options = command.get_arguments().filter(|arg| arg.get_action().takes_values());
    let long = options.filter_map(clap::Arg::get_long);
    all.extend(long.map(|long| [before, &[OsString::from(format!("--{long}"))]].concat()));
    for inner in command.get_subcommands() {
        all.extend(lines(inner, &[before, &[inner.get_name().into()]].concat()));
    }
    all
}

/// The broken variant asks for the words as text when it says what is wrong with them.
fn a_word_that_is_no_text_is_a_mistake() {
    // A configuration that is not there: no command does anything.
    let nowhere = ["--config", "/nonexistent/alerter.toml"].map(OsString::from);
    for line in lines(&Cli::command(), &[]) {
        for format in [&[][..], &["--json".into()]] {
            assert_no_panic("nova-host-alerter", &[&nowhere, &line[..], &[odd()], format].concat(), &[]);
        }
    }
    let words = |all: &[&str]| all.iter().map(OsString::from).chain([odd()]).collect::<Vec<_>>();
    for line in [&[][..], &["-o"], &["-n"], &["--action"], &["-o", "off", "-n"], &["-o", "status", "--store"]]
    {
        let ended = run("fence_mark", &words(line), &[]);
        assert_eq!(ended.status.code(), Some(1), "{line:?}");
        assert_no_panic("fence_mark", &words(line), &[]);
    }
    assert_no_panic("alert_mark", &words(&[]), &[]);
    let usage = run("nova-host-alerter", &words(&["status"]), &[]);
    assert_eq!(usage.status.code(), Some(2), "{}", String::from_utf8_lossy(&usage.stderr));
}

/// Every variable that one of the programs reads.
fn a_variable_that_is_no_text_does_no_harm() {
    let alert = [
        "CRM_alert_kind",
        "CRM_alert_node",
        "CRM_alert_desc",
        "CRM_alert_rc",
        "CRM_alert_task",
        "CRM_alert_recipient",
        "CRM_alert_timestamp_epoch",
        "CRM_alert_timestamp_usec",
        "CRM_alert_version",
        "CRM_alert_node_sequence",
    ];
    let ours = [
        "JOURNAL_STREAM",
        "NOTIFY_SOCKET",
        "WATCHDOG_USEC",
        "WATCHDOG_PID",
        "SUDO_USER",
        "NO_COLOR",
        "TERM",
        "COLUMNS",
        "LANG",
        "LC_ALL",
        "RUST_LOG",
        "OS_CLOUD",
        "OS_AUTH_URL",
        "OS_PASSWORD",
        "HOME",
        "USER",
        "TZ",
        "PCMK_service",
        "PCMK_logfile",
        "OCF_RESKEY_config",
        "OCF_RESKEY_CRM_meta_timeout",
    ];
    let all: Vec<&str> = alert.iter().chain(&ours).copied().collect();
    for word in ["run", "status", "list", "check-config", "setup"] {
        let words = [OsString::from(word), "--config".into(), "/nonexistent/alerter.toml".into()];
        assert_no_panic("nova-host-alerter", &words, &all);
    }
    assert_no_panic("alert_mark", &[], &all);
    for kind in ["fencing", "node"] {
        let mut command = Command::new(built("alert_mark").unwrap());
        command.envs(all.iter().map(|name| (name, odd()))).env("CRM_alert_kind", kind);
        let ended = command.stdin(Stdio::null()).output().unwrap();
        assert!(ended.status.code().is_some_and(|code| code != 101), "{kind}: {}", ended.status);
    }
    assert_no_panic("fence_mark", &["-o", "metadata"].map(OsString::from), &all);
    assert_no_panic("fence_mark", &["-o", "status", "-n", "compute1"].map(OsString::from), &all);
    assert!(OsStr::from_bytes(b"a\xff").to_str().is_none(), "else nothing was tried");
}
