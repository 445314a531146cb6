//! How a command answers: what it prints, in which format, and what it exits with.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use journal::JournalError;
use saphyr::{LoadableYamlNode as _, Yaml, YamlEmitter};
use serde::Serialize;
use serde_json::{Value, json};

use super::terminal;
use crate::cli::{Cli, Command as Asked, HistoryPart, Maintenance, PrintAs};
use crate::control::client::ClientError;

/// EX_CONFIG of sysexits.
pub(super) const WRONG_CONFIGURATION: u8 = 78;
/// The exit code where something cannot be done now and is done later by itself (`EX_TEMPFAIL` of sysexits).
pub(super) const LATER: u8 = 75;
/// The exit code of clap, for what is wrong in the command line.
const WRONG_USAGE: u8 = 2;

/// The command line asks for something that does not exist or makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);

/// Prints the value for programs, or the text for people.
pub(super) fn print(cli: &Cli, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
    println_all(&for_programs(cli, value)?.unwrap_or_else(text));
    Ok(())
}

/// The value as JSON or YAML, where one of them was asked for.
pub(super) fn for_programs(cli: &Cli, value: &impl Serialize) -> anyhow::Result<Option<String>> {
    Ok(match cli.format() {
        PrintAs::Json => Some(serde_json::to_string_pretty(value).context("the answer is not JSON")?),
        PrintAs::Yaml => Some(yaml(value)?),
        PrintAs::Table | PrintAs::Wide | PrintAs::Csv => None,
    })
}

/// One document of YAML in block style. All JSON is YAML.
pub(super) fn yaml(value: &impl Serialize) -> anyhow::Result<String> {
    let json = serde_json::to_string(value).context("the answer is not JSON")?;
    let documents = Yaml::load_from_str(&json).context("the answer is not YAML")?;
    let mut text = String::new();
    for document in &documents {
        YamlEmitter::new(&mut text).dump(document).context("the answer is not YAML")?;
    }
    Ok(text)
}

/// Records of RFC 4180. What a terminal does not show is written as in an export.
pub(super) fn csv(rows: &[Vec<String>]) -> anyhow::Result<String> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row.iter().map(|cell| shown(cell)))?;
    }
    Ok(String::from_utf8_lossy(&writer.into_inner()?).into_owned())
}

/// Prints records; the last one ends as the others do.
pub(super) fn print_csv(rows: &[Vec<String>]) -> anyhow::Result<()> {
    say(&csv(rows)?, &mut io::stdout());
    Ok(())
}

/// The text with `\u{1b}` for each hidden character.
pub(super) fn shown(text: &str) -> String {
    let show =
        |c: char| if site::is_hidden(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() };
    text.chars().map(show).collect()
}

pub(super) fn println_all(text: &str) {
    say(&format!("{}\n", text.trim_end()), &mut io::stdout());
}

/// A reader that went away (`| head`) is no fault.
pub(super) fn say(text: &str, to: &mut impl io::Write) {
    let _reader_is_gone = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}

/// Through `$PAGER`, else `less -FRX`, where stdout is a terminal that the text does not fit.
pub(super) fn page(text: &str) {
    let rows = terminal::size(&io::stdout()).filter(|_| io::stdout().is_terminal()).map(|(_, rows)| rows);
    let is_long = rows.is_some_and(|rows| text.lines().count() >= rows);
    if !is_long || terminal::is_dumb() || paged(text).is_err() {
        println_all(text);
    }
}

fn paged(text: &str) -> io::Result<()> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less -FRX".to_owned());
    let mut words = pager.split_whitespace();
    let program = words.next().ok_or(io::ErrorKind::NotFound)?;
    let mut child = Command::new(program).args(words).stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let _reader_is_gone = stdin.write_all(text.as_bytes());
    }
    child.wait().map(drop)
}

/// Refuses a format that makes no sense for the command.
pub(super) fn check_format(cli: &Cli) -> Result<(), Usage> {
    let (known, format) = (formats(&cli.command), cli.format());
    // clap does not see a conflict of which one half stands before the command.
    if cli.json && cli.print_as.is_some() {
        return Err(Usage("--json and -o exclude each other: use one of them".to_owned()));
    }
    if known.contains(&format) {
        return Ok(());
    }
    let words: Vec<String> = known.iter().map(|one| word(*one)).collect();
    let instead = match &cli.command {
        Asked::History(history) if history.export.is_some() => "use --format".to_owned(),
        _ => format!("use {}", words.join(", ")),
    };
    Err(Usage(format!("-o {} makes no sense for this command: {instead}", word(format))))
}

fn word(format: PrintAs) -> String {
    format!("{format:?}").to_ascii_lowercase()
}

fn formats(command: &Asked) -> &'static [PrintAs] {
    use PrintAs::{Csv, Json, Table, Wide, Yaml};
    match command {
        Asked::Run | Asked::Complete(_) => &[Table],
        Asked::Status(options) if options.ocf.is_some() || options.process => &[Table],
        Asked::Status(options) if !options.check => &[Table, Wide, Json, Yaml],
        Asked::Show(_) => &[Table, Wide, Json, Yaml],
        Asked::History(options) => match options.export {
            Some(HistoryPart::Export(_)) => &[Table],
            None => &[Table, Wide, Json, Yaml, Csv],
        },
        Asked::List(_) | Asked::Maintenance(Maintenance::List) => &[Table, Wide, Json, Yaml, Csv],
        Asked::Events(_) => &[Table, Json],
        _ => &[Table, Json, Yaml],
    }
}

