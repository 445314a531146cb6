//! `alert_mark`, the Pacemaker alert agent that keeps the evidence of fencings.

use std::process::ExitCode;

fn main() -> ExitCode {
    fence_agent::alert::main()
}
