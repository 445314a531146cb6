//! Bodies that operators' own systems take: against endpoints that are as strict as those.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use drivers::{Driver, Message, Outcome, Step};
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::config::Site;
use crate::endpoint::{Endpoint, OK};
use crate::route::{SECRET, id, word};

const KEY: &str = "0123456789abcdef0123456789ABCDEF";
const BACK: Timestamp = Timestamp(1_784_601_000_000);

fn mark() -> Mark {
    let row = samples::mark_of("compute1", Timestamp(1_784_600_000_999));
    Mark { id: id(), ..row.to_mark().unwrap() }
}

/// A configuration with files that only their owner reads: `key` and `token`. DIR is their directory.
fn site(route: &str) -> Site {
    let site = Site::new("").with("key", format!("{KEY}\n")).with("token", SECRET).with("short", "0123");
    ["key", "token", "short"].iter().for_each(|file| site.chmod(file, 0o600));
    let text = route.replace("DIR", &site.0.path().display().to_string());
    site.with("alerter.toml", text)
}

fn driver(site: &Site) -> Arc<dyn Driver> {
    Arc::clone(&site.settings().routes[0].driver)
}

async fn send(driver: &dyn Driver, step: Step, body: &[u8]) -> Outcome {
    driver.deliver(Message { step, id: &id(), body, ambiguous: 0, attempts: 1, is_released: false }).await
}

/// The failure, its repetition, the return and a test of a route; each has to be acknowledged.
async fn send_all(driver: &dyn Driver) {
    let failure = driver.body(&mark());
    for (step, body) in [
        (Step::Failure, failure.clone()),
        (Step::Failure, failure.clone()),
        (Step::Return, driver.return_body(&mark(), &failure, BACK)),
        (Step::Failure, driver.test_body(&id(), BACK)),
    ] {
        let outcome = send(driver, step, &body).await;
        assert_eq!(word(&outcome), "acknowledged", "{outcome:?}\n{}", String::from_utf8_lossy(&body));
    }
}

/// An endpoint that asks `judge` about each request's first line, header and body, and answers 202 or, with its reason, 400.
async fn judging(judge: impl FnMut(&str, &str, &[u8]) -> Result<(), String> + Send + 'static) -> Endpoint {
    let judge = Arc::new(Mutex::new(judge));
    Endpoint::acting(move |mut peer| {
        let judge = Arc::clone(&judge);
        async move {
            let request = peer.take_request().await.unwrap();
            let text = String::from_utf8(request).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let (line, fields) = head.split_once("\r\n").unwrap();
            let judged = (judge.lock().unwrap())(line, fields, body.as_bytes());
            let (status, said) = match judged {
                Ok(()) => ("202 Accepted", String::new()),
                Err(why) => ("400 Bad Request", why),
            };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{said}", said.len());
            peer.say(answer.as_bytes()).await;
        }
    })
    .await
}

/// A field's name, and whether a value can be its.
type Field = (&'static str, fn(&Value) -> bool);

/// The fields of an object: each known one with its type, and those that must be there.
fn checked<'v>(value: &'v Value, known: &[Field], needed: &[&str]) -> Result<&'v Map<String, Value>, String> {
    let fields = value.as_object().ok_or("no object")?;
    for (name, value) in fields {
        let (_, is_one) = known.iter().find(|(one, _)| one == name).ok_or(format!("unknown field {name}"))?;
        if !is_one(value) {
            return Err(format!("{name} has a wrong type or length"));
        }
    }
    match needed.iter().find(|name| !fields.contains_key(**name)) {
        Some(name) => Err(format!("{name} is missing")),
        None => Ok(fields),
    }
}

fn is_short(value: &Value, most: usize) -> bool {
    value.as_str().is_some_and(|text| (1..=most).contains(&text.chars().count()))
}

fn is_text(value: &Value) -> bool {
    is_short(value, usize::MAX)
}

/// PagerDuty's Events API v2, as its documentation has it.
#[derive(Default)]
struct PagerDuty {
    /// The open incidents, by the key that joins events.
    open: BTreeSet<String>,
    /// How often somebody was called.
    calls: usize,
}

