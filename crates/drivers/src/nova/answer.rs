//! What Nova's answers mean for a mark. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;

use super::change::Change;
use super::service::{Service, VERSION};
use crate::driver::{Failure, Outcome};
use crate::openstack::{described, usual};
use crate::times;
use crate::web::{Answer, Meaning, Pause};
use crate::which::ADVICE;

/// How often Nova is asked whether evacuations have ended. They end when nova-compute starts again on the host that they
/// left.
const EVACUATIONS: Duration = Duration::from_secs(60);
/// Who is asked, for people.
const WHO: &str = "Nova";
/// The kind where Nova has no nova-compute of a host.
pub(super) const UNKNOWN_HOST: &str = "unknown-host";

/// Services as Nova lists them.
#[derive(Debug, Deserialize)]
pub(super) struct List {
    services: Vec<Service>,
    /// When this was so, by Nova's clock: seconds since the epoch.
    #[serde(skip)]
    date: Option<i64>,
}

#[derive(Deserialize)]
struct Changed {
    service: Service,
}

/// Nova's services of one host, or of all.
///
/// # Errors
/// The answer is unknown.
pub(super) fn listed(answer: &Answer) -> Result<List, Outcome> {
    if answer.status != 200 {
        return Err(usual(WHO, answer, OF_A_QUESTION).of_a_question());
    }
    match serde_json::from_slice::<List>(&answer.body) {
        Ok(list) => Ok(List { date: answer.date, ..list }),
        Err(why) if why.is_data() => {
            let advice = format!(
                ", which is no list of services in {VERSION} of the API: check what the catalog, or endpoint, names as Nova"
            );
            Err(Outcome::Refused(says(answer, "misconfigured", &advice)))
        }
        Err(_) => Err(Outcome::Retry(says(answer, "protocol", " with a list of services that was cut off"))),
    }
}

impl List {
    /// The services of a host, each once: if two cells have one database, Nova shows a service twice.
    pub(super) fn of(&self, host: &str) -> Vec<Service> {
        let own = self.services.iter().filter(|service| service.is_of(host));
        let by_id: BTreeMap<&str, &Service> = own.map(|service| (service.id.as_str(), service)).collect();
        by_id.into_values().cloned().collect()
    }

    /// The names of all hosts.
    pub(super) fn hosts(&self) -> BTreeSet<&str> {
        self.services.iter().map(|service| service.host.as_str()).collect()
    }

    /// For how long a service has not reported.
    pub(super) fn silence_of(&self, service: &Service) -> Option<Duration> {
        let reported = times::seconds(service.updated_at.as_deref()?)?;
        u64::try_from(self.date?.checked_sub(reported)?).ok().map(Duration::from_secs)
    }
}

fn says(answer: &Answer, kind: &'static str, advice: &str) -> Failure {
    described(WHO, answer, kind, advice)
}

static OF_A_QUESTION: &[Meaning] = &[
    Meaning::of(|status| status == 406, Outcome::Refused, "misconfigured", Pause::LockedOut)
        .saying(": it is too old for compute 2.53 of the API"),
    // The question named no detail of the mark but its host.
    Meaning::of(
        |status| matches!(status, 400 | 413 | 422),
        Outcome::Refused,
        "misconfigured",
        Pause::LockedOut,
    )
    .saying(": check endpoint and project"),
];

/// The question had found the service.
static OF_A_CHANGE: &[Meaning] =
    &[Meaning::of(|status| status == 404, Outcome::Retry, "conflict", Pause::Usual)
        .saying(" for a service that was there a moment before")];

/// The only service of a host.
///
/// # Errors
/// There is none, or more than one.
pub(super) fn the_one(mut services: Vec<Service>) -> Result<Service, Outcome> {
    let rejected = |kind, why: &str| Err(Outcome::Rejected(Failure::new(kind, why)));
    match (services.pop(), services.len()) {
        (Some(service), 0) => Ok(service),
        (Some(_), _) => rejected(
            "several-services",
            "Nova has several nova-computes of this host: force the right one down by hand, and delete the others",
        ),
        (None, _) => rejected(
            UNKNOWN_HOST,
            &format!(
                "Nova has no nova-compute with exactly this host name in any cell that it can reach: {ADVICE}"
            ),
        ),
    }
}

