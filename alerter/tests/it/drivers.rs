//! A driver that a stranger adds is whole: file, registry, example and manual, as `docs/drivers.md` says.

use std::fs;
use std::path::Path;

use alerter::drivers::KINDS;

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap_or_default()
}

/// What a driver of this word lacks.
fn lacks(word: &str) -> Vec<String> {
    let places = [
        (format!("alerter/src/drivers/{word}.rs"), format!("Kind {{ word: \"{word}\"")),
        ("packaging/alerter.toml".to_owned(), format!("[{word}.")),
        ("docs/drivers.md".to_owned(), format!("\n## {word}\n")),
        ("README.md".to_owned(), format!("| `[{word}.NAME]` |")),
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
    assert_eq!(lacks("pigeon").len(), 4);
}

/// A file of drivers that is in no list is dead code.
#[test]
fn every_file_is_registered() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/drivers");
    let files =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let words = files.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned));
    let shared = ["mod", "event"];
    let strangers: Vec<String> = words
        .filter(|word| !shared.contains(&word.as_str()) && KINDS.iter().all(|kind| kind.word != word))
        .collect();
    assert_eq!(strangers, Vec::<String>::new());
}
