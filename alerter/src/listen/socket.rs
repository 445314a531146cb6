//! Unix sockets as files: a stale one is replaced, anything else is left alone, and our own is removed at the end.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, lchown};
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Only the owner and the group may connect.
const MODE: u32 = 0o660;
/// The mode of a directory that is made: others may go through it to their socket, but not list it.
const DIRECTORY: u32 = 0o711;
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Only the owner of a file there can remove it.
const STICKY: u32 = 0o1000;
/// A socket that takes no connection for so long is not stale: a live process is busy.
const PATIENCE: Duration = Duration::from_secs(1);

/// The owner of the socket's file; where unset, the daemon's user.
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
    /// Makes the socket's file. By the daemon's umask only its own user can connect until the file has its owner and mode.
    pub(super) async fn new(path: &Path, owner: Owner) -> io::Result<Self> {
        apart(path, |path| match path.parent() {
            Some(directory) => make_directory(directory).and_then(|()| refuse_others(directory)),
            None => Ok(()),
        })
        .await?;
        remove_stale(path).await?;
        let (listener, file) = apart(path, bind).await?;
        let bound = Self { listener: UnixListener::from_std(listener)?, path: path.to_owned(), file };
        apart(path, move |path| hand_over(path, owner)).await?;
        Ok(bound)
    }
}

/// A file system may hang, and the daemon's own thread never waits for one.
async fn apart<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let path = path.to_owned();
    spawn_blocking(move || work(&path)).await.expect("a panic anywhere ends the whole daemon")
}

fn bind(path: &Path) -> io::Result<(net::UnixListener, (u64, u64))> {
    let listener = net::UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let meta = fs::symlink_metadata(path)?;
    Ok((listener, (meta.dev(), meta.ino())))
}

/// In this order: the new owner could put something else in its place.
fn hand_over(path: &Path, owner: Owner) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    if owner == Owner::default() { Ok(()) } else { lchown(path, owner.user, owner.group) }
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

/// Makes a directory for sockets, and those above it, where they are not there.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_directory(above)?;
        refuse_others(above)?;
    }
    match fs::create_dir(path) {
        // Another socket of ours was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    fs::set_permissions(path, Permissions::from_mode(DIRECTORY))
}

/// A user who can write a directory on the path could put a link in the place of what was just made there, and have root change the
/// owner and the mode of any other file. In a sticky directory nobody can remove the files of others.
fn refuse_others(directory: &Path) -> io::Result<()> {
    let whole = fs::canonicalize(directory)?;
    for place in whole.ancestors() {
        let meta = fs::symlink_metadata(place)?;
        let is_ours = meta.uid() == 0 || meta.uid() == geteuid().as_raw();
        let is_open = meta.mode() & WRITABLE_BY_OTHERS != 0 && meta.mode() & STICKY == 0;
        if !is_ours || is_open {
            let whose = "others than root can write its directory";
            let advice = "choose one that only root can write, and set `group` to those who may connect";
            return Err(io::Error::other(format!("{whose} {}: {advice}", place.display())));
        }
    }
    Ok(())
}

/// Removes only a socket without a listener.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let meta = match apart(path, |path| fs::symlink_metadata(path)).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        meta => meta?,
    };
    if !meta.file_type().is_socket() {
        return Err(io::Error::other("the path is a file and no socket: move it away"));
    }
    match timeout(PATIENCE, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            apart(path, |path| fs::remove_file(path)).await
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // It takes no connection now, or it is a socket of another kind: whether it is in use cannot be checked.
        Ok(Err(error)) => Err(io::Error::other(format!(
            "the socket that is there cannot be checked for a listener: {error}"
        ))),
        Ok(Ok(_)) | Err(_) => {
            Err(io::Error::other("another process listens there: end it, or choose another path"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_to(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
        (home, directory)
    }

    /// The broken variants are the same directories while nobody else can write them, or take anything away.
    #[tokio::test]
    async fn a_directory_that_others_can_write_is_refused() {
        for (mode, is_taken) in [(0o755, true), (0o1777, true), (0o775, false), (0o757, false)] {
            let (_home, directory) = open_to(mode);
            for place in [directory.join("s.sock"), directory.join("deeper/s.sock")] {
                let bound = Bound::new(&place, Owner::default()).await;
                assert_eq!(bound.is_ok(), is_taken, "{mode:o} {}", place.display());
                assert_eq!(place.exists(), is_taken, "{mode:o} {}", place.display());
            }
        }
    }

    /// A member of the group has to get through all of them.
    #[test]
    fn directories_in_between_can_be_gone_through() {
        let (_home, directory) = open_to(0o755);
        make_directory(&directory.join("a/b")).unwrap();
        for made in ["a", "a/b"] {
            let mode = fs::metadata(directory.join(made)).unwrap().mode() & 0o777;
            assert_eq!(mode, DIRECTORY, "{made}");
        }
    }
}
