//! What commands read and ask: configuration, journal, register, and the daemon of this controller.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use journal::{Done, Holder, Journal, JournalError, Lock, Role};
use marks::register::Register;
use nix::unistd::geteuid;
use register::Access;
use site::Site;

use super::answer::say;
use super::aside;
use super::merged::{Found, Records, RegisterView};
use super::report::{self, MarkReport};
use crate::base::controller;
use crate::cli::Cli;
use crate::config;
use crate::control::client;

/// Where journal and register are. Nothing else of the configuration is read: a typo elsewhere in it must not stop an
/// operator who only reads.
pub(super) fn site(cli: &Cli) -> Site {
    let (site, warnings) = Site::read(&cli.config);
    for warning in warnings {
        say(&format!("nova-host-alerter: {warning}\n"), &mut std::io::stderr());
    }
    site
}

pub(super) fn journal_path(cli: &Cli) -> PathBuf {
    site(cli).store
}

/// As the fence agent reads it: an unknown word is the default.
pub(super) fn register_of(site: &Site) -> Register {
    site.register.as_deref().and_then(Register::parse).unwrap_or_default()
}

/// How the register is reached, with its keys, as far as this user may read them.
pub(super) fn access(cli: &Cli, site: &Site) -> Access {
    let (keys, _) = site::keys_beside(&cli.config);
    Access { keys, ..Access::to(register_of(site), site.etcd.clone()) }
}

/// What `list` and `show` read.
pub(super) struct Sources {
    /// None where nothing was marked on this controller yet.
    pub(super) journal: Option<Journal>,
    pub(super) register: RegisterView,
    /// This controller.
    pub(super) controller: String,
    pub(super) site: Site,
    /// Whether a daemon runs here; else what its policy held is of the time when one did.
    pub(super) is_daemon_here: bool,
}

impl Sources {
    /// Without a journal the register will do; with neither there is nothing to say.
    pub(super) fn open(cli: &Cli) -> anyhow::Result<Self> {
        let site = site(cli);
        let register = RegisterView::take(&access(cli, &site));
        say_fault(&register);
        let journal = match open(cli, &site.store) {
            Err(JournalError::Missing { .. }) if register.entries().is_some() => None,
            Err(error @ JournalError::Hung { .. }) if register.entries().is_some() => {
                say(&format!("nova-host-alerter: the register alone: {error}\n"), &mut std::io::stderr());
                None
            }
            opened => Some(opened.map_err(unread)?),
        };
        let is_daemon_here = matches!(holder(cli, &site.store), Ok(Some(_)));
        Ok(Self { journal, register, controller: controller(), site, is_daemon_here })
    }

    pub(super) fn records(&self) -> Records<'_> {
        Records { journal: self.journal.as_ref(), register: &self.register }
    }

    /// The reports of marks that were found.
    pub(super) fn report(&self, found: &Found) -> Done<MarkReport> {
        let mut report = report::report(self.records(), found)?;
        report.as_of_last_run = !self.is_daemon_here;
        Ok(report)
    }
}

/// Why the answer is this controller's alone.
fn say_fault(register: &RegisterView) {
    if let Some(fault) = register.fault() {
        say(&format!("nova-host-alerter: {}: {fault}\n", register.view()), &mut std::io::stderr());
    }
}

pub(super) fn reader(cli: &Cli) -> anyhow::Result<Journal> {
    open(cli, &journal_path(cli)).map_err(unread)
}

/// Why the journal cannot be read, with what somebody else than root can do.
fn unread(error: JournalError) -> anyhow::Error {
    let may = geteuid().is_root() || matches!(error, JournalError::Missing { .. });
    let root = if may { "" } else { "; run this as root" };
    anyhow::Error::from(error).context(format!("the journal cannot be read{root}"))
}

/// Opens the journal, unless its disk hangs.
pub(super) fn open(cli: &Cli, path: &Path) -> Done<Journal> {
    touch(cli, path)?;
    aside::take_turn(path);
    Journal::open(path, Role::Reader)
}

/// The process that has the journal's lock.
pub(super) fn holder(cli: &Cli, path: &Path) -> Done<Option<Holder>> {
    touch(cli, path)?;
    aside::take_turn(path);
    Lock::holder(path)
}

/// Whether anything may be touched at the journal.
pub(super) fn touch(cli: &Cli, path: &Path) -> Done {
    if cli.hangs { Err(JournalError::Hung { path: path.to_owned() }) } else { Ok(()) }
}

pub(super) fn control(cli: &Cli) -> client::Daemon {
    patient_control(cli, Duration::ZERO)
}

/// The same for an answer that takes so much longer.
pub(super) fn patient_control(cli: &Cli, longer: Duration) -> client::Daemon {
    let (socket, patience) =
        (config::control_socket(&journal_path(cli)), client::PATIENCE.saturating_add(longer));
    client::Daemon::patient(&socket, &operator(), patience)
}

/// The person behind sudo, where there is one.
fn operator() -> String {
    let behind_sudo = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty());
    let uid = nix::unistd::getuid();
    let name = || nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    behind_sudo.or_else(name).unwrap_or_else(|| format!("uid {uid}"))
}

pub(super) fn wait_for<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime did not start")?;
    Ok(runtime.block_on(work))
}
