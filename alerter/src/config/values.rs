//! What several tables hold alike.

use marks::host::HostPatterns;
use site::Section;

/// The limits of a time in the configuration, in seconds: a day is longer than anything that makes sense.
pub(super) const SECONDS: std::ops::RangeInclusive<u32> = 1..=86_400;

/// A list of node names or patterns.
pub(super) fn patterns<'a>(section: &mut Section<'a, '_>, key: &'static str) -> Option<Vec<&'a str>> {
    section.texts(key, |text| match HostPatterns::from_entries([text]) {
        Ok(_) => Ok(()),
        Err(why) => Err(why.to_string()),
    })
}
