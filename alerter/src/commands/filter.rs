//! Which marks and lines of the history are wanted: `--host`, `--state`, `--since`, `--until`. An
//! unknown word is refused: an empty answer would seem to be good news.

use anyhow::bail;
use marks::delivery::State;
use marks::host::{HostName, HostPatterns};
use marks::mark::Settlement;
use marks::time::Timestamp;
use site::unknown_word;

use super::answer::Usage;
use super::report::MarkReport;
use crate::cli;
use crate::policy::Hold;

/// A mark that is not settled, whatever becomes of its deliveries.
const OPEN: &str = "open";

/// What is wanted, all of it together.
#[derive(Debug, Default)]
pub(super) struct Filter {
    hosts: Option<HostPatterns>,
    states: Vec<&'static str>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Filter {
    /// Reads what was asked for.
    ///
    /// # Errors
    /// A pattern that is none, or times in the wrong order.
    pub(super) fn read(asked: &cli::Filter) -> anyhow::Result<Self> {
        let (since, until) = (asked.since, asked.until);
        if since.zip(until).is_some_and(|(since, until)| since >= until) {
            bail!(Usage("--since must be before --until".to_owned()));
        }
        Ok(Self { hosts: patterns(&asked.hosts)?, states: Vec::new(), since, until })
    }

    /// The same, and only marks in these states.
    ///
    /// # Errors
    /// An unknown word, with those that are known.
    pub(super) fn in_states(self, asked: &[String]) -> anyhow::Result<Self> {
        Ok(Self { states: states(asked)?, ..self })
    }

    /// Whether everything is wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_none() && self.states.is_empty() && self.since.is_none() && self.until.is_none()
    }

    /// Whether settled marks are among the wanted ones by their state.
    pub(super) fn wants_settled(&self) -> bool {
        self.states.iter().any(|word| is_settlement(word))
    }

    /// Whether a host and a time are wanted.
    pub(super) fn takes(&self, node: &HostName, at: Timestamp) -> bool {
        self.takes_time(at) && self.takes_host(node)
    }

    fn takes_time(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| since <= at) && self.until.is_none_or(|until| at < until)
    }

    fn takes_host(&self, node: &HostName) -> bool {
        self.hosts.as_ref().is_none_or(|patterns| patterns.covers(node))
    }

    /// The same of a line of the history; one that is about no host is about no wanted one.
    pub(super) fn takes_line(&self, node: Option<&str>, at: Timestamp) -> bool {
        let node = node.and_then(|node| HostName::parse(node).ok());
        self.takes_time(at) && (self.hosts.is_none() || node.is_some_and(|node| self.takes_host(&node)))
    }

    /// Whether a mark is in a wanted state.
    pub(super) fn takes_report(&self, report: &MarkReport) -> bool {
        self.states.is_empty() || self.states.iter().any(|word| is_in(report, word))
    }

    /// Whether a state is asked for, which a fencing without a mark does not have.
    pub(super) fn asks_for_delivery(&self) -> bool {
        !self.states.is_empty()
    }
}

/// By the same word as `status`, the page and the metrics; or by one that is narrower or wider.
fn is_in(report: &MarkReport, word: &str) -> bool {
    let by_hold = || report.holds().iter().any(|hold| hold.as_str() == word);
    let narrower = match report.kept.mark.settled {
        Some((how, _)) => how.as_str() == word,
        None => word == OPEN || by_hold(),
    };
    narrower || report.stage().as_str() == word
}

fn is_settlement(word: &str) -> bool {
    Settlement::parse(word).is_some()
}

/// Every word that is understood behind `--state`.
pub(super) fn words() -> Vec<&'static str> {
    let all = [OPEN].into_iter().chain(State::ALL.map(State::as_str)).chain(["expired"]);
    all.chain(Hold::ALL.map(Hold::as_str)).collect()
}

fn states(asked: &[String]) -> anyhow::Result<Vec<&'static str>> {
    let known = words();
    let read = |word: &String| {
        let found = known.iter().find(|known| known.eq_ignore_ascii_case(word)).copied();
        found.ok_or_else(|| Usage(unknown_word("state", word, known.iter().copied())).into())
    };
    asked.iter().map(read).collect()
}

fn patterns(asked: &[String]) -> anyhow::Result<Option<HostPatterns>> {
    if asked.is_empty() {
        return Ok(None);
    }
    let entries = asked.iter().flat_map(|list| list.split(','));
    Ok(Some(HostPatterns::from_entries(entries).map_err(|why| Usage(format!("--host: {why}")))?))
}
