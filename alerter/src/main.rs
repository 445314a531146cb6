//! The program `nova-host-alerter`; all it does is in the library.

use std::process::ExitCode;

use alerter::cli::Cli;
use clap::Parser;

fn main() -> ExitCode {
    let cli = Cli::parse();
    alerter::commands::run(&cli).unwrap_or_else(|error| {
        eprintln!("nova-host-alerter: {error:#}");
        ExitCode::FAILURE
    })
}
