//! Where etcd is, what this cluster's entries stand under there, and who we are to it.

use std::fmt;
use std::path::PathBuf;

/// What `[store.etcd]` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// Its members, `https://HOST:PORT` each. One that answers is enough.
    pub endpoints: Vec<String>,
    /// Certificates that are trusted instead of the system's.
    pub ca: Option<PathBuf>,
    /// The certificate that it knows us by, and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The user that it knows us by.
    pub login: Option<Login>,
    /// Before each key of this cluster; ends with a slash.
    pub prefix: String,
}

/// A user and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Without a colon.
    pub user: String,
    /// Never shown.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}
