//! `fence_mark`, the STONITH agent that marks a fenced host.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The time of the failure: taken before anything can wait.
    fence_agent::run::main(marks::time::Timestamp::now())
}
