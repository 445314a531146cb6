//! What Nova sees of compute services: the question of the driver, and of who only wants to know. It changes nothing.

use std::time::Duration;

use marks::host::HostName;
use marks::time::Timestamp;

use super::answer::{self, List};
use super::service::{BINARY, VERSION};
use crate::driver::{Failure, Outcome};
use crate::kept::Unusable;
use crate::openstack::{COMPUTE, CloudOptions, Exchange, Session};
use crate::web::{Answer, Ask};

/// A service that is forced down is counted as down whatever it does. That it has not reported for so long, three times
/// Nova's own default, shows that it is.
const SILENCE: Duration = Duration::from_secs(180);
/// Our clock may be so far from Nova's, in seconds.
const CLOCKS: i64 = 120;

/// How Nova sees a compute service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It reports.
    Up,
    /// It does not report any more.
    Down,
    /// Somebody has forced it down, and it has not reported for a long time.
    ForcedDownAndSilent,
    /// Somebody has forced it down; that says nothing of the host.
    ForcedDown,
}

/// Nova's compute services, as a cloud shows them.
#[derive(Debug)]
pub struct Services {
    session: Session,
}

impl Services {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(cloud: CloudOptions) -> Result<Self, Unusable> {
        Ok(Self { session: Session::new(cloud, COMPUTE)? })
    }

    /// How Nova sees the compute service of a host.
    ///
    /// # Errors
    /// It is not known, with the reason.
    pub async fn of(&self, host: &HostName) -> Result<Seen, Failure> {
        let asked = services(self.session.exchange(), &of_host(host.as_str())).await;
        let seen = asked.and_then(|list| of_list(&list, host.as_str()));
        seen.map_err(|outcome| {
            outcome.failure().cloned().unwrap_or_else(|| Failure::new("protocol", "no answer"))
        })
    }
}

/// The question for a host's compute service.
pub(super) fn of_host(host: &str) -> [(&'static str, &str); 2] {
    [("host", host), ("binary", BINARY)]
}

/// Nova's services. The question changes nothing, so its outcome is never ambiguous.
pub(super) async fn services(exchange: Exchange<'_>, query: &[(&str, &str)]) -> Result<List, Outcome> {
    let ask = Ask::get("/os-services", query).in_version(Some(VERSION));
    answer::listed(&dated(exchange.send(&ask).await.map_err(Outcome::not_sent)?))
}

/// Some servers do not say when they answer: then it was by our clock, and perhaps earlier by theirs.
fn dated(answer: Answer) -> Answer {
    let by_ours = || Timestamp::now().seconds().saturating_sub(CLOCKS);
    let date = answer.date.or_else(|| Some(by_ours()));
    Answer { date, ..answer }
}

/// How the only service of a host is seen.
fn of_list(list: &List, host: &str) -> Result<Seen, Outcome> {
    let service = answer::the_one(list.of(host))?;
    match (service.state.as_deref(), service.forced_down) {
        (_, true) if list.silence_of(&service).is_some_and(|silence| silence > SILENCE) => {
            Ok(Seen::ForcedDownAndSilent)
        }
        (_, true) => Ok(Seen::ForcedDown),
        (Some("up"), false) => Ok(Seen::Up),
        (Some("down"), false) => Ok(Seen::Down),
        (_, false) => {
            let why = "Nova shows nova-compute neither as up nor as down";
            Err(Outcome::Retry(Failure::new("protocol", why)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "b8f2a9d0-1111-4222-8333-444455556666";
    /// 2026-07-21T02:13:21Z.
    const NOW: i64 = 1_784_600_001;

    fn shown(state: &str, forced_down: bool, updated_at: &str) -> Value {
        json!({"id": ID, "binary": "nova-compute", "host": "h", "status": "enabled", "state": state,
            "updated_at": updated_at, "disabled_reason": null, "forced_down": forced_down})
    }

    fn seen_at(date: Option<i64>, rows: &[Value]) -> Result<Seen, &'static str> {
        let answer = Answer { date, ..Answer::of(200, &json!({ "services": rows }).to_string(), None) };
        of_list(&answer::listed(&answer).unwrap(), "h").map_err(|outcome| outcome.words().1)
    }

    fn seen(row: Value) -> Result<Seen, &'static str> {
        seen_at(Some(NOW), &[row])
    }

    /// S0-18: what Nova sees counts; what somebody has set proves nothing.
    ///
    /// The broken variant takes the state alone: a host that somebody forced down would be confirmed while it runs.
    #[test]
    fn a_state_counts_unless_somebody_set_it() {
        let (fresh, old) = ("2026-07-21T02:13:20.000000", "2026-07-21T02:10:20.000000");
        assert_eq!(seen(shown("up", false, fresh)), Ok(Seen::Up));
        assert_eq!(seen(shown("down", false, fresh)), Ok(Seen::Down));
        assert_eq!(seen(shown("down", true, fresh)), Ok(Seen::ForcedDown));
        assert_eq!(seen(shown("down", true, old)), Ok(Seen::ForcedDownAndSilent));
        let careless = |row: &Value| if row["state"] == "down" { Seen::Down } else { Seen::Up };
        assert_ne!(Ok(careless(&shown("down", true, fresh))), seen(shown("down", true, fresh)));
    }

    /// The time of a report and the time of the answer are of Nova's clocks; without both nothing is silent.
    #[test]
    fn silence_is_measured_by_novas_own_clock() {
        let row = |at: &str| shown("down", true, at);
        assert_eq!(seen(row("2026-07-21T02:10:21")), Ok(Seen::ForcedDown), "just so long");
        assert_eq!(seen(row("2026-07-22T02:10:21")), Ok(Seen::ForcedDown), "in the future");
        assert_eq!(seen(row("yesterday")), Ok(Seen::ForcedDown));
        assert_eq!(seen_at(None, &[row("2020-01-01T00:00:00")]), Ok(Seen::ForcedDown));
    }
}
