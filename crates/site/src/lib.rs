//! The configuration of a site, whatever its settings: where it is, how its files are read and merged, how a table is
//! read, and what is wrong at which place. It knows no settings, except the few for the fence agent and the reading
//! commands.

/// The few settings for the fence agent and the reading commands, read so that no typo stops them.
mod agent;
/// The address of etcd, if the register is there.
pub mod etcd;
/// Files and programs that are trusted.
mod file;
/// The first stage: each file by itself.
mod fragments;
/// What is no more, and what serves instead.
mod gone;
/// The second stage: all files merged.
mod inputs;
/// Invisible characters, and names without any.
mod plain;
/// What is wrong, and where.
mod problem;
/// A table of the configuration, read key by key.
mod reader;
/// The keys that seal the register, which only root can read.
mod seal;
/// "Did you mean".
pub mod suggest;
/// The system log, for every program of a site.
mod syslog;

use std::path::Path;

use problem::{Problems, Source};

pub use agent::Site;
pub use file::{
    CONFIG_PATH, DEFAULT_STORE, absolute, check_program, fragment_directory, fragment_files,
    must_be_absolute, read_private, read_trusted,
};
pub use gone::GONE;
pub use inputs::{Setting, Table, Value};
pub use plain::{blanked, is_hidden, is_plain_name};
pub use problem::{ConfigErrors, Place, Problem};
pub use reader::{Section, shown, text_if, unknown_word};
pub use seal::{CLUSTER_KEY, keys_beside, own_keys, seal_keys, sealing_file};
pub use syslog::{Severity, Syslog};

/// Reads a configuration: `main`, and `*.toml` in `alerter.d` beside it in the order of their names. A key in a later
/// file overrides the same key of an earlier one. `settings` makes the result; the warnings come with it.
///
/// # Errors
/// Every problem in all files at once.
pub fn read<T>(
    main: &Path,
    settings: impl FnOnce(Section<'_, '_>) -> T,
) -> Result<(T, Vec<Problem>), ConfigErrors> {
    let mut problems = Problems::default();
    let sources = fragments::read(main, &mut problems);
    let parsed: Vec<_> = sources.iter().map(|source| fragments::parse(source, &mut problems)).collect();
    let nothing = Source { rank: 0, file: main.to_owned(), text: String::new() };
    let start = Place { source: sources.first().unwrap_or(&nothing), offset: 0 };
    let inputs = inputs::merge(&parsed, start);
    let made = settings(Section::root(&inputs, &mut problems));
    Ok((made, problems.into_result()?))
}
