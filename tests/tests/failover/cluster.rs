//! The cluster that the scenarios share: three controllers, any of which runs the alerter, and two recovery controllers.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use marks::register::Register;
use nix::sys::signal::Signal;
use serde_json::Value;
use tests::audit::{Excused, Fact, Listed};
use tests::etcd::Members;
use tests::lab::cib::{self, Spread};
use tests::lab::{Lab, MarkMode, Products, Shape, wait};
use tests::programs::millis;
use tests::receiver::{Answer, Received, Receiver};

use crate::truth;

/// Longer than it takes Pacemaker to notice a loss, to wait for a peer that died, and to fence.
pub(crate) const FENCED_WITHIN: Duration = Duration::from_secs(120);
/// Longer than the grace for evidence, and the longest pause between two attempts (30 s).
pub(crate) const NOTIFIED_WITHIN: Duration = Duration::from_secs(180);
/// Longer than `coalesce`, after which an alerter takes a member for back whatever Pacemaker has forgotten.
const RETURNED_WITHIN: Duration = Duration::from_secs(200);
/// A controller that boots has its daemons sooner.
const SHUT_DOWN_FOR: Duration = Duration::from_secs(3);
/// Long enough for an alerter that would send what it must not: its grace for evidence is 10 s, its poll 2 s.
pub(crate) const QUIET: Duration = Duration::from_secs(14);

pub(crate) const ALERTER: [&str; 2] = ["nova-host-alerter", "run"];
pub(crate) const ROUTES: [(&str, u16); 2] = [("recovery", 8080), ("second", 8081)];
pub(crate) const DOMAIN: &str = "my.cloud.com";
/// The site's configuration in a node.
const SITE: &str = "/etc/nova-host-alerter";

const SHAPE: Shape = Shape { controllers: 3, remotes: 12 };

pub(crate) struct Cluster {
    /// Where it was the register once; like the receivers, before the lab.
    etcd: Option<Members>,
    /// Before the lab: their sockets live in the lab's network. In the order of [`ROUTES`].
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) lab: Lab,
    pub(crate) register: Register,
    /// The `[groups]` of the site's configuration; empty where nothing is held.
    groups: String,
    /// Whether the routes are notified of returns too.
    returns: bool,
    /// Controllers that the cluster takes for fenced though they never lost their power.
    undead: BTreeSet<String>,
    /// Marks that were listed as a scenario began. An alerter that comes later may make a confirmation by hand of the history
    /// once more, before it reads that the mark has ended.
    known: BTreeSet<String>,
    /// The scenario before this one, to be audited once more: a late repetition shows only later.
    last: Option<(Before, Excused)>,
}

/// What there was when a scenario began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// Milliseconds since the epoch.
    pub(crate) at: i64,
    /// How many requests had come to each receiver, returns too.
    pub(crate) requests: Vec<usize>,
    pub(crate) events: usize,
    pub(crate) marks: BTreeSet<String>,
    /// Outages that no power device has on its record, since a human said that the host is off.
    pub(crate) confirmed: Vec<Fact>,
}

impl Before {
    /// An operator is about to confirm that this host, which is really off, was fenced.
    pub(crate) fn confirmed(&mut self, host: &str) {
        self.confirmed.push(Fact::Off(host.to_owned(), truth::milliseconds(SystemTime::now())));
    }
}

/// The register of a scenario that names none; `NHA_REGISTER` says another one for all of them.
fn usual() -> anyhow::Result<Register> {
    let named = std::env::var("NHA_REGISTER").ok();
    let register = named.as_deref().map_or(Some(Register::default()), Register::parse);
    register.context("NHA_REGISTER names no register")
}

/// Whether the routes of every scenario are notified of returns too: `NHA_RETURNS`.
fn usual_returns() -> bool {
    std::env::var_os("NHA_RETURNS").is_some()
}

/// What a receiver got of failures behind the `known` requests: returns have scenarios of their own.
pub(crate) fn failures(receiver: &Receiver, known: usize) -> Vec<Received> {
    receiver.received().into_iter().skip(known).filter(|request| !truth::is_return(request)).collect()
}

/// A mark as `list` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) id: String,
    pub(crate) node: String,
    pub(crate) state: String,
    pub(crate) holds: Vec<String>,
    /// Milliseconds since the epoch.
    pub(crate) made_at: i64,
    /// Milliseconds since the epoch when its host was back.
    pub(crate) returned_at: Option<i64>,
    /// Route, state and number of attempts.
    pub(crate) deliveries: Vec<(String, String, u64)>,
    /// The same of its returns.
    pub(crate) returns: Vec<(String, String, u64)>,
}

