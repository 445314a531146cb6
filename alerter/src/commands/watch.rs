//! `status --watch`: the same screen, drawn again in place until Ctrl-C; without a terminal one block after the other.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::answer::yaml;
use super::overview::{self, Status};
use super::sources::wait_for;
use super::terminal::{self, Style};
use super::{screen, text};
use crate::cli::{Cli, PrintAs};
use crate::problem::Limits;

/// Another screen, so that what was there before comes back; no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Home, and nothing is shown before the frame is whole, where the terminal knows how (mode 2026).
const BEGIN: &str = "\x1b[?2026h\x1b[H";
/// What is left of a longer frame goes.
const END: &str = "\x1b[J\x1b[?2026l";

/// The terminal, which becomes again what it was, whatever ends this.
struct Screen;

impl Screen {
    fn enter() -> Self {
        let _reader_is_gone = put(ENTER);
        Self
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _reader_is_gone = put(LEAVE);
    }
}

/// What ends it, or asks for another frame.
struct Signals {
    ends: [Signal; 3],
    resized: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let ends = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [a, b, c] = ends.map(signal);
        Ok(Self { ends: [a?, b?, c?], resized: signal(SignalKind::window_change())? })
    }

    /// Waits for so long. Says whether it is to go on.
    async fn wait(&mut self, pause: Duration) -> bool {
        let [interrupt, terminate, hang_up] = &mut self.ends;
        tokio::select! {
            biased;
            _ = interrupt.recv() => false,
            _ = terminate.recv() => false,
            _ = hang_up.recv() => false,
            _ = self.resized.recv() => true,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

pub(super) fn run(cli: &Cli, pause: Duration) -> anyhow::Result<ExitCode> {
    wait_for(draw(cli, pause))?.context("signals cannot be received")?;
    Ok(ExitCode::SUCCESS)
}

async fn draw(cli: &Cli, pause: Duration) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let is_screen = io::stdout().is_terminal() && !terminal::is_dumb() && !cli.is_for_programs();
    let screen = is_screen.then(Screen::enter);
    loop {
        let status = overview::take(cli, overview::ask(cli).await, Limits::default());
        let text = match (&screen, cli.format()) {
            (Some(_), _) => frame(&status, pause),
            // One line each, for programs.
            (None, PrintAs::Json) => serde_json::to_string(&status).unwrap_or_default() + "\n",
            (None, PrintAs::Yaml) => yaml(&status).unwrap_or_default() + "\n",
            (None, _) => block(&status),
        };
        if put(&text).is_err() || !signals.wait(pause).await {
            return Ok(());
        }
    }
}

/// A frame that fits: what is too much is cut at the end, where it is least important.
fn frame(status: &Status, pause: Duration) -> String {
    let rows = terminal::size(&io::stdout()).map_or(24, |(_, rows)| rows);
    let style = Style::of_stdout();
    let foot = format!("every {}; Ctrl-C ends", text::span(pause));
    fitted(&screen::drawn(status, style), &style.cut(&foot), rows)
}

fn fitted(drawn: &str, foot: &str, rows: usize) -> String {
    let lines = drawn.lines().take(rows.saturating_sub(2));
    let body: String = lines.map(|line| format!("{line}\x1b[K\n")).collect();
    format!("{BEGIN}{body}\x1b[K\n{foot}\x1b[K{END}")
}

fn block(status: &Status) -> String {
    format!("{}\n----\n", screen::drawn(status, Style::PLAIN).trim_end())
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant writes all lines: the screen scrolls, and the headline is gone.
    #[test]
    fn a_frame_has_no_more_lines_than_the_terminal() {
        let long: String = (0..99).map(|number| format!("line {number}\n")).collect();
        let frame = fitted(&long, "foot", 10);
        assert!(
            frame.contains("line 0\x1b[K")
                && frame.contains("line 7\x1b[K")
                && !frame.contains("line 8\x1b[K")
        );
        assert_eq!(frame.matches('\n').count(), 9, "the tenth line has no end");
        assert!(frame.starts_with(BEGIN) && frame.ends_with(END));
        assert_eq!(fitted("a\n", "foot", 1).matches('\n').count(), 1);
    }
}
