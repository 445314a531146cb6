//! Confirm probes against real sockets and real programs: what each answer says of a host.

use alerter::probes::{Confirm, Exec, Probe, Said, State, Template, Way};
use drivers::Named;

use crate::certificates::{Ca, Peculiar};
use crate::check_online::named;
use crate::endpoint::{Endpoint, unused};
use crate::probes_keeper::UP;
use crate::probes_keys::confirm;
use crate::route::LONG;
use samples::left_out::leave_out;

/// A host whose names are the same but for the domain.
pub(crate) fn host(name: &str) -> Named {
    named(name, &format!("{name}.my.cloud.com"))
}

/// A `poll-url` probe of an endpoint at `address`, which gets the host's name.
pub(crate) fn poll_url(address: impl std::fmt::Display, keys: &str) -> Confirm {
    confirm(&format!(
        "[groups.r.confirm.poll-url.api]\nurl = \"http://{address}/health/{{nodename}}\"\nhealthy = \"passing\"\nretry-interval = 0\n{keys}"
    ))
}

/// What the first probe says of compute1. Its words are short and printable, and no part of its url stands in them.
async fn ask(confirm: &Confirm) -> Said {
    let said = confirm.probes[0].ask(&host("compute1")).await;
    assert!(!said.words.contains("s3kr1t") && !said.words.contains("/health"), "{}", said.words);
    assert!(said.words.chars().all(|c| !c.is_control()), "{}", said.words);
    said
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// S0-8, S0-10, S0-16: one good answer is enough, and the host's name stands in what is asked for.
#[tokio::test]
async fn a_host_that_gives_the_healthy_answer_is_healthy_at_once() {
    for status in ["200 OK", "203 Non-Authoritative Information"] {
        let endpoint = Endpoint::saying(answer(status, "the checks are passing")).await;
        let said = ask(&poll_url(endpoint.address, "retries = 5")).await;
        assert_eq!((said.state, said.words.as_str()), (State::Healthy, "was answered with the healthy text"));
        assert_eq!(endpoint.requests().len(), 1, "{status}");
        let request = String::from_utf8(endpoint.requests().remove(0)).unwrap();
        assert!(request.starts_with("GET /health/compute1 HTTP/1.1\r\n"), "{request}");
    }
}

/// S0-11, S0-14: exactly one try and its retries, and then the host is unhealthy, whatever was answered instead.
///
/// The broken variants: a client that follows redirects finds the healthy text behind one, and one that does not check the
/// status finds it in an error's body.
#[tokio::test]
async fn every_other_answer_is_a_failed_try() {
    let healthy = Endpoint::saying(answer("200 OK", "passing")).await;
    let place = healthy.address;
    let redirect =
        format!("HTTP/1.1 302 Found\r\nLocation: http://{place}/\r\nContent-Length: 7\r\n\r\npassing");
    for (bytes, words) in [
        (answer("200 OK", "the checks are failing"), "was answered 200 without the healthy text (3 tries)"),
        (answer("200 OK", ""), "was answered 200 without the healthy text (3 tries)"),
        (answer("200 OK", "PASSING passin"), "was answered 200 without the healthy text (3 tries)"),
        (answer("500 Internal Server Error", "passing"), "was answered 500 (3 tries)"),
        (answer("404 Not Found", "passing"), "was answered 404 (3 tries)"),
        (redirect.clone().into_bytes(), "was answered 302 (3 tries)"),
        (b"SSH-2.0-passing\r\n".to_vec(), "was answered with something that is not HTTP (3 tries)"),
    ] {
        let endpoint = Endpoint::saying(bytes).await;
        let said = ask(&poll_url(endpoint.address, "retries = 2")).await;
        assert_eq!((said.state, said.words.as_str()), (State::Unhealthy, words));
        assert_eq!(endpoint.requests().len(), 3, "{words}");
    }
    assert_eq!(healthy.connections(), 0, "a redirect is not followed");

    let endpoint = Endpoint::saying(redirect.into_bytes()).await;
    let careless = reqwest::Client::builder().no_proxy().build().unwrap();
    let followed = careless.get(format!("http://{}/", endpoint.address)).send().await.unwrap();
    assert!(followed.status().is_success());
}

/// S0-9: a fenced host is expected to be unreachable; a site that sees it otherwise configures it.
#[tokio::test]
async fn a_refused_connection_counts_as_configured() {
    let said = ask(&poll_url(unused(), "retries = 1")).await;
    assert_eq!(said.state, State::Unhealthy);
    assert_eq!(said.words, "got no connection: connection refused (2 tries)");
    let said = ask(&poll_url(unused(), "retries = 1\nconn-error-as-unhealthy = false")).await;
    assert_eq!((said.state, said.words.as_str()), (State::Unknown, "got no connection: connection refused"));
}

/// S0-9: the same for an endpoint that hangs up in the middle.
#[tokio::test]
async fn half_an_answer_is_none() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npass";
    for (keys, expected) in
        [("retries = 0", State::Unhealthy), ("retries = 0\nconn-error-as-unhealthy = false", State::Unknown)]
    {
        let endpoint = Endpoint::saying(*half).await;
        let said = ask(&poll_url(endpoint.address, keys)).await;
        assert_eq!(said.state, expected);
        assert_eq!(said.words, "got an incomplete answer: the connection was closed");
    }
    let enough = Endpoint::saying(*b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npassing").await;
    assert_eq!(ask(&poll_url(enough.address, "")).await.state, State::Healthy, "the text was there");
}

/// S0-12: a try has a limit of its own, and nothing that an endpoint does prolongs it.
#[tokio::test]
async fn a_slow_or_dripping_endpoint_is_cut_off() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n";
    let slow = Endpoint::acting(|mut peer| async move {
        peer.request().await;
        peer.gone().await;
    })
    .await;
    let dripping = Endpoint::acting(move |mut peer| async move {
        peer.request().await;
        peer.say(head.as_bytes()).await;
        peer.drip(std::iter::repeat(b'x')).await;
    })
    .await;
    for mut endpoint in [slow, dripping] {
        let said = ask(&poll_url(endpoint.address, "retries = 0\ntimeout = 1")).await;
        assert_eq!((said.state, said.words.as_str()), (State::Unhealthy, "got no answer in time"));
        endpoint.connection_ended().await;
    }
}

