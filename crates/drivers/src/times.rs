//! Times as the services write them: in UTC, with a zone or without, with a fraction or without. Pure.

/// Seconds since the epoch; `None` if the text is not a time.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let read = |text: &str| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second);
    read(text).or_else(|| read(&format!("{text}Z")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_the_same_whatever_its_form() {
        for text in [
            "2026-07-21T02:13:21.000000",
            "2026-07-21T02:13:21",
            "2026-07-21 02:13:21",
            "2026-07-21T02:13:21Z",
            "2026-07-21T04:13:21+02:00",
        ] {
            assert_eq!(seconds(text), Some(1_784_600_001), "{text}");
        }
        assert_eq!(["soon", "", "Z"].map(seconds), [None; 3]);
    }
}
