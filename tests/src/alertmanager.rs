//! A real Alertmanager, on loopback or in somebody's network; it ends with the value.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::lab::wait;
use crate::receiver::own_loopback;

const PROGRAM: &str = "prometheus-alertmanager";
/// For a start, and for what it does at once.
const LIMIT: Duration = Duration::from_secs(30);

/// The process, and its files.
pub struct Alertmanager {
    room: TempDir,
    address: SocketAddr,
    /// A command that runs what follows it where the address is.
    enter: Vec<OsString>,
    running: Option<Child>,
}

impl Alertmanager {
    /// A running one on loopback that notifies nobody.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn begin() -> anyhow::Result<Self> {
        Self::inside(own_loopback().into(), Vec::new())
    }

    /// The same at an address in somebody's network; `enter` is a command that runs what follows it there, such as
    /// `nsenter --net=FILE --`.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn inside(address: IpAddr, enter: Vec<OsString>) -> anyhow::Result<Self> {
        let room = TempDir::new()?;
        fs::write(
            room.path().join("config.yml"),
            "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n",
        )?;
        let address = SocketAddr::new(address, 9093);
        let mut alertmanager = Self { room, address, enter, running: None };
        alertmanager.start()?;
        Ok(alertmanager)
    }

    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// It does not answer as it should.
    pub fn start(&mut self) -> anyhow::Result<()> {
        let path = |name: &str| self.room.path().join(name);
        let log = OpenOptions::new().create(true).append(true).open(path("log"))?;
        // Whatever becomes of the test, it does not outlive it.
        let mut command = self.command("setpriv");
        command.args(["--pdeathsig", "KILL", PROGRAM, "--cluster.listen-address="]);
        command.arg(format!("--config.file={}", path("config.yml").display()));
        command.arg(format!("--storage.path={}", path("data").display()));
        command.arg(format!("--web.listen-address={}", self.address));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.running = Some(command.spawn().context("setpriv")?);
        wait::until("Alertmanager, of Debian's prometheus-alertmanager (`make deps`)", LIMIT, || {
            Ok(self.get("/-/ready").is_ok().then_some(()))
        })
    }

    /// A program where the address is.
    fn command(&self, program: &str) -> Command {
        let Some((first, rest)) = self.enter.split_first() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }

    /// Kills it: all that it has in memory is lost.
    ///
    /// # Errors
    /// It does not answer as it should.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        let mut running = self.running.take().context("it does not run")?;
        running.kill()?;
        running.wait()?;
        Ok(())
    }

    /// The route to it, as in the configuration.
    pub fn route(&self) -> String {
        format!(
            "[http.alerts]\nurl = \"http://{}/api/v2/alerts\"\nallow-http = true\nbody = \"alertmanager\"\nwhen-returned = \"notify\"\n",
            self.address
        )
    }

    /// The alerts of a host that fire.
    ///
    /// # Errors
    /// It does not answer as it should.
    pub fn firing(&self, host: &str) -> anyhow::Result<Vec<Value>> {
        let text = self.get("/api/v2/alerts?active=true&silenced=false&inhibited=false")?;
        let alerts: Vec<Value> = serde_json::from_str(&text)?;
        Ok(alerts.into_iter().filter(|alert| alert["labels"]["host"] == host).collect())
    }

    /// Waits until so many alerts of a host fire.
    ///
    /// # Errors
    /// It does not answer as it should.
    pub fn until_firing(&self, host: &str, count: usize, limit: Duration) -> anyhow::Result<Vec<Value>> {
        let fire = || Ok(Some(self.firing(host)?).filter(|alerts| alerts.len() == count));
        wait::until(&format!("{count} alert(s) of {host}"), limit, fire)
    }

    /// What its own tool says of the alerts that fire.
    ///
    /// # Errors
    /// It does not answer as it should.
    pub fn amtool(&self) -> anyhow::Result<String> {
        let url = format!("--alertmanager.url=http://{}", self.address);
        let ran = self.command("amtool").args([&url, "alert", "query", "--output=extended"]).output()?;
        ensure!(ran.status.success(), "amtool: {}", String::from_utf8_lossy(&ran.stderr));
        Ok(String::from_utf8(ran.stdout)?)
    }

    fn get(&self, path: &str) -> anyhow::Result<String> {
        let mut curl = self.command("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "5", "--noproxy", "*"]);
        let ran = curl.arg(format!("http://{}{path}", self.address)).output()?;
        ensure!(ran.status.success(), "{path}: {}", String::from_utf8_lossy(&ran.stderr));
        Ok(String::from_utf8(ran.stdout)?)
    }

    /// The end of its log.
    pub fn explain(&self) -> String {
        let log = fs::read_to_string(self.room.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _it_does_not_run = self.kill();
    }
}
