//! A real Pacemaker cluster on one machine: its nodes are sets of namespaces, and nothing of the host is touched.
//!
//! ```text
//!   host ── BMC thread (power, records) ◄── /run/lab/service.sock ──┐
//!   hub namespace: bridge br0 10.77.0.254 ── veth ── eth0 of each node
//!     ctl1 10.77.0.1    ctl2 10.77.0.2    corosync + pacemakerd
//!     compute1 10.77.0.101                pacemaker-remoted
//! ```
//! A lab ends with its owner: on drop, on a panic, and, since PID 1 of every node ends when the pipe
//! from the owner closes, also when the owner is killed.

mod bmc;
pub mod cib;
mod disk;
mod hub;
mod init;
mod lifetime;
pub mod machine;
mod node;
mod parts;
mod plan;
mod rack;
mod reading;
pub mod release;
mod room;
mod status;
mod tree;
pub mod wait;
mod wire;
mod xml;

use std::ffi::OsString;
use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

pub use bmc::{Bmc, Call, Event, Fault, MarkMode};
pub use node::Ended;
pub use parts::{LIFETIME, play_another_part};
pub use plan::{Products, Shape};
pub use status::{Fencing, View};

pub(crate) use room::target_directory;

use bmc::Service;
use hub::Hub;
use plan::{Kind, NodePlan};
use rack::Rack;
use room::Room;
use tree::Tree;

