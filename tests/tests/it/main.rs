//! Everything of this crate that is not the real cluster, in one binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clock;
mod default_config;
mod deps;
mod examples;
mod killed;
mod ocf;
mod path;
mod program;

use std::process::ExitCode;

use tests::trials;

fn main() -> ExitCode {
    trials::run([
        clock::group(),
        default_config::group(),
        deps::group(),
        examples::group(),
        killed::group(),
        ocf::group(),
        path::group(),
        program::group(),
    ])
}
