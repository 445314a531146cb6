//! Running the agent and checking what it left behind.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use fence_agent::call::Call;
use fence_agent::paths::Paths;
use fence_agent::report::Report;
use fence_agent::stdin;
use journal::{Journal, Role};
use marks::fencing::Fencing;
use marks::time::Timestamp;
use pacemaker::tools::Tools;
use tempfile::TempDir;

use samples::left_out::{lacks, leave_out};

/// The binary under test.
pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_fence_mark");

/// How strace follows a program without a word.
pub(crate) const QUIETLY: [&str; 4] = ["-f", "-qq", "-o", "/dev/null"];

/// What a run of the agent left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            signal: output.status.signal(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Outcome {
    /// Success, without output.
    #[track_caller]
    pub(crate) fn is_silent_success(&self) {
        assert_eq!((self.code, self.stdout.as_str(), self.stderr.as_str()), (Some(0), "", ""), "{self:?}");
    }

    /// Exit code 1, and one clear line about it.
    #[track_caller]
    pub(crate) fn is_one_line_failure(&self, needle: &str) {
        self.fails_with_one_line("fence_mark", needle);
    }

    /// The same of another agent.
    #[track_caller]
    pub(crate) fn fails_with_one_line(&self, agent: &str, needle: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.starts_with(&format!("{agent}: ")) && self.stderr.contains(needle), "{self:?}");
        assert!(!self.stderr.chars().any(|c| c.is_control() && c != '\n'), "{self:?}");
        let lower = self.stderr.to_lowercase();
        assert!(!["timeout", "timed out", "panicked"].iter().any(|word| lower.contains(word)), "{self:?}");
    }
}

/// The agent outside of a fencer, without arguments.
pub(crate) fn agent() -> Command {
    let mut command = Command::new(AGENT);
    command.env_remove("PCMK_service");
    command
}

/// Starts a command with `stdin` as its whole standard input.
pub(crate) fn start(mut command: Command, stdin: &[u8]) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    // Some tests are about a program that does not read it to the end.
    let _refused = child.stdin.take().expect("a pipe was asked for").write_all(stdin);
    child
}

/// Runs a command with `stdin` as its whole standard input.
pub(crate) fn run(command: Command, stdin: &[u8]) -> Outcome {
    start(command, stdin).wait_with_output().expect("the program can be waited for").into()
}

/// Runs the agent as the fencer would, but outside of one.
pub(crate) fn call(stdin: &str) -> Outcome {
    run(agent(), stdin.as_bytes())
}

/// Runs the agent with arguments; standard input is closed.
pub(crate) fn call_with<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Outcome {
    let mut command = agent();
    command.args(args).stdin(Stdio::null());
    command.output().expect("the program can be started").into()
}

/// A place for a journal.
pub(crate) struct Store {
    pub(crate) dir: TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// The same where files can be put over those of the system; otherwise the test is left out, or fails.
    #[track_caller]
    pub(crate) fn apart() -> Option<Self> {
        have_namespaces().then(Self::new)
    }

    /// The same with a fencing, where system calls can be made to fail.
    #[track_caller]
    pub(crate) fn traced() -> Option<Self> {
        have_injection().then(Self::filled)
    }

    /// The journal. Its directory does not exist yet.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("journal/marks.db")
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    /// A controller's files and tools, all beside the journal.
    pub(crate) fn paths(&self) -> Paths {
        let at = |name: &str| self.dir.path().join(name);
        let tools = Tools {
            attrd_updater: at("attrd_updater"),
            cibadmin: at("cibadmin"),
            crm_node: at("crm_node"),
            stonith_admin: at("stonith_admin"),
        };
        Paths {
            config: at("alerter.toml"),
            corosync: at("corosync.conf"),
            tools,
            cib: at("cib.xml"),
            cluster_key: at("authkey"),
            lock: at("lock"),
            syslog: at("log"),
            program: AGENT.into(),
        }
    }

    /// Input for `off` with this journal.
    pub(crate) fn off(&self, more: &str) -> String {
        format!("action=off\n{}{more}\n", self.place())
    }

