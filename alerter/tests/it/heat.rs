//! The `heat` driver against a Heat and a Nova that keep to their contracts, or do not.

use std::sync::{Arc, Mutex, MutexGuard};

use drivers::heat::{ByHost, Heat, Options, Resource, Stack, WhichName};
use drivers::{Driver, Named, Outcome, Step, openstack};
use marks::host::{HostName, HostPatterns};
use marks::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::cloud::{Room, Service, Whim, beside};
use crate::endpoint::Endpoint;
use crate::openstack::{AT, Request, Site, error, forbidden, http, mark, send, send_step};
use crate::route::{LONG, word};

const BEFORE: &str = "2026-07-20T00:00:00Z";
const AFTER: &str = "2026-07-22T00:00:00Z";

/// A resource, with the stack that it is in.
#[derive(Clone, Debug)]
struct Row {
    stack: &'static str,
    name: &'static str,
    physical: &'static str,
    status: String,
    reason: String,
    made: &'static str,
    is_busy: bool,
    kind: &'static str,
}

fn row(stack: &'static str, name: &'static str, physical: &'static str) -> Row {
    let (status, reason) = ("CREATE_COMPLETE".to_owned(), "state changed".to_owned());
    Row { stack, name, physical, status, reason, made: BEFORE, is_busy: false, kind: "OS::Nova::Server" }
}

/// Heat: stacks, and which of them is within which.
struct FakeHeat {
    rows: Vec<Row>,
    within: Vec<(&'static str, &'static str)>,
}

fn absent(kind: &str) -> Vec<u8> {
    let body = json!({"code": 404, "title": "Not Found", "explanation": "The resource could not be found.",
        "error": {"type": kind, "traceback": null, "message": "The Resource (x) could not be found."}});
    http(404, &body.to_string(), "")
}

impl Row {
    fn shown(&self, address: &str) -> Value {
        json!({"resource_name": self.name, "logical_resource_id": self.name, "physical_resource_id": self.physical,
            "resource_status": self.status, "resource_status_reason": self.reason, "resource_type": self.kind,
            "creation_time": self.made, "updated_time": self.made, "required_by": [],
            "links": [{"href": format!("{address}/stacks/{}/resources/{}", self.stack, self.name), "rel": "self"},
                {"href": format!("{address}/stacks/{}", self.stack), "rel": "stack"}]})
    }
}

impl FakeHeat {
    fn is_in(&self, row: &Row, stack: &str) -> bool {
        row.stack == stack || self.within.iter().any(|(inner, outer)| row.stack == *inner && *outer == stack)
    }

    fn list(&self, stack: &str, request: &Request) -> Vec<u8> {
        if request.query != [("nested_depth".to_owned(), "16".to_owned())] {
            return error(400, "badRequest", "Invalid filter parameters");
        }
        if !self.rows.iter().any(|row| self.is_in(row, stack)) {
            return absent("EntityNotFound");
        }
        let rows = self.rows.iter().filter(|row| self.is_in(row, stack));
        let rows: Vec<Value> = rows.map(|row| row.shown("http://elsewhere/v1/4d43aa00")).collect();
        http(200, &json!({ "resources": rows }).to_string(), "")
    }

    fn patch(row: &mut Row, body: &[u8]) -> Vec<u8> {
        let wrong = || {
            http(
                400,
                r#"{"code": 400, "title": "Bad Request", "error": {"type": "HTTPBadRequest", "message": "Unexpected fields"}}"#,
                "",
            )
        };
        let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(body) else { return wrong() };
        let body: &Map<String, Value> = &body;
        let (true, Some(unhealthy), Some(reason)) = (
            body.len() == 2
                && ["mark_unhealthy", "resource_status_reason"].iter().all(|key| body.contains_key(*key)),
            body["mark_unhealthy"].as_bool(),
            body["resource_status_reason"].as_str(),
        ) else {
            return wrong();
        };
        if row.is_busy {
            return http(
                409,
                r#"{"code": 409, "title": "Conflict", "error": {"type": "ActionInProgress", "traceback": null, "message": "Stack web already has an action (UPDATE) in progress."}}"#,
                "",
            );
        }
        if unhealthy || row.status == "CHECK_FAILED" {
            row.status = if unhealthy { "CHECK_FAILED" } else { "CHECK_COMPLETE" }.to_owned();
            row.reason = reason.to_owned();
        }
        http(200, "null", "")
    }
}

