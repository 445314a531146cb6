//! The `nova` driver against a Nova that keeps to its contract, or does not.

use drivers::nova::{Nova, Options};
use drivers::{Driver, Outcome, Step};
use drivers::{WhichName, openstack};
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::check_online::{found, named};
use crate::cloud::{Cloud, Service, Whim};
use crate::openstack::{AT, Request, error, http, mark, not_found, send, send_step};
use crate::route::{SHORT, word};

const HOST: &str = "Compute1.my.cloud.com";
/// How the reasons of this driver begin.
const WHO: &str = "nova-host-alerter: fenced, down since ";

/// A service that Nova has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    host: &'static str,
    binary: &'static str,
    forced_down: bool,
    disabled: Option<String>,
}

/// Nova's API as it was observed, of which only its services are there.
struct Compute {
    /// The newest version that it speaks: the part behind `2.`.
    newest: u32,
    /// It is older than versions are, and passes them over.
    knows_no_versions: bool,
    is_reader: bool,
    /// Hosts that were evacuated, and whose nova-compute was not started again.
    evacuated: Vec<&'static str>,
    rows: Vec<Row>,
}

fn row(host: &'static str, binary: &'static str) -> Row {
    Row { host, binary, forced_down: false, disabled: None }
}

fn id_of(n: usize) -> String {
    format!("b8f2a9d0-1111-4222-8333-{n:012}")
}

impl Service for Compute {
    const TYPE: &'static str = "compute";
    const BASE: &'static str = "/v2.1";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        let version = match self.version(request) {
            Ok(version) => version,
            Err(answer) => return answer,
        };
        let known = [
            "accept",
            "connection",
            "content-length",
            "content-type",
            "host",
            "openstack-api-version",
            "user-agent",
            "x-auth-token",
        ];
        request.only_headers(&known);
        match (request.method.as_str(), path.strip_prefix("/os-services")) {
            ("GET", Some("")) => self.list(request, version),
            ("PUT", Some(id)) if version >= 53 => self.update(request, id.trim_start_matches('/')),
            ("PUT", Some(_)) => error(400, "badRequest", "'host' is a required property"),
            _ => not_found(),
        }
    }
}

impl Compute {
    fn new() -> Self {
        let rows = vec![
            row("compute0.my.cloud.com", "nova-compute"),
            row(HOST, "nova-compute"),
            row(HOST, "nova-conductor"),
        ];
        Self { newest: 93, knows_no_versions: false, is_reader: false, evacuated: Vec::new(), rows }
    }

    fn version(&self, request: &Request) -> Result<u32, Vec<u8>> {
        let Some(asked) = request.header("openstack-api-version").filter(|_| !self.knows_no_versions) else {
            return Ok(1);
        };
        let minor = asked.strip_prefix("compute 2.").and_then(|minor| minor.parse().ok());
        let minor: u32 =
            minor.ok_or_else(|| error(400, "badRequest", "API Version String is of invalid format."))?;
        let new = "Version is not supported by the API.";
        if minor <= self.newest { Ok(minor) } else { Err(error(406, "computeFault", new)) }
    }

    fn shown(&self, n: usize, version: u32) -> Value {
        let Row { host, binary, forced_down, disabled } = &self.rows[n];
        let status = if disabled.is_some() { "disabled" } else { "enabled" };
        let reason = disabled.clone().filter(|reason| !reason.is_empty());
        let mut shown = json!({"id": n, "binary": binary, "host": host, "zone": "nova", "status": status, "state": "down",
            "updated_at": "2026-11-20T15:00:00.000000", "disabled_reason": reason});
        if version >= 11 {
            shown["forced_down"] = (*forced_down).into();
        }
        if version >= 53 {
            shown["id"] = id_of(n).into();
        }
        shown
    }

