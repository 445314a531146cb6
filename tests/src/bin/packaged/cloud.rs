//! The cluster, the recovery controller beside it, and what is asked of both.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tests::lab::cib::{Configuration, Spread, topology};
use tests::lab::{Ended, Fault, Lab, Shape, wait};
use tests::receiver::Receiver;

/// The compute host.
pub(crate) const HOST: &str = "compute1";
const SHAPE: Shape = Shape { controllers: 2, remotes: 1 };
const PORT: u16 = 8080;
/// Seconds. Longer than it takes Pacemaker to notice a silent host and to fence it.
const LONG: u64 = 120;
/// Where a controller finds the packages: `shared` in the lab's directory.
const PACKAGES: &str = "/run/lab";

/// Files of packages.
pub(crate) struct Debs<'a> {
    pub(crate) package: &'a str,
    pub(crate) newer: &'a str,
    pub(crate) killing: &'a str,
}

pub(crate) struct Cloud {
    /// Before the lab: its sockets live in the lab's network.
    pub(crate) receiver: Receiver,
    pub(crate) lab: Lab,
}

/// Which process the alerter is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) controller: String,
    pid: u64,
    /// By the kernel: clock ticks after its start.
    began: String,
}

impl Cloud {
    pub(crate) fn boot(debian: &Path, debs: &Debs) -> anyhow::Result<Self> {
        let lab = Lab::boot_debian(SHAPE, debian)?;
        for (name, file) in [("package", debs.package), ("newer", debs.newer), ("killing", debs.killing)] {
            let to = lab.directory().join("shared").join(format!("{name}.deb"));
            fs::copy(file, &to).with_context(|| format!("copying {file}"))?;
        }
        let receiver = Receiver::listen(lab.listener(PORT))?;
        lab.configure(&Configuration { shape: SHAPE, alerter: false, spread: Spread::Nowhere })?;
        // Of the lab's own agent `setup` does not know that it cuts power: an administrator has said so by a level.
        let power = format!("power-{HOST}");
        lab.replace_section("fencing-topology", &topology(&[HOST.to_owned()], &[&power]))?;
        Ok(Self { receiver, lab })
    }

    pub(crate) fn controllers(&self) -> Vec<String> {
        self.lab.controllers().map(str::to_owned).collect()
    }

    /// Runs a line of shell on a controller.
    pub(crate) fn try_run(&self, controller: &str, line: &str) -> anyhow::Result<Ended> {
        self.lab.exec(controller, &["sh", "-ec", line])
    }

    /// The same where it has to succeed.
    pub(crate) fn run(&self, controller: &str, line: &str) -> anyhow::Result<String> {
        self.try_run(controller, line)?.success().with_context(|| format!("{controller}: {line}"))
    }

    /// The register's key, from the controller that `setup` made it on to the others, as it says.
    pub(crate) fn copy_key(&self) -> anyhow::Result<()> {
        const KEY: &str = "/etc/nova-host-alerter/register.key";
        let controllers = self.controllers();
        let text = self.run(&controllers[0], &format!("cat {KEY}"))?;
        controllers[1..].iter().try_for_each(|controller| {
            let line = format!("umask 077; printf %s '{text}' >{KEY}");
            self.run(controller, &line).map(drop)
        })
    }

    /// As an administrator would, without a network; gives the output.
    pub(crate) fn install(&self, controller: &str, version: &str) -> anyhow::Result<String> {
        let options = "-q -y --no-install-recommends --allow-downgrades";
        let line =
            format!("DEBIAN_FRONTEND=noninteractive apt-get {options} install {PACKAGES}/{version}.deb 2>&1");
        self.run(controller, &line)
    }

    /// The configuration of docs/start.md, to the receiver here.
    pub(crate) fn write_configuration(&self, controller: &str) -> anyhow::Result<()> {
        let url = format!("http://{}:{PORT}/v1/host-failures", self.lab.own_address());
        let text = format!(
            "[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n\n[http.recovery]\nurl = \"{url}\"\nallow-http = true\n"
        );
        self.lab
            .exec(
                controller,
                &[
                    "sh",
                    "-ec",
                    "printf %s \"$1\" >>/etc/nova-host-alerter/alerter.toml; nova-host-alerter check-config",
                    "sh",
                    &text,
                ],
            )?
            .success()
            .map(drop)
    }

    /// What a site sees and edits of the cluster's configuration, line by line, without Pacemaker's own note that it has cleaned up
    /// a failure: the last of the properties, and only where it has seen one.
    pub(crate) fn configuration(&self) -> anyhow::Result<String> {
        let shown = self.run(self.lab.spokesman(), "HOME=/tmp crm configure show")?;
        let lines = shown.lines().map(|line| line.trim_end_matches(" \\"));
        Ok(lines.filter(|line| !line.trim().starts_with("last-lrm-refresh=")).collect::<Vec<_>>().join("\n"))
    }

