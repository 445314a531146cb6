//! The `mistral` driver against a Mistral that keeps to its contract, or does not.

use drivers::mistral::{Mistral, Options};
use drivers::{Driver, Outcome, openstack};
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::check_online::found;
use crate::cloud::{Cloud, Service, Whim};
use crate::openstack::{Request, mark, send};
use crate::route::{BODY, LONG, SHORT, id, word};

const NAME: &str = "host-evacuate";
const ID: &str = "b8f2a9d0-1111-4222-8333-444455556666";

/// Mistral's API as it was observed, with one workflow.
struct Engine {
    namespace: &'static str,
    /// What the workflow must be given, and may be given.
    inputs: (Vec<&'static str>, Vec<&'static str>),
    executions: Vec<Value>,
}

impl Service for Engine {
    const TYPE: &'static str = "workflowv2";
    const BASE: &'static str = "/v2";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        let known =
            ["accept", "connection", "content-length", "content-type", "host", "user-agent", "x-auth-token"];
        request.only_headers(&known);
        match (request.method.as_str(), path) {
            ("POST", "/executions") => self.start(request),
            ("GET", path) if path.starts_with("/workflows/") => {
                let namespace = request.query.iter().find(|(key, _)| key == "namespace");
                self.show(&path["/workflows/".len()..], namespace.map_or("", |(_, value)| value))
            }
            _ => fault(404, "Not Found"),
        }
    }

    /// The whole token comes back, in headers too.
    fn stranger(&self, token: &str) -> Vec<u8> {
        let why = format!("Failed to validate access token: {token}");
        let body = json!({"code": 401, "title": "Unauthorized", "description": why}).to_string();
        let headers = format!("Server-Error-Message: {why}\r\nWWW-Authenticate: Keystone uri=\"{why}\"\r\n");
        format!("HTTP/1.1 401 X\r\nContent-Type: application/json\r\n{headers}\r\n{body}").into_bytes()
    }
}

/// As Debian's packages answer: the body ends with the connection.
fn say(status: u16, body: &Value) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n\r\n{body}").into_bytes()
}

fn fault(status: u16, why: &str) -> Vec<u8> {
    say(status, &json!({"faultcode": "Client", "faultstring": why, "debuginfo": null}))
}

impl Engine {
    fn new() -> Self {
        let inputs = (vec!["search_opts"], vec!["on_shared_storage"]);
        Self { namespace: "", inputs, executions: Vec::new() }
    }

    fn knows(&self, name: &str, namespace: &str) -> bool {
        [NAME, ID].contains(&name) && namespace == self.namespace
    }

    fn missing(name: &str, namespace: &str) -> Vec<u8> {
        fault(404, &format!("Workflow not found [workflow_identifier={name}, namespace={namespace}]"))
    }

    fn show(&self, name: &str, namespace: &str) -> Vec<u8> {
        if !self.knows(name, namespace) {
            return Self::missing(name, namespace);
        }
        say(
            200,
            &json!({"id": ID, "name": NAME, "namespace": namespace, "input": "search_opts", "scope": "private"}),
        )
    }

    fn start(&mut self, request: &Request) -> Vec<u8> {
        if request.header("content-type") != Some("application/json") {
            return fault(415, "Unknown mimetype");
        }
        let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(&request.body) else {
            return fault(400, "Request is not in valid JSON format");
        };
        let keys = ["id", "workflow_id", "workflow_name", "workflow_namespace", "input", "description"];
        if let Some(key) = body.keys().find(|key| !keys.contains(&key.as_str())) {
            return fault(400, &format!("Unknown attribute: {key}"));
        }
        if let Some(there) = self.executions.iter().find(|execution| execution["id"] == body["id"]) {
            return say(201, there);
        }
        self.begin(&body)
    }

