//! The `vitrage` driver against a Vitrage that keeps to its contract, or does not.

use std::collections::BTreeMap;

use drivers::vitrage::{Options, Vitrage, WhichName};
use drivers::{Driver, Step, openstack};
use marks::time::Timestamp;
use serde_json::Value;

use crate::check_online::found;
use crate::cloud::{Cloud, Service, Whim};
use crate::masakari_config::{one, route};
use crate::openstack::{AT, Request, error, http, mark, send, send_step};
use crate::route::{SECRET, SHORT, word};

/// Vitrage: its alarms by type and host, and what it dropped after its 200.
#[derive(Default)]
struct FakeVitrage {
    alarms: BTreeMap<(String, String), String>,
    dropped: Vec<Value>,
    is_reader: bool,
}

const DETAILS: [&str; 7] =
    ["hostname", "status", "source", "cause", "severity", "monitor_id", "monitor_event_id"];

impl FakeVitrage {
    /// As its datasource does: times of one form, and events of two types.
    fn take(&mut self, event: &Value) {
        let time = event["time"].as_str().unwrap();
        let is_time = jiff::civil::DateTime::strptime("%Y-%m-%dT%H:%M:%S.%f", time).is_ok();
        let kind = event["type"].as_str().unwrap().to_owned();
        if !is_time || !["compute.host.down", "compute.host.up"].contains(&kind.as_str()) {
            self.dropped.push(event.clone());
            return;
        }
        let key = (kind, event["details"]["hostname"].as_str().unwrap().to_owned());
        match event["details"]["status"].as_str().unwrap() {
            "up" => drop(self.alarms.remove(&key)),
            status => drop(self.alarms.insert(key, status.to_owned())),
        }
    }
}

impl Service for FakeVitrage {
    const TYPE: &'static str = "rca";
    const BASE: &'static str = "";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        if (request.method.as_str(), path) != ("POST", "/v1/event") || !request.query.is_empty() {
            return error(405, "error", "Method not allowed");
        }
        assert_eq!(request.header("content-type"), Some("application/json"));
        if self.is_reader {
            return error(403, "error", "You are not authorized to perform the requested action");
        }
        let event: Value = serde_json::from_slice(&request.body).unwrap();
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        if keys(&event) != ["details", "time", "type"]
            || keys(&event["details"]).iter().any(|key| !DETAILS.contains(&key.as_str()))
        {
            return error(400, "error", "unexpected key");
        }
        self.take(&event);
        http(200, "null", "")
    }
}

type Scene = Cloud<FakeVitrage>;

fn driver(scene: &Scene) -> Vitrage {
    let cloud = scene.options();
    Vitrage::new(Options { cloud, host_name: WhichName::Fqdn.into(), notifies_return: true }).unwrap()
}

async fn attempt(driver: &Vitrage) -> String {
    word(&send(driver, &driver.body(&mark()), 0).await)
}

fn key() -> (String, String) {
    ("compute.host.down".to_owned(), "Compute1.my.cloud.com".to_owned())
}

#[tokio::test]
async fn a_mark_becomes_an_alarm_and_a_return_ends_it() {
    let scene = Cloud::with(FakeVitrage::default()).await;
    let driver = driver(&scene);
    assert_eq!(attempt(&driver).await, "acknowledged");
    assert_eq!(scene.room().service.alarms[&key()], "down");
    assert_eq!(attempt(&driver).await, "acknowledged", "the same alarm once more");
    assert_eq!(scene.room().service.alarms.len(), 1);
    assert_eq!(driver.further_steps(), [Step::Return]);
    let body = driver.return_body(&mark(), &[], Timestamp::now());
    assert_eq!(word(&send_step(&driver, Step::Return, &body, 0).await), "acknowledged");
    assert!(scene.room().service.alarms.is_empty() && scene.room().service.dropped.is_empty());
}

/// Broken variants: a time with a zone, which Vitrage drops after its 200; and the type `compute.host.up`, which ends no alarm.
#[tokio::test]
async fn what_vitrage_cannot_read_is_lost() {
    let scene = Cloud::with(FakeVitrage::default()).await;
    let driver = driver(&scene);
    let body = String::from_utf8(driver.body(&mark())).unwrap();
    assert_eq!(word(&send(&driver, body.replace(".000000", "Z").as_bytes(), 0).await), "acknowledged");
    assert!(scene.room().service.alarms.is_empty());
    assert_eq!(scene.room().service.dropped.len(), 1);
    assert_eq!(attempt(&driver).await, "acknowledged");
    let up = String::from_utf8(driver.return_body(&mark(), &[], Timestamp::now())).unwrap();
    let up = up.replace("compute.host.down", "compute.host.up");
    assert_eq!(word(&send_step(&driver, Step::Return, up.as_bytes(), 0).await), "acknowledged");
    assert_eq!(scene.room().service.alarms.len(), 1);
}

