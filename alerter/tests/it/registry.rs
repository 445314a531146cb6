//! A new driver is complete: file, registry, example and manual, as `docs/drivers/write.md` says.

use std::fs;
use std::path::Path;

use drivers::KINDS;

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap_or_default()
}

/// What a driver of this word lacks.
fn lacks(word: &str) -> Vec<String> {
    let places = [
        (format!("crates/drivers/src/{word}.rs"), format!("word: \"{word}\"")),
        ("packaging/alerter.toml".to_owned(), format!("\n#[{word}.")),
        (format!("docs/drivers/{word}.md"), format!("# {word}\n")),
        ("docs/drivers.md".to_owned(), format!("\n| [`[{word}.NAME]`](drivers/{word}.md) | ")),
        ("docs/writes.md".to_owned(), format!("\n| {word} | ")),
    ];
    let missing = places.into_iter().filter(|(path, wanted)| !text(path).contains(wanted.as_str()));
    missing.map(|(path, wanted)| format!("{path} has no {}", wanted.trim())).collect()
}

/// S1-17: adding a driver is a matter of a few known places.
#[test]
fn every_driver_is_whole() {
    let found: Vec<String> = KINDS.iter().flat_map(|kind| lacks(kind.word)).collect();
    assert_eq!(found, Vec::<String>::new());
}

/// The broken variant: a driver that nobody wrote lacks all of them.
#[test]
fn a_driver_that_is_not_there_is_noticed() {
    assert_eq!(lacks("pigeon").len(), 5);
}