    fn list(&self, request: &Request, version: u32) -> Vec<u8> {
        if self.is_reader {
            return forbidden("list");
        }
        let is_shown = |row: &Row| {
            request.query.iter().all(|(key, value)| match key.as_str() {
                "host" => row.host == value,
                "binary" => row.binary == value,
                _ => panic!("unknown filter {key}"),
            })
        };
        let shown = (0..self.rows.len()).filter(|n| is_shown(&self.rows[*n])).map(|n| self.shown(n, version));
        http(200, &json!({ "services": shown.collect::<Vec<Value>>() }).to_string(), "")
    }

    /// In the order of the real one: media type, schema, policy, service, and what it is asked to be.
    fn update(&mut self, request: &Request, id: &str) -> Vec<u8> {
        if request.header("content-type") != Some("application/json") {
            return error(415, "badMediaType", "Unsupported Content-Type");
        }
        let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(&request.body) else {
            return error(400, "badRequest", "Malformed request body");
        };
        if let Some(why) = is_no_update(&body) {
            return error(400, "badRequest", &why);
        }
        if self.is_reader {
            return forbidden("update");
        }
        let Some(n) = (0..self.rows.len()).find(|n| id_of(*n) == id) else {
            return error(404, "itemNotFound", &format!("Service {id} could not be found."));
        };
        match self.set(n, &body) {
            Some(why) => error(400, "badRequest", &why),
            None => http(200, &json!({ "service": self.shown(n, 53) }).to_string(), ""),
        }
    }

    /// Why not, if not.
    fn set(&mut self, n: usize, body: &Map<String, Value>) -> Option<String> {
        let row = &self.rows[n];
        if row.binary != "nova-compute" {
            return Some(format!("Updating a {} service is not supported.", row.binary));
        }
        let mut after = row.clone();
        match body.get("status").and_then(Value::as_str) {
            Some("enabled") if body.contains_key("disabled_reason") => {
                return Some("Specifying 'disabled_reason' with status 'enabled' is invalid.".to_owned());
            }
            Some("enabled") => after.disabled = None,
            Some(_) => {
                let reason = body.get("disabled_reason").and_then(Value::as_str);
                after.disabled = Some(reason.unwrap_or_default().to_owned());
            }
            None => {}
        }
        if let Some(forced_down) = body.get("forced_down").and_then(Value::as_bool) {
            if !forced_down && self.evacuated.contains(&row.host) {
                return Some(format!(
                    "Unable to force up host {} as `done` evacuation migration records remain associated with the host. Ensure the compute service has been restarted, allowing these records to move to `completed` before retrying this request.",
                    row.host
                ));
            }
            after.forced_down = forced_down;
        } else if !body.contains_key("status") {
            return Some(
                "No updates were requested. Fields 'status' or 'forced_down' should be specified.".to_owned(),
            );
        }
        self.rows[n] = after;
        None
    }
}

fn forbidden(what: &str) -> Vec<u8> {
    error(
        403,
        "forbidden",
        &format!("Policy doesn't allow os_compute_api:os-services:{what} to be performed."),
    )
}

fn is_no_update(body: &Map<String, Value>) -> Option<String> {
    body.iter().find_map(|(key, value)| match (key.as_str(), value) {
        ("forced_down", Value::Bool(_)) => None,
        ("status", Value::String(status)) if ["enabled", "disabled"].contains(&status.as_str()) => None,
        ("disabled_reason", Value::String(reason)) if (1..=255).contains(&reason.chars().count()) => None,
        ("forced_down" | "status" | "disabled_reason", _) => {
            Some(format!("Invalid input for field/attribute {key}."))
        }
        _ => Some(format!("Additional properties are not allowed ('{key}' was unexpected)")),
    })
}

fn options(cloud: openstack::CloudOptions) -> Options {
    Options { cloud, host_name: WhichName::Fqdn.into(), disabled_reason: None, up_when_returned: true }
}

/// A route that only forces down.
fn plain(cloud: &Cloud<Compute>) -> Nova {
    Nova::new(options(cloud.options())).unwrap()
}

