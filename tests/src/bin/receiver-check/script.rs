//! What `receiver-check` sends: each check with its messages, and with what must come of them. Pure.

use std::time::Duration;

use drivers::Step;
use drivers::event::{Event, TimeFormat};
use drivers::http::Signing;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Value, json};

/// A signature that is so far from now proves nothing; receivers of Standard Webhooks allow five minutes.
const TOO_FAR: Duration = Duration::from_secs(600);
/// A failure is sent as long as nobody has acknowledged it.
const DAYS: Duration = Duration::from_secs(3 * 86_400);
/// So many messages come between a message and its late repetition.
const BETWEEN: usize = 32;
/// The size of an extension, in bytes: twice that of an event without one.
const LONG: usize = 4096;

/// One check: messages to one receiver, in this order.
pub(super) struct Check {
    /// Its name.
    pub(super) name: &'static str,
    /// What is sent, and what is expected.
    pub(super) says: &'static str,
    /// The messages.
    pub(super) sends: Vec<Sending>,
    /// What the receiver must have acted upon afterwards: each of these once.
    pub(super) acts: Vec<Act>,
    /// What it may have acted upon besides, each once: a failure whose return came before it was begun is over.
    pub(super) may: Vec<Act>,
    /// The option without which it cannot be made.
    pub(super) needs: Option<&'static str>,
}

/// One message.
pub(super) struct Sending {
    pub(super) id: MarkId,
    pub(super) step: Step,
    pub(super) body: Vec<u8>,
    pub(super) how: How,
    pub(super) wants: Wants,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As a route sends it.
    Plain,
    /// At the same time as the next one.
    AtOnce,
    /// The connection is closed before the answer is read.
    Unread,
    /// Signed in this way.
    Signed(Signing),
    /// Without the bearer token.
    WithoutToken,
    /// With another bearer token.
    WrongToken,
}

/// Which answer is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// 2xx.
    Accepted,
    /// 400 or 422: this message is wrong, others are not.
    Rejected,
    /// Either.
    Ignored,
    /// 4xx that asks for no repetition.
    Denied,
    /// Nobody reads it.
    Nothing,
}

/// What a receiver must have acted upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) id: MarkId,
    pub(super) event_type: &'static str,
    pub(super) host: String,
}

/// What the script is made for.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) now: Timestamp,
    pub(super) format: TimeFormat,
    pub(super) signs: bool,
    pub(super) has_token: bool,
}

/// All checks; each has hosts of its own, so that none depends on another.
pub(super) fn all(given: Given, mut ids: impl FnMut() -> MarkId) -> Vec<Check> {
    let mut hosts = 1..;
    let mut outage = || outage(hosts.next().unwrap_or_default(), ids(), given.now);
    let mut checks = deliveries(given, &mut outage);
    checks.extend(outages(given, &mut outage));
    checks.extend(kinds(given, &mut outage));
    checks.extend(forms(given, &mut outage));
    checks.extend(strangers(given, &mut outage));
    checks
}

/// A failure of a host that cannot exist (RFC 2606).
fn outage(number: u32, id: MarkId, now: Timestamp) -> Mark {
    let host = |name: String| HostName::parse(&name).expect("letters, digits, hyphens and a dot");
    let failure_time = Timestamp::from_seconds(now.seconds().saturating_sub(1));
    Mark {
        id,
        node: host(format!("receiver-check-{number}")),
        fqdn: host(format!("receiver-check-{number}.invalid")),
        on_shared_storage: true,
        failure_time,
        generated_time: now,
    }
}