/// An error with its causes, each once: many name their cause themselves.
pub(super) fn sentence(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(|said, cause| match said.contains(&cause) {
            true => said,
            false => format!("{said}: {cause}"),
        })
        .unwrap_or_default()
}

/// Says on stderr why a command failed, in the format that was asked for; gives the exit code.
pub(super) fn failed(format: PrintAs, error: &anyhow::Error) -> ExitCode {
    let kind = kind(error);
    complain(format, &kind, &sentence(error));
    ExitCode::from(if is_usage(&kind) { WRONG_USAGE } else { 1 })
}

/// `{"error": {"kind": …, "message": …}}`, or one line.
pub(super) fn complain(format: PrintAs, kind: &str, message: &str) {
    let value = json!({ "error": { "kind": kind, "message": message } });
    let text = match format {
        PrintAs::Json => format!("{value:#}\n"),
        PrintAs::Yaml => yaml(&value).unwrap_or_default() + "\n",
        _ => format!("nova-host-alerter: {message}\n"),
    };
    say(&text, &mut io::stderr());
}

/// A word for machines.
pub(super) fn kind(error: &anyhow::Error) -> String {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        let usage = cause.downcast_ref::<Usage>().map(|_| "usage".to_owned());
        let journal = || cause.downcast_ref::<JournalError>().map(|error| error.kind().to_owned());
        let client = || cause.downcast_ref::<ClientError>().map(|error| error.kind().to_owned());
        usage.or_else(journal).or_else(client)
    };
    error.chain().find_map(of).unwrap_or_else(|| "failed".to_owned())
}

/// What the daemon refuses for what stands in the command line is a usage error as well.
fn is_usage(kind: &str) -> bool {
    const WORDS: [&str; 10] =
        ["usage", "reason", "scope", "id", "host", "mark", "form", "range", "request", "route"];
    WORDS.contains(&kind) || kind.starts_with("unknown-")
}

/// A heading, and a record of these fields of each value.
pub(super) fn records<T: Serialize>(columns: &[&str], all: &[T]) -> Vec<Vec<String>> {
    let heading = columns.iter().map(|name| (*name).to_owned()).collect();
    std::iter::once(heading).chain(all.iter().map(|one| record(columns, one))).collect()
}

/// These fields of a value.
pub(super) fn record(columns: &[&str], one: &impl Serialize) -> Vec<String> {
    let value = serde_json::to_value(one).unwrap_or_default();
    columns.iter().map(|name| cell(&value[*name])).collect()
}

/// The cell of a value for people and CSV.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// The broken variant prints the chain: a cause that its error names already is said twice.
    #[test]
    fn a_cause_is_said_once() {
        let cib = pacemaker::cib::tree("<cib>").unwrap_err();
        let said = sentence(&anyhow::Error::from(cib).context("the configuration cannot be read"));
        assert_eq!(said, "the configuration cannot be read: the CIB is not complete (it was cut off)");
        let deep = anyhow::anyhow!("why").context("what");
        assert_eq!(sentence(&deep), "what: why");
    }

    /// The broken variant writes words that YAML reads as something else.
    #[test]
    fn yaml_says_what_json_says() {
        let nasty = json!({ "a": ["no", "1", "1e3", "~", "", " x", "a: b", "- c", "it's \"q\"", "ä\n\t#", "2026-11-22T03:00:00.000Z"],
            "empty": [], "nothing": null, "number": 7, "truth": true, "of": { "x y": -1, "none": {} } });
        let text = yaml(&nasty).unwrap();
        assert!(text.starts_with("---\na:\n"), "{text}");
        let (there, back) =
            (Yaml::load_from_str(&nasty.to_string()).unwrap(), Yaml::load_from_str(&text).unwrap());
        assert_eq!(there, back, "{text}");
    }

    #[test]
    fn csv_quotes_what_it_must_and_hides_nothing() {
        let rows =
            [vec!["host".to_owned(), "why".to_owned()], vec!["c1".to_owned(), "a, \"b\"\u{1b}".to_owned()]];
        assert_eq!(csv(&rows).unwrap(), "host,why\r\nc1,\"a, \"\"b\"\"\\u{1b}\"\r\n");
    }

    #[test]
    fn a_format_that_makes_no_sense_is_refused() {
        let check = |line: &str| {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            check_format(&cli).map_err(|why| why.to_string())
        };
        for right in
            ["x list -o csv", "x -o yaml status", "x history -o wide", "x show c1 --json", "x events --json"]
        {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        let said = check("x show c1 -o csv").unwrap_err();
        assert_eq!(said, "-o csv makes no sense for this command: use table, wide, json, yaml");
        for wrong in [
            "x --json list -o csv",
            "x run --json",
            "x report -o csv",
            "x status --ocf --json",
            "x history export -o csv",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_error_has_the_kind_of_its_cause() {
        let refused = ClientError::Refused { kind: "unknown-group".into(), message: "x".into() };
        let kinds = [anyhow::Error::from(refused), Usage("x".into()).into(), anyhow::anyhow!("x")]
            .map(|error| kind(&error));
        assert_eq!(kinds, ["unknown-group", "usage", "failed"]);
        assert!(
            is_usage("unknown-group") && is_usage("usage") && !is_usage("not-found") && !is_usage("failed")
        );
    }
}
