//! The keys of the configuration in the manual and in its examples.

use std::fs;

use tests::installed::source;
use tests::trials::Named;

use super::{pages, text};
use crate::default_config::check;
use crate::papers::files_below;

/// Its tests.
pub(super) fn tests() -> Vec<Named> {
    tests::trials![the_manual_has_the_shipped_configuration, every_example_has_keys_of_the_manual]
}

/// The output of `check-config` for a configuration.
fn check_config(text: &str) -> String {
    String::from_utf8(check(text).stdout).unwrap()
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

/// Its keys are those of the program: `default_config` compares them.
fn the_manual_has_the_shipped_configuration() {
    let shown = &pages()["alerter.toml.5"];
    let shipped = text("packaging/alerter.toml");
    let keys = shipped.lines().filter_map(|line| line.strip_prefix('#')?.split_once(" = "));
    let missing: Vec<&str> =
        keys.map(|(key, _)| key).filter(|key| !shown.contains(&plain_key(key))).collect();
    assert_eq!(missing, [""; 0]);
}

/// As roff has it.
fn plain_key(key: &str) -> String {
    key.replace('-', "\\-")
}

/// The program knows the keys of each example.
fn every_example_has_keys_of_the_manual() {
    let examples = examples();
    assert!(examples.len() > 15, "{}", examples.len());
    for (place, example) in &examples {
        assert_eq!(unknown(example), [""; 0], "{place}:\n{example}");
    }
    let (_, groups) = &examples[0];
    assert_eq!(unknown(&groups.replace("cooldown", "coldown")).len(), 1, "a wrong key must be seen");
    assert_eq!(unknown(&groups.replace("[http.pager]", "[htp.pager]")).len(), 1, "a wrong table");
}
