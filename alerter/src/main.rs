//! The program `nova-host-alerter`; all it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    alerter::commands::main()
}