/// The same message once, twice, and again after its answer was lost.
fn deliveries(given: Given, outage: &mut impl FnMut() -> Mark) -> Vec<Check> {
    let [first, twice, at_once, lost, old] = [outage(), outage(), outage(), outage(), outage()];
    let many: Vec<Mark> = (0..=BETWEEN).map(|_| outage()).collect();
    let ago = |time: Timestamp| Timestamp::from_seconds((time - DAYS).seconds());
    let old = Mark { failure_time: ago(old.failure_time), generated_time: ago(old.generated_time), ..old };
    let failure = |mark| Sending::failure(mark, given);
    vec![
        Check::of("first", "a host failure: it is accepted (2xx) and acted upon once")
            .sends([failure(&first)])
            .acts([Act::failure(&first)]),
        Check::of(
            "duplicate",
            "a host failure, and the same bytes with the same key again: both are accepted, and acted upon once",
        )
        .sends([failure(&twice), failure(&twice)])
        .acts([Act::failure(&twice)]),
        Check::of(
            "at-once",
            "a host failure twice at the same time: both are accepted in the end, and acted upon once",
        )
        .sends([failure(&at_once).how(How::AtOnce), failure(&at_once)])
        .acts([Act::failure(&at_once)]),
        Check::of(
            "lost-answer",
            "a host failure, the connection closed before the answer is read, and the same again: it is accepted, and acted upon once",
        )
        .sends([failure(&lost).how(How::Unread).wants(Wants::Nothing), failure(&lost)])
        .acts([Act::failure(&lost)]),
        Check::of("old", "a failure of three days ago, which nobody has acknowledged since: it is accepted, and acted upon once")
            .sends([failure(&old)])
            .acts([Act::failure(&old)]),
        Check::of(
            "many",
            "failures of many hosts, and the first again: all are accepted, and each is acted upon once",
        )
        .sends(many.iter().chain(many.first()).map(failure).collect::<Vec<_>>())
        .acts(many.iter().map(Act::failure).collect::<Vec<_>>()),
    ]
}

/// Several outages of one host.
fn outages(given: Given, outage: &mut impl FnMut() -> Mark) -> Vec<Check> {
    let [one, late, cased] = [outage(), outage(), outage()];
    let again = |mark: &Mark, other: Mark| Mark { node: mark.node.clone(), fqdn: mark.fqdn.clone(), ..other };
    let (second, later) = (again(&one, outage()), again(&late, outage()));
    let cased = Mark { fqdn: upper_case(&cased.fqdn), ..cased };
    let failure = |mark| Sending::failure(mark, given);
    vec![
        Check::of(
            "second-outage",
            "two failures of one host, with two ids: both are accepted, and each is acted upon once",
        )
        .sends([failure(&one), failure(&second)])
        .acts([Act::failure(&one), Act::failure(&second)]),
        Check::of(
            "late-repetition",
            "a failure, a later one of the same host, and the first again: all are accepted, and each is acted upon once",
        )
        .sends([failure(&late), failure(&later), failure(&late)])
        .acts([Act::failure(&late), Act::failure(&later)]),
        Check::of(
            "upper-case",
            "a failure of a host whose name is in upper case: it is accepted, and acted upon once, for the host of this name in any case",
        )
        .sends([failure(&cased)])
        .acts([Act::failure(&cased)]),
    ]
}

fn upper_case(name: &HostName) -> HostName {
    HostName::parse(&name.as_str().to_ascii_uppercase()).expect("the same name in upper case")
}

/// The other types of events.
fn kinds(given: Given, outage: &mut impl FnMut() -> Mark) -> Vec<Check> {
    let [back, lone, late, test, unknown] = [outage(), outage(), outage(), outage(), outage()];
    let returned = |mark| Sending::returned(mark, given);
    let other = changed(&unknown, given, |event| event["event_type"] = json!("receiver check"));
    vec![
        Check::of(
            "returned",
            "a failure, the return of its host with the same id, and both again: all are accepted, and the return is taken once, for no failure; the failure once too, or not at all if its return came before it was begun",
        )
        .sends([
            Sending::failure(&back, given),
            returned(&back),
            returned(&back),
            Sending::failure(&back, given),
        ])
        .acts([Act { event_type: "host returned", ..Act::failure(&back) }])
        .may([Act::failure(&back)]),
        Check::of(
            "lone-return",
            "the return of a host whose failure did not come: it is accepted, and not acted upon",
        )
        .sends([returned(&lone)]),
        Check::of(
            "after-return",
            "the return of a host, and then the failure with the same id, which the network had delayed: both are accepted, and none is acted upon",
        )
        .sends([returned(&late), Sending::failure(&late, given)]),
        Check::of("test", "a test message: it is accepted, and not acted upon")
            .sends([Sending::of(&test, Event::of_test(&test.id, given.now, given.format).bytes())]),
        Check::of(
            "unknown-type",
            "an event type that does not exist: it is accepted, or rejected with 400 or 422, and not acted upon",
        )
        .sends([Sending::of(&unknown, other).wants(Wants::Ignored)]),
    ]
}

