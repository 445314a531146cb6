//! Every command that a person is advised to type, in a sentence of the program or in what is shipped beside it, can be typed as it
//! stands there.

use std::fs;
use std::path::{Path, PathBuf};

use alerter::cli::Cli;
use clap::{CommandFactory as _, Parser as _};

const PROGRAM: &str = "nova-host-alerter";
/// The files that an operator reads in an emergency, relative to the root of the repository.
const PLACES: [&str; 9] = [
    "README.md",
    "docs",
    "manual/pages",
    "packaging",
    "ocf",
    "alerter/src",
    "crates",
    "fence-agent/src",
    "Makefile",
];
const ENDINGS: [&str; 7] = ["md", "rs", "yml", "toml", "json", "service", ""];

fn files(place: &Path, found: &mut Vec<PathBuf>) {
    if place.is_dir() {
        for entry in fs::read_dir(place).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else if ENDINGS.contains(&place.extension().unwrap_or_default().to_str().unwrap()) {
        found.push(place.to_owned());
    }
}

/// The text between backticks, and the lines of a page that show a command as it is typed.
fn commands(text: &str, is_page: bool) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let spans = line.split('`').skip(1).step_by(2).map(str::trim);
        found.extend(spans.filter_map(|span| command(span, is_page)));
        let typed =
            line.strip_prefix("    ").filter(|_| is_page).map(|line| line.split("  #").next().unwrap());
        found.extend(typed.map(str::trim).filter(|typed| typed.starts_with(PROGRAM)).map(str::to_owned));
    }
    found
}

/// On a page a command's own name, with words after it, means the program's command.
fn command(span: &str, is_page: bool) -> Option<String> {
    let mut words = span.split_whitespace();
    let first = words.next()?;
    let is_ours = || Cli::command().get_subcommands().any(|known| known.get_name() == first);
    match (first == PROGRAM, words.next()) {
        // A variable has the command.
        (true, Some(next)) if next.starts_with('{') => None,
        (true, Some(_)) => Some(span.to_owned()),
        // The name of a command in two words, such as `maintenance end`, advises nobody to type it.
        (false, Some("begin" | "end" | "run")) if words.next().is_none() => None,
        (false, Some(next)) if is_page && is_ours() && !next.starts_with('=') => {
            Some(format!("{PROGRAM} {span}"))
        }
        _ => None,
    }
}

/// Its words, with a value for each word in capitals and for what a sentence puts in.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('"').enumerate();
    let parts = parts.flat_map(|(place, part)| match place % 2 {
        0 => filled(part).split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    parts.map(|word| value(&word)).collect()
}

/// Braces are a sentence's own, of Rust or of Prometheus.
fn filled(part: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for letter in part.chars() {
        match letter {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                out.push_str(if depth == 0 { "compute1" } else { "" });
            }
            _ if depth > 0 => {}
            letter => out.push(letter),
        }
    }
    out
}

fn value(word: &str) -> String {
    let (option, last) = word.rsplit_once('=').map_or(("", word), |(option, last)| (option, last));
    let is_capital =
        last.chars().all(|letter| letter.is_ascii_uppercase() || letter == '|') && last.len() > 1;
    let value = match last {
        "TIME" => "2h",
        "SECONDS" | "NUMBER" | "SEQ" | "N" => "5",
        "FORMAT" => "json",
        "COMMAND" => "list",
        _ if is_capital => "compute1",
        literal => literal,
    };
    if option.is_empty() { value.to_owned() } else { format!("{option}={value}") }
}

fn fault(command: &str) -> Option<String> {
    // What comes behind it is the shell's.
    let words: Vec<String> = words(command)
        .into_iter()
        .take_while(|word| !["|", ">", "&&", "2>"].contains(&word.as_str()))
        .collect();
    let error = Cli::try_parse_from(words).err()?;
    let is_asked = ["DisplayHelp", "DisplayVersion"].contains(&format!("{:?}", error.kind()).as_str());
    (!is_asked).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

#[test]
fn every_command_that_is_advised_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    PLACES.iter().for_each(|place| files(&root.join(place), &mut found));
    let (mut count, mut faults) = (0, Vec::new());
    for file in found {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let is_page = file.extension().is_some_and(|ending| ending == "md");
        for command in commands(&text, is_page) {
            count += 1;
            let place = file.strip_prefix(root).unwrap().display();
            faults.extend(fault(&command).map(|why| format!("{place}: {command}: {why}")));
        }
    }
    assert!(count > 200, "{count}");
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}

/// The broken variants: commands that were once advised and did not work.
#[test]
fn what_is_short_of_a_word_is_found() {
    let faulty = |line: &str| commands(line, true).iter().filter(|command| fault(command).is_some()).count();
    for wrong in [
        "run `nova-host-alerter release {target}` at once",
        "run `nova-host-alerter release --group --reason TEXT`",
        "or by `nova-host-alerter maintenance end`",
        "`nova-host-alerter send-test --route ROUTE`",
        "`release HOST`, or not",
        "    nova-host-alerter pause  # everything",
    ] {
        assert_eq!(faulty(wrong), 1, "{wrong}");
    }
    for right in [
        "run `nova-host-alerter release {target} --reason TEXT`",
        "`nova-host-alerter release --group {{ $labels.group }} --reason TEXT`, `release`, `status = 5`",
        "    nova-host-alerter pause --reason \"a new switch\" --for 2h  # everything",
        "`history --limit=NUMBER`",
    ] {
        assert_eq!(faulty(right), 0, "{right}");
    }
}
