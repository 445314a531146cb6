//! Problems of the configuration: each at its place, all listed at once.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::plain::is_hidden;

/// One problem and its place. It never shows a value or a line of the file: these may be secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, as named on the command line or found beside that one.
    pub file: String,
    /// Counted from 1; 1 also for the file as a whole.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// One sentence: what is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

/// All problems of a configuration; displayed one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<Problem>);

impl ConfigErrors {
    /// The problems, in the order of files and places. Never empty.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// One file that was read.
#[derive(Debug)]
pub struct Source {
    /// Its place in the order of reading.
    pub rank: usize,
    /// Its path.
    pub file: PathBuf,
    /// Its whole text.
    pub text: String,
}

/// A place in a file.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The file.
    pub source: &'a Source,
    /// Byte offset in its text.
    pub offset: usize,
}

impl Place<'_> {
    /// Line and column, both from 1; the column counts characters.
    fn line_and_column(&self) -> (usize, usize) {
        let text = &self.source.text;
        let mut ends = (0..=self.offset.min(text.len())).rev();
        let before = ends.find_map(|end| text.get(..end)).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// Collects problems while the configuration is read.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<(usize, Problem)>,
    /// Warnings, which do not prevent a start.
    warnings: Vec<(usize, Problem)>,
    /// Lines (of files by rank) with syntax errors: their parsed values are guesses.
    broken: BTreeSet<(usize, usize)>,
    /// Whether something could not be read, so that a setting that seems to be missing may be there.
    incomplete: bool,
}

impl Problems {
    /// Notes a problem. On a line with a syntax error it is dropped: the parser guessed, and would name a value without
    /// its key as if it were a key.
    pub fn at(&mut self, place: Place<'_>, message: impl Into<String>) {
        let (line, _) = place.line_and_column();
        if !self.broken.contains(&(place.source.rank, line)) {
            self.add(place, message.into());
        }
    }

    /// Notes a warning.
    pub fn warn(&mut self, place: Place<'_>, message: impl Into<String>) {
        self.warnings.push((place.source.rank, problem(place, message.into())));
    }

    /// Notes that something is missing, unless it may be in a part that could not be read.
    pub fn missing(&mut self, place: Place<'_>, message: impl Into<String>) {
        if !self.incomplete {
            self.at(place, message);
        }
    }

    /// Notes a syntax error on a line.
    pub fn syntax(&mut self, place: Place<'_>, message: impl Into<String>) {
        let (line, _) = place.line_and_column();
        self.incomplete = true;
        self.broken.insert((place.source.rank, line));
        self.add(place, message.into());
    }

    /// Notes that a whole file cannot be used.
    pub fn unusable(&mut self, rank: usize, file: &Path, (line, column): (usize, usize), message: String) {
        self.incomplete = true;
        self.found.push((rank, Problem { file: printable(file), line, column, message }));
    }

    /// Whether something could not be read.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// The number of problems so far.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// The warnings in order, if there are no problems.
    ///
    /// # Errors
    /// All problems in order.
    pub fn into_result(self) -> Result<Vec<Problem>, ConfigErrors> {
        match self.found.is_empty() {
            true => Ok(in_order(self.warnings)),
            false => Err(ConfigErrors(in_order(self.found))),
        }
    }

    fn add(&mut self, place: Place<'_>, message: String) {
        self.found.push((place.source.rank, problem(place, message)));
    }
}

fn problem(place: Place<'_>, message: String) -> Problem {
    let (line, column) = place.line_and_column();
    Problem { file: printable(&place.source.file), line, column, message }
}

fn in_order(mut found: Vec<(usize, Problem)>) -> Vec<Problem> {
    found.sort_by_key(|(rank, problem)| (*rank, problem.line, problem.column));
    found.dedup();
    found.into_iter().map(|(_, problem)| problem).collect()
}

/// A path on one line: a file's name may have any characters.
fn printable(file: &Path) -> String {
    file.to_string_lossy().chars().map(|c| if is_hidden(c) { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let source = Source { rank: 0, file: "f".into(), text: "ä = 1\nöö = x".into() };
        let at = |offset| Place { source: &source, offset }.line_and_column();
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(3), (1, 3));
        assert_eq!(at(source.text.find('x').unwrap()), (2, 6));
        assert_eq!(at(usize::MAX), (2, 7), "behind the end is the end");
    }

    #[test]
    fn problems_come_in_the_order_of_files_and_places_and_only_once() {
        let first = Source { rank: 0, file: "z.toml".into(), text: "a\nb\n".into() };
        let second = Source { rank: 1, file: "a.toml".into(), text: "c\n".into() };
        let mut problems = Problems::default();
        for (source, offset) in [(&second, 0), (&first, 2), (&first, 0), (&first, 0)] {
            problems.at(Place { source, offset }, "wrong");
        }
        let errors = problems.into_result().unwrap_err();
        assert_eq!(errors.to_string(), "z.toml:1:1: wrong\nz.toml:2:1: wrong\na.toml:1:1: wrong");
    }
}