impl PagerDuty {
    fn take(&mut self, body: &[u8]) -> Result<(), String> {
        let event: Value = serde_json::from_slice(body).map_err(|why| why.to_string())?;
        let is_key = |value: &Value| value.as_str().is_some_and(|key| key.len() == 32);
        let known: [Field; 8] = [
            ("routing_key", is_key),
            ("event_action", is_text),
            ("dedup_key", |value| is_short(value, 255)),
            ("payload", Value::is_object),
            ("client", is_text),
            ("client_url", is_text),
            ("links", Value::is_array),
            ("images", Value::is_array),
        ];
        let event = checked(&event, &known, &["routing_key", "event_action"])?;
        event.get("payload").map(payload).transpose()?;
        let key = event.get("dedup_key").and_then(Value::as_str).map(str::to_owned);
        match (event["event_action"].as_str(), key) {
            (Some("trigger"), key) if event.contains_key("payload") => {
                self.calls +=
                    usize::from(self.open.insert(key.unwrap_or_else(|| format!("new {}", self.calls))));
                Ok(())
            }
            (Some("resolve" | "acknowledge"), Some(key)) => {
                self.open.remove(&key);
                Ok(())
            }
            other => Err(format!("wrong or incomplete event_action: {other:?}")),
        }
    }
}

fn payload(payload: &Value) -> Result<(), String> {
    let is_severity =
        |value: &Value| ["critical", "error", "warning", "info"].iter().any(|word| value == word);
    let known: [Field; 8] = [
        ("summary", |value| is_short(value, 1024)),
        ("source", is_text),
        ("severity", is_severity),
        ("timestamp", |value| value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok())),
        ("component", is_text),
        ("group", is_text),
        ("class", is_text),
        ("custom_details", Value::is_object),
    ];
    checked(payload, &known, &["summary", "source", "severity"]).map(drop)
}

/// S1-18, S4-34: a failure opens one incident however often it arrives, the return closes it, and a test calls nobody.
#[tokio::test]
async fn pagerduty_has_one_incident_for_each_failure() {
    let service = Arc::new(Mutex::new(PagerDuty::default()));
    let seen = Arc::clone(&service);
    let endpoint = judging(move |_, _, body| seen.lock().unwrap().take(body)).await;
    let site = site(&format!(
        "[http.oncall]\nurl = \"{}\"\nbody = \"pagerduty\"\nrouting-key-file = \"DIR/key\"\nwhen-returned = \"notify\"\n",
        endpoint.url()
    ));
    let driver = driver(&site);
    let failure = driver.body(&mark());
    assert_eq!(word(&send(&*driver, Step::Failure, &failure).await), "acknowledged");
    assert_eq!(service.lock().unwrap().open, BTreeSet::from([id().to_string()]));
    send_all(&*driver).await;
    let service = service.lock().unwrap();
    assert_eq!((service.open.len(), service.calls), (0, 1));
}

/// The fake is strict: each of these would be a broken variant of the body.
#[test]
fn the_fake_of_pagerduty_rejects_what_the_service_rejects() {
    let good = || {
        json!({"routing_key": KEY, "event_action": "trigger", "dedup_key": "a",
        "payload": {"summary": "s", "source": "h", "severity": "critical"}})
    };
    let said = |event: &Value| PagerDuty::default().take(event.to_string().as_bytes());
    assert_eq!(said(&good()), Ok(()));
    for (place, value, why) in [
        ("/routing_key", json!("short"), "routing_key has a wrong type or length"),
        ("/routing_key", Value::Null, "routing_key has a wrong type or length"),
        ("/event_action", json!("open"), "wrong or incomplete event_action"),
        ("/payload/summary", json!("x".repeat(1025)), "summary has a wrong type or length"),
        ("/payload/severity", json!("fatal"), "severity has a wrong type or length"),
        ("/payload", json!({"summary": "s", "source": "h"}), "severity is missing"),
        ("/payload", json!({"summary": "s", "source": "h", "severity": "info", "x": 1}), "unknown field x"),
    ] {
        let mut event = good();
        *event.pointer_mut(place).unwrap() = value;
        assert!(said(&event).unwrap_err().contains(why), "{event}: {:?}", said(&event));
    }
    let without = json!({"event_action": "trigger", "payload": good()["payload"]});
    assert_eq!(said(&without), Err("routing_key is missing".to_owned()));
}

