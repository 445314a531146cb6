//! Every status that an endpoint can answer, from a real one: exactly the 2xx acknowledge.

use reqwest::redirect;

use crate::endpoint::Endpoint;
use crate::route::{LONG, deliver, route, word};

const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;

/// What must come of each, and by which word.
fn expected(status: u16) -> &'static str {
    match status {
        101 => "unknown interim",
        100..=199 => "unknown closed",
        200..=299 => "acknowledged",
        300..=399 => "refused redirect",
        401 | 403 | 407 => "refused credentials",
        409 => "retry conflict",
        413 => "rejected body-too-large",
        429 => "retry throttled",
        400 | 411 | 422 | 431 => "rejected rejected",
        408 | 425 | 500 | 502 | 503 | 504 | 507 | 520..=529 => "retry unavailable",
        _ => "refused misconfigured",
    }
}

/// One that gives every status in its turn, and begins again then.
async fn of_every_status() -> Endpoint {
    Endpoint::acting(|mut peer| async move {
        let status = STATUSES.clone().nth((peer.number - 1) % STATUSES.clone().count()).unwrap();
        peer.request().await;
        peer.say(format!("HTTP/1.1 {status} Test\r\nContent-Length: 0\r\n\r\n").as_bytes()).await;
    })
    .await
}

/// S1-16, S1-30: the broken variant takes everything but an error for a success: 101 and every redirect fool it.
#[tokio::test]
async fn every_status_keeps_the_mark_but_a_success() {
    let endpoint = of_every_status().await;
    let route = route(&endpoint.url(), LONG);
    for status in STATUSES {
        assert_eq!(word(&deliver(&route).await), expected(status), "{status}");
    }
    assert_eq!(endpoint.connections(), STATUSES.count());

    let careless = reqwest::Client::builder().tls_certs_only([]).no_proxy().pool_max_idle_per_host(0);
    let careless = careless.redirect(redirect::Policy::none()).build().unwrap();
    let mut fooled = Vec::new();
    for status in STATUSES {
        let answer = careless.post(endpoint.url()).body("x").send().await;
        let is_taken = answer.and_then(reqwest::Response::error_for_status).is_ok();
        if is_taken && expected(status) != "acknowledged" {
            fooled.push(status);
        }
    }
    assert_eq!(fooled, [101].into_iter().chain(300..=399).collect::<Vec<_>>());
}