/// One that disables too.
fn disabling(cloud: &Cloud<Compute>) -> Nova {
    let disabled_reason = Some(format!("{WHO}{{failure_time}}"));
    Nova::new(Options { disabled_reason, ..options(cloud.options()) }).unwrap()
}

/// The service of the host that failed.
fn service(cloud: &Cloud<Compute>) -> Row {
    cloud.room().service.rows[1].clone()
}

fn disable(cloud: &Cloud<Compute>, reason: &str) {
    cloud.room().service.rows[1].disabled = Some(reason.to_owned());
}

/// The reason of the mark that is sent.
fn own() -> String {
    format!("{WHO}2026-07-21T02:13:20Z")
}

/// One attempt to report that the host is down.
async fn down(driver: &Nova) -> String {
    word(&send(driver, &driver.body(&mark()), 0).await)
}

/// One attempt to report that it is back.
async fn back(driver: &Nova, mark: &Mark) -> Outcome {
    send_step(driver, Step::Return, &driver.return_body(mark, &[], Timestamp::now()), 0).await
}

fn acknowledged(reference: &str) -> Outcome {
    Outcome::Acknowledged { reference: Some(reference.to_owned()) }
}

#[tokio::test]
async fn the_service_of_a_failed_host_is_forced_down() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = plain(&cloud);
    assert_eq!(send(&driver, &driver.body(&mark()), 0).await, acknowledged(&id_of(1)));
    let get = format!("GET /v2.1/os-services?host={HOST}&binary=nova-compute");
    assert_eq!(cloud.room().asked, [get, format!("PUT /v2.1/os-services/{}", id_of(1))]);
    assert_eq!(cloud.room().bodies, [r#"{"forced_down":true}"#]);
    let others = cloud.room().service.rows.iter().filter(|row| row.forced_down).count();
    assert_eq!((service(&cloud).forced_down, service(&cloud).disabled, others), (true, None, 1));
    assert_eq!(down(&driver).await, "acknowledged", "again");
}

/// S1-16: nobody knows whether Nova did it, and it may be said again.
#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_again() {
    for (whim, expected) in [
        (Whim::Close, "unknown closed"),
        (Whim::HalfHeader, "unknown closed"),
        (Whim::HalfBody, "unknown protocol"),
        (Whim::Reset, "unknown closed"),
        (Whim::Hang, "unknown timeout"),
    ] {
        let cloud = Cloud::with(Compute::new()).await;
        let timeout = if matches!(whim, Whim::Hang) { SHORT } else { cloud.options().timeout };
        let short = openstack::CloudOptions { timeout, ..cloud.options() };
        cloud.room().whims = vec![("PUT", whim.clone())];
        let reason = Some(format!("{WHO}{{failure_time}}"));
        let driver = Nova::new(Options { disabled_reason: reason, ..options(short) }).unwrap();
        assert_eq!(down(&driver).await, expected, "{whim:?}");
        assert_eq!(down(&disabling(&cloud)).await, "acknowledged", "{whim:?}");
        assert_eq!((service(&cloud).forced_down, service(&cloud).disabled), (true, Some(own())));
    }
}

/// A test message goes the whole way, and changes nothing.
#[tokio::test]
async fn a_test_changes_nothing() {
    let cloud = Cloud::with(Compute::new()).await;
    let before = cloud.room().service.rows.clone();
    let driver = disabling(&cloud);
    let test = driver.test_body(&mark().id, Timestamp::now());
    assert_eq!(word(&send(&driver, &test, 0).await), "acknowledged");
    assert_eq!(cloud.room().asked, ["GET /v2.1/os-services?host=send-test.invalid&binary=nova-compute"]);
    cloud.room().service.is_reader = true;
    assert_eq!(word(&send(&driver, &test, 0).await), "refused forbidden");
    assert_eq!(cloud.room().service.rows, before);
}

