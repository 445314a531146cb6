//! The keys of the configuration: those that the program reads, and those that the manual has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use drivers::KINDS;
use tests::installed::source;
use tests::trials::Named;

use super::page::{Head, heads, plain};
use super::{pages, pages_of, sources, text};
use crate::default_config::{check, written};
use crate::papers::files_below;

/// Its tests.
pub(super) fn tests() -> Vec<Named> {
    tests::trials![
        every_key_of_the_configuration_is_in_the_manual,
        every_default_in_the_manual_is_one,
        every_example_has_keys_of_the_manual
    ]
}

/// The keys of each table, by its title; the tables below one are keys of it.
type Keys = BTreeMap<String, BTreeSet<String>>;

/// Its keys are the administrator's names of hosts.
const FREE: &str = "hosts.names";
/// It has the keys of every other group.
const DEFAULT_GROUP: &str = "groups.default";

/// The output of `check-config` for a configuration.
fn check_config(text: &str) -> String {
    String::from_utf8(check(text).stdout).unwrap()
}

/// What the manual has: in each table, and in that of a route what every route has too.
fn of_pages(pages: &BTreeMap<String, String>) -> Keys {
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
        keys.entry(format!("{}.NAME", kind.word))
            .or_default()
            .extend(of_every_route(&pages["alerter.toml.5"]));
    }
    with_tables_below(keys)
}

/// The titles of all tables of the page, those without a key too.
fn titles(page: &str) -> Vec<String> {
    let parts = page.lines().filter_map(|line| line.strip_prefix(".SS [")?.strip_suffix(']'));
    parts.map(plain).collect()
}

fn of_every_route(page: &str) -> Vec<String> {
    let options = heads(page).into_iter().filter(|head| head.section == "OPTIONS");
    options.filter(|head| head.part == "Of every route").map(|head| name(&head.text)).collect()
}

fn name(head: &str) -> String {
    head.split(" = ").next().unwrap().to_owned()
}

fn with_tables_below(mut keys: Keys) -> Keys {
    keys.remove(DEFAULT_GROUP);
    for title in keys.keys().cloned().collect::<Vec<_>>() {
        let own = title.strip_suffix(".NAME").unwrap_or(&title);
        let (above, key) = own.rsplit_once('.').unwrap_or(("", own));
        keys.entry(above.to_owned()).or_default().insert(key.to_owned());
    }
    keys.retain(|title, _| title != FREE);
    keys
}

