//! Mounts that only some programs see: a mount namespace of its own, which one waiting process keeps.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};

/// A mount namespace that ends with this value, and with the process that has it.
pub struct Apart {
    /// It ends by itself at the end of its input, which only we have.
    keeper: Child,
}

impl Apart {
    /// Makes one by a shell script of mounts, which gets these paths as `$1`, `$2`, ….
    ///
    /// # Errors
    /// Not root, or the script fails.
    pub fn new(script: &str, paths: &[&Path]) -> anyhow::Result<Self> {
        let whole = format!("{script}\necho ready\nexec cat");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "sh", "-ec", &whole, "sh"]).args(paths);
        let mut keeper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("unshare")?;
        let mut said = BufReader::new(keeper.stdout.take().context("no pipe from the keeper of mounts")?);
        let (apart, mut line) = (Self { keeper }, String::new());
        said.read_line(&mut line)?;
        ensure!(line == "ready\n", "private mounts cannot be made here");
        Ok(apart)
    }

    /// The words before a command that is to see these mounts.
    #[must_use]
    pub fn entering(&self) -> Vec<String> {
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.keeper.id());
        ["nsenter", &namespace, "--"].map(str::to_owned).into()
    }

    /// The path from outside of what is at `path` inside.
    #[must_use]
    pub fn outside(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.keeper.id(), path.display()))
    }

    /// A command that sees them.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let words = self.entering();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(program);
        command
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _already_gone = self.keeper.kill();
        let _reaped = self.keeper.wait();
    }
}
