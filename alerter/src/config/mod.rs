//! The third stage of the configuration: validated settings. How files are read and merged is the crate `site`'s.

pub mod api;
mod groups;
mod listen;
mod routes;
pub mod rules;
mod settings;
mod values;
mod written;

use std::path::Path;

use site::ConfigErrors;

pub use api::Api;
pub(crate) use groups::shared_storage;
pub use groups::{Attributes, Group, Link, Members, NamedRecipients};
pub use listen::{CacheControl, HealthFormat, Healthcheck, RouteName, Served};
pub use routes::{ROUTE_KEYS, Route};
pub use settings::{
    HistoryRules, HostRules, IntakeRules, Recipients, Settings, StorePlace, check_control_socket,
    control_socket,
};
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
    let (settings, warnings) = site::read(file, |root| settings::read(root, file, kinds))?;
    Ok(Settings { warnings, ..settings })
}

/// Reads these texts as files of one configuration, which is called `f` in what is said of it.
#[cfg(test)]
fn read_texts<T>(texts: &[&str], settings: impl FnOnce(site::Section<'_, '_>) -> T) -> Result<T, String> {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    let room = tempfile::tempdir().unwrap();
    let further = room.path().join("alerter.d");
    fs::create_dir(&further).unwrap();
    fs::set_permissions(&further, Permissions::from_mode(0o755)).unwrap();
    for (at, text) in texts.iter().enumerate() {
        let file = if at == 0 { room.path().join("f") } else { further.join(format!("{at}.toml")) };
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    }
    let said = |errors: ConfigErrors| errors.to_string().replace(&format!("{}/", room.path().display()), "");
    site::read(&room.path().join("f"), settings).map(|(made, _)| made).map_err(said)
}
