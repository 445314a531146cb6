//! The services there are: what each is made of, and how it is started.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

/// Debian's own: another one in `PATH` does not know Debian's packages.
const PYTHON: &str = "/usr/bin/python3";

/// One service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Tokens and the catalog.
    Keystone,
    /// Masakari's API. A notification stays `new`, unless its engine runs in the same process.
    Masakari,
    /// Nova's API alone. Its compute services are rows that nobody is behind, so Nova sees all of them down.
    Nova,
    /// Mistral's API, engine and executor. Its workflows: `host-evacuate` as the seeds describe it; `host_down`,
    /// `host_down_slow`, which never ends by itself, and `host_down_broken`, with one input `host`.
    Mistral,
    /// Heat's API and engine. It has no stack.
    Heat,
}

/// Every one, for lists.
pub(super) const ALL: [Part; 5] = [Part::Keystone, Part::Masakari, Part::Nova, Part::Mistral, Part::Heat];

/// What a service is made of.
struct Recipe {
    name: &'static str,
    usual_port: u16,
    /// What the catalog says of it: its type, and what stands behind its address; Keystone enters itself.
    in_the_catalog: Option<(&'static str, &'static str)>,
    /// The files in its directory, by name: `server.py` is a server of its own, while `application.py` is one for uwsgi, and
    /// has `seed.py` make its database.
    files: &'static [(&'static str, &'static str)],
    /// What it says when it answers from now on.
    says: &'static str,
}

macro_rules! assets {
    ($directory:literal: $($name:literal),*) => {
        &[
            ("made.py", include_str!("assets/made.py")),
            $(($name, include_str!(concat!("assets/", $directory, "/", $name)))),*
        ]
    };
}

const ENGINE_SAYS: &str = "the engine is there";
const UWSGI_SAYS: &str = "spawned uWSGI worker 1";

const KEYSTONE: Recipe = Recipe {
    name: "keystone",
    usual_port: 5000,
    in_the_catalog: None,
    files: assets!("keystone": "keystone.conf", "seed.py", "application.py"),
    says: UWSGI_SAYS,
};
const MASAKARI: Recipe = Recipe {
    name: "masakari",
    usual_port: 15868,
    in_the_catalog: Some(("instance-ha", "/v1/$(project_id)s")),
    files: assets!("masakari": "masakari.conf", "api-paste.ini", "seed.py", "application.py", "engine.py", "masakari_repaired.py"),
    says: UWSGI_SAYS,
};
const NOVA: Recipe = Recipe {
    name: "nova",
    usual_port: 8774,
    in_the_catalog: Some(("compute", "/v2.1")),
    files: assets!("nova": "nova.conf", "api-paste.ini", "seed.py", "application.py"),
    says: UWSGI_SAYS,
};
const MISTRAL: Recipe = Recipe {
    name: "mistral",
    usual_port: 8989,
    in_the_catalog: Some(("workflowv2", "/v2")),
    files: assets!("mistral": "mistral.conf", "server.py"),
    says: "Engine server started.",
};
const HEAT: Recipe = Recipe {
    name: "heat",
    usual_port: 8004,
    in_the_catalog: Some(("orchestration", "/v1/$(project_id)s")),
    files: assets!("heat": "heat.conf", "api-paste.ini", "server.py"),
    says: "wsgi starting up on",
};

impl Part {
    const fn recipe(self) -> &'static Recipe {
        match self {
            Self::Keystone => &KEYSTONE,
            Self::Masakari => &MASAKARI,
            Self::Nova => &NOVA,
            Self::Mistral => &MISTRAL,
            Self::Heat => &HEAT,
        }
    }

    /// Its name, which is that of its directory and of its Python package too.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.recipe().name
    }

    pub(super) fn usual_port(self) -> u16 {
        self.recipe().usual_port
    }

    pub(super) fn in_the_catalog(self) -> Option<(&'static str, &'static str)> {
        self.recipe().in_the_catalog
    }

    pub(super) fn files(self) -> &'static [(&'static str, &'static str)] {
        self.recipe().files
    }

    pub(super) fn says_when_ready(self, with_engine: bool) -> &'static str {
        if with_engine { ENGINE_SAYS } else { self.recipe().says }
    }

    /// Whether it has a file of this name.
    fn has(self, name: &str) -> bool {
        self.files().iter().any(|(own, _)| *own == name)
    }

    /// What stands in its environment.
    pub(super) fn environment(self, directory: &Path) -> Vec<(OsString, OsString)> {
        let own = format!("OS_{}_CONFIG_DIR", self.name().to_uppercase());
        vec![(own.into(), directory.into())]
    }

    /// The command that becomes it.
    pub(super) fn command(self, directory: &Path, address: SocketAddr, with_engine: bool) -> Vec<OsString> {
        if with_engine || self.has("server.py") {
            let script = if with_engine { "engine.py" } else { "server.py" };
            return vec![PYTHON.into(), "-u".into(), directory.join(script).into()];
        }
        let configuration = directory.join(format!("{}.conf", self.name()));
        let address = address.to_string();
        let arguments = format!("--config-file {}", configuration.display());
        // The buffer is larger than Keystone's catalog, which comes with each request behind the middleware.
        let fixed =
            "uwsgi-core --plugins python3 --need-app --enable-threads --buffer-size 65535 --http-socket";
        let mut words: Vec<OsString> =
            fixed.split(' ').chain([address.as_str()]).map(OsString::from).collect();
        if self.says_that_it_closes() {
            words.extend(["--add-header", "Connection: close"].map(OsString::from));
        }
        words.extend(["--pyargv".into(), arguments.into(), "--pythonpath".into(), directory.into()]);
        words.extend(["--wsgi-file".into(), directory.join("application.py").into()]);
        words
    }

    /// uwsgi closes each connection after one answer. As Debian sets it up Masakari does not say so, and a client that keeps
    /// its connections is cut off now and then; Masakari itself is such a client of the others.
    fn says_that_it_closes(self) -> bool {
        self != Self::Masakari
    }
}