    pub(crate) fn wait_until_alerter_runs(&self) -> anyhow::Result<()> {
        self.lab.wait_for("the alerter to run", LONG, |view| view.location("alerter").is_some())
    }

    pub(crate) fn running(&self) -> anyhow::Result<Running> {
        let controller = self.lab.view()?.location("alerter").context("the alerter runs nowhere")?;
        let status = self.run(&controller, "nova-host-alerter status --json || :")?;
        let status: Value = serde_json::from_str(&status)?;
        let pid = status["daemon"]["pid"].as_u64().context("the alerter does not answer")?;
        let began = self.run(&controller, &format!("sed 's/.*) //' /proc/{pid}/stat | cut -d ' ' -f 20"))?;
        Ok(Running { controller, pid, began })
    }

    /// To the controller where it is not; gives which.
    pub(crate) fn move_alerter(&self) -> anyhow::Result<String> {
        let here = self.running()?.controller;
        self.run(&here, &format!("crm_resource --ban --resource alerter --node {here}"))?;
        self.lab.wait_for("the alerter to move", LONG, |view| {
            view.location("alerter").is_some_and(|there| there != here)
        })?;
        self.run(&here, "crm_resource --clear --resource alerter")?;
        wait::until("the alerter to answer", Duration::from_secs(LONG), || {
            Ok(self.running().ok().map(|running| running.controller))
        })
    }

    /// The host loses its power, and does not boot again before [`Cloud::host_returns`]: the outage goes on.
    pub(crate) fn host_dies_for_good(&self) -> anyhow::Result<()> {
        self.lab.bmc().break_for(HOST, Fault::NoBoot);
        self.lab.power_off(HOST)
    }

    /// As an operator does; where it is dead already the fencing is one more of the same outage.
    pub(crate) fn fence_by_hand(&self) -> anyhow::Result<()> {
        self.run(self.lab.spokesman(), &format!("stonith_admin --fence {HOST} --timeout 60")).map(drop)
    }

    /// Waits until the cluster misses the host, powers it on if it is off, and waits until it is a member.
    pub(crate) fn host_returns(&self) -> anyhow::Result<()> {
        self.lab.bmc().repair();
        self.lab.bring_back(HOST)?;
        self.lab.wait_until_ready()
    }

    /// Where the alerter runs they know of its attempts too.
    fn listed(&self) -> anyhow::Result<Vec<Value>> {
        let controller = self.lab.view()?.location("alerter");
        let controller = controller.as_deref().unwrap_or(self.lab.spokesman());
        let listed = self.run(controller, "nova-host-alerter list --all --json")?;
        serde_json::from_str(&listed).context("list gives no array")
    }

    /// The ids of all marks.
    pub(crate) fn marks(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.listed()?.iter().map(id).collect())
    }

    /// Waits for a mark that is none of these.
    pub(crate) fn wait_for_mark_beside(&self, known: &[String]) -> anyhow::Result<String> {
        let new = || Ok(self.marks()?.into_iter().find(|mark| !known.contains(mark)));
        wait::until("a mark", Duration::from_secs(LONG), new)
    }

    fn mark(&self, wanted: &str) -> anyhow::Result<Value> {
        let found = self.listed()?.into_iter().find(|mark| id(mark) == wanted);
        found.with_context(|| format!("mark {wanted} is gone"))
    }

    pub(crate) fn state(&self, mark: &str) -> anyhow::Result<String> {
        Ok(self.mark(mark)?["state"].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn wait_until_mark(&self, mark: &str, state: &str) -> anyhow::Result<()> {
        wait::until(&format!("mark {mark} to be {state}"), Duration::from_secs(LONG), || {
            Ok((self.state(mark)? == state).then_some(()))
        })
    }

    /// Waits until the endpoint was asked once at least.
    pub(crate) fn wait_until_tried(&self, mark: &str) -> anyhow::Result<()> {
        wait::until(&format!("mark {mark} to be tried"), Duration::from_secs(LONG), || {
            let attempts = self.mark(mark)?["deliveries"][0]["attempts"].as_u64();
            Ok((attempts > Some(0)).then_some(()))
        })
    }

    /// How many fencings of its outage a mark stands for.
    pub(crate) fn fence_count(&self, mark: &str) -> anyhow::Result<u64> {
        self.mark(mark)?["fence_count"].as_u64().context("no fence_count")
    }

    /// Waits until a mark stands for more fencings than before.
    pub(crate) fn wait_until_counted(&self, mark: &str, before: u64) -> anyhow::Result<()> {
        wait::until("the fencing to be counted", Duration::from_secs(LONG), || {
            Ok((self.fence_count(mark)? > before).then_some(()))
        })
    }
}

fn id(mark: &Value) -> String {
    mark["id"].as_str().unwrap_or_default().to_owned()
}
