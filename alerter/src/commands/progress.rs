//! Progress of long work: one line on stderr, drawn again in place, and only where stderr is a terminal.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use super::answer::say;
use super::terminal;

/// More often than this nobody reads it.
const PACE: Duration = Duration::from_millis(100);

/// How far a long work has come. The line goes with it.
pub(crate) struct Progress {
    what: String,
    /// None where nobody knows how much there is.
    total: Option<u64>,
    is_shown: bool,
    drawn: Option<Instant>,
}

impl Progress {
    /// Of work that is called so in the line; nothing is drawn yet.
    pub(crate) fn of(what: &str, total: Option<u64>) -> Self {
        let is_shown = io::stderr().is_terminal() && !terminal::is_dumb();
        Self { what: what.to_owned(), total, is_shown, drawn: None }
    }

    /// So much is done.
    pub(crate) fn at(&mut self, done: u64) {
        let is_too_soon = self.drawn.is_some_and(|drawn| drawn.elapsed() < PACE);
        if !self.is_shown || is_too_soon {
            return;
        }
        self.drawn = Some(Instant::now());
        // One column less: a full line wraps, and is not drawn over.
        let columns = terminal::columns(&io::stderr()).unwrap_or(80).saturating_sub(1);
        let line: String = line(&self.what, done, self.total).chars().take(columns).collect();
        say(&format!("\r{line}\x1b[K"), &mut io::stderr());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            say("\r\x1b[K", &mut io::stderr());
        }
    }
}

fn line(what: &str, done: u64, total: Option<u64>) -> String {
    match total {
        Some(total @ 1..) => {
            let percent = done.min(total).saturating_mul(100) / total;
            format!("{what}: {done} of {total} ({percent} %)")
        }
        _ => format!("{what}: {done}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_is_done_of_how_much() {
        assert_eq!(line("retry", 50, Some(200)), "retry: 50 of 200 (25 %)");
        assert_eq!(line("retry", 201, Some(200)), "retry: 201 of 200 (100 %)");
        assert_eq!(
            (line("export", 7, None), line("export", 0, Some(0))),
            ("export: 7".into(), "export: 0".into())
        );
    }

    /// Tests have no terminal: a log of them must not be full of such lines.
    #[test]
    fn without_a_terminal_nothing_is_drawn() {
        let mut progress = Progress::of("x", None);
        progress.is_shown = false;
        progress.at(1);
        assert!(progress.drawn.is_none());
    }
}
