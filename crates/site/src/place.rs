//! The paths of the configuration and the journal.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The default path of the configuration.
pub const CONFIG_PATH: &str = "/etc/nova-host-alerter/alerter.toml";
/// The journal's default path; `[store] path` overrides it.
pub const DEFAULT_STORE: &str = "/var/lib/nova-host-alerter/marks.db";

/// The directory of a configuration's further files: `alerter.d` beside it.
pub fn fragment_directory(config: &Path) -> PathBuf {
    config.with_file_name("alerter.d")
}

/// The `*.toml` files in that directory, in the order of their names; none if the directory is missing.
///
/// # Errors
/// The directory cannot be read.
pub fn fragment_files(config: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(fragment_directory(config)) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    Ok(files)
}