    fn begin(&mut self, body: &Map<String, Value>) -> Vec<u8> {
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = if body.contains_key("workflow_id") { text("workflow_id") } else { text("workflow_name") };
        let namespace = text("workflow_namespace");
        if !self.knows(name, namespace) {
            return Self::missing(name, namespace);
        }
        let given = body["input"].as_object().unwrap();
        let missing: Vec<_> = self.inputs.0.iter().filter(|key| !given.contains_key(**key)).collect();
        let is_meant = |key: &str| self.inputs.0.contains(&key) || self.inputs.1.contains(&key);
        let unexpected: Vec<_> = given.keys().filter(|key| !is_meant(key)).collect();
        if !missing.is_empty() || !unexpected.is_empty() {
            return fault(
                400,
                &format!("Invalid input [workflow={NAME}, missing={missing:?}, unexpected={unexpected:?}]"),
            );
        }
        let execution = json!({"id": body["id"], "workflow_id": ID, "workflow_name": NAME, "workflow_namespace": namespace,
            "state": "RUNNING", "input": body["input"].to_string(), "output": "{}", "params": "{}",
            "description": text("description"), "created_at": "2026-11-20 15:42:16", "project_id": "p"});
        self.executions.push(execution.clone());
        say(201, &execution)
    }
}

fn driver(cloud: &Cloud<Engine>) -> Mistral {
    Mistral::new(Options::of(cloud.options(), NAME)).unwrap()
}

async fn attempt(driver: &Mistral) -> String {
    word(&send(driver, &driver.body(&mark()), 0).await)
}

fn executions(cloud: &Cloud<Engine>) -> usize {
    cloud.room().service.executions.len()
}

/// S0-27, S1-43: with what the seed's script gives to its workflow.
#[tokio::test]
async fn a_mark_starts_an_execution_of_its_own_id() {
    let cloud = Cloud::with(Engine::new()).await;
    let driver = driver(&cloud);
    let body = driver.body(&mark());
    let outcome = send(&driver, &body, 0).await;
    assert_eq!(outcome, Outcome::Acknowledged { reference: Some(id().to_string()) });
    assert_eq!(cloud.room().asked, ["POST /v2/executions"]);
    assert_eq!(cloud.room().bodies, [String::from_utf8(body).unwrap()], "the stored bytes, and no others");
    let execution = cloud.room().service.executions[0].clone();
    let input: Value = serde_json::from_str(execution["input"].as_str().unwrap()).unwrap();
    assert_eq!(input, json!({"search_opts": {"host": "Compute1.my.cloud.com"}, "on_shared_storage": true}));
}

#[tokio::test]
async fn a_workflow_may_be_named_by_its_id_and_in_a_namespace() {
    let cloud = Cloud::with(Engine::new()).await;
    let by_id = Mistral::new(Options::of(cloud.options(), ID)).unwrap();
    assert_eq!(attempt(&by_id).await, "acknowledged");
    cloud.room().service = Engine { namespace: "ops", ..Engine::new() };
    assert_eq!(attempt(&by_id).await, "refused misconfigured");
    let options = Options { namespace: Some("ops".into()), ..Options::of(cloud.options(), NAME) };
    assert_eq!(attempt(&Mistral::new(options).unwrap()).await, "acknowledged");
}

/// However often it is said, and by every controller. The broken variant leaves the id to Mistral: as many executions as attempts.
#[tokio::test]
async fn a_repetition_starts_no_second_one() {
    let cloud = Cloud::with(Engine::new()).await;
    for _controller in 0..2 {
        let driver = driver(&cloud);
        for _attempt in 0..2 {
            assert_eq!(attempt(&driver).await, "acknowledged");
        }
    }
    assert_eq!(executions(&cloud), 1);
    let driver = driver(&cloud);
    let other = Mark { id: marks::id::MarkId::parse(ID).unwrap(), ..mark() };
    send(&driver, &driver.body(&other), 0).await;
    assert_eq!(executions(&cloud), 2, "the broken variant");
}

