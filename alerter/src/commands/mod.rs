//! The operator's commands: reading from journal and register, changing through the control socket.

mod answer;
mod change;
mod check;
mod decide;
mod delivery;
mod during;
mod events;
mod export;
mod filter;
mod key;
mod merged;
mod near;
pub mod online;
mod origin;
mod overview;
pub(crate) mod progress;
mod read;
mod reload;
mod report;
mod screen;
mod setup;
mod sources;
mod status;
mod story;
mod terminal;
mod text;
mod trouble;
mod unmarked;
mod verdict;
mod watch;

use std::process::ExitCode;

use answer::{WRONG_CONFIGURATION, say};

use crate::cli::{self, Cli, Command};
use crate::config::{self, Settings};
use crate::{daemon, log};

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
