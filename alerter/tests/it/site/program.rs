//! The built daemon in a process of its own, without a cluster: what an operator with a shell sees of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use alerter::control::client::{Daemon, PATIENCE};
use alerter::moment;
use journal::{Journal, Role};
use marks::fencing::Fencing;
use marks::id::{MarkId, NoteId};
use marks::register::{About, Decision, Scope};
use marks::time::{Boot, Timestamp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::check_config::{alerter, text};
use crate::config;

/// Longer than anything takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// An address where nobody listens.
pub(crate) const NOBODY: &str = "http://127.0.0.1:9/";

/// The daemon, and the directory that it lives in.
pub(crate) struct Program {
    pub(crate) files: config::Site,
    running: Option<Child>,
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            let _is_gone = running.kill();
            let _is_gone = running.wait();
        }
    }
}

impl Program {
    /// One that runs with this configuration.
    pub(crate) async fn with(text: &str) -> Self {
        let mut program = Self::unstarted(text);
        program.start().await;
        program
    }

    /// One that never ran.
    pub(crate) fn unstarted(text: &str) -> Self {
        let program = Self { files: config::Site::new(""), running: None };
        program.configure(text);
        program
    }

    /// Writes another configuration, which says what every mark needs.
    pub(crate) fn configure(&self, text: &str) {
        let head = format!("[store]\npath = \"{}\"\nregister = \"none\"\n", self.journal().display());
        let text = format!("{head}[hosts]\ndomain = \"x.y\"\non-shared-storage = true\n{text}");
        std::fs::write(self.main(), text).unwrap();
    }

    fn main(&self) -> PathBuf {
        self.files.path("alerter.toml")
    }

    fn journal(&self) -> PathBuf {
        self.files.path("state/marks.db")
    }

    /// A daemon ran here while the clock was so far ahead, and was told to pause for so long.
    pub(crate) fn was_paused(&self, lasting: Duration, ahead: Duration) {
        let mut journal = Journal::open(&self.journal(), Role::Alerter).unwrap();
        let (boot, at) = (moment::boot(), Timestamp::now() + ahead);
        journal.mind_the_clock(&Boot { began: boot.began + ahead, ..boot }, at).unwrap();
        let about = About::Pause { scope: Scope::All, until: Some(at + lasting) };
        let (id, actor, reason) = (NoteId::generate(), "alice".to_owned(), "a new switch".to_owned());
        assert!(journal.decide(&Decision { id, about, at, actor, reason }).unwrap());
    }

    /// Starts it, and waits until it answers.
    pub(crate) async fn start(&mut self) {
        assert!(self.running.is_none());
        let mut command = Command::new(env!("CARGO_BIN_EXE_nova-host-alerter"));
        command.arg("run").arg("--config").arg(self.main()).stderr(Stdio::null());
        self.running = Some(command.spawn().unwrap());
        let socket = self.files.path("state/control.sock");
        self.wait(async || UnixStream::connect(&socket).await.is_ok()).await;
    }

    /// Stops it as Pacemaker does.
    pub(crate) fn stop(&mut self) {
        let mut running = self.running.take().unwrap();
        kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert!(running.wait().unwrap().success());
    }

    /// `fence_mark` has recorded a fencing of the host.
    pub(crate) fn fence(&self, host: &str) -> MarkId {
        self.record(&samples::fencing(host, Timestamp::now()))
    }

    /// The same of this fencing.
    pub(crate) fn record(&self, fencing: &Fencing) -> MarkId {
        Journal::open(&self.journal(), Role::Agent).unwrap().append_fencing(fencing).unwrap();
        fencing.id.into()
    }

    /// What a command prints.
    pub(crate) async fn say(&self, words: &[&str]) -> String {
        let (file, words) = (self.main(), words.iter().map(ToString::to_string).collect::<Vec<_>>());
        let run = move || alerter(&file, &words.iter().map(String::as_str).collect::<Vec<_>>());
        text(&spawn_blocking(run).await.unwrap().stdout)
    }

    /// The same in JSON.
    pub(crate) async fn ask(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.say(&[words, &["--json"]].concat()).await).unwrap()
    }

    /// A mark as `list` shows it; null where there is none.
    pub(crate) async fn mark(&self, mark: MarkId) -> Value {
        let all = self.ask(&["list", "--all"]).await;
        let found = all.as_array().unwrap().iter().find(|one| one["id"] == mark.to_string());
        found.cloned().unwrap_or_default()
    }

    /// The states of a mark's deliveries, in the order of their routes: `ROUTE STATE`.
    pub(crate) async fn deliveries(&self, mark: MarkId) -> Vec<String> {
        deliveries(&self.mark(mark).await)
    }

    /// Waits until a delivery stands so: `ROUTE STATE`.
    pub(crate) async fn until(&self, mark: MarkId, delivery: &str) {
        self.wait(async || self.deliveries(mark).await.iter().any(|one| one == delivery)).await;
    }

    /// Waits for what only asking again shows.
    pub(crate) async fn wait(&self, is_so: impl AsyncFn() -> bool) {
        let waiting = async {
            while !is_so().await {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, waiting).await.unwrap();
    }

    /// What it says of itself over the control socket.
    pub(crate) async fn status(&self) -> Value {
        self.socket().get("/v1/status").await
    }

    /// The same of one route.
    pub(crate) async fn route(&self, name: &str) -> Value {
        let status = self.status().await;
        status["routes"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone()
    }

    pub(crate) fn socket(&self) -> Socket {
        Socket::at(&self.files.path("state/control.sock"))
    }

    /// Writes another configuration and has it read.
    pub(crate) async fn reload(&self, text: &str) -> Value {
        self.configure(text);
        self.socket().post("/v1/reload", json!({ "reason": "tests" })).await.unwrap()
    }
}

/// The states of the deliveries of a line of `list`.
pub(crate) fn deliveries(mark: &Value) -> Vec<String> {
    let each = |one: &Value| format!("{} {}", one["route"].as_str().unwrap(), one["state"].as_str().unwrap());
    mark["deliveries"].as_array().into_iter().flatten().map(each).collect()
}

/// The control socket, as a command of alice finds it. What is refused is given by its word.
pub(crate) struct Socket(Daemon);

impl Socket {
    pub(crate) fn at(path: &Path) -> Self {
        Self(Daemon::patient(path, "alice", PATIENCE))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.0.get(path).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Value, String> {
        self.0.post(path, &body).await.map_err(|error| error.kind().to_owned())
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Result<Value, String> {
        self.0.patch(path, &body).await.map_err(|error| error.kind().to_owned())
    }

    /// Whether the daemon has answered that the register may not have it.
    pub(crate) fn has_accepted_alone(&self) -> bool {
        self.0.has_accepted_alone()
    }
}
