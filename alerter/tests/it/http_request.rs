//! What the `http` driver sends, and through which connections.

use drivers::http::{Http, Options};
use drivers::{Driver as _, Step, web};
use reqwest::header::HeaderMap;

use crate::check_config::text;
use crate::endpoint::{Endpoint, OK};
use crate::myself;
use crate::route::{BODY, SECRET, deliver, deliver_to, id, message, options, route, word, word_of};

/// S1-18, S1-35, S1-40: a POST of the stored bytes as JSON, with the mark's id as the key.
#[tokio::test]
async fn the_request_is_the_stored_body_with_its_key() {
    let endpoint = Endpoint::saying(OK).await;
    assert_eq!(word_of(&endpoint.url()).await, "acknowledged");
    let request = text(&endpoint.requests()[0]);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.as_bytes(), BODY);
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /v1/host-failures?token=s3kr1t HTTP/1.1"));
    let fields: Vec<String> = lines.map(str::to_lowercase).collect();
    for field in [
        "content-type: application/json",
        "idempotency-key: \"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b\"",
        &format!("user-agent: nova-host-alerter/{}", env!("CARGO_PKG_VERSION")),
        "connection: close",
    ] {
        assert!(fields.iter().any(|f| f == field), "{field} is not in {fields:?}");
    }
    assert!(!fields.iter().any(|f| f.starts_with("accept-encoding")), "nothing asks for a compressed answer");
}

/// Where the receiver wants it so: headers of its own beside ours.
#[tokio::test]
async fn more_headers_are_the_routes_choice() {
    let endpoint = Endpoint::saying(OK).await;
    let headers = HeaderMap::from_iter([("x-auth-token".parse().unwrap(), SECRET.parse().unwrap())]);
    let route = Http::new(Options { headers, ..options(&endpoint.url()) }).unwrap();
    assert_eq!(word(&deliver(&route).await), "acknowledged");
    let request = text(&endpoint.requests()[0]);
    for field in [&format!("x-auth-token: {SECRET}\r\n"), "content-type: application/json\r\n"] {
        assert_eq!(request.matches(field).count(), 1, "{request}");
    }
}

/// Answers its first request twice, and takes no other.
async fn saying_ok_once_too_often() -> Endpoint {
    Endpoint::acting(|mut peer| async move {
        peer.request().await;
        match peer.number {
            1 => peer.say(&[OK, OK].concat()).await,
            _ => peer.say(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").await,
        };
        peer.gone().await;
    })
    .await
}

/// An endpoint that says "200" once too often must not acknowledge the next mark with it.
#[tokio::test]
async fn an_answer_that_came_too_early_acknowledges_nothing() {
    let endpoint = saying_ok_once_too_often().await;
    let route = route(&endpoint.url(), crate::route::LONG);
    assert_eq!(word(&deliver(&route).await), "acknowledged");
    assert_eq!(word(&deliver(&route).await), "retry unavailable");
    assert_eq!(endpoint.connections(), 2, "a connection serves one exchange");
}

/// The client puts a connection away in tasks of its own, of which each needs only to be asked.
async fn let_the_client_rest() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Where the route wants it, one connection serves them all. By default, each has its own.
#[tokio::test]
async fn connections_are_kept_where_that_is_wanted() {
    for keep_alive in [false, true] {
        let endpoint = Endpoint::acting(|mut peer| async move {
            while peer.request().await {
                peer.say(OK).await;
            }
        })
        .await;
        let route =
            Http::new(Options::by(web::ClientOptions { keep_alive, ..options(&endpoint.url()).client }))
                .unwrap();
        for _ in 0..3 {
            assert_eq!(word(&deliver(&route).await), "acknowledged");
            let_the_client_rest().await;
        }
        assert_eq!(endpoint.connections(), if keep_alive { 1 } else { 3 });
        assert_eq!(endpoint.requests().len(), 3);
    }
}

/// The daemon ignores the proxy in its environment.
///
/// Runs itself once more with the environment set; a client with the defaults shows that the environment would work.
#[tokio::test]
async fn a_proxy_in_the_environment_is_ignored() {
    const NAME: &str = "http_request::a_proxy_in_the_environment_is_ignored";
    if let Some(url) = myself::argument() {
        assert_eq!(deliver_to(&url).await.failure(), None);
        let careless = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        assert_eq!(careless.post(&url).send().await.unwrap().status(), 418, "it asks the proxy");
        return;
    }
    let endpoint = Endpoint::saying(OK).await;
    let proxy = Endpoint::saying("HTTP/1.1 418 Proxy\r\nContent-Length: 0\r\n\r\n").await;
    let proxy_url = format!("http://{}", proxy.address);
    let vars =
        ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"].map(|name| (name, proxy_url.as_str()));
    myself::run(NAME, &endpoint.url(), &vars).await;
    assert_eq!((endpoint.connections(), proxy.connections()), (1, 1));
}

/// A host without any CA certificate can still use a plain http route. `Http::new` would panic here otherwise.
#[tokio::test]
async fn plain_http_needs_no_certificates_on_the_host() {
    const NAME: &str = "http_request::plain_http_needs_no_certificates_on_the_host";
    if let Some(url) = myself::argument() {
        assert_eq!(deliver_to(&url).await.failure(), None);
        let careless = reqwest::Client::builder().build();
        assert!(careless.is_err(), "the defaults make no client on such a host");
        return;
    }
    let endpoint = Endpoint::saying(OK).await;
    let nowhere = [("SSL_CERT_FILE", "/nonexistent/ca.pem"), ("SSL_CERT_DIR", "/nonexistent")];
    myself::run(NAME, &endpoint.url(), &nowhere).await;
    assert_eq!(endpoint.connections(), 1);
}

/// S4-34: the return has a key of its own, so a receiver that remembers keys does not drop it; and its answer acknowledges
/// it also where a mark is confirmed by the API. The broken variant sends the failure's key.
#[tokio::test]
async fn a_return_is_a_message_of_its_own() {
    let endpoint = Endpoint::saying(OK).await;
    let confirmed_within = Some(std::time::Duration::from_secs(600));
    let options = Options { confirmed_within, notifies_return: true, ..options(&endpoint.url()) };
    let route = Http::new(options).unwrap();
    assert_eq!(route.about().steps, [Step::Return]);
    let id = id();
    for (step, expected) in [(Step::Failure, "accepted"), (Step::Return, "acknowledged")] {
        assert_eq!(route.deliver(message(step, &id, BODY)).await.as_str(), expected);
    }
    let keys = endpoint.requests().into_iter().map(|request| {
        let head = text(&request);
        let line = head.lines().find(|line| line.to_lowercase().starts_with("idempotency-key")).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    });
    assert_eq!(keys.collect::<Vec<_>>(), [id.to_string(), format!("{id}.return")]);
}
