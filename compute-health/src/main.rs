//! `ocf:openstack:compute-health`: sees the failures of a compute host that its connection does not show. Agent and checker in one.

mod checks;
mod limit;
mod settings;
mod tools;
mod watch;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

use settings::Settings;
use watch::{Answer, DEGRADED, FAILED, SUCCESS, ask};

/// Exit codes of the OCF standard.
const ARGS: u8 = 2;
const UNIMPLEMENTED: u8 = 3;
const PERMISSION: u8 = 4;
const INSTALLED: u8 = 5;
const CONFIGURED: u8 = 6;
const NOT_RUNNING: u8 = 7;

/// What the words of the resident checker begin with.
const WATCH: &str = "watch";
/// The checker answers in milliseconds.
const ANSWERED: Duration = Duration::from_secs(3);
/// It holds its programs first.
const STARTED: Duration = Duration::from_secs(15);
/// It retracts its word first.
const STOPPED: Duration = Duration::from_secs(10);

/// An exit code, and its reason if there is one.
type Ended = (u8, String);

fn main() -> ExitCode {
    let words: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let (code, reason) = match words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some((checks::WORD, rest)) => (checks::look(rest), String::new()),
        Some((tools::HOLD, [])) => ended(tools::gather()),
        Some((tools::BECOME, rest)) => ended(Err(tools::become_held(rest))),
        Some((WATCH, [])) => {
            Settings::read().map_or_else(|said| (CONFIGURED, said), |all| ended(watch::run(all)))
        }
        Some((action, [])) => act(action),
        _ => (ARGS, "say one action: start, stop, monitor, validate-all or meta-data".to_owned()),
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
        _ => (UNIMPLEMENTED, format!("there is no action '{action}'")),
    }
}

fn validate() -> Result<(), Ended> {
    Settings::read().map_err(|said| (CONFIGURED, said))?;
    for name in [tools::ATTRD_UPDATER, tools::STONITH_ADMIN] {
        settings::program(name).ok_or_else(|| (INSTALLED, format!("{name} is not installed")))?;
    }
    if Uid::effective().is_root() {
        Ok(())
    } else {
        Err((PERMISSION, "only root can watch a host".to_owned()))
    }
}

fn start() -> Ended {
    if let Err(wrong) = validate() {
        return wrong;
    }
    if let Answer::Silent(peer) = ask("monitor", ANSWERED) {
        end(peer.pid());
    }
    match launch() {
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

fn taken(pid: i32, user: u32) -> String {
    format!("the checker's socket is taken by process {pid} of user {user}: end it")
}

/// Starts the checker, which outlives this process, where none runs.
fn launch() -> Ended {
    if let Answer::Said(..) = ask("monitor", ANSWERED) {
        return (SUCCESS, String::new());
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg(WATCH).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return (FAILED, format!("the checker cannot be started: {error}")),
    };
    let begun = Instant::now();
    while begun.elapsed() < STARTED {
        match ask("monitor", ANSWERED) {
            Answer::Said(..) => return (SUCCESS, String::new()),
            Answer::Foreign(peer) => return (FAILED, taken(peer.pid(), peer.uid())),
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
    match ask("monitor", ANSWERED) {
        Answer::Said(code, text) => (code, text),
        Answer::Nobody | Answer::Foreign(_) if !note().is_ok_and(|note| note.exists()) => {
            (NOT_RUNNING, String::new())
        }
        Answer::Nobody => match launch() {
            (SUCCESS, _) => (DEGRADED, "the checker had ended and was started again".to_owned()),
            (_, said) => (DEGRADED, said),
        },
        Answer::Foreign(peer) => (DEGRADED, taken(peer.pid(), peer.uid())),
        Answer::Silent(peer) => (DEGRADED, format!("the checker (process {}) does not answer", peer.pid())),
    }
}

/// Never fails: a stop that fails has its host fenced.
fn stop() -> Ended {
    match ask("stop", STOPPED) {
        Answer::Silent(peer) => end(peer.pid()),
        Answer::Nobody | Answer::Foreign(_) | Answer::Said(..) => {}
    }
    let begun = Instant::now();
    while begun.elapsed() < ANSWERED
        && matches!(ask("monitor", ANSWERED), Answer::Said(..) | Answer::Silent(_))
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    (SUCCESS, String::new())
}

/// Ends a checker that does not answer.
fn end(pid: i32) {
    let _it_may_be_gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
    std::thread::sleep(Duration::from_millis(100));
}
