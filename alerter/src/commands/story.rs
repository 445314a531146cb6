//! A mark's story line by line.

use super::terminal::clean;
use crate::outage::{Moment, Times};
use crate::words::{length, utc as time};

/// All lines, with the time since the host failed.
pub(super) fn lines(timeline: &[Moment]) -> String {
    let width = timeline.iter().map(|one| one.event.chars().count()).max().unwrap_or(0);
    let shown = |one: &Moment| {
        let by = if one.by.is_empty() { String::new() } else { format!(" ({})", one.by) };
        let (at, after, event, what) =
            (time(one.at), one.since_failure(), &one.event, clean(&one.sentence()));
        format!("  {at}  {after:>5}  {event:width$}  {what}{by}\n")
    };
    timeline.iter().map(shown).collect()
}

/// The times that matter, from the failure on.
pub(super) fn times(times: &Times) -> String {
    let since = |at| match at < times.fenced {
        true => format!("{} before", length(times.fenced.since(at))),
        false => format!("{} after", length(at.since(times.fenced))),
    };
    let all = [
        ("lost", times.lost),
        ("marked", Some(times.marked)),
        ("acknowledged", times.acknowledged),
        ("back", times.back),
    ];
    let known = all.into_iter().filter_map(|(what, at)| Some(format!("{what} {}", since(at?))));
    known.collect::<Vec<_>>().join(", ")
}
