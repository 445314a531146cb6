//! Proves on a copy of the configuration that commands take nothing from the cluster, before they are run: the same tool
//! runs them there, and the result is compared with the original, as Pacemaker's fencer and scheduler read it.

mod fencing;
mod others;
mod schedule;

use std::path::{Path, PathBuf};
use std::{fs, io};

use nix::unistd::mkdtemp;
use pacemaker::xml::Element;
use pacemaker::{child, cib};

pub use fencing::lost;
use schedule::Schedule;

use super::finding::{Finding, Then};
use super::model::Cluster;
use super::print::on_copy;
use super::read::read;
use super::run::run_on_copy;
use super::step;
use super::step::Step;
use super::tool::Tool;

/// What is proven together, if not all of the plan is proven at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Fencing,
    Alerter,
    Alert,
    Properties,
    Health,
}

const PARTS: [Part; 5] = [Part::Fencing, Part::Alerter, Part::Alert, Part::Properties, Part::Health];

impl Part {
    /// `None` for a step outside of the cluster: there is nothing to prove.
    fn of(cluster: &Cluster, step: &Step) -> Option<Self> {
        Some(match step {
            Step::MakeKey { .. } => return None,
            Step::CreateMark { .. } | Step::SetLevels { .. } => Self::Fencing,
            Step::CreateAlerter { .. } | Step::KeepToControllers { .. } => Self::Alerter,
            Step::SetAlert { .. } => Self::Alert,
            Step::SetProperties(_) => Self::Properties,
            Step::CreateHealth { .. } | Step::FenceUnhealthy { .. } => Self::Health,
            Step::SetParameters { resource, .. }
            | Step::SetMeta { resource, .. }
            | Step::AddMonitor { resource, .. } => {
                if cluster.is_mark(resource) {
                    Self::Fencing
                } else {
                    Self::Alerter
                }
            }
        })
    }
}

/// A copy on which commands are tried, with the scheduler's result.
struct Before<'a> {
    tool: Tool,
    cluster: &'a Cluster,
    xml: &'a str,
    schedule: Result<Schedule, String>,
}

/// Why Pacemaker's scheduler does not show the effect of a change: it does nothing now, and will once this ends.
fn inert(cluster: &Cluster, root: &Element) -> Option<&'static str> {
    let is_ignored = cluster.property("no-quorum-policy") == Some("ignore");
    let may_be_on = |name| cluster.possible().any(|one| one.is_on(name) == Some(true));
    if may_be_on("maintenance-mode") {
        Some("maintenance-mode is true")
    } else if may_be_on("stop-all-resources") {
        Some("stop-all-resources is true")
    } else {
        (root.get("have-quorum") == "0" && !is_ignored).then_some("the cluster has no quorum")
    }
}

/// Makes questions of all unproven parts of the plan.
pub fn prove(tool: Tool, cluster: &Cluster, xml: &str, findings: &mut [Finding]) {
    let mut all = step::steps(findings);
    all.retain(|step| Part::of(cluster, step).is_some());
    if all.is_empty() {
        return;
    }
    let schedule = Copy::of(xml).map_err(|e| e.to_string()).and_then(|copy| Schedule::of(&copy.file));
    let before = Before { tool, cluster, xml, schedule };
    if before.objection(&all).is_ok() {
        return;
    }
    let mut proven: Vec<Part> = Vec::new();
    for part in PARTS {
        let is_in = |step: &&Step| {
            let own = Part::of(cluster, step);
            own.is_some_and(|own| own == part || proven.contains(&own))
        };
        let steps: Vec<Step> = all.iter().filter(is_in).cloned().collect();
        match before.objection(&steps) {
            Ok(()) => proven.push(part),
            Err(why) => ask(cluster, part, &why, findings),
        }
    }
}

fn ask(cluster: &Cluster, part: Part, why: &str, findings: &mut [Finding]) {
    for finding in findings {
        if let Then::Setup(step) = &finding.then
            && Part::of(cluster, step) == Some(part)
        {
            finding.then = question(step, why);
        }
    }
}

fn question(step: &Step, why: &str) -> Then {
    Then::Do(format!("should this be done: {}? It is not proven harmless: {why}", step.shown()))
}

