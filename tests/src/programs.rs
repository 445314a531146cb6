//! The built programs and a daemon of one's own, for the demo, the benchmarks and the tests of the whole path.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use marks::time::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::apart::Apart;
use crate::process::Bound;

/// What `status --ocf` exits with while the daemon answers.
const RUNNING: i32 = 0;
const DEGRADED: i32 = 190;

/// A program built beside the running one: `target/PROFILE/NAME`, from a test `target/PROFILE/deps/…` too. `NHA_BUILT` is another directory.
///
/// # Errors
/// It is not built.
pub fn built(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("this program has no path")?;
    let beside = own.ancestors().skip(1).take(2).map(Path::to_path_buf);
    let found = match std::env::var_os("NHA_BUILT") {
        Some(directory) => Some(Path::new(&directory).join(name)).filter(|path| path.is_file()),
        None => beside.map(|directory| directory.join(name)).find(|path| path.is_file()),
    };
    found.with_context(|| format!("{name} is not built beside this program: run `make build`"))
}

/// A time in the commands' JSON as milliseconds since the epoch.
#[must_use]
pub fn millis(time: &Value) -> Option<i64> {
    serde_json::from_value::<Timestamp>(time.clone()).ok().map(|at| at.0)
}

/// A directory with a configuration, a journal, and an alerter that may be started and stopped.
pub struct Site {
    directory: PathBuf,
    /// Ends with the site.
    _own: TempDir,
    daemon: Option<Bound>,
    environment: Vec<(OsString, OsString)>,
    apart: Option<Apart>,
}

impl Site {
    /// A site with one route, to a receiver on loopback.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn new(receiver: SocketAddr) -> anyhow::Result<Self> {
        Self::with(&format!("[http.recovery]\nurl = \"http://{receiver}/v1/host-failures\"\n"))
    }

    /// A site with these tables of the configuration behind `[store]` and `[hosts]`.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn with(tables: &str) -> anyhow::Result<Self> {
        let own = tempfile::Builder::new().prefix("nova-host-alerter-").tempdir()?;
        let directory = own.path().to_owned();
        let site = Self { directory, _own: own, daemon: None, environment: Vec::new(), apart: None };
        let text = format!(
            "[store]\npath = \"{}\"\nregister = \"none\"\n\n[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n\n\
             {tables}",
            site.journal().display()
        );
        fs::write(site.config(), text)?;
        // Whatever the umask: a configuration that others may write is refused.
        fs::set_permissions(site.config(), fs::Permissions::from_mode(0o600))?;
        Ok(site)
    }

    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.directory.join("alerter.toml")
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.directory.join("state/marks.db")
    }

    /// What alerter and agent find in their environment from now on, beside the test's own.
    pub fn set_environment(&mut self, environment: Vec<(OsString, OsString)>) {
        self.environment = environment;
    }

    /// Alerter and agent see these mounts from now on, and nobody else does.
    pub fn set_apart(&mut self, apart: Apart) {
        self.apart = Some(apart);
    }

    /// The mounts that only this site's programs see, if it has any.
    #[must_use]
    pub fn apart(&self) -> Option<&Apart> {
        self.apart.as_ref()
    }

    /// One of our programs, as it is run here.
    ///
    /// # Errors
    /// It is not built.
    pub fn program(&self, name: &str) -> anyhow::Result<Command> {
        let path = built(name)?;
        Ok(self.apart.as_ref().map_or_else(|| Command::new(&path), |apart| apart.command(&path)))
    }

    /// Starts the alerter and returns when it answers.
    ///
    /// # Errors
    /// It does not answer within ten seconds.
    pub fn start(&mut self) -> anyhow::Result<u32> {
        let pid = self.launch()?;
        let limit = Instant::now() + Duration::from_secs(10);
        while !self.answers()? {
            ensure!(Instant::now() < limit, "the alerter does not answer");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(pid)
    }

    /// Starts the alerter and does not wait for it.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn launch(&mut self) -> anyhow::Result<u32> {
        let mut command = self.program("nova-host-alerter")?;
        command.arg("run").arg("--config").arg(self.config()).envs(self.environment.iter().cloned());
        let daemon = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let pid = daemon.id();
        self.daemon = Some(Bound(daemon));
        Ok(pid)
    }

    /// Whether the alerter answers on its socket: it has taken up what a former one left.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn answers(&self) -> anyhow::Result<bool> {
        let status = self.alerter(&["status", "--ocf"])?.status;
        Ok(matches!(status.code(), Some(RUNNING | DEGRADED)))
    }

    /// Ends the alerter by a signal and waits for its end.
    ///
    /// # Errors
    /// It does not run, or does not end within a minute; it is killed then.
    pub fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        let Some(mut daemon) = self.daemon.take() else { bail!("the alerter does not run") };
        kill(Pid::from_raw(daemon.id().cast_signed()), signal)?;
        let limit = Instant::now() + Duration::from_secs(60);
        while daemon.try_wait()?.is_none() {
            if Instant::now() >= limit {
                daemon.kill()?;
                daemon.wait()?;
                bail!("the alerter does not end");
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// What an operator's command prints; it has to succeed.
    ///
    /// # Errors
    /// It cannot be run, or ends otherwise.
    pub fn said(&self, words: &[&str]) -> anyhow::Result<String> {
        let ran = self.alerter(words)?;
        let complaint = String::from_utf8_lossy(&ran.stderr);
        ensure!(ran.status.success(), "{words:?}: {}: {}", ran.status, complaint.trim());
        Ok(String::from_utf8(ran.stdout)?)
    }

    /// Runs an operator's command on this site; its exit code is the caller's to check.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn alerter(&self, words: &[&str]) -> anyhow::Result<Output> {
        let mut command = self.program("nova-host-alerter")?;
        Ok(command.args(words).arg("--config").arg(self.config()).output()?)
    }

    /// Runs the real agent with what the fencer writes to it.
    ///
    /// # Errors
    /// It cannot be run, or does not mark.
    pub fn fence(&self, host: &str) -> anyhow::Result<()> {
        let mut command = self.program("fence_mark")?;
        command.envs(self.environment.iter().cloned());
        let mut agent = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stdin = agent.stdin.take().context("no pipe to the agent")?;
        stdin.write_all(self.stdin_of_the_fencer(host).as_bytes())?;
        drop(stdin);
        let ended = agent.wait_with_output()?;
        ensure!(ended.status.success(), "fence_mark: {}", String::from_utf8_lossy(&ended.stderr).trim());
        Ok(())
    }

    /// The lines that the fencer writes for `off`, where the journal of this site is, and that it has no cluster.
    #[must_use]
    pub fn stdin_of_the_fencer(&self, host: &str) -> String {
        let store = self.journal();
        format!(
            "store={}\ncreate_store=1\nregister=none\nnodename={host}\naction=off\nplug={host}\n",
            store.display()
        )
    }

    /// The directory of everything.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.daemon.take());
    }
}
