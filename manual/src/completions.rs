//! The completions of the shells, from the command line that clap reads; names that change they ask the program for.

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
    with_names(shell, &corrected(&String::from_utf8(script).expect("clap's names are text")))
}

const BASH: &str = r#"
_nova__host__alerter_names() {
    _nova__host__alerter "$@"
    local names
    names=$("$1" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ -n $names ]] || return 0
    [[ ${COMP_WORDS[COMP_CWORD - 1]} != --* ]] || COMPREPLY=()
    COMPREPLY+=($(compgen -W "$names" -- "${COMP_WORDS[COMP_CWORD]}"))
}
"#;

const ZSH: &str = r#"
_nova-host-alerter() {
    local -a names
    names=(${(f)"$(nova-host-alerter complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    (( $#names )) && compadd -a names
    _nova-host-alerter_words "$@"
}

if [ "#;

const FISH: &str = "complete -c nova-host-alerter -a '(type -q nova-host-alerter; and nova-host-alerter complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n";

/// With the hosts, marks, routes, groups and states as they are when somebody presses Tab.
fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => {
            script.replace("complete -F _nova__host__alerter ", "complete -F _nova__host__alerter_names ")
                + BASH
        }
        Shell::Zsh => script
            .replace("\n_nova-host-alerter() {", "\n_nova-host-alerter_words() {")
            .replace("\nif [ ", ZSH),
        _ => script.to_owned() + FISH,
    }
}

/// For a program with a hyphen in its name, bash's script of clap does not find its own arms, so it offers nothing behind a
/// command (clap issue 6421).
fn corrected(script: &str) -> String {
    script.replace(&PROGRAM.replace('-', "__subcmd__"), &PROGRAM.replace('-', "__"))
}
