//! The cluster that the scenarios share, with the alerter as its resource and a recovery controller beside it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use marks::register::Register;
use serde_json::Value;
use tests::lab::cib::{self, HOME, Spread};
use tests::lab::{Call, Event, Fencing, Lab, MarkMode, Products, Shape, wait};
use tests::receiver::{Answer, Received, Receiver};

/// The compute host of every scenario.
pub(crate) const HOST: &str = "compute1";
/// Longer than it takes Pacemaker to notice a silent host (7 s here) and to fence it.
pub(crate) const FENCED_WITHIN: u64 = 90;
/// Longer than the longest pause between two attempts (30 s).
pub(crate) const NOTIFIED_WITHIN: Duration = Duration::from_secs(60);

const SHAPE: Shape = Shape { controllers: 2, remotes: 1 };
const PORT: u16 = 8080;

pub(crate) struct Cloud {
    /// Before the lab: its sockets live in the lab's network.
    pub(crate) receiver: Receiver,
    pub(crate) lab: Lab,
}

/// What there was when a scenario began.
pub(crate) struct Before {
    marks: BTreeSet<String>,
    requests: usize,
    events: usize,
    fencings: usize,
}

/// A mark as `list` shows it.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) fence_count: u64,
    pub(crate) attempts: u64,
    pub(crate) body: String,
}

impl Cloud {
    pub(crate) fn boot() -> anyhow::Result<Self> {
        let lab = Lab::boot(SHAPE, Some(&Products::built()?))?;
        let receiver = Receiver::listen(lab.listener(PORT))?;
        let cloud = Self { receiver, lab };
        cloud.write_own_site(Register::None)?;
        cloud.configure().with_context(|| cloud.lab.keep_logs())?;
        Ok(cloud)
    }

    /// The configuration of the alerter with which every scenario begins.
    pub(crate) fn write_own_site(&self, register: Register) -> anyhow::Result<()> {
        let route = "[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n\n\
                     [http.recovery]\nurl = \"https://recovery.my.cloud.com/v1/host-failures\"\n";
        let file = format!("[store]\nregister = \"{}\"\n\n{route}", register.as_str());
        self.lab.write_site("alerter.toml", &self.with_own_receiver(&file))
    }

    /// A file whose last table is a route to the receiver of the book, to the one here.
    pub(crate) fn with_own_receiver(&self, file: &str) -> String {
        let own = format!("http://{}:{PORT}", self.lab.own_address());
        file.replace("https://recovery.my.cloud.com", &own) + "allow-http = true\n"
    }

    /// Gives the cluster what every scenario begins with; what it has beside that stays.
    pub(crate) fn configure(&self) -> anyhow::Result<()> {
        self.lab.configure(&cib::Configuration { shape: SHAPE, alerter: true, spread: Spread::Home })
    }

    /// Puts everything right that the last scenario changed, and waits until nothing is under way.
    pub(crate) fn begin(&mut self) -> anyhow::Result<Before> {
        self.receiver.up()?;
        self.receiver.answer(Answer::Status(200));
        self.lab.bmc().set_dead(false);
        self.lab.bmc().set_mark(MarkMode::Recorded)?;
        self.set_levels(&cib::RECOMMENDED)?;
        self.set_device("power", true)?;
        self.set_device("mark", true)?;
        self.forget_register()?;
        self.begin_as_it_is()
    }

    /// The same, but for the configuration.
    pub(crate) fn begin_as_it_is(&self) -> anyhow::Result<Before> {
        self.run(&["crm_resource", "--cleanup"])?;
        self.host_returns()?;
        wait::until("every mark to be settled", NOTIFIED_WITHIN, || {
            Ok(self.marks()?.iter().all(|mark| mark.state != "open").then_some(()))
        })?;
        Ok(Before {
            marks: self.marks()?.into_iter().map(|mark| mark.id).collect(),
            requests: self.receiver.received().len(),
            events: self.lab.bmc().record().len(),
            fencings: self.lab.fencings(HOST)?.len(),
        })
    }

