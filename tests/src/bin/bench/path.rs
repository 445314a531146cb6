//! From the agent's commit to the POST, and what the alerter costs while it has nothing to do.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use journal::{Journal, Role};
use marks::fencing::Fencing;
use marks::time::Timestamp;
use nix::sys::signal::Signal;
use tests::process::{resident, switches};
use tests::programs::Site;
use tests::receiver::Receiver;

use crate::figures::{Times, line, ratio};

const ROUNDS: usize = crate::size(200);
const ARRIVAL: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(10);

pub(crate) fn run() -> anyhow::Result<()> {
    let receiver = Receiver::on_loopback()?;
    let mut site = Site::new(receiver.address())?;
    let pid = site.start()?;
    commit_to_post(&site, &receiver)?;
    idle(pid)?;
    site.end(Signal::SIGTERM)
}

/// From the begin of the agent's commit to the last byte of the POST.
fn commit_to_post(site: &Site, receiver: &Receiver) -> anyhow::Result<()> {
    let mut waits = Times::default();
    for round in 0..ROUNDS {
        let fencing = samples::fencing(&format!("commit{round}"), Timestamp::now());
        let begun = Instant::now();
        record(site, &fencing)?;
        let all = receiver.wait_for(round + 1, ARRIVAL)?;
        let last = all.last().context("nothing came")?;
        ensure!(String::from_utf8_lossy(&last.body).contains(&fencing.id.to_string()), "another mark came");
        waits.add(last.instant.saturating_duration_since(begun));
        settled(site)?;
    }
    line("commit begun -> POST received", &waits);
    ratio("median", waits.median(), "<= 5");
    Ok(())
}

/// Writes a fencing as the agent does. The journal is closed behind it: that is what wakes the alerter.
pub(crate) fn record(site: &Site, fencing: &Fencing) -> anyhow::Result<()> {
    Ok(Journal::open(&site.journal(), Role::Agent)?.append_fencing(fencing)?)
}

/// Waits until the alerter has nothing to do, so that its work for one round is not timed in the next.
pub(crate) fn settled(site: &Site) -> anyhow::Result<()> {
    let journal = Journal::open(&site.journal(), Role::Reader)?;
    let limit = Instant::now() + ARRIVAL;
    while !(journal.unfolded_fencings()?.sound.is_empty() && journal.open_marks()?.sound.is_empty()) {
        ensure!(Instant::now() < limit, "the alerter does not settle its marks");
        thread::yield_now();
    }
    Ok(())
}

/// Memory and wake-ups of an alerter with nothing to do.
fn idle(pid: u32) -> anyhow::Result<()> {
    thread::sleep(Duration::from_secs(1));
    let before = switches(pid)?;
    thread::sleep(IDLE);
    let woken = switches(pid)? - before;
    ratio("alerter idle, resident memory in MiB", resident(pid)?.0, "<= 12");
    ratio(&format!("alerter idle, wake-ups in {} s", IDLE.as_secs()), woken as f64, "0");
    Ok(())
}