fn over_tls(endpoint: &Endpoint, keys: &str) -> Confirm {
    let url = format!("url = \"https://{}/health/{{nodename}}?t=s3kr1t\"", endpoint.address);
    confirm(&format!("[groups.r.confirm.poll-url.api]\n{url}\nhealthy = \"passing\"\nretries = 0\n{keys}"))
}

/// S0-13: a certificate that cannot be believed shows that something answers, but not what: nothing is decided by it.
///
/// The broken variant takes it for a connection error: an expired certificate would confirm that a living host is down.
#[tokio::test]
async fn a_host_over_tls_is_known_by_its_certificate() {
    let ca = Ca::new("ours");
    let ca_file = format!("ca-file = \"{}\"", ca.file().display());
    let good = Endpoint::saying_over_tls(ca.endpoint(Peculiar::Nothing), UP).await;
    assert_eq!(ask(&over_tls(&good, &ca_file)).await.state, State::Healthy);
    let strangers = Ca::new("theirs").endpoint(Peculiar::Nothing);
    for acceptor in [ca.endpoint(Peculiar::Expired), ca.endpoint(Peculiar::OtherName), strangers] {
        let endpoint = Endpoint::saying_over_tls(acceptor, UP).await;
        let said = ask(&over_tls(&endpoint, &ca_file)).await;
        assert_eq!(said.state, State::Unknown, "{}", said.words);
        assert!(said.words.contains("certificate"), "{}", said.words);
        assert_eq!(endpoint.requests().len(), 0);
        let said = ask(&over_tls(&endpoint, "verify = false")).await;
        assert_eq!(said.state, State::Healthy, "{}", said.words);
    }
}

/// A group that asks this script.
pub(crate) fn script(text: &str, arguments: &[&str], keys: &str) -> Confirm {
    let arguments: String = arguments.iter().map(|text| format!(", \"{text}\"")).collect();
    confirm(&format!(
        "[groups.r.confirm.exec.bmc]\ncommand = [\"/bin/sh\", \"-c\", '''{text}''', \"{{nodename}}\"{arguments}]\n{keys}"
    ))
}

/// A real file with a mode, as an operator has it. The broken variant runs what everybody may put into its place.
#[tokio::test]
async fn a_script_in_a_file_is_run_as_it_is() {
    if !nix::unistd::geteuid().is_root() {
        return leave_out("only root has a directory that nobody else can change");
    }
    for (place, state) in [("/var/lib", State::Unhealthy), ("/tmp", State::Unknown)] {
        let dir = tempfile::tempdir_in(place).unwrap();
        let file = dir.path().join("is-up");
        samples::program(&file, "#!/bin/sh\n[ \"$1\" = compute1 ] && [ \"$#\" = 1 ] && exit 1\nexit 0\n");
        let parts = [file.to_str().unwrap(), "{nodename}"];
        let command = parts.map(|part| Template::parse(part).unwrap()).into();
        let way = Way::Exec(Exec { command, timeout: LONG });
        let said = Probe { name: "exec.a".to_owned(), way }.ask(&host("compute1")).await;
        assert_eq!(said.state, state, "{place}: {}", said.words);
    }
}
