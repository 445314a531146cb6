//! Lists which tests show which requirement, and which requirements no test shows: `make requirements`.
//!
//! The requirements are the rows of `docs/requirements.md`; a test shows those that its doc comment names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

/// A requirement's id, as in `S1-16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    series: u8,
    number: u16,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S{}-{}", self.series, self.number)
    }
}

/// One test that names a requirement.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    id: Id,
    /// `FILE: TEST`.
    test: String,
}

/// The tags of the document; anything else in that column is a mistake.
const TAGS: [&str; 4] = ["core", "adapt", "driver", "n-a"];

/// The ids in `text`, in the order in which they stand there.
fn ids_in(text: &str) -> Vec<Id> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter_map(parse_id).collect()
}

fn parse_id(word: &str) -> Option<Id> {
    let (series, number) = word.strip_prefix('S')?.split_once('-')?;
    if series.len() != 1 {
        return None;
    }
    Some(Id { series: series.parse().ok()?, number: number.parse().ok()? })
}

/// The document's requirements with their tags.
fn parse_document(text: &str) -> anyhow::Result<BTreeMap<Id, String>> {
    let mut requirements = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(id) = cells.get(1).and_then(|cell| parse_id(cell)) else { continue };
        let tag = check_row(id, &cells)?;
        if requirements.insert(id, tag.to_owned()).is_some() {
            bail!("{id} stands in the document twice");
        }
    }
    check_complete(&requirements)?;
    Ok(requirements)
}

/// A row has its four cells, a known tag, and a text: what is done, or why it is done otherwise.
fn check_row<'a>(id: Id, cells: &[&'a str]) -> anyhow::Result<&'a str> {
    let [_, _, tag, done, otherwise, _] = cells else { bail!("{id}: the row has not four cells") };
    if !TAGS.contains(tag) {
        bail!("{id}: the tag \"{tag}\" is none of {TAGS:?}");
    }
    let needed = if *tag == "n-a" { otherwise } else { done };
    if needed.is_empty() {
        bail!("{id}: the row says nothing");
    }
    Ok(tag)
}

/// Numbers run from 1 without a gap, so that no requirement is forgotten.
fn check_complete(requirements: &BTreeMap<Id, String>) -> anyhow::Result<()> {
    let mut before = Id { series: 0, number: 0 };
    for &id in requirements.keys() {
        let expected = if id.series == before.series { before.number + 1 } else { 1 };
        if id.number != expected {
            bail!("the document goes from {before} to {id}");
        }
        before = id;
    }
    Ok(())
}

/// What the tests of one file show.
fn shown_in(file: &str, text: &str) -> Vec<Shown> {
    if file.ends_with(".rs") { shown_in_rust(file, text) } else { shown_in_script(file, text) }
}

/// In Rust: the ids of the doc comment above a test function. A cluster test has no `#[test]`: there, any function counts.
fn shown_in_rust(file: &str, text: &str) -> Vec<Shown> {
    let harness = file.contains("tests/tests/");
    let (mut ids, mut is_test, mut shown) = (Vec::new(), harness, Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            ids.extend(ids_in(comment));
        } else if line.starts_with("#[") {
            is_test |= line.contains("test]") || line.contains("::test(");
        } else if !line.is_empty() && !line.starts_with("//") {
            if let (true, Some(name)) = (is_test, function_name(line)) {
                shown.extend(ids.iter().map(|&id| Shown { id, test: format!("{file}: {name}") }));
            }
            ids.clear();
            is_test = harness;
        }
    }
    shown
}

