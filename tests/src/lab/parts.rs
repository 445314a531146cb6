//! The parts that this program plays when it is started inside a node: PID 1, the power agent, the recorder of marks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use serde_json::{Value, json};

use super::{init, lifetime, reading, wire};

pub(super) const NODE: &str = "lab-node";
/// A program on each controller: the life of a register.
pub const LIFETIME: &str = "lab_register";
pub(super) const CONTROLLER: &str = "controller";
pub(super) const REMOTE: &str = "remote";
pub(super) const POWER_AGENT: &str = "fence_lab_power";
pub(super) const MARK_AGENT: &str = "fence_mark";
pub(super) const REAL_MARK_AGENT: &str = "fence_mark.real";

const POWER_METADATA: &str = include_str!("assets/fence_lab_power.xml");
const STAND_IN_METADATA: &str = include_str!("assets/fence_mark_stand_in.xml");

/// Plays a part where this process was started for one; a test's `main` calls this first.
#[must_use]
pub fn play_another_part() -> Option<ExitCode> {
    let text = |word: OsString| word.to_string_lossy().into_owned();
    let arguments: Vec<String> = std::env::args_os().map(text).collect();
    let name = Path::new(arguments.first()?).file_name()?.to_str()?;
    let ended = match name {
        POWER_AGENT => power_agent(),
        MARK_AGENT => recorder(&arguments[1..]),
        LIFETIME => match arguments.get(1).map(String::as_str) {
            Some("read") => reading::print(&arguments[2..]),
            _ => lifetime::live(&arguments[1..]),
        },
        _ if arguments.get(1).is_some_and(|word| word == NODE) => init::run(&arguments[2..]).map(|()| 0),
        _ => return None,
    };
    Some(ended.map_or_else(complain, ExitCode::from))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_or_else wants")]
fn complain(error: anyhow::Error) -> ExitCode {
    eprintln!("{error:#}");
    ExitCode::FAILURE
}

/// A power switch as Pacemaker sees it. The work is done by the host, as by a BMC.
fn power_agent() -> anyhow::Result<u8> {
    let options = options(&String::from_utf8_lossy(&standard_input()?));
    let option = |name: &str| options.get(name).map(String::as_str).unwrap_or_default();
    match option("action") {
        "metadata" => print(POWER_METADATA),
        "monitor" | "start" | "stop" | "validate-all" => Ok(0),
        action => {
            let target = [option("plug"), option("port"), option("nodename")];
            let target = target.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            let answer = wire::ask(&json!({"do": "power", "action": action, "target": target}))?;
            Ok(exit_code(&answer))
        }
    }
}

/// Stands where the fencer searches for `fence_mark`: reports the call to the host, then does what the host says.
///
/// Pacemaker's controller asks for metadata as `hacluster` and waits for it: that is answered without the host.
fn recorder(arguments: &[String]) -> anyhow::Result<u8> {
    let input = standard_input()?;
    if options(&String::from_utf8_lossy(&input)).get("action").is_some_and(|action| action == "metadata") {
        return if real_mark_agent().exists() {
            run_real(arguments, &input)
        } else {
            print(STAND_IN_METADATA)
        };
    }
    let text = |word: OsString| word.to_string_lossy().into_owned();
    let environment: BTreeMap<String, String> =
        std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    let host = nix::unistd::gethostname()?.to_string_lossy().into_owned();
    let call = json!({
        "do": "called", "node": host, "arguments": arguments, "environment": environment,
        "input": String::from_utf8_lossy(&input),
    });
    let answer = wire::ask(&call)?;
    let rc = match wire::text(&answer, "mode") {
        "real" => run_real(arguments, &input)?,
        "stand-in" => 0,
        _ => 1,
    };
    wire::ask(&json!({"do": "returned", "call": answer["call"], "rc": rc}))?;
    Ok(rc)
}

fn run_real(arguments: &[String], input: &[u8]) -> anyhow::Result<u8> {
    let mut agent = Command::new(real_mark_agent()).args(arguments).stdin(Stdio::piped()).spawn()?;
    // An agent that has read enough may close its end early.
    let _ = agent.stdin.take().context("no pipe to the agent")?.write_all(input);
    let status = agent.wait()?;
    Ok(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
}

fn real_mark_agent() -> PathBuf {
    Path::new("/run/lab/bin").join(REAL_MARK_AGENT)
}

fn standard_input() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn options(input: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    input.lines().filter_map(pair).collect()
}

fn print(text: &str) -> anyhow::Result<u8> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(0)
}

fn exit_code(answer: &Value) -> u8 {
    answer["rc"].as_u64().and_then(|rc| rc.try_into().ok()).unwrap_or(1)
}
