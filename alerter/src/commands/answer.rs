//! How a command answers: what it prints, in which format, and what it exits with.

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use journal::JournalError;
use serde::Serialize;
use serde_json::json;

use crate::cli::{Cli, Command, PrintAs, Status};
use crate::control::client::ClientError;

/// EX_CONFIG of sysexits.
pub(super) const WRONG_CONFIGURATION: u8 = 78;
/// The exit code where something cannot be done now (`EX_TEMPFAIL` of sysexits).
pub(super) const NOT_NOW: u8 = 75;
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

/// The value as JSON, where that was asked for.
pub(super) fn for_programs(cli: &Cli, value: &impl Serialize) -> anyhow::Result<Option<String>> {
    let json = || serde_json::to_string_pretty(value).context("the answer is not JSON");
    cli.is_for_programs().then(json).transpose()
}

pub(super) fn println_all(text: &str) {
    say(&format!("{}\n", text.trim_end()), &mut io::stdout());
}

/// A reader that went away (`| head`) is no fault.
pub(super) fn say(text: &str, to: &mut impl io::Write) {
    let _reader_is_gone = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}

/// Refuses JSON where the command has none.
pub(super) fn check_format(cli: &Cli) -> Result<(), Usage> {
    let has_none = match &cli.command {
        Command::Run => true,
        Command::Status(Status { ocf, process, .. }) => ocf.is_some() || *process,
        _ => false,
    };
    match has_none && cli.is_for_programs() {
        true => Err(Usage("there is no JSON of this command: leave the format out".to_owned())),
        false => Ok(()),
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
        PrintAs::Table => format!("nova-host-alerter: {message}\n"),
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

#[cfg(test)]
mod tests {

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
