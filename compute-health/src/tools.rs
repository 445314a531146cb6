//! Pacemaker's own programs, which publish and count, held in memory with every library that they load: they run while the root
//! disk hangs. So does this program, whose pages are held too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, id};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, SpliceFFlags, fcntl, splice};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{chdir, pipe, pivot_root};

use crate::settings::{NODE, program};

/// What the words of a child begin with that holds the programs until it may end.
pub(crate) const HOLD: &str = "hold";
/// The same of a child that becomes one of them.
pub(crate) const BECOME: &str = "become";
/// The programs.
pub(crate) const ATTRD_UPDATER: &str = "attrd_updater";
pub(crate) const STONITH_ADMIN: &str = "stonith_admin";

/// This program, wherever its file is.
pub(crate) const OWN: &str = "/proc/self/exe";
/// Where they are gathered; on no disk, and seen by the child alone.
const ROOM: &str = "/run/compute-health";
/// What they read beside their libraries, where it is there.
const FILES: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache"];
/// They answer in a twentieth of a second.
const LIMIT: Duration = Duration::from_secs(8);
/// Where the disk hangs they cannot be gathered, and nobody waits for that: milliseconds.
const HELD: u16 = 12_000;

/// The held programs.
#[derive(Debug)]
pub(crate) struct Tools {
    /// The way to the mounts in which they lie; empty where they run from the disk.
    mounts: String,
    /// Keeps those mounts, and this program's pages.
    _kept: (Option<File>, Option<Vec<[OwnedFd; 2]>>),
    /// Where they are: nobody asks the disk for it again.
    paths: Vec<PathBuf>,
}

impl Tools {
    /// Holds what can be held. What cannot is run from the disk: while that hangs nothing is counted, and nobody fenced.
    pub(crate) fn hold() -> Self {
        let held = held().ok();
        let mounts = held.as_ref().map(|held| format!("/proc/{}/fd/{}", id(), held.as_raw_fd()));
        let paths = [ATTRD_UPDATER, STONITH_ADMIN].into_iter().filter_map(program).collect();
        Self { mounts: mounts.unwrap_or_default(), _kept: (held, own_pages().ok()), paths }
    }

    /// Starts a program.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> io::Result<Job> {
        let path = self.paths.iter().find(|path| path.ends_with(name)).ok_or(io::ErrorKind::NotFound)?;
        let printed = File::from(memfd_create("printed", MFdFlags::MFD_CLOEXEC)?);
        let mut command = own(&[BECOME, &self.mounts, &path.to_string_lossy()]);
        // With that name in its environment `attrd_updater --all` shows this node alone.
        command.args(arguments).env("TZ", "UTC").env_remove(NODE).stdout(printed.try_clone()?);
        Ok(Job { child: command.spawn()?, printed, begun: Instant::now() })
    }
}

