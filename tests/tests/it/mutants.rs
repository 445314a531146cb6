//! The old rules of `make mutants` still fit the project: each can be put back. Whether each is found takes minutes, and is
//! read by that.

use std::fs;
use std::path::Path;

use tests::mutants::{Change, MUTANTS, Mutant, PACKAGES, misfits};
use tests::trials::Group;

use crate::papers::files_below;

/// Its tests; they need nothing.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        every_old_rule_can_be_put_back,
        every_test_that_is_asked_exists,
        what_does_not_fit_is_said,
    ])
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn every_old_rule_can_be_put_back() {
    let misfits: Vec<String> = MUTANTS.iter().flat_map(|mutant| misfits(root(), mutant)).collect();
    assert!(misfits.is_empty(), "{misfits:#?}");
}

/// A rule is never found where no test is asked, or one of a package that is not run. The broken variant: the packages
/// without that of the agent.
fn every_test_that_is_asked_exists() {
    assert_eq!(unasked(&PACKAGES), Vec::<&str>::new());
    let without_the_agent: Vec<_> = PACKAGES.into_iter().filter(|(name, _)| *name != "fence-agent").collect();
    assert_eq!(
        unasked(&without_the_agent),
        ["what_comes_after_a_return_or_long_after_the_end_has_not_ended"]
    );
}

/// The tests that these packages lack, and the names of rules that have none.
fn unasked(packages: &[(&str, &str)]) -> Vec<&'static str> {
    let files = packages.iter().flat_map(|(_, directory)| files_below(&root().join(directory)));
    let sources: String = files
        .filter(|file| file.extension().is_some_and(|kind| kind == "rs"))
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let exists = |test: &str| sources.contains(&format!("fn {test}"));
    let lacking = |mutant: &'static Mutant| match mutant.tests {
        [] => vec![mutant.name],
        tests => tests.iter().copied().filter(|test| !exists(test)).collect(),
    };
    MUTANTS.iter().flat_map(lacking).collect()
}

/// The broken variants: a text that is not there, one that is there often, and no change.
fn what_does_not_fit_is_said() {
    let says = |today, before| {
        let change = Change { file: "Makefile", today, before };
        misfits(root(), &Mutant { name: "x", changes: Vec::leak(vec![change]), tests: &["x"] }).join("")
    };
    assert_eq!(says("no such text", "old"), "x: its text stands 0 times in Makefile, and should stand once");
    assert!(says("CARGO", "old").contains("times in Makefile"));
    assert!(says("DEFAULT_GOAL", "DEFAULT_GOAL").contains("that of today"));
    assert_eq!(says("DEFAULT_GOAL", "old"), "");
}
