//! What Masakari's engine makes of a notification; last, since Masakari is started again for it.

use alerter::drivers::Driver as _;
use anyhow::Context as _;
use serde_json::Value;
use tests::lab::wait;
use tests::openstack::{ENABLED, Part, Who};

use crate::Scenario;
use crate::cloud::{Cloud, LONG, SOON, expect, mark};

pub(crate) const SCENARIOS: &[Scenario] =
    &[("only_what_says_that_the_host_is_off_is_recovered", only_what_says_that_the_host_is_off_is_recovered)];

/// With Masakari's engine: it recovers the host, and leaves it on maintenance; the broken variant, without `host_status`, is
/// taken with 202 too, and nothing is done.
fn only_what_says_that_the_host_is_off_is_recovered(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    cloud.services.also(Part::Nova)?;
    cloud.services.run_engine(true)?;
    let teller = cloud.teller(Who::Admin, LONG)?;
    let mut broken: Value = serde_json::from_slice(&teller.driver.body(&mark(ENABLED[0])))?;
    broken["notification"]["payload"].as_object_mut().map(|fields| fields.remove("host_status"));
    expect(&teller.tell(broken.to_string().as_bytes(), 0), "acknowledged")?;
    expect(&teller.attempt(ENABLED[1], 0), "acknowledged")?;
    wait::until("the engine to be done", SOON, || {
        let all = cloud.services.notifications()?;
        let states: Vec<&str> = all.iter().map(|row| row.status.as_str()).collect();
        Ok((states == ["ignored", "finished"]).then_some(()))
    })
    .with_context(|| format!("{:?}", cloud.services.notifications()))?;
    // What was recovered is found again, though the host is on maintenance now.
    let again = cloud.teller(Who::Admin, LONG)?.attempt(ENABLED[1], 0);
    expect(&again, "acknowledged")
}
