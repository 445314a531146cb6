//! The forms of a notice: the JSON for a driver, the line for the log, and the sentence about an end.

use marks::id::MarkId;
use marks::time::Timestamp;
use serde::Serialize;
use tracing::{info, warn};

use super::condition::{About, Key, Notice, State, printable};
use crate::problem::Condition;

/// Serialised in the order of its fields: the order is part of the contract.
#[derive(Serialize)]
struct NoticeBody<'a> {
    id: &'a MarkId,
    event_type: &'a str,
    version: &'a str,
    time: Timestamp,
    state: State,
    condition: &'a str,
    since: Timestamp,
    controller: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a str>,
    kind: &'a str,
    message: &'a str,
}

impl Notice {
    /// The same each time that it is sent.
    pub(super) fn id(&self, controller: &str) -> MarkId {
        MarkId::of_notice(controller, &format!("{} {} {}", self.key, self.since.0, self.state.as_str()))
    }

    /// The bytes for a driver: compact JSON.
    pub(super) fn body(&self, id: &MarkId, controller: &str) -> Vec<u8> {
        let About { kind, host, mark, route } = &self.about;
        let body = NoticeBody {
            id,
            event_type: "notice",
            version: "2.0",
            time: self.time,
            state: self.state,
            condition: self.key.what.as_str(),
            since: self.since,
            controller,
            host: host.as_deref(),
            mark: mark.as_deref(),
            route: route.as_deref(),
            kind,
            message: &self.message,
        };
        serde_json::to_vec(&body).expect("texts and numbers are always JSON")
    }

    /// A line of the log.
    pub(super) fn log(&self) {
        let (condition, About { kind, mark, host, route, .. }) = (self.key.what.as_str(), &self.about);
        let (mark, host, route) = (mark.as_deref(), host.as_deref(), route.as_deref());
        match self.state {
            State::Raised => warn!(condition, kind = kind.as_str(), mark, host, route, "{}", self.message),
            State::Cleared => info!(condition, kind = kind.as_str(), mark, host, route, "{}", self.message),
        }
    }
}

/// The sentence about the end of a condition.
pub(super) fn end(key: &Key, about: &About) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "?".to_owned());
    let (kind, host, route) = (&about.kind, name(&about.host), name(&about.route));
    let sentence = match key.what {
        Condition::Held => format!("{host} is not held as {kind} any more"),
        Condition::HeldBack => format!("no mark is held as {kind} for this reason any more"),
        Condition::Reminder => format!("the reminder of marks held as {kind} is a day old"),
        Condition::HeldMore => "each held mark has a notice of its own again".to_owned(),
        Condition::Rejected => {
            format!("route {route} has accepted the mark of {host}, or the mark was ended")
        }
        Condition::RejectedMore => "each rejected mark has a notice of its own again".to_owned(),
        Condition::Refused | Condition::Failing => {
            format!("route {route} accepts again, or has nothing left to deliver")
        }
        Condition::Quarantined => format!("the damaged row {} was repaired or ended", key.of),
        Condition::Expired => format!("the mark of {host} that came too late is a day old"),
        Condition::Cluster | Condition::Alerter => format!("it is over: {kind}"),
        Condition::Missing => format!("{host} is connected again, or was fenced"),
        Condition::Journal => "the journal can be written again".to_owned(),
        Condition::Stranded => {
            format!("no mark waits for route {route} any more, or the route is configured again")
        }
        Condition::Exhausted => {
            format!("route {route} has accepted the mark of {host}, or its chain was ended")
        }
    };
    printable(&sentence)
}

#[cfg(test)]
mod tests {
    use super::super::condition::MESSAGE;
    use super::*;

    fn notice(state: State) -> Notice {
        Notice {
            state,
            key: Key::new(Condition::Held, "01a1fdbf-0d60-71c8-80b2-0dca4f558146 no-fqdn"),
            since: Timestamp::from_seconds(1_795_258_518),
            time: Timestamp::from_seconds(1_795_258_520),
            about: About {
                kind: "no-fqdn".into(),
                host: Some("compute1".into()),
                mark: Some("01a1fdbf-0d60-71c8-80b2-0dca4f558146".into()),
                route: None,
            },
            message: "compute1 is held (no-fqdn) since 2026-11-21 10:55:18Z: the full name is not known; set [hosts] domain, or the host's full name in [hosts.names] of /etc/nova-host-alerter/alerter.toml; then run `nova-host-alerter reload`".into(),
        }
    }

    /// The example of docs/notices.md is what is sent.
    #[test]
    fn the_documented_example_is_what_is_sent() {
        let notice = notice(State::Raised);
        let body = notice.body(&notice.id("ctl1"), "ctl1");
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/notices.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        // On one line, as it is sent: the page breaks it for people.
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        let body = String::from_utf8(body).unwrap();
        assert!(plain(&docs).contains(&plain(&body)), "{body}");
    }

    /// A receiver knows a repetition by the id, and everything else by another one.
    #[test]
    fn an_id_belongs_to_one_condition_one_state_and_one_controller() {
        let raised = notice(State::Raised);
        assert_eq!(raised.id("ctl1"), Notice { message: "x".into(), ..raised.clone() }.id("ctl1"));
        let others = [
            notice(State::Cleared).id("ctl1"),
            raised.id("ctl2"),
            Notice { since: Timestamp(0), ..raised.clone() }.id("ctl1"),
            Notice { key: Key::new(Condition::Held, "other"), ..raised.clone() }.id("ctl1"),
        ];
        assert!(others.iter().all(|other| *other != raised.id("ctl1")));
    }

    #[test]
    fn a_sentence_is_one_short_printable_line() {
        let long = printable(&"a\r\n\u{1b}[31m".repeat(1000));
        assert_eq!(long.chars().count(), MESSAGE);
        assert!(long.chars().all(|c| !c.is_control()));
        for (what, _) in Condition::ALL {
            let key = Key::new(what, "x\ny".repeat(1000));
            let about = About { kind: "k\n".repeat(1000), ..About::default() };
            let said = end(&key, &about);
            assert!(said.chars().count() <= MESSAGE && said.chars().all(|c| !c.is_control()), "{said}");
        }
    }
}
