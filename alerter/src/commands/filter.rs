//! Which marks and lines of the history are wanted: `--host`, `--state`, `--since`, `--until`. An
//! unknown word is refused: an empty answer would seem to be good news.

use anyhow::bail;
use marks::delivery::State;
use marks::host::{HostName, HostPatterns};
use marks::mark::Settlement;
use marks::time::Timestamp;
use site::suggest;

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
    let by_hold = || report.holds.iter().any(|hold| hold.as_str() == word);
    let narrower = match report.mark.settled {
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
        found.ok_or_else(|| unknown("state", word, known.iter().copied()))
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

fn unknown<'k>(what: &str, word: &str, known: impl IntoIterator<Item = &'k str>) -> anyhow::Error {
    let known: Vec<&str> = known.into_iter().collect();
    let meant = suggest::closest(word, known.iter().copied());
    let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    Usage(format!("there is no {what} {}: {meant}known are {}", word.escape_default(), known.join(", ")))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(asked: &cli::Filter) -> Filter {
        Filter::read(asked).unwrap()
    }

    fn error(asked: &cli::Filter) -> String {
        Filter::read(asked).unwrap_err().to_string()
    }

    fn some(word: &str) -> Vec<String> {
        vec![word.to_owned()]
    }

    #[test]
    fn hosts_and_times_are_narrowed_together() {
        let asked = cli::Filter {
            hosts: vec!["r1-*,compute7".to_owned(), "r2-?".to_owned()],
            since: Some(Timestamp::from_seconds(10)),
            until: Some(Timestamp::from_seconds(20)),
        };
        let filter = filter(&asked);
        let takes = |host: &str, second| {
            filter.takes(&HostName::parse(host).unwrap(), Timestamp::from_seconds(second))
        };
        assert!(takes("r1-17", 10) && takes("COMPUTE7", 19) && takes("r2-3", 15));
        assert!(!takes("r2-33", 15) && !takes("r1-17", 9) && !takes("r1-17", 20));
        let line = |node, second| filter.takes_line(node, Timestamp::from_seconds(second));
        assert!(line(Some("r1-1"), 10) && !line(None, 10) && !line(Some("x"), 10));
        assert!(!filter.is_empty() && Filter::default().is_empty());
    }

    /// The broken variant takes any word, and finds nothing of it.
    #[test]
    fn an_unknown_word_is_refused_with_what_was_meant() {
        let said = Filter::default().in_states(&some("parkd")).unwrap_err().to_string();
        assert!(
            said.starts_with("there is no state parkd: did you mean parked? known are open, pending,"),
            "{said}"
        );
        let said = error(&cli::Filter { hosts: some("a b"), ..cli::Filter::default() });
        assert!(said.starts_with("--host: "), "{said}");
        let both =
            cli::Filter { since: Some(Timestamp(2)), until: Some(Timestamp(1)), ..cli::Filter::default() };
        assert!(error(&both).starts_with("--since must be before --until"));
    }

    /// The broken variant goes by each delivery: the marks of a storm would be pending too, and `status` counts them as held.
    #[test]
    fn a_mark_is_in_the_state_that_status_says() {
        use super::super::trouble::tests::{MINUTE, delivery, proven};
        let words_of = |report: &MarkReport| -> Vec<&str> {
            words().into_iter().filter(|word| is_in(report, word)).collect()
        };
        let with = |states: &[State]| MarkReport {
            deliveries: states.iter().map(|state| delivery(*state)).collect(),
            ..proven("c1", MINUTE)
        };
        assert_eq!(words_of(&with(&[State::Pending])), [OPEN, "pending"]);
        assert_eq!(words_of(&with(&[State::InFlight, State::Parked])), [OPEN, "parked"]);
        let storm = MarkReport { holds: vec![Hold::Storm], ..with(&[State::Pending]) };
        assert_eq!(words_of(&storm), [OPEN, "held", "storm"]);
        let mut expired = with(&[State::Cancelled]);
        expired.mark.settled = Some((Settlement::Expired, expired.mark.made_at));
        assert_eq!(words_of(&expired), ["cancelled", "expired"]);
        for report in [with(&[State::Held]), with(&[State::Quarantined, State::Held]), storm] {
            assert!(words_of(&report).contains(&report.stage().as_str()), "{report:?}");
        }
    }

    #[test]
    fn every_word_of_a_state_and_of_a_hold_is_known() {
        for word in words() {
            assert_eq!(states(&some(&word.to_ascii_uppercase())).unwrap(), [word]);
        }
        let settled = |word: &str| Filter::default().in_states(&some(word)).unwrap().wants_settled();
        assert!(settled("acknowledged") && settled("expired") && !settled("storm") && !settled("open"));
    }
}
