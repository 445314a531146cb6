//! A real cluster with the real cloud in its network: from a compute host that dies to a row in Masakari's database.

use std::cell::RefCell;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use libtest_mimic::Trial;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tests::lab::cib::{Configuration, Spread};
use tests::lab::{self, Fault, Lab, Products, Shape, wait};
use tests::openstack::{Notification, OpenStack, Part, Place, Who, packages};
use tests::trials;

const SHAPE: Shape = Shape { controllers: 3, remotes: 2 };
const DOMAIN: &str = "my.cloud.com";
/// For how long a service is down at least.
const DOWN: Duration = Duration::from_secs(10);
/// Longer than a fencing, and the longest pause between two attempts.
const LIMIT: Duration = Duration::from_secs(120);

/// The scenario, or why it cannot be played here.
pub(crate) fn trial() -> Trial {
    let no_cluster = || lab::machine::check().err().map(|error| format!("{error:#}"));
    let cannot = packages::cannot(&[]).or_else(no_cluster);
    trials::alone("a_dead_host_is_in_masakari_though_keystone_was_down", trials::OPENSTACK, cannot, || {
        Cluster::boot()?.play()
    })
}

struct Cluster {
    /// Before the lab, in whose network it is.
    cloud: RefCell<OpenStack>,
    lab: Lab,
}

impl Cluster {
    fn boot() -> anyhow::Result<Self> {
        let lab = Lab::boot(SHAPE, Some(&Products::built()?))?;
        let cloud = OpenStack::boot(Place::inside(lab.own_address(), lab.entrance()), &[])?;
        let files = TempDir::new()?;
        let clouds = cloud.clouds(Who::Admin, files.path())?;
        lab.write_site("clouds.yaml", &fs::read_to_string(&clouds)?)?;
        lab.write_secret("secure.yaml", &fs::read_to_string(clouds.with_file_name("secure.yaml"))?)?;
        let route = "clouds-file = \"/etc/nova-host-alerter/clouds.yaml\"\nallow-http = true";
        lab.write_site(
            "alerter.toml",
            &format!(
                "[hosts]\ndomain = \"{DOMAIN}\"\non-shared-storage = true\n\n[masakari.cloud]\n{route}\n"
            ),
        )?;
        lab.configure(&Configuration { shape: SHAPE, alerter: true, spread: Spread::Everywhere })?;
        Ok(Self { cloud: RefCell::new(cloud), lab })
    }

    fn play(&self) -> anyhow::Result<()> {
        let played = self.notified_as_soon_as_it_can_be().and_then(|()| self.held_where_the_host_is_back());
        played.with_context(|| format!("{}\n{}", self.lab.keep_logs(), self.cloud.borrow().explain()))
    }

    /// S1-16, S1-19: the host stays down, and is reported once when Keystone is back, with the mark's own time.
    fn notified_as_soon_as_it_can_be(&self) -> anyhow::Result<()> {
        self.lab.bmc().break_for("compute1", Fault::NoBoot);
        let before = self.kill_without(Part::Keystone, "compute1")?;
        ensure!(before["deliveries"][0]["state"] == "pending", "{before}");
        self.cloud.borrow_mut().start(&[Part::Keystone])?;
        let notified = self.wait_notified("compute1")?;
        let mark = self.lab.shown("compute1")?;
        ensure!(mark["deliveries"][0]["reference"] == notified.uuid.as_str(), "{mark} is not {notified:?}");
        let expected = serde_json::json!({
            "event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL"
        });
        ensure!(notified.payload == expected, "{notified:?}");
        ensure!(self.notifications()?.len() == 1, "sent more than once: {:?}", self.notifications()?);
        Ok(())
    }

    /// S1-54: a host that is back before Masakari could hear of it would be disabled: it is held for an operator, and reported
    /// when he says so. The broken variant is the host above, which stayed down.
    fn held_where_the_host_is_back(&self) -> anyhow::Result<()> {
        // The token of the first is good for an hour.
        self.kill_without(Part::Masakari, "compute2")?;
        self.wait_mark("compute2", "to be over", |mark| mark["returned_at"].is_string())?;
        self.cloud.borrow_mut().start(&[Part::Masakari])?;
        let held =
            self.wait_mark("compute2", "to be held", |mark| mark["deliveries"][0]["state"] == "held")?;
        ensure!(held["deliveries"][0]["last"]["kind"] == "returned", "{held}");
        ensure!(self.notifications()?.len() == 1, "a host that is well was reported");
        self.lab.on_active(&["release", "compute2", "--insist", "--reason", "its machines are not there"])?;
        self.wait_notified("compute2").map(drop)
    }

    /// Kills a host while a service is down, and gives its mark when so much time has passed with attempts in it.
    fn kill_without(&self, part: Part, host: &str) -> anyhow::Result<Value> {
        self.cloud.borrow_mut().stop(&[part])?;
        let since = Instant::now();
        let killed = self.lab.signal(host, &["pacemaker-remoted"], Signal::SIGKILL)?;
        ensure!(killed >= 1, "{host} runs no pacemaker-remoted");
        self.wait_mark(host, "to be tried without success for a while", |mark| {
            mark["deliveries"][0]["attempts"].as_u64() >= Some(1) && since.elapsed() >= DOWN
        })
    }

    fn wait_notified(&self, host: &str) -> anyhow::Result<Notification> {
        let name = format!("{host}.{DOMAIN}");
        let notified = wait::until(&format!("{host} to be in Masakari's database"), LIMIT, || {
            Ok(self.notifications()?.into_iter().find(|notified| notified.host == name))
        })?;
        self.wait_mark(host, "to be settled", |mark| mark["state"] == "acknowledged")?;
        Ok(notified)
    }

    fn wait_mark(&self, host: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        self.lab.wait_shown(host, (what, LIMIT), wanted)
    }

    fn notifications(&self) -> anyhow::Result<Vec<Notification>> {
        self.cloud.borrow().notifications()
    }
}
