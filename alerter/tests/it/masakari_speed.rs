//! What a thousand marks cost: one token, and little of the driver's own.

use std::time::{Duration, Instant};

use drivers::Driver;
use drivers::masakari::Masakari;
use marks::mark::Mark;
use marks::time::Timestamp;

use crate::openstack::{AT, PROJECT, Site, mark, send};
use crate::route::word;

const MARKS: usize = 1000;
/// The notifications of outages far enough from each other.
fn bodies(driver: &Masakari, count: usize) -> Vec<Vec<u8>> {
    let at = |n: usize| Timestamp::from_seconds(AT + 1000 * i64::try_from(n).unwrap());
    (0..count).map(|n| driver.body(&Mark { generated_time: at(n), ..mark() })).collect()
}

/// The broken variant: a token for each exchange.
#[tokio::test]
async fn a_thousand_marks_need_one_token() {
    let site = Site::new().await;
    let driver = site.driver();
    for body in bodies(&driver, MARKS) {
        assert_eq!(word(&send(&driver, &body, 0).await), "acknowledged");
    }
    assert_eq!(site.counts(), (MARKS, 1));
}

/// The bare exchange: the same bytes to the same place, by a client with the same settings and nothing else.
async fn bare(client: &reqwest::Client, url: &str, token: &str, body: &[u8]) -> u16 {
    let request = client.post(url).header("X-Auth-Token", token).header("Content-Type", "application/json");
    let answer = request.header("Connection", "close").body(body.to_vec()).send().await.unwrap();
    let status = answer.status().as_u16();
    answer.bytes().await.unwrap();
    status
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

/// What the driver adds to an exchange, in turns with a bare one, so that a busy machine slows both: with `NHA_FIGURES` it is
/// printed. No figure fails the run; 5 ms are the most that is wanted.
#[tokio::test]
async fn what_the_driver_adds_is_shown() {
    let site = Site::new().await;
    let driver = site.driver();
    let url = format!("http://{}/v1/{PROJECT}/notifications", site.masakari.address);
    let client =
        reqwest::Client::builder().no_proxy().http1_only().pool_max_idle_per_host(0).build().unwrap();
    let bodies = bodies(&driver, 401);
    assert_eq!(word(&send(&driver, &bodies[0], 0).await), "acknowledged");
    let token = site.state().token_given().unwrap();
    let (mut own, mut floor) = (Vec::new(), Vec::new());
    for pair in bodies[1..].chunks_exact(2) {
        let begun = Instant::now();
        assert_eq!(word(&send(&driver, &pair[0], 0).await), "acknowledged");
        own.push(begun.elapsed());
        let begun = Instant::now();
        assert_eq!(bare(&client, &url, &token, &pair[1]).await, 202);
        floor.push(begun.elapsed());
    }
    assert_eq!(site.state().rows.len(), 401);
    if std::env::var_os("NHA_FIGURES").is_some() {
        let (own, floor) = (median(own), median(floor));
        let added = own - floor;
        println!(
            "masakari: {own:.2} ms an exchange, bare {floor:.2} ms, so {added:.2} ms of its own; wanted at most 5"
        );
    }
}
