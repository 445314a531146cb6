//! Trusted files and programs: no other user may be able to write them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;

/// Larger files are refused: nobody writes them by hand.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
/// The kernel's limit of links in one path.
const MAX_LINKS: usize = 40;

/// Reads a path in a setting.
///
/// # Errors
/// One sentence for the operator.
pub fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    must_be_absolute(&path).map(|()| path)
}

/// Whether a path is valid in any working directory.
///
/// # Errors
/// One sentence for the operator.
pub fn must_be_absolute(path: &Path) -> Result<(), String> {
    if path.is_absolute() { Ok(()) } else { Err("must be an absolute path".to_owned()) }
}

/// Reads a file that belongs to root or to this process's user and that no other user may write.
///
/// Owner and mode are taken from the open file, so that it cannot be exchanged in between. A FIFO does not block.
///
/// # Errors
/// One sentence for the operator, without the file's name and without any part of the file.
pub fn read_trusted(path: &Path) -> Result<Vec<u8>, String> {
    let file = open(path)?;
    check_trust(&file, path)?;
    read(file)
}

/// Reads a file with a secret: a trusted one that only its owner may read.
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

/// Whether only root and this process's user may change a directory.
///
/// # Errors
/// One sentence for the operator, without the directory's name.
pub(crate) fn check_directory(path: &Path) -> Result<(), String> {
    let meta = fs::metadata(path).map_err(unreadable)?;
    if meta.is_dir() {
        check_owner_and_mode(meta.uid(), meta.mode(), path)
    } else {
        Err("it is not a directory".to_owned())
    }
}

/// Whether only root and this process's user may change a program: itself, every directory of its path, and the targets
/// of symbolic links. A directory with the sticky bit fails: others may create files there.
///
/// # Errors
/// One sentence for the operator.
pub fn check_program(path: &Path) -> Result<(), String> {
    let root = Path::new("/");
    check_place(&root.metadata().map_err(unreadable)?, root)?;
    check_way(root.to_owned(), path)
}

/// The same from a trusted directory on.
fn check_way(mut at: PathBuf, path: &Path) -> Result<(), String> {
    let mut parts = parts(path);
    let mut links = 0;
    let mut last = None;
    while let Some(part) = parts.pop_front() {
        let next = at.join(&part);
        let meta = next.symlink_metadata().map_err(unreadable)?;
        if part == ".." {
            at.pop();
        } else if meta.is_symlink() {
            links += 1;
            follow(&next, &mut at, &mut parts)?;
        } else {
            check_place(&meta, &next)?;
            (at, last) = (next, Some(meta));
        }
        if links > MAX_LINKS {
            return Err("too many symbolic links lead to it".to_owned());
        }
    }
    match last {
        Some(meta) if meta.is_file() && meta.mode() & 0o111 != 0 => Ok(()),
        Some(meta) if meta.is_file() => {
            Err(format!("it cannot be executed: run `chmod +x {}`", at.display()))
        }
        _ => Err("it is not a plain file".to_owned()),
    }
}

/// Puts the target of a symbolic link before the rest of the path.
fn follow(link: &Path, at: &mut PathBuf, rest: &mut VecDeque<OsString>) -> Result<(), String> {
    let target = link.read_link().map_err(unreadable)?;
    if target.is_absolute() {
        *at = PathBuf::from("/");
    }
    let mut way = parts(&target);
    way.append(rest);
    *rest = way;
    Ok(())
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let is_step = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_step).map(|part| part.as_os_str().to_owned()).collect()
}

/// One step of the path. The operator knows the program's path, but not the step that is wrong.
fn check_place(meta: &Metadata, place: &Path) -> Result<(), String> {
    // As /tmp has it: the advice must not be to change that.
    const EVERYBODYS: u32 = 0o1002;
    if meta.is_dir() && meta.mode() & EVERYBODYS == EVERYBODYS {
        return Err(format!("everybody may put files into {}: move the program elsewhere", place.display()));
    }
    check_owner_and_mode(meta.uid(), meta.mode(), place).map_err(|why| format!("{}: {why}", place.display()))
}

