//! The `hypervisor` probe against a Nova that keeps to its contract, or does not.

use alerter::probes::{Confirm, Said, State};
use serde_json::{Value, json};

use crate::cloud::{Cloud, Service, Whim};
use crate::openstack::{Request, forbidden, http};
use crate::probes::host;
use crate::probes_keys::confirm;

const HOST: &str = "compute1.my.cloud.com";
const FRESH: &str = "2026-07-21T02:13:11.000000";
const OLD: &str = "2026-07-21T02:09:01.000000";

/// Nova's list of services, at 02:13:21 by its clock.
#[derive(Default)]
struct Compute {
    rows: Vec<Value>,
    is_reader_refused: bool,
    says_no_time: bool,
}

impl Service for Compute {
    const TYPE: &'static str = "compute";
    const BASE: &'static str = "/v2.1";

    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8> {
        assert_eq!((request.method.as_str(), path), ("GET", "/os-services"), "it only asks");
        assert_eq!(request.header("openstack-api-version"), Some("compute 2.53"));
        if self.is_reader_refused {
            return forbidden("os_compute_api:os-services:list");
        }
        let is_shown = |row: &&Value| request.query.iter().all(|(key, value)| row[key] == value.as_str());
        let shown: Vec<&Value> = self.rows.iter().filter(is_shown).collect();
        let date = if self.says_no_time { "" } else { "Date: Tue, 21 Jul 2026 02:13:21 GMT\r\n" };
        http(200, &json!({ "services": shown }).to_string(), date)
    }
}

fn row(host: &str, state: &str, forced_down: bool, updated_at: &str) -> Value {
    json!({"id": "b8f2a9d0-1111-4222-8333-000000000001", "binary": "nova-compute", "host": host, "zone": "nova",
        "status": "enabled", "state": state, "updated_at": updated_at, "disabled_reason": null, "forced_down": forced_down})
}

async fn cloud(rows: impl Into<Vec<Value>>) -> Cloud<Compute> {
    Cloud::with(Compute { rows: rows.into(), ..Compute::default() }).await
}

fn probe(cloud: &Cloud<Compute>, keys: &str) -> Confirm {
    let clouds = cloud.site.files.path("clouds.yaml").display().to_string();
    confirm(&format!(
        "[groups.r.confirm.hypervisor.nova]\nclouds-file = \"{clouds}\"\nretries = 2\nretry-interval = 0\n{keys}"
    ))
}

async fn ask(confirm: &Confirm) -> Said {
    let said = confirm.probes[0].ask(&host("compute1")).await;
    assert!(said.words.chars().all(|c| !c.is_control()), "{}", said.words);
    said
}

/// S0-18: Nova's own word counts, after all tries; it is asked for this host alone, and nothing is changed.
#[tokio::test]
async fn what_nova_sees_decides() {
    for (state, expected, words, tries) in [
        ("up", State::Healthy, "sees its nova-compute up in Nova", 1),
        ("down", State::Unhealthy, "sees its nova-compute down in Nova (3 tries)", 3),
    ] {
        let others = row("compute2.my.cloud.com", "up", false, FRESH);
        let cloud = cloud([row(HOST, state, false, FRESH), others]).await;
        let said = ask(&probe(&cloud, "")).await;
        assert_eq!((said.state, said.words.as_str()), (expected, words));
        let asked = cloud.room().asked.clone();
        let expected = format!("GET /v2.1/os-services?host={HOST}&binary=nova-compute");
        assert_eq!((asked.len(), asked.iter().all(|one| *one == expected)), (tries, true), "{asked:?}");
    }
}

/// S0-18: what somebody has set proves nothing, unless the service is silent by Nova's own clock.
///
/// The broken variant takes the state alone: it shows `down` in both.
#[tokio::test]
async fn a_service_that_is_forced_down_says_nothing_unless_it_is_silent() {
    for (updated_at, expected) in [(FRESH, State::Unknown), (OLD, State::Unhealthy)] {
        let row = row(HOST, "down", true, updated_at);
        let careless = if row["state"] == "down" { State::Unhealthy } else { State::Healthy };
        let said = ask(&probe(&cloud([row]).await, "")).await;
        assert_eq!((said.state, careless), (expected, State::Unhealthy), "{}", said.words);
    }
}

/// S0-18: what is not known neither confirms nor refuses. The broken variant takes each failure for a host that is down.
#[tokio::test]
async fn what_nova_does_not_say_is_not_known() {
    for rows in [vec![], vec![row("compute1", "down", false, OLD)], vec![row(HOST, "lost", false, OLD)]] {
        let said = ask(&probe(&cloud(rows).await, "")).await;
        assert_eq!(said.state, State::Unknown, "{}", said.words);
        assert!(said.words.starts_with("got no answer about it from Nova: "), "{}", said.words);
    }
    let (say, limit) = (|status| Whim::Say(status, "{}".to_owned()), "timeout = 1");
    for whim in [say(500), say(503), say(401), say(404), say(302), Whim::Reset, Whim::Hang, Whim::HalfBody] {
        let cloud = cloud([row(HOST, "down", false, OLD)]).await;
        cloud.room().whims = vec![("GET", whim.clone()); 9];
        let said = ask(&probe(&cloud, limit)).await;
        assert_eq!(said.state, State::Unknown, "{whim:?}: {}", said.words);
        let one_is_enough = cloud.count("GET") > 1;
        assert!(one_is_enough, "{whim:?}: it is asked again");
    }
    let cloud = cloud([row(HOST, "down", false, OLD)]).await;
    cloud.room().service.is_reader_refused = true;
    let said = ask(&probe(&cloud, "")).await;
    assert_eq!(said.state, State::Unknown);
    assert!(said.words.contains("403") && said.words.contains("role"), "{}", said.words);
    cloud.site.state().password = "another";
    cloud.site.state().expire_tokens();
    assert_eq!(ask(&probe(&cloud, "")).await.state, State::Unknown, "Keystone gives no token");
}

/// Which of its names Nova knows is said in the configuration.
#[tokio::test]
async fn a_host_is_asked_for_by_its_name_in_nova() {
    let cloud = cloud([row("compute1", "up", false, FRESH)]).await;
    assert_eq!(ask(&probe(&cloud, "host-name = \"node\"")).await.state, State::Healthy);
    assert_eq!(ask(&probe(&cloud, "host-name = \"fqdn\"")).await.state, State::Unknown);
}