/// What the program reads in the same tables: it lists the keys of a table for one that it does not know.
fn of_program<'k>(titles: impl Iterator<Item = &'k String>) -> Keys {
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

/// What is in the code alone, and what is in the manual alone, as `[TABLE] KEY`.
fn disagreements(pages: &BTreeMap<String, String>, program: &Keys) -> Vec<String> {
    let manual = of_pages(pages);
    let all = |keys: &Keys| -> BTreeSet<String> {
        keys.iter().flat_map(|(title, keys)| keys.iter().map(move |key| format!("[{title}] {key}"))).collect()
    };
    let (manual, program) = (all(&manual), all(program));
    let lacking = program.difference(&manual).map(|key| format!("the manual lacks {key}"));
    let invented = manual.difference(&program).map(|key| format!("the program does not know {key}"));
    lacking.chain(invented).collect()
}

/// The manual's keys are those of the shipped configuration: what that lacks, the manual lacks.
fn every_key_of_the_configuration_is_in_the_manual() {
    let pages = pages();
    let program = of_program(of_pages(&pages).keys());
    assert!(program.len() > 20 && program.values().map(BTreeSet::len).sum::<usize>() > 150, "{program:?}");
    assert_eq!(disagreements(&pages, &program), [""; 0]);
    let shipped = text("packaging/alerter.toml");
    let without = |from: &str, to: &str| {
        assert!(shipped.contains(from), "{from}");
        disagreements(
            &pages_of(&sources().with("packaging/alerter.toml", shipped.replace(from, to))),
            &program,
        )
    };
    assert_eq!(
        without("#coalesce = ", "#coalesec = "),
        ["the manual lacks [intake] coalesce", "the program does not know [intake] coalesec"]
    );
    assert_eq!(
        without("#tls-min = \"1.2\"\n# Whether a connection", "# Whether a connection"),
        ["the manual lacks [http.NAME] tls-min"]
    );
    assert_eq!(without("#[page]\n", "#[pages]\n").len(), 10, "a table must be missed");
}

/// The settings of the manual that are no examples, one table each, where nothing else has to stand beside them.
fn defaults(page: &str) -> Vec<(String, String)> {
    let of_table = |head: Head| Some((head.part.strip_prefix('[')?.strip_suffix(']')?.to_owned(), head.text));
    let alone = ["store", "hosts", "groups.NAME", "intake", "delivery", "history", "log", "healthcheck"];
    let all = heads(page).into_iter().filter(|head| head.section == "OPTIONS").filter_map(of_table);
    all.filter(|(title, text)| alone.contains(&title.as_str()) && !text.ends_with("(example)")).collect()
}

/// What the daemon would go by.
fn settings(table: &str, setting: &str) -> String {
    let group = "[groups.a]\nhosts = [\"c1\"]\n";
    let table = match table {
        "groups.NAME" => format!("{group}{setting}\n"),
        table => format!("{group}[{table}]\n{setting}\n"),
    };
    let (room, file) = written(&format!("[http.a]\nurl = \"https://localhost/\"\n{table}"));
    let settings = alerter::config::load(&file).unwrap();
    format!("{settings:?}").replace(&room.path().display().to_string(), "")
}

/// A default may be written or left out. The broken variant: an example is another setting.
fn every_default_in_the_manual_is_one() {
    let defaults = defaults(&pages()["alerter.toml.5"]);
    assert!(defaults.len() > 15, "{defaults:?}");
    // A socket without an owner belongs to the user that runs the daemon, which is root.
    let is_of_files = |text: &str| text.starts_with("owner") || text.starts_with("group");
    for (table, setting) in defaults.iter().filter(|(_, text)| !is_of_files(text)) {
        assert_eq!(settings(table, setting), settings(table, ""), "[{table}] {setting}");
    }
    assert_ne!(settings("intake", "coalesce = 181"), settings("intake", ""), "another value must be seen");
}

/// The blocks of TOML on a page of `docs/`.
fn toml_blocks(page: &str) -> Vec<String> {
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Every example of a configuration that is shipped.
fn examples() -> Vec<(String, String)> {
    let mut found = vec![("docs/examples/groups.toml".to_owned(), text("docs/examples/groups.toml"))];
    let pages = ["docs", "manual/pages"].map(|place| files_below(&source(place))).concat();
    for page in pages.into_iter().chain([source("README.md")]) {
        let Ok(text) = fs::read_to_string(&page) else { continue };
        found.extend(toml_blocks(&text).into_iter().map(|block| (page.display().to_string(), block)));
    }
    found
}

/// The keys of a configuration that the program does not know.
fn unknown(configuration: &str) -> Vec<String> {
    let said = check_config(configuration);
    said.lines()
        .filter(|line| line.contains("unknown") || line.contains("not TOML"))
        .map(str::to_owned)
        .collect()
}

/// The program knows the manual's keys, as a test above shows.
fn every_example_has_keys_of_the_manual() {
    let examples = examples();
    assert!(examples.len() > 15, "{}", examples.len());
    for (place, example) in &examples {
        assert_eq!(unknown(example), [""; 0], "{place}:\n{example}");
    }
    let (_, groups) = &examples[0];
    assert_eq!(unknown(&groups.replace("cooldown", "coldown")).len(), 1, "a wrong key must be seen");
    assert_eq!(
        unknown(&groups.replace("[http.pager]", "[htp.pager]")).len(),
        1,
        "a wrong table must be seen"
    );
}