    /// Waits until the host is a member and the alerter runs; a host that stays off is powered on.
    pub(crate) fn host_returns(&self) -> anyhow::Result<()> {
        self.lab.bring_back(HOST)?;
        self.lab.wait_until_ready()?;
        self.lab.wait_for("the alerter to run", 60, |view| view.location("alerter").as_deref() == Some(HOME))
    }

    pub(crate) fn set_levels(&self, levels: &[&str]) -> anyhow::Result<()> {
        self.lab.replace_section("fencing-topology", &cib::topology(&[HOST.to_owned()], levels))
    }

    /// Stops a device, or starts it again; a stopped device is never chosen.
    pub(crate) fn set_device(&self, device: &str, started: bool) -> anyhow::Result<()> {
        let role = if started { "Started" } else { "Stopped" };
        let set = ["crm_resource", "--resource", device, "--meta", "--set-parameter", "target-role"];
        self.run(&[&set[..], &["--parameter-value", role]].concat())?;
        let what = format!("the device {device} to be {role}");
        self.lab.wait_for(&what, 60, |view| view.location(device).is_some() == started)
    }

    /// Sets the register of the mark device, whatever the site's configuration says.
    pub(crate) fn set_register(&self, register: Register) -> anyhow::Result<()> {
        let set = ["crm_resource", "--resource", "mark", "--set-parameter", "register"];
        self.run(&[&set[..], &["--parameter-value", register.as_str()]].concat())?;
        self.lab.wait_until_ready()?;
        self.lab.wait_for("the mark device to run", 60, |view| view.location("mark").is_some())
    }

    /// Where no register was set, there is nothing to delete.
    fn forget_register(&self) -> anyhow::Result<()> {
        self.lab
            .exec(HOME, &["crm_resource", "--resource", "mark", "--delete-parameter", "register"])
            .map(drop)
    }

    /// Runs a command on the controller that has the mark device and the alerter; it has to succeed.
    pub(crate) fn run(&self, command: &[&str]) -> anyhow::Result<String> {
        self.lab.exec(HOME, command)?.success().with_context(|| command.join(" "))
    }

    /// Has the host fenced as an operator would; gives whether Pacemaker says that it is.
    pub(crate) fn fence(&self, how: &str) -> anyhow::Result<bool> {
        Ok(self.lab.exec(HOME, &["stonith_admin", how, HOST, "--timeout", "60"])?.rc == 0)
    }

    pub(crate) fn marks(&self) -> anyhow::Result<Vec<Mark>> {
        let listed = self.run(&["nova-host-alerter", "list", "--all", "--json"])?;
        let listed: Value = serde_json::from_str(&listed)?;
        listed.as_array().context("list gives no array")?.iter().map(Mark::read).collect()
    }

    pub(crate) fn mark(&self, id: &str) -> anyhow::Result<Mark> {
        self.marks()?.into_iter().find(|mark| mark.id == id).with_context(|| format!("mark {id} is gone"))
    }

    /// Waits for the one mark that a scenario makes.
    pub(crate) fn wait_for_mark(&self, before: &Before) -> anyhow::Result<Mark> {
        wait::until("a mark", Duration::from_secs(FENCED_WITHIN), || Ok(self.marks_since(before)?.pop()))
    }

    /// Waits for a second one.
    pub(crate) fn wait_for_mark_beside(&self, before: &Before, first: &str) -> anyhow::Result<Mark> {
        wait::until("another mark", Duration::from_secs(FENCED_WITHIN), || {
            Ok(self.marks_since(before)?.into_iter().find(|mark| mark.id != first))
        })
    }

    /// Waits until `wanted` holds for a mark.
    pub(crate) fn wait_until_mark(
        &self,
        id: &str,
        what: &str,
        wanted: impl Fn(&Mark) -> bool,
    ) -> anyhow::Result<Mark> {
        let what = format!("mark {id} to be {what}");
        wait::until(&what, NOTIFIED_WITHIN, || Ok(Some(self.mark(id)?).filter(&wanted)))
    }

    pub(crate) fn wait_acknowledged(&self, id: &str) -> anyhow::Result<Mark> {
        self.wait_until_mark(id, "acknowledged", |mark| mark.state == "acknowledged")
    }

