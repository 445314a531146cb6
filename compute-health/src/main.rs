//! `ocf:openstack:compute-health`: sees the failures of a compute host that its connection does not show. Agent and checker in one.

mod checks;
mod limit;
mod settings;
mod tools;
mod watch;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use settings::Settings;
use watch::{Answer, DEGRADED, FAILED, SUCCESS, WATCH, ask};

/// Exit codes of the OCF standard.
const UNIMPLEMENTED: u8 = 3;
const INSTALLED: u8 = 5;
const CONFIGURED: u8 = 6;
const NOT_RUNNING: u8 = 7;

/// It holds its programs first.
const STARTED: Duration = Duration::from_secs(25);
/// With two questions that nobody answers less than a monitor's timeout: one that Pacemaker ends would have the host fenced.
const STARTED_AGAIN: Duration = Duration::from_secs(6);

/// An exit code, and its reason if there is one.
type Ended = (u8, String);

fn main() -> ExitCode {
    let words: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let (code, reason) = match words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some((checks::WORD, rest)) => (checks::look(rest), String::new()),
        Some((tools::HOLD, [])) => ended(tools::gather()),
        Some((tools::BECOME, rest)) => ended(Err(tools::become_held(rest))),
        Some((WATCH, [])) => ended(watch::run()),
        Some((action, [])) => act(action),
        _ => act(""),
    };
    if !reason.is_empty() {
        let _nobody_may_listen = writeln!(io::stderr(), "ocf-exit-reason:{reason}");
    }
    ExitCode::from(code)
}

fn ended(result: io::Result<()>) -> Ended {
    result.map_or_else(|error| (FAILED, error.to_string()), |()| (SUCCESS, String::new()))
}

fn act(action: &str) -> Ended {
    match action {
        "start" => start(),
        "stop" => stop(),
        "monitor" | "status" => monitor(),
        "validate-all" => validate().map_or_else(|wrong| wrong, |()| (SUCCESS, String::new())),
        "meta-data" => ended(io::stdout().write_all(include_bytes!("meta-data.xml"))),
        _ => (UNIMPLEMENTED, format!("there is no action '{action}': see meta-data")),
    }
}

fn validate() -> Result<(), Ended> {
    Settings::read().map_err(|said| (CONFIGURED, said))?;
    for name in [tools::ATTRD_UPDATER, tools::STONITH_ADMIN] {
        settings::program(name).ok_or_else(|| (INSTALLED, format!("{name} is not installed")))?;
    }
    Ok(())
}

fn start() -> Ended {
    match validate().map_or_else(|wrong| wrong, |()| launch()) {
        (SUCCESS, _) => ended(note().and_then(|note| fs::write(note, ""))),
        failed => failed,
    }
}

/// The note that the resource was started; no restart of the host outlives it.
fn note() -> io::Result<PathBuf> {
    let directory = env::var_os("HA_RSCTMP").map_or_else(|| "/run/resource-agents".into(), PathBuf::from);
    fs::create_dir_all(&directory)?;
    Ok(directory.join(format!("compute-health-{}", settings::instance())))
}

/// Starts the checker, which outlives this process, where none answers.
fn launch() -> Ended {
    match ask("monitor") {
        Answer::Said(..) => return (SUCCESS, String::new()),
        Answer::Silent(pid) => end(pid),
        Answer::Nobody | Answer::Foreign(_) => {}
    }
    spawn(STARTED)
}

fn spawn(limit: Duration) -> Ended {
    let Ok(mut child) = tools::own(&[WATCH]).spawn() else {
        return (FAILED, "no process can be started".to_owned());
    };
    let begun = Instant::now();
    while begun.elapsed() < limit {
        match ask("monitor") {
            Answer::Said(..) => return (SUCCESS, String::new()),
            Answer::Foreign(who) => return (FAILED, who),
            Answer::Nobody | Answer::Silent(_) => std::thread::sleep(Duration::from_millis(20)),
        }
        if let Ok(Some(status)) = child.try_wait() {
            return (FAILED, format!("the checker has ended ({status}): see this host's parameters"));
        }
    }
    (FAILED, "the checker does not answer".to_owned())
}

/// Only the checker's own word that this host may be fenced fails. All else is shown, and nobody is fenced for it.
fn monitor() -> Ended {
    match ask("monitor") {
        Answer::Said(code, text) => (code, text),
        _ if !note().is_ok_and(|note| note.exists()) => (NOT_RUNNING, String::new()),
        Answer::Foreign(who) => (DEGRADED, who),
        Answer::Silent(pid) => (DEGRADED, again(Some(pid))),
        Answer::Nobody => (DEGRADED, again(None)),
    }
}

/// Starts another checker for one that is gone or hangs.
fn again(silent: Option<i32>) -> String {
    silent.into_iter().for_each(end);
    match spawn(STARTED_AGAIN) {
        (SUCCESS, _) => "the checker was gone or hung, and was started again".to_owned(),
        (_, said) => said,
    }
}

/// Never fails: a stop that fails has its host fenced.
fn stop() -> Ended {
    if let Answer::Silent(pid) = ask("stop") {
        end(pid);
    }
    let _it_may_never_have_started = note().and_then(fs::remove_file);
    (SUCCESS, String::new())
}

/// Ends a checker that does not answer.
fn end(pid: i32) {
    let _it_may_be_gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
    std::thread::sleep(Duration::from_millis(100));
}
