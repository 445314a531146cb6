//! What may hang in the kernel, such as work on a disk: a process of its own, which nobody waits for then.
//!
//! A thread could not be left behind: no process ends before its last thread, and whoever waits for the process would wait for the
//! disk. Nothing that is left behind has a descriptor of its maker's.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::setsid;

use crate::child::{ChildError, collect, ends_killed, memory};

/// The running program: also where its file was replaced.
pub const MYSELF: &str = "/proc/self/exe";
/// A process that waits in the kernel for so long, and does nothing else, hangs.
const HANGS: Duration = Duration::from_secs(3);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The file in memory that names the process which this program has left behind at that disk, and whose lock is for one that
/// must be alone there.
pub fn note(directory: &Path, program: &str, file: &Path) -> PathBuf {
    directory.join(format!("{program}{}", file.display().to_string().replace('/', "-")))
}

/// Opens such a file, or another one in memory; makes what is missing.
///
/// # Errors
/// It cannot be made.
pub fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    }
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// To be called first by a process that [`run`] has made: from now on it is in nobody's session.
pub fn begin() {
    let _it_leads_one_already = setsid();
}

/// Waits until no other process is at its work that calls this with the same note. One that waits here can be killed.
#[must_use]
pub fn alone(note: &Path) -> Option<Flock<File>> {
    Flock::lock(open(note).ok()?, FlockArg::LockExclusive).ok()
}

/// Runs a part of this program and gives what it printed. `left` says how long to wait before it is asked again; at zero the process
/// is killed. `None`: it was too slow, or it hangs, or an earlier one does, so that none was begun.
///
/// # Errors
/// It could not be started.
pub fn run(
    mut command: Command,
    input: &[u8],
    note: &Path,
    mut left: impl FnMut(u32) -> Duration,
) -> Result<Option<Output>, ChildError> {
    if is_left_behind(note) {
        return Ok(None);
    }
    let mut said = memory(&[])?;
    let mut child = command.stdin(memory(input)?).stdout(Stdio::piped()).stderr(said.try_clone()?).spawn()?;
    let pid = child.id();
    if let Some((status, stdout)) = collect(&mut child, || left(pid), usize::MAX)? {
        let mut stderr = Vec::new();
        said.rewind()?;
        said.read_to_end(&mut stderr)?;
        return Ok(Some(Output { status, stdout, stderr }));
    }
    if !ends_killed(&mut child) {
        let start = look(pid).map(|look| look.start).unwrap_or_default();
        let _only_saves_the_next_one = open(note).and_then(|_| fs::write(note, format!("{pid} {start}")));
    }
    Ok(None)
}

/// For [`run`]: as long as the process neither ends nor hangs in the kernel, nor one for which it waits in [`alone`] is left behind.
pub fn unless_it_hangs(note: &Path) -> impl FnMut(u32) -> Duration {
    let (mut since, mut used) = (Instant::now(), None);
    move |pid| {
        let now = look(pid).filter(|look| look.is_in_kernel).map(|look| look.used);
        if now.is_none() || now != used {
            (since, used) = (Instant::now(), now);
        }
        if since.elapsed() < HANGS && !is_left_behind(note) { LOOK } else { Duration::ZERO }
    }
}

/// Whether the process that was left behind last still hangs.
fn is_left_behind(note: &Path) -> bool {
    let text = fs::read_to_string(note).unwrap_or_default();
    let named = text.split_once(' ').and_then(|(pid, start)| Some((pid.parse().ok()?, start)));
    named.is_some_and(|(pid, start)| look(pid).is_some_and(|look| look.is_in_kernel && look.start == start))
}

/// What the kernel says of a process.
struct Look {
    /// It waits there, and no signal ends that.
    is_in_kernel: bool,
    /// Its processor time, in ticks.
    used: [String; 2],
    /// When it was started, in ticks: an id is reused.
    start: String,
}

fn look(pid: u32) -> Option<Look> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may have any characters.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let field = |at: usize| fields.get(at).map(|field| (*field).to_owned());
    Some(Look {
        is_in_kernel: fields.first() == Some(&"D"),
        used: [field(11)?, field(12)?],
        start: field(19)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, note: &Path, left: impl FnMut(u32) -> Duration) -> Option<Output> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        run(command, b"in", note, left).unwrap()
    }

    #[test]
    fn what_ends_in_time_gives_all_that_it_printed() {
        let dir = tempfile::tempdir().unwrap();
        let note = note(dir.path(), "x", Path::new("/srv/marks.db"));
        let output = shell("cat; echo no >&2; exit 3", &note, unless_it_hangs(&note)).unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.as_slice(), output.stderr.as_slice()),
            (Some(3), &b"in"[..], &b"no\n"[..])
        );
        assert!(!note.exists());
    }

    /// Only one that stays although it was killed is noted; the broken variant takes any living process for one that hangs.
    #[test]
    fn what_is_too_slow_is_killed_and_hangs_only_in_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let note = note(dir.path(), "x", Path::new("/srv/marks.db"));
        assert_eq!(shell("exec sleep 1000", &note, |_| Duration::ZERO), None);
        assert!(!note.exists());
        let own = std::process::id();
        fs::write(&note, format!("{own} {}", look(own).unwrap().start)).unwrap();
        assert!(!is_left_behind(&note));
        assert!(shell("true", &note, unless_it_hangs(&note)).is_some());
    }

    #[test]
    fn one_at_a_time_is_alone() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("run/note");
        let held = alone(&note).unwrap();
        assert!(Flock::lock(open(&note).unwrap(), FlockArg::LockExclusiveNonblock).is_err());
        drop(held);
        assert!(Flock::lock(open(&note).unwrap(), FlockArg::LockExclusiveNonblock).is_ok());
        assert!(alone(Path::new("/proc/none/note")).is_none());
    }
}
