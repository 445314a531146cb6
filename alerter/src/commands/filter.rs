//! Which marks and lines of the history are wanted: `--host`, `--group`, `--route`, `--state`, `--since`, `--until`. An
//! unknown word is refused: an empty answer would seem to be good news.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use journal::Journal;
use marks::delivery::State;
use marks::host::{HostName, HostPatterns};
use marks::mark::Settlement;
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use pacemaker::read;
use pacemaker::register::Tools;
use site::suggest;

use super::answer::Usage;
use super::merged::LIMIT;
use super::report::MarkReport;
use crate::cli::{self, Cli};
use crate::config::{self, Members, Settings};
use crate::policy::Hold;

/// A mark that is not settled, whatever becomes of its deliveries.
const OPEN: &str = "open";

/// What is wanted, all of it together.
#[derive(Debug, Default)]
pub(super) struct Filter {
    hosts: Option<HostPatterns>,
    groups: Option<Groups>,
    routes: Vec<String>,
    states: Vec<&'static str>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// The wanted groups, and what says who is in them.
#[derive(Debug)]
struct Groups {
    settings: Settings,
    cib: Option<Cib>,
    wanted: Vec<String>,
}

impl Filter {
    /// Reads what was asked for.
    ///
    /// # Errors
    /// An unknown word, with those that are known; a configuration that cannot be read where a group is asked for.
    pub(super) fn read(cli: &Cli, asked: &cli::Filter, journal: Option<&Journal>) -> anyhow::Result<Self> {
        let (since, until) = (asked.since, asked.until);
        if since.zip(until).is_some_and(|(since, until)| since >= until) {
            bail!(Usage("--since must be before --until".to_owned()));
        }
        Ok(Self {
            hosts: patterns(&asked.hosts)?,
            groups: groups(cli, &asked.groups)?,
            routes: routes(cli, &asked.routes, journal)?,
            states: Vec::new(),
            since,
            until,
        })
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
        !self.asks_for_marks() && self.since.is_none() && self.until.is_none()
    }

    /// Whether more is asked than the time.
    fn asks_for_marks(&self) -> bool {
        self.hosts.is_some() || self.groups.is_some() || !self.routes.is_empty() || !self.states.is_empty()
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
        let by_name = self.hosts.as_ref().is_none_or(|patterns| patterns.covers(node));
        by_name && self.groups.as_ref().is_none_or(|groups| groups.have(node))
    }

    /// The same of a line of the history; one that is about no host is about no wanted one.
    pub(super) fn takes_line(&self, node: Option<&str>, route: Option<&str>, at: Timestamp) -> bool {
        let node = node.and_then(|node| HostName::parse(node).ok());
        let any_host = self.hosts.is_none() && self.groups.is_none();
        let is_route =
            self.routes.is_empty() || route.is_some_and(|route| self.routes.iter().any(|r| r == route));
        self.takes_time(at) && is_route && (any_host || node.is_some_and(|node| self.takes_host(&node)))
    }

    /// Whether a mark goes to a wanted route and is in a wanted state.
    pub(super) fn takes_report(&self, report: &MarkReport) -> bool {
        let goes_to = |route: &String| {
            report.deliveries.iter().any(|delivery| delivery.route == *route)
                || report.acknowledged.iter().any(|taken| taken.route == *route)
        };
        let by_route = self.routes.is_empty() || self.routes.iter().any(goes_to);
        by_route && (self.states.is_empty() || self.states.iter().any(|word| is_in(report, word)))
    }

