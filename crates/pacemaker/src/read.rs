//! Reads the CIB from the running cluster, in parts: Pacemaker gives no answer that is longer than 128 KiB when it is
//! packed, and all of Pacemaker waits while it makes one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use marks::host::HostName;

use crate::cib::{Cib, News, Snapshot, Wanted, some};
use crate::tools::{ToolError, Tools};

pub use whole::whole;

mod whole;

/// Elements of the configuration in one answer: they are short, and much alike.
const ELEMENTS: usize = 1500;
/// Resources with their operations in one answer: some hundred bytes of each cannot be packed.
const RESOURCES: usize = 400;
/// Hosts with all operations on their resources in one answer.
const HOSTS: usize = 40;
/// How often a reading is begun again because the CIB has changed meanwhile.
const ROUNDS: usize = 4;

/// Brings a snapshot up to date. Where nothing has changed, that is one question. Each answer must come within `each`: of
/// thousands of hosts there are many, and a daemon that hangs gives none.
///
/// # Errors
/// [`ToolError`]: the CIB is not known as it is now.
pub fn refresh(
    snapshot: &mut Snapshot,
    tools: &Tools,
    each: Duration,
    deadline: Instant,
) -> Result<Arc<Cib>, ToolError> {
    for _ in 0..ROUNDS {
        let status = tools.heads(&snapshot.asks_status(), deadline.min(Instant::now() + each))?;
        let wanted = snapshot.take_status(&status).map_err(|_| Tools::cib_unreadable())?;
        if wanted.is_empty() {
            break;
        }
        for part in wanted {
            let Some(path) = snapshot.asks(&part) else { continue };
            let most = match part {
                Wanted::Configuration => ELEMENTS,
                Wanted::Operations { .. } => RESOURCES,
                Wanted::Health => HOSTS,
            };
            match all(tools, &path, most, each, deadline) {
                Err(_) if part == Wanted::Health => {}
                found => snapshot.take(&part, found?),
            }
        }
    }
    snapshot.newest().ok_or_else(Tools::cib_unreadable)
}

/// What has changed since the last reading: one question.
///
/// # Errors
/// [`ToolError`]
pub fn news(snapshot: &Snapshot, tools: &Tools, deadline: Instant) -> Result<News, ToolError> {
    let status = tools.heads(&snapshot.asks_status(), deadline)?;
    snapshot.news(&status).map_err(|_| Tools::cib_unreadable())
}

/// The configuration alone: hosts, devices, levels, and the permanent attributes of nodes.
///
/// # Errors
/// [`ToolError`]
pub fn configuration(tools: &Tools, deadline: Instant) -> Result<Cib, ToolError> {
    let each = deadline.saturating_duration_since(Instant::now());
    Ok(all(tools, &Cib::asks_configuration(), ELEMENTS, each, deadline)?.indexed())
}

/// What decides whether a host may be marked, and which life of it ended: its levels with their devices, its state, its
/// connections.
///
/// # Errors
/// [`ToolError`]
pub fn host(tools: &Tools, host: &HostName, deadline: Instant) -> Result<Cib, ToolError> {
    let path = Cib::asks_host(host).ok_or_else(Tools::cib_unreadable)?;
    let mut cib = Cib::default();
    cib.add_part(&tools.parts(&path, deadline)?).map_err(|_| Tools::cib_unreadable())?;
    if let Some(path) = cib.asks_devices() {
        cib.add_devices(&tools.parts(&path, deadline)?).map_err(|_| Tools::cib_unreadable())?;
    }
    Ok(cib.indexed())
}

/// Where a resource of this agent runs, and which release wrote the CIB.
///
/// # Errors
/// [`ToolError`]
pub fn agent(tools: &Tools, agent: &str, deadline: Instant) -> Result<Cib, ToolError> {
    let mut cib = Cib::default();
    cib.add_part(&tools.heads(Cib::STATES, deadline)?).map_err(|_| Tools::cib_unreadable())?;
    let path = Cib::asks_agent(agent).ok_or_else(Tools::cib_unreadable)?;
    cib.add_part(&tools.parts(&path, deadline)?).map_err(|_| Tools::cib_unreadable())?;
    Ok(cib.indexed())
}

/// Everything that a path finds, some at a time.
fn all(tools: &Tools, path: &str, most: usize, each: Duration, deadline: Instant) -> Result<Cib, ToolError> {
    let mut cib = Cib::default();
    let until = || deadline.min(Instant::now() + each);
    in_turns(tools, path, most, until, |answer| cib.add_part(answer).ok())?;
    Ok(cib)
}

/// Asks for at most so many elements at a time, each time until `until`. `take` returns how many an answer has; none if it
/// cannot be read.
fn in_turns(
    tools: &Tools,
    path: &str,
    most: usize,
    until: impl Fn() -> Instant,
    mut take: impl FnMut(&str) -> Option<usize>,
) -> Result<(), ToolError> {
    let mut from = 1;
    loop {
        let answer = tools.parts(&some(path, from, most), until())?;
        if take(&answer).ok_or_else(Tools::cib_unreadable)? < most {
            return Ok(());
        }
        from += most;
    }
}

#[cfg(test)]
mod tests;
