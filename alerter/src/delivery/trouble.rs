//! Which routes accept nothing, since when, and which hosts they have rejected since. Pure state; the daemon keeps one.

use std::collections::{BTreeMap, BTreeSet};

use journal::Tried;
use marks::delivery::Attempt;
use marks::host::HostName;
use marks::time::Timestamp;
use serde::Serialize;

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

/// The routes in trouble.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    failing: BTreeMap<String, Trouble>,
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
        Self { failing: tried.into_iter().map(trouble).collect(), rejected: BTreeMap::new() }
    }

    /// A route did not accept a mark. Says whether this is news.
    pub fn failed(&mut self, route: &str, kind: &str, detail: &str, at: Timestamp) -> bool {
        let known = self.failing.get(route);
        let since = known.map_or(at, |trouble| trouble.since.min(at));
        let news = known.is_none_or(|trouble| trouble.kind != kind);
        self.failing
            .insert(route.to_owned(), Trouble { since, kind: kind.to_owned(), detail: detail.to_owned() });
        news
    }

    /// A route accepted a mark. Says whether it was in trouble.
    pub fn accepted(&mut self, route: &str) -> bool {
        self.rejected.remove(route);
        self.failing.remove(route).is_some()
    }

    /// A route rejected the mark of a host: it answers, so it can be reached. Says whether it is the host's first rejection since the
    /// route accepted a mark.
    pub fn rejected(&mut self, route: &str, host: &HostName) -> bool {
        self.failing.remove(route);
        self.rejected.entry(route.to_owned()).or_default().insert(host.clone())
    }

    /// Whether a route has rejected the marks of several hosts, and accepted none since.
    pub fn rejects_all(&self, route: &str) -> bool {
        self.rejected.get(route).is_some_and(|hosts| hosts.len() > 1)
    }

    /// Forgets routes with nothing left to deliver.
    pub fn keep_only(&mut self, waiting: impl Fn(&str) -> bool) {
        self.failing.retain(|route, _| waiting(route));
        self.rejected.retain(|route, _| waiting(route));
    }

    /// The trouble of one route.
    pub fn of(&self, route: &str) -> Option<&Trouble> {
        self.failing.get(route)
    }
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
        assert!(troubles.failed("a", "connect", "refused", at(0)));
        assert!(!troubles.failed("a", "connect", "refused", at(200)), "the same word is no news");
        assert!(troubles.failed("a", "http-503", "busy", at(250)));
        assert_eq!(troubles.of("a").map(|trouble| trouble.since), Some(at(0)));
        assert!(troubles.accepted("a") && !troubles.accepted("a"));
        assert!(troubles.of("a").is_none());
    }

    /// The broken variant takes a rejection for a trouble of the route.
    #[test]
    fn a_rejection_is_no_trouble_of_its_route_and_is_remembered_until_it_accepts() {
        let [one, other] = ["compute1", "compute2"].map(|name| HostName::parse(name).unwrap());
        let mut troubles = Troubles::default();
        troubles.failed("a", "connect", "refused", at(0));
        assert!(troubles.rejected("a", &one), "it answers again");
        assert!(troubles.of("a").is_none() && !troubles.rejected("a", &one) && !troubles.rejects_all("a"));
        assert!(troubles.rejected("a", &other) && troubles.rejects_all("a"));
        assert!(!troubles.accepted("a") && !troubles.rejects_all("a"));
    }

    #[test]
    fn a_route_with_nothing_to_deliver_is_in_no_trouble() {
        let mut troubles = Troubles::default();
        troubles.failed("a", "connect", "refused", at(0));
        troubles.keep_only(|_| false);
        assert!(troubles.of("a").is_none());
    }
}