/// Only the reason of this very mark is ours to end. One broken variant enables whatever is disabled, another takes up what
/// an operator wants down.
#[tokio::test]
async fn what_somebody_else_changed_is_left_alone() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = disabling(&cloud);
    let noted = format!("{}; alice: wait", own());
    let earlier = format!("{WHO}2026-07-20T00:00:00Z");
    for reason in [Some("alice: bad memory"), Some(""), Some(&*earlier), Some(&*noted), None] {
        assert_eq!(down(&driver).await, "acknowledged");
        cloud.room().service.rows[1].disabled = reason.map(str::to_owned);
        let puts = cloud.count("PUT");
        let left = back(&driver, &mark()).await;
        assert_eq!(word(&left), "rejected not-ours", "{reason:?}");
        assert!(left.failure().unwrap().detail.contains("compute service set --up "), "{left:?}");
        assert_eq!((service(&cloud).disabled.as_deref(), service(&cloud).forced_down), (reason, true));
        assert_eq!(cloud.count("PUT"), puts);
        cloud.room().service.rows[1].forced_down = false;
        let left = acknowledged(&format!("{} left-alone", id_of(1)));
        assert_eq!(back(&driver, &mark()).await, left, "{reason:?}");
        cloud.room().service.rows[1].disabled = None;
    }
}

/// Issue 22, 7: a route that disables nothing leaves no reason, so it is unknown who forced the host down.
#[tokio::test]
async fn without_a_reason_it_is_left_and_said() {
    for reason in [None, Some("alice: bad memory")] {
        let cloud = Cloud::with(Compute::new()).await;
        let driver = plain(&cloud);
        assert_eq!(down(&driver).await, "acknowledged");
        if let Some(reason) = reason {
            disable(&cloud, reason);
        }
        assert_eq!(word(&back(&driver, &mark()).await), "rejected not-ours");
        assert!(service(&cloud).forced_down);
        cloud.room().service.rows[1].forced_down = false;
        assert_eq!(word(&back(&driver, &mark()).await), "acknowledged", "somebody has taken it up");
    }
}

/// The second outage takes the reason over, so that its own end enables the service, and that of the first does nothing: the
/// broken variant takes up a host that has failed again.
#[tokio::test]
async fn a_second_outage_is_ended_by_its_own_return() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = disabling(&cloud);
    let second = Mark { failure_time: Timestamp::from_seconds(AT + 600), ..mark() };
    for mark in [mark(), second.clone()] {
        assert_eq!(word(&send(&driver, &driver.body(&mark), 0).await), "acknowledged");
    }
    assert_eq!(service(&cloud).disabled.as_deref(), Some(&*format!("{WHO}2026-07-21T02:23:21Z")));
    assert_eq!(word(&back(&driver, &mark()).await), "rejected not-ours");
    assert!(service(&cloud).forced_down);
    assert_eq!(back(&driver, &second).await, acknowledged(&id_of(1)));
    assert_eq!(service(&cloud), row(HOST, "nova-compute"));
}

/// `check-config --online` names each host whose service could not be forced down, and forces none.
#[tokio::test]
async fn nova_says_which_hosts_it_does_not_know() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = plain(&cloud);
    let hosts = [
        named("compute1", HOST),
        named("compute2", "compute1.my.cloud.com"),
        named("compute0", "compute0.my.cloud.com"),
    ];
    assert_eq!(found(&driver, &hosts).await, ["compute2 unknown-host"]);
    assert_eq!(cloud.count("GET"), 2, "a test, and one list for however many hosts");
    cloud.room().service.newest = 50;
    assert_eq!(found(&driver, &hosts).await, ["misconfigured"]);
    cloud.room().service.newest = 93;
    cloud.room().service.is_reader = true;
    assert_eq!(found(&driver, &hosts).await, ["forbidden"]);
    assert_eq!(cloud.count("PUT"), 0);
}
