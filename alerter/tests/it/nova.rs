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
use crate::route::{BODY, SHORT, word};

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

/// In one call: the host is taken for up until it is forced down, and Nova would wait for an answer of it.
#[tokio::test]
async fn it_is_disabled_with_a_reason_that_names_us_and_the_time() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = disabling(&cloud);
    assert_eq!(down(&driver).await, "acknowledged");
    let both = format!(r#"{{"forced_down":true,"status":"disabled","disabled_reason":"{}"}}"#, own());
    assert_eq!(cloud.room().bodies, [both]);
    assert_eq!(
        service(&cloud),
        Row { forced_down: true, disabled: Some(own()), ..row(HOST, "nova-compute") }
    );
}

/// The broken variant disables in any case, and its owner is not known any more.
#[tokio::test]
async fn what_somebody_else_disabled_keeps_its_reason() {
    for reason in ["alice: bad memory", ""] {
        let cloud = Cloud::with(Compute::new()).await;
        disable(&cloud, reason);
        let driver = disabling(&cloud);
        assert_eq!(down(&driver).await, "acknowledged");
        assert_eq!(service(&cloud).disabled.as_deref(), Some(reason));
        let careless = json!({"forced_down": true, "status": "disabled", "disabled_reason": own()});
        assert!(cloud.room().service.set(1, careless.as_object().unwrap()).is_none());
        assert_ne!(service(&cloud).disabled.as_deref(), Some(reason));
    }
}

#[tokio::test]
async fn a_host_may_have_another_name_there() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver =
        Nova::new(Options { host_name: WhichName::Node.into(), ..options(cloud.options()) }).unwrap();
    assert_eq!(down(&driver).await, "rejected unknown-host");
    cloud.room().service.rows.push(row("compute1", "nova-compute"));
    assert_eq!(down(&driver).await, "acknowledged");
    assert!(!service(&cloud).forced_down);
}

/// Nothing is changed before it is known whose service it is. The broken variant takes the first one.
#[tokio::test]
async fn a_host_without_exactly_one_service_waits_for_somebody() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = plain(&cloud);
    cloud.room().service.rows.push(row(HOST, "nova-compute"));
    assert_eq!(down(&driver).await, "rejected several-services");
    assert_eq!(back(&driver, &mark()).await.as_str(), "rejected");
    cloud.room().service.rows.retain(|row| row.host != HOST || row.binary != "nova-compute");
    assert_eq!(down(&driver).await, "rejected unknown-host");
    // Nova distinguishes capital letters from small ones.
    cloud.room().service.rows.push(row("compute1.my.cloud.com", "nova-compute"));
    assert_eq!(down(&driver).await, "rejected unknown-host");
    assert_eq!(cloud.count("PUT"), 0);
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

/// However the reading ends, nothing of the mark was sent.
#[tokio::test]
async fn a_lookup_that_fails_leaves_nothing_open() {
    for (whim, expected) in [
        (Whim::Close, "unreachable closed"),
        (Whim::HalfHeader, "unreachable closed"),
        (Whim::HalfBody, "retry protocol"),
        (Whim::Reset, "unreachable closed"),
        (Whim::Hang, "unreachable timeout"),
    ] {
        let cloud = Cloud::with(Compute::new()).await;
        let timeout = if matches!(whim, Whim::Hang) { SHORT } else { cloud.options().timeout };
        cloud.room().whims = vec![("GET", whim.clone())];
        let short = openstack::CloudOptions { timeout, ..cloud.options() };
        let driver = Nova::new(options(short)).unwrap();
        assert_eq!(down(&driver).await, expected, "{whim:?}");
        assert_eq!((cloud.count("PUT"), service(&cloud).forced_down), (0, false));
    }
}

#[tokio::test]
async fn every_error_has_its_word() {
    let named = |name: &str, message: &str| format!(r#"{{"{name}": {{"code": 1, "message": "{message}"}}}}"#);
    let flat = r#"{"message": "The server is currently unavailable.<br /><br />\n", "code": "503 Service Unavailable", "title": "Service Unavailable"}"#;
    let project = "Malformed request URL: URL's project_id 'a' doesn't match Context's project_id 'b'";
    for (method, status, body, expected, shown) in [
        ("GET", 400, named("badRequest", project), "refused misconfigured", "check endpoint and project"),
        ("GET", 404, String::new(), "refused misconfigured", "404"),
        ("GET", 500, named("computeFault", "Unexpected API Error."), "retry server-error", "Unexpected"),
        ("GET", 503, flat.to_owned(), "retry unavailable", "The server is currently unavailable."),
        ("GET", 200, "{}".to_owned(), "refused misconfigured", "no list of services"),
        ("GET", 302, String::new(), "refused redirect", "302"),
        ("PUT", 400, named("badRequest", "Invalid input"), "rejected rejected", "Invalid input"),
        (
            "PUT",
            404,
            named("itemNotFound", "Service x could not be found."),
            "retry conflict",
            "could not be found",
        ),
        ("PUT", 429, named("overLimit", "slower"), "retry throttled", "slower"),
        ("PUT", 500, named("computeFault", "Unexpected API Error."), "unknown server-error", "Unexpected"),
        ("PUT", 502, "<html>Bad Gateway</html>".to_owned(), "unknown server-error", "502"),
        ("PUT", 200, "null".to_owned(), "unknown protocol", "200"),
        ("PUT", 202, "{}".to_owned(), "unknown protocol", "202"),
    ] {
        let cloud = Cloud::with(Compute::new()).await;
        cloud.room().whims = vec![(method, Whim::Say(status, body))];
        let driver = plain(&cloud);
        let outcome = send(&driver, &driver.body(&mark()), 0).await;
        assert_eq!(word(&outcome), expected, "{method} {status}");
        let detail = outcome.failure().unwrap().detail.clone();
        assert!(detail.contains(shown), "{detail}");
    }
}

#[tokio::test]
async fn an_expired_token_is_replaced_once() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = plain(&cloud);
    assert_eq!(down(&driver).await, "acknowledged");
    cloud.site.state().expire_tokens();
    assert_eq!(down(&driver).await, "acknowledged");
    assert_eq!((cloud.count("GET"), cloud.count("PUT"), cloud.site.state().tokens_asked), (3, 2, 2));
    cloud.site.state().knows_no_token = true;
    assert_eq!(down(&driver).await, "refused credentials");
    assert_eq!((cloud.count("GET"), cloud.count("PUT")), (5, 2));
}