/// S1-16: nobody knows whether Mistral has it, and it may be said again.
#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_again() {
    for (whim, expected) in [
        (Whim::Close, "unknown closed"),
        (Whim::HalfHeader, "unknown closed"),
        (Whim::HalfBody, "unknown protocol"),
        (Whim::Reset, "unknown closed"),
        (Whim::Hang, "unknown timeout"),
        (Whim::Say(500, String::new()), "unknown server-error"),
        (Whim::Say(504, String::new()), "unknown server-error"),
    ] {
        let cloud = Cloud::with(Engine::new()).await;
        let timeout = if matches!(whim, Whim::Hang) { SHORT } else { LONG };
        cloud.room().whims = vec![("POST", whim.clone())];
        let short = openstack::CloudOptions { timeout, ..cloud.options() };
        assert_eq!(attempt(&Mistral::new(Options::of(short, NAME)).unwrap()).await, expected, "{whim:?}");
        assert_eq!(attempt(&driver(&cloud)).await, "acknowledged", "{whim:?}");
        assert_eq!(executions(&cloud), 1, "{whim:?}");
    }
}

/// The first attempt was lost, and its workflow has failed when the next one is shown it. A rerun ends that.
#[tokio::test]
async fn an_execution_that_failed_meanwhile_waits_for_somebody() {
    let cloud = Cloud::with(Engine::new()).await;
    cloud.room().whims = vec![("POST", Whim::Close)];
    let driver = driver(&cloud);
    assert_eq!(attempt(&driver).await, "unknown closed");
    for (state, expected) in [
        ("ERROR", "rejected execution-failed"),
        ("CANCELLED", "rejected execution-failed"),
        ("RUNNING", "acknowledged"),
        ("SUCCESS", "acknowledged"),
    ] {
        cloud.room().service.executions[0]["state"] = state.into();
        assert_eq!(attempt(&driver).await, expected, "{state}");
    }
    assert_eq!(executions(&cloud), 1);
}

/// Another execution than that of the mark acknowledges nothing.
#[tokio::test]
async fn somebody_elses_execution_is_no_answer() {
    let cloud = Cloud::with(Engine::new()).await;
    let other = json!({"id": ID, "workflow_name": NAME, "state": "RUNNING"}).to_string();
    cloud.room().whims = vec![("POST", Whim::Say(201, other))];
    assert_eq!(attempt(&driver(&cloud)).await, "unknown protocol");
}

#[tokio::test]
async fn every_error_has_its_word() {
    let fault = |why: &str| json!({"faultcode": "Client", "faultstring": why, "debuginfo": null}).to_string();
    for (status, body, expected, shown) in [
        (400, fault("Unknown attribute: x"), "rejected rejected", "Unknown attribute"),
        (403, fault("not allowed"), "refused forbidden", "not allowed"),
        (404, String::new(), "refused misconfigured", "names as Mistral"),
        (
            404,
            fault("Workflow not found [workflow_identifier=x]"),
            "refused misconfigured",
            "correct workflow and namespace",
        ),
        (409, fault("Duplicate entry"), "retry conflict", "Duplicate"),
        (415, fault("Unknown mimetype"), "refused misconfigured", "415"),
        (429, String::new(), "retry throttled", "429"),
        (500, fault("Maintenance"), "unknown server-error", "Maintenance"),
        (503, "<html>".to_owned(), "retry unavailable", "503"),
        (200, "{}".to_owned(), "unknown protocol", "200"),
        (302, String::new(), "refused redirect", "302"),
    ] {
        let cloud = Cloud::with(Engine::new()).await;
        cloud.room().whims = vec![("POST", Whim::Say(status, body))];
        let driver = driver(&cloud);
        let outcome = send(&driver, &driver.body(&mark()), 0).await;
        assert_eq!(word(&outcome), expected, "{status}");
        let detail = outcome.failure().unwrap().detail.clone();
        assert!(detail.contains(shown), "{detail}");
    }
}

