//! Tests that need more than a Rust toolchain: where this machine cannot run them, each is reported as ignored, and why.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};

/// A test's name and the function that panics if it fails.
pub type Named = (&'static str, fn());

/// Tests that need the same things.
pub struct Group {
    /// Why this machine cannot run them.
    pub cannot: Option<String>,
    /// The tests.
    pub tests: Vec<Named>,
}

/// Names each function by itself, with its module: `trials![first, second]`.
#[macro_export]
macro_rules! trials {
    ($($test:ident),* $(,)?) => { vec![$((concat!(module_path!(), "::", stringify!($test)), $test as fn())),*] };
}

/// Runs the tests as the command line asks, or ignores those that cannot run, each with its reason.
#[must_use]
pub fn run(groups: impl IntoIterator<Item = Group>) -> ExitCode {
    let trials = groups.into_iter().flat_map(|group| {
        let cannot = group.cannot;
        group.tests.into_iter().map(move |(name, test)| trial(name, test, cannot.clone()))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn trial(name: &str, test: fn(), cannot: Option<String>) -> Trial {
    Trial::ignorable_test(name, move || {
        let Some(reason) = cannot else {
            test();
            return Ok(Completion::Completed);
        };
        Ok(Completion::ignored_with(reason))
    })
}