fn check_trust(file: &File, path: &Path) -> Result<(), String> {
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err("it is not a plain file".to_owned());
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

/// The system's message without its error number.
pub(crate) fn unreadable(error: io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    format!("it cannot be read: {words}")
}

/// The default path of the configuration.
pub const CONFIG_PATH: &str = "/etc/nova-host-alerter/alerter.toml";
/// The journal's default path; `[store] path` overrides it.
pub const DEFAULT_STORE: &str = "/var/lib/nova-host-alerter/marks.db";

/// The directory of a configuration's further files: `alerter.d` beside it.
pub fn fragment_directory(config: &Path) -> PathBuf {
    config.with_file_name("alerter.d")
}

/// The `*.toml` files in that directory, in the order of their names; none if the directory is missing.
///
/// # Errors
/// The directory cannot be read.
pub fn fragment_files(config: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(fragment_directory(config)) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

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
        assert_eq!(read_trusted(&fifo), Err("it is not a plain file".to_owned()));
        assert!(read_trusted(dir.path()).is_err());
        let none = read_trusted(&dir.path().join("none"));
        assert_eq!(none.unwrap_err(), "it cannot be read: No such file or directory");
    }

    /// A program below a directory that counts as trusted, `bin/tool` with links beside it.
    fn tools() -> tempfile::TempDir {
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(dir.path().join("bin/tool"), "").unwrap();
        for (name, target) in
            [("beside", "bin"), ("named", "beside/tool"), ("round", "round"), ("shell", "/bin/sh")]
        {
            std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
        }
        chmod(&dir, "bin", 0o755);
        chmod(&dir, "bin/tool", 0o755);
        dir
    }

    fn chmod(dir: &tempfile::TempDir, name: &str, mode: u32) {
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn way(dir: &tempfile::TempDir, name: &str) -> Result<(), String> {
        check_way(dir.path().to_owned(), Path::new(name))
    }

    #[test]
    fn a_program_is_trusted_with_all_that_leads_to_it() {
        let dir = tools();
        for name in ["bin/tool", "beside/tool", "named", "./bin/../bin/tool", "shell"] {
            assert_eq!(way(&dir, name), Ok(()), "{name}");
        }
        for (place, mode) in [("bin", 0o775), ("bin", 0o777), ("bin/tool", 0o757)] {
            chmod(&dir, place, mode);
            for name in ["bin/tool", "beside/tool", "named", "./bin/../bin/tool"] {
                let why = way(&dir, name).unwrap_err();
                assert!(why.contains(&format!("chmod go-w {}", dir.path().join(place).display())), "{why}");
            }
            chmod(&dir, place, 0o755);
        }
        assert_eq!(way(&dir, "named"), Ok(()));
    }

    #[test]
    fn what_cannot_be_run_is_no_program() {
        let dir = tools();
        chmod(&dir, "bin/tool", 0o644);
        assert!(way(&dir, "bin/tool").unwrap_err().contains("chmod +x"));
        assert_eq!(way(&dir, "bin"), Err("it is not a plain file".to_owned()));
        assert_eq!(way(&dir, "bin/.."), Err("it is not a plain file".to_owned()));
        assert_eq!(way(&dir, "round"), Err("too many symbolic links lead to it".to_owned()));
        assert!(way(&dir, "bin/none").unwrap_err().starts_with("it cannot be read: No such file"));
        assert!(way(&dir, "bin/tool/x").unwrap_err().starts_with("it cannot be read: Not a directory"));
    }

    /// Anybody may create this name as soon as it is free.
    #[test]
    fn a_program_among_everybodys_files_is_refused() {
        let why = check_program(&tools().path().join("bin/tool"));
        assert!(why.is_err_and(|why| why.starts_with("everybody may put files into /")));
        assert_eq!(check_program(Path::new("/bin/sh")), Ok(()));
    }

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        File::create(&file).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(read_trusted(&file).unwrap_err().contains("larger than"));
    }
}
