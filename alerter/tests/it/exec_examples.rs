//! The two drivers in docs/examples, run by the `exec` driver against a real endpoint.

use std::path::Path;
use std::time::Duration;

use drivers::event::{Event, TimeFormat};
use drivers::exec::Exec;
use drivers::{Driver as _, Outcome, Step};
use marks::mark::Mark;
use marks::time::Timestamp;
use samples::left_out::lacks;

use crate::endpoint::{Endpoint, OK, unused};
use crate::exec::exec;
use crate::route::{BODY, LONG, deliver, id, message, word};

/// None of them, with the reason, where their programs are lacking.
fn examples() -> &'static [&'static str] {
    if lacks(&["curl", "python3"]) { &[] } else { &["exec-driver.sh", "exec-driver.py"] }
}

fn example(name: &str, arguments: &[&str], timeout: Duration) -> Exec {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples").join(name);
    let program = path.to_str().unwrap().to_owned();
    // By its own first line, also where everybody may put files beside the checkout: such a program is not run by itself.
    let command = ["/usr/bin/env".to_owned(), program]
        .into_iter()
        .chain(arguments.iter().map(|&text| text.to_owned()))
        .collect();
    exec(command, timeout, 1)
}

async fn run(name: &str, url: &str) -> Outcome {
    deliver(&example(name, &[url], LONG)).await
}

/// S1-16, S1-18: the event as it is stored, with the mark's id, and the endpoint's answer as an exit code.
#[tokio::test]
async fn they_forward_the_event_byte_for_byte() {
    for name in examples() {
        let endpoint = Endpoint::saying(OK).await;
        assert_eq!(word(&run(name, &endpoint.url()).await), "acknowledged", "{name}");
        let request = String::from_utf8(endpoint.requests().concat()).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(body.as_bytes(), BODY, "{name}");
        assert!(head.starts_with("POST /v1/host-failures HTTP/1.1\r\n"), "{name}: {head}");
        let head = head.to_lowercase();
        for field in ["content-type: application/json".to_owned(), format!("idempotency-key: \"{}\"", id())] {
            assert!(head.contains(&field), "{name}: {head}");
        }
    }
}

/// A failure and its return are two messages. The broken variant is the id alone: a receiver that goes by the key takes the
/// return for a repetition.
#[tokio::test]
async fn a_return_has_a_key_of_its_own() {
    let (failure_time, generated_time) = (Timestamp(1_784_600_000_000), Timestamp(1_784_600_001_000));
    let names = ["compute1", "compute1.my.cloud.com"];
    let mark = Mark { generated_time, ..samples::sent(&id().to_string(), names, failure_time) };
    let of = TimeFormat::Epoch;
    // No sender makes the last one: what another field says is not the type.
    let odd = br#"{"id":"x","event_type":"host failure","payload":{"hostname":"\"event_type\":\"host returned\","}}"#;
    for (body, behind) in [
        (Event::of_mark(&mark, of).bytes(), ""),
        (Event::of_return(&mark, generated_time, of).bytes(), ".return"),
        (Event::of_return(&mark, generated_time, of).extended(), ".return"),
        (Event::of_test(&mark.id, generated_time, of).bytes(), ""),
        (odd.to_vec(), ""),
    ] {
        for name in examples() {
            let endpoint = Endpoint::saying(OK).await;
            let exec = example(name, &[&endpoint.url()], LONG);
            let (id, message) = (&mark.id, message(Step::Failure, &mark.id, &body));
            assert_eq!(word(&exec.deliver(message).await), "acknowledged", "{name}");
            let request = String::from_utf8(endpoint.requests().concat()).unwrap().to_lowercase();
            let key = format!("idempotency-key: \"{id}{behind}\"\r\n");
            assert!(request.contains(&key), "{name}: {request}");
        }
    }
}

#[tokio::test]
async fn they_say_what_the_endpoint_answered() {
    for (line, expected) in [
        ("204 No Content", "acknowledged"),
        ("302 Found\r\nLocation: http://127.0.0.1:9/", "refused misconfigured"),
        ("401 Unauthorized", "refused credentials"),
        ("404 Not Found", "refused misconfigured"),
        ("422 Unprocessable Content", "rejected rejected"),
        ("429 Too Many Requests", "retry unavailable"),
        ("503 Service Unavailable\r\nRetry-After: 60", "retry unavailable"),
        ("519 Unknown", "refused misconfigured"),
        ("520 Web Server Returned an Unknown Error", "retry unavailable"),
        ("529 Site is overloaded", "retry unavailable"),
        ("530 Site is frozen", "refused misconfigured"),
    ] {
        for name in examples() {
            let endpoint = Endpoint::saying(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n")).await;
            let outcome = run(name, &endpoint.url()).await;
            assert_eq!(word(&outcome), expected, "{name}: {line}: {outcome:?}");
            let says = format!("the endpoint answered {}", &line[..3]);
            assert!(outcome.failure().is_none_or(|failure| failure.detail.contains(&says)), "{outcome:?}");
        }
    }
}

/// The broken variant of the redirect is a client that follows it: Python's own would take the GET's 200 for an answer.
#[tokio::test]
async fn they_follow_no_redirect() {
    for name in examples() {
        let target = Endpoint::saying(OK).await;
        let answer = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", target.url());
        let endpoint = Endpoint::saying(answer).await;
        assert_eq!(word(&run(name, &endpoint.url()).await), "refused misconfigured", "{name}");
        assert_eq!(target.connections(), 0, "{name}");
    }
}

/// The broken variants: Python's library takes each but the first for a success, curl each but the first two.
const HALF_ANSWERS: [&str; 6] = [
    "",
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 200 OK\r\nContent-Le",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r",
];

/// S1-16: what was surely not sent is distinguished from what may have arrived.
#[tokio::test]
async fn they_distinguish_a_refused_connection_from_a_lost_answer() {
    for name in examples() {
        let outcome = run(name, &format!("http://{}/", unused())).await;
        assert_eq!(word(&outcome), "unreachable unreachable", "{name}: {outcome:?}");
        for answer in HALF_ANSWERS {
            let endpoint = Endpoint::saying(answer).await;
            let outcome = run(name, &endpoint.url()).await;
            let lost = word(&outcome);
            assert_eq!(lost, "unknown unknown-exit", "{name}: {answer:?}: {outcome:?}");
        }
    }
}

/// They end by themselves, shortly before they would be killed.
#[tokio::test]
async fn they_do_not_wait_for_ever() {
    for name in examples() {
        let endpoint = Endpoint::acting(|mut peer| async move {
            peer.request().await;
            peer.gone().await;
        })
        .await;
        let outcome = deliver(&example(name, &[&endpoint.url()], Duration::from_secs(4))).await;
        assert!(word(&outcome).starts_with("unknown "), "{name}: {outcome:?}");
    }
}