/// What is stored and shown has no integration key; what is sent has it, also in a return. Without it nothing is sent, and
/// a body of another form that was stored before goes without it.
#[tokio::test]
async fn an_integration_key_is_only_in_what_is_sent() {
    let endpoint = Endpoint::saying(OK).await;
    let site = site(&format!(
        "[http.oncall]\nurl = \"{}\"\nbody = \"pagerduty\"\nrouting-key-file = \"DIR/key\"\n",
        endpoint.url()
    ));
    let driver = driver(&site);
    let failure = driver.body(&mark());
    let back = driver.return_body(&mark(), &failure, BACK);
    let shown = format!("{driver:?} {}", driver.endpoint());
    for stored in [&failure, &back, &driver.test_body(&id(), BACK), &shown.into_bytes()] {
        assert!(!String::from_utf8_lossy(stored).contains(KEY));
    }
    assert_eq!(driver.secret_file(), Some(site.path("key").as_path()));
    send(&*driver, Step::Failure, &failure).await;
    send(&*driver, Step::Return, &back).await;
    send(&*driver, Step::Failure, br#"{"id":"of another form"}"#).await;
    let with_key = endpoint
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(request).contains(KEY))
        .collect::<Vec<_>>();
    assert_eq!(with_key, [true, true, false]);
    site.chmod("key", 0o644);
    assert_eq!(word(&send(&*driver, Step::Failure, &failure).await), "refused credentials");
    assert_eq!(endpoint.requests().len(), 3);
}

/// Opsgenie's alerts, as far as its documentation is strict about what the example uses.
#[derive(Default)]
struct Opsgenie {
    open: BTreeMap<String, Value>,
    closed: usize,
}

impl Opsgenie {
    fn take(&mut self, line: &str, fields: &str, body: &[u8]) -> Result<(), String> {
        if !fields.lines().any(|field| field == format!("authorization: GenieKey {SECRET}")) {
            return Err("no key".to_owned());
        }
        let body: Value = serde_json::from_slice(body).map_err(|why| why.to_string())?;
        let path =
            line.strip_prefix("POST ").and_then(|line| line.strip_suffix(" HTTP/1.1")).ok_or("no POST")?;
        if let Some(rest) = path.strip_prefix("/v2/alerts/") {
            let alias =
                rest.strip_suffix("/close?identifierType=alias").ok_or(format!("no such path {path}"))?;
            checked(&body, &[("user", is_text), ("source", is_text), ("note", is_text)], &[])?;
            self.closed += usize::from(self.open.remove(alias).is_some());
            return Ok(());
        }
        let known: [Field; 7] = [
            ("message", |value| is_short(value, 130)),
            ("alias", |value| is_short(value, 512)),
            ("description", is_text),
            ("tags", Value::is_array),
            ("details", |value| value.as_object().is_some_and(|all| all.values().all(is_text))),
            ("source", is_text),
            ("priority", |value| ["P1", "P2", "P3", "P4", "P5"].iter().any(|word| value == word)),
        ];
        let alert = checked(&body, &known, &["message"])?;
        let alias = alert.get("alias").and_then(Value::as_str).unwrap_or_default().to_owned();
        (path == "/v2/alerts")
            .then(|| self.open.insert(alias, body))
            .ok_or(format!("no such path {path}"))?;
        Ok(())
    }
}

/// The example of `docs/drivers/http.md` is what an operator copies: it opens an alert, once, and closes it where those close.
#[tokio::test]
async fn the_example_of_a_template_works() {
    let page = include_str!("../../../docs/drivers/http.md");
    let (_, rest) = page.split_once("```toml\n[http.opsgenie]").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let service = Arc::new(Mutex::new(Opsgenie::default()));
    let seen = Arc::clone(&service);
    let endpoint = judging(move |line, fields, body| seen.lock().unwrap().take(line, fields, body)).await;
    let example = example.replace("https://api.opsgenie.com", &format!("http://{}", endpoint.address));
    let example = example.replace("/etc/nova-host-alerter/opsgenie.key", "DIR/token");
    let site = site(&format!("[http.opsgenie]{example}"));
    let driver = driver(&site);
    let long = Mark { fqdn: marks::host::HostName::parse(&"a".repeat(250)).unwrap(), ..mark() };
    assert_eq!(word(&send(&*driver, Step::Failure, &driver.body(&long)).await), "acknowledged");
    send_all(&*driver).await;
    let service = service.lock().unwrap();
    assert_eq!(service.closed, 1);
    let test = &service.open[&id().to_string()];
    assert_eq!((&test["priority"], &test["message"]), (&json!("P5"), &json!("test: send-test.invalid")));
    assert_eq!(service.open.len(), 1);
}

