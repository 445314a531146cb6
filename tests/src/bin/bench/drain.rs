//! How fast 10,000 open marks are sent and written down as acknowledged, against an endpoint that takes no time.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;
use tests::backlog::Backlog;
use tests::programs::Site;
use tests::sink::Sink;

use crate::figures::{Rates, line};
use crate::ledger::{Ledger, Progress};
use crate::route::{USUAL_IN_FLIGHT, tables};

const MARKS: usize = crate::size(10_000);
const ROUNDS: usize = 3;
/// A drain that takes longer is cut off, and its rate taken so far: the start of the alerter is part of this.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 6 });
const ROUTE: &str = "recovery";

/// To an endpoint that knows what came: every mark once, and in its host's order.
pub(crate) fn run() -> anyhow::Result<()> {
    let backlog = Backlog::of_marks(MARKS, &[ROUTE])?;
    let sink = Sink::on_loopback(2 * USUAL_IN_FLIGHT, Duration::ZERO)?;
    let mut rates = Rates::default();
    for _ in 0..ROUNDS {
        let Drained { cut, acknowledged } = drain(&backlog, sink.address())?;
        let arrivals = sink.take();
        let came = backlog.check(&arrivals)?;
        ensure!(came.again == 0, "{} marks came again", came.again);
        ensure!(came.marks == acknowledged, "{} marks came, {acknowledged} are acknowledged", came.marks);
        let begin = arrivals.first().map_or(cut.at, |first| first.at);
        rates.0.push(cut.count as f64 / cut.at.saturating_duration_since(begin).as_secs_f64());
    }
    line(&format!("{MARKS} open marks to a sink that counts"), rates);
    Ok(())
}

/// What became of a backlog.
struct Drained {
    /// When all was acknowledged, or how much was when it was cut off.
    cut: Progress,
    /// How many were acknowledged when those that were under way had ended.
    acknowledged: usize,
}

/// Starts an alerter on the backlog and ends it when all is acknowledged, or at the limit. No mark is sent twice.
fn drain(backlog: &Backlog, address: SocketAddr) -> anyhow::Result<Drained> {
    let mut site = Site::with(&tables(USUAL_IN_FLIGHT, &[(ROUTE, address)]))?;
    backlog.lay_into(&site)?;
    site.launch()?;
    let ledger = Ledger::open(&site)?;
    let cut = ledger.until_acknowledged(LIMIT)?;
    site.end(Signal::SIGTERM)?;
    ensure!(cut.count > 0, "nothing was sent within {} s", LIMIT.as_secs());
    let (acknowledged, attempts) = (ledger.acknowledged()?, ledger.attempts()?);
    // Attempts that the stop cut off before their first byte are on record as well: as many as may be in flight, and as many prepared ahead.
    let most = if acknowledged < backlog.count { acknowledged + 2 * USUAL_IN_FLIGHT } else { acknowledged };
    ensure!((acknowledged..=most).contains(&attempts), "{attempts} attempts for {acknowledged} marks");
    if acknowledged < backlog.count {
        println!("cut off after {} s: {acknowledged} of {} marks", LIMIT.as_secs(), backlog.count);
    }
    Ok(Drained { cut, acknowledged })
}
