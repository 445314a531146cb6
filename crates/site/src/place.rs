//! Where the configuration and the journal stand.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where the configuration stands.
pub const CONFIG_PATH: &str = "/etc/nova-host-alerter/alerter.toml";
/// The journal unless `[store] path` says otherwise.
pub const DEFAULT_STORE: &str = "/var/lib/nova-host-alerter/marks.db";

/// Where further files of a configuration stand: `alerter.d` beside it.
pub fn fragment_directory(config: &Path) -> PathBuf {
    config.with_file_name("alerter.d")
}

/// The `*.toml` files in that directory, in the order of their names; none where there is no such directory.
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
