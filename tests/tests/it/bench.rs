//! `make bench` works: each of its subjects, in a small form.

use std::process::Command;

use tests::programs::built;
use tests::trials::Group;

/// Those whose wrong results do not hang on the speed of a build without optimization. `scale` has tests of its own.
const SUBJECTS: [&str; 2] = ["drain", "memory"];

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group { cannot: None, tests: tests::trials![every_subject_is_measured] }
}

/// The broken variant is a subject that has not followed a change of what it measures.
fn every_subject_is_measured() {
    for subject in SUBJECTS {
        let measured = Command::new(built("bench").unwrap()).arg(subject).output().unwrap();
        let said = String::from_utf8_lossy(&measured.stdout);
        assert!(measured.status.success(), "{subject}: {said}{}", String::from_utf8_lossy(&measured.stderr));
        assert!(said.contains(&format!("== {subject}")), "{said}");
    }
}
