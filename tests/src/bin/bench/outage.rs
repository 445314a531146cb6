//! 10,000 open marks and an endpoint that was away for a minute, and takes only so many a second when it is back.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use nix::sys::signal::Signal;
use tests::backlog::Backlog;
use tests::programs::Site;
use tests::sink::{Manner, Sink};

use crate::figures::{line, ratio};
use crate::ledger::Ledger;
use crate::route::{USUAL_IN_FLIGHT, tables};

const MARKS: usize = crate::size(10_000);
const OUTAGE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 3 } else { 60 });
/// 200 a second, one after the other: the ideal is 50 s. A faster endpoint would measure little but the wait for the
/// probe that finds it, which is up to 30 s by design.
const EACH: Duration = Duration::from_millis(5);
/// After so many times the ideal it is cut off.
const PATIENCE: f64 = 1.7;

pub(crate) fn run() -> anyhow::Result<()> {
    let backlog = Backlog::of_marks(MARKS, &["recovery"])?;
    let mut sink = Sink::on_loopback(2 * USUAL_IN_FLIGHT, Manner::Serially(EACH))?;
    let mut site = Site::with(&tables(USUAL_IN_FLIGHT, &[("recovery", sink.address())]))?;
    backlog.lay_into(&site)?;
    sink.down();
    site.launch()?;
    thread::sleep(OUTAGE);
    sink.up()?;
    let back = Instant::now();
    let ideal = EACH * u32::try_from(MARKS)?;
    let limit = ideal.mul_f64(PATIENCE);
    let ledger = Ledger::open(&site)?;
    let end = ledger.until_acknowledged(limit)?;
    site.end(Signal::SIGTERM)?;
    let arrivals = sink.take();
    let came = backlog.check(&arrivals)?;
    let acknowledged = ledger.acknowledged()?;
    ensure!(came.marks == acknowledged, "{} marks came, {acknowledged} are acknowledged", came.marks);
    let found = arrivals.first().map_or(end.at, |first| first.at);
    print(end.at.saturating_duration_since(back), found.saturating_duration_since(back), ideal);
    // Those that met a closed port are counted by the journal alone.
    ratio(
        "requests wasted for each mark",
        (ledger.attempts()? - acknowledged) as f64 / MARKS as f64,
        "<= 0.2",
    );
    if acknowledged < MARKS {
        println!("cut off after {} s: {acknowledged} of {MARKS} marks", limit.as_secs());
    }
    Ok(())
}

fn print(drained: Duration, found: Duration, ideal: Duration) {
    line(
        &format!("{MARKS} marks after {} s, drained in", OUTAGE.as_secs()),
        format_args!("{:.1} s of {:.1} s at least", drained.as_secs_f64(), ideal.as_secs_f64()),
    );
    ratio("to the ideal", drained.as_secs_f64() / ideal.as_secs_f64(), "<= 1.5");
    line("  of which it waited for the first request", format_args!("{:.1} s", found.as_secs_f64()));
}
