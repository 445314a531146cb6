//! A page for people in the receiver's place: a proxy that wants a sign-in, a web server's own page. It acknowledges nothing.

use alerter::commands::online;
use drivers::http::{Http, Options};
use drivers::web::ClientOptions;

use crate::config;
use crate::endpoint::Endpoint;
use crate::route::{LONG, deliver, options, word, word_of};

const SIGN_IN: &str = "<!DOCTYPE html>\n<html><form action=\"/login\">Sign in</form></html>";

fn page(kind: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{kind}Content-Length: {}\r\n\r\n{body}", body.len())
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
