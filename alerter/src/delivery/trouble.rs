//! Which routes accept nothing, since when, and which hosts they have rejected since. Pure state; the daemon keeps one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use journal::{Done, Journal, Tried};
use marks::delivery::Attempt;
use marks::host::HostName;
use marks::time::Timestamp;
use serde::Serialize;
use tracing::warn;

use super::RouteStates;
use crate::base::Base;

/// One route's trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// When the first of the failures in a row ended.
    pub since: Timestamp,
    /// The newest failure's machine word.
    pub kind: String,
    /// The newest failure in a sentence.
    pub detail: String,
}

impl Trouble {
    /// Whether it is no older than is usual.
    pub fn is_usual(&self, usually: Duration, now: Timestamp) -> bool {
        now < self.since + usually
    }
}

/// How a failure is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// It is usual for a while.
    Usual,
    /// Somebody should know.
    Trouble,
}

/// The routes in trouble.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    failing: BTreeMap<String, Trouble>,
    /// Those whose trouble was logged as what is usual for a while, and not yet as a warning.
    quiet: BTreeSet<String>,
    /// The hosts whose marks each route has rejected since it accepted one, or since the daemon started.
    rejected: BTreeMap<String, BTreeSet<HostName>>,
}

impl Troubles {
    /// What a former daemon left: a restart must not make an old trouble young.
    pub fn from_former(tried: impl IntoIterator<Item = Tried>) -> Self {
        let trouble = |Tried { route, since, last, .. }| {
            let Attempt { kind, detail, .. } = last;
            (route, Trouble { since, kind, detail })
        };
        Self { failing: tried.into_iter().map(trouble).collect(), ..Self::default() }
    }

    /// A route did not accept a mark. `usually`: for how long that is usual. Says how it is news, if it is.
    pub fn failed(
        &mut self,
        route: &str,
        (kind, detail): (&str, &str),
        usually: Duration,
        at: Timestamp,
    ) -> Option<News> {
        let known = self.failing.get(route);
        let since = known.map_or(at, |trouble| trouble.since.min(at));
        let is_other = known.is_none_or(|trouble| trouble.kind != kind);
        let trouble = Trouble { since, kind: kind.to_owned(), detail: detail.to_owned() };
        let is_usual = trouble.is_usual(usually, at);
        self.failing.insert(route.to_owned(), trouble);
        if is_usual {
            self.quiet.insert(route.to_owned());
            return is_other.then_some(News::Usual);
        }
        (self.quiet.remove(route) || is_other).then_some(News::Trouble)
    }

    /// A route accepted a mark. Says whether it was in trouble.
    pub fn accepted(&mut self, route: &str) -> bool {
        self.rejected.remove(route);
        self.quiet.remove(route);
        self.failing.remove(route).is_some()
    }

    /// A route rejected the mark of a host: it answers, so it can be reached. Says whether it is the host's first rejection since the
    /// route accepted a mark.
    pub fn rejected(&mut self, route: &str, host: &HostName) -> bool {
        self.failing.remove(route);
        self.quiet.remove(route);
        self.rejected.entry(route.to_owned()).or_default().insert(host.clone())
    }

    /// Whether a route has rejected the marks of several hosts, and accepted none since.
    pub fn rejects_all(&self, route: &str) -> bool {
        self.rejected.get(route).is_some_and(|hosts| hosts.len() > 1)
    }

    /// Forgets routes with nothing left to deliver.
    pub fn keep_only(&mut self, waiting: impl Fn(&str) -> bool) {
        self.failing.retain(|route, _| waiting(route));
        self.quiet.retain(|route| waiting(route));
        self.rejected.retain(|route, _| waiting(route));
    }

    /// The trouble of one route.
    pub fn of(&self, route: &str) -> Option<&Trouble> {
        self.failing.get(route)
    }
}

/// Counts them again, and logs each missing route once.
///
/// # Errors
/// As any read.
pub fn check_stranded(journal: &Journal, base: &Base, routes: &RouteStates) -> Done {
    let found: BTreeMap<String, usize> = journal.waiting_required(|route| base.route(route).is_none())?;
    let mut known = routes.stranded();
    for (route, marks) in found.iter().filter(|(route, _)| !known.contains_key(*route)) {
        warn!(
            "{}: configure the route again, or run `nova-host-alerter dismiss --route {route} --reason TEXT`",
            stranded(route, *marks)
        );
    }
    *known = found;
    Ok(())
}

/// The problem in one sentence.
pub fn stranded(route: &str, marks: usize) -> String {
    format!("route {route} is not configured any more, and {marks} mark(s) wait for it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_seconds(second)
    }

    #[test]
    fn a_route_is_in_trouble_until_it_accepts() {
        let mut troubles = Troubles::default();
        let mut failed = |kind, at| troubles.failed("a", (kind, "it says no"), Duration::ZERO, at);
        assert_eq!(failed("connect", at(0)), Some(News::Trouble));
        assert_eq!(failed("connect", at(200)), None, "the same word is no news");
        assert_eq!(failed("http-503", at(250)), Some(News::Trouble));
        assert_eq!(troubles.of("a").map(|trouble| trouble.since), Some(at(0)));
        assert!(troubles.accepted("a") && !troubles.accepted("a"));
        assert!(troubles.of("a").is_none());
    }

    /// The broken variant goes by the word alone: an endpoint that stays away for a week was usual once, and never trouble.
    #[test]
    fn what_is_usual_for_a_while_is_trouble_afterwards() {
        let mut troubles = Troubles::default();
        let mut failed =
            |second| troubles.failed("a", ("connect", "refused"), Duration::from_secs(120), at(second));
        let said = [0, 60, 119, 120, 500].map(&mut failed);
        assert_eq!(said, [Some(News::Usual), None, None, Some(News::Trouble), None]);
    }

    /// The broken variant takes a rejection for a trouble of the route.
    #[test]
    fn a_rejection_is_no_trouble_of_its_route_and_is_remembered_until_it_accepts() {
        let [one, other] = ["compute1", "compute2"].map(|name| HostName::parse(name).unwrap());
        let mut troubles = Troubles::default();
        troubles.failed("a", ("connect", "refused"), Duration::ZERO, at(0));
        assert!(troubles.rejected("a", &one), "it answers again");
        assert!(troubles.of("a").is_none() && !troubles.rejected("a", &one) && !troubles.rejects_all("a"));
        assert!(troubles.rejected("a", &other) && troubles.rejects_all("a"));
        assert!(!troubles.accepted("a") && !troubles.rejects_all("a"));
    }
}
