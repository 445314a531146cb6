//! How a command answers: what it prints, and what it exits with.

use anyhow::Context as _;
use serde::Serialize;

/// EX_CONFIG of sysexits.
pub(super) const WRONG_CONFIGURATION: u8 = 78;
/// The exit code where something cannot be done now and is done later by itself (`EX_TEMPFAIL` of sysexits).
pub(super) const LATER: u8 = 75;

pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    println_all(&serde_json::to_string_pretty(value).context("the answer is no JSON")?);
    Ok(())
}

pub(super) fn println_all(text: &str) {
    say(&format!("{}\n", text.trim_end()), &mut std::io::stdout());
}

/// A reader that went away (`| head`) is no fault.
pub(super) fn say(text: &str, to: &mut impl std::io::Write) {
    let _reader_is_gone = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
