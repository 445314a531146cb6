//! The `senlin` driver against a Senlin that keeps to its contract, or does not.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use drivers::senlin::{ByHost, Operation, Options, Recovery, Senlin, Targets, WhichName};
use drivers::{Driver, Outcome};
use marks::host::{HostName, HostPatterns};
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Room, Service, Whim, beside};
use crate::endpoint::Endpoint;
use crate::heat::reference;
use crate::masakari_config::{one, route};
use crate::openstack::{AT, Request, error, http, mark, send};
use crate::route::word;

const ONE: &str = "11111111-0000-4000-8000-000000000001";
const TWO: &str = "22222222-0000-4000-8000-000000000002";
const CLUSTER: &str = "33333333-0000-4000-8000-000000000003";

/// Senlin: what it has, and its actions: id, kind, target and time.
struct FakeSenlin {
    nodes: Vec<&'static str>,
    clusters: Vec<&'static str>,
    status: &'static str,
    actions: Vec<(String, String, String, i64)>,
    /// The newest microversion that it knows, behind the point.
    newest: u32,
}

fn absent(what: &str) -> Vec<u8> {
    let body = json!({"code": 404, "title": "Not Found", "explanation": "The resource could not be found.",
        "error": {"code": 404, "type": "ResourceNotFound", "message": format!("The {what} could not be found.")}});
    http(404, &body.to_string(), "")
}

impl FakeSenlin {
    fn new() -> Self {
        Self {
            nodes: vec![ONE, TWO],
            clusters: vec![CLUSTER],
            status: "ACTIVE",
            actions: Vec::new(),
            newest: 14,
        }
    }

    fn add(&mut self, kind: &str, target: &str, at: i64) -> String {
        let id = format!("7f3b-{}", self.actions.len());
        self.actions.push((id.clone(), kind.to_owned(), target.to_owned(), at));
        id
    }

    fn list(&self, query: &[(String, String)]) -> Vec<u8> {
        let [(target, id), (action, kind)] = query else { return error(400, "error", "Invalid parameter") };
        assert_eq!((target.as_str(), action.as_str()), ("target", "action"));
        let rows = self.actions.iter().filter(|row| row.1 == *kind && row.2 == *id);
        let row = |(id, kind, target, at): &(String, String, String, i64)| {
            let at = Timestamp::from_seconds(*at).rfc3339_seconds();
            json!({"id": id, "action": kind, "target": target, "status": "RUNNING", "created_at": at})
        };
        http(200, &json!({ "actions": rows.map(row).collect::<Vec<Value>>() }).to_string(), "")
    }

    /// Keys by microversion, as the real one: a stranger is refused.
    fn recover(&mut self, kind: &str, id: &str, request: &Request) -> Vec<u8> {
        let version =
            request.header("openstack-api-version").map(|v| v.strip_prefix("clustering 1.").unwrap());
        let version: u32 = version.map_or(0, |version| version.parse().unwrap());
        if version > self.newest {
            return error(406, "error", "API version is not supported");
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let recover = body["recover"].as_object().unwrap();
        let is_known = |key: &String| match key.as_str() {
            "operation" | "operation_params" => true,
            "check" => version >= 6,
            "check_capacity" => version >= 7 && kind == "CLUSTER_RECOVER",
            _ => false,
        };
        if body.as_object().unwrap().len() != 1 || !recover.keys().all(is_known) {
            return error(400, "error", "Action parameter is not recognizable.");
        }
        let action = self.add(kind, id, AT);
        http(202, &json!({ "action": action }).to_string(), &format!("Location: /v1/actions/{action}\r\n"))
    }
}

impl Service for FakeSenlin {
    const TYPE: &'static str = "clustering";
    const BASE: &'static str = "/v1";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["actions"]) => self.list(&request.query),
            ("GET", ["nodes", id]) if self.nodes.contains(id) => http(
                200,
                &json!({"node": {"id": id, "status": self.status, "physical_id": server(id)}}).to_string(),
                "",
            ),
            ("GET", ["clusters", id]) if self.clusters.contains(id) => {
                http(200, &json!({"cluster": {"id": id, "status": self.status}}).to_string(), "")
            }
            ("POST", ["nodes", id, "actions"]) if self.nodes.contains(id) => {
                self.recover("NODE_RECOVER", id, request)
            }
            ("POST", ["clusters", id, "actions"]) if self.clusters.contains(id) => {
                self.recover("CLUSTER_RECOVER", id, request)
            }
            _ => absent(path),
        }
    }
}

