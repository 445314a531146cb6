//! When an endpoint rejects one host's mark, the others are sent as if it had not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marks::delivery::State;
use marks::id::MarkId;
use serde_json::{Value, json};

use crate::endpoint::{Endpoint, OK};
use crate::reload::said;
use crate::site::{Program, again, begun};

/// Answers by host, until others are put in their place; 200 where there is none.
type Answers = Arc<Mutex<BTreeMap<String, u16>>>;

/// A receiver that rejects these hosts.
async fn receiver(against: &[&str], status: u16) -> (Endpoint, Answers) {
    let answers: Answers =
        Arc::new(Mutex::new(against.iter().map(|host| ((*host).to_owned(), status)).collect()));
    let known = Arc::clone(&answers);
    let endpoint = Endpoint::acting(move |mut peer| {
        let known = Arc::clone(&known);
        async move {
            let Some(request) = peer.take_request().await else { return };
            let status = known.lock().unwrap().get(&host_in(&request)).copied();
            let status = status.map(|status| format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n"));
            peer.say(status.as_deref().map_or(OK, str::as_bytes)).await;
        }
    });
    (endpoint.await, answers)
}

/// The short name of the host that a message is about.
fn host_in(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let event: Value = serde_json::from_str(body).unwrap_or_default();
    event["payload"]["hostname"].as_str().unwrap_or_default().trim_end_matches(".x.y").to_owned()
}

/// How often each host was sent.
fn sent(endpoint: &Endpoint) -> BTreeMap<String, usize> {
    let mut sent = BTreeMap::new();
    endpoint.requests().iter().for_each(|request| *sent.entry(host_in(request)).or_default() += 1);
    sent
}

fn table(url: &str) -> String {
    format!("[http.r]\nurl = \"{url}\"\nallow-http = true\n")
}

fn fence_all(program: &Program, name: &str, count: usize) -> Vec<MarkId> {
    (1..=count).map(|number| program.fence(&format!("{name}-{number}"))).collect()
}

async fn all_are(program: &Program, marks: &[MarkId], state: &str) {
    for mark in marks {
        program.until(*mark, &format!("r {state}")).await;
    }
}

const BAD: [&str; 6] = ["bad-1", "bad-2", "bad-3", "bad-4", "bad-5", "bad-6"];

/// What seems a refusal of everybody, 403 or 404, and is about one host: another one shows it at once, and from then on it
/// is that host's matter. The broken variant leaves the endpoint alone for a minute, each time that the one is tried.
#[tokio::test]
async fn what_is_refused_of_one_host_alone_parks_nobody_else() {
    for status_code in [403, 404] {
        let (endpoint, _) = receiver(&["bad-1"], status_code).await;
        let program = Program::with(&table(&endpoint.url())).await;
        let bad = fence_all(&program, "bad", 1);
        all_are(&program, &bad, "parked").await;
        all_are(&program, &fence_all(&program, "good", 1), "acknowledged").await;
        // It was due again at once, and is put off by itself this time.
        said(&endpoint, 3).await;
        let is_put_off = |one: &Value| one["state"] == "parked" && one["attempts"] == 2;
        program.wait(async || is_put_off(&program.mark(bad[0]).await["deliveries"][0])).await;
        all_are(&program, &[program.fence("good-2")], "acknowledged").await;
        let wanted =
            [("bad-1", 2), ("good-1", 1), ("good-2", 1)].map(|(host, times)| (host.to_owned(), times));
        assert_eq!(sent(&endpoint), BTreeMap::from(wanted));
        let route = program.route("r").await;
        assert!(route["refuses"] == false && route["failing_since"].is_null(), "{route}");
    }
}

/// S3-50: a test message proves that there is a way, and not that a host's mark is taken.
#[tokio::test]
async fn a_test_message_does_not_say_that_all_is_well_where_hosts_are_rejected() {
    let (endpoint, _) = receiver(&BAD, 422).await;
    let program = Program::with(&table(&endpoint.url())).await;
    let test = async || {
        let answers = program.socket().post("/v1/send-test", json!({ "reason": "tests" })).await.unwrap();
        assert_eq!(answers[0]["accepted"], true, "{answers}");
        answers[0]["detail"].as_str().unwrap().to_owned()
    };
    let before = test().await;
    assert!(before.ends_with("may still be rejected"), "{before}");
    all_are(&program, &fence_all(&program, "bad", BAD.len()), "parked").await;
    let after = test().await;
    assert!(after.contains("bad-1, bad-2, bad-3, bad-4, bad-5 and 1 more"), "{after}");
}

/// P6: beside hosts whose rejected marks are all due again a new one has the next turn, and none of the others is left out. The broken
/// variant goes by age alone.
#[test]
fn a_new_mark_goes_before_all_that_were_rejected() {
    let hosts = ["bad1", "bad2", "bad3", "good", "late"];
    let (mut site, mut alerter) = begun(&hosts, "ctl1");
    hosts[..3].iter().for_each(|host| _ = site.outage(host, "ctl1"));
    alerter.take_in(&site);
    alerter.keep_up(&mut site);
    let rejected = again(State::Parked, false, ("rejected", "422"), site.now + Duration::from_secs(3600));
    for _ in &hosts[..3] {
        let due = alerter.begin(&site, "nova").unwrap();
        alerter.finish(&site, &due, &rejected);
    }
    site.advance(3601.0);
    hosts[3..].iter().for_each(|host| _ = site.outage(host, "ctl1"));
    alerter.pass(&mut site);
    let nova = site.notified.iter().filter(|one| one.route == "nova");
    let order: Vec<&str> = nova.map(|one| one.node.as_str()).collect();
    assert_eq!((&order[..2], order.len()), (&["good", "late"][..], 5), "{order:?}");
}
