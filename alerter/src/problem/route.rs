//! What is wrong with a route. Pure: the time is an argument.

use std::time::Duration;

use journal::Tried;
use marks::time::Timestamp;

use super::{Kind, Level, Place, Problem};
use crate::delivery::trouble::Trouble;
use crate::words::{counted, utc};

/// A route as it is seen.
#[derive(Clone, Debug)]
pub struct RouteSight {
    /// Its name.
    pub name: String,
    /// Its driver's word in the configuration.
    pub driver: &'static str,
    /// Where it leads, without secrets.
    pub endpoint: String,
    /// How long one exchange may take.
    pub limit: Duration,
    /// How long the endpoint may be away after a host has failed before that is a problem.
    pub usually_away: Duration,
    /// Whether marks stay open until it has them.
    pub required: bool,
    /// Whether the daemon is degraded when it fails for long. Routes of returns count: without one a living host stays down.
    pub degrades: bool,
    /// The file that its credentials stand in.
    pub secret: Option<String>,
    /// Why it accepts nothing.
    pub trouble: Option<Trouble>,
    /// Its endpoint refuses everything until somebody changes something.
    pub is_parked: bool,
    /// Until when its marks wait for it by the schedule; `None` while it is expected to accept them.
    pub waits_until: Option<Timestamp>,
    /// What waits for it, where the journal was asked.
    pub waiting: Option<Waiting>,
}

/// What waits for a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Open deliveries.
    pub deliveries: usize,
    /// Hosts that it rejects at present.
    pub rejected: usize,
    /// It rejected every mark of several hosts, and has accepted none since.
    pub rejects_all: bool,
}

/// What is wrong with one, if anything. `limit`: `degraded-after`.
pub(super) fn of(route: &RouteSight, limit: Duration, now: Timestamp, place: &Place) -> Option<Problem> {
    if let Some(waiting) = route.waiting.filter(|waiting| waiting.rejects_all) {
        return Some(rejecting(route, waiting));
    }
    let RouteSight { name, endpoint, required, is_parked, .. } = route;
    let is_problem = |trouble: &&Trouble| *is_parked || !trouble.is_usual(route.usually_away, now);
    let Trouble { since, kind: failure, detail } = route.trouble.as_ref().filter(is_problem)?;
    let (kind, how) = match is_parked {
        true => (Kind::Refused, "refuses every mark"),
        false => (Kind::Failing, "accepts nothing"),
    };
    let not_required = if *required { "" } else { " (not required)" };
    let waiting = match route.waiting {
        Some(waiting) => {
            let deliveries = counted(waiting.deliveries, "delivery waits", "deliveries wait");
            format!("; {deliveries} for {endpoint}")
        }
        None => String::new(),
    };
    let what =
        format!("route {name}{not_required} {how} since {} ({failure}): {detail}{waiting}", utc(*since));
    let hosts_wait = route.waiting.is_some_and(|waiting| waiting.deliveries > 0);
    // A moment more: exactly at the limit it does not count yet.
    let lasts_at = *since + limit + Duration::from_millis(1);
    let one = Problem::of(kind, what);
    Some(Problem {
        level: if *required && (*is_parked || hosts_wait) { Level::Critical } else { Level::Warning },
        route: Some(name.clone()),
        since: Some(*since),
        then: advice(route, failure, place),
        failure: Some(failure.clone()),
        degrades: route.degrades && now >= lasts_at,
        grows: *required,
        news_at: (!is_parked).then_some(lasts_at),
        ..one
    })
}

/// This is a warning alone: the next mark is sent at once all the same.
fn rejecting(route: &RouteSight, waiting: Waiting) -> Problem {
    let RouteSight { name, endpoint, .. } = route;
    let what = format!(
        "route {name} has rejected the marks of {} hosts and has accepted none since; a new mark is still sent at once",
        waiting.rejected
    );
    let then = format!(
        "the answers are listed below; check the log of the service at {endpoint}, and check that {name} leads to the right service; then run `nova-host-alerter retry --all`"
    );
    let level = if route.required { Level::Critical } else { Level::Warning };
    Problem { level, route: Some(name.clone()), then, ..Problem::of(Kind::RejectsAll, what) }
}

/// A route accepted nothing when an alerter last ran here.
pub fn of_former(tried: &Tried) -> Problem {
    let Tried { route, since, last, .. } = tried;
    let what = format!(
        "when the alerter last ran here, route {route} had accepted nothing since {} ({}): {}",
        utc(*since),
        last.kind,
        last.detail
    );
    Problem {
        route: Some(route.clone()),
        since: Some(*since),
        then: "check the endpoint; the route is tried again when the alerter runs".to_owned(),
        failure: Some(last.kind.clone()),
        ..Problem::of(Kind::Failing, what)
    }
}

