//! One run of a program: the command, its process group, its input and output, and how it ends.
//!
//! The group has a guard, which kills it as soon as the daemon has ended in any way: the kernel then closes the daemon's
//! end of the guard's standard input. So no later run can meet this one.

mod command;

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use site::check_program;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub use command::command;

/// A program's whole environment: the daemon's own environment, and Pacemaker's, must not influence it.
const ENVIRONMENT: [(&str, &str); 2] = [("LANG", "C.UTF-8"), ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")];
/// An answer is no longer than this.
pub(crate) const STDOUT_BYTES: usize = 64 * 1024;
/// How much of the end of standard error is kept.
const STDERR_BYTES: usize = 4 * 1024;
/// A process that left the group may hold the pipes open: how long they are read after the program's end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a killed process may hang in the kernel.
const REAPING: Duration = Duration::from_secs(1);

/// The guard waits for the end of its standard input, and then kills its process group and itself. It ignores signals
/// that ask the whole group to end.
const GUARD: [&str; 4] =
    ["/bin/sh", "-c", "trap '' HUP INT QUIT TERM; read -r never; kill -s KILL 0", "program-guard"];

/// A file that every guard holds open.
static HELD: Mutex<Option<File>> = Mutex::new(None);

/// Makes every guard hold this file open from now on. With the journal's lock in it, no other daemon begins before this
/// one's last program has ended.
pub fn hold_while_running(file: File) {
    *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It did not start: the system's reason, and whether that may pass by itself.
    NotStarted {
        /// For people.
        why: String,
        /// Memory or file descriptors were missing, or the program was just being replaced.
        passes: bool,
    },
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed at the limit.
    Timeout(Duration),
    /// The system did not report how.
    Lost,
}

/// The result of a run.
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// The beginning: at most [`STDOUT_BYTES`], and one more where there was more.
    pub stdout: Vec<u8>,
    /// The end, at most 4 KiB.
    pub stderr: Vec<u8>,
}

/// Runs a program, within `limit`. Its end kills whatever is left in its process group; dropping the run kills the whole
/// group.
pub async fn run(command: &[String], input: &[u8], limit: Duration) -> Ran {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    let started = match still_trusted(command, limit).await {
        Ok(()) => Group::start(command),
        Err(end) => return Ran { end, stdout, stderr },
    };
    let end = match started {
        Err(error) => not_started(&error),
        Ok((mut group, pipes)) => {
            let (ended, noticed) = oneshot::channel();
            let running = async {
                let end = group.end(limit, begun).await;
                drop(ended);
                end
            };
            tokio::join!(running, talk(pipes, input, &mut stdout, &mut stderr, noticed)).0
        }
    };
    Ran { end, stdout, stderr }
}

/// A program that others may change by now is not run: what the configuration's reader checked may be long ago. Where only root
/// can change each directory of its path, nobody else can change it between this and its start.
async fn still_trusted(command: &[String], limit: Duration) -> Result<(), End> {
    let Some(program) = command.first().map(PathBuf::from) else { return Ok(()) };
    // A file system may hang.
    let checked = timeout(limit, spawn_blocking(move || check_program(&program))).await;
    let refused = |why: String, passes| End::NotStarted { why, passes };
    match checked {
        Ok(Ok(result)) => result.map_err(|why| refused(why, false)),
        Ok(Err(_)) | Err(_) => Err(refused("its file could not be checked in time".to_owned(), true)),
    }
}

/// Distinguishes what passes by itself from what a person must fix.
fn not_started(error: &io::Error) -> End {
    const PASSING: [Errno; 6] =
        [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE, Errno::ETXTBSY, Errno::EINTR];
    let passes = error.raw_os_error().is_some_and(|code| PASSING.contains(&Errno::from_raw(code)));
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or(&text).to_owned();
    End::NotStarted { why, passes }
}

struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

