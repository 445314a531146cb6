//! The completions of the shells, from the command line that clap reads.

use alerter::cli::Cli;
use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

const PROGRAM: &str = "nova-host-alerter";

/// Each shell's file, under the name that the shell looks for.
pub(crate) fn all() -> Vec<(String, String)> {
    let names = [
        (Shell::Bash, format!("{PROGRAM}.bash")),
        (Shell::Zsh, format!("_{PROGRAM}")),
        (Shell::Fish, format!("{PROGRAM}.fish")),
    ];
    names.into_iter().map(|(shell, name)| (name, script(shell))).collect()
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), PROGRAM, &mut script);
    mended(&String::from_utf8(script).expect("clap's names are text"))
}

/// For a program with a hyphen in its name, clap writes the arms of bash's script otherwise than it looks for them, so that
/// nothing is offered behind a command (clap issue 6421).
fn mended(script: &str) -> String {
    script.replace(&PROGRAM.replace('-', "__subcmd__"), &PROGRAM.replace('-', "__"))
}