impl Service for FakeHeat {
    const TYPE: &'static str = "orchestration";
    const BASE: &'static str = "/v1/4d43aa00";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["stacks", name, id, "resources"]) => self.list(&format!("{name}/{id}"), request),
            (method, ["stacks", name, id, "resources", which]) => {
                assert!(request.query.is_empty());
                let stack = format!("{name}/{id}");
                let is_it = |row: &&mut Row| row.stack == stack && [row.name, row.physical].contains(which);
                match (method, self.rows.iter_mut().find(is_it)) {
                    (_, None) => absent("EntityNotFound"),
                    ("GET", Some(row)) => {
                        http(200, &json!({ "resource": row.shown("http://h") }).to_string(), "")
                    }
                    ("PATCH", Some(row)) => Self::patch(row, &request.body),
                    _ => absent("HTTPNotFound"),
                }
            }
            _ => absent("HTTPNotFound"),
        }
    }
}

/// Nova: servers with their hosts, and compute services.
struct FakeNova {
    servers: Vec<(String, &'static str, &'static str)>,
    hosts: Vec<&'static str>,
    is_admin: bool,
    /// Some see all servers, without their hosts, whatever filter they ask for.
    shows_hosts: bool,
    /// However many are asked for.
    max_limit: usize,
    /// How much each tenant says of each of his servers, in bytes.
    metadata: usize,
}

impl FakeNova {
    fn list(&self, query: &[(String, String)]) -> Vec<u8> {
        let keys: Vec<&str> = query.iter().map(|(key, _)| key.as_str()).collect();
        let expected = ["all_tenants", "host", "limit", "marker"];
        assert!(keys.len() >= 3 && expected.starts_with(&keys), "{keys:?}");
        let (host, limit): (_, usize) = (&query[1].1, query[2].1.parse().unwrap());
        let limit = limit.min(self.max_limit);
        let is_there = |marker: &str| self.servers.iter().any(|server| server.0 == marker);
        if query.get(3).is_some_and(|(_, marker)| !is_there(marker)) {
            return error(400, "badRequest", "marker [x] not found");
        }
        let is_it = |server: &&(String, &str, &str)| !self.shows_hosts || server.1 == host;
        let all = self.servers.iter().filter(is_it);
        let all: Vec<_> = match query.get(3) {
            Some((_, marker)) => all.skip_while(|server| server.0 != *marker).skip(1).take(limit).collect(),
            None => all.take(limit).collect(),
        };
        let shown = |(id, host, created): &&(String, &str, &str)| {
            let mut row = json!({"id": id, "name": "s", "status": "ACTIVE", "created": created,
                "metadata": {"x": "x".repeat(self.metadata)}});
            if self.shows_hosts {
                row[HOST_KEY] = json!(host);
            }
            row
        };
        http(200, &json!({ "servers": all.iter().map(shown).collect::<Vec<_>>() }).to_string(), "")
    }
}

impl FakeNova {
    fn server(&self, id: &str) -> Vec<u8> {
        let Some((id, host, _)) = self.servers.iter().find(|server| server.0 == id) else {
            return error(404, "itemNotFound", "Instance could not be found.");
        };
        let mut row = json!({"id": id, "status": "ACTIVE"});
        if self.shows_hosts {
            row[HOST_KEY] = json!(host);
        }
        http(200, &json!({ "server": row }).to_string(), "")
    }
}

