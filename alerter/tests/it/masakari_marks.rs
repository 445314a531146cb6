//! What becomes of marks whose route is Masakari's: from the record of a fencing to what is sent.

use std::time::Duration;

use marks::delivery::State;
use marks::time::Timestamp;
use serde_json::Value;

use crate::openstack::Site;
use crate::site::{self, Alerter};

const DAY: f64 = 86_400.0;

/// A site whose third route leads to a cloud, whose names of hosts it says.
fn beside(cloud: &Site, hosts: &[&'static str]) -> site::Site {
    let day = Duration::from_secs_f64(DAY);
    let site = site::Site::at(Timestamp::from_seconds((Timestamp::now() - day).seconds()), hosts);
    site.replace("example.org", "my.cloud.com");
    let clouds = cloud.files.path("clouds.yaml");
    site.configure(&format!(
        "[masakari.cloud]\nclouds-file = \"{}\"\nrequired = false\nif-returned = \"deliver\"\n",
        clouds.display()
    ));
    site
}

/// Whatever time passes, nothing more of it is sent until an operator says so; the host's next failure is sent.
///
/// The broken variant is a mark that waits in the slow outbox: it is tried again within the day.
#[tokio::test]
async fn a_mark_of_a_host_on_maintenance_is_held_until_somebody_ends_it() {
    let cloud = Site::new().await;
    cloud.state().hosts = vec!["compute1.my.cloud.com"];
    cloud.state().on_maintenance.insert("compute1.my.cloud.com");
    let mut site = beside(&cloud, &["compute1", "compute2"]);
    site.down.insert("cloud");
    let mut alerter = Alerter::start(&site, "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 16);
    alerter.meets_return(&mut site, "compute1", "ctl1", 16);
    site.advance(0.75 * DAY);
    alerter.meets_outage(&mut site, "compute1", "ctl1", 16);
    site.advance(60.0);
    let held = alerter.exchange(&site, "cloud").await.unwrap();
    assert_eq!((held.state, held.last.unwrap().kind.as_str()), (State::Held, "maintenance"));
    cloud.state().on_maintenance.clear();
    let next = alerter.exchange(&site, "cloud").await.unwrap();
    assert_eq!((next.state, next.mark != held.mark), (State::Acknowledged, true), "the next one");
    site.advance(30.0 * DAY);
    assert!(alerter.exchange(&site, "cloud").await.is_none());
    assert_eq!(cloud.state().bodies.len(), 2);
    alerter.release_held(&site, held.mark);
    assert!(alerter.exchange(&site, "cloud").await.is_some(), "as the operator said");

    cloud.state().hosts.clear();
    alerter.meets_outage(&mut site, "compute2", "ctl1", 16);
    assert_eq!(alerter.exchange(&site, "cloud").await.unwrap().state, State::Parked);
    site.advance(2.0 * DAY);
    assert!(alerter.exchange(&site, "cloud").await.is_some(), "the broken variant");
}

fn seconds(body: &str) -> i64 {
    let body: Value = serde_json::from_str(body).unwrap();
    let time = body["notification"]["generated_time"].as_str().unwrap();
    Timestamp::parse(time).unwrap().seconds()
}

/// Three outages within two minutes are three notifications that Masakari takes, and whichever controller sends them, it
/// sends them with the same bytes.
#[tokio::test]
async fn outages_in_a_row_are_sent_alike_by_every_controller() {
    let cloud = Site::new().await;
    let mut site = beside(&cloud, &["compute1"]);
    let mut first = Alerter::start(&site, "ctl1");
    for _ in 0..3 {
        first.meets_outage(&mut site, "compute1", "ctl1", 16);
        first.meets_return(&mut site, "compute1", "ctl1", 16);
    }
    let sent = first.bodies("compute1", "cloud");
    assert_eq!(sent.len(), 3);
    let times: Vec<i64> = sent.iter().map(|body| seconds(body)).collect();
    assert_eq!([times[1] - times[0], times[2] - times[1]], [181, 181]);
    let marks = first.marks("compute1");
    assert!(marks[2].generated_time.seconds() < times[2], "the mark's own time is the broken variant");
    assert!(marks.iter().all(|mark| mark.standing.doubt().is_none()));

    let second = Alerter::at_work(&mut site, "ctl2", 4);
    assert_eq!(second.bodies("compute1", "cloud"), sent);
}
