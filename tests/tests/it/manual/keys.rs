//! The keys of the configuration: those that the program reads, and those that the manual has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use alerter::config::ROUTE_KEYS;
use alerter::drivers::KINDS;
use tempfile::TempDir;
use tests::programs::built;

use super::page::heads;

/// The keys of each table, by its title; the tables below one are keys of it.
pub(super) type Keys = BTreeMap<String, BTreeSet<String>>;

/// Its keys are the administrator's names of hosts.
const FREE: &str = "hosts.names";
/// It has the keys of every other group.
const DEFAULT_GROUP: &str = "groups.default";
/// Its keys depend on one of them.
const NOTICE: &str = "notice.NAME";

/// What `check-config` says of a configuration.
pub(super) fn check_config(text: &str) -> String {
    let room = TempDir::new().unwrap();
    let file = room.path().join("alerter.toml");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let program = built("nova-host-alerter").unwrap();
    let output = Command::new(program).args(["check-config", "--config"]).arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What the manual has: on the page of the configuration, and on the page of each driver.
pub(super) fn of_pages(pages: &BTreeMap<String, String>) -> Keys {
    let mut keys = Keys::new();
    for head in heads(&pages["alerter.toml.5"]).into_iter().filter(|head| head.section == "OPTIONS") {
        if let Some(title) = head.part.strip_prefix('[').and_then(|part| part.strip_suffix(']')) {
            keys.entry(title.to_owned()).or_default().insert(name(&head.text));
        }
    }
    for title in titles(&pages["alerter.toml.5"]) {
        keys.entry(title).or_default();
    }
    for kind in KINDS {
        let page = &pages[&format!("nova-host-alerter-{}.5", kind.word)];
        let options = heads(page).into_iter().filter(|head| head.section == "OPTIONS");
        keys.insert(format!("{}.NAME", kind.word), options.map(|head| name(&head.text)).collect());
    }
    with_tables_below(keys)
}

/// The titles of all tables of the page, those without a key too.
fn titles(page: &str) -> Vec<String> {
    let parts = page.lines().filter_map(|line| line.strip_prefix(".SS [")?.strip_suffix(']'));
    parts.map(super::page::plain).collect()
}

fn name(head: &str) -> String {
    head.split(" = ").next().unwrap().to_owned()
}

fn with_tables_below(mut keys: Keys) -> Keys {
    for title in keys.keys().cloned().collect::<Vec<_>>() {
        let own = title.strip_suffix(".NAME").unwrap_or(&title);
        let (above, key) = own.rsplit_once('.').unwrap_or(("", own));
        if !above.ends_with("NAME") || keys.contains_key(above) {
            keys.entry(above.to_owned()).or_default().insert(key.to_owned());
        }
    }
    // What holds probes of one kind has no keys of its own, and every group is a group.
    keys.retain(|title, _| title != FREE && title != DEFAULT_GROUP && title != "groups" && title != NOTICE);
    keys
}

/// What the program reads in the same tables: it lists the keys of a table for one that it does not know.
pub(super) fn of_program<'k>(titles: impl Iterator<Item = &'k String>) -> Keys {
    titles.map(|title| (title.clone(), known(title, ""))).collect()
}

/// The keys that the program knows in a table where some others stand already.
fn known(title: &str, others: &str) -> BTreeSet<String> {
    let header =
        if title.is_empty() { "nothing-like-any-of-these".to_owned() } else { title.replace("NAME", "a") };
    let said = check_config(&format!("[{header}]\nnothing-like-any-of-these = 1\n{others}"));
    let line = said
        .lines()
        .find(|line| line.contains("nothing-like-any-of-these"))
        .unwrap_or_else(|| panic!("[{header}]: {said}"));
    if line.ends_with("; it has none") {
        return BTreeSet::new();
    }
    let (_, list) = line.split_once("known are: ").unwrap_or_else(|| panic!("{line}"));
    list.split(", ").map(str::to_owned).collect()
}

/// What a target of notices reads for each way to tell it, and what the manual says that this is.
pub(super) fn of_notices(pages: &BTreeMap<String, String>) -> Vec<(BTreeSet<String>, BTreeSet<String>)> {
    let drivers = of_pages(pages);
    let of_way = |way: &str| {
        let read = known(NOTICE, &format!("to = \"{way}\"\n"));
        let of_driver = drivers.get(&format!("{way}.NAME")).into_iter().flatten();
        let own = of_driver.filter(|key| !ROUTE_KEYS.contains(&key.as_str())).cloned();
        (read, own.chain(["to".to_owned()]).collect())
    };
    ["http", "exec", "syslog"].map(of_way).into()
}
