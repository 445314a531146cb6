//! The operator's commands: reading from journal and register, changing through the control socket.

mod answer;
mod aside;
mod change;
mod check;
mod decide;
mod delivery;
mod filter;
mod gone;
mod key;
mod list;
mod merged;
pub mod online;
mod overview;
mod read;
mod reload;
mod report;
mod screen;
mod setup;
mod sources;
mod status;
pub mod summary;
mod terminal;
mod text;
mod trouble;
mod unmarked;

use std::process::ExitCode;
use std::time::Duration;

use answer::{WRONG_CONFIGURATION, say};
use clap::Parser as _;

use crate::cli::{self, Cli, Command, PrintAs};
use crate::config::{self, Settings};
use crate::{daemon, log};

/// Reads the command line and runs its command.
pub fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => {
            let format = cli.format();
            read(cli).unwrap_or_else(|error| answer::failed(format, &error))
        }
        Err(error) => misread(error),
    }
}

/// What may hang at the journal's disk is left to another process.
fn read(mut cli: Cli) -> anyhow::Result<ExitCode> {
    if aside::is_one() {
        pacemaker::aside::begin();
    } else if aside::reads_journal(&cli.command) {
        match aside::run(&cli, None) {
            Ok(Some(code)) => return Ok(code),
            Ok(None) => cli.hangs = true,
            // No other process can be had.
            Err(_) => {}
        }
    }
    run(&cli)
}

/// Help goes to stdout; a mistake is printed as the command line asks for it, as far as that can be said.
fn misread(mut error: clap::Error) -> ExitCode {
    // What is no text is a mistake too, and no reason to panic.
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_asked = |word: &str| words.iter().any(|given| given == word);
    let is_json = is_asked("--json") || words.join(" ").contains("-o json") || is_asked("-ojson");
    let instead = gone::instead(&error);
    if error.use_stderr() && is_json {
        let text = error.to_string();
        let sentence = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let hint = instead.map(|instead| format!(": {instead}")).unwrap_or_default();
        answer::complain(PrintAs::Json, "usage", &format!("{sentence}{hint}"));
    } else {
        gone::advise(&mut error, instead);
        let _reader_is_gone = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
}

/// Runs one command.
///
/// # Errors
/// One sentence for the operator; the exit code is then 1.
pub fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    answer::check_format(cli)?;
    match &cli.command {
        Command::Run => with_settings(cli, |settings| {
            log::start(settings.log);
            // Said here, so that it reaches syslog too: under Pacemaker nobody reads stderr.
            daemon::run(settings).inspect_err(|error| tracing::error!("{}", answer::sentence(error)))
        }),
        Command::CheckConfig(options) => check::run(cli, options),
        Command::Status(cli::Status { ocf: Some(seconds), .. }) => {
            status::ocf(cli, Duration::from_secs(*seconds))
        }
        Command::Status(options) if options.process => status::process(cli),
        Command::Status(options) if options.check => status::check(cli, options),
        Command::Status(_) => status::show(cli),
        Command::List(options) => list::run(cli, options),
        Command::Show(target) => read::show(cli, target),
        Command::History(options) if options.summary => summary::run(cli, options),
        Command::History(options) => read::history(cli, options),
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
