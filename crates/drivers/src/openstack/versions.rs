//! Where a service's API is if its address in the catalog has no version: the service says it there, as it does to every
//! client of OpenStack. Pure.

use std::time::Duration;

use reqwest::Url;
use serde_json::Value;

use super::catalog::Service;
use crate::driver::{Failure, Outcome};
use crate::web::{Fault, Meaning, Pause, meaning};

/// Whether an address has a version in its path, such as `/v1` or `/v2.1`.
pub(super) fn has_one(address: &Url) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_version = |part: &str| {
        let number = part.strip_prefix(['v', 'V']);
        number.is_some_and(|number| number.split('.').all(is_number))
    };
    address.path().split('/').any(is_version)
}

/// Where it is asked.
pub(super) fn question(address: &Url) -> Url {
    let mut url = address.clone();
    url.set_path(&format!("{}/", address.path().trim_end_matches('/')));
    url
}

/// The address of the current version by the service's own word. Scheme, host and port are the catalog's, and so is the
/// path in front of the version: a proxy has its own. `None` if the answer is no description of versions.
pub(super) fn current(address: &Url, body: &Value) -> Option<Url> {
    // The description of one version is given by that version's own address.
    if body["version"]["id"].is_string() {
        return Some(address.clone());
    }
    let all = body["versions"].as_array().or_else(|| body["versions"]["values"].as_array())?;
    let is_current = |one: &&Value| {
        let status = one["status"].as_str().unwrap_or_default();
        ["CURRENT", "STABLE"].iter().any(|word| status.eq_ignore_ascii_case(word))
    };
    let links = all.iter().find(is_current)?["links"].as_array()?;
    let own = links.iter().find(|link| link["rel"] == "self")?["href"].as_str()?;
    let question = question(address);
    let own = question.join(own).ok()?;
    let (path, before) = (own.path(), question.path());
    let mut found = address.clone();
    match path.starts_with(before) {
        true => found.set_path(path),
        false => found.set_path(&format!("{}{path}", before.trim_end_matches('/'))),
    }
    Some(found).filter(has_one)
}

/// Where the question for versions differs from the table: it changes nothing, and no mark is at fault.
static QUESTION: &[Meaning] = &[
    Meaning::of(|status| matches!(status, 401 | 403), Outcome::Refused, "credentials", Pause::LockedOut),
    Meaning::of(
        |status| matches!(status, 408 | 425 | 429 | 500..=599),
        Outcome::Unreachable,
        "unavailable",
        Pause::Wished,
    ),
    Meaning::of(|_| true, Outcome::Refused, "catalog", Pause::LockedOut),
];

/// The outcome if the answer has no version that can be used: nothing of a mark was sent with the question.
pub(super) fn without(service: &Service, asked: &Url, status: u16, wish: Option<Duration>) -> Outcome {
    let advice = "the address has no version: put it there in the catalog, or set endpoint";
    let why = format!("{} at {asked} answered {status} and no list of versions; {advice}", service.who);
    meaning(QUESTION, status).outcome(&why, wish).map(Failure::unsent)
}

/// The outcome if there was no answer: nothing of a mark was sent with the question.
pub(super) fn unanswered(service: &Service, asked: &Url, fault: &Fault) -> Outcome {
    let at = format!("{} at {asked}", service.who);
    match fault.outcome().map(|failure| failure.at(&at).unsent()) {
        Outcome::Unknown(failure) => Outcome::Unreachable(failure),
        outcome => outcome,
    }
}

