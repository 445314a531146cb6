//! A command that reads the journal does it in a process of its own: where the disk hangs, that one is left behind, and the command says
//! what can be known without the journal.

use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, ExitCode};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::fcntl::Flock;
use pacemaker::aside;
use site::Site;

use super::answer::say;
use super::terminal::{READS, Style};
use crate::cli::{Cli, Command, Maintenance, Status};

/// Where it is noted which one was left behind: in memory.
const NOTES: &str = "/run/nova-host-alerter";

/// Whether this process is one that may hang.
pub(super) fn is_one() -> bool {
    env::var_os(READS).is_some()
}

/// Whether the command reads the journal. What the OCF agent asks for asks the daemon first.
pub(super) fn reads_journal(command: &Command) -> bool {
    match command {
        Command::Status(Status { ocf, .. }) => ocf.is_none(),
        Command::CheckConfig(_) | Command::List(_) | Command::Show(_) | Command::History(_) => true,
        Command::Maintenance(Maintenance::List) => true,
        _ => false,
    }
}

fn note(store: &Path) -> PathBuf {
    aside::note(Path::new(NOTES), "reader", store)
}

/// From here to its end such a process is alone at the disk: of several that begin at one moment only one can hang there.
pub(super) fn take_turn(store: &Path) {
    static TURN: OnceLock<Option<Flock<File>>> = OnceLock::new();
    if is_one() {
        TURN.get_or_init(|| aside::alone(&note(store)));
    }
}

/// Runs this command line in such a process and prints what that prints. `None`: the journal's disk hangs.
///
/// # Errors
/// No other process can be had, or it was killed.
pub(super) fn run(cli: &Cli, end: Option<Instant>) -> anyhow::Result<Option<ExitCode>> {
    let mut program = Program::new(aside::MYSELF);
    program.args(env::args_os().skip(1)).env(READS, Style::of_stdout().written());
    let note = note(&Site::read(&cli.config).0.store);
    let mut hangs = aside::unless_it_hangs(&note);
    let left = |pid| {
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        hangs(pid).min(left)
    };
    let Some(output) = aside::run(program, &[], &note, left)? else { return Ok(None) };
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    say(&stderr, &mut io::stderr());
    say(&stdout, &mut io::stdout());
    let code = output.status.code().and_then(|code| u8::try_from(code).ok());
    code.map(|code| Some(ExitCode::from(code)))
        .ok_or_else(|| anyhow::anyhow!("it was cut off: {}", output.status))
}
