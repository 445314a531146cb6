//! The result of Pacemaker's own scheduler for a configuration, as `crm_simulate` prints it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use pacemaker::child;
use pacemaker::xml::Element;

/// The time limit of Pacemaker's tools.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
/// The limit of their output.
pub(super) const MOST: usize = 256 * 1024 * 1024;

/// Whether these run, and restart, harms no host.
const OURS: [&str; 2] = [crate::model::ALERTER_AGENT, pacemaker::cib::HEALTH_AGENT];

/// Each resource with the nodes that it runs on.
type Places = BTreeMap<String, BTreeSet<String>>;

/// The scheduler's actions, and their result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedule {
    /// The hosts that would be fenced.
    pub(super) fenced: BTreeSet<String>,
    /// What runs now, and where.
    now: Places,
    /// What would run then, and where.
    then: Places,
    /// The actions on running resources.
    actions: BTreeSet<(String, String)>,
    /// Fence devices and what is ours: they may run anywhere.
    free: BTreeSet<String>,
}

impl Schedule {
    pub(super) fn of(file: &Path) -> Result<Self, String> {
        let mut simulate = child::cluster_tool("crm_simulate".as_ref());
        simulate.args(["--simulate", "--output-as=xml", "--xml-file"]).arg(file);
        let output = child::output(simulate, LIMIT, MOST).map_err(|e| format!("crm_simulate: {e}"))?;
        Self::read(&String::from_utf8_lossy(&output))
            .ok_or_else(|| "the output of crm_simulate cannot be read".to_owned())
    }

    fn read(xml: &str) -> Option<Self> {
        let root = Element::parse(xml).ok()?;
        let places = |section: &str| {
            let found = root.at(&[section, "resources"]).into_iter().flat_map(Element::walk);
            let mut all = Places::new();
            for resource in found.filter(|element| element.name == "resource") {
                let nodes = resource.all("node").map(|node| node.get("name").to_owned());
                all.entry(resource.get("id").to_owned()).or_default().extend(nodes);
            }
            all
        };
        let agents = root.walk().into_iter().filter(|element| element.name == "resource");
        let is_free = |agent: &str| agent.starts_with("stonith:") || OURS.contains(&agent);
        let free = agents.filter(|resource| is_free(resource.get("resource_agent")));
        let fenced =
            root.at(&["transition", "fencing_action"]).into_iter().filter(|action| action.get("op") != "on");
        let actions =
            root.at(&["actions", "rsc_action"]).into_iter().filter(|action| action.get("action") != "start");
        let schedule = Self {
            fenced: fenced.map(|action| action.get("target").to_owned()).collect(),
            now: places("cluster_status"),
            then: places("revised_cluster_status"),
            actions: actions.map(|a| (a.get("action").to_owned(), a.get("resource").to_owned())).collect(),
            free: free.map(|resource| resource.get("id").to_owned()).collect(),
        };
        (root.name == "pacemaker-result" && !root.at(&["revised_cluster_status"]).is_empty())
            .then_some(schedule)
    }

    /// What another configuration would do to parts that this one leaves alone, in words.
    pub(super) fn disturbed(&self, after: &Self) -> Option<String> {
        if let Some(host) = after.fenced.difference(&self.fenced).next() {
            return Some(format!("Pacemaker would fence {host}"));
        }
        // An action on a clone names the instance.
        let is_free = |id: &&str| id.split(':').next().is_some_and(|id| self.free.contains(id));
        let mut acted = after.actions.difference(&self.actions).filter(|(_, id)| !is_free(&id.as_str()));
        if let Some((action, id)) = acted.next() {
            return Some(format!("Pacemaker would {action} {id}"));
        }
        let places = |all: &Places, id: &str| all.get(id).cloned().unwrap_or_default();
        let is_moved = |id: &&String| {
            let (was, is) = (places(&self.then, id), places(&after.then, id));
            let stays = is_free(&id.as_str()) || places(&self.now, id).is_empty();
            if stays { !was.is_empty() && is.is_empty() } else { was != is }
        };
        let moved = self.then.keys().find(is_moved)?;
        Some(format!("Pacemaker would not run {moved} where it runs it now"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"<pacemaker-result><cluster_status><resources>
      <resource id="vip" resource_agent="ocf:heartbeat:IPaddr2"><node name="ctl1"/></resource>
      <clone id="c"><resource id="x" resource_agent="ocf:a:x"><node name="ctl1"/></resource>
        <resource id="x" resource_agent="ocf:a:x"><node name="ctl2"/></resource></clone>
      <resource id="power" resource_agent="stonith:fence_ipmilan"><node name="ctl1"/></resource></resources></cluster_status>
      <actions/><transition/><revised_cluster_status><resources>
      <resource id="vip" resource_agent="ocf:heartbeat:IPaddr2"><node name="ctl1"/></resource>
      <clone id="c"><resource id="x" resource_agent="ocf:a:x"><node name="ctl1"/></resource>
        <resource id="x" resource_agent="ocf:a:x"><node name="ctl2"/></resource></clone>
      <resource id="power" resource_agent="stonith:fence_ipmilan"><node name="ctl1"/></resource></resources></revised_cluster_status></pacemaker-result>"#;

    #[test]
    fn what_runs_stays_where_it_runs() {
        let before = Schedule::read(BEFORE).unwrap();
        let after = |pairs: &[(&str, &str)]| {
            let (head, tail) = BEFORE.split_once("<actions/>").unwrap();
            let tail = pairs.iter().fold(format!("<actions/>{tail}"), |text, (from, to)| {
                assert!(text.contains(from), "{from}");
                text.replacen(from, to, 1)
            });
            before.disturbed(&Schedule::read(&format!("{head}{tail}")).unwrap())
        };
        let power = r#"fence_ipmilan"><node name="ctl1"/>"#;
        assert_eq!(after(&[(power, r#"fence_ipmilan"><node name="ctl2"/>"#)]), None, "it may move");
        for harm in [
            &[(power, r#"fence_ipmilan">"#)][..],
            &[(r#"IPaddr2"><node name="ctl1"/>"#, r#"IPaddr2"><node name="ctl2"/>"#)],
            &[(r#"a:x"><node name="ctl2"/>"#, r#"a:x">"#)],
            &[("<actions/>", r#"<actions><rsc_action action="restart" resource="vip"/></actions>"#)],
            &[(
                "<transition/>",
                r#"<transition><fencing_action target="compute1" op="reboot"/></transition>"#,
            )],
        ] {
            assert!(after(harm).is_some(), "{harm:?}");
        }
        let restart = r#"<actions><rsc_action action="restart" resource="power:0"/></actions>"#;
        assert_eq!(after(&[("<actions/>", restart)]), None, "an instance");
        let on = r#"<transition><fencing_action target="c" op="on"/></transition>"#;
        assert_eq!(after(&[("<transition/>", on)]), None);
        assert!(Schedule::read("<pacemaker-result/>").is_none() && Schedule::read("x").is_none());
    }
}
