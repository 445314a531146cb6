//! A page for people in the receiver's place: a proxy that wants a sign-in, a web server's own page. It acknowledges nothing.

use alerter::commands::online;
use drivers::http::{Http, Options};
use drivers::web::ClientOptions;

use crate::config;
use crate::endpoint::Endpoint;
use crate::route::{LONG, deliver, options, route, word, word_of};

const SIGN_IN: &str = "<!DOCTYPE html>\n<html><form action=\"/login\">Sign in</form></html>";

fn page(kind: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{kind}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// S1-16. The broken variant goes by the status alone: every one of them would settle the mark, and nobody evacuates.
#[tokio::test]
async fn a_page_is_no_acknowledgement() {
    let html = "Content-Type: text/html; charset=utf-8\r\n";
    let chunked = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        )
    };
    for answer in [
        page(html, SIGN_IN),
        page(html, "ok"),
        page("", SIGN_IN),
        page("Content-Type: application/json\r\n", SIGN_IN),
        page("", &format!("\u{feff}\n<!-- proxy -->\n{SIGN_IN}")),
        page("Content-Type: APPLICATION/XHTML+XML\r\n", "<x/>"),
        chunked(SIGN_IN),
        format!("HTTP/1.1 202 Accepted\r\n\r\n{SIGN_IN}"),
        format!("HTTP/1.1 200 OK\r\n{html}Content-Length: 99\r\n\r\n"),
    ] {
        assert!(answer.starts_with("HTTP/1.1 20"), "the broken variant");
        let endpoint = Endpoint::saying(answer.clone()).await;
        let outcome = deliver(&route(&endpoint.url(), LONG)).await;
        assert_eq!(word(&outcome), "unknown protocol", "{answer}");
        let detail = &outcome.failure().unwrap().detail;
        assert!(detail.starts_with("a page for people answered, not the receiver"), "{detail}");
    }
}

/// The other side: receivers that say nothing, or something else. The broken variant searches for a tag anywhere.
#[tokio::test]
async fn what_is_no_page_acknowledges() {
    let html = "Content-Type: text/html\r\n";
    for answer in [
        page(html, ""),
        format!("HTTP/1.1 204 No Content\r\n{html}\r\n"),
        format!("HTTP/1.1 200 OK\r\n{html}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\n{html}\r\n"),
        page("Content-Type: application/json\r\n", "{\"note\": \"<html>\"}"),
        page("Content-Type: text/plain\r\n", "accepted"),
        page("", "<accepted/>"),
    ] {
        let endpoint = Endpoint::saying(answer.clone()).await;
        assert_eq!(word_of(&endpoint.url()).await, "acknowledged", "{answer}");
    }
}

/// The header section and the page come one after the other, as many servers send them; each piece is sent when the one
/// before it was read.
#[tokio::test]
async fn a_page_in_pieces_is_a_page() {
    let endpoint = Endpoint::acting(|mut peer| async move {
        peer.request().await;
        peer.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", SIGN_IN.len()).as_bytes()).await;
        for piece in SIGN_IN.as_bytes().chunks(4) {
            tokio::task::yield_now().await;
            peer.say(piece).await;
        }
    })
    .await;
    assert_eq!(word_of(&endpoint.url()).await, "unknown protocol");
}

/// A receiver that really answers so; and one that confirms later, whose page has accepted nothing.
#[tokio::test]
async fn one_key_takes_a_page_for_an_answer() {
    let endpoint = Endpoint::saying(page("Content-Type: text/html\r\n", SIGN_IN)).await;
    let plain = options(&endpoint.url());
    let of = |html_acknowledges| ClientOptions { html_acknowledges, ..plain.client.clone() };
    let taken = Http::new(Options::by(of(true))).unwrap();
    assert_eq!(word(&deliver(&taken).await), "acknowledged");
    let later = Options { confirmed_within: Some(LONG), ..Options::by(of(false)) };
    assert_eq!(word(&deliver(&Http::new(later).unwrap()).await), "unknown protocol");
}

/// The preflight says the same, and so does the key.
#[tokio::test]
async fn the_preflight_names_a_page() {
    let endpoint = Endpoint::saying(page("Content-Type: text/html\r\n", SIGN_IN)).await;
    for (key, kinds) in [("", vec!["protocol"]), ("html-acknowledges = true\n", vec![])] {
        let text =
            format!("[store]\nregister = \"none\"\n[http.recovery]\nurl = \"{}\"\n{key}", endpoint.url());
        let site = config::Site::new("").with("alerter.toml", text);
        let answers = online::ask(&site.settings(), Err("no cluster is asked".to_owned())).await;
        let findings = &answers.routes[0].findings;
        assert_eq!(findings.iter().map(|one| one.kind).collect::<Vec<_>>(), kinds);
        assert!(
            findings.iter().all(|one| one.detail.contains("a page for people answered, not the receiver"))
        );
    }
}
