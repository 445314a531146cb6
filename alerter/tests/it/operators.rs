//! Every request that changes something leaves a row in the history: who asked for it, and why.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::api::Server;
use crate::site::{deliveries, paths};

const WHY: &str = "because of the new switch";

/// Method, path, and the word of the history for it.
const ACTIONS: [(&str, &str, &str); 10] = [
    ("patch", "/v1/hosts/{host}", "marked-by-hand"),
    ("post", "/v1/retry", "retry"),
    ("post", "/v1/resume", "resumed"),
    ("patch", "/v1/marks/{id}", "confirmed"),
    ("post", "/v1/pause", "paused"),
    ("post", "/v1/maintenance/begin", "maintenance-began"),
    ("post", "/v1/maintenance/end", "maintenance-ended"),
    ("post", "/v1/release", "released"),
    ("post", "/v1/send-test", "test-sent"),
    ("post", "/v1/unmark", "settled"),
];

/// What is asked of each, by an operator called alice.
fn body(path: &str, mark: &str) -> Value {
    let mut body = match path {
        "/v1/hosts/{host}" => return json!({ "mark_unhealthy": true, "resource_status_reason": WHY }),
        "/v1/marks/{id}" => return json!({ "acknowledged": true, "route": "recovery", "reason": WHY }),
        "/v1/retry" => json!({ "target": "compute1" }),
        "/v1/release" => json!({ "target": mark }),
        "/v1/unmark" => json!({ "target": mark }),
        "/v1/maintenance/begin" => json!({ "target": "compute1", "seconds": 60 }),
        "/v1/maintenance/end" => json!({ "target": "compute1" }),
        _ => json!({}),
    };
    body["reason"] = WHY.into();
    body
}

async fn ask(server: &Server, (method, path): (&str, &str), mark: &str) {
    let at = path.replace("{host}", "compute1").replace("{id}", mark);
    let (daemon, body) = (server.daemon(), body(path, mark));
    let answer = match method {
        "patch" => daemon.patch(&at, body).await,
        _ => daemon.post(&at, body).await,
    };
    answer.unwrap_or_else(|kind| panic!("{path}: {kind}"));
}

/// The newest mark of the host; a request may need one that is open, held or only accepted, or a receiver that answers.
async fn mark_for(server: &Server, path: &str) -> String {
    let host = match path {
        "/v1/unmark" => "compute2",
        "/v1/release" => "compute3",
        "/v1/marks/{id}" => return server.accepted().await,
        _ => "compute1",
    };
    if host != "compute1" {
        let maintenance = json!({ "target": host, "seconds": 600, "reason": "it stays held" });
        server.daemon().post("/v1/maintenance/begin", maintenance).await.unwrap();
        server.patch_locally(host, true, None).await.unwrap();
    }
    let marks = server.marks(host).await;
    marks.last().map(|mark| mark["id"].as_str().unwrap().to_owned()).unwrap_or_default()
}

/// S0-3, S2-3. The broken variant asks for what is there already, and finds no new row.
#[tokio::test]
async fn every_action_is_on_record_with_who_and_why() {
    let server = Server::alone("ack = \"callback\"\n").await;
    for (method, path, event) in ACTIONS {
        let mark = mark_for(&server, path).await;
        let before = server.said().await.len();
        // What was released comes too.
        let receiver = async {
            let mut is_over = path != "/v1/send-test";
            while !is_over {
                let due = server.next().await;
                is_over = !due.host.starts_with("compute");
                due.end(200);
            }
        };
        tokio::join!(ask(&server, (method, path), &mark), receiver);
        let new = server.said().await.split_off(before);
        let is_right = |row: &&Value| {
            let (actor, why) = (row["actor"].as_str().unwrap(), row["detail"].as_str().unwrap());
            row["event"] == event && actor.starts_with("alice (uid ") && why.contains(WHY)
        };
        assert_eq!(new.iter().filter(is_right).count(), 1, "{path}: {new:?}");
    }
    let resume = async || server.daemon().post("/v1/resume", body("/v1/resume", "")).await.unwrap();
    assert_eq!(resume().await["changed"], 1, "what the table paused");
    let before = server.said().await.len();
    let nothing = resume().await;
    assert_eq!((nothing["changed"].as_u64(), server.said().await.len()), (Some(0), before));
}

/// A new request that changes something needs a row above: how it is put on record.
#[test]
fn every_request_that_changes_something_is_tried_above() {
    let tried: BTreeSet<(String, String)> =
        ACTIONS.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    let api = paths().filter(|(method, _)| *method != "get");
    let mut served: BTreeSet<_> = api.map(|(method, path)| (method.to_owned(), path.to_owned())).collect();
    let control = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/control");
    for file in fs::read_dir(control).unwrap() {
        let file = file.unwrap().path();
        served.extend(changing(&fs::read_to_string(&file).unwrap()));
    }
    // These have tests of their own, in reload.rs: they want an engine, and a route that is gone.
    let elsewhere = ["/v1/reload", "/v1/dismiss"].map(|path| ("post".to_owned(), path.to_owned()));
    assert_eq!(served, tried.into_iter().chain(elsewhere).collect());
    assert_eq!(changing("x.route(\n \"/v1/a\",\n post(b))").len(), 1, "the broken variant is found");
}

/// The routes in a source text that are no `GET`.
fn changing(code: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in code.split(".route(").skip(1) {
        let mut pieces = part.splitn(3, '"');
        let (Some(before), Some(path), Some(rest)) = (pieces.next(), pieces.next(), pieces.next()) else {
            continue;
        };
        let method = rest.trim_start_matches([',', ' ', '\n']).split('(').next().unwrap_or_default();
        if before.trim().is_empty() && path.starts_with('/') && method != "get" {
            found.push((method.to_owned(), path.to_owned()));
        }
    }
    found
}

/// The host is gone for good: its alert must end, and no alerter sends a return. The broken variant knows no return before
/// the host is back: the command fails, and the alert is repeated for thirty days.
#[tokio::test]
async fn a_return_that_is_never_to_come_can_be_ended() {
    let server = Server::alone("when-returned = \"notify\"\n").await;
    server.patch_locally("compute1", true, None).await.unwrap();
    let due = server.begin().await;
    let mark = due.mark.clone();
    let unmark = async |returns: bool| {
        let asked = json!({ "target": mark, "returns": returns, "reason": WHY });
        let answer = server.daemon().post("/v1/unmark", asked).await;
        answer.map_or(0, |answer| answer["changed"].as_u64().unwrap())
    };
    due.end(200);
    server.until(&mark, "recovery acknowledged", |_| true).await;
    let all = async || deliveries(&server.marks("compute1").await[0]);
    assert_eq!(all().await, ["recovery acknowledged"], "the host is not back");
    assert_eq!(unmark(false).await, 0, "the mark has ended");
    assert_eq!((unmark(true).await, unmark(true).await), (1, 0));
    assert_eq!(all().await, ["recovery acknowledged", "recovery.return dismissed"]);
    let is_it = |row: &Value| row["event"] == "dismissed" && row["detail"].as_str().unwrap().contains(WHY);
    assert!(server.said().await.iter().any(is_it));
}