    /// Whether a state or a route is asked for, which a fencing without a mark does not have.
    pub(super) fn asks_for_delivery(&self) -> bool {
        !self.states.is_empty() || !self.routes.is_empty()
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

fn groups(cli: &Cli, asked: &[String]) -> anyhow::Result<Option<Groups>> {
    if asked.is_empty() {
        return Ok(None);
    }
    let settings = config::load(&cli.config)
        .map_err(|problems| anyhow!("{problems}"))
        .context("the configuration lists the hosts of a group, but it has mistakes")?;
    let known: Vec<&str> = settings.groups.iter().map(|group| group.name.as_str()).collect();
    for word in asked {
        if !known.contains(&word.as_str()) {
            return Err(unknown("group", word, known));
        }
    }
    let by_attribute = settings.groups.iter().any(|group| matches!(group.members, Members::Attribute { .. }));
    let cib = if by_attribute { Some(cib()?) } else { None };
    Ok(Some(Groups { settings, cib, wanted: asked.to_vec() }))
}

fn cib() -> anyhow::Result<Cib> {
    let failure = "the CIB has the attributes that select the hosts of a group, but it cannot be read";
    read::configuration(&Tools::default(), Instant::now() + LIMIT).context(failure)
}

impl Groups {
    fn have(&self, node: &HostName) -> bool {
        let attribute = |node: &HostName, name: &str| {
            self.cib.as_ref().and_then(|cib| cib.node_attribute(node, name)).map(str::to_owned)
        };
        self.wanted.contains(&self.settings.group_of(node, &attribute).name)
    }
}

/// Known are the configured routes and those of the journal: an operator may search for one that was removed.
fn routes(cli: &Cli, asked: &[String], journal: Option<&Journal>) -> anyhow::Result<Vec<String>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let waiting = journal.map(Journal::waiting).transpose()?.unwrap_or_default();
    let mut known: BTreeSet<String> = waiting.into_keys().collect();
    let settings = config::load(&cli.config).ok();
    let is_certain = settings.is_some();
    known.extend(
        settings.into_iter().flat_map(|settings| settings.routes).map(|route| route.name.to_string()),
    );
    for word in asked.iter().filter(|word| is_certain && !known.contains(*word)) {
        // It may have been taken out of the configuration long ago: the history still has it.
        if !journal.map(|journal| journal.knows_route(word)).transpose()?.unwrap_or_default() {
            return Err(unknown("route", word, known.iter().map(String::as_str)));
        }
    }
    Ok(asked.to_vec())
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
    use journal::{NewHistory, Role};

    use super::*;

    fn filter(asked: &cli::Filter) -> Filter {
        let none =
            Cli { config: "/no/such/file".into(), json: false, print_as: None, command: cli::Command::Run };
        Filter::read(&none, asked, None).unwrap()
    }

    fn error(asked: &cli::Filter) -> String {
        let none =
            Cli { config: "/no/such/file".into(), json: false, print_as: None, command: cli::Command::Run };
        Filter::read(&none, asked, None).unwrap_err().to_string()
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
            ..cli::Filter::default()
        };
        let filter = filter(&asked);
        let takes = |host: &str, second| {
            filter.takes(&HostName::parse(host).unwrap(), Timestamp::from_seconds(second))
        };
        assert!(takes("r1-17", 10) && takes("COMPUTE7", 19) && takes("r2-3", 15));
        assert!(!takes("r2-33", 15) && !takes("r1-17", 9) && !takes("r1-17", 20));
        let line = |node, second| filter.takes_line(node, None, Timestamp::from_seconds(second));
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
        let said = error(&cli::Filter { groups: some("rack1"), ..cli::Filter::default() });
        assert!(said.starts_with("the configuration lists the hosts of a group"), "{said}");
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

    /// The broken variant knows what is configured and what is open alone.
    #[test]
    fn a_route_that_was_taken_out_is_found_in_what_it_did() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("alerter.toml");
        std::fs::write(
            &config,
            "[store]\nregister = \"none\"\n[http.recovery]\nurl = \"http://127.0.0.1:9/\"\n",
        )
        .unwrap();
        std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o600)).unwrap();
        let cli = Cli { config, json: false, print_as: None, command: cli::Command::Run };
        let mut journal = Journal::open(&dir.path().join("marks.db"), Role::Alerter).unwrap();
        let row = NewHistory {
            route: Some("former"),
            ..NewHistory::new(Timestamp(0), "refused", "the route was tried", "nova-host-alerter")
        };
        journal.append_history(&row).unwrap();
        let read = |word: &str| routes(&cli, &some(word), Some(&journal));
        assert_eq!(read("former").unwrap(), ["former"]);
        assert_eq!(read("recovery").unwrap(), ["recovery"]);
        assert!(read("formr").unwrap_err().to_string().starts_with("there is no route formr"));
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
