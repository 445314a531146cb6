//! The manual says what the programs, the agents, the examples and the units say, and nothing else.

mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Output};

use manual::{COMPLETIONS, PAGES, Sources, files};
use samples::left_out::missing;
use tempfile::TempDir;
use tests::installed::source;
use tests::trials::Group;

/// What must agree everywhere.
pub(crate) fn group() -> Group {
    let own = tests::trials![what_is_committed_is_what_the_tables_give];
    let tests = [own, keys::tests()].concat();
    Group { cannot: None, tests }
}

/// Tests with programs that show manual pages.
pub(crate) fn shown() -> Group {
    let tests = tests::trials![nobody_who_reads_a_page_complains];
    Group { cannot: lacking(&["man", "mandoc"]), tests }
}

fn lacking(tools: &[&str]) -> Option<String> {
    Some(format!("{} is not installed: run `make deps`", missing(tools)?))
}

fn sources() -> Sources {
    Sources::read(&source("")).unwrap()
}

/// The pages that are in the source.
fn pages() -> BTreeMap<String, String> {
    committed()
        .into_iter()
        .filter_map(|(path, text)| Some((path.strip_prefix(PAGES)?.trim_start_matches('/').to_owned(), text)))
        .collect()
}

fn committed() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for directory in [PAGES, COMPLETIONS] {
        for entry in fs::read_dir(source(directory)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            found.insert(format!("{directory}/{name}"), fs::read_to_string(entry.path()).unwrap());
        }
    }
    found
}

/// The names of what is in one of two only, or not the same in both.
fn differing<T: PartialEq>(one: &BTreeMap<String, T>, other: &BTreeMap<String, T>) -> BTreeSet<String> {
    let names = one.keys().chain(other.keys());
    names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

/// The broken variants: a file that is not generated any more, and a source that has changed since.
fn what_is_committed_is_what_the_tables_give() {
    let made = files(&sources()).unwrap();
    assert_eq!(differing(&made, &committed()), BTreeSet::new(), "run `make man`, and commit that");
    let mut stale = committed();
    stale.insert(format!("{PAGES}/nova-host-alerter-pigeon.5"), String::new());
    assert_eq!(differing(&made, &stale).len(), 1, "a page of nothing must be seen");
    let shipped = text("packaging/alerter.toml").replace("#coalesce = 180", "#coalesce = 181");
    let changed = sources().with("packaging/alerter.toml", shipped);
    let differing = differing(&files(&changed).unwrap(), &committed());
    assert_eq!(differing, BTreeSet::from([format!("{PAGES}/alerter.toml.5")]));
}

fn text(path: &str) -> String {
    fs::read_to_string(source(path)).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// The warnings of man-db's roff and mandoc about a page.
fn complaints(page: &str, name: &str) -> String {
    let room = TempDir::new().unwrap();
    let file = room.path().join(name);
    fs::write(&file, page).unwrap();
    let mut man = Command::new("man");
    man.args(["--warnings=w", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
        .arg(&file)
        .env("LC_ALL", "C.UTF-8")
        .env("MANWIDTH", "80");
    let man = man.output().unwrap();
    let mandoc = Command::new("mandoc").args(["-T", "lint", "-W", "style"]).arg(&file).output().unwrap();
    let man = String::from_utf8_lossy(&man.stderr);
    // A line that could not be adjusted is a matter of the width: groff says so since 1.23.
    let man = man.lines().filter(|line| !line.ends_with("cannot adjust line"));
    format!("{}{}", man.collect::<Vec<_>>().join("\n"), said(&mandoc))
}

fn nobody_who_reads_a_page_complains() {
    for (name, page) in pages() {
        assert_eq!(complaints(&page, &name), "", "{name}");
    }
    let page = &pages()["fence_mark.8"];
    assert!(complaints(&page.replacen(".SH", ".SX", 1), "fence_mark.8").contains("SX"), "a wrong macro");
    assert!(
        !complaints(&page.replacen(".TH \"FENCE", ".TH \"fence", 1), "fence_mark.8").is_empty(),
        "a wrong title"
    );
}
