//! Times as the services write them: in UTC, with a zone or without, with a fraction or without. Pure.

/// Seconds since the epoch; `None` if the text is not a time.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let read = |text: &str| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second);
    read(text).or_else(|| read(&format!("{text}Z")))
}