fn function_name(line: &str) -> Option<&str> {
    let words = ["pub(crate) ", "pub ", "async "]
        .iter()
        .fold(line, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    words.strip_prefix("fn ")?.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// In shell and Python: the ids in any comment of the file.
fn shown_in_script(file: &str, text: &str) -> Vec<Shown> {
    let comments = text.lines().filter_map(|line| line.trim().strip_prefix('#'));
    comments.flat_map(ids_in).map(|id| Shown { id, test: file.to_owned() }).collect()
}

/// Every file that may hold tests, relative to the workspace.
fn test_files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut files, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in
            fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))?
        {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_symlink() || name.starts_with('.') || name == "target" {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if holds_tests(&path) {
                files.push(path.strip_prefix(root)?.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn holds_tests(path: &Path) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => !path.ends_with("tests/src/bin/requirements.rs"),
        Some("sh" | "py") => path.components().any(|part| part.as_os_str() == "tests"),
        _ => false,
    }
}

/// The list for people, and whether every id in a test is one of the document's.
fn report(requirements: &BTreeMap<Id, String>, shown: &BTreeSet<Shown>) -> (String, bool) {
    let mut text = String::new();
    for (id, tag) in requirements {
        let mut tests = shown.iter().filter(|test| test.id == *id).peekable();
        if tests.peek().is_some() {
            text += &format!("{id} ({tag})\n");
        }
        for test in tests {
            text += &format!("    {}\n", test.test);
        }
    }
    for tag in TAGS {
        text += &summary(tag, requirements, shown);
    }
    let unknown: Vec<_> = shown.iter().filter(|test| !requirements.contains_key(&test.id)).collect();
    for test in &unknown {
        text += &format!("unknown: {} in {}\n", test.id, test.test);
    }
    (text, unknown.is_empty())
}

/// How much of one tag is shown, and what is not.
fn summary(tag: &str, requirements: &BTreeMap<Id, String>, shown: &BTreeSet<Shown>) -> String {
    let tagged: Vec<_> = requirements.iter().filter(|(_, t)| *t == tag).map(|(id, _)| id).collect();
    let without: Vec<_> = tagged.iter().filter(|id| !shown.iter().any(|test| test.id == ***id)).collect();
    if tag == "n-a" {
        return format!("\nn-a: {} do not apply\n", tagged.len());
    }
    let names: Vec<String> = without.iter().map(ToString::to_string).collect();
    let count = tagged.len() - without.len();
    format!("\n{tag}: {count} of {} shown by a test; not yet: {}\n", tagged.len(), names.join(" "))
}

fn run() -> anyhow::Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the tests lie in the workspace")?;
    let document = root.join("docs/requirements.md");
    let text =
        fs::read_to_string(&document).with_context(|| format!("cannot read {}", document.display()))?;
    let requirements = parse_document(&text)?;
    let mut shown = BTreeSet::new();
    for file in test_files(root)? {
        let text = fs::read_to_string(root.join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        shown.extend(shown_in(&file.to_string_lossy(), &text));
    }
    let (text, known) = report(&requirements, &shown);
    print!("{text}");
    Ok(known)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("requirements: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# R\n| id | tag | does | otherwise |\n|---|---|---|---|\n\
        | S0-1 | core | It does. | |\n| S0-2 | n-a | | Not ours. |\n| S1-1 | adapt | Other. | Why. |\n";

    fn id(series: u8, number: u16) -> Id {
        Id { series, number }
    }

    #[test]
    fn refuses_a_document_with_a_slip() {
        let slips = [
            ("| S0-2 |", "| S0-3 |", "goes from S0-1 to S0-3"),
            ("| S0-2 |", "| S0-1 |", "twice"),
            ("| core |", "| kore |", "tag"),
            ("| It does. |", "| |", "says nothing"),
            ("| Not ours. |", "|", "four cells"),
        ];
        for (from, to, expected) in slips {
            let error = parse_document(&DOCUMENT.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_test_shows_the_ids_of_its_doc_comment_and_no_others() {
        let text = "/// S1-1\nfn helper() {}\n/// S1-2, S1-3\n/// and S1-4\n#[tokio::test]\nasync fn shows() {\n\
                    // S1-5\n}\n#[test]\nfn bare() {}\n/// S1-6\n#[test]\n#[expect(x, reason = \"y\")]\nfn other() {}\n";
        let shown = shown_in("alerter/src/a.rs", text);
        let pairs: Vec<_> = shown.iter().map(|s| (s.id.number, s.test.as_str())).collect();
        assert_eq!(
            pairs,
            [
                (2, "alerter/src/a.rs: shows"),
                (3, "alerter/src/a.rs: shows"),
                (4, "alerter/src/a.rs: shows"),
                (6, "alerter/src/a.rs: other")
            ]
        );
    }

    #[test]
    fn an_id_that_the_document_does_not_know_fails_the_list() {
        let requirements = parse_document(DOCUMENT).unwrap();
        let known = BTreeSet::from([Shown { id: id(0, 1), test: "t".into() }]);
        let (text, good) = report(&requirements, &known);
        assert!(good && text.contains("core: 1 of 1 shown") && text.contains("not yet: S1-1"), "{text}");

        let unknown = BTreeSet::from([Shown { id: id(3, 99), test: "t".into() }]);
        let (text, good) = report(&requirements, &unknown);
        assert!(!good && text.contains("unknown: S3-99 in t"), "{text}");
    }
}
