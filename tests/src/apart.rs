//! Mounts that only some programs see: a mount namespace of its own, which one waiting process keeps.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::process::Bound;

/// A mount namespace that ends with this value, and with the process that has it.
pub struct Apart {
    /// The names of its namespaces.
    kinds: &'static [&'static str],
    /// It ends by itself at the end of its input, which only we have.
    keeper: Bound,
}

impl Apart {
    /// Makes one by a shell script of mounts, which gets these paths as `$1`, `$2`, ….
    ///
    /// # Errors
    /// Not root, or the script fails.
    pub fn new(script: &str, paths: &[&Path]) -> anyhow::Result<Self> {
        Self::of(&["mnt"], &["--mount"], script, paths)
    }

    /// The same with a network of its own, which has nothing but its loopback.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_network(script: &str, paths: &[&Path]) -> anyhow::Result<Self> {
        Self::of(&["mnt", "net"], &["--mount", "--net"], script, paths)
    }

    fn of(
        kinds: &'static [&'static str],
        options: &[&str],
        script: &str,
        paths: &[&Path],
    ) -> anyhow::Result<Self> {
        let whole = format!("{script}\necho ready\nexec cat");
        let mut command = Command::new("unshare");
        command.args(options).args(["--propagation", "private", "--", "sh", "-ec", &whole, "sh"]).args(paths);
        let mut keeper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("unshare")?;
        let mut said = BufReader::new(keeper.stdout.take().context("no pipe from the keeper of mounts")?);
        let (apart, mut line) = (Self { kinds, keeper: Bound(keeper) }, String::new());
        said.read_line(&mut line)?;
        ensure!(line == "ready\n", "private mounts cannot be made here");
        Ok(apart)
    }

    /// The words before a command that is to see these mounts.
    #[must_use]
    pub fn entering(&self) -> Vec<String> {
        let option = |kind: &&'static str| {
            let name = if *kind == "mnt" { "mount" } else { kind };
            format!("--{name}=/proc/{}/ns/{kind}", self.keeper.id())
        };
        let options = self.kinds.iter().map(option);
        ["nsenter".to_owned()].into_iter().chain(options).chain(["--".to_owned()]).collect()
    }

    /// The path from outside of what is at `path` inside.
    #[must_use]
    pub fn outside(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.keeper.id(), path.display()))
    }

    /// Its network, if it has one of its own.
    #[must_use]
    pub fn outside_network(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.keeper.id()))
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
