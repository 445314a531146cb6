//! One outage of a host, as it is drawn.

use marks::delivery::{Delivery, State};
use marks::mark::MarkRow;
use marks::time::Timestamp;

use marks::delivery::is_step;

/// One outage of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The host.
    pub host: String,
    /// When it was fenced.
    pub failed: Timestamp,
    /// When its mark was made.
    pub marked: Timestamp,
    /// The routes that acknowledged it, and when.
    pub acknowledged: Vec<(String, Timestamp)>,
    /// From when to when it was held; without an end it is held still.
    pub held: Vec<(Timestamp, Option<Timestamp>)>,
    /// When it ended; an open one has no end yet.
    pub settled: Option<Timestamp>,
    /// How it stands, or how it ended.
    pub state: State,
}

impl Episode {
    /// A mark with its deliveries. A hold without an end is one that it has now.
    pub fn of(mark: &MarkRow, deliveries: &[Delivery], held: Vec<(Timestamp, Option<Timestamp>)>) -> Self {
        let is_notified =
            |delivery: &&Delivery| delivery.state == State::Acknowledged && !is_step(&delivery.route);
        let took = deliveries.iter().filter(is_notified);
        let is_held = held.iter().any(|(_, until)| until.is_none());
        Self {
            host: mark.node.to_string(),
            failed: mark.failure_time,
            marked: mark.made_at,
            acknowledged: took
                .filter_map(|delivery| Some((delivery.route.clone(), delivery.ended_at?)))
                .collect(),
            held,
            settled: mark.settled.map(|(_, at)| at),
            state: State::of_mark(mark.settled.map(|(how, _)| how), is_held, deliveries),
        }
    }

    pub(super) fn until(&self, now: Timestamp) -> Timestamp {
        self.settled.unwrap_or(now)
    }
}
