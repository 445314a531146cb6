//! Spans of time between rows of the history: holds of marks, troubles of routes. Pure.

use std::collections::BTreeMap;

use marks::journal::HistoryRow;
use marks::time::Timestamp;

use super::{Held, Trouble, between};

/// What ends a hold of a mark as a whole.
const FREED: [&str; 9] = [
    "freed",
    "released",
    "proven",
    "named",
    "settled",
    "settled-elsewhere",
    "expired",
    "dismissed",
    "acknowledged-elsewhere",
];

/// Holds that began in the time; one that goes on counts until its end.
pub(super) fn holds(history: &[HistoryRow], to: Timestamp) -> Held {
    let stretches = stretches(history);
    let all = stretches.values().flatten();
    let spans: Vec<u64> = all.map(|(since, until)| between(*since, until.unwrap_or(to))).collect();
    Held {
        marks: stretches.len(),
        times: spans.len(),
        total_ms: spans.iter().fold(0, |all, span| all.saturating_add(*span)),
        longest_ms: spans.into_iter().max().unwrap_or(0),
    }
}

/// From when to when each mark was held; without an end where it is held still.
pub(super) fn stretches(history: &[HistoryRow]) -> BTreeMap<&str, Vec<Stretch>> {
    let mut all: BTreeMap<&str, Vec<Stretch>> = BTreeMap::new();
    for row in history {
        let Some(mark) = row.mark.as_deref() else { continue };
        let is_end = FREED.contains(&row.event.as_str());
        match all.get_mut(mark).and_then(|own| own.last_mut()).filter(|(_, end)| end.is_none()) {
            Some((_, end)) if is_end => *end = Some(row.at),
            None if begins(row) => all.entry(mark).or_default().push((row.at, None)),
            _ => {}
        }
    }
    all
}

type Stretch = (Timestamp, Option<Timestamp>);

/// A mark that is made without a proof or a name is held from its beginning.
fn begins(row: &HistoryRow) -> bool {
    match row.event.as_str() {
        "held" | "doubted" => true,
        "marked" => row.detail.contains(" is marked and held ("),
        _ => false,
    }
}

/// From the first attempt of a route that failed to the next mark that it took.
pub(super) fn trouble(history: &[HistoryRow]) -> Vec<Trouble> {
    let (mut open, mut all): (BTreeMap<&str, usize>, Vec<Trouble>) = Default::default();
    for row in history {
        let Some(route) = row.route.as_deref() else { continue };
        match row.event.as_str() {
            "not-accepted" | "refused" if !open.contains_key(route) => {
                open.insert(route, all.len());
                let (route, detail) = (route.to_owned(), row.detail.clone());
                all.push(Trouble { route, from: row.at.0, to: None, detail });
            }
            "acknowledged" | "accepted" => {
                if let Some(number) = open.remove(route) {
                    all[number].to = Some(row.at.0);
                }
            }
            _ => {}
        }
    }
    all
}
