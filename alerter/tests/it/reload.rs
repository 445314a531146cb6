//! A new configuration in a running daemon: routes that stay the same go on, a wrong file changes nothing, and nothing is dropped.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::endpoint::{Endpoint, OK};
use crate::openstack::Site;
use crate::site::{LONG, NOBODY, Program};

pub(crate) fn route(name: &str, url: &str, keys: &str) -> String {
    format!("[http.{name}]\nurl = \"{url}\"\nallow-http = true\n{keys}\n")
}

fn changed(answer: &Value) -> Vec<&str> {
    assert_eq!(answer["reloaded"], true, "{answer}");
    answer["changes"].as_array().unwrap().iter().map(|change| change.as_str().unwrap()).collect()
}

/// Why a file is not taken up.
fn refused(answer: &Value) -> &str {
    assert_eq!((&answer["reloaded"], answer["problems"].as_array().unwrap().len()), (&false.into(), 1));
    answer["problems"][0].as_str().unwrap()
}

async fn dismiss(program: &Program, route: &str) -> Value {
    program.socket().post("/v1/dismiss", json!({ "route": route, "reason": "replaced" })).await.unwrap()
}

/// An endpoint that answers when there is leave to, once for each.
pub(crate) async fn slow() -> (Endpoint, Arc<Semaphore>) {
    let leave = Arc::new(Semaphore::new(0));
    let given = Arc::clone(&leave);
    let endpoint = Endpoint::acting(move |mut peer| {
        let given = Arc::clone(&given);
        async move {
            peer.request().await;
            given.acquire().await.unwrap().forget();
            peer.say(OK).await;
        }
    });
    (endpoint.await, leave)
}

