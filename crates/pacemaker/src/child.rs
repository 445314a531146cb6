//! Running a program for a bounded time and with a bounded output.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use marks::escapes::without_escapes;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How often the exit is polled once the output has ended; it is due at once then.
const EXIT_POLL: Duration = Duration::from_millis(1);

/// The most that is read of standard error.
const SAID_MAX: u64 = 64 * 1024;
/// The most characters of a reason.
const REASON_MAX: usize = 500;
/// How Python begins what it says of a fault.
const TRACEBACK: &str = "Traceback";
/// How long the end of a killed program is awaited, unless it hangs in the kernel.
const REAPING: Duration = Duration::from_millis(200);
/// Killed programs that had not ended by then.
static LEFT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Why a program gave no output.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It could not be started, or its output could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It did not end in time, and was killed.
    #[error("no answer within {} ms", .0.as_millis())]
    TooSlow(Duration),
    /// It printed more than the limit, and was killed.
    #[error("its output is longer than {0} bytes")]
    TooLong(usize),
    /// It reported a failure.
    #[error("{0}")]
    Failed(Failure),
}

/// How a program failed, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its exit code, or its signal.
    pub status: ExitStatus,
    /// Its standard error, else its standard output, without colours.
    pub said: String,
}

impl Failure {
    /// Of a program that has ended.
    pub fn new(status: ExitStatus, stderr: &[u8], stdout: &[u8]) -> Self {
        let text = |bytes| without_escapes(&String::from_utf8_lossy(bytes));
        let said = Some(text(stderr)).filter(|said| !said.trim().is_empty());
        Self { status, said: said.unwrap_or_else(|| text(stdout)) }
    }

    /// Its reason in one line: the first that is called an error (the last one of pcs is always the same), else the first.
    /// Of a traceback of Python it is the last one.
    fn reason(&self) -> Option<String> {
        let lines = || self.said.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_error = |line: &&str| line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"));
        // In Pacemaker's output as XML.
        let in_xml =
            |line: &'_ str| line.strip_prefix("<error>")?.strip_suffix("</error>").map(str::to_owned);
        let first = || match lines().next()?.starts_with(TRACEBACK) {
            true => lines().next_back(),
            false => lines().find(|line| !line.starts_with('<')),
        };
        let reason = lines().find(is_error).map(str::to_owned);
        let reason = reason.or_else(|| lines().find_map(in_xml)).or_else(|| first().map(str::to_owned))?;
        Some(reason.chars().filter(|c| !c.is_control()).take(REASON_MAX).collect())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "{reason} ({})", self.status),
            None => write!(f, "it failed ({})", self.status),
        }
    }
}

impl ChildError {
    /// The exit code, if it reported a failure.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Failed(failure) => failure.status.code(),
            Self::Io(_) | Self::TooSlow(_) | Self::TooLong(_) => None,
        }
    }
}

/// Variables that must not reach a tool of the cluster. A shell may have set another CIB. For a resource agent Pacemaker
/// sets the node on which it runs: with `OCF_RESKEY_CRM_meta_on_node`, `attrd_updater --query --all` shows that node's
/// entries alone, and none of ours. The service manager's socket is for the daemon alone. An administrator's shell may
/// set another etcd.
const FOREIGN: [&str; 5] = ["CIB_", "ETCDCTL_", "NOTIFY_SOCKET", "OCF_", "WATCHDOG_"];

/// A tool of the cluster, for the running cluster alone.
pub fn cluster_tool(program: &Path) -> Command {
    let mut command = Command::new(program);
    without_foreign(&mut command, std::env::vars_os().map(|(name, _)| name));
    command
}

fn without_foreign(command: &mut Command, names: impl IntoIterator<Item = OsString>) {
    let is_foreign =
        |name: &OsString| FOREIGN.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
    for name in names.into_iter().filter(is_foreign) {
        command.env_remove(name);
    }
}

/// The standard output of a program that succeeds within `limit`. It runs in a process group of its own, which is killed
/// whole at the limit.
///
/// # Errors
/// [`ChildError`]
pub fn output(command: Command, limit: Duration, max_bytes: usize) -> Result<Vec<u8>, ChildError> {
    answer(command, &[], limit, max_bytes)
}

