//! What Masakari's engine makes of a notification; last, since Masakari is started again for it.

use anyhow::Context as _;
use drivers::Step;
use drivers::masakari::{Masakari, Options};
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::Value;
use tests::lab::wait;
use tests::openstack::{DISABLED, ENABLED, Part, Who};

use crate::Scenario;
use crate::cloud::{Cloud, LONG, SOON, expect, mark};

pub(crate) const SCENARIOS: &[Scenario] =
    &[("a_maintenance_of_our_own_making_ends", a_maintenance_of_our_own_making_ends)];

/// The engine recovers the host, and leaves it on maintenance, which is ended when the host is back. Of a disabled segment
/// it does nothing, nor for the broken variant without `host_status`: both are taken with 202 all the same.
fn a_maintenance_of_our_own_making_ends(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    cloud.services.also(Part::Nova)?;
    cloud.services.run_engine(true)?;
    let sender = cloud.sender_of(Who::Admin, LONG, |cloud| {
        Ok(Masakari::new(Options { clear_maintenance: true, ..Options::of(cloud) })?)
    })?;
    let of = |host: &str| sender.driver.body(&Mark { generated_time: Timestamp::now(), ..mark(host) });
    let mut broken: Value = serde_json::from_slice(&of(ENABLED[0]))?;
    broken["notification"]["payload"].as_object_mut().map(|fields| fields.remove("host_status"));
    let bodies = [broken.to_string().into_bytes(), of(DISABLED), of(ENABLED[1])];
    for body in &bodies {
        expect(&sender.send(body, 0), "acknowledged")?;
    }
    let [.., recovered] = &bodies;
    let states = ["ignored", "ignored", "finished"];
    wait::until("the engine to be done", SOON, || {
        let all = cloud.services.notifications()?;
        Ok(all.iter().map(|row| row.status.as_str()).eq(states).then_some(()))
    })?;

    // It is on maintenance now, and what was sent before is found all the same.
    expect(&sender.attempt(ENABLED[1], 0), "held maintenance")?;
    expect(&sender.send(recovered, 0), "acknowledged")?;
    expect(&sender.step(Step::Return, recovered, 0), "acknowledged")?;
    let next = Mark {
        generated_time: Timestamp::from_seconds(Timestamp::now().seconds() + 400),
        ..mark(ENABLED[1])
    };
    expect(&sender.send(&sender.driver.body(&next), 0), "acknowledged")
        .context("the host's next failure, though its maintenance was ended")
}