impl Cluster {
    pub(crate) fn boot() -> anyhow::Result<Self> {
        let lab = Lab::boot(SHAPE, Some(&Products::built()?))?;
        let receivers = ROUTES.map(|(_, port)| Receiver::listen(lab.listener(port)));
        let receivers = receivers.into_iter().collect::<Result<_, _>>()?;
        let (register, groups, undead) = (Register::Attrd, String::new(), BTreeSet::new());
        let (known, last, etcd) = (BTreeSet::new(), None, None);
        let returns = usual_returns();
        let cluster = Self { receivers, lab, register, groups, returns, undead, known, last, etcd };
        cluster.write_site()?;
        let configuration = cib::Configuration { shape: SHAPE, alerter: true, spread: Spread::Everywhere };
        cluster.lab.configure(&configuration).with_context(|| cluster.lab.keep_logs())?;
        Ok(cluster)
    }

    fn write_site(&self) -> anyhow::Result<()> {
        let route = |(name, port): (&str, u16)| {
            let url = format!("http://{}:{port}/v1/host-failures", self.lab.own_address());
            let returned = if self.returns { "when-returned = \"notify\"\n" } else { "" };
            format!("\n[http.{name}]\nurl = \"{url}\"\nallow-http = true\n{returned}")
        };
        let members = self.etcd.as_ref().filter(|_| self.register == Register::Etcd);
        let etcd = members.map(|members| members.table_in(SITE.as_ref(), "/east"));
        let text = format!(
            "[store]\nregister = \"{}\"\n\n{}\n[hosts]\ndomain = \"{DOMAIN}\"\non-shared-storage = true\n{}\n{}",
            self.register.as_str(),
            etcd.unwrap_or_default(),
            ROUTES.map(route).concat(),
            self.groups,
        );
        self.lab.write_site("alerter.toml", &text)
    }

    /// What a failed scenario leaves for its analysis.
    pub(crate) fn explain(&self) -> String {
        let roles = self.lab.view().map_or_else(|error| format!("{error:#}"), |view| view.to_string());
        let record = self.lab.bmc().record();
        let last: Vec<String> = record.iter().filter_map(truth::in_short).rev().take(30).collect::<Vec<_>>();
        let last: Vec<String> = last.into_iter().rev().collect();
        let alerter = self.lab.view().ok().and_then(|view| view.location("alerter"));
        let alerter = alerter.unwrap_or_else(|| "nowhere".to_owned());
        let lost = self.of_lost_hosts().unwrap_or_else(|error| format!("{error:#}"));
        let kept = self.lab.keep_logs();
        format!("{roles}; alerter on {alerter}\nlast: {}\n{lost}{kept}", last.join("; "))
    }

    /// Pacemaker's last lines about each host that it has lost: from another machine they are all that one gets.
    fn of_lost_hosts(&self) -> anyhow::Result<String> {
        let view = self.lab.view()?;
        let dc = view.dc().context("no DC")?;
        let log = self.lab.directory().join("nodes").join(&dc).join("var-log/pacemaker/pacemaker.log");
        let log = fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
        let is_notified =
            |line: &&str| ["notice:", "warning:", "error:"].iter().any(|word| line.contains(word));
        let mut said = String::new();
        for host in self.lab.remotes().filter(|host| view.is_lost(host)) {
            let is_of_host =
                |line: &&str| line.split(|c: char| !c.is_alphanumeric()).any(|word| word == host);
            let last: Vec<&str> = log.lines().rev().filter(is_notified).filter(is_of_host).take(8).collect();
            for line in last.into_iter().rev() {
                said.push_str(line);
                said.push('\n');
            }
        }
        Ok(said)
    }

    /// Puts everything right that the last scenario changed, audits that scenario once more, and waits until nothing is
    /// under way.
    pub(crate) fn begin(&mut self) -> anyhow::Result<Before> {
        self.begin_with(usual()?)
    }

    /// The same with this register; with another than before, the alerter and the agents get a new configuration.
    pub(crate) fn begin_with(&mut self, register: Register) -> anyhow::Result<Before> {
        self.begin_as((register, "", usual_returns()))
    }

