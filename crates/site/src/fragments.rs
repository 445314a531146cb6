//! First stage: each file is read and parsed by itself, so that every position is right.

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::file;
use crate::file::{fragment_directory, fragment_files};
use crate::problem::{Place, Problems, Source};

/// One parsed file.
#[derive(Debug)]
pub(crate) struct Fragment<'a> {
    /// The file.
    pub source: &'a Source,
    /// The parsed table; with syntax errors a part of it.
    pub table: DeTable<'a>,
}

/// Reads the main file and the `*.toml` files of `alerter.d` beside it, in the order of their names.
pub(crate) fn read(main: &Path, problems: &mut Problems) -> Vec<Source> {
    let files = std::iter::once(main.to_owned()).chain(further_files(main, problems));
    files.enumerate().filter_map(|(rank, path)| read_one(rank, path, problems)).collect()
}

fn read_one(rank: usize, path: PathBuf, problems: &mut Problems) -> Option<Source> {
    let unusable = |problems: &mut Problems, place, why| {
        problems.unusable(rank, &path, place, why);
        None
    };
    match file::read_trusted(&path).map(String::from_utf8) {
        Ok(Ok(text)) => Some(Source { rank, file: path, text }),
        Ok(Err(bytes)) => {
            let at = position_of_bad_byte(bytes.as_bytes(), bytes.utf8_error().valid_up_to());
            unusable(problems, at, "the file is not valid UTF-8 here".to_owned())
        }
        Err(why) => unusable(problems, (1, 1), why),
    }
}

fn position_of_bad_byte(bytes: &[u8], good: usize) -> (usize, usize) {
    let before = String::from_utf8_lossy(&bytes[..good]);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// A missing directory counts as empty.
fn further_files(main: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let listed = fragment_files(main).map_err(file::unreadable);
    let directory = fragment_directory(main);
    let trusted = listed.and_then(|files| match directory.exists() {
        true => file::check_directory(&directory).map(|()| files),
        false => Ok(files),
    });
    trusted.unwrap_or_else(|why| {
        problems.unusable(1, &directory, (1, 1), why);
        Vec::new()
    })
}

/// Parses one file; all its syntax errors are noted, and the rest is kept.
pub(crate) fn parse<'a>(source: &'a Source, problems: &mut Problems) -> Fragment<'a> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    for error in errors {
        // The parser's messages never show any part of the file.
        let offset = error.span().map_or(0, |span| span.start);
        problems.syntax(Place { source, offset }, format!("not valid TOML: {}", error.message()));
    }
    Fragment { source, table: table.into_inner() }
}
