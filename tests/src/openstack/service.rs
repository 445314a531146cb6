//! One service as a child process: started, stopped, frozen, and ended with its owner.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::files::WANTED;
use super::part::Part;
use super::place::Place;
use crate::clock;
use crate::lab::wait;

/// Runs a command in a process group of its own, until it ends or the pipe on standard input closes, and writes down the
/// group's number.
const GUARD: &str = r#"
    exec 3<&0 </dev/null
    setsid "$@" 3<&- &
    pid=$!
    echo "$pid" >"$GROUP"
    { read -r nothing <&3; kill -s KILL -- "-$pid" "$pid"; } 2>/dev/null &
    wait "$pid"
"#;
/// A service imports thousands of modules before it answers, beside other tests.
const PATIENCE: Duration = Duration::from_secs(90);

/// One service.
pub(super) struct Service {
    part: Part,
    directory: PathBuf,
    wanted: PathBuf,
    address: SocketAddr,
    enter: Vec<OsString>,
    with_engine: bool,
    hours: u32,
    clock: Vec<(OsString, OsString)>,
    launches: usize,
    running: Option<Child>,
}

impl Service {
    pub(super) fn new(part: Part, place: &Place, room: &Path) -> Self {
        Self {
            part,
            directory: room.join(part.name()),
            wanted: room.join(WANTED),
            address: place.address(part),
            enter: place.enter.clone(),
            with_engine: false,
            hours: 0,
            clock: Vec::new(),
            launches: 0,
            running: None,
        }
    }

    /// Starts it; the first time it makes its database.
    pub(super) fn launch(&mut self) -> anyhow::Result<()> {
        ensure!(self.running.is_none(), "{} runs already", self.part.name());
        let log = self.next_log()?;
        let mut words: Vec<OsString> = ["sh", "-c", GUARD, "sh"].map(OsString::from).into();
        words.extend(self.enter.iter().cloned());
        words.extend(self.part.command(&self.directory, self.address, self.with_engine));
        let _none_yet = fs::remove_file(self.group_file());
        let mut command = self.bare(&words);
        command.envs(self.clock.iter().cloned()).env("GROUP", self.group_file());
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        self.running = Some(command.spawn()?);
        Ok(())
    }

    /// Waits until it answers.
    pub(super) fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let what = format!("{} to answer", self.part.name());
        let seen = wait::until(&what, PATIENCE, || {
            let has_ended = self.running.as_mut().context("it was not started")?.try_wait()?.is_some();
            let is_ready = self.said()?.contains(self.part.says_when_ready(self.with_engine));
            Ok((has_ended || is_ready).then_some(is_ready && !has_ended))
        });
        match seen.with_context(|| self.said_last())? {
            true => Ok(()),
            false => bail!("{} has ended: {}", self.part.name(), self.said_last()),
        }
    }

    /// Ends it at once.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        drop(running.stdin.take());
        let what = format!("{} to end", self.part.name());
        wait::until(&what, Duration::from_secs(20), || Ok(running.try_wait()?.map(drop)))
    }

    /// Whether its engine runs beside its API, from its next start on.
    pub(super) fn set_engine(&mut self, with_engine: bool) {
        self.with_engine = with_engine;
    }

    pub(super) fn has_engine(&self) -> bool {
        self.with_engine
    }

    pub(super) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn freeze(&self) -> anyhow::Result<()> {
        Ok(killpg(self.group()?, Signal::SIGSTOP)?)
    }

    pub(super) fn thaw(&self) -> anyhow::Result<()> {
        Ok(killpg(self.group()?, Signal::SIGCONT)?)
    }

    /// Its clock from its next start on. Sleeps and time-outs are by the same clock, which goes on at the usual pace.
    pub(super) fn pass_hours(&mut self, hours: u32) -> anyhow::Result<()> {
        self.hours += hours;
        let library = clock::library().context("libfaketime is not installed: run `make deps`")?;
        let ahead = format!("+{}h", self.hours);
        self.clock = vec![("LD_PRELOAD".into(), library.into()), ("FAKETIME".into(), ahead.into())];
        Ok(())
    }

    /// The process that answers.
    pub(super) fn process(&self) -> Option<u32> {
        self.group().ok()?.as_raw().try_into().ok()
    }

    /// All that it said since its last start.
    pub(super) fn said(&self) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(self.log())?).into_owned())
    }

    /// The end of it.
    pub(super) fn said_last(&self) -> String {
        let said = self.said().unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }

    fn group(&self) -> anyhow::Result<Pid> {
        ensure!(self.running.is_some(), "{} does not run", self.part.name());
        let number = fs::read_to_string(self.group_file())?;
        Ok(Pid::from_raw(number.trim().parse().context("no number of a process group")?))
    }

    fn group_file(&self) -> PathBuf {
        self.directory.join("group")
    }

    fn log(&self) -> PathBuf {
        self.directory.join(format!("{}.log", self.launches))
    }

    fn next_log(&mut self) -> anyhow::Result<File> {
        self.launches += 1;
        Ok(File::create(self.log())?)
    }

    /// A command that finds nothing of ours in its environment.
    fn bare(&self, words: &[OsString]) -> Command {
        let (program, arguments) = words.split_first().expect("every command has a program");
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir(&self.directory);
        command.env("PATH", "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin").env("LANG", "C.UTF-8");
        command.env("HOME", &self.directory).env("PYTHONDONTWRITEBYTECODE", "1");
        command.envs(self.part.environment(&self.directory)).env("WANTED", &self.wanted);
        command
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A frozen one is ended too: SIGKILL waits for nothing.
        if let Err(why) = self.stop() {
            eprintln!("{why:#}");
        }
    }
}