/// A program behind an entrance; without one on this machine itself.
pub(crate) fn behind(entrance: &[OsString], program: impl Into<OsString>) -> Command {
    let words = [entrance, &[program.into()]].concat();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// A booted cluster. Dropping it ends every process, mount and link that it made.
pub struct Lab {
    service: Service,
    rack: Arc<Rack>,
    plans: Vec<NodePlan>,
    room: Room,
}

impl Lab {
    /// Boots the nodes and waits until all of them are cluster members; remotes join with the configuration.
    ///
    /// # Errors
    /// What could not be made, with the end of the failing node's console.
    pub fn boot(shape: Shape, products: Option<&Products>) -> anyhow::Result<Self> {
        let everyone = release::chosen();
        Self::boot_in(Room::new()?, shape, products, |_| everyone.clone().map(Tree::Release))
    }

    /// The same with controllers that are a Debian each: a layer over `system`, a tree with Pacemaker and its tools in it. Nothing
    /// of the project is in them.
    ///
    /// # Errors
    /// Those of [`Lab::boot`], and that there is no such tree.
    pub fn boot_debian(shape: Shape, system: &Path) -> anyhow::Result<Self> {
        let is_controller = |node: &str| node.starts_with("ctl");
        Self::boot_in(Room::new()?, shape, None, |node| {
            is_controller(node).then(|| Tree::Own(system.to_owned()))
        })
    }

    fn boot_in(
        room: Room,
        shape: Shape,
        products: Option<&Products>,
        root_of: impl Fn(&str) -> Option<Tree>,
    ) -> anyhow::Result<Self> {
        let plans = plan::nodes(shape);
        disk::lay_out(room.path(), shape, &plans, products)?;
        for plan in &plans {
            if let Some(tree) = root_of(&plan.name) {
                tree::choose(&disk::node_directory(room.path(), &plan.name), &tree)?;
            }
        }
        let rack = Arc::new(Rack::new(Hub::new()?, room.path(), &plans));
        let service = Service::start(room.path(), Arc::clone(&rack), products)?;
        let lab = Self { service, rack, plans, room };
        for plan in &lab.plans {
            lab.rack.power_on(&plan.name)?;
        }
        lab.wait_for_members()?;
        Ok(lab)
    }

    fn wait_for_members(&self) -> anyhow::Result<()> {
        let members: Vec<&str> = self.controllers().collect();
        self.wait_for("all controllers to be members of a quorate cluster", 60, |view| view.settled(&members))
    }

    /// Loads a configuration made by [`cib::Configuration`] and waits until the cluster has settled on it.
    ///
    /// # Errors
    /// When Pacemaker refuses it, or when it has not settled within a minute.
    pub fn configure(&self, configuration: &cib::Configuration) -> anyhow::Result<()> {
        self.load("configuration", "--modify", &configuration.to_xml())?;
        self.wait_until_ready()
    }

    /// Replaces one section of the CIB's configuration.
    ///
    /// # Errors
    /// When Pacemaker refuses it.
    pub fn replace_section(&self, section: &str, xml: &str) -> anyhow::Result<()> {
        self.load(section, "--replace", xml)
    }

    fn load(&self, section: &str, how: &str, xml: &str) -> anyhow::Result<()> {
        self.exec(self.spokesman(), &["cibadmin", how, "--scope", section, "--xml-text", xml])?
            .success()
            .map(drop)
            .with_context(|| format!("loading the section {section}"))
    }

    /// Waits until every node is online and clean, and the cluster has nothing to do.
    ///
    /// # Errors
    /// After a minute and a half, with the cluster's last state.
    pub fn wait_until_ready(&self) -> anyhow::Result<()> {
        let everyone: Vec<&str> = self.plans.iter().map(|plan| plan.name.as_str()).collect();
        self.wait_for("every node online and the cluster idle", 90, |view| view.settled(&everyone))?;
        wait::until("the DC to be idle", Duration::from_secs(90), || self.idle())
    }

    /// Powers a compute host on that is off, once the cluster has noticed that it is gone: one that was fenced by hand still counts as online
    /// for a moment, and one that is lost again before its connection stands is never fenced.
    ///
    /// # Errors
    /// After a minute and a half, with the cluster's last state.
    pub fn bring_back(&self, host: &str) -> anyhow::Result<()> {
        if self.is_on(host) {
            return Ok(());
        }
        self.wait_for("the cluster to miss the host", 90, |view| view.misses(host))?;
        self.power_on(host)
    }

    fn idle(&self) -> anyhow::Result<Option<()>> {
        let Some(dc) = self.view()?.dc() else { return Ok(None) };
        let said = self.exec(&dc, &["crmadmin", "-S", &dc])?;
        Ok(said.out.contains("S_IDLE").then_some(()))
    }

    /// Polls the cluster's state, as a running controller sees it, until `wanted` holds.
    ///
    /// # Errors
    /// After `seconds`, with the last state that was seen.
    pub fn wait_for(&self, what: &str, seconds: u64, wanted: impl Fn(&View) -> bool) -> anyhow::Result<()> {
        let mut last = String::from("never seen");
        wait::until(what, Duration::from_secs(seconds), || {
            let view = self.view()?;
            let holds = wanted(&view);
            last = view.to_string();
            Ok(holds.then_some(()))
        })
        .with_context(|| format!("the cluster's last state: {last}"))
    }

    /// The cluster's state as the first controller with a quorum sees it; without one, as any sees it.
    ///
    /// # Errors
    /// When no controller runs.
    pub fn view(&self) -> anyhow::Result<View> {
        Ok(self.best_view()?.1)
    }

    /// The cluster's state as one controller sees it; without a DC where it sees none.
    ///
    /// # Errors
    /// When it is off.
    pub fn view_of(&self, controller: &str) -> anyhow::Result<View> {
        // A controller whose daemons hang would keep the caller waiting.
        let question = ["timeout", "3", "crm_mon", "-1", "--output-as=xml", "--inactive"];
        Ok(View::read(&self.exec(controller, &question)?))
    }

    /// A controller that can speak for the cluster: the first that belongs to a quorum, else any that runs.
    #[must_use]
    pub fn spokesman(&self) -> &str {
        self.best_view().map_or("ctl1", |(controller, _)| controller)
    }

    fn best_view(&self) -> anyhow::Result<(&str, View)> {
        let mut seen = None;
        for controller in self.controllers().filter(|name| self.rack.is_well(name)) {
            let Ok(view) = self.view_of(controller) else { continue };
            let quorate = view.dc().is_some();
            seen = Some((controller, view));
            if quorate {
                break;
            }
        }
        seen.context("no controller runs")
    }

    /// Every fencing operation against `target` that the cluster remembers, the newest first.
    ///
    /// # Errors
    /// When no controller runs.
    pub fn fencings(&self, target: &str) -> anyhow::Result<Vec<Fencing>> {
        let question = ["stonith_admin", "--history", target, "--verbose", "--output-as=xml"];
        Ok(status::fencings(&self.exec(self.spokesman(), &question)?.out))
    }

    /// Runs a command inside a node and waits for its end.
    ///
    /// # Errors
    /// When the node is off or the command cannot be started; what the command itself says is in [`Ended`].
    pub fn exec(&self, node: &str, command: &[&str]) -> anyhow::Result<Ended> {
        self.rack.exec(node, command)
    }

    /// Names of the controllers, in order.
    pub fn controllers(&self) -> impl Iterator<Item = &str> {
        self.plans.iter().filter(|plan| plan.kind == Kind::Controller).map(|plan| plan.name.as_str())
    }

    /// Names of the compute hosts, in order.
    pub fn remotes(&self) -> impl Iterator<Item = &str> {
        self.plans.iter().filter(|plan| plan.kind == Kind::Remote).map(|plan| plan.name.as_str())
    }

    /// Takes the node's cable, then its power: its peers see silence, as with a real power cut.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn power_off(&self, node: &str) -> anyhow::Result<()> {
        self.rack.power_off(node)
    }

    /// Boots a node that is off; its disk is as it was left.
    ///
    /// # Errors
    /// What could not be made, with the end of the node's console.
    pub fn power_on(&self, node: &str) -> anyhow::Result<()> {
        self.rack.power_on(node)
    }

    /// Gives a node that is off another release of Pacemaker, as an upgrade does; its disk stays.
    ///
    /// # Errors
    /// That release's root is not there.
    pub fn change_release(&self, node: &str, suite: &str) -> anyhow::Result<()> {
        tree::choose(&disk::node_directory(self.room.path(), node), &Tree::Release(release::root(suite)))
    }

    /// Gives a node a clock of its own from its next start on, so many seconds ahead of the real one; or takes it away.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn set_clock(&self, node: &str, ahead: Option<i64>) -> anyhow::Result<()> {
        disk::set_clock(self.room.path(), node, ahead)
    }

    /// Whether the node has power.
    #[must_use]
    pub fn is_on(&self, node: &str) -> bool {
        self.rack.is_on(node)
    }

    /// Stops every process of a node where it stands (SIGSTOP); a power cycle ends it.
    ///
    /// # Errors
    /// When the node is off.
    pub fn freeze(&self, node: &str) -> anyhow::Result<()> {
        self.rack.freeze(node)
    }

    /// Lets a frozen node go on.
    ///
    /// # Errors
    /// When the node is off.
    pub fn thaw(&self, node: &str) -> anyhow::Result<()> {
        self.rack.thaw(node)
    }

    /// Signals every process of a node whose command line begins with `words`, and says how many there were.
    ///
    /// # Errors
    /// When the node is off.
    pub fn signal(&self, node: &str, words: &[&str], signal: Signal) -> anyhow::Result<usize> {
        let all = self.rack.processes(node, words)?;
        // One that has ended meanwhile needs no signal.
        let reached = all.iter().filter(|pid| kill(Pid::from_raw(**pid), signal).is_ok());
        Ok(reached.count())
    }

    /// The host's numbers of a node's processes whose command line begins with `words`.
    ///
    /// # Errors
    /// When the node is off.
    pub fn processes(&self, node: &str, words: &[&str]) -> anyhow::Result<Vec<i32>> {
        self.rack.processes(node, words)
    }

    /// Stops controllers together in the orderly way, as for a shutdown, then takes their power.
    ///
    /// # Errors
    /// When Pacemaker has not ended on all of them within a minute.
    pub fn shut_down(&self, controllers: &[&str]) -> anyhow::Result<()> {
        for controller in controllers {
            let signalled = self.signal(controller, &["pacemakerd"], Signal::SIGTERM)?;
            ensure!(signalled == 1, "{controller} runs {signalled} pacemakerd");
        }
        for controller in controllers {
            wait::until(&format!("Pacemaker to end on {controller}"), Duration::from_secs(60), || {
                Ok(self.processes(controller, &["pacemakerd"])?.is_empty().then_some(()))
            })?;
        }
        for controller in controllers {
            self.signal(controller, &["corosync"], Signal::SIGTERM)?;
        }
        controllers.iter().try_for_each(|controller| self.power_off(controller))
    }

    /// Cuts a node off from all others; its link stays up.
    ///
    /// # Errors
    /// When the node is off.
    pub fn partition(&self, node: &str) -> anyhow::Result<()> {
        self.rack.partition(node, true)
    }

    /// Joins a node that [`Lab::partition`] cut off.
    ///
    /// # Errors
    /// When the node is off.
    pub fn heal(&self, node: &str) -> anyhow::Result<()> {
        self.rack.partition(node, false)
    }

    /// The power devices and their records.
    #[must_use]
    pub fn bmc(&self) -> &Arc<Bmc> {
        self.service.bmc()
    }

    /// The address in the controllers' network that the test itself can listen on.
    #[must_use]
    pub fn own_address(&self) -> IpAddr {
        plan::HUB_ADDRESS.into()
    }

    /// A command that runs what follows it where [`Lab::own_address`] is.
    #[must_use]
    pub fn entrance(&self) -> Vec<OsString> {
        self.rack.entrance()
    }

    /// The program on the controller that runs the alerter, with these words.
    ///
    /// # Errors
    /// No controller runs it, or it fails.
    pub fn on_active(&self, words: &[&str]) -> anyhow::Result<String> {
        let active = self.view()?.location("alerter").context("no alerter runs")?;
        let command = [&["nova-host-alerter"], words].concat();
        self.exec(&active, &command)?.success().with_context(|| words.join(" "))
    }

    /// The newest mark of a host, as `show --json` has it there.
    ///
    /// # Errors
    /// As [`Lab::on_active`].
    pub fn shown(&self, host: &str) -> anyhow::Result<Value> {
        let shown: Value = serde_json::from_str(&self.on_active(&["show", host, "--json"])?)?;
        Ok(shown[0].clone())
    }

    /// The same as soon as it is as wanted.
    ///
    /// # Errors
    /// It is not within the limit.
    pub fn wait_shown(
        &self,
        host: &str,
        (what, limit): (&str, Duration),
        wanted: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let mut last = Value::Null;
        wait::until(&format!("the mark of {host} {what}"), limit, || {
            last = self.shown(host)?;
            Ok(wanted(&last).then(|| last.clone()))
        })
        .with_context(|| format!("the last one: {last}"))
    }

    /// A way to listen on `port` of [`Lab::own_address`], again and again.
    pub fn listener(&self, port: u16) -> impl Fn() -> std::io::Result<TcpListener> + Send + use<> {
        let namespace = self.rack.network_namespace();
        let address = (self.own_address(), port);
        move || hub::listen(&namespace, address)
    }

    /// Writes a file of the site's configuration, `/etc/nova-host-alerter/NAME`, in every controller.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_site(&self, name: &str, text: &str) -> anyhow::Result<()> {
        for node in self.controllers() {
            disk::write_site(self.room.path(), node, (name, 0o644), text)?;
        }
        Ok(())
    }

    /// The same for what its owner alone may read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_secret(&self, name: &str, text: &str) -> anyhow::Result<()> {
        for node in self.controllers() {
            disk::write_site(self.room.path(), node, (name, 0o600), text)?;
        }
        Ok(())
    }

    /// The lab's directory on the host: `nodes/NAME/var-log` (`upper/var/log` of a Debian of its own) holds a node's logs, and
    /// `shared` is its `/run/lab`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.room.path()
    }

    /// Leaves the logs of this lab behind until the next one is booted, and says where they are.
    pub fn keep_logs(&self) -> String {
        self.room.keep();
        format!("the nodes' logs are kept below {}", self.room.path().display())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.rack.close();
    }
}

/// The name of a node of a lab, or an error that lists nothing: used where a typo in a test would wait for ever.
fn unknown<T>(node: &str) -> anyhow::Result<T> {
    bail!("this lab has no node {node}")
}
