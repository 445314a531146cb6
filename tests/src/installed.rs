//! The product as a package would install it, in a private view of the file system: nothing is written to the real `/usr`.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, bail, ensure};
use samples::left_out::missing;
use tempfile::TempDir;

use crate::programs::built;

/// Lays the product over the system's directories (read-only), then becomes the command.
const ENTER: &str = r#"
    mount -t overlay -o "lowerdir=$1/sbin:/usr/sbin" overlay /usr/sbin
    mount -t overlay -o "lowerdir=$1/ocf:/usr/lib/ocf/resource.d" overlay /usr/lib/ocf/resource.d
    mount -t overlay -o "lowerdir=$1/alerts:/usr/share/pacemaker/alerts" overlay /usr/share/pacemaker/alerts
    shift
    exec "$@"
"#;

/// Where the OCF agent stands once it is installed.
pub const OCF_AGENT: &str = "/usr/lib/ocf/resource.d/openstack/nova-host-alerter";

/// Where Pacemaker runs the alert agent from.
pub const ALERT_AGENT: &str = "/usr/share/pacemaker/alerts/alert_mark";

/// What is installed in /usr/sbin.
const PROGRAMS: [&str; 2] = ["fence_mark", "nova-host-alerter"];

/// An installation that ends with this value.
pub struct Installed {
    room: TempDir,
}

impl Installed {
    /// Lays out what the packages would install.
    ///
    /// # Errors
    /// A program that was not built, or a file that cannot be written.
    pub fn new() -> anyhow::Result<Self> {
        let room = TempDir::new()?;
        let [sbin, ocf, alerts] = ["sbin", "ocf/openstack", "alerts"].map(|name| room.path().join(name));
        for directory in [&sbin, &ocf, &alerts] {
            fs::create_dir_all(directory)?;
        }
        for program in PROGRAMS {
            place(&built(program)?, &sbin.join(program))?;
        }
        place(&built("alert_mark")?, &alerts.join("alert_mark"))?;
        place(&source("ocf/nova-host-alerter"), &ocf.join("nova-host-alerter"))?;
        Ok(Self { room })
    }

    /// Calls of pcs are answered by one that is loaded once for the process.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn load_pcs(&self) -> anyhow::Result<()> {
        static LOADED: OnceLock<Result<Child, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| loaded_pcs().map_err(|error| format!("{error:#}")));
        loaded.as_ref().map_err(anyhow::Error::msg)?;
        place(&source("tests/src/pcs/ask.py"), &self.room.path().join("sbin/pcs"))
    }

    /// Exchanges the OCF agent for one that was altered on purpose.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn replace_ocf_agent(&self, text: &str) -> anyhow::Result<()> {
        let path = self.room.path().join("ocf/openstack/nova-host-alerter");
        fs::write(&path, text)?;
        Ok(fs::set_permissions(&path, Permissions::from_mode(0o755))?)
    }

    /// A command that sees the product installed.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "sh", "-ec", ENTER, "sh"]);
        command.arg(self.room.path()).arg(program).env("NHA_PCS", address_of_pcs());
        command
    }
}

/// It ends with this process, by the pipe between them.
fn loaded_pcs() -> anyhow::Result<Child> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(address_of_pcs())?)?;
    let mut python = Command::new("/usr/bin/python3");
    python.arg("-Es").arg(source("tests/src/pcs/loaded.py")).stdin(OwnedFd::from(listener));
    Ok(python.stdout(Stdio::piped()).spawn()?)
}

fn address_of_pcs() -> String {
    format!("nova-host-alerter-pcs-{}", std::process::id())
}

/// Says why this machine cannot show the product as installed, or `None` if it can.
#[must_use]
pub fn cannot(tools: &[&str]) -> Option<String> {
    check(tools).err().map(|error| format!("{error:#}"))
}

/// Says that a test needs root, or `None` for root.
#[must_use]
pub fn lacks_root() -> Option<String> {
    (!nix::unistd::geteuid().is_root()).then(|| "not root".to_owned())
}

fn check(tools: &[&str]) -> anyhow::Result<()> {
    if let Some(reason) = lacks_root() {
        bail!(reason);
    }
    if let Some(tool) = missing(tools) {
        bail!("{tool} is not installed: run `make deps`");
    }
    let trial = Installed::new()?.command("true").output().context("unshare")?;
    let complaint = String::from_utf8_lossy(&trial.stderr);
    ensure!(trial.status.success(), "no private mounts: {}", complaint.lines().next().unwrap_or("refused"));
    Ok(())
}

/// A file of the source tree.
#[must_use]
pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/")).join(path)
}

/// Copies a program to where it is run, by a process of its own: a file that is open for writing here is kept open by whatever
/// another test starts at that moment, and nobody can run it ("Text file busy").
///
/// # Errors
/// It cannot be copied.
pub fn place(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = Command::new("install").args(["-m", "755"]).arg(from).arg(to).output()?;
    ensure!(
        copied.status.success(),
        "{} cannot be installed: {}",
        from.display(),
        String::from_utf8_lossy(&copied.stderr)
    );
    Ok(())
}