impl Service for FakeNova {
    const TYPE: &'static str = "compute";
    const BASE: &'static str = "/v2.1";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        if !self.is_admin {
            return forbidden("os_compute_api:servers:detail:get_all_tenants");
        }
        match (request.method.as_str(), path) {
            ("GET", "/servers/detail") => self.list(&request.query),
            ("GET", "/os-services") => {
                assert_eq!(request.query[1], ("binary".to_owned(), "nova-compute".to_owned()));
                let hosts = self.hosts.iter().filter(|host| **host == request.query[0].1);
                let rows: Vec<Value> = hosts.map(|host| json!({"host": host, "id": 1})).collect();
                http(200, &json!({ "services": rows }).to_string(), "")
            }
            ("GET", path) => self.server(path.trim_start_matches("/servers/")),
            _ => error(404, "itemNotFound", "no such thing"),
        }
    }
}

/// A cloud with Heat and Nova.
struct Scene {
    site: Site,
    heat: Arc<Mutex<Room<FakeHeat>>>,
    nova: Arc<Mutex<Room<FakeNova>>>,
    _endpoints: [Endpoint; 2],
}

const HOST: &str = "Compute1.my.cloud.com";
const HOST_KEY: &str = "OS-EXT-SRV-ATTR:host";

impl Scene {
    /// Two servers on the host, of which one is in a stack within a stack, and one elsewhere.
    async fn new() -> Self {
        let site = Site::new().await;
        let rows = vec![
            row("web/5e9a", "server", "aaaa-1"),
            row("web-group/5e9b", "0", "aaaa-2"),
            row("web-group/5e9b", "1", "bbbb-1"),
            row("db/6f00", "server", "bbbb-2"),
        ];
        let heat = FakeHeat { rows, within: vec![("web-group/5e9b", "web/5e9a")] };
        let server = |id: &str, host, made| (id.to_owned(), host, made);
        let servers = vec![
            server("aaaa-1", HOST, BEFORE),
            server("aaaa-2", HOST, BEFORE),
            server("bbbb-1", "compute0.my.cloud.com", BEFORE),
        ];
        let hosts = vec![HOST, "compute0.my.cloud.com"];
        let nova =
            FakeNova { servers, hosts, is_admin: true, shows_hosts: true, max_limit: 1000, metadata: 0 };
        let (first, heat) = beside(&site, heat).await;
        let (second, nova) = beside(&site, nova).await;
        Self { site, heat, nova, _endpoints: [first, second] }
    }

    fn heat(&self) -> MutexGuard<'_, Room<FakeHeat>> {
        self.heat.lock().unwrap()
    }

    fn nova(&self) -> MutexGuard<'_, Room<FakeNova>> {
        self.nova.lock().unwrap()
    }

    fn options(&self) -> Options {
        Options {
            cloud: openstack::CloudOptions { timeout: LONG, ..self.site.options() },
            host_name: WhichName::Fqdn.into(),
            resources: ByHost::default(),
            stacks: Vec::new(),
            unmark: true,
        }
    }

    /// A route whose configuration says which resources live where.
    fn mapped(&self, all: &[&str]) -> Heat {
        let mut resources = ByHost::default();
        let named = all.iter().map(|text| Resource::parse(text).unwrap()).collect();
        resources.add(HostPatterns::parse("compute1").unwrap(), named);
        Heat::new(Options { resources, ..self.options() }).unwrap()
    }

    /// A route that asks Nova.
    fn asking(&self) -> Heat {
        self.asking_of(&["web/5e9a", "db/6f00"])
    }

    fn asking_of(&self, all: &[&str]) -> Heat {
        let stacks = all.iter().map(|text| Stack::parse(text).unwrap()).collect();
        Heat::new(Options { stacks, ..self.options() }).unwrap()
    }

    /// Names and statuses of what is not as it was made.
    fn marked(&self) -> Vec<String> {
        let heat = self.heat();
        let changed = heat.service.rows.iter().filter(|row| row.status != "CREATE_COMPLETE");
        changed.map(|row| format!("{}/{} {}", row.stack, row.name, row.status)).collect()
    }

    /// So many servers of the host before those that matter.
    fn fill(&self, many: usize) {
        let many = (0..many).map(|n| (format!("many-{n}"), HOST, BEFORE));
        self.nova().service.servers.splice(0..0, many);
    }

    fn row(&self, physical: &str, change: impl FnOnce(&mut Row)) {
        change(self.heat().service.rows.iter_mut().find(|row| row.physical == physical).unwrap());
    }
}

