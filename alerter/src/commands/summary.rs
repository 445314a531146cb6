//! `history --summary`: how the outages of a time ended, and how long the acknowledgements took.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use marks::mark::Settlement;
use serde::Serialize;

use super::answer::print;
use super::filter::Filter;
use super::read;
use super::report::MarkReport;
use super::sources::Sources;
use crate::cli::{self, Cli};
use crate::words::length;

/// What is counted.
#[derive(Debug, Serialize)]
struct Summary {
    outages: usize,
    hosts: usize,
    /// How many are open or held, or ended in which way.
    states: BTreeMap<&'static str, usize>,
    /// From the fencing to the last required acknowledgement.
    acknowledged_after: Option<Times>,
}

/// Values that were measured, in milliseconds: half of all, nine of ten, and all are no greater.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Times {
    p50: u64,
    p90: u64,
    max: u64,
}

pub(super) fn run(cli: &Cli, options: &cli::History) -> anyhow::Result<ExitCode> {
    let sources = Sources::open(cli)?;
    let filter = Filter::read(&read::asked(options)?)?;
    let summary = Summary::of(&read::reports(&sources, &filter, true, 0)?.shown);
    print(cli, &summary, || summary.sentence())?;
    Ok(ExitCode::SUCCESS)
}

impl Summary {
    fn of(reports: &[MarkReport]) -> Self {
        let hosts: BTreeSet<_> = reports.iter().map(|report| &report.kept.mark.node).collect();
        let mut states = BTreeMap::new();
        for report in reports {
            *states.entry(report.state()).or_default() += 1;
        }
        let mut took: Vec<u64> = reports.iter().filter_map(took).collect();
        took.sort_unstable();
        let times =
            || Some(Times { p50: percentile(&took, 50)?, p90: percentile(&took, 90)?, max: *took.last()? });
        Self { outages: reports.len(), hosts: hosts.len(), states, acknowledged_after: times() }
    }

    fn sentence(&self) -> String {
        let Self { outages, hosts, .. } = self;
        let states: Vec<String> =
            self.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let mut out = format!("{outages} outage(s) of {hosts} host(s)");
        if !states.is_empty() {
            out += &format!(": {}", states.join(", "));
        }
        if let Some(Times { p50, p90, max }) = &self.acknowledged_after {
            let [p50, p90, max] = [p50, p90, max].map(|took| length(Duration::from_millis(*took)));
            out += &format!("\nacknowledged after {p50} (half of them), {p90} (nine of ten), {max} (all)");
        }
        out
    }
}

/// Milliseconds until every required route had acknowledged it.
fn took(report: &MarkReport) -> Option<u64> {
    let mark = &report.kept.mark;
    let (_, at) = mark.settled.filter(|(how, _)| *how == Settlement::Acknowledged)?;
    u64::try_from(at.since(mark.failure_time).as_millis()).ok()
}

/// The value of a sorted list that so many of a hundred do not exceed, by nearest rank; none of an empty list.
pub fn percentile<T: Copy>(sorted: &[T], percent: u8) -> Option<T> {
    let rank = (sorted.len() * usize::from(percent.min(100))).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::super::trouble::tests::{MINUTE, proven};
    use super::*;

    /// The broken variant counts what an operator ended among the times.
    #[test]
    fn outages_are_counted_by_how_they_ended() {
        let ended = |host: &str, how: Settlement, seconds| {
            let mut report = proven(host, MINUTE * 10);
            let at = report.kept.mark.failure_time + Duration::from_secs(seconds);
            report.kept.mark.settled = Some((how, at));
            report
        };
        let all = [
            ended("compute1", Settlement::Acknowledged, 2),
            ended("compute1", Settlement::Acknowledged, 60),
            ended("compute2", Settlement::Dismissed, 7200),
            proven("compute3", MINUTE),
        ];
        let said = "4 outage(s) of 3 host(s): 2 acknowledged, 1 dismissed, 1 open\n\
                    acknowledged after 2 s (half of them), 1 min (nine of ten), 1 min (all)";
        assert_eq!(Summary::of(&all).sentence(), said);
        assert_eq!(Summary::of(&[]).sentence(), "0 outage(s) of 0 host(s)");
    }
}