/// S1-48: what belongs to one body is refused with another, and what a body needs is named.
#[test]
fn the_keys_of_the_bodies_are_checked() {
    let template = "template = \"{}\"\nbody = \"template\"";
    for keys in [
        "body = \"pagerduty\"\nrouting-key-file = \"DIR/key\"\ntime-format = \"rfc3339\"",
        "body = \"alertmanager\"\nwhen-returned = \"notify\"",
        template,
        &format!("{template}\nreturn-url = \"https://h:443/x/{{{{ id }}}}\"\nwhen-returned = \"notify\""),
    ] {
        let site = site(&format!("[http.a]\nurl = \"https://h/\"\n{keys}\n"));
        assert_eq!(site.settings().own_routes().count(), 1, "{keys}");
    }
    let returns = |url: &str| format!("{template}\nwhen-returned = \"notify\"\nreturn-url = \"{url}\"");
    for (keys, expected) in [
        ("body = \"pagerduty\"".to_owned(), "3:8: this body needs routing-key-file: set it"),
        ("body = \"template\"".to_owned(), "3:8: this body needs template: set it"),
        (
            "body = \"pagerduty\"\nrouting-key-file = \"DIR/short\"".to_owned(),
            "4:20: the integration key must have 32 letters and digits",
        ),
        (
            "routing-key-file = \"DIR/key\"".to_owned(),
            "3:20: routing-key-file has no effect with this body: set body = \"pagerduty\", or remove routing-key-file",
        ),
        (
            "body = \"pagerduty\"\nrouting-key-file = \"DIR/key\"\ntemplate = \"{}\"".to_owned(),
            "5:12: template has no effect with this body: set body = \"template\", or remove template",
        ),
        (
            "body = \"alertmanager\"\ntime-format = \"epoch\"".to_owned(),
            "4:15: time-format has no effect with this body: remove time-format",
        ),
        (
            "body = \"template\"\ntemplate = '{\"a\": \"{{ hostname }}\"}'".to_owned(),
            "4:12: it gives no body for the event \"host failure\": it is no JSON",
        ),
        (
            "body = \"template\"\ntemplate = '''\n{\n\"a\": {{ hostnam }}}'''".to_owned(),
            "4:12: it gives no body for the event \"host failure\": undefined value, in its line 2",
        ),
        (
            format!("{template}\nreturn-url = \"https://h/x\""),
            "5:14: return-url has no effect without when-returned = \"notify\": set both, or neither",
        ),
        (returns("https://other/x"), "6:14: must have the scheme, the host and the port of url"),
        (returns("http://h/x"), "6:14: must have the scheme, the host and the port of url"),
        (returns("https://h:444/x"), "6:14: must have the scheme, the host and the port of url"),
        (returns("https://h/{{ hostname }}"), "6:14: may have nothing in braces but {{ id }} and {{ key }}"),
        (
            returns("https://h/{% if id < '1' %}x{% endif %}"),
            "6:14: may have nothing in braces but {{ id }} and {{ key }}",
        ),
        (returns("https://h:{{ id }}/"), "6:14: may have {{ id }} and {{ key }} only behind its host"),
        (returns("/x"), "6:14: not a valid url"),
    ] {
        let problem = site(&format!("[http.a]\nurl = \"https://h/\"\n{keys}\n")).problem();
        assert!(problem.starts_with(&format!("alerter.toml:{expected}")), "{keys}\n{problem}");
    }
}

/// Alerts and incidents that nothing ends are worth a word; the broken variants are a route that sends returns, and bodies
/// that open nothing which we know.
#[test]
fn what_no_return_ends_is_warned_about() {
    let notify = "when-returned = \"notify\"\n";
    let (alerts, incidents) = ("nothing ends an alert", "nothing closes an incident");
    for (body, more, expected) in [
        ("alertmanager", "", Some(alerts)),
        ("alertmanager", notify, None),
        ("pagerduty", "routing-key-file = \"DIR/key\"\n", Some(incidents)),
        ("pagerduty", &format!("routing-key-file = \"DIR/key\"\n{notify}"), None),
        ("template", "template = \"{}\"\n", None),
        ("standard", "", None),
    ] {
        let site = site(&format!("[http.a]\nurl = \"https://h/\"\nbody = \"{body}\"\n{more}"));
        let driver = driver(&site);
        let warnings = driver.warnings();
        let starts = |expected: &str| warnings.len() == 1 && warnings[0].starts_with(expected);
        assert!(expected.map_or(warnings.is_empty(), starts), "{body}: {warnings:?}");
        assert_eq!(driver.refreshed().is_some(), body == "alertmanager");
    }
}