async fn attempt(driver: &Heat) -> Outcome {
    send(driver, &driver.body(&mark()), 0).await
}

async fn back(driver: &Heat) -> Outcome {
    send_step(driver, Step::Return, &driver.return_body(&mark(), &[], Timestamp::now()), 0).await
}

pub(crate) fn reference(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Acknowledged { reference: Some(reference) } => reference,
        other => other.as_str(),
    }
}

const BOTH: [&str; 2] = ["web/5e9a/server", "web-group/5e9b/0"];

/// S2-2, S2-3, S2-7: each resource that the host maps to is patched, with the two keys and no other.
#[tokio::test]
async fn the_resources_of_a_host_are_marked() {
    let scene = Scene::new().await;
    let driver = scene.mapped(&BOTH);
    assert_eq!(reference(&attempt(&driver).await), "2 resources");
    assert_eq!(scene.marked(), ["web/5e9a/server CHECK_FAILED", "web-group/5e9b/0 CHECK_FAILED"]);
    let bodies = scene.heat().bodies.clone();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
    let body: Value = serde_json::from_str(&bodies[0]).unwrap();
    assert_eq!(body["mark_unhealthy"], true);
    assert!(body["resource_status_reason"].as_str().unwrap().contains(&mark().id.to_string()));
    assert_eq!(scene.nova().count("GET"), 2, "each server is asked for");
}

/// Issue 22, 9: the map was true until the server moved. The broken variant marks what lives elsewhere by now.
#[tokio::test]
async fn a_mapped_server_that_has_moved_is_left_alone() {
    let scene = Scene::new().await;
    let driver = scene.mapped(&BOTH);
    scene.nova().service.servers[0].1 = "compute0.my.cloud.com";
    assert_eq!(reference(&attempt(&driver).await), "1 resource, 1 left alone");
    assert_eq!(scene.marked(), ["web-group/5e9b/0 CHECK_FAILED"]);
    scene.nova().service.hosts.clear();
    assert_eq!(word(&attempt(&driver).await), "rejected unknown-host", "its name may be wrong");
    scene.nova().service.shows_hosts = false;
    assert_eq!(word(&attempt(&driver).await), "refused forbidden");
}

/// A host without a mapping waits for an operator, and keeps nothing else waiting.
#[tokio::test]
async fn a_mapped_resource_that_is_no_server_is_not_marked() {
    let scene = Scene::new().await;
    scene.row("aaaa-1", |row| row.kind = "OS::Cinder::Volume");
    let outcome = attempt(&scene.mapped(&BOTH)).await;
    assert_eq!(word(&outcome), "rejected not-a-server");
    let why = &outcome.failure().unwrap().detail;
    assert!(why.starts_with("the resource web/5e9a/resources/server is not a server"), "{why}");
    assert_eq!(scene.marked(), ["web-group/5e9b/0 CHECK_FAILED"]);
}

/// S2-14: the servers of the host, in the innermost stack and by what they are outside of Heat.
#[tokio::test]
async fn the_servers_of_a_host_are_found() {
    let scene = Scene::new().await;
    let driver = scene.asking();
    assert_eq!(reference(&attempt(&driver).await), "2 resources");
    assert_eq!(scene.marked(), ["web/5e9a/server CHECK_FAILED", "web-group/5e9b/0 CHECK_FAILED"]);
    let patched: Vec<String> =
        scene.heat().asked.iter().filter(|asked| asked.starts_with("PATCH")).cloned().collect();
    assert_eq!(
        patched,
        [
            "PATCH /v1/4d43aa00/stacks/web/5e9a/resources/aaaa-1",
            "PATCH /v1/4d43aa00/stacks/web-group/5e9b/resources/aaaa-2"
        ]
    );
}

