//! The cluster's state on this controller, read within a time limit.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use marks::host::HostName;
use pacemaker::cib::{Cib, CibError};
use pacemaker::corosync::corosync_nodes;
use pacemaker::read;
use pacemaker::tools::ToolError;

use crate::paths::Paths;

/// The time limit for what the running cluster knows: on a busy controller a rack that dies has many ask at once.
pub const CIB_LIMIT: Duration = Duration::from_secs(6);
/// The longest CIB. One of a thousand nodes has about a tenth of this.
const CIB_MAX: usize = 64 << 20;
/// The longest nodelist.
const COROSYNC_MAX: u64 = 1 << 20;

/// Why the cluster's state is unknown.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Neither the running cluster nor its file gave a CIB.
    #[error("the CIB cannot be read ({live}; {path}: {file}): check Pacemaker on this controller", path = .path.display())]
    Cib {
        /// Why `cibadmin` gave none.
        live: ToolError,
        /// The file.
        path: std::path::PathBuf,
        /// Why the file gave none.
        file: CibUnreadable,
    },
    /// Corosync's configuration exists, but cannot be read.
    #[error("{path} cannot be read ({source}): make it readable for root", path = .path.display())]
    Corosync {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Why the file gave no CIB.
#[derive(Debug, thiserror::Error)]
pub enum CibUnreadable {
    /// The file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// Not a CIB.
    #[error(transparent)]
    Content(#[from] CibError),
}

/// What the cluster knows of a host, or of its configuration: from the running cluster, else from Pacemaker's file (without
/// status), with why the running one gave nothing.
///
/// # Errors
/// [`ClusterError::Cib`] if both fail.
pub fn cib(paths: &Paths, host: Option<&HostName>) -> Result<(Cib, Option<ToolError>), ClusterError> {
    let deadline = Instant::now() + CIB_LIMIT;
    let live = match host {
        Some(host) => read::host(&paths.tools, host, deadline),
        None => read::configuration(&paths.tools, deadline),
    };
    live.map(|cib| (cib, None)).or_else(|live| match stored_cib(&paths.cib) {
        Ok(cib) => Ok((cib, Some(live))),
        Err(file) => Err(ClusterError::Cib { live, path: paths.cib.clone(), file }),
    })
}

fn stored_cib(path: &Path) -> Result<Cib, CibUnreadable> {
    parse(bounded(path, CIB_MAX as u64)?)
}

fn parse(bytes: Vec<u8>) -> Result<Cib, CibUnreadable> {
    let text = String::from_utf8(bytes).map_err(|_| CibUnreadable::NotText)?;
    Ok(Cib::parse(&text)?)
}

/// The cluster nodes in corosync's configuration; none if there is no such file.
///
/// # Errors
/// [`ClusterError::Corosync`]: the cluster nodes are unknown then.
pub fn corosync(path: &Path) -> Result<Vec<HostName>, ClusterError> {
    match bounded(path, COROSYNC_MAX) {
        Ok(bytes) => Ok(corosync_nodes(&String::from_utf8_lossy(&bytes))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(ClusterError::Corosync { path: path.to_owned(), source }),
    }
}

fn bounded(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() || meta.len() > max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a plain file, or too large"));
    }
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pacemaker::tools::Tools;

    /// A stand-in for `cibadmin`, and a CIB file.
    fn paths(dir: &Path, cibadmin: &str, cib: Option<&str>) -> Paths {
        let tool = dir.join("cibadmin");
        samples::program(&tool, format!("#!/bin/sh\n{cibadmin}\n"));
        if let Some(cib) = cib {
            fs::write(dir.join("cib.xml"), cib).unwrap();
        }
        Paths {
            tools: Tools { cibadmin: tool, ..Tools::default() },
            cib: dir.join("cib.xml"),
            corosync: dir.join("corosync.conf"),
            ..Paths::default()
        }
    }

    fn nodes(paths: &Paths) -> Result<Vec<String>, String> {
        let (cib, _why) = cib(paths, None).map_err(|e| e.to_string())?;
        Ok(cib.cluster_nodes().iter().map(ToString::to_string).collect())
    }

    const FILE: &str = "<?xml version=\"1.0\"?>\n<cib><configuration><nodes><node uname=\"stored\"/></nodes></configuration></cib>";

    #[test]
    fn the_running_cluster_is_asked_first_and_by_its_own_name() {
        let dir = tempfile::tempdir().unwrap();
        let live = "test \"$1 $2 $3\" = '--query --local --xpath' && echo '<node uname=\"live\"/>'";
        assert_eq!(nodes(&paths(dir.path(), live, Some(FILE))), Ok(vec!["live".to_owned()]));
    }

    #[test]
    fn a_missing_corosync_is_no_cluster_and_an_unreadable_one_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("corosync.conf");
        assert!(corosync(&path).unwrap().is_empty());
        fs::write(&path, "nodelist {\n node {\n name: ctl1\n }\n}\n").unwrap();
        assert_eq!(corosync(&path).unwrap().len(), 1);
        assert!(corosync(dir.path()).is_err());
    }
}
