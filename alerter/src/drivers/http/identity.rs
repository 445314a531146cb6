//! The route's own certificate: its client is made anew when the files change.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use reqwest::{Certificate, Client, Identity};
use tracing::{info, warn};

use super::Options;
use super::client::{self, Unusable};
use crate::config::{read_private, read_trusted};

/// `certificate-file` and `key-file`: what the endpoint knows us by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    /// Our certificate, and those between it and the endpoint's CA; PEM.
    pub certificate: PathBuf,
    /// Its key, without a passphrase; PEM. Only its owner may read it.
    pub key: PathBuf,
}

/// What tells one state of a file from the next, without reading it: device, inode, size, and the times of the last
/// change to its content and to its owner or mode, which decide whether it is trusted.
type Stamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

impl IdentityFiles {
    /// Reads both.
    pub(super) fn read(&self) -> Result<Identity, Unusable> {
        let said = |key: &'static str| move |why: String| Unusable::new(key, format!("{key}: {why}"));
        let mut pem = read_trusted(&self.certificate).map_err(said("certificate-file"))?;
        if !Certificate::from_pem_bundle(&pem).is_ok_and(|found| !found.is_empty()) {
            return Err(Unusable::new("certificate-file", "certificate-file holds no certificate in PEM"));
        }
        pem.push(b'\n');
        pem.extend(read_private(&self.key).map_err(said("key-file"))?);
        let no_key = "key-file holds no private key in PEM; one with a passphrase cannot be used";
        Identity::from_pem(&pem).map_err(|_| Unusable::new("key-file", no_key))
    }

    fn stamps(&self) -> [Stamp; 2] {
        [stamp(&self.certificate), stamp(&self.key)]
    }
}

fn stamp(file: &Path) -> Stamp {
    let meta = fs::metadata(file).ok()?;
    let content = (meta.mtime(), meta.mtime_nsec());
    Some((meta.dev(), meta.ino(), meta.size(), content, (meta.ctime(), meta.ctime_nsec())))
}

/// A route's client, as its files are now.
pub(super) struct Clients {
    current: Mutex<Current>,
}

struct Current {
    client: Client,
    /// Of the files that were looked at last, whether or not they could be used.
    stamps: Option<[Stamp; 2]>,
}

impl Clients {
    /// Makes the first client.
    pub(super) fn new(options: &Options) -> Result<Self, Unusable> {
        // Before they are read: what changes meanwhile is seen at the next exchange.
        let stamps = options.identity.as_ref().map(IdentityFiles::stamps);
        Ok(Self { current: Mutex::new(Current { client: client::build(options)?, stamps }) })
    }

    /// The client for the next exchange. Files that do not fit together leave the old one in use: they may be in the
    /// middle of a change, and an old certificate is better than none.
    pub(super) fn get(&self, options: &Options) -> Client {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = options.identity.as_ref().map(IdentityFiles::stamps);
        if stamps != current.stamps {
            current.stamps = stamps;
            current.renew(options);
        }
        current.client.clone()
    }
}

impl Current {
    /// Warns once for each change: the next exchange sees the same stamps.
    fn renew(&mut self, options: &Options) {
        let endpoint = super::shown(&options.url);
        match client::build(options) {
            Ok(client) => {
                self.client = client;
                info!(%endpoint, "the certificate for {endpoint} has changed, and the new one is used");
            }
            Err(why) => warn!(
                %endpoint, key = why.key,
                "the new certificate for {endpoint} cannot be used, so the old one is: {why}"
            ),
        }
    }
}
