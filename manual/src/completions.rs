//! The completions of the shells, from the command line that clap reads.

use alerter::cli::Cli;
use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

const PROGRAM: &str = "nova-host-alerter";

/// Each shell's file, under the name that the shell expects.
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
    corrected(&String::from_utf8(script).expect("clap's names are text"))
}

/// For a program with a hyphen in its name, bash's script of clap does not find its own arms, so it offers nothing behind a
/// command (clap issue 6421).
fn corrected(script: &str) -> String {
    script.replace(&PROGRAM.replace('-', "__subcmd__"), &PROGRAM.replace('-', "__"))
}
