//! From arguments or standard input to an exit code: 0, or 1 for everything else. The fencer would take 2 for "off".

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use marks::time::Timestamp;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};

use crate::call::{Action, Call, OWN_LIMIT, program_name};
use crate::failure::Failure;
use crate::given::Given;
use crate::paths::Paths;
use crate::report::Report;
use crate::settings::Target;
use crate::{check, getopt, metadata, off, stdin, store, watch};

/// Runs the agent as called.
pub fn main(asked_at: Timestamp) -> ExitCode {
    let started = Instant::now();
    let mut args = env::args_os();
    let program = program_name(args.next().as_deref());
    let args: Vec<OsString> = args.collect();
    if let Some((_, request)) = args.split_first().filter(|(first, _)| *first == store::WORD) {
        prepare();
        return store::serve(request);
    }
    let paths = Paths::default();
    let given = match options(args) {
        Ok(given) => given,
        Err(e) => {
            Report::new(paths.syslog, false, false).failure(&e);
            return ExitCode::FAILURE;
        }
    };
    let printed = document(&program, &given);
    if let Some(text) = printed {
        return print(&text);
    }
    let report = report(&given, &paths);
    given.warnings.iter().for_each(|text| report.warning(text));
    let from_fencer = env::var_os("PCMK_service").is_some();
    act(&Call { asked_at, started, from_fencer, given, paths, report })
}

/// Standard input is read only without arguments.
fn options(args: Vec<OsString>) -> Result<Given, String> {
    if args.is_empty() {
        let bytes = stdin::read(io::stdin().lock(), stdin::LIMIT).map_err(|e| e.to_string())?;
        stdin::parse(&bytes).map_err(|e| e.to_string())
    } else {
        getopt::parse(args).map_err(|e| e.to_string())
    }
}

/// A document is printed only where nobody asked for anything else: a caller that passed `off` takes 0 for a mark.
fn document(program: &str, given: &Given) -> Option<String> {
    let Some(word) = given.get("action") else {
        return match (given.flag("help"), given.flag("version")) {
            (Some(true), _) => Some(metadata::help(program)),
            (_, Some(true)) => Some(format!("{}\n", env!("CARGO_PKG_VERSION"))),
            _ => None,
        };
    };
    let is_document = |word| Action::parse(word).is_some_and(Action::is_document);
    match Action::parse(word).filter(|_| given.all("action").all(is_document))? {
        Action::Metadata => Some(metadata::metadata(program)),
        Action::Manpage => Some(metadata::manpage(program)),
        Action::Off | Action::Status | Action::Monitor | Action::ValidateAll => None,
    }
}

pub(crate) fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(given: &Given, paths: &Paths) -> Report {
    let level = given.get("verbose_level").and_then(crate::given::whole);
    let verbose = level.map_or(given.flag("verbose") == Some(true), |level| level > 0);
    Report::new(paths.syslog.clone(), given.flag("quiet") == Some(true), verbose)
}

/// Does the action. There is no default, and no action replaces another one.
pub fn act(call: &Call) -> ExitCode {
    let word = call.given.get("action").unwrap_or_default();
    let done = match Action::parse(word) {
        Some(Action::Off) => for_target(call, "is not marked", |target| {
            watched(call, target.node.as_str(), || off::run(call, target))
        }),
        Some(Action::Status) => for_target(call, "may not be marked", |target| check::status(call, target)),
        Some(Action::Monitor) => watched(call, "monitor", || check::monitor(call)).map_err(|e| e.to_string()),
        Some(Action::ValidateAll) => check::validate(call).map_err(|e| e.to_string()),
        Some(Action::Metadata | Action::Manpage) => {
            Err(format!("{word} is not the only action that was given: pass action once"))
        }
        None if word.is_empty() => {
            Err("no action was given, and there is no default: pass action".to_owned())
        }
        None => Err(format!("Unrecognised action '{}': see `fence_mark --help`", printable(word))),
    };
    finish(call, done)
}

fn for_target(
    call: &Call,
    otherwise: &str,
    work: impl FnOnce(&Target) -> Result<(), Failure>,
) -> Result<(), String> {
    let target = call.target().map_err(|e| e.to_string())?;
    work(&target).map_err(|e| format!("{} {otherwise}: {e}", target.node))
}

fn finish(call: &Call, result: Result<(), String>) -> ExitCode {
    let Err(text) = result else { return ExitCode::SUCCESS };
    call.report.failure(&text);
    ExitCode::FAILURE
}

/// Files are only for their owner, and a file size limit becomes an error instead of a signal.
fn prepare() {
    umask(Mode::from_bits_truncate(0o077));
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGXFSZ);
    let _a_signal_then = blocked.thread_block();
}

fn watched<T>(call: &Call, what: &str, work: impl FnOnce() -> T) -> T {
    let limit = OWN_LIMIT + call.delay();
    let (report, what) = (call.report.clone(), what.to_owned());
    watch::start(limit.saturating_sub(call.started.elapsed()), move || expire(&report, &what, limit));
    work()
}

#[expect(clippy::exit, reason = "the main thread hangs in a lock; nothing else can end it")]
fn expire(report: &Report, what: &str, limit: Duration) {
    report.failure(&format!(
        "{what}: no result within {} s, check the load of this controller",
        limit.as_secs()
    ));
    std::process::exit(1);
}

fn printable(word: &str) -> String {
    word.chars().take(32).map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}
