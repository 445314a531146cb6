//! The completions, as the shells themselves complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use manual::COMPLETIONS;
use tempfile::TempDir;
use tests::installed::source;
use tests::trials::Named;

use super::options::options_of_the_alerter;
use super::{said, text};

/// Its tests.
pub(super) fn tests() -> Vec<Named> {
    tests::trials![bash_completes_what_clap_has, zsh_and_fish_complete_too]
}

/// What bash offers behind these words.
fn offered(script: &Path, words: &[&str]) -> BTreeSet<String> {
    let driver = r#"source "$1"; shift
        function=$(complete -p nova-host-alerter | sed 's/.*-F \([^ ]*\) .*/\1/')
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        "$function" nova-host-alerter "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let output = Command::new("bash")
        .args(["--norc", "-c", driver, "bash"])
        .arg(script)
        .arg("nova-host-alerter")
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Every command and every option of the built program, behind each command; a word that was begun, and a value of a few.
fn bash_completes_what_clap_has() {
    let script = source(COMPLETIONS).join("nova-host-alerter.bash");
    let mut of_command: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, option) in options_of_the_alerter() {
        let is_a_value = option.starts_with(char::is_uppercase);
        of_command.entry(path).or_default().extend((!is_a_value).then_some(option));
    }
    assert!(of_command.len() > 15, "{of_command:?}");
    for (path, options) in &of_command {
        let words: Vec<&str> = path.split(' ').filter(|word| !word.is_empty()).chain([""]).collect();
        let offered = offered(&script, &words);
        assert!(
            options.is_subset(&offered),
            "{path}: {:?}",
            options.difference(&offered).collect::<Vec<_>>()
        );
    }
    assert_eq!(offered(&script, &["sta"]), BTreeSet::from(["status".to_owned()]));
    assert_eq!(offered(&script, &["maintenance", "be"]), BTreeSet::from(["begin".to_owned()]));
    assert_eq!(offered(&script, &["list", "-o", "j"]), BTreeSet::from(["json".to_owned()]));

    let room = TempDir::new().unwrap();
    let old = room.path().join("old.bash");
    fs::write(&old, fs::read_to_string(&script).unwrap().replace(" --online", "")).unwrap();
    assert!(
        !offered(&old, &["check-config", ""]).contains("--online"),
        "a script without an option must be seen"
    );
}

/// fish completes by itself; zsh, which wants a terminal for that, reads its file.
fn zsh_and_fish_complete_too() {
    let directory = source(COMPLETIONS);
    let zsh = Command::new("zsh").arg("-n").arg(directory.join("_nova-host-alerter")).output().unwrap();
    assert!(zsh.status.success() && said(&zsh).is_empty(), "{zsh:?}");
    assert!(text(&format!("{COMPLETIONS}/_nova-host-alerter")).starts_with("#compdef nova-host-alerter\n"));
    let room = TempDir::new().unwrap();
    let ask = |line: &str| {
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", "source $argv[1]; complete --do-complete $argv[2]"]);
        let output = fish
            .arg(directory.join("nova-host-alerter.fish"))
            .arg(line)
            .env("HOME", room.path())
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        let words = lines.lines().map(|line| line.split('\t').next().unwrap().to_owned());
        // fish 4 offers what is like it too, such as --config.
        let typed = line.split(' ').next_back().unwrap();
        words.filter(|word| word.starts_with(typed)).collect::<Vec<_>>()
    };
    assert_eq!(ask("nova-host-alerter sta"), ["status"]);
    assert_eq!(ask("nova-host-alerter check-config --on"), ["--online"]);
    assert_eq!(ask("nova-host-alerter no-such-command --on"), [""; 0]);
}
