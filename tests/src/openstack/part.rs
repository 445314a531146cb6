//! The services there are: what each is made of, and how it is started.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

/// One service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Tokens and the catalog.
    Keystone,
    /// Masakari's API. Without its engine and a message bus a notification stays `new`.
    Masakari,
}

/// Every one, for lists.
pub(super) const ALL: [Part; 2] = [Part::Keystone, Part::Masakari];

macro_rules! assets {
    ($directory:literal: $($name:literal),*) => {
        &[$(($name, include_str!(concat!("assets/", $directory, "/", $name)))),*]
    };
}

impl Part {
    /// Its name, which is that of its directory and of its Python package too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Keystone => "keystone",
            Self::Masakari => "masakari",
        }
    }

    /// Where it usually listens.
    pub(super) fn usual_port(self) -> u16 {
        match self {
            Self::Keystone => 5000,
            Self::Masakari => 15868,
        }
    }

    /// What the catalog says of it: its type, and what stands behind its address; Keystone enters itself.
    pub(super) fn in_the_catalog(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Keystone => None,
            Self::Masakari => Some(("instance-ha", "/v1/$(project_id)s")),
        }
    }

    /// The files in its directory, by name.
    pub(super) fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Keystone => assets!("keystone": "keystone.conf", "seed.py", "application.py"),
            Self::Masakari => {
                assets!("masakari": "masakari.conf", "api-paste.ini", "seed.py", "application.py", "masakari_mended.py")
            }
        }
    }

    /// What stands in its environment.
    pub(super) fn environment(self, directory: &Path) -> Vec<(OsString, OsString)> {
        let own = format!("OS_{}_CONFIG_DIR", self.name().to_uppercase());
        vec![(own.into(), directory.into())]
    }

    /// The command that becomes it.
    pub(super) fn command(self, directory: &Path, address: SocketAddr) -> Vec<OsString> {
        let application = directory.join("application.py");
        let configuration = directory.join(format!("{}.conf", self.name()));
        let address = address.to_string();
        let arguments = format!("--config-file {}", configuration.display());
        let mut words: Vec<OsString> =
            ["uwsgi-core", "--plugins", "python3", "--need-app", "--enable-threads"]
                .map(OsString::from)
                .into();
        // Larger than Keystone's catalog, which comes with each request behind the middleware.
        words.extend(
            ["--buffer-size", "65535", "--http-socket", &address, "--pyargv", &arguments].map(OsString::from),
        );
        if self.says_that_it_closes() {
            words.extend(["--add-header", "Connection: close"].map(OsString::from));
        }
        words.extend(["--pythonpath".into(), directory.into(), "--wsgi-file".into(), application.into()]);
        words
    }

    /// uwsgi closes each connection after one answer. As Debian sets it up Masakari does not say so, and a client that keeps
    /// its connections is cut off now and then; Masakari itself is such a client of the others.
    fn says_that_it_closes(self) -> bool {
        self != Self::Masakari
    }

    /// What it says when it answers from now on.
    pub(super) fn says_when_ready(self) -> &'static str {
        "spawned uWSGI worker 1"
    }
}
