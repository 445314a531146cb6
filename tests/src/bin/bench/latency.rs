//! How well an endpoint that takes its time is kept busy: the ideal is as many requests at once as are allowed, always.

use std::time::Duration;

use ::tests::backlog::Backlog;
use ::tests::programs::Site;
use ::tests::sink::{Arrival, Manner, Sink};
use anyhow::ensure;
use nix::sys::signal::Signal;

use crate::figures::{line, ratio};
use crate::peers::{self, Connections};
use crate::route::tables_with;

const MARKS: usize = crate::size(10_000);
/// How long the ideal would take, where there are marks enough.
const IDEAL: Duration = Duration::from_secs(4);
/// What takes longer is cut off, and its rate taken so far.
const LIMIT: Duration = Duration::from_secs(8);
const ROUTE: &str = "recovery";

pub(crate) fn run() -> anyhow::Result<()> {
    let backlog = Backlog::of_marks(MARKS, &[ROUTE])?;
    for delay in [10, 100].map(Duration::from_millis) {
        for at_once in [8, 32, 128] {
            measure(&backlog, delay, at_once)?;
        }
    }
    Ok(())
}

fn measure(backlog: &Backlog, delay: Duration, at_once: usize) -> anyhow::Result<()> {
    let sink = Sink::on_loopback(2 * at_once, Manner::After(delay))?;
    let ideal = at_once as f64 / delay.as_secs_f64();
    line(&format!("{} ms, {at_once} at once: ideal", delay.as_millis()), format_args!("{ideal:.0} a second"));
    for connections in Connections::BOTH {
        let ours = send(backlog, &sink, (at_once, connections), (ideal * IDEAL.as_secs_f64()) as usize)?;
        ratio(&format!("ours to the ideal, {}", connections.as_str()), ours / ideal, ">= 0.95");
    }
    if let Some(wrk) = peers::installed("wrk") {
        // Its own figure counts answers that it did not wait for.
        peers::wrk(&wrk, sink.address(), at_once, Connections::Kept)?;
        let theirs = rate(&sink.take(), at_once)?;
        ratio(
            "wrk to the ideal, connections kept",
            theirs / ideal,
            "- (what this machine and the sink allow)",
        );
    }
    Ok(())
}

/// Sends `count` marks, or all there are, and gives the rate behind the first round.
fn send(
    backlog: &Backlog,
    sink: &Sink,
    (at_once, connections): (usize, Connections),
    count: usize,
) -> anyhow::Result<f64> {
    // Whole rounds: where requests come in bursts, a part of one would count for too much.
    let count = count.min(backlog.count) / at_once * at_once;
    let mut site = Site::with(&tables_with(at_once, &[(ROUTE, sink.address())], connections))?;
    backlog.lay_into(&site)?;
    site.launch()?;
    let _in_time = sink.wait_for(count, LIMIT);
    site.end(Signal::SIGTERM)?;
    let mut arrivals = sink.take();
    let came = backlog.check(&arrivals)?;
    ensure!(came.again == 0, "{} marks came again", came.again);
    arrivals.truncate(count);
    rate(&arrivals, at_once)
}

fn rate(arrivals: &[Arrival], at_once: usize) -> anyhow::Result<f64> {
    ensure!(arrivals.len() > at_once, "only {} marks were sent within {} s", arrivals.len(), LIMIT.as_secs());
    let (first, last) = (&arrivals[at_once - 1], &arrivals[arrivals.len() - 1]);
    Ok((arrivals.len() - at_once) as f64 / last.at.saturating_duration_since(first.at).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// The broken variant counts from the very first request, and makes an ideal sender better than ideal.
    #[test]
    fn bursts_without_a_pause_are_the_ideal() {
        let (begin, delay, at_once) = (Instant::now(), Duration::from_millis(10), 8);
        let at = |number: u32| begin + delay * (number / 8);
        let ideal: Vec<Arrival> =
            (0..80).map(|number| Arrival { at: at(number), body: Vec::new() }).collect();
        assert!((rate(&ideal, at_once).unwrap() - 800.0).abs() < 1e-6);
        let careless = ideal.len() as f64 / (ideal[79].at - ideal[0].at).as_secs_f64();
        assert!(careless > 850.0);
        assert!(rate(&ideal[..8], at_once).is_err());
    }
}
