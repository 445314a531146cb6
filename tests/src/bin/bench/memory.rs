//! 100,000 open marks: what memory they take, and how soon the first is sent after a SIGKILL.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use nix::sys::signal::Signal;
use tests::backlog::Backlog;
use tests::process::resident;
use tests::programs::Site;
use tests::sink::{Arrival, Sink};

use crate::figures::{Times, line, ratio};
use crate::route::{SENT_AGAIN, USUAL_IN_FLIGHT, tables};

const MARKS: usize = crate::size(100_000);
const ROUNDS: usize = 5;
/// What takes longer ends with fewer rounds.
const BUDGET: Duration = Duration::from_secs(20);
/// Slow enough that the rounds hardly make the backlog smaller.
const ANSWER: Duration = Duration::from_millis(100);
const FIRST: Duration = Duration::from_secs(30);
const WORK: Duration = Duration::from_secs(2);
const START: Duration = Duration::from_secs(60);
/// Memory is at rest when it was the same for so many samples,
const SAMPLES: usize = 6;
/// so far apart,
const PAUSE: Duration = Duration::from_millis(500);
/// and after so many of them in any case.
const MOST_SAMPLES: usize = 40;

pub(crate) fn run() -> anyhow::Result<()> {
    let backlog = Backlog::of_marks(MARKS, &["recovery"])?;
    let mut sink = Sink::on_loopback(2 * USUAL_IN_FLIGHT, ANSWER)?;
    let mut site = Site::with(&tables(USUAL_IN_FLIGHT, &[("recovery", sink.address())]))?;
    backlog.lay_into(&site)?;
    sink.down();
    rest(&mut site)?;
    sink.up()?;
    let mut restart = Restart { site, sink, seen: Vec::new() };
    line("SIGKILL while it was dead -> first POST", format_args!("{:7.2}", restart.after_kill()?.0));
    let (mut from_kill, mut from_start) = (Times::default(), Times::default());
    let limit = Instant::now() + BUDGET;
    for _ in 0..ROUNDS {
        let (kill, start) = restart.after_kill()?;
        from_kill.0.push(kill);
        from_start.0.push(start);
        if Instant::now() >= limit {
            println!("ended after {} of {ROUNDS} rounds", from_kill.0.len());
            break;
        }
    }
    line("SIGKILL at work -> first POST", &from_kill);
    line("start of the program -> first POST", &from_start);
    ratio("SIGKILL at work -> first POST, median", from_kill.median(), "<= 200");
    restart.check(&backlog)
}

/// Memory of an alerter whose endpoint is dead, when it has nothing left to do but to ask it.
fn rest(site: &mut Site) -> anyhow::Result<()> {
    let pid = site.launch()?;
    let limit = Instant::now() + START;
    while !site.answers()? {
        ensure!(Instant::now() < limit, "the alerter does not answer within {} s", START.as_secs());
        thread::sleep(PAUSE);
    }
    let (mut same, mut last) = (0, 0.0);
    for _ in 0..MOST_SAMPLES {
        thread::sleep(PAUSE);
        let now = resident(pid)?.0;
        same = if (now - last).abs() < 0.1 { same + 1 } else { 0 };
        last = now;
        if same >= SAMPLES {
            break;
        }
    }
    let (rest, peak) = resident(pid)?;
    println!("{MARKS} open marks, endpoint dead");
    ratio("resident memory in MiB, at rest", rest, "<= 20");
    ratio("resident memory in MiB, at its peak", peak, "<= 20");
    Ok(())
}

/// A running alerter that is killed and started again.
struct Restart {
    site: Site,
    sink: Sink,
    seen: Vec<Arrival>,
}

impl Restart {
    /// Milliseconds to the first POST, from the kill and from the start behind it.
    fn after_kill(&mut self) -> anyhow::Result<(f64, f64)> {
        let killed = Instant::now();
        self.site.end(Signal::SIGKILL)?;
        self.seen.extend(self.sink.take());
        let started = Instant::now();
        self.site.launch()?;
        ensure!(self.sink.wait_for(1, FIRST), "nothing was sent within {} s", FIRST.as_secs());
        let came = self.sink.take();
        let first = came[0].at;
        self.seen.extend(came);
        let since = |then| first.saturating_duration_since(then).as_secs_f64() * 1000.0;
        // The next kill finds it at work, however slow that is.
        let _some_rounds = self.sink.wait_for(2 * USUAL_IN_FLIGHT, WORK);
        Ok((since(killed), since(started)))
    }

    /// Nothing but what was under way at a kill has come again.
    fn check(mut self, backlog: &Backlog) -> anyhow::Result<()> {
        self.site.end(Signal::SIGTERM)?;
        self.seen.extend(self.sink.take());
        let came = backlog.check(&self.seen)?;
        let most = (ROUNDS + 1) * SENT_AGAIN;
        ensure!(came.again <= most, "{} marks came again after {} kills", came.again, ROUNDS + 1);
        Ok(())
    }
}
