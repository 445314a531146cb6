//! The operator's commands: reading from journal and register, changing through the control socket.

mod change;
mod check;
mod decide;
mod delivery;
mod during;
mod events;
mod export;
mod filter;
mod merged;
mod near;
pub mod online;
mod origin;
pub(crate) mod progress;
mod read;
mod reload;
mod report;
mod screen;
mod setup;
mod status;
mod story;
mod terminal;
mod text;
mod trouble;
mod unmarked;
mod verdict;
mod watch;

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use journal::{Journal, JournalError, Lock, Role};
use marks::register::Register;
use pacemaker::register::Tools;
use serde::Serialize;
use site::Site;

use merged::{Found, RegisterView};
use report::MarkReport;

use crate::cli::{self, Cli, Command};
use crate::config::{self, Settings};
use crate::control::client;
use crate::{daemon, log};

/// EX_CONFIG of sysexits.
const WRONG_CONFIGURATION: u8 = 78;
/// The exit code where something cannot be done now and is done later by itself (`EX_TEMPFAIL` of sysexits).
const LATER: u8 = 75;

/// Runs one command.
///
/// # Errors
/// One sentence for the operator; the exit code is then 1.
pub fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    match &cli.command {
        Command::Run => with_settings(cli, |settings| {
            log::start(settings.log);
            // Said here, so that it reaches syslog too: under Pacemaker nobody reads stderr.
            daemon::run(settings).inspect_err(|error| tracing::error!("{error:#}"))
        }),
        Command::CheckConfig(options) => check::run(cli, options),
        Command::Status(options) if options.ocf => status::ocf(cli),
        Command::Status(options) if options.process => status::process(cli),
        Command::Status(options) if options.check => verdict::check(cli, options),
        Command::Status(options) => status::show(cli, options),
        Command::List(options) => read::list(cli, options),
        Command::Show(target) => read::show(cli, target),
        Command::History(cli::History { export: Some(cli::HistoryPart::Export(options)), .. }) => {
            export::export(cli, options)
        }
        Command::History(options) => read::history(cli, options),
        Command::Events(options) => events::run(cli, options),
        Command::Report(options) => export::report(cli, options),
        Command::Retry(options) => change::retry(cli, options),
        Command::Mark(options) => change::mark(cli, options),
        Command::Unmark(options) => change::unmark(cli, options),
        Command::Reload(options) => reload::reload(cli, options),
        Command::Dismiss(options) => reload::dismiss(cli, options),
        Command::Release(options) => change::release(cli, options),
        Command::Pause(options) => decide::pause(cli, options),
        Command::Resume(options) => decide::resume(cli, options),
        Command::Maintenance(cli::Maintenance::Begin(options)) => decide::begin(cli, options),
        Command::Maintenance(cli::Maintenance::End(options)) => decide::end(cli, options),
        Command::Maintenance(cli::Maintenance::List) => decide::list(cli),
        Command::Maintenance(cli::Maintenance::Run(options)) => during::run(cli, options),
        Command::SendTest(options) => change::send_test(cli, options),
        Command::Setup(options) => setup::run(cli, options),
    }
}

fn with_settings(cli: &Cli, work: impl FnOnce(Settings) -> anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    match config::load(&cli.config) {
        Ok(settings) => work(settings).map(|()| ExitCode::SUCCESS),
        Err(problems) => {
            say(&format!("{problems}\n"), &mut std::io::stderr());
            Ok(ExitCode::from(WRONG_CONFIGURATION))
        }
    }
}

/// Where journal and register are. Only this is read of the configuration, leniently: a typo elsewhere in it must not keep
/// an operator from looking.
fn site(cli: &Cli) -> Site {
    let (site, warnings) = Site::read(&cli.config);
    for warning in warnings {
        say(&format!("nova-host-alerter: {warning}\n"), &mut std::io::stderr());
    }
    site
}

fn journal_path(cli: &Cli) -> PathBuf {
    site(cli).store
}

/// As the fence agent reads it: an unknown word is the default.
fn register_of(site: &Site) -> Register {
    site.register.as_deref().and_then(Register::parse).unwrap_or_default()
}

/// What `list` and `show` read.
struct Sources {
    /// None where nothing was marked on this controller yet.
    journal: Option<Journal>,
    look: RegisterView,
    /// This controller.
    controller: String,
    site: Site,
    /// Whether a daemon runs here; else what its policy held is of the time when one did.
    is_daemon_here: bool,
}

impl Sources {
    /// Without a journal the register will do; with neither there is nothing to say.
    fn open(cli: &Cli) -> anyhow::Result<Self> {
        let site = site(cli);
        let look = RegisterView::take(register_of(&site), &Tools::default());
        say_fault(&look);
        Self::with(site, look)
    }

    /// The same for one who looks by the way, and has nothing to complain of.
    fn quiet(cli: &Cli) -> anyhow::Result<Self> {
        let (site, _) = Site::read(&cli.config);
        let look = RegisterView::take(register_of(&site), &Tools::default());
        Self::with(site, look)
    }

    fn with(site: Site, look: RegisterView) -> anyhow::Result<Self> {
        let journal = match Journal::open(&site.store, Role::Reader) {
            Err(JournalError::Missing { .. }) if look.entries().is_some() => None,
            opened => Some(opened.context("the journal cannot be read")?),
        };
        let is_daemon_here = matches!(Lock::holder(&site.store), Ok(Some(_)));
        Ok(Self { journal, look, controller: controller(), site, is_daemon_here })
    }

    /// The reports of marks that were found.
    fn report(&self, found: &Found) -> Result<MarkReport, JournalError> {
        let mut report = report::report(self.journal.as_ref(), &self.look, found)?;
        report.is_of_former_daemon(!self.is_daemon_here);
        Ok(report)
    }
}

/// Why the answer is this controller's alone.
fn say_fault(look: &RegisterView) {
    if let Some(fault) = look.fault() {
        say(&format!("nova-host-alerter: {}: {fault}\n", look.view()), &mut std::io::stderr());
    }
}

/// This controller, as its alerter calls it.
fn controller() -> String {
    let name = nix::unistd::gethostname();
    name.map_or_else(|_| "this controller".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn reader(cli: &Cli) -> anyhow::Result<Journal> {
    Journal::open(&journal_path(cli), Role::Reader).context("the journal cannot be read")
}

fn control(cli: &Cli) -> client::Daemon {
    client::Daemon::at(&config::control_socket(&journal_path(cli)))
}

/// The same for an answer that takes so much longer.
fn patient_control(cli: &Cli, longer: Duration) -> client::Daemon {
    client::Daemon::patient(
        &config::control_socket(&journal_path(cli)),
        client::PATIENCE.saturating_add(longer),
    )
}

fn wait_for<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime did not start")?;
    Ok(runtime.block_on(work))
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    println_all(&serde_json::to_string_pretty(value).context("the answer is no JSON")?);
    Ok(())
}

fn println_all(text: &str) {
    say(&format!("{}\n", text.trim_end()), &mut std::io::stdout());
}

/// A reader that went away (`| head`) is no fault.
fn say(text: &str, to: &mut impl std::io::Write) {
    let _reader_is_gone = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