/// The same for a program that reads `input`.
///
/// # Errors
/// [`ChildError`]
pub fn answer(
    mut command: Command,
    input: &[u8],
    limit: Duration,
    max_bytes: usize,
) -> Result<Vec<u8>, ChildError> {
    let mut said = memory(&[])?;
    command.stdin(memory(input)?).stderr(said.try_clone()?);
    let (status, output) = run(command, limit, max_bytes)?;
    if status.success() {
        return Ok(output);
    }
    let mut words = Vec::new();
    let _what_cannot_be_read_was_not_said =
        said.rewind().and_then(|()| said.take(SAID_MAX).read_to_end(&mut words));
    Err(ChildError::Failed(Failure::new(status, &words, &output)))
}

/// A file in memory: writing it never waits for a reader.
pub(crate) fn memory(text: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("tool", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}

fn run(mut command: Command, limit: Duration, max_bytes: usize) -> Result<(ExitStatus, Vec<u8>), ChildError> {
    let end = Instant::now() + limit;
    command.stdout(Stdio::piped());
    left().retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    let mut child = command.process_group(0).spawn()?;
    match collect(&mut child, || end.saturating_duration_since(Instant::now()), max_bytes) {
        Ok(Some(ended)) => Ok(ended),
        Ok(None) => Err(kill(child, ChildError::TooSlow(limit))),
        Err(e) => Err(kill(child, e)),
    }
}

/// How a program has ended, and its output; `None` once `left`, which says how long to wait before it is asked again, is zero.
pub(crate) fn collect(
    child: &mut Child,
    mut left: impl FnMut() -> Duration,
    max_bytes: usize,
) -> Result<Option<(ExitStatus, Vec<u8>)>, ChildError> {
    let mut pipe = child.stdout.take().expect("standard output was asked for as a pipe");
    let mut all = Vec::new();
    let mut part = [0; 16 * 1024];
    loop {
        let left_now = left();
        let limit = PollTimeout::try_from(left_now).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], limit).map_err(io::Error::from)? {
            0 if left_now.is_zero() => return Ok(None),
            0 => continue,
            _ => {}
        }
        match pipe.read(&mut part)? {
            0 => return Ok(exit(child, left)?.map(|status| (status, all))),
            count => all.extend_from_slice(&part[..count]),
        }
        if all.len() > max_bytes {
            return Err(ChildError::TooLong(max_bytes));
        }
    }
}

/// `None` if it still runs at the end of the time.
fn exit(child: &mut Child, mut left: impl FnMut() -> Duration) -> io::Result<Option<ExitStatus>> {
    loop {
        let status = child.try_wait()?;
        if status.is_some() || left().is_zero() {
            return Ok(status);
        }
        thread::sleep(EXIT_POLL);
    }
}

/// A program that hangs in the kernel is not awaited: it is reaped when a later program is run.
fn kill(mut child: Child, why: ChildError) -> ChildError {
    if !ends_killed(&mut child) {
        left().push(child);
    }
    why
}

/// Kills a program with its group; whether it has ended then.
pub(crate) fn ends_killed(child: &mut Child) -> bool {
    let _gone_already = child.kill();
    let _gone_too = i32::try_from(child.id()).map(|id| killpg(Pid::from_raw(id), Signal::SIGKILL));
    let end = Instant::now() + REAPING;
    matches!(exit(child, || end.saturating_duration_since(Instant::now())), Ok(Some(_)))
}