pub(crate) async fn said(endpoint: &Endpoint, requests: usize) {
    let come = async {
        while endpoint.requests().len() < requests {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, come).await.unwrap();
}

/// A route that is configured the same keeps its exchange under way, its driver with its token and connections, and what is known of its
/// endpoint. The broken variant is the other route: one key makes it another one.
#[tokio::test]
async fn a_route_that_says_the_same_goes_on_as_it_is() {
    let ((endpoint, leave), cloud) = (slow().await, Site::new().await);
    cloud.state().hosts = vec!["c1.x.y", "c2.x.y", "c3.x.y"];
    let clouds = cloud.files.path("clouds.yaml");
    let of_cloud = |keys| format!("[masakari.cloud]\nclouds-file = \"{}\"\n{keys}\n", clouds.display());
    let kept = route("kept", &endpoint.url(), "");
    let program = Program::with(&(kept.clone() + &route("dead", NOBODY, "") + &of_cloud(""))).await;
    let mark = program.fence("c1");
    said(&endpoint, 1).await;
    program.until(mark, "cloud acknowledged").await;
    program.wait(async || program.route("dead").await["failing_since"].is_string()).await;
    let failing = program.route("dead").await["failing_since"].clone();

    // Another order, comments, and a key of the framework alone are no other driver.
    let same = format!("# again\n{}\n{kept}\n", route("dead", NOBODY, "required = false"));
    let came = program.reload(&(same.clone() + &of_cloud(""))).await;
    assert_eq!(changed(&came), ["route dead has other marks or terms"]);
    let dead = program.route("dead").await;
    assert_eq!((&dead["failing_since"], &dead["required"]), (&failing, &false.into()), "it is not forgotten");

    assert!(program.deliveries(mark).await.contains(&"kept in-flight".to_owned()));
    leave.add_permits(1);
    program.until(mark, "kept acknowledged").await;
    assert_eq!(endpoint.requests().len(), 1, "it was sent once");
    program.until(program.fence("c2"), "cloud acknowledged").await;
    assert_eq!(cloud.state().tokens_asked, 1, "it has a token");
    let came = program.reload(&(same.clone() + &of_cloud("timeout = 7"))).await;
    assert_eq!(changed(&came), ["route cloud has changed"]);
    program.until(program.fence("c3"), "cloud acknowledged").await;
    assert_eq!(cloud.state().tokens_asked, 2, "the broken variant");
    assert_eq!(changed(&program.reload(&(same + &of_cloud("timeout = 7"))).await), [""; 0]);
}

/// What is under way on a route that changes ends as it began, and its answer counts; the next one goes by the new driver. The
/// broken variant, an exchange that is cut off, would be made again.
#[tokio::test]
async fn an_exchange_ends_with_the_driver_that_it_began_with() {
    let ((old, leave), new) = (slow().await, Endpoint::saying(OK).await);
    let program = Program::with(&route("all", &old.url(), "")).await;
    let first = program.fence("c1");
    said(&old, 1).await;
    let came = program.reload(&route("all", &new.url(), "")).await;
    assert_eq!(changed(&came), ["route all has changed"]);
    let second = program.fence("c2");
    program.until(second, "all acknowledged").await;
    assert_eq!(program.deliveries(first).await, ["all in-flight"]);
    leave.add_permits(1);
    program.until(first, "all acknowledged").await;
    assert_eq!((old.requests().len(), new.requests().len()), (1, 1));
}

/// What an endpoint refuses that is asked no more is tried at the new one at once. The broken variant waits for as long as
/// one that is parked does.
#[tokio::test]
async fn what_was_refused_is_sent_by_the_new_configuration_at_once() {
    let refuses = Endpoint::saying("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await;
    let takes = Endpoint::saying(OK).await;
    let program = Program::with(&route("all", &refuses.url(), "")).await;
    let mark = program.fence("c1");
    program.until(mark, "all parked").await;
    program.reload(&route("all", &takes.url(), "")).await;
    program.until(mark, "all acknowledged").await;
    assert_eq!(takes.requests().len(), 1);
}

/// The broken variant of the configuration is the same one, corrected.
#[tokio::test]
async fn an_invalid_file_changes_nothing_and_says_why() {
    let (takes, unused) = (Endpoint::saying(OK).await, route("all", NOBODY, ""));
    let good = route("all", &takes.url(), "");
    let program = Program::with(&good).await;
    let came = program.reload(&format!("{unused}[delivery]\nack-batsh = 1\n")).await;
    let place = format!("{}:12:1: unknown key ack-batsh", program.files.path("alerter.toml").display());
    assert!(refused(&came).starts_with(&place), "{came}");
    // Whatever words of other problems are in it, it names its own cause.
    let status = program.status().await;
    let (reasons, problems) = (&status["health"]["reasons"], status["problems"].as_array().unwrap());
    let why = reasons[0].as_str().unwrap();
    assert!(why.contains(&place) && why.contains("stays in force"), "{why}");
    assert_eq!((reasons.as_array().unwrap().len(), problems.len()), (1, 1), "{status}");
    assert_eq!((&problems[0]["kind"], &problems[0]["what"]), (&"configuration".into(), &reasons[0]));
    let mark = program.fence("c1");
    program.until(mark, "all acknowledged").await;
    assert_eq!(changed(&program.reload(&good).await), [""; 0]);
    assert_eq!(program.status().await["health"]["reasons"], json!([]), "it is corrected");
}

/// The file that was refused is the one that is wanted: a signal later reads it again, and not the one before. The broken variant
/// takes up the old file, and says that all is well.
#[tokio::test]
async fn a_file_that_was_refused_is_asked_for_until_it_is_corrected() {
    let program = Program::with(&route("all", NOBODY, "")).await;
    let text = std::fs::read_to_string(program.files.path("alerter.toml")).unwrap();
    let second = program.files.path("second.toml");
    std::fs::write(&second, format!("{text}[log]\nlevle = 1\n")).unwrap();
    let again = async |file: Option<&str>| {
        program.socket().post("/v1/reload", json!({ "file": file, "reason": "tests" })).await.unwrap()
    };
    let reasons = async || program.status().await["health"]["reasons"].to_string();
    refused(&again(second.to_str()).await);
    refused(&again(None).await);
    assert!(reasons().await.contains("second.toml"), "{}", reasons().await);
    std::fs::write(&second, text).unwrap();
    std::fs::write(program.files.path("alerter.toml"), "nobody reads it any more").unwrap();
    assert_eq!(changed(&again(None).await), [""; 0]);
    assert!(!reasons().await.contains("toml"), "{}", reasons().await);
}

/// Where the marks are cannot change under a daemon that holds them; over the control socket every problem comes back.
#[tokio::test]
async fn another_journal_needs_a_restart() {
    let program = Program::with(&route("all", NOBODY, "")).await;
    let (main, second) = (program.files.path("alerter.toml"), program.files.path("second.toml"));
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, text.replace("marks.db", "other.db")).unwrap();
    let ask = async |file: Option<&str>| {
        program.socket().post("/v1/reload", json!({ "file": file, "reason": "a new log" })).await
    };
    assert!(refused(&ask(None).await.unwrap()).contains("restart the resource"));
    ask(Some("alerter.toml")).await.expect_err("relative to what?");
    // Another main file is one of the same daemon, if it names the same journal.
    std::fs::write(main, &text).unwrap();
    std::fs::write(&second, text + "[log]\nlevel = \"debug\"\n").unwrap();
    assert_eq!(changed(&ask(second.to_str()).await.unwrap()), ["[log] has changed"]);
    assert_eq!(changed(&ask(None).await.unwrap()), [""; 0], "the second file is read again");
    let history = program.ask(&["history"]).await;
    let row = history.as_array().unwrap().iter().find(|row| row["event"] == "reloaded").unwrap();
    assert!(row["detail"].as_str().unwrap().contains("[log] has changed): a new log"), "{row}");
    assert!(row["actor"].as_str().unwrap().starts_with("alice (uid "), "{row}");
}

/// The mark of a route that is gone is sent to the routes that its host has now, and ends when they have it. The broken
/// variant, which ends the mark with the operator's word, notifies nobody.
#[tokio::test]
async fn a_mark_of_a_route_that_is_gone_is_sent_to_the_others() {
    let (takes, leave) = slow().await;
    let program = Program::with(&route("gone", NOBODY, "")).await;
    let mark = program.fence("c1");
    program.until(mark, "gone pending").await;
    program.reload(&route("new", &takes.url(), "")).await;
    said(&takes, 1).await;
    assert_eq!(dismiss(&program, "gone").await["changed"], 1);
    assert_eq!(program.mark(mark).await["state"], "open", "the new one is still to have it");
    leave.add_permits(1);
    program.until(mark, "new acknowledged").await;
    assert_eq!(program.mark(mark).await["state"], "acknowledged");
}

fn chain(names: &[&str]) -> String {
    let link = |name: &&str| format!("{{ route = \"{name}\", timeout = 3600 }}");
    let links = names.iter().map(link).collect::<Vec<_>>().join(", ");
    format!("[groups.g]\nhosts = [\"c1\"]\nchain = [{links}]\n")
}

/// Somebody may be taking a mark at this moment: it is left alone, in a chain too, where the next step would notify a second one
/// meanwhile. The broken variant ends it, and notifies `b`.
#[tokio::test]
async fn an_exchange_that_is_under_way_is_not_dismissed_with_its_route() {
    let (takes, leave) = slow().await;
    let next = Endpoint::saying(OK).await;
    let (a, b) = (route("a", &takes.url(), ""), route("b", &next.url(), "") + &route("rest", NOBODY, ""));
    let program = Program::with(&(chain(&["a", "b"]) + &a + &b)).await;
    let mark = program.fence("c1");
    said(&takes, 1).await;
    program.reload(&(chain(&["b"]) + &b)).await;
    let answer = dismiss(&program, "a").await;
    let is_left = answer["message"].as_str().unwrap().contains("are in flight to route a");
    assert!(answer["changed"] == 0 && is_left, "{answer}");
    leave.add_permits(1);
    program.until(mark, "a acknowledged").await;
    assert_eq!(program.mark(mark).await["state"], "acknowledged");
    assert!(next.requests().is_empty());
}

/// What a pause holds stays held until somebody ends it: a configuration without its group is not taken up. The broken variant
/// sends it at once.
#[tokio::test]
async fn a_group_that_is_paused_does_not_go() {
    let takes = Endpoint::saying(OK).await;
    let all = route("all", &takes.url(), "");
    let program = Program::with(&format!("[groups.rack]\nhosts = [\"c1\"]\n{all}")).await;
    let rack = |why: &str| json!({ "group": "rack", "reason": why });
    program.socket().post("/v1/pause", rack("a new switch")).await.unwrap();
    let mark = program.fence("c1");
    let came = program.reload(&all).await;
    let words = ["group rack is paused by alice (uid ", "resume --group rack"];
    assert!(words.iter().all(|word| refused(&came).contains(word)), "{came}");
    program.until(mark, "all pending").await;
    assert_eq!(takes.requests().len(), 0);
    program.socket().post("/v1/resume", rack("it is in")).await.unwrap();
    changed(&program.reload(&all).await);
    program.until(mark, "all acknowledged").await;
}