/// The outcome if the answer came too late for the mark that was allowed before it.
pub(super) fn late(service: &Service, asked: &Url) -> Outcome {
    let why = format!("{} at {asked} was slow to list its versions: the next attempt uses them", service.who);
    Outcome::Unreachable(Failure::new("unavailable", &why))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::catalog::INSTANCE_HA;
    use super::*;
    use crate::web::Why;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_a_version_or_has_none() {
        for with in ["http://h:15868/v1", "http://h/instance-ha/v1/4d43", "http://h/v2.1/", "http://h/V3/x"] {
            assert!(has_one(&url(with)), "{with}");
        }
        for without in [
            "http://h:15868",
            "http://v1/",
            "http://h/vault",
            "http://h/v/x",
            "http://h/v1.x",
            "http://h/av1",
        ] {
            assert!(!has_one(&url(without)), "{without}");
        }
    }

    fn document(id: &str, status: &str, href: &str) -> Value {
        json!({"versions": [
            {"id": "v0.1", "status": "DEPRECATED", "links": [{"rel": "self", "href": "http://h/v0.1/"}]},
            {"id": id, "status": status, "links": [{"rel": "describedby", "href": "http://docs/"}, {"rel": "self", "href": href}]}]})
    }

    /// The broken variants take the link as it stands, which leads past a proxy or nowhere, or the first version.
    #[test]
    fn the_current_version_is_at_the_catalogs_place() {
        for (address, href, expected) in [
            ("http://h:15868", "http://h:15868/v1/", "http://h:15868/v1/"),
            ("https://api.example", "http://10.0.0.1:15868/v1/", "https://api.example/v1/"),
            (
                "https://api.example/instance-ha",
                "http://10.0.0.1:15868/v1/",
                "https://api.example/instance-ha/v1/",
            ),
            (
                "https://api.example/instance-ha/",
                "https://api.example/instance-ha/v1/",
                "https://api.example/instance-ha/v1/",
            ),
            ("https://api.example/ha", "http://x/hav/v1", "https://api.example/ha/hav/v1"),
            ("http://h:8778", "/v1/", "http://h:8778/v1/"),
            ("http://h/clustering", "v1", "http://h/clustering/v1"),
            ("http://h/clustering", "/v1/", "http://h/clustering/v1/"),
            ("http://h", "//elsewhere/v1?x=y", "http://h/v1"),
        ] {
            let found = current(&url(address), &document("v1.0", "CURRENT", href));
            assert_eq!(found, Some(url(expected)), "{address} {href}");
        }
        let base = url("http://h");
        let values = json!({"versions": {"values": [{"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": "http://h/v3/"}]}]}});
        assert_eq!(current(&base, &values), Some(url("http://h/v3/")));
        let one = json!({"version": {"id": "v1.0", "status": "CURRENT"}});
        assert_eq!(current(&url("http://h/ha"), &one), Some(url("http://h/ha")), "a proxy hides it");
    }

    #[test]
    fn what_describes_no_current_version_is_not_used() {
        let without = [
            json!(null),
            json!({"versions": []}),
            json!({"versions": "v1"}),
            json!({"version": "1.0"}),
            document("v1.0", "SUPPORTED", "http://h/v1/"),
            document("v1.0", "CURRENT", "http://h/"),
            document("v1.0", "CURRENT", "http://["),
            json!({"versions": [{"status": "CURRENT", "links": [{"rel": "bookmark", "href": "http://h/v1/"}]}]}),
        ];
        for body in without {
            assert_eq!(current(&url("http://h"), &body), None, "{body}");
        }
    }

    /// The address is the one that was asked, and nothing counts as sent.
    #[test]
    fn an_answer_without_versions_names_the_address() {
        let asked = question(&url("http://h:15868"));
        for (status, words) in [
            (200, ("refused", "catalog")),
            (300, ("refused", "catalog")),
            (302, ("refused", "catalog")),
            (401, ("refused", "credentials")),
            (404, ("refused", "catalog")),
            (503, ("unreachable", "unavailable")),
        ] {
            let outcome = without(&INSTANCE_HA, &asked, status, None);
            assert_eq!(outcome.words(), words, "{status}");
            let failure = outcome.failure().unwrap();
            let said = format!("Masakari at http://h:15868/ answered {status}");
            assert!(failure.detail.contains(&said), "{failure:?}");
            assert!(failure.is_unsent || words.0 == "unreachable");
        }
        for fault in [Fault::Timeout, Fault::Closed, Fault::Unreached(Why::Dns, None)] {
            let outcome = unanswered(&INSTANCE_HA, &asked, &fault);
            assert_eq!(outcome.as_str(), "unreachable");
            assert!(outcome.failure().unwrap().detail.starts_with("Masakari at http://h:15868/: "));
        }
        assert_eq!(late(&INSTANCE_HA, &asked).as_str(), "unreachable");
    }
}