/// A second attempt sends nothing more: what was repaired meanwhile is not marked again.
#[tokio::test]
async fn what_is_marked_is_not_marked_again() {
    let scene = Scene::new().await;
    for driver in [scene.mapped(&BOTH), scene.asking()] {
        assert_eq!(reference(&attempt(&driver).await), "2 resources");
    }
    assert_eq!(scene.heat().count("PATCH"), 2);
    // Heat has put others in their places, under the same names.
    scene.row("aaaa-1", |row| {
        (row.physical, row.made, row.status) = ("cccc-1", AFTER, "CREATE_COMPLETE".to_owned());
    });
    assert_eq!(reference(&attempt(&scene.mapped(&BOTH)).await), "1 resource, 1 left alone");
    assert_eq!(scene.heat().count("PATCH"), 2, "the broken variant marks the one that is well");
}

/// With a name that Nova does not know no server would ever be found.
#[tokio::test]
async fn a_host_that_nova_does_not_know_waits_for_somebody() {
    let scene = Scene::new().await;
    let stacks = vec![Stack::parse("web/5e9a").unwrap()];
    let driver = Heat::new(Options { stacks, host_name: WhichName::Node.into(), ..scene.options() }).unwrap();
    assert_eq!(word(&attempt(&driver).await), "rejected unknown-host");
    scene.nova().service.hosts.push("compute1");
    assert_eq!(reference(&attempt(&driver).await), "no resource");
}

/// Nova passes over a filter that the user may not have. The broken variant takes every server for one of the host.
#[tokio::test]
async fn servers_of_other_hosts_are_never_marked() {
    let scene = Scene::new().await;
    scene.nova().service.shows_hosts = false;
    assert_eq!(word(&attempt(&scene.asking()).await), "refused forbidden");
    scene.nova().service.is_admin = false;
    assert_eq!(word(&attempt(&scene.asking()).await), "refused forbidden");
    assert_eq!(scene.marked(), [""; 0]);
}

/// The broken variant takes a page that is not as long as it asked for, because of Nova's `max_limit`, for the last one.
#[tokio::test]
async fn a_short_page_is_not_the_last_one() {
    let scene = Scene::new().await;
    scene.fill(7);
    scene.nova().service.max_limit = 4;
    let first_page_alone =
        scene.nova().service.servers[..4].iter().any(|server| server.0.starts_with("aaaa"));
    assert!(!first_page_alone);
    assert_eq!(reference(&attempt(&scene.asking()).await), "2 resources");
}

/// A server's owner may write what he likes at it. The broken variant reads as much of the list as fits, and is
/// left with half of one, each time again.
#[tokio::test]
async fn servers_with_much_metadata_do_not_end_a_route() {
    let scene = Scene::new().await;
    scene.fill(2);
    scene.nova().service.metadata = 400 * 1024;
    assert_eq!(reference(&attempt(&scene.asking()).await), "2 resources");
    scene.nova().service.metadata = 1200 * 1024;
    let outcome = attempt(&scene.asking()).await;
    assert_eq!(word(&outcome), "unknown protocol");
    assert!(outcome.failure().unwrap().detail.contains("was cut off, even for one server"), "{outcome:?}");
}

