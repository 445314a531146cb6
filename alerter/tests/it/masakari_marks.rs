//! What becomes of marks whose route is Masakari's: from the record of a fencing to what stands in the journal.

use std::sync::Arc;
use std::time::Duration;

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::delivery;
use alerter::intake::apply;
use alerter::state::Shared;
use journal::{Capacity, Journal, Role};
use marks::delivery::{Delivery, State};
use marks::mark::Standing;
use marks::time::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::config;
use crate::openstack::Site;
use crate::site::{self, Alerter};

const DAY: Duration = Duration::from_secs(86_400);

/// A daemon without its engine, whose only route leads to a cloud.
struct Daemon {
    journal: Journal,
    shared: Arc<Shared>,
    _home: config::Site,
}

impl Daemon {
    fn start(cloud: &Site) -> Self {
        let home = config::Site::new("");
        let (journal, clouds) = (home.path("state/marks.db"), cloud.files.path("clouds.yaml"));
        let text = format!(
            "[store]\npath = \"{}\"\nregister = \"none\"\n[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n[masakari.cloud]\nclouds-file = \"{}\"\n",
            journal.display(),
            clouds.display()
        );
        let home = home.with("alerter.toml", text);
        let settings = home.settings();
        let open = || Journal::open(&settings.store.path, Role::Alerter).unwrap();
        let (journal, (store, _thread)) = (open(), Store::start(open()).unwrap());
        Self { journal, shared: Arc::new(Shared::new(Base::new(settings, store, None))), _home: home }
    }

    fn fence(&mut self, host: &str, at: Timestamp) {
        self.journal.append_fencing(&samples::fencing(host, at)).unwrap();
        apply::take_in(&mut self.journal, (&self.shared.base, &self.shared.accounts), None).unwrap();
    }

    /// Makes the attempt that is due at that time, puts on record what came of it, and gives the delivery; none where
    /// nothing is due.
    async fn attempt(&mut self, now: Timestamp) -> Option<Delivery> {
        let route = "cloud";
        let capacity = [Capacity::of(route, 1)];
        let due = self.journal.dispatch(&[], &capacity, None, now).unwrap().begun.pop()?;
        let mark = due.mark.id;
        let (sender, mut answers) = mpsc::unbounded_channel();
        let sent = self.shared.base.route(route).unwrap();
        delivery::serve(self.shared.sending(), sent, due, sender).await;
        let answer = answers.recv().await.unwrap();
        self.journal.dispatch(&[answer.ended], &[], None, now).unwrap();
        let all = self.journal.deliveries_of(mark).unwrap().sound;
        all.into_iter().find(|delivery| delivery.route == route)
    }
}

/// Whatever time passes, nothing more of it is sent until an operator says so; the host's next failure is sent.
///
/// The broken variant is a mark that waits in the slow outbox: it is tried again within the day.
#[tokio::test]
async fn a_mark_of_a_host_on_maintenance_is_held_until_somebody_ends_it() {
    let cloud = Site::new().await;
    cloud.state().hosts = vec!["compute1.my.cloud.com"];
    cloud.state().on_maintenance.insert("compute1.my.cloud.com");
    let mut daemon = Daemon::start(&cloud);
    let now = Timestamp::now();
    daemon.fence("compute1", now - 3 * DAY / 4);
    daemon.fence("compute1", now);
    let held = daemon.attempt(now + DAY).await.unwrap();
    assert_eq!((held.state, held.last.unwrap().kind.as_str()), (State::Held, "maintenance"));
    cloud.state().on_maintenance.clear();
    let next = daemon.attempt(now + DAY).await.unwrap();
    assert_eq!((next.state, next.mark != held.mark), (State::Acknowledged, true), "the next one");
    assert!(daemon.attempt(now + 30 * DAY).await.is_none());
    assert_eq!(cloud.state().bodies.len(), 2);
    let why = ("it was not recovered", "alice");
    assert_eq!(daemon.journal.release_held(held.mark, false, why, now).unwrap(), 1);
    assert!(daemon.attempt(now + DAY).await.is_some(), "as the operator said");

    cloud.state().hosts.clear();
    daemon.fence("compute2", now);
    assert_eq!(daemon.attempt(now + DAY).await.unwrap().state, State::Parked);
    assert!(daemon.attempt(now + 2 * DAY).await.is_some(), "the broken variant");
}

/// The stored bodies of a host's marks for Masakari, oldest first.
fn bodies(alerter: &Alerter, host: &str) -> Vec<String> {
    let body = |id| {
        let deliveries = alerter.journal.deliveries_of(id).unwrap().sound;
        let own = deliveries.into_iter().find(|delivery| delivery.route == "cloud").unwrap();
        String::from_utf8(own.body).unwrap()
    };
    alerter.marks(host).into_iter().map(|mark| body(mark.id)).collect()
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
    let mut site = site::Site::new(&["compute1"]);
    let clouds = cloud.files.path("clouds.yaml");
    site.configure(&format!("[masakari.cloud]\nclouds-file = \"{}\"\nrequired = false\n", clouds.display()));
    let mut first = Alerter::start(&site, "ctl1");
    for _ in 0..3 {
        first.meets_outage(&mut site, "compute1", "ctl1", 16);
        first.meets_return(&mut site, "compute1", "ctl1", 16);
    }
    let sent = bodies(&first, "compute1");
    assert_eq!(sent.len(), 3);
    let times: Vec<i64> = sent.iter().map(|body| seconds(body)).collect();
    assert_eq!([times[1] - times[0], times[2] - times[1]], [181, 181]);
    let marks = first.marks("compute1");
    assert!(marks[2].generated_time.seconds() < times[2], "the mark's own time is the broken variant");
    assert!(marks.iter().all(|mark| matches!(mark.standing, Standing::Proven(_))));

    let second = Alerter::at_work(&mut site, "ctl2", 4);
    assert_eq!(bodies(&second, "compute1"), sent);
}