#[tokio::test]
async fn without_keystone_nova_is_not_asked() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = plain(&cloud);
    cloud.site.state().keystone_is_mute = true;
    assert_eq!(down(&driver).await, "unreachable keystone");
    cloud.site.state().keystone_is_mute = false;
    cloud.site.state().keystone_says = Some((503, String::new()));
    assert_eq!(down(&driver).await, "unreachable keystone");
    cloud.site.state().keystone_says = None;
    let nova = cloud.site.state().others.pop().unwrap();
    assert_eq!(down(&driver).await, "refused catalog");
    assert!(cloud.room().asked.is_empty());
    cloud.site.state().others.push(nova);
    // The broken variant goes on with the token that knows no Nova, for an hour.
    assert_eq!(down(&driver).await, "acknowledged");
}

#[tokio::test]
async fn a_wrong_role_parks_the_endpoint() {
    let cloud = Cloud::with(Compute::new()).await;
    cloud.room().service.is_reader = true;
    assert_eq!(down(&plain(&cloud)).await, "refused forbidden");
    assert_eq!((cloud.count("PUT"), cloud.site.state().tokens_asked), (0, 1));
}

/// The broken variant goes on with what an older Nova calls a service.
#[tokio::test]
async fn a_nova_that_is_too_old_is_not_changed() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = plain(&cloud);
    cloud.room().service.newest = 52;
    assert_eq!(down(&driver).await, "refused misconfigured");
    cloud.room().service.knows_no_versions = true;
    assert_eq!(down(&driver).await, "refused misconfigured");
    assert_eq!(cloud.count("PUT"), 0);
    cloud.room().service.knows_no_versions = false;
    cloud.room().service.newest = 53;
    assert_eq!(down(&driver).await, "acknowledged");
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

/// A mark that was made while the route had another driver: nobody guesses what it means.
#[tokio::test]
async fn the_message_of_another_driver_is_not_taken() {
    let cloud = Cloud::with(Compute::new()).await;
    assert_eq!(word(&send(&plain(&cloud), BODY, 0).await), "rejected rejected");
    assert!(cloud.room().asked.is_empty() && cloud.site.state().tokens_asked == 0);
}

#[tokio::test]
async fn what_was_done_is_undone_when_the_host_is_back() {
    let cloud = Cloud::with(Compute::new()).await;
    let before = service(&cloud);
    let driver = disabling(&cloud);
    assert_eq!(driver.further_steps(), [Step::Return]);
    assert_eq!(down(&driver).await, "acknowledged");
    assert_eq!(back(&driver, &mark()).await, acknowledged(&id_of(1)));
    assert_eq!(service(&cloud), before);
    // Nobody heard it: said again, there is nothing left to do.
    let puts = cloud.count("PUT");
    assert_eq!(back(&driver, &mark()).await, acknowledged(&format!("{} left-alone", id_of(1))));
    assert_eq!(cloud.count("PUT"), puts);
    let leaving = Nova::new(Options { up_when_returned: false, ..options(cloud.options()) }).unwrap();
    assert!(leaving.further_steps().is_empty());
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

/// The reason that was sent is ours, also when the route has another one by now, or disables nothing any more.
#[tokio::test]
async fn a_route_that_has_changed_undoes_what_it_did() {
    for now in [Some("nova-host-alerter, {failure_time}".to_owned()), None] {
        let cloud = Cloud::with(Compute::new()).await;
        let before = disabling(&cloud);
        let body = before.body(&mark());
        assert_eq!(word(&send(&before, &body, 0).await), "acknowledged");
        let changed = Nova::new(Options { disabled_reason: now, ..options(cloud.options()) }).unwrap();
        let step = changed.return_body(&mark(), &body, Timestamp::now());
        let outcome = send_step(&changed, Step::Return, &step, 0).await;
        assert_eq!(outcome, acknowledged(&id_of(1)));
        assert_eq!(service(&cloud), row(HOST, "nova-compute"));
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

#[tokio::test]
async fn a_host_with_evacuations_is_asked_for_again() {
    let cloud = Cloud::with(Compute::new()).await;
    let driver = disabling(&cloud);
    assert_eq!(down(&driver).await, "acknowledged");
    cloud.room().service.evacuated.push(HOST);
    let waits = back(&driver, &mark()).await;
    assert_eq!(word(&waits), "wait evacuations");
    assert_eq!(waits.failure().unwrap().after.unwrap().as_secs(), 60);
    assert!(service(&cloud).forced_down && service(&cloud).disabled.is_some());
    cloud.room().service.evacuated.clear();
    assert_eq!(back(&driver, &mark()).await, acknowledged(&id_of(1)));
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
