//! The command line of nova-host-alerter on its page, from clap's commands and options.

use clap::builder::ValueRange;
use clap::{Arg, ArgAction, Command};

use crate::roff::{Page, bold, italic, prose};

/// The options that every command takes.
pub(crate) fn options(program: &Command) -> String {
    let mut page = Page::default();
    options_of(&built(program), true, &mut page);
    page.into_text()
}

/// Every command with its own options, those below a command too.
pub(crate) fn commands(program: &Command) -> String {
    let mut page = Page::default();
    for command in built(program).get_subcommands() {
        add(command, &[], &mut page);
    }
    page.into_text()
}

/// The usage of each command, in one line.
pub(crate) fn synopsis(program: &Command) -> String {
    format!("{} {} {}\n", bold(program.get_name()), "[\\fIOPTIONS\\fR]", italic("COMMAND"))
}

fn built(program: &Command) -> Command {
    let mut program = program.clone();
    program.build();
    program
}

fn add(command: &Command, above: &[&str], page: &mut Page) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let path = [above, &[command.get_name()]].concat();
    page.part(&path.join(" "));
    page.paragraph(&usage(command, &path));
    page.paragraph(&sentence(&command.get_about().map(ToString::to_string).unwrap_or_default()));
    options_of(command, false, page);
    for below in command.get_subcommands() {
        add(below, &path, page);
    }
}

/// How it is typed, each option by itself.
fn usage(command: &Command, path: &[&str]) -> String {
    let own = command.get_arguments().filter(|arg| is_own(arg));
    let (options, words): (Vec<&Arg>, Vec<&Arg>) = own.partition(|arg| !arg.is_positional());
    let parts = options
        .iter()
        .chain(&words)
        .map(|arg| if arg.is_required_set() { form(arg) } else { format!("[{}]", form(arg)) });
    let below = command
        .has_subcommands()
        .then(|| if words.is_empty() { italic("COMMAND") } else { format!("| {}", italic("COMMAND")) });
    let name = bold(&path.join(" "));
    [name].into_iter().chain(parts).chain(below).collect::<Vec<_>>().join(" ")
}

/// Options of every command are explained once, and help by itself.
fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set()
        && !arg.is_hide_set()
        && !matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        )
}

fn options_of(command: &Command, is_program: bool, page: &mut Page) {
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && (is_program || is_own(arg))) {
        let short = arg.get_long().and(arg.get_short()).map(|letter| bold(&format!("-{letter}")));
        let head = short.into_iter().chain([form(arg)]).collect::<Vec<_>>().join(", ");
        page.item(&[head], &[explanation(arg)]);
    }
}

/// An option or a word as it is typed.
fn form(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| italic(name)).collect::<Vec<_>>().join(" ");
    let takes = arg.get_num_args().unwrap_or(ValueRange::EMPTY);
    let long = arg.get_long().map(|long| format!("--{long}"));
    let Some(name) = long.or_else(|| Some(format!("-{}", arg.get_short()?))) else {
        let many = if takes.max_values() > 1 { "..." } else { "" };
        let before = if arg.is_last_set() { "\\-\\- " } else { "" };
        return format!("{before}{value}{many}");
    };
    let option = bold(&name);
    match (takes.takes_values(), takes.min_values()) {
        (false, _) => option,
        (true, 0) => format!("{option}[={value}]"),
        (true, _) => format!("{option} {value}"),
    }
}

fn explanation(arg: &Arg) -> String {
    let help = sentence(&arg.get_help().map(ToString::to_string).unwrap_or_default());
    let takes_values = arg.get_num_args().is_some_and(|takes| takes.takes_values());
    let words: Vec<String> = match takes_values {
        true => arg.get_possible_values().iter().map(|word| bold(word.get_name())).collect(),
        false => Vec::new(),
    };
    let words = (!words.is_empty()).then(|| format!("One of {}.", words.join(", ")));
    let usual: Vec<String> = match takes_values {
        true => arg.get_default_values().iter().map(|value| bold(&value.to_string_lossy())).collect(),
        false => Vec::new(),
    };
    let usual = (!usual.is_empty()).then(|| format!("Default: {}.", usual.join(" ")));
    let is_repeated = !arg.is_positional() && matches!(arg.get_action(), ArgAction::Append);
    let again = is_repeated.then(|| "May be given more than once.".to_owned());
    [Some(help), words, usual, again].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// clap's texts have no full stop; text between backticks is typed.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let parts: Vec<String> = text
        .split('`')
        .enumerate()
        .map(|(at, part)| if at % 2 == 1 { bold(part) } else { prose(part) })
        .collect();
    let stop = if text.is_empty() || text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{stop}", parts.concat())
}