/// The workflow decides what it is given.
#[tokio::test]
async fn an_input_that_does_not_fit_waits_for_somebody() {
    let cloud = Cloud::with(Engine::new()).await;
    cloud.room().service.inputs = (vec!["host"], vec![]);
    let driver = driver(&cloud);
    let outcome = send(&driver, &driver.body(&mark()), 0).await;
    assert_eq!((word(&outcome).as_str(), executions(&cloud)), ("rejected rejected", 0));
    let detail = outcome.failure().unwrap().detail.clone();
    assert!(detail.contains("missing=[\"host\"]") && detail.contains("search_opts"), "{detail}");
}

/// Mistral gives the whole token back when it refuses it: [`send`] searches for it in all that is shown.
#[tokio::test]
async fn an_expired_token_is_replaced_once() {
    let cloud = Cloud::with(Engine::new()).await;
    let driver = driver(&cloud);
    assert_eq!(attempt(&driver).await, "acknowledged");
    cloud.site.state().expire_tokens();
    assert_eq!(attempt(&driver).await, "acknowledged");
    assert_eq!((cloud.count("POST"), cloud.site.state().tokens_asked, executions(&cloud)), (3, 2, 1));
    cloud.site.state().knows_no_token = true;
    assert_eq!(attempt(&driver).await, "refused credentials");
    assert_eq!((cloud.count("POST"), cloud.site.state().tokens_asked), (5, 3));
}

#[tokio::test]
async fn without_keystone_mistral_is_not_asked() {
    let cloud = Cloud::with(Engine::new()).await;
    let driver = driver(&cloud);
    cloud.site.state().keystone_is_mute = true;
    assert_eq!(attempt(&driver).await, "unreachable keystone");
    cloud.site.state().keystone_is_mute = false;
    cloud.site.state().keystone_says = Some((503, String::new()));
    assert_eq!(attempt(&driver).await, "unreachable keystone");
    assert!(cloud.room().asked.is_empty());
    cloud.site.state().keystone_says = None;
    assert_eq!(attempt(&driver).await, "acknowledged");
}

/// A test message goes the whole way to the workflow, and starts nothing. The broken variant is the mark's own message.
#[tokio::test]
async fn a_test_starts_no_workflow() {
    let cloud = Cloud::with(Engine::new()).await;
    let driver = driver(&cloud);
    let test = driver.test_body(&mark().id, Timestamp::now());
    assert_eq!(word(&send(&driver, &test, 0).await), "acknowledged");
    assert_eq!(cloud.room().asked, [format!("GET /v2/workflows/{NAME}")]);
    assert_eq!(executions(&cloud), 0);
    cloud.room().service.namespace = "ops";
    assert_eq!(word(&send(&driver, &test, 0).await), "refused misconfigured");
    let options = Options { namespace: Some("ops".into()), ..Options::of(cloud.options(), NAME) };
    let inside = Mistral::new(options).unwrap();
    let test = inside.test_body(&mark().id, Timestamp::now());
    assert_eq!(word(&send(&inside, &test, 0).await), "acknowledged");
    assert_eq!(executions(&cloud), 0);
    assert_eq!((attempt(&inside).await.as_str(), executions(&cloud)), ("acknowledged", 1));
}

/// A mark that was made while the route had another driver: nobody guesses what it means.
#[tokio::test]
async fn the_message_of_another_driver_is_not_taken() {
    let cloud = Cloud::with(Engine::new()).await;
    assert_eq!(word(&send(&driver(&cloud), BODY, 0).await), "rejected rejected");
    assert!(cloud.room().asked.is_empty() && cloud.site.state().tokens_asked == 0);
}

/// `check-config --online` searches for the workflow, and starts nothing.
#[tokio::test]
async fn mistral_says_which_workflow_it_does_not_have() {
    let cloud = Cloud::with(Engine::new()).await;
    let driver = driver(&cloud);
    assert_eq!(found(&driver, &[]).await, Vec::<String>::new());
    cloud.room().service.namespace = "ops";
    assert_eq!(found(&driver, &[]).await, ["misconfigured"]);
    assert_eq!(executions(&cloud), 0);
}
