//! Reading of files that are trusted: nobody else may be able to write them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;

/// Larger files are refused: nobody writes them by hand.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// Reads a file that belongs to root or to this process's user and that nobody else may write.
///
/// Owner and mode are taken from the open file, so that it cannot be exchanged in between. A FIFO does not block.
///
/// # Errors
/// One sentence for the operator, without the file's name and without anything that stands in the file.
pub fn read_trusted(path: &Path) -> Result<Vec<u8>, String> {
    let file = open(path)?;
    check_trust(&file, path)?;
    read(file)
}

/// Reads a file with a secret: one that is trusted, and that nobody but its owner may read either.
///
/// # Errors
/// As [`read_trusted`].
pub fn read_private(path: &Path) -> Result<Vec<u8>, String> {
    let file = open(path)?;
    check_trust(&file, path)?;
    let mode = file.metadata().map_err(unreadable)?.mode();
    if mode & 0o077 != 0 {
        let (mode, path) = (mode & 0o7777, path.display());
        return Err(format!("others may read the secret in it (mode {mode:04o}): run `chmod 600 {path}`"));
    }
    read(file)
}

fn open(path: &Path) -> Result<File, String> {
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).map_err(unreadable)
}

fn read(file: File) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("the file is larger than {MAX_BYTES} bytes"));
    }
    Ok(bytes)
}

/// Whether a directory is one that only root and this process's user may change.
///
/// # Errors
/// One sentence for the operator, without the directory's name.
pub(super) fn check_directory(path: &Path) -> Result<(), String> {
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if meta.is_dir() {
        check_owner_and_mode(meta.uid(), meta.mode(), path)
    } else {
        Err("it is no directory".to_owned())
    }
}

fn check_trust(file: &File, path: &Path) -> Result<(), String> {
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err("it is no plain file".to_owned());
    }
    check_owner_and_mode(meta.uid(), meta.mode(), path)
}

fn check_owner_and_mode(owner: u32, mode: u32, path: &Path) -> Result<(), String> {
    if owner != 0 && owner != nix::unistd::geteuid().as_raw() {
        return Err(format!(
            "it belongs to user {owner}, who could change it: run `chown root {}`",
            path.display()
        ));
    }
    if mode & 0o022 != 0 {
        return Err(format!(
            "others may write it (mode {:04o}): run `chmod go-w {}`",
            mode & 0o7777,
            path.display()
        ));
    }
    Ok(())
}

/// The system's words without its error number.
pub(super) fn unreadable(error: io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    format!("it cannot be read: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_what_nobody_else_may_write_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "x").unwrap();
        for (mode, trusted) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_trusted(&file).is_ok(), trusted, "{mode:o}");
        }
        assert!(read_trusted(&file).unwrap_err().contains("chmod go-w"));
    }

    /// The broken variant is the reader of files without a secret.
    #[test]
    fn a_secret_is_read_only_where_nobody_else_can() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "x").unwrap();
        for (mode, private) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o644, false), (0o610, false)]
        {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_private(&file).is_ok(), private, "{mode:o}");
            assert!(read_trusted(&file).is_ok(), "{mode:o}");
        }
        assert!(read_private(&file).unwrap_err().contains("chmod 600"));
    }

    #[test]
    fn what_is_no_plain_file_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert_eq!(read_trusted(&fifo), Err("it is no plain file".to_owned()));
        assert!(read_trusted(dir.path()).is_err());
        assert_eq!(
            read_trusted(&dir.path().join("none")),
            Err("it cannot be read: No such file or directory".to_owned())
        );
    }

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        File::create(&file).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(read_trusted(&file).unwrap_err().contains("larger than"));
    }
}
