//! The address of etcd, this cluster's prefix there, and our credentials.

use std::fmt;
use std::path::PathBuf;

/// The settings of `[store.etcd]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// Its members, `https://HOST:PORT` each. One that answers is enough.
    pub endpoints: Vec<String>,
    /// Trusted CAs instead of the system's.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Our user.
    pub login: Option<Login>,
    /// The prefix of this cluster's keys; ends with a slash.
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
