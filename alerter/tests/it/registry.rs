//! A new driver is complete: file, registry, example and manual, as `docs/drivers/write.md` says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use alerter::config;
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

/// The keys of a route, as they are listed for one that nobody knows.
fn keys(word: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("alerter.toml");
    fs::write(&file, format!("[{word}.a]\nnothing-like-any-of-these = 1\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let said = config::load(&file).unwrap_err().to_string();
    let (_, list) = said.split_once("known are: ").unwrap();
    list.lines().next().unwrap().split(", ").map(str::to_owned).collect()
}

/// The routes of one driver in the packaged configuration: from each header of its own to the next one.
fn routes<'t>(shipped: &'t str, word: &str) -> Vec<&'t str> {
    shipped.split("\n#[").filter(|table| table.starts_with(&format!("{word}."))).collect()
}

/// The keys of a driver that no example of it has. A key that every driver has is explained once.
fn unexplained(shipped: &str, word: &str) -> Vec<String> {
    let line = |key: &str| format!("\n#{key} = ");
    let everywhere = |key: &str| KINDS.iter().all(|kind| keys(kind.word).iter().any(|other| other == key));
    let has = |key: &str| {
        routes(shipped, word).iter().any(|table| table.contains(&line(key)))
            || (everywhere(key) && shipped.contains(&line(key)))
    };
    keys(word).into_iter().filter(|key| !has(key)).collect()
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

/// Operators do not find a key that the packaged configuration does not name.
#[test]
fn every_key_of_a_drivers_route_has_an_example() {
    let shipped = text("packaging/alerter.toml");
    for kind in KINDS {
        let lacking = unexplained(&shipped, kind.word);
        assert!(
            lacking.is_empty(),
            "packaging/alerter.toml has no {} in a [{}.NAME]",
            lacking.join(", "),
            kind.word
        );
    }
    let broken = shipped.replace("#at-once", "#at-ocne").replace("#tls-min", "#tls-mni");
    assert_eq!(unexplained(&broken, "exec"), ["at-once"], "a missing key must be seen");
    assert_eq!(unexplained(&broken, "http"), ["tls-min"], "a missing key must be seen");
}

/// A file of drivers that is in no list is dead code.
#[test]
fn every_file_is_registered() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/drivers/src");
    let files =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_driver =
        |file: &String| text(&format!("crates/drivers/src/{file}")).contains("pub const KIND: Kind");
    let words = files.filter(is_driver).filter_map(|name| name.strip_suffix(".rs").map(str::to_owned));
    let strangers: Vec<String> = words
        .filter(|word| KINDS.iter().all(|kind| kind.word != word))
        .map(|word| format!("crates/drivers/src/lib.rs has no {word}::KIND in KINDS"))
        .collect();
    assert_eq!(strangers, Vec::<String>::new());
}
