//! The hosts and marks that a command line names, with patterns as filters have them, and a report on each.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::anyhow;
use marks::host::{HostName, HostPatterns};
use serde::Serialize;

use super::answer::{self, Usage, print};
use crate::cli::Cli;
use crate::control::api::ChangeAnswer;

/// What came of one target.
#[derive(Serialize)]
struct OfTarget {
    target: String,
    changed: usize,
    message: String,
    /// The word of what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What came of all of them.
#[derive(Serialize)]
struct Results {
    changed: usize,
    message: String,
    results: Vec<OfTarget>,
}

/// Does the work for each target. The failure of the only one is the command's; several are reported one by one.
pub(super) fn each(
    cli: &Cli,
    targets: &[String],
    mut work: impl FnMut(&str) -> anyhow::Result<ChangeAnswer>,
) -> anyhow::Result<ExitCode> {
    let only = targets.len() == 1;
    let mut results = Vec::new();
    for target in targets {
        let (changed, message, error) = match work(target) {
            Ok(ChangeAnswer { changed, message }) => (changed, message, None),
            Err(error) if only => return Err(error),
            Err(error) => (0, answer::sentence(&error), Some(answer::kind(&error))),
        };
        results.push(OfTarget { target: target.clone(), changed, message, error });
    }
    let failed = results.iter().filter(|one| one.error.is_some()).count();
    let message = match results.as_slice() {
        [one] => one.message.clone(),
        all => format!("{} of {} done", all.len() - failed, all.len()),
    };
    let all = Results { changed: results.iter().map(|one| one.changed).sum(), message, results };
    print(cli, &all, || lines(&all))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lines(all: &Results) -> String {
    match all.results.as_slice() {
        [one] => one.message.clone(),
        several => {
            let line = |one: &OfTarget| format!("{}: {}\n", one.target, one.message);
            several.iter().map(line).collect::<String>() + &all.message
        }
    }
}

/// The targets with every host that a pattern covers in its place, each once.
pub(super) fn expand(
    targets: &[String],
    hosts: impl FnOnce() -> BTreeSet<HostName>,
) -> anyhow::Result<Vec<String>> {
    let is_pattern = |target: &&String| target.contains(['*', '?']);
    let hosts = if targets.iter().any(|target| is_pattern(&target)) { hosts() } else { BTreeSet::new() };
    let mut chosen: Vec<String> = Vec::new();
    for target in targets {
        let found = if is_pattern(&target) { covered(target, &hosts)? } else { vec![target.clone()] };
        for one in found {
            if !chosen.contains(&one) {
                chosen.push(one);
            }
        }
    }
    Ok(chosen)
}

fn covered(pattern: &str, hosts: &BTreeSet<HostName>) -> anyhow::Result<Vec<String>> {
    let wrong = |why| Usage(format!("{}: {why}", pattern.escape_default()));
    let patterns = HostPatterns::from_entries([pattern]).map_err(wrong)?;
    let found: Vec<String> =
        hosts.iter().filter(|host| patterns.covers(host)).map(ToString::to_string).collect();
    if found.is_empty() {
        return Err(anyhow!("no host matches {pattern}: see `nova-host-alerter list`"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_every_host_that_it_covers_once() {
        let hosts = || ["r1-1", "r1-2", "r2-1"].iter().map(|host| HostName::parse(host).unwrap()).collect();
        let of = |targets: &[&str]| {
            expand(&targets.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(), hosts)
        };
        assert_eq!(of(&["r1-2", "r1-*", "x"]).unwrap(), ["r1-2", "r1-1", "x"]);
        assert_eq!(
            of(&["r3-*"]).unwrap_err().to_string(),
            "no host matches r3-*: see `nova-host-alerter list`"
        );
        assert!(of(&["a b*"]).unwrap_err().downcast_ref::<Usage>().is_some());
    }
}