/// The outcome if nothing is to be changed for a host that is back. If it is forced down and has no reason of this mark,
/// the question is repeated until somebody has forced it up.
pub(super) fn left(service: &Service, host: &str, change: &Change) -> Outcome {
    if !service.forced_down {
        return Outcome::Acknowledged { reference: Some(change.reference(service)) };
    }
    let says = format!(
        "nova-compute of {host} is forced down, without a reason of this mark: if the host is well and should be up, run `{}`",
        up(host)
    );
    Outcome::Rejected(Failure::new("not-ours", &says))
}

/// How to force a host up by hand.
pub(super) fn up(host: &str) -> String {
    format!("openstack --os-compute-api-version 2.53 compute service set --up {host} nova-compute")
}

/// How a change of a service ended.
pub(super) fn changed(answer: &Answer, service: &Service, host: &str, change: &Change) -> Outcome {
    match answer.status {
        200 if shows(answer, service, host, change) => {
            Outcome::Acknowledged { reference: Some(change.reference(service)) }
        }
        200 => Outcome::Unknown(says(answer, "protocol", " and did not show the service as wanted")),
        400 if answer.message().starts_with("Unable to force up host") => Outcome::Wait(evacuations()),
        _ => usual(WHO, answer, OF_A_CHANGE),
    }
}

fn shows(answer: &Answer, service: &Service, host: &str, change: &Change) -> bool {
    serde_json::from_slice(&answer.body).is_ok_and(|Changed { service: shown }| {
        shown.is_of(host) && shown.id == service.id && change.is_seen_in(&shown)
    })
}