    /// Waits for the next request that a scenario causes, and gives all of them.
    pub(crate) fn wait_for_requests(&self, before: &Before, count: usize) -> anyhow::Result<Vec<Received>> {
        self.receiver.wait_for(before.requests + count, NOTIFIED_WITHIN)?;
        Ok(self.requests_since(before))
    }

    pub(crate) fn marks_since(&self, before: &Before) -> anyhow::Result<Vec<Mark>> {
        Ok(self.marks()?.into_iter().filter(|mark| !before.marks.contains(&mark.id)).collect())
    }

    pub(crate) fn requests_since(&self, before: &Before) -> Vec<Received> {
        self.receiver.received().split_off(before.requests)
    }

    /// What the power devices did, and the calls of `fence_mark`, without its monitors.
    pub(crate) fn events_since(&self, before: &Before) -> Vec<Event> {
        let record = self.lab.bmc().record();
        let is_off = |index: usize| matches!(&record[index], Event::Called(call) if call.action() == "off");
        let matters = |(index, event): &(usize, &Event)| match event {
            Event::Power { .. } => true,
            Event::Called(call) => !matches!(call.action(), "monitor" | "metadata") || is_off(*index),
            Event::Returned { call, .. } => is_off(*call),
        };
        record
            .iter()
            .enumerate()
            .skip(before.events)
            .filter(matters)
            .map(|(_, event)| event.clone())
            .collect()
    }

    /// The calls of `fence_mark` for `off`, with their exit codes.
    pub(crate) fn off_calls_since(&self, before: &Before) -> Vec<(Call, Option<u8>)> {
        self.lab.bmc().offs_since(before.events)
    }

    /// The ended fencings of the host that a scenario caused, as the cluster remembers them.
    pub(crate) fn fencings_since(&self, before: &Before) -> anyhow::Result<Vec<Fencing>> {
        let mut all = self.lab.fencings(HOST)?;
        all.truncate(all.len().saturating_sub(before.fencings));
        Ok(all.into_iter().filter(|fencing| fencing.status != "pending").collect())
    }

    /// That the host was fenced since, and that Pacemaker's own controller alone has asked for it.
    pub(crate) fn the_cluster_alone_has_fenced(&self, before: &Before) -> anyhow::Result<()> {
        let fencings = self.fencings_since(before)?;
        let by_cluster = |fencing: &Fencing| fencing.client.starts_with("pacemaker-controld");
        ensure!(!fencings.is_empty() && fencings.iter().all(by_cluster), "{fencings:?}");
        Ok(())
    }

    /// That nothing was marked and nothing was sent.
    pub(crate) fn nothing_was_sent(&self, before: &Before) -> anyhow::Result<()> {
        let (marks, requests) = (self.marks_since(before)?, self.requests_since(before));
        ensure!(marks.is_empty(), "there is a mark: {marks:?}");
        ensure!(requests.is_empty(), "something was sent: {requests:?}");
        Ok(())
    }

    /// The other half of a scenario in which nothing may be sent: here, something is.
    pub(crate) fn a_real_outage_is_reported(&mut self) -> anyhow::Result<()> {
        let before = self.begin()?;
        self.lab.power_off(HOST)?;
        let mark = self.wait_for_mark(&before)?;
        self.wait_acknowledged(&mark.id)?;
        let sent = self.requests_since(&before).len();
        ensure!(sent == 1, "an outage after the scenario was sent {sent} times");
        Ok(())
    }
}

impl Mark {
    fn read(listed: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let delivery = &listed["deliveries"][0];
        Ok(Self {
            id: listed["id"].as_str().context("a mark without an id")?.to_owned(),
            state: text(&listed["state"]),
            fence_count: listed["fence_count"].as_u64().unwrap_or_default(),
            attempts: delivery["attempts"].as_u64().unwrap_or_default(),
            body: text(&delivery["body"]),
        })
    }
}

/// Checks for a while that `wanted` holds all the time.
pub(crate) fn holds_for(seconds: u64, mut wanted: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let limit = Duration::from_secs(seconds + 30);
    let mut broken = None;
    wait::until("the time to pass", limit, || {
        broken = wanted().err();
        Ok((broken.is_some() || Instant::now() >= end).then_some(()))
    })?;
    broken.map_or(Ok(()), Err)
}
