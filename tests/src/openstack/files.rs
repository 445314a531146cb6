//! The files of the services, and those that say how a cloud is reached.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::part::{self, Part};
use super::place::Place;
use super::seed::{self, ADMIN, APPLICATION, NOBODY, PROJECT, READER, REGION};

/// Somebody whom Keystone knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// An administrator of the project.
    Admin,
    /// Somebody who may only read in it.
    Reader,
    /// Somebody without any role.
    Nobody,
    /// An application credential of the administrator.
    Application,
}

/// What is wanted of the databases.
pub(super) const WANTED: &str = "wanted.json";

/// Writes the files of all services, each into its own directory.
pub(super) fn lay_out(room: &Path, place: &Place) -> anyhow::Result<()> {
    fs::write(room.join(WANTED), seed::wanted(place).to_string())?;
    for part in part::ALL {
        let directory = room.join(part.name());
        fs::create_dir(&directory)?;
        for (name, text) in part.files() {
            fs::write(directory.join(name), filled_in(text, &directory, part, place))?;
        }
    }
    Ok(())
}

fn filled_in(text: &str, directory: &Path, part: Part, place: &Place) -> String {
    let address = place.address(part);
    let words = [
        ("@ROOM@", directory.display().to_string()),
        ("@ADDRESS@", address.ip().to_string()),
        ("@PORT@", address.port().to_string()),
        ("@IDENTITY@", place.identity()),
        ("@SERVICE_PASSWORD@", seed::SERVICE_PASSWORD.to_owned()),
    ];
    words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
}

/// Writes how a user reaches the cloud: a file that all can read, and the secret in one for its owner alone.
pub(super) fn clouds(who: Who, place: &Place, directory: &Path) -> anyhow::Result<PathBuf> {
    let (open, secret) = match who {
        Who::Admin => password(ADMIN),
        Who::Reader => password(READER),
        Who::Nobody => password(NOBODY),
        Who::Application => (
            format!("application_credential_id: {}", APPLICATION.0),
            format!("application_credential_secret: {}", APPLICATION.1),
        ),
    };
    let url = place.identity();
    let clouds =
        format!("clouds:\n  ops:\n    auth: {{auth_url: '{url}', {open}}}\n    region_name: {REGION}\n");
    let path = directory.join("clouds.yaml");
    write(&path, &clouds, 0o644)?;
    write(&directory.join("secure.yaml"), &format!("clouds:\n  ops:\n    auth: {{{secret}}}\n"), 0o600)?;
    Ok(path)
}

fn password((name, password): (&str, &str)) -> (String, String) {
    let domains = "user_domain_name: Default, project_domain_name: Default";
    (format!("username: {name}, project_name: {PROJECT}, {domains}"), format!("password: {password}"))
}

fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}