/// The server that a page ended with is deleted before the next page is asked for: the list has to be read again.
#[tokio::test]
async fn a_list_that_lost_its_place_is_no_fault_of_the_mark() {
    let scene = Scene::new().await;
    let page = |status| {
        Whim::Say(status, r#"{"badRequest": {"code": 400, "message": "marker [x] not found"}}"#.to_owned())
    };
    let first = json!({"servers": [{"id": "gone", HOST_KEY: HOST, "created": BEFORE}]}).to_string();
    scene.nova().whims = vec![("GET", Whim::Say(200, first)), ("GET", page(400))];
    assert_eq!(word(&attempt(&scene.asking()).await), "retry conflict");
    scene.nova().whims = vec![("GET", page(400))];
    assert_eq!(word(&attempt(&scene.asking()).await), "rejected rejected", "nobody asked behind anything");
    assert_eq!(reference(&attempt(&scene.asking()).await), "2 resources");
}

/// What was deleted since needs nothing taken back, and nobody has to correct the route for it. The broken variant waits for
/// somebody, and leaves the others as they are.
#[tokio::test]
async fn a_stack_that_was_deleted_since_keeps_no_return() {
    let scene = Scene::new().await;
    let driver = scene.asking_of(&["db/6f00", "web/5e9a"]);
    assert_eq!(reference(&attempt(&driver).await), "2 resources");
    scene.heat().service.rows.retain(|row| row.stack != "db/6f00");
    assert_eq!(reference(&back(&driver).await), "2 resources, 1 left alone");
    assert_eq!(word(&attempt(&driver).await), "rejected unknown-stack");
}

/// S2-8: `false` is sent only to resources that got this mark's `true`.
#[tokio::test]
async fn a_host_that_is_back_has_its_resources_unmarked() {
    for is_asking in [false, true] {
        let scene = Scene::new().await;
        scene.row("bbbb-1", |row| row.status = "CHECK_FAILED".to_owned());
        let driver = if is_asking { scene.asking() } else { scene.mapped(&BOTH) };
        assert_eq!(driver.about().steps, [Step::Return]);
        assert_eq!(reference(&attempt(&driver).await), "2 resources");
        // Its server is elsewhere by now.
        scene.nova().service.servers.clear();
        scene.row("aaaa-2", |row| row.reason = "somebody checked it".to_owned());
        let outcome = back(&driver).await;
        assert!(reference(&outcome).starts_with("1 resource, "), "{outcome:?}");
        assert_eq!(
            scene.marked(),
            [
                "web/5e9a/server CHECK_COMPLETE",
                "web-group/5e9b/0 CHECK_FAILED",
                "web-group/5e9b/1 CHECK_FAILED"
            ]
        );
    }
}

/// A test reads everything that is configured and changes nothing.
#[tokio::test]
async fn a_test_only_reads() {
    let scene = Scene::new().await;
    for driver in [scene.mapped(&BOTH), scene.asking()] {
        let test = driver.test_body(&mark().id, Timestamp::from_seconds(AT));
        assert_eq!(word(&send(&driver, &test, 0).await), "acknowledged");
    }
    assert_eq!(scene.heat().count("GET"), 4);
    assert_eq!(scene.heat().count("PATCH"), 0);
    assert_eq!(scene.nova().count("GET"), 1);
    let hosts = [
        Named { node: mark().node, fqdn: mark().fqdn },
        Named { node: HostName::parse("ctl1").unwrap(), fqdn: HostName::parse("ctl1.my.cloud.com").unwrap() },
    ];
    let found = scene.asking().check(&hosts).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].why.kind, found[0].host.as_ref()), ("unknown-host", Some(&hosts[1].node)));
    assert_eq!(scene.mapped(&BOTH).check(&hosts).await, Some(vec![]));
    assert_eq!(scene.heat().count("PATCH"), 0);
    let wrong = scene.mapped(&["web/5e9a/sever"]);
    assert_eq!(wrong.check(&hosts).await.unwrap()[0].why.kind, "unknown-resource");
    let test = wrong.test_body(&mark().id, Timestamp::from_seconds(AT));
    assert_eq!(word(&send(&wrong, &test, 0).await), "rejected unknown-resource");
}