/// Nova: on which host each node's server is, as a pair.
struct FakeServers(Vec<(String, &'static str)>);

impl Service for FakeServers {
    const TYPE: &'static str = "compute";
    const BASE: &'static str = "/v2.1";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        if path == "/os-services" {
            let is_known = self.0.iter().any(|(_, host)| *host == request.query[0].1);
            let rows: Vec<Value> = is_known.then(|| json!({"id": 1})).into_iter().collect();
            return http(200, &json!({ "services": rows }).to_string(), "");
        }
        let id = path.trim_start_matches("/servers/");
        match self.0.iter().find(|server| server.0 == id) {
            Some((id, host)) => {
                let row = json!({"id": id, "OS-EXT-SRV-ATTR:host": host});
                http(200, &json!({ "server": row }).to_string(), "")
            }
            None => error(404, "itemNotFound", "Instance could not be found."),
        }
    }
}

/// The server of a node.
fn server(node: &str) -> String {
    node.replacen("0000", "5e5e", 1)
}

const HOST: &str = "Compute1.my.cloud.com";

struct Scene {
    cloud: Cloud<FakeSenlin>,
    nova: Arc<Mutex<Room<FakeServers>>>,
    _endpoint: Endpoint,
}

impl Deref for Scene {
    type Target = Cloud<FakeSenlin>;

    fn deref(&self) -> &Self::Target {
        &self.cloud
    }
}

/// Both nodes are on the host.
async fn scene() -> Scene {
    let cloud = Cloud::with(FakeSenlin::new()).await;
    let servers = [ONE, TWO].map(|node| (server(node), HOST)).to_vec();
    let (endpoint, nova) = beside(&cloud.site, FakeServers(servers)).await;
    Scene { cloud, nova, _endpoint: endpoint }
}

fn of_host(ids: &[&str]) -> ByHost<String> {
    let mut all = ByHost::default();
    all.add(HostPatterns::parse("compute1").unwrap(), ids.iter().map(|id| (*id).to_owned()).collect());
    all
}

fn recreate() -> Recovery {
    let operation = Operation::Recreate { delete_timeout: Some(60), force: Some(true) };
    Recovery { operation, check: Some(true), check_capacity: None }
}

fn driver(scene: &Scene, ids: &[&str]) -> Senlin {
    recovering(scene, Targets::Nodes(of_host(ids)), recreate())
}

fn recovering(scene: &Scene, targets: Targets, recovery: Recovery) -> Senlin {
    let (cloud, host_name) = (scene.options(), WhichName::Fqdn.into());
    Senlin::new(Options { cloud, host_name, targets, recovery }).unwrap()
}

async fn attempt(driver: &Senlin) -> Outcome {
    send(driver, &driver.body(&mark()), 0).await
}

/// S0-30, S0-32, S0-33: the operation and its parameters go on as they are configured.
#[tokio::test]
async fn the_nodes_of_a_host_are_recovered() {
    let scene = scene().await;
    let driver = driver(&scene, &[ONE, TWO]);
    assert_eq!(reference(&attempt(&driver).await), "7f3b-0 and 1 more");
    let bodies = scene.room().bodies.clone();
    assert_eq!(bodies.len(), 2);
    let expected = json!({"recover": {"operation": "RECREATE", "check": true,
        "operation_params": {"delete_timeout": 60, "force_recreate": true}}});
    for body in bodies {
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
    }
    let other = Mark { node: HostName::parse("compute2").unwrap(), ..mark() };
    assert_eq!(reference(&send(&driver, &driver.body(&other), 0).await), "nothing to recover");
}

/// Issue 22, 9: the map was true until the first recovery moved the server. The broken variant recreates it where it is well,
/// and its disk is lost.
#[tokio::test]
async fn a_node_that_has_moved_is_not_recovered() {
    let scene = scene().await;
    let driver = driver(&scene, &[ONE, TWO]);
    scene.nova.lock().unwrap().service.0[0].1 = "compute2.my.cloud.com";
    assert_eq!(reference(&attempt(&driver).await), "7f3b-0");
    assert_eq!(scene.room().service.actions[0].2, TWO);
    assert_eq!(scene.count("POST"), 1);
}

#[tokio::test]
async fn a_cluster_is_recovered_with_its_capacity() {
    let scene = scene().await;
    let recovery = Recovery { check_capacity: Some(true), ..recreate() };
    let targets = Targets::Clusters(of_host(&[CLUSTER]));
    let driver = recovering(&scene, targets, recovery);
    assert_eq!(reference(&attempt(&driver).await), "7f3b-0");
    assert_eq!(scene.room().service.actions[0].1, "CLUSTER_RECOVER");
    scene.room().service.actions.clear();
    scene.room().service.newest = 6;
    assert_eq!(word(&attempt(&driver).await), "refused misconfigured");
}

