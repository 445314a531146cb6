//! What a driver's attempt came to, in words.

use anyhow::ensure;
use drivers::Outcome;

/// The outcome's word, and what kind of failure it is.
#[must_use]
pub fn word(outcome: &Outcome) -> String {
    match outcome.failure() {
        None => outcome.as_str().to_owned(),
        Some(failure) => format!("{} {}", outcome.as_str(), failure.kind),
    }
}

/// Fails where an outcome is another than this one. A part of one, such as `rejected`, is enough.
///
/// # Errors
/// It is another one.
pub fn expect(outcome: &Outcome, expected: &str) -> anyhow::Result<()> {
    let seen = word(outcome);
    let fits = seen == expected || seen.starts_with(&format!("{expected} "));
    ensure!(fits, "expected {expected}, but: {outcome:?}");
    Ok(())
}
