//! Spans of time between rows of the history: holds of marks, troubles of routes. Pure.

use std::collections::{BTreeMap, BTreeSet};

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
    let (mut open, mut marks, mut spans) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    for row in history {
        let Some(mark) = row.mark.as_deref() else { continue };
        if begins(row) {
            marks.insert(mark);
            open.entry(mark).or_insert(row.at);
        } else if FREED.contains(&row.event.as_str())
            && let Some(since) = open.remove(mark)
        {
            spans.push(between(since, row.at));
        }
    }
    spans.extend(open.into_values().map(|since| between(since, to)));
    Held {
        marks: marks.len(),
        times: spans.len(),
        total_ms: spans.iter().fold(0, |all, span| all.saturating_add(*span)),
        longest_ms: spans.into_iter().max().unwrap_or(0),
    }
}

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
