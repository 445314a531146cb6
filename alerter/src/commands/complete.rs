//! `complete`: what can stand at the end of a command line now. The completions of the shells ask for it at each Tab.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory as _};

use super::answer::println_all;
use super::sources::Sources;
use super::{decide, filter, near};
use crate::cli::{self, Cli, DEFAULT_CONFIG};
use crate::config;

/// What can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Any host.
    Host,
    /// Hosts and ids of open marks.
    Target,
    Route,
    Group,
    State,
    Column,
}

pub(super) fn run(cli: &Cli, options: &cli::Complete) -> anyhow::Result<ExitCode> {
    let Some(kind) = kind(&options.words) else { return Ok(ExitCode::SUCCESS) };
    // The line that is completed may name another file.
    let config = value_of(&options.words, "--config").unwrap_or(DEFAULT_CONFIG);
    let is_default = cli.config.as_os_str() == DEFAULT_CONFIG;
    let config = if is_default { config.into() } else { cli.config.clone() };
    let asked = Cli { config, json: false, print_as: None, command: cli::Command::Run };
    let begun = options.words.last().map_or("", String::as_str);
    let fitting: Vec<String> =
        names(&asked, kind).into_iter().filter(|name| name.starts_with(begun)).collect();
    println_all(&fitting.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn names(cli: &Cli, kind: Kind) -> BTreeSet<String> {
    let settings = || config::load(&cli.config).ok();
    match kind {
        Kind::Host => decide::known_hosts(cli).iter().map(ToString::to_string).collect(),
        Kind::Target => {
            let open = Sources::quiet(cli).map(|sources| near::open(&sources)).unwrap_or_default();
            open.iter().flat_map(|mark| [mark.node.to_string(), mark.id.to_string()]).collect()
        }
        Kind::Route => {
            settings().into_iter().flat_map(|it| it.routes).map(|route| route.name.to_string()).collect()
        }
        Kind::Group => settings().into_iter().flat_map(|it| it.groups).map(|group| group.name).collect(),
        Kind::State => filter::words().into_iter().map(str::to_owned).collect(),
        Kind::Column => super::list::names().map(str::to_owned).collect(),
    }
}

/// What the last word names: by the option before it, else by the command's argument.
fn kind(words: &[String]) -> Option<Kind> {
    let (last, before) = words.split_last()?;
    let (command, program) = (Cli::command(), before.iter().map(String::as_str));
    let command = program.clone().fold(&command, |at, word| at.find_subcommand(word).unwrap_or(at));
    let option = before.last().and_then(|word| word.strip_prefix("--"));
    let is_value = option.and_then(|name| command.get_arguments().find(|arg| arg.get_long() == Some(name)));
    match is_value.filter(|arg| arg.get_action().takes_values()) {
        Some(arg) => of_option(arg),
        None if last.starts_with('-') => None,
        None => of_argument(command),
    }
}

fn of_option(arg: &Arg) -> Option<Kind> {
    match arg.get_long()? {
        "host" => Some(Kind::Host),
        "group" => Some(Kind::Group),
        "route" => Some(Kind::Route),
        "state" => Some(Kind::State),
        "columns" => Some(Kind::Column),
        _ => None,
    }
}

fn of_argument(command: &Command) -> Option<Kind> {
    let id = command.get_positionals().next()?.get_id().as_str();
    match id {
        "targets" | "target" => Some(Kind::Target),
        "host" | "hosts" => Some(Kind::Host),
        "route" => Some(Kind::Route),
        _ => None,
    }
}

fn value_of<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| word == option)?;
    words.get(at + 1).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_what_its_place_says() {
        let of = |line: &str| kind(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for (line, wanted) in [
            ("show ", Some(Kind::Target)),
            ("unmark compute1 comp", Some(Kind::Target)),
            ("hold ", Some(Kind::Host)),
            ("maintenance begin ", Some(Kind::Host)),
            ("list --state ", Some(Kind::State)),
            ("list --group r", Some(Kind::Group)),
            ("--config /x history --route ", Some(Kind::Route)),
            ("send-test ", Some(Kind::Route)),
            ("list --columns ", Some(Kind::Column)),
            ("list --limit ", None),
            ("list --a", None),
            ("", None),
        ] {
            assert_eq!(of(line), wanted, "{line}");
        }
    }
}
