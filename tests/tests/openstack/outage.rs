//! The `masakari` driver while the services go away and come back: nothing is lost, and nothing is stored twice.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tests::lab::wait;
use tests::openstack::{ENABLED, Part, Who};

use crate::Scenario;
use crate::cloud::{Cloud, LONG, SOON, expect, mark, word};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "a_repetition_after_an_answer_that_was_lost_is_acknowledged",
        a_repetition_after_an_answer_that_was_lost_is_acknowledged,
    ),
    ("a_masakari_that_dies_meanwhile_gets_it_once", a_masakari_that_dies_meanwhile_gets_it_once),
    ("without_keystone_nothing_is_sent", without_keystone_nothing_is_sent),
    ("an_expired_token_is_replaced_once", an_expired_token_is_replaced_once),
];

const BOTH: [Part; 2] = [Part::Keystone, Part::Masakari];
/// Shorter than a frozen service stays frozen.
const SHORT: Duration = Duration::from_secs(2);

/// Masakari stores what it is sent when nobody listens any more. The broken variant asks it again, as if nothing had happened.
fn a_repetition_after_an_answer_that_was_lost_is_acknowledged(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let sender = cloud.sender(Who::Admin, SHORT)?;
    // Keystone's share of the time is spent before Masakari is frozen.
    expect(&sender.attempt(ENABLED[0], 1), "acknowledged")?;
    cloud.services.freeze(Part::Masakari)?;
    let lost = sender.attempt(ENABLED[1], 0);
    cloud.services.thaw(Part::Masakari)?;
    expect(&lost, "unknown timeout")?;
    let is_stored = || Ok((cloud.stored()? == 2).then_some(()));
    wait::until("Masakari to store what it was sent", SOON, is_stored)?;
    // Another limit: its speed is not under test.
    let later = cloud.sender(Who::Admin, LONG)?;
    cloud.services.maintain(ENABLED[1])?;
    expect(&later.attempt(ENABLED[1], 1), "acknowledged")?;
    ensure!(cloud.stored()? == 2);
    Ok(())
}

/// A delivery during an outage ends by itself, and a repetition is acknowledged and stored once.
fn a_masakari_that_dies_meanwhile_gets_it_once(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let sender = cloud.sender(Who::Admin, LONG)?;
    expect(&sender.attempt(ENABLED[0], 0), "acknowledged")?;
    cloud.services.freeze(Part::Masakari)?;
    let body = sender.driver.body(&mark(ENABLED[1]));
    let address = cloud.services.address(Part::Masakari);
    let cut = std::thread::scope(|scope| -> anyhow::Result<_> {
        let sending = scope.spawn(|| sender.send(&body, 0));
        wait::until("a request to lie before Masakari", SOON, || Ok(has_unread(address)?.then_some(())))?;
        cloud.services.stop(&[Part::Masakari])?;
        sending.join().ok().context("the delivery panicked")
    })?;
    ensure!(word(&cut).starts_with("unknown "), "{cut:?}");
    expect(&sender.send(&body, 1), "unreachable connect")?;
    cloud.services.start(&[Part::Masakari])?;
    expect(&sender.send(&body, 1), "acknowledged")?;
    expect(&sender.send(&body, 1), "acknowledged")?;
    ensure!(cloud.stored()? == 2, "{:?}", cloud.services.notifications()?);
    Ok(())
}

/// Whether somebody's bytes wait before the service that listens there.
fn has_unread(address: SocketAddr) -> anyhow::Result<bool> {
    let SocketAddr::V4(address) = address else { return Ok(false) };
    let own = format!("{:08X}:{:04X}", u32::from_le_bytes(address.ip().octets()), address.port());
    // Local address, remote address, state (01: established), unsent and unread bytes.
    Ok(fs::read_to_string("/proc/net/tcp")?.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, "01", queues, ..] = fields.as_slice() else { return false };
        *local == own
            && queues.split_once(':').is_some_and(|(_, unread)| !unread.trim_matches('0').is_empty())
    }))
}

/// Neither where the driver has no token, nor where Masakari cannot have one checked; the mark is sent later.
fn without_keystone_nothing_is_sent(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let (with_token, without) = (cloud.sender(Who::Admin, LONG)?, cloud.sender(Who::Admin, LONG)?);
    expect(&with_token.attempt(ENABLED[0], 0), "acknowledged")?;
    // Masakari remembers a token that it has seen, and a new Masakari remembers none.
    cloud.services.stop(&BOTH)?;
    cloud.services.start(&[Part::Masakari])?;
    expect(&without.attempt(ENABLED[1], 0), "unreachable keystone")?;
    ensure!(!cloud.services.said(Part::Masakari)?.contains(" POST /v1/"), "something was sent");
    expect(&with_token.attempt(ENABLED[1], 0), "retry unavailable")?;
    ensure!(cloud.stored()? == 1);
    cloud.services.start(&[Part::Keystone])?;
    expect(&with_token.attempt(ENABLED[1], 0), "acknowledged")?;
    expect(&without.attempt(ENABLED[2], 0), "acknowledged")?;
    ensure!(cloud.stored()? == 3);
    Ok(())
}

/// Three hours later no token is good any more, and the driver, whose own clock does not say so, hears 401: one new token,
/// one repetition.
fn an_expired_token_is_replaced_once(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let sender = cloud.sender(Who::Admin, LONG)?;
    expect(&sender.attempt(ENABLED[0], 0), "acknowledged")?;
    cloud.services.stop(&BOTH)?;
    cloud.services.pass_hours(3, &BOTH)?;
    cloud.services.start(&BOTH)?;
    expect(&sender.attempt(ENABLED[1], 0), "acknowledged")?;
    ensure!(cloud.stored()? == 2);
    // uwsgi writes each down when it has answered.
    let posts = wait::until("two requests on record", SOON, || {
        let said = cloud.services.said(Part::Masakari)?;
        let posts: Vec<String> =
            said.lines().filter(|line| line.contains(" POST /v1/")).map(str::to_owned).collect();
        Ok((posts.len() >= 2).then_some(posts))
    })?;
    let answered =
        |status: &str| posts.iter().filter(|line| line.contains(&format!("(HTTP/1.1 {status})"))).count();
    ensure!((posts.len(), answered("401"), answered("202")) == (2, 1, 1), "{posts:?}");
    Ok(())
}
