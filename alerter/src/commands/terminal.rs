//! What can be asked of the terminal: colours, its size, and lines that fit.

use std::env;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use site::blanked;
use terminal_size::Width;

/// Set for the process that reads the journal for a command: how its output is shown.
pub(super) const READS: &str = "NHA_AT_THE_JOURNAL";

/// Colours of what is said. They only add to the words: without them nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// All is well.
    Green,
    /// Somebody should check it.
    Yellow,
    /// Somebody must act.
    Red,
    /// Of less weight.
    Faint,
}

impl Colour {
    /// The code of ECMA-48 (SGR).
    fn code(self) -> &'static str {
        match self {
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Red => "1;31",
            Self::Faint => "2",
        }
    }
}

/// How text goes out: with colours or without, and how wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Whether colours are wanted and can be shown.
    pub(super) has_colours: bool,
    /// Columns of the terminal; none where there is none, and nothing is cut or wrapped.
    pub(super) columns: Option<usize>,
}

impl Style {
    /// For files, pipes and tests.
    pub(super) const PLAIN: Self = Self { has_colours: false, columns: None };

    /// Of standard output: <https://no-color.org> and `TERM=dumb` are heeded.
    pub(super) fn of_stdout() -> Self {
        if let Some(style) = env::var(READS).ok().and_then(|written| Self::read(&written)) {
            return style;
        }
        if !io::stdout().is_terminal() {
            return Self::PLAIN;
        }
        let is_unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { has_colours: !is_unwanted && !is_dumb(), columns: columns(&io::stdout()) }
    }

    /// For [`READS`].
    pub(super) fn written(self) -> String {
        format!("{} {}", self.has_colours, self.columns.unwrap_or(0))
    }

    fn read(written: &str) -> Option<Self> {
        let (has_colours, columns) = written.split_once(' ')?;
        let columns = columns.parse().ok().filter(|columns| *columns > 0);
        Some(Self { has_colours: has_colours.parse().ok()?, columns })
    }

    /// The text in a colour, where there are any.
    pub(super) fn paint(self, colour: Colour, text: &str) -> String {
        if self.has_colours { format!("\x1b[{}m{text}\x1b[0m", colour.code()) } else { text.to_owned() }
    }

    /// The text in lines that fit; the first one begins with `first`, the others with blanks in its place.
    pub(super) fn wrap(self, first: &str, text: &str) -> String {
        let indent = first.chars().count();
        let width = self.columns.map_or(usize::MAX, |columns| columns.saturating_sub(indent).max(20));
        let lines = lines_of(text, width);
        let prefixes = std::iter::once(first.to_owned()).chain(std::iter::repeat(" ".repeat(indent)));
        prefixes.zip(lines).map(|(prefix, line)| format!("{prefix}{line}\n")).collect()
    }
}

/// Words in lines of at most so many characters; a longer word has a line of its own. A command between backticks is one
/// word: it is copied whole.
fn lines_of(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut is_command = false;
    let is_end = |c: char| {
        is_command ^= c == '`';
        c == ' ' && !is_command
    };
    for word in text.split(is_end) {
        let line = lines.last_mut().expect("there is always a line");
        let wanted = line.chars().count() + 1 + word.chars().count();
        match line.is_empty() {
            true => line.push_str(word),
            false if wanted <= width => *line += &format!(" {word}"),
            false => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Whether the terminal can do nothing but print.
fn is_dumb() -> bool {
    env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Its columns.
fn columns(of: &impl AsFd) -> Option<usize> {
    let (Width(columns), _) = terminal_size::terminal_size_of(of)?;
    (columns > 0).then_some(columns.into())
}

/// The same text without hidden characters: the answer of an endpoint must not move the cursor.
pub(super) fn clean(text: &str) -> String {
    blanked(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Style = Style { has_colours: false, columns: Some(24) };

    /// The broken variant paints whatever is asked: codes would stand in files and pipes.
    #[test]
    fn there_are_no_colours_where_they_cannot_be_shown() {
        assert_eq!(Style::PLAIN.paint(Colour::Red, "x"), "x");
        let colourful = Style { has_colours: true, ..NARROW };
        assert_eq!(colourful.paint(Colour::Red, "x"), "\x1b[1;31mx\x1b[0m");
        assert_eq!(clean("a\x1b[2J\nb"), "a [2J b");
    }
}