/// The broken variant asks once more, and what the first recovery has made is deleted again.
#[tokio::test]
async fn nothing_is_recovered_twice() {
    let scene = scene().await;
    for _ in 0..3 {
        assert_eq!(reference(&attempt(&driver(&scene, &[ONE])).await), "7f3b-0");
    }
    assert_eq!(scene.count("POST"), 1);
    // The second one failed at first: only it is asked for again.
    scene.room().whims = vec![("POST", Whim::Say(503, String::new()))];
    assert_eq!(word(&attempt(&driver(&scene, &[ONE, TWO])).await), "retry unavailable");
    assert_eq!(reference(&attempt(&driver(&scene, &[ONE, TWO])).await), "7f3b-0 and 1 more");
    assert_eq!(scene.room().service.actions.len(), 2);
}

/// Half of a list may hide the action that is there.
#[tokio::test]
async fn who_cannot_read_begins_nothing() {
    for (whim, expected) in [
        (Whim::HalfBody, "unknown protocol"),
        (Whim::Say(403, String::new()), "refused forbidden"),
        (Whim::Say(503, String::new()), "retry unavailable"),
        (Whim::Say(404, "{}".to_owned()), "refused misconfigured"),
    ] {
        let scene = scene().await;
        scene.room().whims = vec![("GET", whim.clone())];
        assert_eq!(word(&attempt(&driver(&scene, &[ONE])).await), expected, "{whim:?}");
        assert_eq!(scene.count("POST"), 0);
    }
}

/// A test reads everything that is configured and begins nothing.
#[tokio::test]
async fn a_test_only_reads() {
    let scene = scene().await;
    let driver = driver(&scene, &[ONE, TWO]);
    let test = driver.test_body(&mark().id, Timestamp::from_seconds(AT));
    assert_eq!(word(&send(&driver, &test, 0).await), "acknowledged");
    assert_eq!(scene.count("GET"), 4);
    assert_eq!(scene.count("POST"), 0);
    scene.room().service.nodes = vec![ONE];
    assert_eq!(word(&send(&driver, &test, 0).await), "rejected unknown-node");
    let found = driver.check(&[]).await.unwrap();
    assert_eq!(found.iter().map(|finding| finding.why.kind).collect::<Vec<_>>(), ["unknown-node"]);
    scene.room().service.nodes = vec![ONE, TWO];
    assert_eq!(driver.check(&[]).await, Some(vec![]));
    assert_eq!(scene.count("POST"), 0);
}

/// S0-31: an operation that does not exist, or has no such parameter, is a mistake of the configuration.
#[test]
fn each_mistake_has_its_sentence() {
    let nodes = format!("nodes = {{ compute1 = [\"{ONE}\"] }}");
    let clusters = format!("clusters = {{ compute1 = [\"{CLUSTER}\"] }}");
    let senlin = |keys: &str| route("senlin", &format!("clouds-file = \"DIR/clouds.yaml\"\n{keys}"), &one());
    for keys in [
        format!("{nodes}\noperation = \"reboot\"\nreboot-type = \"soft\"\ncheck = true"),
        format!("{nodes}\noperation = \"recreate\"\ndelete-timeout = 60\nforce-recreate = true"),
        format!("{clusters}\noperation = \"rebuild\"\ncheck-capacity = true"),
    ] {
        let settings = senlin(&keys).settings();
        let driver = &settings.routes[0].driver;
        let about = driver.about();
        assert_eq!((about.kind, about.endpoint.as_str()), ("senlin", "Senlin of cloud one at https://k/v3"));
    }
    for (keys, expected) in [
        (nodes.clone(), "1:9: [senlin.a] has no operation: set it to reboot, rebuild or recreate"),
        (
            "operation = \"rebuild\"".to_owned(),
            "1:9: [senlin.a] names nothing to recover: add a table nodes, or clusters",
        ),
        (
            format!("{nodes}\noperation = \"migrate\""),
            "4:13: unknown word; known are: \"reboot\", \"rebuild\", \"recreate\"",
        ),
        (
            format!("{nodes}\noperation = \"rebuild\"\nforce-recreate = true"),
            "5:18: does not belong to this operation: remove it, or change operation",
        ),
        (
            format!("{nodes}\noperation = \"rebuild\"\ncheck-capacity = true"),
            "5:18: is for clusters: remove it, or name clusters instead of nodes",
        ),
        (
            "nodes = { compute1 = [\"web\"] }\noperation = \"rebuild\"".to_owned(),
            "3:23: must be Senlin's id, a UUID",
        ),
    ] {
        assert_eq!(senlin(&keys).problem(), format!("alerter.toml:{expected}"), "{keys}");
    }
}
