//! Unix sockets as files: a stale one is replaced, anything else is left alone, and our own goes when nobody listens any more.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// Whoever may connect: the owner and the group, nobody else.
const MODE: u32 = 0o660;
/// How a directory is made that is not there: others may go through it to a socket of theirs, and read nothing in it.
const DIRECTORY: u32 = 0o711;
/// A socket that takes no connection for so long is not stale: somebody lives who is busy.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who the socket's file belongs to; where unset, whoever the daemon runs as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// A user's number.
    pub user: Option<u32>,
    /// A group's number.
    pub group: Option<u32>,
}

/// A socket with its file, which is removed with it.
pub(super) struct Bound {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file.
    file: (u64, u64),
}

impl Bound {
    /// Makes the socket's file. Until it has its owner and mode nobody but the daemon's own user can connect: the daemon's
    /// umask says so.
    pub(super) async fn new(path: &Path, owner: Owner) -> io::Result<Self> {
        path.parent().map_or(Ok(()), make_directory)?;
        remove_stale(path).await?;
        let listener = UnixListener::bind(path)?;
        let meta = fs::symlink_metadata(path)?;
        let bound = Self { listener, path: path.to_owned(), file: (meta.dev(), meta.ino()) };
        if owner != Owner::default() {
            chown(path, owner.user, owner.group)?;
        }
        fs::set_permissions(path, Permissions::from_mode(MODE))?;
        Ok(bound)
    }
}

impl Drop for Bound {
    /// Another daemon's file may stand there by now.
    fn drop(&mut self) {
        let is_ours = |meta: fs::Metadata| (meta.dev(), meta.ino()) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            let _already_gone = fs::remove_file(&self.path);
        }
    }
}

/// Makes a directory for sockets, if it is not there.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    fs::set_permissions(path, Permissions::from_mode(DIRECTORY))
}

/// Only what is a socket that nobody listens to goes.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let meta = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        meta => meta?,
    };
    if !meta.file_type().is_socket() {
        return Err(io::Error::other("a file stands there that is no socket: move it away"));
    }
    match timeout(PATIENCE, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => Err(io::Error::other("another process listens there: end it, or take another path")),
    }
}
