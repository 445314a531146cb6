//! One server as a child process: started, stopped, frozen, and ended with its owner.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use anyhow::{Context as _, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::lab::behind;

/// One server.
pub(super) struct Server {
    name: &'static str,
    entrance: Vec<OsString>,
    words: Vec<OsString>,
    log: PathBuf,
    running: Option<Child>,
}

impl Server {
    /// It does not run yet. The first word is its program; `entrance` leads to where it runs.
    pub(super) fn new(
        name: &'static str,
        log: PathBuf,
        entrance: Vec<OsString>,
        words: Vec<OsString>,
    ) -> Self {
        Self { name, entrance, words, log, running: None }
    }

    pub(super) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn launch(&mut self) -> anyhow::Result<()> {
        ensure!(self.running.is_none(), "{} runs already", self.name);
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        // Whatever becomes of the test, no server outlives it.
        let mut command = behind(&self.entrance, "setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(&self.words);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.running = Some(command.process_group(0).spawn()?);
        Ok(())
    }

    /// Fails if it has ended by itself.
    pub(super) fn must_live(&mut self) -> anyhow::Result<()> {
        let running = self.running.as_mut().with_context(|| format!("{} does not run", self.name))?;
        let ended = running.try_wait()?;
        ensure!(ended.is_none(), "{} has ended: {}", self.name, self.said_last());
        Ok(())
    }

    pub(super) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let running = self.running.as_ref().with_context(|| format!("{} does not run", self.name))?;
        Ok(killpg(Pid::from_raw(running.id().cast_signed()), signal)?)
    }

    /// Ends it at once, also where it is frozen.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        let _already_gone = killpg(Pid::from_raw(running.id().cast_signed()), Signal::SIGKILL);
        running.wait()?;
        Ok(())
    }

    /// The end of its log.
    pub(super) fn said_last(&self) -> String {
        let said = String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        format!("{} said last:\n{}\n", self.name, lines[lines.len().saturating_sub(8)..].join("\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(why) = self.kill() {
            eprintln!("{}: {why:#}", self.name);
        }
    }
}
