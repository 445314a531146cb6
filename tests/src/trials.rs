//! Tests that need more than a Rust toolchain: where this machine cannot run them, each is reported as ignored, and why.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};

/// A test's name and the function that panics if it fails.
pub type Named = (&'static str, fn());

/// Names each function by itself: `trials![first, second]`.
#[macro_export]
macro_rules! trials {
    ($($test:ident),* $(,)?) => { vec![$((stringify!($test), $test as fn())),*] };
}

/// Runs the tests as the command line asks, or ignores all of them with the reason in `cannot`.
#[must_use]
pub fn run(cannot: Option<&str>, tests: Vec<Named>) -> ExitCode {
    let trials = tests.into_iter().map(|(name, test)| {
        let reason = cannot.map(str::to_owned);
        Trial::ignorable_test(name, move || {
            let Some(reason) = reason else {
                test();
                return Ok(Completion::Completed);
            };
            Ok(Completion::ignored_with(reason))
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