    /// Input for another action with this journal.
    pub(crate) fn input(&self, action: &str) -> String {
        format!("action={action}\n{}", self.place())
    }

    /// Input for this journal alone, which no site names.
    pub(crate) fn place(&self) -> String {
        format!("register=none\nstore={}\ncreate_store=1\n", self.path().display())
    }

    /// What is in the journal; nothing where there is none.
    pub(crate) fn fencings(&self) -> Vec<Fencing> {
        fencings(&self.path())
    }

    /// Marks a host, so that there is a journal.
    pub(crate) fn filled() -> Self {
        let store = Self::new();
        call(&store.off("nodename=first")).is_silent_success();
        store
    }
}

/// A call that begins now.
pub(crate) fn call_of(paths: &Paths, from_fencer: bool, input: &str) -> Call {
    Call {
        asked_at: Timestamp::now(),
        started: Instant::now(),
        from_fencer,
        given: stdin::parse(input.as_bytes()).unwrap(),
        paths: paths.clone(),
        report: Report::new(paths.syslog.clone(), true, false),
    }
}

pub(crate) fn fencings(path: &Path) -> Vec<Fencing> {
    if !path.exists() {
        return Vec::new();
    }
    let rows = Journal::open(path, Role::Reader).unwrap().unfolded_fencings().unwrap();
    assert!(rows.damaged.is_empty(), "{:?}", rows.damaged);
    rows.sound
}

/// True if all files exist; otherwise the test is left out, or fails.
#[track_caller]
pub(crate) fn have_files(files: &[&str]) -> bool {
    let missing = files.iter().find(|file| !Path::new(file).exists());
    if let Some(file) = missing {
        leave_out(&format!("{file} is not installed"));
    }
    missing.is_none()
}

/// True if private mounts are possible; otherwise the test is left out, or fails.
#[track_caller]
pub(crate) fn have_namespaces() -> bool {
    if lacks(&["unshare", "mount"]) {
        return false;
    }
    let status = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    let possible = status.is_ok_and(|output| output.status.success());
    if !possible {
        leave_out("private mounts are not possible here (root is needed)");
    }
    possible
}

/// True if system calls can be made to fail; otherwise the test is left out, or fails.
#[track_caller]
pub(crate) fn have_injection() -> bool {
    if lacks(&["strace", "true"]) {
        return false;
    }
    let output =
        Command::new("strace").args(["-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"]).output();
    let possible = output.is_ok_and(|output| output.status.success());
    if !possible {
        leave_out("strace may not trace here");
    }
    possible
}

/// Files over those of the system, for one process and its children alone.
pub(crate) struct World {
    root: TempDir,
    mounts: String,
}

/// Directories of the system that a [`World`] can put files over.
const COVERED: [&str; 3] = ["etc", "usr/sbin", "var/lib"];

impl World {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), mounts: String::new() }
    }

    /// Puts a file over the system's.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>, mode: u32) -> &Self {
        use std::os::unix::fs::PermissionsExt;
        let file = self.root.path().join(path.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        if mode & 0o111 != 0 {
            samples::program(&file, content.as_ref());
        } else {
            std::fs::write(&file, content).unwrap();
        }
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Mounts more, by a line of shell.
    pub(crate) fn mount(&mut self, line: &str) -> &mut Self {
        self.mounts.push_str(line);
        self.mounts.push('\n');
        self
    }

    /// A shell in this world that becomes `program`.
    pub(crate) fn command(&self, program: &str) -> Command {
        let root = self.root.path().display();
        let covered = COVERED.iter().filter(|top| self.root.path().join(top).exists());
        let overlays: String = covered
            .map(|top| format!("mount -t overlay overlay -o lowerdir={root}/{top}:/{top} /{top}\n"))
            .collect();
        let script = format!("set -e\n{overlays}{}exec {program} \"$@\"", self.mounts);
        let mut command = Command::new("unshare");
        command
            .args(["-m", "--propagation", "private", "sh", "-c", &script, "sh"])
            .env_remove("PCMK_service");
        command
    }
}