/// Other forms of an event.
fn forms(given: Given, outage: &mut impl FnMut() -> Mark) -> Vec<Check> {
    let [extended, minor, newer, half] = [outage(), outage(), outage(), outage()];
    let extension = Sending::of(&extended, Event::of_mark(&extended, given.format).extended());
    let longer = changed(&extended, given, |event| {
        event["nova-host-alerter"] = json!({"version": "1.1", "receiver_check": "x".repeat(LONG)});
    });
    let later = changed(&minor, given, |event| {
        event["version"] = json!("1.1");
        event["receiver_check"] = json!(true);
        event["payload"]["receiver_check"] = json!(true);
    });
    let version = changed(&newer, given, |event| event["version"] = json!("2.0"));
    let mut cut = Event::of_mark(&half, given.format).bytes();
    cut.truncate(cut.len() / 2);
    vec![
        Check::of(
            "extension",
            "an object \"nova-host-alerter\" in the event, and the same event with another such object, of 4 KiB: both are accepted, and acted upon once",
        )
        .sends([extension, Sending::of(&extended, longer)])
        .acts([Act::failure(&extended)]),
        Check::of(
            "minor-version",
            "version 1.1 with fields that version 1.0 does not have, at the top and in the payload: it is accepted, and acted upon once",
        )
        .sends([Sending::of(&minor, later)])
        .acts([Act::failure(&minor)]),
        Check::of("other-version", "version 2.0: it is rejected with 400 or 422, and not acted upon")
            .sends([Sending::of(&newer, version).wants(Wants::Rejected)]),
        Check::of("cut-off", "half of an event: it is rejected with 400 or 422, and not acted upon")
        .sends([Sending::of(&half, cut).wants(Wants::Rejected)]),
    ]
}

/// Messages of others, who have no secret.
fn strangers(given: Given, outage: &mut impl FnMut() -> Mark) -> Vec<Check> {
    let denied = |(name, says, signing)| {
        let sends = [Sending::failure(&outage(), given).how(How::Signed(signing)).wants(Wants::Denied)];
        Check::of(name, says).needs_secret(given).sends(sends)
    };
    let mut checks: Vec<Check> = [
        (
            "wrong-signature",
            "a signature of other bytes: it is denied with 4xx, and not acted upon",
            Signing::OfOtherBytes,
        ),
        (
            "old-signature",
            "a right signature that is ten minutes old: it is denied with 4xx, and not acted upon",
            Signing::Old(TOO_FAR),
        ),
        (
            "early-signature",
            "a right signature of ten minutes from now: it is denied with 4xx, and not acted upon",
            Signing::Early(TOO_FAR),
        ),
        ("no-signature", "no signature: it is denied with 4xx, and not acted upon", Signing::Absent),
    ]
    .map(denied)
    .into();
    checks.extend([
        forged_first(given, &outage()),
        two_signatures(given, &outage()),
        no_token(given, &outage()),
    ]);
    checks
}

/// What a stranger sent does not stand in the way of the sender's own message.
fn forged_first(given: Given, mark: &Mark) -> Check {
    let failure = || Sending::failure(mark, given);
    let forged = failure().how(How::Signed(Signing::OfOtherBytes)).wants(Wants::Denied);
    let says = "a failure with a signature of other bytes, and the same rightly signed: the first is denied with 4xx, the second is accepted and acted upon once";
    let check = Check::of("forged-first", says).needs_secret(given);
    check.sends([forged, failure()]).acts([Act::failure(mark)])
}

