//! The pages for contributors and for security: every name in them exists in this repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::installed::source;
use tests::programs::built;
use tests::trials::Group;

/// Its tests. They need nothing.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        every_threat_names_tests_that_exist,
        a_threat_without_a_test_and_a_test_that_is_gone_are_caught,
        what_a_contributor_is_sent_to_exists,
        each_crate_knows_those_below_it,
        every_command_that_is_advised_stands_on_the_page,
        what_tests_say_they_show_is_required,
    ])
}

/// A file of the sources by its path.
pub(crate) fn page(name: &str) -> String {
    fs::read_to_string(source(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The files and directories at the root of the sources.
pub(crate) fn at_the_root() -> Vec<PathBuf> {
    fs::read_dir(source("")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Every file of the sources below a directory.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(directories.iter().flat_map(|inner| files_below(inner))).collect()
}

/// The names of all functions of the project, the tests among them.
fn functions() -> BTreeSet<String> {
    let files = ["alerter", "crates", "fence-agent", "tests"].map(|part| files_below(&source(part))).concat();
    let sources = files.into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "rs"));
    let mut names = BTreeSet::new();
    for text in sources.map(|path| fs::read_to_string(path).unwrap()) {
        let behind = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
        names.extend(behind.map(str::to_owned));
    }
    names
}

/// The crates of this project that a crate is built with.
fn own_parts(manifest: &str) -> BTreeSet<&str> {
    let (_, behind) = manifest.split_once("[dependencies]\n").unwrap();
    let needed =
        behind.split("\n[").next().unwrap().lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    needed.filter(|name| PARTS.iter().any(|(part, _)| part.ends_with(name))).collect()
}

/// Which crate may depend on which. Pure rules depend on none; the agent is built without the alerter, and the alerter without the agent.
/// The simulator knows no alerter but by its own trait.
const PARTS: [(&str, &[&str]); 11] = [
    ("crates/marks", &[]),
    ("crates/site", &["marks", "register"]),
    ("crates/drivers", &["marks", "site"]),
    ("crates/journal", &["marks"]),
    ("crates/pacemaker", &["marks"]),
    ("crates/register", &["marks", "pacemaker"]),
    ("crates/setup", &["marks", "pacemaker", "register"]),
    ("fence-agent", &["journal", "marks", "pacemaker", "register", "site"]),
    ("compute-health", &[]),
    ("tests/simulator", &["marks"]),
    ("alerter", &["drivers", "journal", "marks", "pacemaker", "register", "setup", "site"]),
];

/// S1-11: the rules that agent and alerter share are in crates of their own.
fn each_crate_knows_those_below_it() {
    for (part, needs) in PARTS {
        assert_eq!(
            own_parts(&page(&format!("{part}/Cargo.toml"))),
            needs.iter().copied().collect(),
            "{part}"
        );
    }
    let entangled = page("fence-agent/Cargo.toml")
        .replace("[dependencies]\n", "[dependencies]\nalerter.workspace = true\n");
    assert!(own_parts(&entangled).contains("alerter"), "the broken variant is seen");
}

/// S1-12: the list of requirements knows every id that a test names; that it fails for one that it does not know is its own test.
fn what_tests_say_they_show_is_required() {
    let listed = Command::new(built("requirements").unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.status.success() && said.contains("core: "), "{said}");
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What is wrong with the table of threats.
fn faults(page: &str, functions: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for number in 1..=24 {
        let row = page.lines().find(|line| line.starts_with(&format!("| T{number}: ")));
        let Some(shown) = row.and_then(|row| row.split('|').nth(3)) else {
            found.push(format!("T{number} is missing"));
            continue;
        };
        let names: Vec<_> = quoted(shown).filter(|name| name.contains('_')).collect();
        // A tool of the check shows what is linked in, not a test.
        if names.is_empty() && number != 22 {
            found.push(format!("T{number} names no test"));
        }
        let gone = names.into_iter().filter(|name| !functions.contains(*name));
        found.extend(gone.map(|name| format!("T{number}: there is no test {name}")));
    }
    found
}

/// Each of the threats T1 to T24 has its row, and each test that it names is there.
fn every_threat_names_tests_that_exist() {
    assert_eq!(faults(&page("SECURITY.md"), &functions()), [""; 0]);
    assert!(page(".ci/run").contains("step linked tests/linked.py"), "what T22 names");
}

/// The broken variants of the page.
fn a_threat_without_a_test_and_a_test_that_is_gone_are_caught() {
    let (page, functions) = (page("SECURITY.md"), functions());
    let renamed = page.replace("`no_failure_shows_a_secret`", "`no_failure_shows_any_secret`");
    assert_eq!(faults(&renamed, &functions), ["T10: there is no test no_failure_shows_any_secret"]);
    let without = page.replace("| T7: ", "| T77: ");
    assert_eq!(faults(&without, &functions), ["T7 is missing"]);
}

/// Paths, targets of make and the scenario that CONTRIBUTING.md names.
fn what_a_contributor_is_sent_to_exists() {
    let (page, makefile) = (page("CONTRIBUTING.md"), page("Makefile"));
    let paths =
        quoted(&page).filter(|word| word.contains('/') && !word.contains("WORD") && !word.contains(' '));
    for path in paths {
        assert!(source(path).exists(), "{path} is not there");
    }
    for line in page.lines().filter_map(|line| line.trim().strip_prefix("make ")) {
        let target = line.split_whitespace().next().unwrap();
        assert!(makefile.contains(&format!("\n{target}:")), "make {target} is not there");
    }
    let known = "the_fencer_calls_power_mark_power";
    assert!(functions().contains(known) && page.contains(known));
}

/// Programs that can change something.
const CHANGERS: &[&str] = &[
    "attrd_updater",
    "chmod",
    "chown",
    "cibadmin",
    "crm",
    "crm_attribute",
    "crm_resource",
    "install",
    "kill",
    "nova-host-alerter",
    "openstack",
    "pcs",
    "rm",
    "stonith_admin",
    "systemctl",
];
/// What only reads of them.
const READERS: &[&str] = &[
    "cibadmin --query --scope fencing-topology",
    "nova-host-alerter check-config",
    "nova-host-alerter history",
    "nova-host-alerter history --limit -o json",
    "nova-host-alerter history --summary",
    "nova-host-alerter list",
    "nova-host-alerter list --all",
    "nova-host-alerter maintenance list",
    "nova-host-alerter setup",
    "nova-host-alerter setup --check",
    "nova-host-alerter show",
    "nova-host-alerter status",
    "nova-host-alerter status --json",
    "openstack cluster action list",
    "openstack notification list",
    "openstack notification show",
    "openstack workflow execution list",
    "stonith_admin --history",
];

/// What a command is, whatever it is given: `stonith_admin --reboot`, `chmod`; all words before the first name of something, a
/// number beside a name of an option left out.
fn stem(command: &str) -> Option<String> {
    let (program, behind) = command.split_once(' ')?;
    if ["chmod", "chown", "install"].contains(&program) {
        return Some(program.to_owned());
    }
    let is_number = |word: &&str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.is_empty();
    let words: Vec<&str> = behind.split(' ').filter(|word| !is_number(word)).take_while(is_word).collect();
    (!words.is_empty()).then(|| format!("{program} {}", words.join(" ")))
}

/// The commands that a text has between backticks and that change something.
pub(crate) fn changers(text: &str) -> BTreeSet<String> {
    let is_changer = |text: &&str| CHANGERS.contains(&text.split(' ').next().unwrap_or_default());
    let all: BTreeSet<String> = text.lines().flat_map(quoted).filter(is_changer).filter_map(stem).collect();
    all.into_iter().filter(|command| !READERS.contains(&command.as_str())).collect()
}

/// The sources of the programs without their comments and tests.
fn programs() -> Vec<String> {
    let files = ["alerter/src", "fence-agent/src", "crates"].map(|part| files_below(&source(part))).concat();
    let is_program =
        |path: &&PathBuf| !path.ends_with("tests.rs") && !path.components().any(|c| c.as_os_str() == "tests");
    let code = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let tests = ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub(super) mod "];
        let own =
            tests.iter().fold(text.as_str(), |text, tests| text.split(tests).next().unwrap_or_default());
        own.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    files.iter().filter(is_program).map(code).collect()
}

/// A command that is advised has its row in `docs/writes.md`: what it does, what must hold, and how it is undone.
fn every_command_that_is_advised_stands_on_the_page() {
    let listed = changers(&page("docs/writes.md"));
    let advised: BTreeSet<String> = programs().iter().flat_map(|text| changers(text)).collect();
    assert!(advised.contains("stonith_admin --reboot"), "the sources are read: {advised:?}");
    let missing: Vec<_> = advised.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/writes.md lacks {missing:?}");
    let shorter = page("docs/writes.md").replace("stonith_admin --reboot", "");
    assert!(!advised.is_subset(&changers(&shorter)), "the broken variant is seen");
}
