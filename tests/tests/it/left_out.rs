//! No test ends early in silence: one that this machine cannot run goes through `samples::left_out`, which fails it in CI. And
//! none ignores how a command of ours ended.

use std::fs;

use tests::installed::source;
use tests::trials::Group;

use crate::papers::files_below;

/// Its tests. They need nothing.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        no_test_ends_early_in_silence,
        an_early_end_is_caught,
        no_test_passes_over_an_exit_code,
        an_exit_code_that_nobody_checks_is_caught,
    ])
}

/// The calls that leave a test out where it cannot run.
const GATES: [&str; 10] = [
    "have_mounts()",
    "have_namespaces()",
    "have_injection()",
    "have_files(",
    "lacks(",
    "Post::new()",
    "Store::apart()",
    "Store::traced()",
    "system(&[",
    "fencer(&script",
];

/// Early ends of a test, and words that say so, in the text of a file of tests.
fn silent(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_said = |line: &str| {
        line.contains("print") && ["\"skipped", "\"left out"].iter().any(|word| line.contains(word))
    };
    let said = lines.iter().filter(|line| is_said(line)).map(|line| (*line).to_owned());
    let mut found: Vec<String> = said.collect();
    let mut is_test = false;
    for (number, line) in lines.iter().enumerate() {
        match line.trim_end() {
            "#[test]" | "#[tokio::test]" => is_test = true,
            "}" => is_test = false,
            _ if is_test && ends(line) => {
                let guard = if line.trim() == "return;" { lines[number - 1] } else { line };
                // After work of the test it is no early end.
                let is_early = guard == *line || guard.ends_with('{');
                if is_early && !GATES.iter().any(|gate| guard.contains(gate)) {
                    found.push(guard.to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether a line ends a function of tests, which returns nothing.
fn ends(line: &str) -> bool {
    ["return;", "{ return }", "return println", "return eprintln"].iter().any(|end| line.contains(end))
}

/// The files of tests but this one.
fn tests_of_all() -> Vec<String> {
    let parts = ["alerter/tests", "fence-agent/tests", "tests/tests"];
    let files = parts.map(|part| files_below(&source(part))).concat();
    let this = source("tests/tests/it/left_out.rs");
    let rust =
        files.into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "rs") && *path != this);
    rust.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Lines that run a command of ours and take what it printed, or nothing: whether it failed is not seen. `Site::said` demands success.
fn unseen(text: &str) -> Vec<String> {
    let runs = |line: &&str| line.contains(".alerter(");
    let is_unseen = |line: &&str| {
        let line = line.trim();
        let takes = ["?.stdout", ".unwrap().stdout"].iter().any(|end| line.contains(end));
        let drops = line.starts_with("site.alerter(") && line.ends_with(';');
        takes || drops
    };
    text.lines().filter(runs).filter(is_unseen).map(str::to_owned).collect()
}

fn no_test_passes_over_an_exit_code() {
    let found: Vec<String> = tests_of_all().iter().flat_map(|text| unseen(text)).collect();
    assert!(found.is_empty(), "how it ended is not checked: {found:#?}");
}

/// The broken variants: lines that once stood in tests. One of them ran a command that never existed.
fn an_exit_code_that_nobody_checks_is_caught() {
    assert_eq!(unseen("        site.alerter(words).unwrap();").len(), 1);
    assert_eq!(unseen("    let said = site.alerter(&[\"list\"]).unwrap().stdout;").len(), 1);
    assert_eq!(
        unseen("    let ran = site.alerter(words).unwrap();\n    site.said(words).unwrap();").len(),
        0
    );
}

fn no_test_ends_early_in_silence() {
    let found: Vec<String> = tests_of_all().iter().flat_map(|text| silent(text)).collect();
    assert!(found.is_empty(), "each ends a test without a word that CI hears: {found:#?}");
}

/// The broken variants: as they stood.
fn an_early_end_is_caught() {
    let within = |body: &str| silent(&format!("#[test]\nfn shows() {{\n{body}\n}}\n")).len();
    assert_eq!(within("    if lacks(&[\"setpriv\"]) {\n        return;\n    }"), 0);
    assert_eq!(within("    let Some(post) = Post::new() else { return };"), 0);
    assert_eq!(
        within("    if geteuid().is_root() {\n        return eprintln!(\"skipped: root may write\");\n    }"),
        2
    );
    assert_eq!(within("    if !Path::new(SCHEMA).exists() {\n        return;\n    }"), 1);
    assert_eq!(within("    let Some(user) = user else { return };"), 1);
    assert_eq!(within("    if let Some(seed) = seed {\n        play(seed);\n        return;\n    }"), 0);
    assert_eq!(silent("fn helper() {\n    println!(\"skipped: {reason}\");\n}\n").len(), 1);
}
