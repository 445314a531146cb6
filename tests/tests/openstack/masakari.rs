//! The `masakari` driver against Masakari's own API: what it takes, what it refuses, and what it has.

use anyhow::{bail, ensure};
use drivers::masakari::{Masakari, Options};
use drivers::openstack::CloudOptions;
use drivers::{Beside, Outcome};
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Value, json};
use tests::openstack::{ENABLED, MAINTAINED, NOVA_ALONE, Part, Who};

use crate::Scenario;
use crate::cloud::{AT, Cloud, LONG, STORED_AT, expect, mark};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_mark_becomes_a_notification", a_mark_becomes_a_notification),
    ("an_address_without_a_version_is_enough", an_address_without_a_version_is_enough),
    ("a_body_of_another_form_is_stored_beside_the_first", a_body_of_another_form_is_stored_beside_the_first),
    ("what_another_controller_sent_is_found", what_another_controller_sent_is_found),
    (
        "a_notification_of_somebody_else_is_no_acknowledgement",
        a_notification_of_somebody_else_is_no_acknowledgement,
    ),
    ("a_second_outage_within_three_minutes_is_sent", a_second_outage_within_three_minutes_is_sent),
    (
        "a_host_that_masakari_does_not_know_waits_for_somebody",
        a_host_that_masakari_does_not_know_waits_for_somebody,
    ),
    ("a_host_on_maintenance_is_held", a_host_on_maintenance_is_held),
    ("a_wrong_role_parks_the_route", a_wrong_role_parks_the_route),
    ("a_test_leaves_no_notification", a_test_leaves_no_notification),
];

/// S1-19, S1-34: as Masakari wants it to recover the host, and with the time of the mark.
fn a_mark_becomes_a_notification(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let outcome = cloud.sender(Who::Admin, LONG)?.attempt(ENABLED[0], 0);
    let all = cloud.services.notifications()?;
    let [row] = all.as_slice() else { bail!("{outcome:?}: {all:?}") };
    ensure!(outcome == Outcome::Acknowledged { reference: Some(row.uuid.clone()) }, "{outcome:?}");
    ensure!((row.host.as_str(), row.generated_time.as_str()) == (ENABLED[0], STORED_AT), "{row:?}");
    let payload = json!({"event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL"});
    ensure!(row.payload == payload && row.status == "new", "{row:?}");
    Ok(())
}

/// As Kolla's catalog names it: the real Masakari says where its version is. The broken variant posts to the address itself,
/// which is answered 300 for ever.
fn an_address_without_a_version_is_enough(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let address = cloud.services.address(Part::Masakari);
    let without = |all| CloudOptions { endpoint: Some(format!("http://{address}")), ..all };
    let sender = cloud.sender_of(Who::Admin, LONG, |all| Ok(Masakari::new(Options::of(without(all)))?))?;
    let outcome = sender.attempt(ENABLED[0], 0);
    ensure!(matches!(outcome, Outcome::Acknowledged { .. }), "{outcome:?}");
    ensure!(cloud.stored()? == 1, "one notification");
    Ok(())
}

/// Why the stored bytes are sent, and no others: each broken variant of a repetition is a second recovery of one outage.
fn a_body_of_another_form_is_stored_beside_the_first(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let sender = cloud.sender(Who::Admin, LONG)?;
    let body = sender.driver.body(&mark(ENABLED[0]));
    expect(&sender.send(&body, 0), "acknowledged")?;
    expect(&sender.send(&body, 1), "acknowledged")?;
    ensure!(cloud.stored()? == 1, "the same bytes were stored twice");
    let mut without_host_status: Value = serde_json::from_slice(&body)?;
    without_host_status["notification"]["payload"].as_object_mut().map(|fields| fields.remove("host_status"));
    let now = Mark { generated_time: Timestamp::from_seconds(AT + 181), ..mark(ENABLED[0]) };
    for (rows, broken) in [(2, without_host_status.to_string().into_bytes()), (3, sender.driver.body(&now))] {
        expect(&sender.send(&broken, 1), "acknowledged")?;
        ensure!(cloud.stored()? == rows, "{}", String::from_utf8_lossy(&broken));
    }
    Ok(())
}

/// After a failover nobody here knows of the first attempt; Masakari does, also while it recovers the host.
fn what_another_controller_sent_is_found(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let first = cloud.sender(Who::Admin, LONG)?.attempt(ENABLED[1], 0);
    // Of the same second, but of another host.
    expect(&cloud.sender(Who::Admin, LONG)?.attempt(ENABLED[0], 0), "acknowledged")?;
    for is_on_maintenance in [false, true] {
        if is_on_maintenance {
            cloud.services.maintain(ENABLED[1])?;
        }
        let again = cloud.sender(Who::Admin, LONG)?.attempt(ENABLED[1], 0);
        ensure!(again == first, "{again:?}, and not {first:?}");
    }
    ensure!(cloud.stored()? == 2);
    Ok(())
}