/// A secret is being replaced.
fn two_signatures(given: Given, mark: &Mark) -> Check {
    let says = "two signatures, the second one right: it is accepted, and acted upon once";
    let sends = [Sending::failure(mark, given).how(How::Signed(Signing::Second))];
    Check::of("two-signatures", says).needs_secret(given).sends(sends).acts([Act::failure(mark)])
}

fn no_token(given: Given, mark: &Mark) -> Check {
    let says = "a failure without the bearer token, with a wrong one, and with the right one: the first two are denied with 4xx, the third is accepted and acted upon once";
    let denied = |how| Sending::failure(mark, given).how(how).wants(Wants::Denied);
    let sends = [denied(How::WithoutToken), denied(How::WrongToken), Sending::failure(mark, given)];
    let needs = (!given.has_token).then_some("--bearer-file");
    Check { needs, ..Check::of("no-token", says).sends(sends).acts([Act::failure(mark)]) }
}

/// The event of a failure with something else in it.
fn changed(mark: &Mark, given: Given, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut event: Value =
        serde_json::from_slice(&Event::of_mark(mark, given.format).bytes()).expect("an event is JSON");
    change(&mut event);
    event.to_string().into_bytes()
}

impl Check {
    fn of(name: &'static str, says: &'static str) -> Self {
        Self { name, says, sends: Vec::new(), acts: Vec::new(), may: Vec::new(), needs: None }
    }

    fn needs_secret(self, given: Given) -> Self {
        Self { needs: (!given.signs).then_some("--secret-file"), ..self }
    }

    fn sends(self, sends: impl Into<Vec<Sending>>) -> Self {
        Self { sends: sends.into(), ..self }
    }

    fn acts(self, acts: impl Into<Vec<Act>>) -> Self {
        Self { acts: acts.into(), ..self }
    }

    fn may(self, acts: impl Into<Vec<Act>>) -> Self {
        Self { may: acts.into(), ..self }
    }
}

impl Sending {
    fn of(mark: &Mark, body: Vec<u8>) -> Self {
        Self { id: mark.id, step: Step::Failure, body, how: How::Plain, wants: Wants::Accepted }
    }

    fn failure(mark: &Mark, given: Given) -> Self {
        Self::of(mark, Event::of_mark(mark, given.format).bytes())
    }

    fn returned(mark: &Mark, given: Given) -> Self {
        let body = Event::of_return(mark, given.now, given.format).bytes();
        Self { step: Step::Return, ..Self::of(mark, body) }
    }

    fn how(self, how: How) -> Self {
        Self { how, ..self }
    }

    fn wants(self, wants: Wants) -> Self {
        Self { wants, ..self }
    }
}

impl Act {
    fn failure(mark: &Mark) -> Self {
        Self { id: mark.id, event_type: "host failure", host: mark.fqdn.as_str().to_owned() }
    }
}

#[cfg(test)]
mod tests {

    use marks::id::FencingId;

    use super::*;

    fn script() -> Vec<Check> {
        let given = Given {
            now: Timestamp(1_784_600_000_999),
            format: TimeFormat::Epoch,
            signs: true,
            has_token: false,
        };
        all(given, || MarkId::from(FencingId::generate()))
    }

    /// Nobody acts on a check for a real host: every name in every message ends with `.invalid` (RFC 2606).
    #[test]
    fn no_host_of_a_check_can_exist() {
        for sending in script().iter().flat_map(|check| &check.sends) {
            let text = String::from_utf8(sending.body.clone()).unwrap();
            let name = text.split(r#""hostname":""#).nth(1).and_then(|behind| behind.split('"').next());
            assert!(name.is_none_or(|name| name.to_ascii_lowercase().ends_with(".invalid")), "{text}");
        }
    }
}