/// A running program with all that it starts, unless it takes pains to leave the group.
struct Group {
    child: Child,
    /// The leader of the group.
    guard: Child,
    /// The guard waits for its end; nothing is ever written to it.
    _alive: Option<ChildStdin>,
    /// `None` after it was killed: another process may have the number then.
    id: Option<Pid>,
}

impl Group {
    fn start(command: &[String]) -> io::Result<(Self, Pipes)> {
        let [program, arguments @ ..] = command else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no program"));
        };
        let mut guard =
            guard().map_err(|e| io::Error::new(e.kind(), format!("its guard {}: {e}", GUARD[0])))?;
        // Waiting for the guard would close it.
        let alive = guard.stdin.take();
        let id = guard.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let leader = id.ok_or_else(|| io::Error::other("its guard has ended"))?;
        // If this returns an error, the guard is dropped and ends by itself.
        let mut child = bare(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(leader.as_raw())
            .spawn()?;
        let pipes =
            Pipes { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() };
        Ok((Self { child, guard, _alive: alive, id }, pipes))
    }

    /// Without its guard a program would outlive a killed daemon, so it ends with its guard.
    async fn end(&mut self, limit: Duration, begun: Instant) -> End {
        let ended = async {
            tokio::select! {
                biased;
                status = self.child.wait() => Some(status),
                _ = self.guard.wait() => None,
            }
        };
        let waited = timeout_at(begun + limit, ended).await;
        self.kill();
        let status = match waited {
            Ok(Some(status)) => Ok(status),
            Ok(None) => timeout(REAPING, self.child.wait()).await.map_err(|_| End::Lost),
            Err(_) => {
                let _reaped = timeout(REAPING, self.child.wait()).await;
                Err(End::Timeout(limit))
            }
        };
        status.map_or_else(|end| end, |status| status.map_or(End::Lost, of_status))
    }

    fn kill(&mut self) {
        let _gone_already = self.id.take().map(|id| killpg(id, Signal::SIGKILL));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn guard() -> io::Result<Child> {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.as_ref().map(File::try_clone).transpose()?;
    let mut command = bare(GUARD[0]);
    command.args(&GUARD[1..]).process_group(0).stdin(Stdio::piped()).stderr(Stdio::null());
    command.stdout(held.map_or_else(Stdio::null, Stdio::from)).spawn()
}

/// A command with a fixed environment.
fn bare(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(ENVIRONMENT).current_dir("/");
    command
}

fn of_status(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exit(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Lost,
    }
}

/// Writes the program's input and reads its output, until it has closed its pipes or has ended.
async fn talk(
    pipes: Pipes,
    input: &[u8],
    stdout: &mut Vec<u8>,
    stderr: &mut Vec<u8>,
    ended: oneshot::Receiver<()>,
) {
    let both = async {
        tokio::join!(write_input(pipes.stdin, input), first(pipes.stdout, stdout), last(pipes.stderr, stderr))
    };
    let late = async {
        let _sender_is_dropped = ended.await;
        sleep(LAST_WORDS).await;
    };
    tokio::select! {
        _ = both => (),
        () = late => (),
    }
}

/// A program need not read its input: its exit code says what that means.
async fn write_input(pipe: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut pipe) = pipe {
        let _not_read = pipe.write_all(input).await;
    }
}

/// Keeps the beginning and reads the rest, so that a program that prints too much does not hang.
async fn first(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    each_part(pipe, |part| {
        let room = (STDOUT_BYTES + 1).saturating_sub(kept.len());
        kept.extend_from_slice(&part[..part.len().min(room)]);
    })
    .await;
}

/// Keeps the end.
async fn last(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    each_part(pipe, |part| {
        kept.extend_from_slice(part);
        kept.drain(..kept.len().saturating_sub(STDERR_BYTES));
    })
    .await;
}

async fn each_part(pipe: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut pipe) = pipe else { return };
    let mut part = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut part).await {
        take(&part[..count]);
    }
}