/// An outage that Masakari takes for the repetition of another reporter's is not sent, and no attempt that may have arrived
/// makes it so: Masakari was asked. The broken variant takes every 409 for "I have it".
fn a_notification_of_somebody_else_is_no_acknowledgement(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let sender = cloud.sender(Who::Admin, LONG)?;
    let earlier = Mark { generated_time: Timestamp::from_seconds(AT - 60), ..mark(ENABLED[0]) };
    expect(&sender.send(&sender.driver.body(&earlier), 0), "acknowledged")?;
    for ambiguous in [0, 1] {
        expect(&sender.attempt(ENABLED[0], ambiguous), "rejected duplicate")?;
    }
    ensure!(cloud.stored()? == 1);
    Ok(())
}

/// With the time of the mark before it in mind, the second outage is a notification of its own.
fn a_second_outage_within_three_minutes_is_sent(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let sender = cloud.sender(Who::Admin, LONG)?;
    let second = Mark { generated_time: Timestamp::from_seconds(AT + 20), ..mark(ENABLED[0]) };
    expect(&sender.attempt(ENABLED[0], 0), "acknowledged")?;
    let beside = Beside { earlier: &[mark(ENABLED[0]).generated_time], cause: None };
    let moved = sender.driver.body_with(&second, &beside);
    expect(&sender.send(&sender.driver.body(&second), 0), "rejected duplicate")
        .map_err(|why| why.context("the broken variant sends the time as it is"))?;
    expect(&sender.send(&moved, 0), "acknowledged")?;
    let all = cloud.services.notifications()?;
    let times: Vec<&str> = all.iter().map(|row| row.generated_time.as_str()).collect();
    ensure!(times == [STORED_AT, "2026-07-21 02:16:22.000000"], "{times:?}");
    // One second less is too near.
    cloud.put_right()?;
    expect(&sender.attempt(ENABLED[0], 0), "acknowledged")?;
    let near = Mark { generated_time: Timestamp::from_seconds(AT + 180), ..second };
    expect(&sender.send(&sender.driver.body(&near), 0), "rejected duplicate")
}

/// Also where only the case of its letters differs.
fn a_host_that_masakari_does_not_know_waits_for_somebody(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let sender = cloud.sender(Who::Admin, LONG)?;
    let shouted = ENABLED[0].replace("compute", "Compute");
    for host in ["nosuch.my.cloud.com", NOVA_ALONE, &shouted, "compute1"] {
        let outcome = sender.attempt(host, 0);
        expect(&outcome, "rejected unknown-host")?;
        let detail = outcome.failure().map(|failure| failure.detail.clone()).unwrap_or_default();
        ensure!(detail.contains(&format!("Host with name {host} could not be found")), "{detail}");
    }
    ensure!(cloud.stored()? == 0);
    Ok(())
}

/// Nothing is stored, so nothing is acknowledged, whatever was tried before. The broken variant takes it for a repetition.
fn a_host_on_maintenance_is_held(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let sender = cloud.sender(Who::Admin, LONG)?;
    for ambiguous in [0, 1] {
        expect(&sender.attempt(MAINTAINED, ambiguous), "held maintenance")?;
    }
    ensure!(cloud.stored()? == 0);
    Ok(())
}

/// Masakari refuses a user who may only read, Keystone one without a role. No message shows a secret or a token.
fn a_wrong_role_parks_the_route(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    for (who, expected, says) in [
        (Who::Reader, "refused forbidden", "Policy doesn't allow"),
        (Who::Nobody, "refused credentials", "requires authentication"),
    ] {
        let outcome = cloud.sender(who, LONG)?.attempt(ENABLED[0], 0);
        expect(&outcome, expected)?;
        let shown = format!("{outcome:?}");
        ensure!(shown.contains(says) && !shown.contains("s3kr1t") && !shown.contains("gAAAA"), "{shown}");
    }
    ensure!(cloud.stored()? == 0);
    Ok(())
}

/// A test goes the whole way, past Keystone and Masakari's policy to its database, and leaves nothing there.
fn a_test_leaves_no_notification(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    for (who, expected) in [(Who::Admin, "acknowledged"), (Who::Reader, "refused forbidden")] {
        let sender = cloud.sender(who, LONG)?;
        let test = sender.driver.test_body(&mark(ENABLED[0]).id, Timestamp::now());
        expect(&sender.send(&test, 0), expected)?;
    }
    ensure!(cloud.stored()? == 0);
    Ok(())
}
