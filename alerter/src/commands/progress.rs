//! Progress of `retry --all --wait`: one line on stderr, drawn again in place, and only where stderr is a terminal.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use super::answer::say;
use super::terminal::{self, clean};

/// More often than this nobody reads it.
const PACE: Duration = Duration::from_millis(100);
/// Letters of the bar.
const BAR: u64 = 20;

/// How far a long work is. The line goes with it.
pub(super) struct Progress {
    total: u64,
    /// Why it does not go on, where that is known.
    why: Option<String>,
    is_shown: bool,
    begun: Instant,
    drawn: Option<Instant>,
}

impl Progress {
    /// Of so many acknowledgements; nothing is drawn yet.
    pub(super) fn of(total: u64) -> Self {
        let is_shown = io::stderr().is_terminal() && !terminal::is_dumb();
        Self { total, why: None, is_shown, begun: Instant::now(), drawn: None }
    }

    /// Says why it is slow, or that nothing is in the way.
    pub(super) fn because(&mut self, why: Option<&str>) {
        self.why = why.map(clean);
    }

    /// So much is done.
    pub(super) fn at(&mut self, done: u64) {
        let is_too_soon = self.drawn.is_some_and(|drawn| drawn.elapsed() < PACE);
        if !self.is_shown || is_too_soon {
            return;
        }
        self.drawn = Some(Instant::now());
        // One column less: a full line wraps, and is not drawn over.
        let columns = terminal::columns(&io::stderr()).unwrap_or(80).saturating_sub(1);
        let line: String = self.line(done, self.begun.elapsed()).chars().take(columns).collect();
        say(&format!("\r{line}\x1b[K"), &mut io::stderr());
    }

    fn line(&self, done: u64, elapsed: Duration) -> String {
        let rate = done.checked_div(elapsed.as_secs()).map(|rate| format!(", {rate}/s")).unwrap_or_default();
        let why = self.why.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
        let total = self.total;
        let of = |all: u64| done.min(total).saturating_mul(all).checked_div(total).unwrap_or(all);
        let bar = "#".repeat(usize::try_from(of(BAR)).unwrap_or_default());
        format!("acknowledged: [{bar:<20}] {done} of {total} ({} %){rate}{why}", of(100))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            say("\r\x1b[K", &mut io::stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_bar_a_rate_and_a_reason() {
        let line = |done, seconds| Progress::of(200).line(done, Duration::from_secs(seconds));
        assert_eq!(line(50, 10), "acknowledged: [#####               ] 50 of 200 (25 %), 5/s");
        assert_eq!(line(201, 0), "acknowledged: [####################] 201 of 200 (100 %)");
        let mut slow = Progress::of(2);
        slow.because(Some("recovery: connect"));
        assert!(slow.line(0, Duration::ZERO).ends_with("0 of 2 (0 %); recovery: connect"));
    }

    /// Tests have no terminal: a log of them must not be full of such lines.
    #[test]
    fn without_a_terminal_nothing_is_drawn() {
        let mut progress = Progress::of(1);
        progress.is_shown = false;
        progress.at(1);
        assert!(progress.drawn.is_none());
    }
}
