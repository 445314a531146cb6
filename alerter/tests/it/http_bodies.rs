//! Bodies that operators' own systems take: against endpoints that are as strict as those.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use drivers::{Driver, Outcome, Step};
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::config::Site;
use crate::endpoint::Endpoint;
use crate::route::{SECRET, id, message, word};

const BACK: Timestamp = Timestamp(1_784_601_000_000);

fn mark() -> Mark {
    let row = samples::mark_of("compute1", Timestamp(1_784_600_000_999));
    Mark { id: id(), ..row.to_mark().unwrap() }
}

/// A configuration with a file that only its owner reads: `token`. DIR is its directory.
fn site(route: &str) -> Site {
    let site = Site::new("").with("token", SECRET);
    site.chmod("token", 0o600);
    let text = route.replace("DIR", &site.0.path().display().to_string());
    site.with("alerter.toml", text)
}

fn driver(site: &Site) -> Arc<dyn Driver> {
    Arc::clone(&site.settings().routes[0].driver)
}

async fn send(driver: &dyn Driver, step: Step, body: &[u8]) -> Outcome {
    driver.deliver(message(step, &id(), body)).await
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

/// Opsgenie's alerts, as far as its documentation is strict about what the example uses.
#[derive(Default)]
struct Opsgenie {
    open: BTreeMap<String, Value>,
}

impl Opsgenie {
    fn take(&mut self, line: &str, fields: &str, body: &[u8]) -> Result<(), String> {
        if !fields.lines().any(|field| field == format!("authorization: GenieKey {SECRET}")) {
            return Err("no key".to_owned());
        }
        let body: Value = serde_json::from_slice(body).map_err(|why| why.to_string())?;
        let path =
            line.strip_prefix("POST ").and_then(|line| line.strip_suffix(" HTTP/1.1")).ok_or("no POST")?;
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

/// The example of `docs/drivers/http.md` is what an operator copies: it opens an alert, once for each id.
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
    let test = &service.open[&id().to_string()];
    assert_eq!((&test["priority"], &test["message"]), (&json!("P5"), &json!("test: send-test.invalid")));
    assert_eq!(service.open.len(), 1);
}

/// S1-48: what belongs to one body is refused with another, and what a body needs is named.
#[test]
fn the_keys_of_the_bodies_are_checked() {
    let template = "template = \"{}\"\nbody = \"template\"";
    for keys in ["body = \"extended\"\ntime-format = \"rfc3339\"", template] {
        let site = site(&format!("[http.a]\nurl = \"https://h/\"\n{keys}\n"));
        assert_eq!(site.settings().own_routes().count(), 1, "{keys}");
    }
    for (keys, expected) in [
        ("body = \"template\"".to_owned(), "3:8: this body needs template: set it"),
        (
            "template = \"{}\"".to_owned(),
            "3:12: template has no effect with this body: set body = \"template\", or remove template",
        ),
        (
            "body = \"template\"\ntemplate = '{\"a\": \"{{ hostname }}\"}'".to_owned(),
            "4:12: it gives no body for the event \"host failure\": it is no JSON",
        ),
        (
            "body = \"template\"\ntemplate = '''\n{\n\"a\": {{ hostnam }}}'''".to_owned(),
            "4:12: it gives no body for the event \"host failure\": undefined value, in its line 2",
        ),
    ] {
        let problem = site(&format!("[http.a]\nurl = \"https://h/\"\n{keys}\n")).problem();
        assert!(problem.starts_with(&format!("alerter.toml:{expected}")), "{keys}\n{problem}");
    }
}