/// A child that is this program with other words, and has nothing of its parent's but the environment.
pub(crate) fn own(words: &[&str]) -> Command {
    let mut command = Command::new(OWN);
    command.args(words).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Job {
    child: Child,
    printed: File,
    begun: Instant,
}

impl Job {
    /// What it has printed once it has ended; `Some(None)` where it failed, or takes too long.
    pub(crate) fn end(&mut self) -> Option<Option<String>> {
        match self.child.try_wait() {
            Ok(None) if self.begun.elapsed() < LIMIT => None,
            Ok(Some(ended)) if ended.success() => Some(self.text().ok()),
            _ => {
                let _it_may_hang_and_nobody_waits = self.child.kill();
                Some(None)
            }
        }
    }

    /// Whether it has not ended yet; asked until then, so that nothing is left of it.
    pub(crate) fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn text(&mut self) -> io::Result<String> {
        self.printed.rewind()?;
        io::read_to_string(&self.printed)
    }
}

/// Keeps the pages of this program's file in memory: those that are in a pipe are not given back. A mebibyte each: larger ones are not
/// granted everywhere.
fn own_pages() -> io::Result<Vec<[OwnedFd; 2]>> {
    let file = File::open(OWN)?;
    let mut left = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut pipes = Vec::new();
    while left > 0 {
        let (reader, writer) = pipe()?;
        fcntl(&writer, FcntlArg::F_SETPIPE_SZ(1 << 20))?;
        let mut room = left.min(1 << 20);
        while room > 0 {
            let moved = Some(splice(&file, None, &writer, None, room, SpliceFFlags::SPLICE_F_NONBLOCK)?);
            let moved = moved.filter(|moved| *moved > 0).ok_or(io::ErrorKind::UnexpectedEof)?;
            (room, left) = (room - moved, left - moved);
        }
        pipes.push([reader, writer]);
    }
    Ok(pipes)
}

/// Has a child gather the programs, and takes hold of its mounts.
fn held() -> io::Result<File> {
    let mut child = own(&[HOLD]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut said = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    if poll(&mut [PollFd::new(said.as_fd(), PollFlags::POLLIN)], HELD)? == 0 {
        child.kill()?;
        return Err(io::ErrorKind::TimedOut.into());
    }
    let ready = said.read_exact(&mut [0]);
    let mounts = File::open(format!("/proc/{}/ns/mnt", child.id()));
    drop(child.stdin.take());
    child.wait()?;
    ready.and(mounts)
}

/// In the child: gathers the programs, says so, and waits until it may end.
pub(crate) fn gather() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    fs::create_dir_all(ROOM)?;
    mount(Some("ramfs"), ROOM, Some("ramfs"), MsFlags::empty(), Some("mode=0755"))?;
    for name in [ATTRD_UPDATER, STONITH_ADMIN] {
        let path = program(name).ok_or(io::ErrorKind::NotFound)?;
        libraries(&path)?.iter().chain([&path]).try_for_each(|file| copy(file))?;
    }
    for file in FILES {
        let _where_it_is = copy(Path::new(file));
    }
    for (place, how) in [("/dev", MsFlags::MS_REC), ("/proc", MsFlags::MS_REC), ("/run", MsFlags::empty())] {
        let there = room(Path::new(place));
        fs::create_dir_all(&there)?;
        mount(Some(place), &there, none, MsFlags::MS_BIND | how, none)?;
    }
    chdir(ROOM)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    io::stdout().write_all(b"\n")?;
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// In the child, so that no disk keeps the checker waiting: becomes a program.
pub(crate) fn become_held(words: &[String]) -> io::Error {
    let [mounts, path, arguments @ ..] = words else { return io::ErrorKind::InvalidInput.into() };
    let enter = || Ok(setns(File::open(mounts)?, CloneFlags::CLONE_NEWNS)?);
    let entered = if mounts.is_empty() { Ok(()) } else { enter() };
    entered.err().unwrap_or_else(|| Command::new(path).args(arguments).exec())
}

/// Every file that the loader would load, as `ldd` says.
fn libraries(path: &Path) -> io::Result<Vec<PathBuf>> {
    let said = Command::new("ldd").arg(path).stderr(Stdio::null()).output()?;
    if !said.status.success() {
        return Err(io::Error::other("it has no libraries that ldd knows"));
    }
    let text = String::from_utf8_lossy(&said.stdout);
    let words = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    let mut all: Vec<PathBuf> = words.map(PathBuf::from).collect();
    // Before glibc 2.34 it looks up accounts, and no program names it.
    let accounts =
        all.iter().map(|file| file.with_file_name("libnss_files.so.2")).find(|file| file.is_file());
    all.extend(accounts);
    Ok(all)
}

fn copy(file: &Path) -> io::Result<()> {
    let place = room(file);
    place.parent().map_or(Ok(()), fs::create_dir_all)?;
    if place.exists() { Ok(()) } else { fs::copy(file, place).map(drop) }
}

fn room(path: &Path) -> PathBuf {
    Path::new(ROOM).join(path.strip_prefix("/").unwrap_or(path))
}

/// Writes to the kernel what the checker wants for itself; where that is not granted it works all the same.
pub(crate) fn outlive_others() {
    let file = OpenOptions::new().write(true).open("/proc/self/oom_score_adj");
    let _else_it_is_killed_as_others_are = file.and_then(|mut file| file.write_all(b"-1000"));
    let all = nix::sys::mman::MlockAllFlags::MCL_CURRENT | nix::sys::mman::MlockAllFlags::MCL_FUTURE;
    let _else_its_pages_may_go = nix::sys::mman::mlockall(all);
}
