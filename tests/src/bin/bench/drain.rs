//! How fast 10,000 open marks are sent and written down as acknowledged, against an endpoint that takes no time.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use marks::time::Timestamp;
use nix::sys::signal::Signal;
use tests::backlog::Backlog;
use tests::programs::Site;
use tests::sink::{Manner, Sink};

use crate::figures::{Rates, line, ratio};
use crate::ledger::{Ledger, Progress};
use crate::peers::{self, Connections, Nginx};
use crate::route::{USUAL_IN_FLIGHT, tables_with};

const MARKS: usize = crate::size(10_000);
const ROUNDS: usize = 3;
/// A drain that takes longer is cut off, and its rate taken so far: the start of the alerter is part of this.
const LIMIT: Duration = Duration::from_secs(6);
const ROUTE: &str = "recovery";

pub(crate) fn run() -> anyhow::Result<()> {
    let backlog = Backlog::of_marks(MARKS, &[ROUTE])?;
    let wrk = peers::installed("wrk");
    match (peers::installed("nginx"), &wrk) {
        (Some(nginx), Some(_)) => into_nginx(&backlog, &Nginx::start(&nginx)?)?,
        _ => println!("no nginx and wrk here to compare with (run `make bench-deps`)"),
    }
    into_sink(&backlog)
}

/// What nginx took is what the journal says: it counts nothing.
fn into_nginx(backlog: &Backlog, nginx: &Nginx) -> anyhow::Result<()> {
    turns("nginx", nginx.address, |connections| {
        let drained = drain(backlog, nginx.address, connections)?;
        let cut = drained.cut;
        Ok(cut.count as f64 / cut.by_the_clock.since(drained.begin).as_secs_f64())
    })
}

/// An endpoint that knows what came: every mark once, and in its host's order.
fn into_sink(backlog: &Backlog) -> anyhow::Result<()> {
    let sink = Sink::on_loopback(2 * USUAL_IN_FLIGHT, Manner::After(Duration::ZERO))?;
    turns("a sink that counts", sink.address(), |connections| {
        let Drained { cut, acknowledged, .. } = drain(backlog, sink.address(), connections)?;
        let mut arrivals = sink.take();
        arrivals.retain(|arrival| !peers::is_of_wrk(&arrival.body));
        let came = backlog.check(&arrivals)?;
        ensure!(came.again == 0, "{} marks came again", came.again);
        ensure!(came.marks == acknowledged, "{} marks came, {acknowledged} are acknowledged", came.marks);
        let begin = arrivals.first().map_or(cut.at, |first| first.at);
        Ok(cut.count as f64 / cut.at.saturating_duration_since(begin).as_secs_f64())
    })
}

/// The alerter and `wrk`, with and without kept connections, one after the other, several times.
fn turns(
    endpoint: &str,
    address: SocketAddr,
    mut drain: impl FnMut(Connections) -> anyhow::Result<f64>,
) -> anyhow::Result<()> {
    let wrk = peers::installed("wrk");
    let mut rates: [(Rates, Rates); 2] = Default::default();
    for _ in 0..ROUNDS {
        for (connections, (ours, theirs)) in Connections::BOTH.iter().zip(&mut rates) {
            ours.0.push(drain(*connections)?);
            if let Some(wrk) = &wrk {
                theirs.0.push(peers::wrk(wrk, address, USUAL_IN_FLIGHT, *connections)?);
            }
        }
    }
    for (connections, (ours, theirs)) in Connections::BOTH.iter().zip(rates) {
        let manner = connections.as_str();
        line(&format!("{MARKS} open marks to {endpoint}, {manner}"), &ours);
        if wrk.is_some() {
            line("  wrk", &theirs);
            ratio(&format!("to wrk, {manner}"), ours.median() / theirs.median(), ">= 0.5");
        }
    }
    Ok(())
}

/// What became of a backlog.
struct Drained {
    /// When the first acknowledgement came.
    begin: Timestamp,
    /// When all was acknowledged, or how much was when it was cut off.
    cut: Progress,
    /// How many were acknowledged when those that were under way had ended.
    acknowledged: usize,
}

/// Starts an alerter on the backlog and ends it when all is acknowledged, or at the limit. No mark is sent twice.
fn drain(backlog: &Backlog, address: SocketAddr, connections: Connections) -> anyhow::Result<Drained> {
    let mut site = Site::with(&tables_with(USUAL_IN_FLIGHT, &[(ROUTE, address)], connections))?;
    backlog.lay_into(&site)?;
    site.launch()?;
    let ledger = Ledger::open(&site)?;
    let cut = ledger.until_acknowledged(LIMIT)?;
    site.end(Signal::SIGTERM)?;
    ensure!(cut.count > 0, "nothing was sent within {} s", LIMIT.as_secs());
    let (acknowledged, attempts) = (ledger.acknowledged()?, ledger.attempts()?);
    // Attempts that the stop cut off before their first byte are on record as well.
    let most = if acknowledged < backlog.count { acknowledged + USUAL_IN_FLIGHT } else { acknowledged };
    ensure!((acknowledged..=most).contains(&attempts), "{attempts} attempts for {acknowledged} marks");
    if acknowledged < backlog.count {
        println!("cut off after {} s: {acknowledged} of {} marks", LIMIT.as_secs(), backlog.count);
    }
    Ok(Drained { begin: ledger.first_acknowledged()?, cut, acknowledged })
}
