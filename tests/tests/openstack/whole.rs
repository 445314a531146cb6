//! A real cluster with the real cloud in its network: the whole outage of a host, from its death to its return.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use libtest_mimic::Trial;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tests::lab::cib::{Configuration, Spread};
use tests::lab::{self, Fault, Lab, Products, Shape, wait};
use tests::openstack::{OpenStack, Place, Who, packages};
use tests::receiver::Receiver;
use tests::trials;

const SHAPE: Shape = Shape { controllers: 3, remotes: 2 };
/// An operators' own system.
const PORT: u16 = 8080;
/// Longer than a fencing.
const LIMIT: Duration = Duration::from_secs(150);

/// The scenario, or why it cannot be played here.
pub(crate) fn trial() -> Trial {
    let no_cluster = || lab::machine::check().err().map(|error| format!("{error:#}"));
    let cannot = packages::cannot(&[]).or_else(no_cluster);
    trials::alone("a_whole_outage_has_its_timeline", trials::OPENSTACK, cannot, || Scene::boot()?.play())
}

struct Scene {
    /// Before the lab, in whose network they are.
    cloud: OpenStack,
    own: Receiver,
    lab: Lab,
}

impl Scene {
    fn boot() -> anyhow::Result<Self> {
        let lab = Lab::boot(SHAPE, Some(&Products::built()?))?;
        let cloud = OpenStack::boot(Place::inside(lab.own_address(), lab.entrance()), &[])?;
        let own = Receiver::listen(lab.listener(PORT))?;
        let files = TempDir::new()?;
        let clouds = cloud.clouds(Who::Admin, files.path())?;
        lab.write_site("clouds.yaml", &fs::read_to_string(&clouds)?)?;
        lab.write_secret("secure.yaml", &fs::read_to_string(clouds.with_file_name("secure.yaml"))?)?;
        let cloud_keys = "clouds-file = \"/etc/nova-host-alerter/clouds.yaml\"\nallow-http = true";
        let own_keys = format!(
            "url = \"http://{}:{PORT}/\"\nallow-http = true\nwhen-returned = \"notify\"\nbody = \"extended\"",
            lab.own_address()
        );
        let text = format!(
            "[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n\n[masakari.cloud]\n{cloud_keys}\n\n[http.own]\n{own_keys}\n"
        );
        lab.write_site("alerter.toml", &text)?;
        lab.configure(&Configuration { shape: SHAPE, alerter: true, spread: Spread::Everywhere })?;
        Ok(Self { cloud, own, lab })
    }

    fn play(&self) -> anyhow::Result<()> {
        let played = self.dies().and_then(|()| self.returns());
        played.with_context(|| format!("{}\n{}", self.lab.keep_logs(), self.cloud.explain()))
    }

    /// The host dies and stays down.
    fn dies(&self) -> anyhow::Result<()> {
        self.lab.bmc().break_for("compute1", Fault::NoBoot);
        let killed = self.lab.signal("compute1", &["pacemaker-remoted"], Signal::SIGKILL)?;
        ensure!(killed >= 1, "compute1 runs no pacemaker-remoted");
        self.wait_mark("to be acknowledged", |mark| mark["state"] == "acknowledged").map(drop)
    }

    /// The host comes back: the operators' own system is notified, and `show` has the whole story.
    fn returns(&self) -> anyhow::Result<()> {
        self.lab.bmc().repair();
        self.lab.power_on("compute1")?;
        let back = self.wait_mark("to be over", |mark| mark["returned_at"].is_string())?;
        let types = || self.own.received().iter().filter_map(event).collect::<Vec<_>>();
        wait::until("the return at the operators' own system", LIMIT, || {
            Ok(types().iter().any(|event| event["event_type"] == "host returned").then_some(()))
        })?;
        let (first, last) = (types().remove(0), types().pop().context("no event")?);
        ensure!(first["id"] == last["id"] && first["payload"] == last["payload"], "{first} {last}");
        let extensions = &first["nova-host-alerter"];
        ensure!(extensions["node"] == "compute1", "{first}");
        ensure!(*extensions == last["nova-host-alerter"], "{last}");
        let timeline = back["timeline"].as_array().context("no timeline")?;
        let place = |event: &str| timeline.iter().position(|row| row["event"] == event);
        let events = ["fenced", "marked", "acknowledged", "returned"];
        let places: Option<Vec<usize>> = events.iter().map(|event| place(event)).collect();
        ensure!(places.is_some_and(|places| places.is_sorted()), "{timeline:#?}");
        let text = self.lab.on_active(&["show", "compute1"])?;
        ensure!(text.contains("  returned  "), "{text}");
        Ok(())
    }

    fn wait_mark(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        self.lab.wait_shown("compute1", (what, LIMIT), wanted)
    }
}

fn event(request: &tests::receiver::Received) -> Option<Value> {
    serde_json::from_slice(&request.body).ok()
}
