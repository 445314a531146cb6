//! The old rules of `make mutants` still fit the project: each can be put back. Whether each is found takes minutes, and is
//! read by that.

use std::path::Path;

use tests::mutants::{Change, MUTANTS, Mutant, misfits};
use tests::trials::Group;

/// Its tests; they need nothing.
pub(crate) fn group() -> Group {
    let tests = tests::trials![every_old_rule_can_be_put_back, what_does_not_fit_is_said];
    Group { cannot: None, tests }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn every_old_rule_can_be_put_back() {
    let misfits: Vec<String> = MUTANTS.iter().flat_map(|mutant| misfits(root(), mutant)).collect();
    assert!(misfits.is_empty(), "{misfits:#?}");
    assert!(
        MUTANTS.iter().all(|mutant| !mutant.tests.is_empty()),
        "one that no test is asked for is never found"
    );
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
