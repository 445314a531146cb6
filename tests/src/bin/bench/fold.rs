//! How fast fencings become marks, while the endpoint is dead: the storm after which much is to be sent.

use std::time::{Duration, Instant};

use anyhow::ensure;
use nix::sys::signal::Signal;
use tests::backlog::Backlog;
use tests::process::resident;
use tests::programs::Site;
use tests::sink::{Manner, Sink};

use crate::figures::{Times, line, ratio};
use crate::ledger::Ledger;
use crate::process::Disk;
use crate::route::{USUAL_IN_FLIGHT, tables};

/// What takes longer is cut off, and its rate taken so far.
const LIMIT: Duration = Duration::from_secs(10);
const SYNCS: usize = crate::size(200);

pub(crate) fn run() -> anyhow::Result<()> {
    for count in [10_000, 100_000] {
        fold(count)?;
    }
    Ok(())
}

fn fold(count: usize) -> anyhow::Result<()> {
    let mut sink = Sink::on_loopback(1, Manner::Silent)?;
    sink.down();
    let backlog = Backlog::of_fencings(count)?;
    let mut site = Site::with(&tables(USUAL_IN_FLIGHT, &[("recovery", sink.address())]))?;
    backlog.lay_into(&site)?;
    let flush = flush(&site)?;
    let begun = Instant::now();
    let pid = site.launch()?;
    let ledger = Ledger::open(&site)?;
    let end = ledger.until_made(count, LIMIT)?;
    let (_, peak) = resident(pid)?;
    site.end(Signal::SIGKILL)?;
    let rate = end.count as f64 / (end.at - begun).as_secs_f64();
    line(&format!("{count} fencings, from the start"), format_args!("{rate:.0} marks a second"));
    ratio("to one fdatasync for each", rate * flush.as_secs_f64(), "-");
    ratio("resident memory in MiB, at its peak", peak, "-");
    if end.count < count {
        println!("cut off after {} s: {} of {count} marks", LIMIT.as_secs(), end.count);
    } else {
        let (found, hosts) = (ledger.hosts()?, backlog.hosts());
        ensure!(found == hosts, "{found} hosts have marks, and not {hosts}");
    }
    Ok(())
}

/// What one durable write takes here and now.
fn flush(site: &Site) -> anyhow::Result<Duration> {
    let (mut disk, mut syncs) = (Disk::new(&site.directory().join("floor"))?, Times::default());
    for _ in 0..SYNCS {
        syncs.time(|| disk.sync())?;
    }
    Ok(Duration::from_secs_f64(syncs.median() / 1000.0))
}
