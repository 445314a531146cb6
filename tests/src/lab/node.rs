//! One node as the host sees it: boot, power cut, freeze, and running commands inside.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::hub::{Hub, processes_beside};
use super::plan::{Kind, NodePlan};

/// The only environment that anything in a node starts with.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) struct Node {
    plan: NodePlan,
    lab: PathBuf,
    running: Option<Running>,
}

/// What keeps a node that has power from taking part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Trouble {
    frozen: bool,
    cut_off: bool,
}

struct Running {
    /// `unshare`, the parent of PID 1; its pipe is the node's lifeline.
    shell: Child,
    pid1: i32,
    trouble: Trouble,
}

/// How a command in a node ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code, or -1 for a signal.
    pub rc: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ended {
    /// The standard output of a command that had to succeed.
    ///
    /// # Errors
    /// When it did not, with what it said.
    pub fn success(self) -> anyhow::Result<String> {
        ensure!(self.rc == 0, "exit {}: {} {}", self.rc, self.out.trim(), self.err.trim());
        Ok(self.out)
    }
}

impl Node {
    pub(super) fn new(plan: NodePlan, lab: &Path) -> Self {
        Self { plan, lab: lab.to_owned(), running: None }
    }

    pub(super) fn is_on(&self) -> bool {
        self.running.is_some()
    }

    /// Whether it has power, is not frozen and not cut off.
    pub(super) fn is_well(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.trouble == Trouble::default())
    }

    pub(super) fn power_on(&mut self, hub: &Hub) -> anyhow::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        let mut running = self.start().with_context(|| format!("starting {}", self.plan.name))?;
        let plugged = hub.plug(&self.plan, running.pid1).and_then(|()| running.say("net"));
        self.running = Some(running);
        plugged.with_context(|| format!("booting {}; its console: {}", self.plan.name, self.console()))
    }

    fn start(&self) -> anyhow::Result<Running> {
        let mut shell = Command::new("unshare")
            .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child"])
            .args(["--propagation", "private", "--"])
            .arg(std::env::current_exe()?)
            .args([super::parts::NODE, &self.plan.name, &self.plan.address().to_string(), self.kind()])
            .arg(&self.lab)
            .env_clear()
            .env("PATH", PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(OpenOptions::new().create(true).append(true).open(self.console_path())?)
            .spawn()?;
        let pid1 = read_pid(&mut shell);
        if pid1.is_err() {
            let _ = shell.kill();
            let _ = shell.wait();
        }
        let pid1 = pid1.with_context(|| format!("its console: {}", self.console()))?;
        Ok(Running { shell, pid1, trouble: Trouble::default() })
    }

    fn kind(&self) -> &'static str {
        match self.plan.kind {
            Kind::Controller => super::parts::CONTROLLER,
            Kind::Remote => super::parts::REMOTE,
        }
    }

    fn console_path(&self) -> PathBuf {
        self.lab.join("nodes").join(&self.plan.name).join("console.log")
    }

    fn console(&self) -> String {
        std::fs::read_to_string(self.console_path()).unwrap_or_default()
    }

    /// The cable goes first: no FIN or RST of the dying processes may leak out.
    pub(super) fn power_off(&mut self, hub: &Hub) {
        if let Some(running) = self.running.take() {
            let _ = hub.unplug(&self.plan);
            drop(running);
        }
    }

    pub(super) fn freeze(&mut self) -> anyhow::Result<()> {
        let running = self.running_mut()?;
        running.trouble.frozen = true;
        let pid1 = running.pid1;
        let mut stopped = 0;
        // A process may fork while the others are being stopped: repeat until no new one appears.
        loop {
            let all = processes_beside(pid1)?;
            for pid in &all {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGSTOP);
            }
            if all.len() == stopped {
                return Ok(());
            }
            stopped = all.len();
        }
    }

    pub(super) fn thaw(&mut self) -> anyhow::Result<()> {
        let running = self.running_mut()?;
        for pid in processes_beside(running.pid1)? {
            let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
        }
        running.trouble.frozen = false;
        Ok(())
    }

    pub(super) fn partition(&mut self, hub: &Hub, cut: bool) -> anyhow::Result<()> {
        self.running_mut()?.trouble.cut_off = cut;
        if cut { hub.leave(&self.plan) } else { hub.join(&self.plan) }
    }

    /// The processes whose command line begins with `words`; the program's directory does not count.
    pub(super) fn processes(&self, words: &[&str]) -> anyhow::Result<Vec<i32>> {
        let all = processes_beside(self.running()?.pid1)?;
        Ok(all.into_iter().filter(|pid| runs(*pid, words)).collect())
    }

    /// The command that runs `command` inside; made here, waited for without holding the node.
    pub(super) fn entering(&self, command: &[&str]) -> anyhow::Result<Command> {
        let pid1 = self.running()?.pid1.to_string();
        let mut enter = Command::new("nsenter");
        enter
            .args(["-t", &pid1, "-m", "-u", "-i", "-n", "-p", "--"])
            .args(command)
            .env_clear()
            .envs([("PATH", PATH), ("HOME", "/root"), ("LC_ALL", "C.UTF-8")])
            .envs(super::disk::clock_of(&self.lab, &self.plan.name))
            .stdin(Stdio::null());
        Ok(enter)
    }

    fn running_mut(&mut self) -> anyhow::Result<&mut Running> {
        self.running.as_mut().with_context(|| format!("{} is off", self.plan.name))
    }

    fn running(&self) -> anyhow::Result<&Running> {
        self.running.as_ref().with_context(|| format!("{} is off", self.plan.name))
    }
}

impl Running {
    fn say(&mut self, word: &str) -> anyhow::Result<()> {
        let pipe = self.shell.stdin.as_mut().context("no pipe to PID 1")?;
        Ok(writeln!(pipe, "{word}")?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If PID 1 has ended by itself, another process may have its number by now.
        if matches!(self.shell.try_wait(), Ok(None)) {
            let _ = kill(Pid::from_raw(self.pid1), Signal::SIGKILL);
        }
        let _ = self.shell.wait();
    }
}

fn runs(pid: i32, words: &[&str]) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let own: Vec<&str> = line.split('\0').collect();
    let program = own.first().and_then(|path| path.rsplit('/').next());
    program == words.first().copied() && own.get(1..words.len()) == words.get(1..)
}

fn read_pid(shell: &mut Child) -> anyhow::Result<i32> {
    let mut line = String::new();
    BufReader::new(shell.stdout.as_mut().context("no pipe from PID 1")?).read_line(&mut line)?;
    match line.trim().strip_prefix("pid ").map(str::parse) {
        Some(Ok(pid)) => Ok(pid),
        _ => bail!("PID 1 ended before it said who it is"),
    }
}

/// Waits for a command that [`Node::entering`] made.
pub(super) fn ended(mut command: Command) -> anyhow::Result<Ended> {
    let said = command.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ended { rc: said.status.code().unwrap_or(-1), out: text(&said.stdout), err: text(&said.stderr) })
}

/// Opens a file for the log of a daemon.
pub(super) fn log_file(path: &str) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