/// What to do about an endpoint, by its failure.
fn advice(route: &RouteSight, failure: &str, place: &Place) -> String {
    let RouteSight { name, driver, endpoint, is_parked, .. } = route;
    let file = &place.file;
    let repair = match failure {
        "connect" | "connect-timeout" | "timeout" | "closed" | "unavailable" | "throttled" => {
            format!("start the service at {endpoint}, or repair the network path to it; no mark is lost")
        }
        "dns" => format!(
            "correct the name service; or correct the address of {name} in {file} and run `nova-host-alerter reload`"
        ),
        "credentials" | "keystone" | "forbidden" => {
            let table = || format!("table [{driver}.{name}] of {file}, then run `nova-host-alerter reload`");
            let place = route.secret.clone().unwrap_or_else(table);
            format!("correct the user, the password or the token of {name}, at the endpoint or in {place}")
        }
        failure if failure.starts_with("tls") => format!(
            "correct the certificate at {endpoint}; or correct ca-file and server-name of {name} and run `nova-host-alerter reload`"
        ),
        _ if *is_parked => {
            format!(
                "correct the endpoint; or correct the configuration of {name} and run `nova-host-alerter reload`"
            )
        }
        _ => format!("check the log of the service at {endpoint}"),
    };
    format!(
        "{repair}; test the route with `nova-host-alerter send-test {name}`, then run `nova-host-alerter retry --all`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Limits;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const MINUTE: Duration = Duration::from_secs(60);
    const LIMIT: Duration = Duration::from_secs(300);

    fn route(failure: &str, age: Duration, is_parked: bool, required: bool) -> RouteSight {
        RouteSight {
            name: "recovery".into(),
            driver: "http",
            endpoint: "http://ctl9/".into(),
            limit: MINUTE,
            usually_away: Duration::ZERO,
            required,
            degrades: required,
            secret: None,
            trouble: Some(Trouble { since: NOW - age, kind: failure.into(), detail: "it says no".into() }),
            is_parked,
            waits_until: None,
            waiting: Some(Waiting { deliveries: 2, ..Waiting::default() }),
        }
    }

    fn problem(route: &RouteSight) -> Problem {
        let place = Place { file: "/etc/alerter.toml".into(), ..Place::default() };
        of(route, LIMIT, NOW, &place).unwrap()
    }

    fn level(route: &RouteSight) -> Level {
        problem(route).level_at(NOW, Limits::default())
    }

    /// The broken variant has a warning for a required route that is down while hosts wait for it.
    #[test]
    fn a_route_is_as_bad_as_it_lasts_and_as_marks_wait_for_it() {
        let young = route("connect", MINUTE, false, true);
        let down = problem(&young);
        assert_eq!(
            (level(&young), down.kind, down.since),
            (Level::Critical, Kind::Failing, Some(NOW - MINUTE))
        );
        assert_eq!(
            down.what,
            "route recovery accepts nothing since 2027-01-15 07:59:00Z (connect): it says no; 2 deliveries wait for http://ctl9/"
        );
        let idle =
            |age| RouteSight { waiting: Some(Waiting::default()), ..route("connect", age, false, true) };
        assert_eq!([MINUTE, MINUTE * 15].map(|age| level(&idle(age))), [Level::Warning, Level::Critical]);
        assert_eq!(level(&route("credentials", MINUTE, true, true)), Level::Critical);
        assert_eq!(level(&route("credentials", MINUTE * 99, true, false)), Level::Warning);
    }

    /// The broken variant has an alarm for each API server that waits for its etcd after a fencing.
    #[test]
    fn an_endpoint_that_is_usually_away_for_a_while_is_no_problem_before_that() {
        let away = |age, is_parked| {
            let route = RouteSight { usually_away: MINUTE, ..route("connect", age, is_parked, true) };
            of(&route, LIMIT, NOW, &Place::default()).is_some()
        };
        let moment = Duration::from_millis(1);
        assert_eq!([MINUTE - moment, MINUTE].map(|age| away(age, false)), [false, true]);
        assert!(away(moment, true), "it refuses until somebody changes something");
    }

    /// S4-31: trouble that lasts.
    #[test]
    fn a_route_degrades_and_is_news_after_the_limit_and_a_refusal_is_news_at_once() {
        let of = |age, is_parked, required| {
            let one = problem(&route("connect", age, is_parked, required));
            (one.not_yet_news(NOW), one.degrades)
        };
        let moment = Duration::from_millis(1);
        assert_eq!(of(LIMIT, false, true), (Some(moment), false));
        assert_eq!(of(LIMIT + moment, false, true), (None, true));
        assert_eq!(of(LIMIT + moment, false, false), (None, false), "no mark waits for it");
        assert_eq!(of(MINUTE, true, true), (None, false));
    }

    #[test]
    fn a_route_that_rejects_all_is_a_problem_and_sends_on() {
        let waiting = Some(Waiting { deliveries: 6, rejected: 6, rejects_all: true });
        let one = problem(&RouteSight { waiting, trouble: None, ..route("", MINUTE, false, true) });
        assert_eq!((one.kind, one.level), (Kind::RejectsAll, Level::Critical));
        assert!(one.what.contains("rejected the marks of 6 hosts"), "{}", one.what);
        assert!(one.what.ends_with("a new mark is still sent at once"), "{}", one.what);
    }
}
