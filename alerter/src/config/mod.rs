//! The configuration in three stages: fragments (each file by itself), inputs (merged), settings (validated).

mod api;
mod file;
mod fragments;
mod groups;
mod healthcheck;
mod inputs;
mod listen;
mod notice;
mod problem;
mod reader;
mod routes;
pub mod rules;
mod settings;
pub(crate) mod suggest;
pub mod token;
mod written;

use std::path::Path;

use crate::drivers;
use fragments::Fragment;
use problem::{Place, Problems, Source};
use reader::Section;

pub use api::Api;
pub use file::{check_program, read_private, read_trusted};
pub(crate) use groups::of as group_of;
pub use groups::{Attributes, Group, Link, Members, Told};
pub use healthcheck::{CacheControl, HealthFormat, Healthcheck};
pub use listen::Served;
pub use notice::{NoticeTarget, NoticeWay};
pub use problem::{ConfigErrors, Problem};
pub use reader::Section as TableReader;
pub use routes::{ROUTE_KEYS, Route, RouteName};
pub use settings::{
    HistoryRules, HostRules, IntakeRules, Recipients, Settings, StorePlace, check_control_socket,
    control_socket,
};
pub(crate) use settings::{is_plain_name, only_tables};
pub use written::Written;

/// Reads the configuration: `file`, and `*.toml` in `alerter.d` beside it in the order of their names. A key in a later
/// file overrides the same key of an earlier one.
///
/// # Errors
/// Every problem in all files at once.
pub fn load(file: &Path) -> Result<Settings, ConfigErrors> {
    load_with(file, drivers::KINDS)
}

/// The same with these drivers: one that is in no registry is tested so.
///
/// # Errors
/// As [`load`].
pub fn load_with(file: &Path, kinds: &'static [drivers::Kind]) -> Result<Settings, ConfigErrors> {
    let mut problems = Problems::default();
    let sources = fragments::read(file, &mut problems);
    let parsed: Vec<Fragment<'_>> =
        sources.iter().map(|source| fragments::parse(source, &mut problems)).collect();
    let nothing = Source { rank: 0, file: file.to_owned(), text: String::new() };
    let start = Place { source: sources.first().unwrap_or(&nothing), offset: 0 };
    let inputs = inputs::merge(&parsed, start);
    let settings = settings::read(Section::root(&inputs, &mut problems), file, kinds);
    let warnings = problems.into_result()?;
    Ok(Settings { warnings, ..settings })
}