fn left() -> MutexGuard<'static, Vec<Child>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn shell(script: &str, limit_ms: u64) -> Result<Vec<u8>, ChildError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        output(command, Duration::from_millis(limit_ms), 1000)
    }

    #[test]
    fn the_output_of_a_program_that_succeeds() {
        assert_eq!(shell("printf abc; printf no >&2", 5000).unwrap(), b"abc");
    }

    #[test]
    fn failures_are_distinguished() {
        assert!(matches!(shell("exit 3", 5000), Err(ChildError::Failed(_))));
        assert!(matches!(shell("yes", 5000), Err(ChildError::TooLong(1000))));
        let none = output(Command::new("/nonexistent"), Duration::from_secs(1), 10);
        assert!(matches!(none, Err(ChildError::Io(_))));
    }

    /// What each of these printed. The broken variants show no reason, or the last line, or the colours.
    #[test]
    fn a_failure_comes_with_the_tool_s_own_sentence() {
        let cases = [
            (
                "Could not connect to the CIB: Transport endpoint is not connected\nInit failed, could not perform requested operations",
                "Could not connect to the CIB: Transport endpoint is not connected",
            ),
            (
                "Warning: x\nError: Agent 'stonith:fence_mark' is not installed, use --force to override\nError: Errors have occurred, therefore pcs is unable to continue",
                "Error: Agent 'stonith:fence_mark' is not installed, use --force to override",
            ),
            (
                "\u{1b}[33mWARNING\u{1b}[0m: l: x\n\u{1b}[31mERROR\u{1b}[0m: stonith:fence_mark: no such resource agent\n",
                "ERROR: stonith:fence_mark: no such resource agent",
            ),
            (
                "<pacemaker-result api-version=\"2.25\">\n <status code=\"102\">\n  <errors>\n   <error>Could not connect to fencer</error>\n",
                "Could not connect to fencer",
            ),
            ("Traceback (most recent call last):\n  File \"x\"\nKeyError: 'y'\n", "KeyError: 'y'"),
            (" \n\t why it is\n", "why it is"),
            ("", "it failed"),
            ("\u{1b}[0m\n", "it failed"),
        ];
        for (said, reason) in cases {
            for (stderr, stdout) in [(said, "other"), ("", said)] {
                let failure =
                    Failure::new(ExitStatus::from_raw(0x0100), stderr.as_bytes(), stdout.as_bytes());
                if !(stdout == "other" && reason == "it failed") {
                    assert_eq!(failure.to_string(), format!("{reason} (exit status: 1)"));
                }
            }
        }
        assert_eq!(shell("echo no >&2; exit 3", 5000).unwrap_err().to_string(), "no (exit status: 3)");
        assert_eq!(shell("kill -9 $$", 5000).unwrap_err().to_string(), "it failed (signal: 9 (SIGKILL))");
    }

    #[test]
    fn a_tool_of_the_cluster_reads_the_cluster_and_every_node() {
        let names = [
            "PATH",
            "OCF_RESKEY_CRM_meta_on_node",
            "PCMK_service",
            "CIB_file",
            "CIB_shadow",
            "NOTIFY_SOCKET",
            "WATCHDOG_USEC",
        ];
        let mut command = Command::new("/usr/sbin/cibadmin");
        without_foreign(&mut command, names.map(OsString::from));
        let removed: Vec<_> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        let foreign =
            ["CIB_file", "CIB_shadow", "NOTIFY_SOCKET", "OCF_RESKEY_CRM_meta_on_node", "WATCHDOG_USEC"];
        assert_eq!(removed, foreign);
    }

    /// A program that hangs, or whose child keeps its output open, is killed with its whole group.
    #[test]
    fn a_program_that_hangs_is_killed_with_its_group() {
        let dir = tempfile::tempdir().unwrap();
        let scripts = [
            "sleep 1000 & echo $! > NOTE; wait",
            "sleep 1000 & echo $! > NOTE; exit 0",
            "exec >&-; echo $$ > NOTE; exec sleep 1000",
        ];
        let note = |number: usize| dir.path().join(number.to_string());
        thread::scope(|scope| {
            for (number, script) in scripts.iter().enumerate() {
                let note = note(number);
                scope.spawn(move || {
                    let script = script.replace("NOTE", note.to_str().unwrap());
                    assert!(matches!(shell(&script, 2000), Err(ChildError::TooSlow(_))), "{script}");
                    let pid = std::fs::read_to_string(&note).unwrap();
                    assert!(ends(pid.trim()), "{script}: {pid}");
                });
            }
        });
    }

    /// A daemon that polls a hanging cluster every two seconds would otherwise fill the process table with dead ones.
    #[test]
    fn what_was_killed_is_reaped() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("pid");
        let script = format!("echo $$ > {}; exec sleep 1000", note.display());
        assert!(matches!(shell(&script, 1000), Err(ChildError::TooSlow(_))));
        let pid = std::fs::read_to_string(&note).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} still exists");
    }

    /// Whether a killed process is gone, or dead and not yet reaped by the process that adopts orphans.
    fn ends(pid: &str) -> bool {
        let state = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit(") ").next()?.chars().next()
        };
        (0..1000).any(|_| {
            thread::sleep(EXIT_POLL);
            state().is_none_or(|state| state == 'Z')
        })
    }
}