fn evacuations() -> Failure {
    let why = "Nova keeps the host down until its nova-compute starts and removes the evacuated instances: check that it runs there";
    Failure::new("evacuations", why).after(Some(EVACUATIONS))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::nova::body::Stored;
    use crate::web::expected as usual;

    const ID: &str = "b8f2a9d0-1111-4222-8333-444455556666";
    const OTHER: &str = "b8f2a9d0-1111-4222-8333-444455557777";

    fn shown(id: &str, host: &str, forced_down: bool, disabled: Option<&str>) -> Value {
        let status = if disabled.is_some() { "disabled" } else { "enabled" };
        json!({"id": id, "binary": "nova-compute", "host": host, "zone": "nova", "status": status, "state": "down",
            "updated_at": "2026-11-20T15:00:00.000000", "disabled_reason": disabled, "forced_down": forced_down})
    }

    fn stored() -> Stored {
        let body =
            json!({"id": "x", "host": "h", "failure_time": "2026-07-21T02:13:20Z", "forced_down": true});
        Stored::read(body.to_string().as_bytes()).unwrap()
    }

    fn listed(status: u16, body: &str) -> Result<Vec<Service>, Outcome> {
        super::listed(&Answer::of(status, body, None)).map(|list| list.of("h"))
    }

    fn put(status: u16, body: &str) -> Outcome {
        let service = Service { id: ID.into(), ..Service::default() };
        changed(&Answer::of(status, body, None), &service, "h", &Change::of(&stored(), &service))
    }

    /// The table of questions: their outcome is never ambiguous, and never about the host.
    #[test]
    fn a_question_leaves_nothing_open() {
        for status in 0..=1000 {
            let expected = match (status, usual(status)) {
                (200, _) => ("retry", "protocol"),
                (_, ("rejected", _)) => ("refused", "misconfigured"),
                (_, ("unknown", kind)) => ("retry", kind),
                (_, expected) => expected,
            };
            assert_eq!(listed(status, "").unwrap_err().words(), expected, "{status}");
        }
    }

    #[test]
    fn only_the_services_of_this_very_host_count() {
        let other_binary = json!({"id": OTHER, "binary": "nova-conductor", "host": "h", "status": "enabled",
            "disabled_reason": null, "forced_down": false});
        let list = |rows: Value| listed(200, &json!({ "services": rows }).to_string());
        let one = shown(ID, "h", true, Some("alice"));
        let found = list(json!([one, shown(OTHER, "H", false, None), other_binary])).unwrap();
        let reason = Some("alice".to_owned());
        let ours =
            |one: &Service| (one.id == ID, one.forced_down, one.is_disabled, one.disabled_reason.clone());
        assert_eq!(found.iter().map(ours).collect::<Vec<_>>(), [(true, true, true, reason)]);
        assert!(list(json!([])).unwrap().is_empty());
        let one = || shown(ID, "h", false, None);
        assert_eq!(list(json!([one(), one()])).unwrap().len(), 1);
        let odd = json!([shown("../../servers/x/action?aaaaaaaaaaaaaaa", "h", false, None)]);
        assert!(list(odd).unwrap().is_empty());
    }

    /// Older versions have numbers as ids, and another service has no list.
    #[test]
    fn what_is_too_old_is_said_to_be() {
        let mut old = shown(ID, "h", false, None);
        old["id"] = 7.into();
        for body in [json!({ "services": [old] }).to_string(), "{}".into(), "null".into()] {
            assert_eq!(listed(200, &body).unwrap_err().words(), ("refused", "misconfigured"), "{body}");
        }
        let why = listed(406, "").unwrap_err().failure().unwrap().detail.clone();
        assert!(why.contains("compute 2.53"), "{why}");
        assert_eq!(listed(200, "{\"services\": [").unwrap_err().words(), ("retry", "protocol"));
    }

    #[test]
    fn a_host_has_exactly_one_service() {
        let service = |id: &str| Service { id: id.into(), ..Service::default() };
        assert_eq!(the_one(vec![service(ID)]).unwrap().id, ID);
        assert_eq!(the_one(vec![]).unwrap_err().words(), ("rejected", "unknown-host"));
        let two = the_one(vec![service(ID), service(OTHER)]).unwrap_err();
        assert_eq!(two.words(), ("rejected", "several-services"));
    }

    /// The broken variant takes each 200 for the change.
    #[test]
    fn only_a_service_that_is_down_acknowledges() {
        let body = |id: &str, host: &str, down| json!({ "service": shown(id, host, down, None) }).to_string();
        assert_eq!(put(200, &body(ID, "h", true)), Outcome::Acknowledged { reference: Some(ID.into()) });
        let careless = |_: &str| "acknowledged";
        for body in [body(ID, "h", false), body(OTHER, "h", true), body(ID, "other", true), "{".into()] {
            assert_eq!(put(200, &body).words(), ("unknown", "protocol"), "{body}");
            assert_ne!(careless(&body), put(200, &body).as_str());
        }
    }

    /// The broken variant takes what an operator wants down for done, or for a service that is up.
    #[test]
    fn what_is_left_down_waits_for_somebody_with_the_command() {
        let left = |forced_down| {
            let service = Service { id: ID.into(), forced_down, is_disabled: true, ..Service::default() };
            left(&service, "h", &Change::default())
        };
        let reference = Some(format!("{ID} left-alone"));
        assert_eq!(left(false), Outcome::Acknowledged { reference });
        assert_eq!(left(true).words(), ("rejected", "not-ours"));
        assert!(left(true).failure().unwrap().detail.contains("compute service set --up h nova-compute"));
    }

    #[test]
    fn a_host_with_evacuations_is_asked_for_again() {
        let said = |message: &str| json!({"badRequest": {"code": 400, "message": message}}).to_string();
        let done = said(
            "Unable to force up host h as `done` evacuation migration records remain associated with the host.",
        );
        let wait = put(400, &done);
        assert_eq!(wait.words(), ("wait", "evacuations"));
        assert_eq!(wait.failure().unwrap().after, Some(EVACUATIONS));
        let unexpected = said("Additional properties are not allowed ('forced_down' was unexpected)");
        assert_eq!(put(400, &unexpected).words(), ("rejected", "rejected"));
    }
}
