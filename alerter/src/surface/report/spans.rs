//! Spans of time between rows of the history: holds of marks, troubles of routes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use journal::HistoryRow;
use marks::time::Timestamp;
use serde::Serialize;

/// Holds that began in the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// So many marks.
    pub marks: usize,
    /// So often.
    pub times: usize,
    /// For so many milliseconds altogether,
    pub total_ms: u64,
    /// and at the longest.
    pub longest_ms: u64,
}

/// A time in which a route did not accept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// The route.
    pub route: String,
    /// From the first failed attempt,
    pub from: Timestamp,
    /// to the next acknowledgement, or the end of the last mark that it did not accept; none while it goes on.
    pub to: Option<Timestamp>,
    /// The first failure.
    pub detail: String,
}

/// In milliseconds.
pub(super) fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}

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

type Stretch = (Timestamp, Option<Timestamp>);

/// From when to when each mark was held; without an end if it still is.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretches(BTreeMap<String, Vec<Stretch>>);

impl Stretches {
    pub(super) fn take(&mut self, row: &HistoryRow) {
        let Some(mark) = row.mark.as_deref() else { return };
        let is_end = FREED.contains(&row.event.as_str());
        match self.0.get_mut(mark).and_then(|own| own.last_mut()).filter(|(_, end)| end.is_none()) {
            Some((_, end)) if is_end => *end = Some(row.at),
            None if begins(row) => self.0.entry(mark.to_owned()).or_default().push((row.at, None)),
            _ => {}
        }
    }

    pub(super) fn of(&self, mark: &str) -> Vec<Stretch> {
        self.0.get(mark).cloned().unwrap_or_default()
    }

    /// Holds that began in the time; one that goes on counts until its end.
    pub(super) fn held(&self, to: Timestamp) -> Held {
        let all = self.0.values().flatten();
        let spans: Vec<u64> = all.map(|(since, until)| between(*since, until.unwrap_or(to))).collect();
        Held {
            marks: self.0.len(),
            times: spans.len(),
            total_ms: spans.iter().fold(0, |all, span| all.saturating_add(*span)),
            longest_ms: spans.into_iter().max().unwrap_or(0),
        }
    }
}

/// A mark that is made without a proof or a name is held from its beginning.
fn begins(row: &HistoryRow) -> bool {
    match row.event.as_str() {
        "held" | "doubted" => true,
        "marked" => row.outcome.is_some(),
        _ => false,
    }
}

/// Troubles of routes: from the first failed attempt to the next mark that the route accepted, or to the end of the last mark that it
/// did not accept.
#[derive(Clone, Debug, Default)]
pub(super) struct Troubles {
    /// Of each route and each of its further steps: its place in the list, and the marks that it did not accept.
    open: BTreeMap<String, (usize, BTreeSet<String>)>,
    all: Vec<Trouble>,
}

impl Troubles {
    /// The next row, and whether a mark, or its way to a route, ended with it.
    pub(super) fn take(&mut self, row: &HistoryRow, is_end: bool) {
        let (route, mark) = (row.route.as_deref(), row.mark.clone().unwrap_or_default());
        match (row.event.as_str(), route) {
            ("not-accepted" | "refused", Some(route)) => self.fails(route, mark, row),
            ("acknowledged" | "acknowledged-elsewhere" | "accepted", Some(route)) => {
                if let Some((number, _)) = self.open.remove(route) {
                    self.all[number].to = Some(row.at);
                }
            }
            _ if is_end => self.ends(route, &mark, row.at),
            _ => {}
        }
    }

    pub(super) fn all(&self) -> Vec<Trouble> {
        self.all.clone()
    }

    fn fails(&mut self, route: &str, mark: String, row: &HistoryRow) {
        let (_, marks) = self.open.entry(route.to_owned()).or_insert_with(|| {
            // Further steps of a route do not count.
            let (name, detail) = (route.split('.').next().unwrap_or(route).to_owned(), row.detail.clone());
            self.all.push(Trouble { route: name, from: row.at, to: None, detail });
            (self.all.len() - 1, BTreeSet::new())
        });
        marks.insert(mark);
    }

    /// A mark ended, or its way to one route.
    fn ends(&mut self, route: Option<&str>, mark: &str, at: Timestamp) {
        let all = &mut self.all;
        self.open.retain(|own, (number, marks)| {
            let is_over = route.is_none_or(|route| route == own) && marks.remove(mark) && marks.is_empty();
            if is_over {
                all[*number].to = Some(at);
            }
            !is_over
        });
    }
}
