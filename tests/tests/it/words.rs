//! The words of `docs/glossary.md`: no private word anywhere, and no long sentence in a message.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use tests::installed::source;
use tests::trials::Group;

use crate::house::without_tests;
use crate::papers::{files_below, page};

/// Its tests. They need nothing.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        no_private_word_is_used,
        private_words_are_found_in_names_too,
        sentences_of_messages_are_short,
        a_long_sentence_is_found
    ];
    Group { cannot: None, tests }
}

/// Everything that people wrote.
const PARTS: [&str; 16] = [
    "alerter",
    "crates",
    "docs",
    "fence-agent",
    "manual",
    "ocf",
    "packaging",
    "tests",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "clippy.toml",
    "deny.toml",
];
/// Where a private word has to stay: it is the list itself, or the name of a table that is on disks.
const KEPT: [(&str, &str); 5] = [
    ("docs/glossary.md", ""),
    ("crates/journal/src/store/", "told"),
    ("crates/journal/src/views/notified.rs", "told"),
    ("tests/tests/it/notice.rs", "told"),
    ("tests/tests/it/words.rs", ""),
];
/// Letters of a sentence of a message, without the commands in it.
const LONGEST: usize = 120;

fn files() -> Vec<PathBuf> {
    let of = |part: &&str| {
        let path = source(part);
        if path.is_dir() { files_below(&path) } else { vec![path] }
    };
    PARTS.iter().flat_map(of).collect()
}

/// The words of the second table.
fn private() -> BTreeSet<String> {
    let page = page("docs/glossary.md");
    let (_, table) = page.split_once("| not | but |\n|---|---|\n").unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| ")?.split(" |").next());
    rows.flat_map(|row| row.split(", ")).map(str::to_owned).collect()
}

/// The words of a line, those in names apart: `was_told` and `WasTold` have two.
fn words(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split(|letter: char| !letter.is_ascii_alphabetic()).flat_map(|run| {
        let humps = run.char_indices().filter(|(at, letter)| *at == 0 || letter.is_ascii_uppercase());
        let starts: Vec<usize> = humps.map(|(at, _)| at).collect();
        let is_camel = starts.len() < run.len();
        let ends = starts.iter().skip(1).copied().chain([run.len()]);
        let parts: Vec<String> = match is_camel {
            true => starts.iter().zip(ends).map(|(from, to)| run[*from..to].to_lowercase()).collect(),
            false => vec![run.to_lowercase()],
        };
        parts
    })
}

fn private_words(text: &str, list: &BTreeSet<String>) -> Vec<(usize, String)> {
    let of = |(at, line): (usize, &str)| words(line).map(move |word| (at + 1, word)).collect::<Vec<_>>();
    text.lines().enumerate().flat_map(of).filter(|(_, word)| list.contains(word)).collect()
}

fn no_private_word_is_used() {
    let list = private();
    let mut found = Vec::new();
    for file in files() {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let place = file.strip_prefix(source("")).unwrap().display().to_string();
        let is_kept = |word: &str| {
            KEPT.iter().any(|(path, kept)| place.starts_with(path) && (kept.is_empty() || *kept == word))
        };
        let used = private_words(&text, &list).into_iter().filter(|(_, word)| !is_kept(word));
        found.extend(used.map(|(line, word)| format!("{place}:{line}: {word}")));
    }
    assert!(found.is_empty(), "{} private words (docs/glossary.md):\n{}", found.len(), found.join("\n"));
}

/// The broken variants: each is a private word that a search for whole words alone does not find.
fn private_words_are_found_in_names_too() {
    let list = private();
    for line in ["fn was_told()", "struct TellAll;", "const TOLD_WITHIN", "`untold`", "It LOOKS well"] {
        assert_eq!(private_words(line, &list).len(), 1, "{line}");
    }
    assert!(
        private_words("a lookup, an outlook, Intel, teller2x", &list)
            .iter()
            .all(|(_, word)| word == "teller")
    );
}

/// The texts between quotation marks of a source, without its comments and tests.
fn literals(text: &str) -> Vec<String> {
    let (mut found, mut letters) = (Vec::new(), without_tests(text).chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            '/' if letters.peek() == Some(&'/') => drop(letters.by_ref().find(|letter| *letter == '\n')),
            '\'' => skip_letter(&mut letters),
            '"' => found.push(literal(&mut letters)),
            _ => (),
        }
    }
    found
}

/// Behind a quote: the rest of `'"'` or of `'\''`, or nothing of a lifetime.
fn skip_letter(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.peek() {
        Some('\\') => drop((letters.next(), letters.next())),
        Some('"') => drop(letters.next()),
        _ => (),
    }
}

/// The rest of a text until its end, a line that goes on joined.
fn literal(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
        match (letter, letters.peek()) {
            ('\\', Some('\n')) => while letters.next_if(|letter| letter.is_whitespace()).is_some() {},
            ('\\', Some('n')) => {
                letters.next();
                text.push('\n');
            }
            ('\\', _) => text.extend(letters.next()),
            _ => text.push(letter),
        }
    }
    text
}

/// Of these is SQL made, and a list of columns.
const SQL: [&str; 6] = ["SELECT ", "FROM ", "AND ", "NOT ", "WHERE ", ".digest"];

/// The sentences of a text, each without the commands in it. Markup and SQL have none.
fn sentences(text: &str) -> Vec<String> {
    if text.trim_start().starts_with('<')
        || text.contains("{font")
        || SQL.iter().any(|word| text.contains(word))
    {
        return Vec::new();
    }
    let plain: String = text.split('`').step_by(2).collect();
    plain.split(['\n', ';', ':', '?']).flat_map(|part| part.split(". ")).map(str::to_owned).collect()
}

fn too_long(source: &str) -> Vec<String> {
    let all = literals(source).into_iter().flat_map(|text| sentences(&text));
    all.filter(|sentence| sentence.contains(' ') && sentence.trim().chars().count() > LONGEST).collect()
}

fn sentences_of_messages_are_short() {
    let mut found = Vec::new();
    let parts = ["alerter/src", "crates", "fence-agent/src"];
    for file in parts.iter().flat_map(|part| files_below(&source(part))) {
        let is_test = file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("tests.rs");
        if is_test || file.extension().is_none_or(|kind| kind != "rs") {
            continue;
        }
        let long = too_long(&fs::read_to_string(&file).unwrap());
        found.extend(long.into_iter().map(|sentence| format!("{}: {sentence}", file.display())));
    }
    assert!(found.is_empty(), "sentences of more than {LONGEST} letters:\n{}", found.join("\n"));
}

/// The broken variants: a sentence too long, also over two lines of the source; a command is none of it.
fn a_long_sentence_is_found() {
    let long = format!("{} word", "w".repeat(LONGEST));
    assert_eq!(too_long(&format!("let text = \"{long}\";")).len(), 1);
    assert_eq!(too_long(&format!("let c = '\"'; error!(\"one; {long}. Two\")")).len(), 1);
    assert_eq!(too_long("warn!(\"word \\\n    ".replace("word", &long).as_str()).len(), 1);
    assert!(too_long(&format!("// \"{long}\"\nfn f<'a>() {{ say(\"Run `{long}`.\") }}")).is_empty());
}