#[tokio::test]
async fn a_test_is_no_alarm() {
    let scene = Cloud::with(FakeVitrage::default()).await;
    let driver = driver(&scene);
    let test = driver.test_body(&mark().id, Timestamp::from_seconds(AT));
    assert_eq!(word(&send(&driver, &test, 0).await), "acknowledged");
    let (alarms, dropped) = {
        let room = scene.room();
        (room.service.alarms.len(), room.service.dropped.len())
    };
    assert_eq!((alarms, dropped), (0, 1));
    assert_eq!(driver.check(&[]).await, Some(vec![]));
    assert_eq!(scene.count("POST"), 1);
    scene.room().service.is_reader = true;
    assert_eq!(word(&send(&driver, &test, 0).await), "refused forbidden");
}

#[tokio::test]
async fn every_error_has_its_word() {
    let scene = Cloud::with(FakeVitrage::default()).await;
    let driver = driver(&scene);
    for (status, expected) in [
        (400, "rejected rejected"),
        (401, "refused credentials"),
        (403, "refused forbidden"),
        (404, "unknown server-error"),
        (409, "retry conflict"),
        (429, "retry throttled"),
        (500, "unknown server-error"),
        (503, "retry unavailable"),
        (202, "unknown protocol"),
    ] {
        let says = format!(r#"{{"error": {{"message": "because of {SECRET} gAAAAAB"}}}}"#);
        let whim = ("POST", Whim::Say(status, says));
        scene.room().whims = if status == 401 { vec![whim.clone(), whim] } else { vec![whim] };
        assert_eq!(attempt(&driver).await, expected, "{status}");
    }
    assert!(scene.room().service.alarms.is_empty());
}

#[tokio::test]
async fn half_an_answer_is_none() {
    for (whim, expected) in [
        (Whim::Reset, "unknown closed"),
        (Whim::Close, "unknown closed"),
        (Whim::HalfHeader, "unknown closed"),
        (Whim::HalfBody, "unknown protocol"),
        (Whim::Say(200, "<html><body>It works!</body></html>".to_owned()), "unknown protocol"),
    ] {
        let scene = Cloud::with(FakeVitrage::default()).await;
        scene.room().whims = vec![("POST", whim.clone())];
        let driver = driver(&scene);
        assert_eq!(attempt(&driver).await, expected, "{whim:?}");
        assert_eq!(attempt(&driver).await, "acknowledged");
        assert_eq!(scene.room().service.alarms.len(), 1);
    }
    let scene = Cloud::with(FakeVitrage::default()).await;
    scene.room().whims = vec![("POST", Whim::Hang)];
    let cloud = openstack::CloudOptions { timeout: SHORT * 5, ..scene.options() };
    let driver =
        Vitrage::new(Options { cloud, host_name: WhichName::Node.into(), notifies_return: false }).unwrap();
    assert_eq!(attempt(&driver).await, "unknown timeout");
    assert_eq!(driver.further_steps(), []);
}

#[tokio::test]
async fn an_expired_token_is_replaced_and_without_keystone_nothing_is_sent() {
    let scene = Cloud::with(FakeVitrage::default()).await;
    let driver = driver(&scene);
    scene.site.state().keystone_is_mute = true;
    assert_eq!(attempt(&driver).await, "unreachable keystone");
    assert_eq!(scene.count("POST"), 0);
    scene.site.state().keystone_is_mute = false;
    assert_eq!(attempt(&driver).await, "acknowledged");
    scene.site.state().expire_tokens();
    assert_eq!(attempt(&driver).await, "acknowledged");
    assert_eq!(scene.count("POST"), 3, "one new token and one repetition");
}

#[test]
fn a_cloud_is_a_route() {
    let keys = "clouds-file = \"DIR/clouds.yaml\"\nhost-name = \"node\"\nwhen-returned = ";
    let settings = route("vitrage", &format!("{keys}\"up\""), &one()).settings();
    let driver = &settings.routes[0].driver;
    assert_eq!(
        (driver.kind(), driver.endpoint().as_str()),
        ("vitrage", "Vitrage of cloud one at https://k/v3")
    );
    assert_eq!(
        route("vitrage", &format!("{keys}\"healthy\""), &one()).problem(),
        "alerter.toml:4:17: unknown word; known are: \"leave\", \"up\""
    );
}

/// `check-config --online` tries token and catalog alone: an event would stay in Vitrage.
#[tokio::test]
async fn vitrage_is_found_and_sent_nothing() {
    let scene = Cloud::with(FakeVitrage::default()).await;
    let driver = driver(&scene);
    assert_eq!(found(&driver, &[]).await, Vec::<String>::new());
    scene.site.state().others.clear();
    scene.site.state().expire_tokens();
    let driver = self::driver(&scene);
    assert_eq!(found(&driver, &[]).await, ["catalog"]);
    assert!(scene.room().asked.is_empty());
}
