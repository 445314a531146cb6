//! What a hostile endpoint does to a healthy one: from a mark to its POST on the healthy route, alone and beside it.

use std::time::{Duration, Instant};
use std::{array, thread};

use anyhow::ensure;
use marks::time::Timestamp;
use nix::sys::signal::Signal;
use tests::backlog::Backlog;
use tests::programs::Site;
use tests::sink::{Manner, Sink};

use crate::figures::{Times, line, ratio};
use crate::path::record;
use crate::route::{USUAL_IN_FLIGHT, tables};

/// Open marks that the hostile endpoint has not taken yet.
const OPEN: usize = crate::size(1000);
const TURNS: usize = 3;
/// Marks in each turn.
const ROUNDS: usize = crate::size(100);
/// From one mark to the next, so that the acknowledgement of one is not timed with the next.
const PAUSE: Duration = Duration::from_millis(10);
const ARRIVAL: Duration = Duration::from_secs(60);

/// What is beside the healthy endpoint.
const NEIGHBOURS: [(&str, Neighbour); 5] = [
    ("alone", Neighbour::None),
    ("beside one that drips its body", Neighbour::Open(Manner::Dripping)),
    ("beside one that never answers", Neighbour::Open(Manner::Silent)),
    ("beside one that answers 503", Neighbour::Open(Manner::Busy)),
    ("beside a closed port", Neighbour::Closed),
];

#[derive(Clone, Copy)]
enum Neighbour {
    None,
    Open(Manner),
    Closed,
}

pub(crate) fn run() -> anyhow::Result<()> {
    let backlog = Backlog::of_marks(OPEN, &["healthy", "hostile"])?;
    backlog.acknowledge("healthy")?;
    let mut times: [Times; NEIGHBOURS.len()] = array::from_fn(|_| Times::default());
    for turn in 0..TURNS {
        for ((name, neighbour), times) in NEIGHBOURS.iter().zip(&mut times) {
            measure(&backlog, *neighbour, turn, times).map_err(|error| error.context(*name))?;
        }
    }
    let alone = times[0].percentile(99);
    for ((name, _), times) in NEIGHBOURS.iter().zip(&times) {
        line(&format!("mark -> POST {name}"), times);
        if *name != NEIGHBOURS[0].0 {
            ratio("p99 to p99 alone", times.percentile(99) / alone, "<= 2");
        }
    }
    Ok(())
}

fn measure(backlog: &Backlog, neighbour: Neighbour, turn: usize, times: &mut Times) -> anyhow::Result<()> {
    let healthy = Sink::on_loopback(USUAL_IN_FLIGHT, Manner::After(Duration::ZERO))?;
    let manner = if let Neighbour::Open(manner) = neighbour { manner } else { Manner::Silent };
    let mut hostile = Sink::on_loopback(4 * USUAL_IN_FLIGHT, manner)?;
    if matches!(neighbour, Neighbour::Closed) {
        hostile.down();
    }
    let both = [("healthy", healthy.address()), ("hostile", hostile.address())];
    let routes = if matches!(neighbour, Neighbour::None) { &both[..1] } else { &both[..] };
    let mut site = Site::with(&tables(USUAL_IN_FLIGHT, routes))?;
    backlog.lay_into(&site)?;
    site.start()?;
    for round in 0..ROUNDS {
        times.add(notify(&site, &healthy, &format!("new{turn}-{round}"))?);
        thread::sleep(PAUSE);
    }
    ensure!(healthy.take().is_empty(), "the healthy endpoint was sent something twice");
    site.end(Signal::SIGKILL)
}

/// From the begin of a commit to the last byte of its POST.
pub(crate) fn notify(site: &Site, healthy: &Sink, host: &str) -> anyhow::Result<Duration> {
    let fencing = samples::fencing(host, Timestamp::now());
    let begun = Instant::now();
    record(site, &fencing)?;
    ensure!(healthy.wait_for(1, ARRIVAL), "{host} was not sent within {} s", ARRIVAL.as_secs());
    let came = healthy.take();
    let is_it = |body: &[u8]| String::from_utf8_lossy(body).contains(&fencing.id.to_string());
    ensure!(came.len() == 1 && is_it(&came[0].body), "another mark came than that of {host}");
    Ok(came[0].at.saturating_duration_since(begun))
}