impl Before<'_> {
    /// Why these steps are not proven.
    fn objection(&self, steps: &[Step]) -> Result<(), String> {
        let schedule = self.schedule.as_ref().map_err(Clone::clone)?;
        let root = tree(self.xml)?;
        if let Some(state) = inert(self.cluster, &root) {
            return Err(format!(
                "{state}, so the later effect cannot be tried now: end that first, and run `nova-host-alerter setup` again"
            ));
        }
        let copy = Copy::of(self.xml).map_err(|e| e.to_string())?;
        run_on_copy(&on_copy(self.tool, self.cluster, steps, &copy.file), &copy.file)?;
        let xml = fs::read_to_string(&copy.file).map_err(|e| e.to_string())?;
        let (here, wanted) = (self.cluster.here.clone(), self.cluster.wanted.clone());
        let after = read(&xml, here, wanted).map_err(|e| e.to_string())?;
        let lost = lost(self.cluster, &after);
        let all = lost.into_iter().next().or(others::changed(&root, &tree(&xml)?, steps));
        let all = match all {
            None => schedule.disturbed(&Schedule::of(&copy.file)?),
            found => found,
        };
        all.map_or(Ok(()), Err)
    }
}

fn tree(xml: &str) -> Result<Element, String> {
    cib::tree(xml).map_err(|e| e.to_string())
}

/// Whether the configuration is still the one that commands were proven on; the running state may have changed.
pub fn is_same(proven: &str, now: &str) -> bool {
    let configuration =
        |xml: &str| Some(cib::tree(xml).ok()?.at(&["configuration"]).first().map(|e| (*e).clone()));
    configuration(proven).is_some_and(|was| Some(was) == configuration(now))
}

/// If fencing is off: the hosts that Pacemaker would fence as soon as it is on.
pub fn with_lost(mut cluster: Cluster, xml: &str) -> Cluster {
    cluster.would_fence = cluster.switched_off().and_then(|property| would_fence(xml, property));
    cluster.under_rules.iter_mut().for_each(|(_, other)| other.would_fence.clone_from(&cluster.would_fence));
    cluster
}

/// `None` if unknown.
fn would_fence(xml: &str, property: &str) -> Option<Vec<String>> {
    let copy = Copy::of(xml).ok()?;
    let mut set = child::cluster_tool("crm_attribute".as_ref());
    set.env("CIB_file", &copy.file).args(["--type", "crm_config", "--name", property, "--update", "true"]);
    child::output(set, schedule::LIMIT, schedule::MOST).ok()?;
    Some(Schedule::of(&copy.file).ok()?.fenced.into_iter().collect())
}

/// A copy in a directory that only root can read, for it has passwords. It ends with this value.
struct Copy {
    room: PathBuf,
    file: PathBuf,
}

impl Copy {
    fn of(xml: &str) -> io::Result<Self> {
        let place = |directory: &Path| mkdtemp(&directory.join("nova-host-alerter-proof-XXXXXX"));
        let room = place(Path::new("/run")).or_else(|_| place(&std::env::temp_dir()))?;
        let file = room.join("cib.xml");
        let copy = Self { room, file };
        fs::write(&copy.file, xml)?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _nothing_there = fs::remove_dir_all(&self.room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While Pacemaker does nothing, the scheduler's silence proves nothing.
    #[test]
    fn a_scheduler_that_does_nothing_proves_nothing() {
        let with = |quorum: &str, properties: &[(&str, &str)]| {
            let root = tree(&format!(r#"<cib have-quorum="{quorum}"/>"#)).unwrap();
            let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let properties = properties.iter().map(pair).collect();
            inert(&Cluster { properties, ..Cluster::default() }, &root)
        };
        assert_eq!(with("1", &[("maintenance-mode", "false")]), None);
        assert_eq!(with("0", &[("no-quorum-policy", "ignore")]), None);
        assert!(with("0", &[]).is_some() && with("0", &[("no-quorum-policy", "freeze")]).is_some());
        assert!(with("1", &[("maintenance-mode", "true")]).is_some());
        assert!(with("1", &[("stop-all-resources", "yes")]).is_some());
    }
}