    /// The same with routes that are notified of returns.
    pub(crate) fn begin_with_returns(&mut self) -> anyhow::Result<Before> {
        self.begin_as((usual()?, "", true))
    }

    /// The same with these `[groups]`.
    pub(crate) fn begin_with_groups(&mut self, groups: &str) -> anyhow::Result<Before> {
        self.begin_as((usual()?, groups, usual_returns()))
    }

    fn begin_as(&mut self, (register, groups, returns): (Register, &str, bool)) -> anyhow::Result<Before> {
        for receiver in &mut self.receivers {
            receiver.answer(Answer::Status(200));
            receiver.up()?;
        }
        self.repair_controllers()?;
        self.configure()?;
        self.hosts_return()?;
        // A scenario that failed may have left a pause.
        self.on_active(&["nova-host-alerter", "resume"])?;
        self.end_what_is_open()?;
        if let Some((before, mut excused)) = self.last.take() {
            // What was held has been ended by hand just now.
            excused.not_notified.values_mut().for_each(|state| "dismissed".clone_into(state));
            let findings = self.findings(&before, &excused)?;
            ensure!(findings.is_empty(), "after the last scenario had ended: {findings:#?}");
            self.wait_for_returns(&before)?;
        }
        if groups != self.groups || returns != self.returns {
            self.returns = returns;
            groups.clone_into(&mut self.groups);
            self.configure_again()?;
        }
        if register != self.register {
            self.forget(register)?;
        }
        self.now()
    }

    /// The same, and no controller has a journal, nor the cluster a history of fencings: what an earlier scenario left open
    /// there, and what was confirmed by hand, would come up again.
    pub(crate) fn begin_again(&mut self) -> anyhow::Result<Before> {
        self.begin_again_with(usual()?)
    }

    pub(crate) fn begin_again_with(&mut self, register: Register) -> anyhow::Result<Before> {
        self.begin_as((register, "", usual_returns()))?;
        self.forget(register)?;
        self.now()
    }

    fn now(&mut self) -> anyhow::Result<Before> {
        self.known.extend(self.marks()?.into_iter().map(|mark| mark.id));
        Ok(Before {
            at: truth::milliseconds(SystemTime::now()),
            requests: self.receivers.iter().map(|receiver| receiver.received().len()).collect(),
            events: self.lab.bmc().record().len(),
            marks: self.known.clone(),
            confirmed: Vec::new(),
        })
    }

    /// Waits until the alerter has seen that every host is back. One that is lost before that takes it along: a host that dies with
    /// it, minutes after its first outage, is then still in that one. Mostly it takes seconds; but Pacemaker 2.1.5 sometimes shows
    /// a host as online and has no start of its connection.
    fn wait_for_returns(&self, before: &Before) -> anyhow::Result<()> {
        let mut away = Vec::new();
        wait::until("every return to be noted", RETURNED_WITHIN, || {
            let is_away = |mark: &Mark| mark.state == "acknowledged" && mark.returned_at.is_none();
            away = self.marks_since(before)?.into_iter().filter(is_away).collect();
            Ok(away.is_empty().then_some(()))
        })
        .with_context(|| format!("the marks of hosts that are not back: {away:?}"))
    }

