//! Times as the services write them: in UTC, with a zone or without, with a fraction or without. Pure.

use marks::time::Timestamp;
use serde_json::Value;

/// Seconds since the epoch; `None` if the text is not a time.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let read = |text: &str| Timestamp::parse(text).ok().map(Timestamp::seconds);
    read(text).or_else(|| read(&format!("{text}Z")))
}

/// The same of a field of an answer.
pub(crate) fn of(field: &Value) -> Option<i64> {
    seconds(field.as_str()?)
}