    fn repair_controllers(&mut self) -> anyhow::Result<()> {
        self.lab.bmc().repair();
        self.lab.bmc().set_mark(MarkMode::Recorded)?;
        let names = self.names();
        for name in &names {
            self.lab.set_clock(name, None)?;
            if self.undead.remove(name) {
                self.lab.power_off(name)?;
            }
            if self.lab.is_on(name) {
                self.lab.thaw(name)?;
                self.lab.heal(name)?;
            }
            self.lab.power_on(name)?;
        }
        self.wait_for_controllers()?;
        // One that could not be fenced until now is fenced after all, and boots once more.
        wait::until("no fencing of a controller to be under way", FENCED_WITHIN, || {
            for name in &names {
                if self.lab.fencings(name)?.iter().any(|fencing| fencing.status == "pending") {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })?;
        self.wait_for_controllers()
    }

    /// Waits until all controllers are members. One that learns that it was fenced shuts itself down and stays down: here
    /// a controller boots in seconds, and may be back before that news. The test has to power it on.
    pub(crate) fn wait_for_controllers(&self) -> anyhow::Result<()> {
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut down = Vec::new();
        wait::until("all controllers to be members", FENCED_WITHIN, || {
            if self.lab.view().is_ok_and(|view| view.settled(&names)) {
                return Ok(Some(()));
            }
            let still = self.shut_down_by_themselves()?;
            for name in still.iter().filter(|name| down.contains(*name)) {
                self.lab.power_off(name)?;
                self.lab.power_on(name)?;
            }
            down = still;
            std::thread::sleep(SHUT_DOWN_FOR);
            Ok(None)
        })
        .with_context(|| self.lab.view().map_or_else(|error| format!("{error:#}"), |view| view.to_string()))
    }

    /// Controllers that have power, and neither Corosync nor Pacemaker.
    fn shut_down_by_themselves(&self) -> anyhow::Result<Vec<String>> {
        let mut all = Vec::new();
        for name in self.names().into_iter().filter(|name| self.lab.is_on(name)) {
            let (pacemaker, corosync) = (["pacemakerd"], ["corosync"]);
            let is_running =
                |program: &[&str]| Ok::<_, anyhow::Error>(!self.lab.processes(&name, program)?.is_empty());
            if !is_running(&pacemaker)? && !is_running(&corosync)? {
                all.push(name);
            }
        }
        Ok(all)
    }

    fn configure(&self) -> anyhow::Result<()> {
        self.set_levels(&cib::RECOMMENDED)?;
        self.set_property("no-quorum-policy", "stop")?;
        self.run(&["crm_resource", "--clear", "--resource", "alerter"])?;
        // A scenario that failed may have left it stopped.
        self.set_alerter_role("Started")?;
        self.run(&["crm_resource", "--cleanup"]).map(drop)
    }

    /// The next alerter reads the new configuration; journals and register stay as they are.
    fn configure_again(&self) -> anyhow::Result<()> {
        self.stop_alerter()?;
        self.write_site()?;
        self.set_alerter_role("Started")?;
        self.wait_for_alerter().map(drop)
    }

    /// With another register the controllers begin again: what only the old one knew must not seem open. Nor may Pacemaker
    /// remember a confirmation by hand: an alerter without a journal holds it once more, sooner or later.
    fn forget(&mut self, register: Register) -> anyhow::Result<()> {
        self.wait_for_alerter()?;
        self.stop_alerter()?;
        self.put_journals_aside()?;
        self.forget_fencings()?;
        self.register = register;
        self.run_etcd()?;
        self.write_site()?;
        self.set_alerter_role("Started")?;
        self.wait_for_alerter().map(drop)
    }

    /// No controller knows anything. Moved, not removed: the analysis of an earlier failure needs them.
    pub(crate) fn put_journals_aside(&self) -> anyhow::Result<()> {
        let forget =
            "cd /var/lib/nova-host-alerter && old=before-$(date +%s%N) && mkdir $old && rm -f evidence/* &&
            find . -maxdepth 1 -name 'marks.db*' -exec mv -t $old {} +";
        self.names()
            .iter()
            .try_for_each(|name| self.lab.exec(name, &["sh", "-c", forget])?.success().map(drop))
    }

    /// Where it is the register, it runs from then on, beside the cluster.
    fn run_etcd(&mut self) -> anyhow::Result<()> {
        if self.register != Register::Etcd || self.etcd.is_some() {
            return Ok(());
        }
        let members = Members::in_lab(&self.lab)?;
        for name in ["ca.pem", "client.pem"] {
            self.lab.write_site(name, &fs::read_to_string(members.path(name))?)?;
        }
        self.lab.write_secret("client.key", &fs::read_to_string(members.path("client.key"))?)?;
        self.etcd = Some(members);
        Ok(())
    }

    /// No controller's fencer remembers a fencing.
    fn forget_fencings(&self) -> anyhow::Result<()> {
        self.run(&["stonith_admin", "--cleanup", "--history", "*"])?;
        wait::until("the history to be empty everywhere", FENCED_WITHIN, || {
            for name in self.names() {
                let history = ["stonith_admin", "--history", "*", "--output-as=xml"];
                if self.lab.exec(&name, &history)?.success()?.contains("<fence_event ") {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
    }

    pub(crate) fn stop_alerter(&self) -> anyhow::Result<()> {
        self.set_alerter_role("Stopped")?;
        // Between its stop on one controller and its start on the next it is nowhere, and not stopped.
        let _it_may_go_on_about_hosts = self.run(&["crm_resource", "--wait", "--timeout", "60s"]);
        self.lab
            .wait_for("the alerter to be stopped", 60, |view| view.location("alerter").is_none())
            .map(drop)
    }

    pub(crate) fn set_alerter_role(&self, role: &str) -> anyhow::Result<()> {
        let set = ["crm_resource", "--resource", "alerter", "--meta", "--set-parameter", "target-role"];
        self.run(&[&set[..], &["--parameter-value", role]].concat()).map(drop)
    }

    pub(crate) fn set_levels(&self, levels: &[&str]) -> anyhow::Result<()> {
        let hosts: Vec<String> = self.lab.remotes().map(str::to_owned).collect();
        self.lab.replace_section("fencing-topology", &cib::topology(&hosts, levels))
    }

    pub(crate) fn set_property(&self, name: &str, value: &str) -> anyhow::Result<()> {
        self.run(&["crm_attribute", "--type", "crm_config", "--name", name, "--update", value]).map(drop)
    }

    /// Waits until every host is a member; one that stays off is powered on, once the cluster has missed it.
    pub(crate) fn hosts_return(&self) -> anyhow::Result<()> {
        self.wait_for_controllers()?;
        let hosts: Vec<String> = self.lab.remotes().map(str::to_owned).collect();
        hosts.iter().try_for_each(|host| self.lab.bring_back(host))?;
        self.lab.wait_until_ready()?;
        self.wait_for_alerter().map(drop)
    }

    /// Waits until the host was fenced since the scenario began, has a connection to the cluster that is newer, and is a
    /// member by the cluster's word too.
    pub(crate) fn wait_back(&self, before: &Before, host: &str) -> anyhow::Result<()> {
        self.wait_fenced(before, host)?;
        wait::until(&format!("{host} to be back"), FENCED_WITHIN, || {
            Ok((!truth::is_down(&self.lab, before, host)?).then_some(()))
        })?;
        // The cluster counts a host as online while its connection is only being started, and forgets a start that no
        // monitor has followed: only once it is idle would another death be a second outage to it.
        self.lab.wait_until_ready()
    }

    /// A controller that is none of these.
    pub(crate) fn other_than(&self, these: &[&str]) -> anyhow::Result<String> {
        self.names().into_iter().find(|name| !these.contains(&name.as_str())).context("no other controller")
    }

    /// Waits until the scenario has made so many marks of the host.
    pub(crate) fn wait_marks(&self, before: &Before, host: &str, count: usize) -> anyhow::Result<Vec<Mark>> {
        let mut seen = Vec::new();
        wait::until(&format!("{count} marks of {host}"), NOTIFIED_WITHIN, || {
            seen = self.marks_since(before)?.into_iter().filter(|mark| mark.node == host).collect();
            Ok((seen.len() >= count).then_some(()))
        })
        .with_context(|| format!("the marks: {seen:?}"))?;
        Ok(seen)
    }

    /// Waits until an alerter answers somewhere, and gives the controller it runs on.
    pub(crate) fn wait_for_alerter(&self) -> anyhow::Result<String> {
        self.wait_for_alerter_off("")
    }

    /// Waits until an alerter answers on another controller than this one.
    pub(crate) fn wait_for_alerter_off(&self, other: &str) -> anyhow::Result<String> {
        let what = format!("an alerter elsewhere than on '{other}'");
        wait::until(&what, FENCED_WITHIN, || {
            let Some(active) = self.lab.view()?.location("alerter").filter(|active| active != other) else {
                return Ok(None);
            };
            let status = ["timeout", "3", "nova-host-alerter", "status", "--ocf"];
            Ok(matches!(self.lab.exec(&active, &status)?.rc, 0 | 190).then_some(active))
        })
    }

    /// Nothing of an earlier scenario may still be under way, though it failed.
    /// What the last scenario wanted held is ended by hand. A host that was fenced since its audit waits for its evidence.
    fn end_what_is_open(&self) -> anyhow::Result<()> {
        let is_wanted = |mark: &&Mark| {
            let excused = self.last.as_ref().map(|(_, excused)| excused);
            mark.state == "held"
                && excused.is_none_or(|excused| excused.not_notified.contains_key(&mark.node))
        };
        wait::until("every mark to be settled", NOTIFIED_WITHIN, || {
            for mark in self.marks()?.iter().filter(is_wanted) {
                self.on_active(&["nova-host-alerter", "unmark", &mark.id, "--reason", "the scenario ended"])?;
            }
            let marks = self.marks()?;
            let open = |mark: &&Mark| matches!(mark.state.as_str(), "open" | "held");
            Ok(marks.iter().find(open).is_none().then_some(()))
        })
    }

    /// Names of the controllers.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lab.controllers().map(str::to_owned).collect()
    }

    /// Runs a command on a controller that belongs to the quorum; it has to succeed.
    pub(crate) fn run(&self, command: &[&str]) -> anyhow::Result<String> {
        self.lab.exec(self.lab.spokesman(), command)?.success().with_context(|| command.join(" "))
    }

    /// Runs a command on the controller that has the alerter; it has to succeed.
    pub(crate) fn on_active(&self, command: &[&str]) -> anyhow::Result<String> {
        let active = self.wait_for_alerter()?;
        self.lab.exec(&active, command)?.success().with_context(|| command.join(" "))
    }

    /// Waits until the active alerter's history is as wanted.
    pub(crate) fn wait_history(&self, what: &str, wanted: impl Fn(&[Value]) -> bool) -> anyhow::Result<()> {
        let mut rows = Vec::new();
        let seen = wait::until(what, FENCED_WITHIN, || {
            let history = ["nova-host-alerter", "history", "--limit", "0", "--json"];
            rows = serde_json::from_str(&self.on_active(&history)?)?;
            Ok(wanted(&rows).then_some(()))
        });
        seen.with_context(|| format!("{rows:?}"))
    }

    /// All marks as the active alerter's controller lists them.
    pub(crate) fn marks(&self) -> anyhow::Result<Vec<Mark>> {
        let listed = self.on_active(&["nova-host-alerter", "list", "--all", "--json"])?;
        let listed: Value = serde_json::from_str(&listed)?;
        listed.as_array().context("list gives no array")?.iter().map(Mark::read).collect()
    }

    /// An old mark may show up for the first time when the alerter moves to the controller whose journal holds it.
    pub(crate) fn marks_since(&self, before: &Before) -> anyhow::Result<Vec<Mark>> {
        let is_new = |mark: &Mark| mark.made_at >= before.at && !before.marks.contains(&mark.id);
        Ok(self.marks()?.into_iter().filter(is_new).collect())
    }

    /// Waits for a mark of the host that the scenario made and that is as wanted.
    pub(crate) fn wait_mark(
        &self,
        before: &Before,
        host: &str,
        what: &str,
        wanted: impl Fn(&Mark) -> bool,
    ) -> anyhow::Result<Mark> {
        let mut seen = Vec::new();
        wait::until(&format!("a mark of {host} that is {what}"), NOTIFIED_WITHIN, || {
            seen = self.marks_since(before)?;
            Ok(seen.iter().find(|mark| mark.node == host && wanted(mark)).cloned())
        })
        .with_context(|| format!("the marks: {seen:?}"))
    }

    /// Waits until the host's mark was tried without success on every route: nobody listens.
    pub(crate) fn wait_open(&self, before: &Before, host: &str) -> anyhow::Result<Mark> {
        self.wait_mark(before, host, "open and tried", |mark| {
            mark.state == "open" && mark.deliveries.iter().all(|(_, _, attempts)| *attempts > 0)
        })
    }

    /// Waits until `fence_mark off` for the host has ended well, and gives the controller that it ran on.
    pub(crate) fn wait_marked(&self, before: &Before, host: &str) -> anyhow::Result<String> {
        wait::until(&format!("{host} to be marked"), FENCED_WITHIN, || {
            Ok(self.off_calls(before, host).into_iter().find(|(_, rc)| *rc == Some(0)).map(|(node, _)| node))
        })
    }

    /// The calls of `fence_mark off` for the host: controller, exit code.
    pub(crate) fn off_calls(&self, before: &Before, host: &str) -> Vec<(String, Option<u8>)> {
        let mut calls = self.lab.bmc().offs_since(before.events);
        calls.retain(|(call, _)| call.given("nodename") == Some(host));
        calls.into_iter().map(|(call, rc)| (call.node, rc)).collect()
    }

    /// Waits until the cluster says that the node was fenced since the scenario began.
    pub(crate) fn wait_fenced(&self, before: &Before, node: &str) -> anyhow::Result<()> {
        wait::until(&format!("{node} to be fenced"), FENCED_WITHIN, || {
            Ok(truth::offs(&self.lab, before.events).iter().any(|(off, _)| off == node).then_some(()))
        })
    }

    /// The host's only daemon dies: the cluster's connection is closed at once, and the host is fenced. It is there twice where it
    /// is just starting an agent.
    pub(crate) fn crash(&self, host: &str) -> anyhow::Result<()> {
        let killed = self.lab.signal(host, &["pacemaker-remoted"], Signal::SIGKILL)?;
        ensure!(killed >= 1, "{host} runs no pacemaker-remoted");
        Ok(())
    }

    pub(crate) fn all_down(&mut self) {
        self.receivers.iter_mut().for_each(Receiver::down);
    }

    pub(crate) fn all_up(&mut self) -> anyhow::Result<()> {
        self.receivers.iter_mut().try_for_each(|receiver| Ok(receiver.up()?))
    }

    /// How many requests have come since the scenario began, on all routes.
    pub(crate) fn notified(&self, before: &Before) -> usize {
        let all = self.receivers.iter().zip(&before.requests);
        all.map(|(receiver, known)| failures(receiver, *known).len()).sum()
    }

    /// That nobody is notified of anything for a while.
    pub(crate) fn quiet(&self, before: &Before, seconds: Duration) -> anyhow::Result<()> {
        let known = self.notified(before);
        let end = Instant::now() + seconds;
        let notified = wait::until("the time to pass", seconds + FENCED_WITHIN, || {
            let notified = self.notified(before) > known;
            Ok((notified || Instant::now() >= end).then_some(notified))
        })?;
        if notified {
            bail!("something was sent: {:#?}", truth::notified(self, before)?.split_off(known));
        }
        Ok(())
    }

    /// The cluster takes this controller for dead, but it lives: it is power cycled before the next scenario.
    pub(crate) fn is_undead(&mut self, controller: &str) {
        self.undead.insert(controller.to_owned());
    }

    /// The audit: waits until it finds nothing more, then keeps it for a second check.
    pub(crate) fn audit(&mut self, before: Before, excused: Excused) -> anyhow::Result<()> {
        self.audit_now(&before, &excused)?;
        self.last = Some((before, excused));
        Ok(())
    }

    /// The audit without the second check: what comes next in the scenario changes what is listed.
    pub(crate) fn audit_now(&self, before: &Before, excused: &Excused) -> anyhow::Result<()> {
        let mut findings = Vec::new();
        wait::until("the audit to find nothing", NOTIFIED_WITHIN, || {
            findings = self.findings(before, excused)?;
            Ok(findings.is_empty().then_some(()))
        })
        .with_context(|| format!("{findings:#?}"))
    }

    fn findings(&self, before: &Before, excused: &Excused) -> anyhow::Result<Vec<String>> {
        let mut findings = tests::audit::audit(&truth::story(self, before)?, excused);
        let by_hand = self.marks()?.into_iter().filter(|mark| mark.state == "dismissed").map(|mark| mark.id);
        let by_hand: BTreeSet<String> = by_hand.collect();
        for (receiver, known) in self.receivers.iter().zip(&before.requests) {
            findings.extend(truth::of_returns(&receiver.received(), *known, &by_hand));
        }
        Ok(findings)
    }
}

impl Mark {
    fn read(listed: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let each = |key: &str| listed[key].as_array().cloned().unwrap_or_default();
        let delivery = |one: &Value| {
            (text(&one["route"]), text(&one["state"]), one["attempts"].as_u64().unwrap_or_default())
        };
        let is_return = |one: &Value| text(&one["route"]).ends_with(".return");
        let (returns, failures): (Vec<Value>, Vec<Value>) =
            each("deliveries").into_iter().partition(is_return);
        Ok(Self {
            id: listed["id"].as_str().context("a mark without an id")?.to_owned(),
            node: text(&listed["host"]),
            state: text(&listed["state"]),
            holds: each("holds").iter().map(text).collect(),
            made_at: millis(&listed["made_at"]).context("a mark that was made at no time")?,
            returned_at: millis(&listed["returned_at"]),
            deliveries: failures.iter().map(delivery).collect(),
            returns: returns.iter().map(delivery).collect(),
        })
    }

    pub(crate) fn is_held_as(&self, hold: &str) -> bool {
        self.state == "held" && self.holds.iter().any(|held| held == hold)
    }

    pub(crate) fn listed(self) -> Listed {
        Listed { id: self.id, node: self.node, state: self.state }
    }
}
