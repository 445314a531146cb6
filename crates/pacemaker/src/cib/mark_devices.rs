//! What keeps the mark devices of the fencing levels from marking: one that is stopped, or that failed on a controller.

use super::operations::{History, Operation};
use super::{Cib, Resource};

/// A mark device that stands in a fencing level and does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkFault {
    /// Its resource id.
    pub device: String,
    /// The controller on which it failed; `None` where it is to be stopped, so that no controller uses it.
    pub failed_on: Option<String>,
}

impl Cib {
    /// Every mark device of a level that is to be stopped, or whose last failure on a controller that takes part no good start or
    /// monitor has followed. What the CIB leaves open is no fault.
    pub fn mark_faults(&self) -> Vec<MarkFault> {
        let in_levels = |id: &str| self.levels.iter().any(|level| level.devices.iter().any(|own| own == id));
        let devices = self.resources.iter().filter(|r| !r.is_template && self.is_mark(r) && in_levels(&r.id));
        devices.flat_map(|device| self.faults_of(device)).collect()
    }

    fn faults_of(&self, device: &Resource) -> Vec<MarkFault> {
        let fault = |failed_on| MarkFault { device: device.id.clone(), failed_on };
        if self.is_stopped(device) {
            return vec![fault(None)];
        }
        let histories = self.index.histories(&device.id).iter().filter_map(|at| self.histories.get(*at));
        let failed = histories.filter(|history| history.resource == device.id && history.has_failed());
        let takes_part = |node: &str| self.state_of(node).is_some_and(super::NodeState::takes_part);
        failed
            .map(|history| &history.node)
            .filter(|node| takes_part(node))
            .map(|node| fault(Some(node.clone())))
            .collect()
    }
}

impl History {
    /// A stop after a failure repairs nothing.
    fn has_failed(&self) -> bool {
        let newest = |is: fn(&Operation) -> bool| {
            self.operations.iter().filter(|operation| is(operation)).map(Operation::order).max()
        };
        newest(Operation::has_failed)
            .is_some_and(|bad| newest(Operation::shows_life).is_none_or(|good| good < bad))
    }
}

/// `class:type` or `class:provider:type` of each, and what it does when a host was fenced.
const RIVALS: [(&str, &str); 3] = [
    ("stonith:fence_compute", "marks hosts for NovaEvacuate"),
    ("stonith:fence_evacuate", "has Nova evacuate hosts"),
    ("ocf:openstack:NovaEvacuate", "evacuates hosts"),
];

/// What a resource of this agent does when a host was fenced, if it recovers hosts.
pub fn rival(agent: &str) -> Option<&'static str> {
    RIVALS.iter().find(|(known, _)| *known == agent).map(|(_, does)| *does)
}

impl Cib {
    /// Every resource that also recovers hosts: its id, its agent, and what it does.
    pub fn rivals(&self) -> impl Iterator<Item = (&str, String, &'static str)> {
        let resources = self.resources.iter().filter(|resource| !resource.is_template);
        resources.filter_map(|resource| {
            let typed = self.typed(resource);
            let words = [&typed.class, &typed.provider, &typed.agent];
            let agent = words.map(String::as_str).into_iter().filter(|word| !word.is_empty());
            let agent = agent.collect::<Vec<_>>().join(":");
            let does = rival(&agent)?;
            Some((resource.id.as_str(), agent, does))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(id: &str, agent: &str, role: &str) -> String {
        format!(
            r#"<primitive id="{id}" class="stonith" type="{agent}"><meta_attributes id="{id}-m"><nvpair id="{id}-r" name="target-role" value="{role}"/></meta_attributes></primitive>"#
        )
    }

    /// Operations as kind, call id, exit code and second.
    type Done = (&'static str, u32, &'static str, i64);

    fn state(node: &str, member: &str, device: &str, done: &[Done]) -> String {
        let operation = |(at, (kind, call, code, second)): (usize, &Done)| {
            format!(
                r#"<lrm_rsc_op id="{device}_{at}" operation="{kind}" call-id="{call}" rc-code="{code}" op-status="0" last-rc-change="{second}"/>"#
            )
        };
        let done: String = done.iter().enumerate().map(operation).collect();
        format!(
            r#"<node_state id="{node}" uname="{node}" {member}><lrm id="{node}"><lrm_resources><lrm_resource id="{device}" class="stonith" type="fence_mark">{done}</lrm_resource></lrm_resources></lrm></node_state>"#
        )
    }

    const MEMBER: &str = r#"in_ccm="true" crmd="online""#;

    fn cib(resources: &str, status: &str) -> Cib {
        let levels = r#"<fencing-level id="l" target="compute1" index="1" devices="power,mark"/>"#;
        let xml = format!(
            "<cib><configuration><resources>{resources}</resources><fencing-topology>{levels}</fencing-topology></configuration><status>{status}</status></cib>"
        );
        Cib::parse(&xml).unwrap()
    }

    fn found(resources: &str, status: &str) -> Vec<String> {
        let words = |fault: MarkFault| {
            format!("{} {}", fault.device, fault.failed_on.unwrap_or_else(|| "stopped".into()))
        };
        cib(resources, status).mark_faults().into_iter().map(words).collect()
    }

    #[test]
    fn a_stopped_mark_device_of_a_level_is_a_fault() {
        for (role, is_fault) in [("Stopped", true), ("stopped", true), ("Started", false)] {
            let faults = found(&resource("mark", "fence_mark", role), "");
            assert_eq!(faults == ["mark stopped"], is_fault, "{role}");
        }
        assert_eq!(found(&resource("power", "fence_ipmilan", "Stopped"), ""), [""; 0], "a power device");
        assert_eq!(found(&resource("mark-2", "fence_mark", "Stopped"), ""), [""; 0], "it stands in no level");
    }

    /// As Pacemaker records a failed monitor (with the call id of the good ones before it), a failed start and the stop behind it,
    /// a missing package, and a probe. The broken variant goes by the last operation alone, so a stop would end it.
    #[test]
    fn a_failure_lasts_until_it_works_there_again() {
        let good: &[Done] = &[("start", 3, "0", 10), ("monitor", 4, "0", 11)];
        let cases: &[(&[Done], bool)] = &[
            (&[], false),
            (&[("monitor", 1, "7", 5)], false),
            (good, false),
            (&[("monitor", 4, "0", 11), ("monitor", 4, "1", 50)], true),
            (&[("start", 3, "1", 10)], true),
            (&[("start", 3, "1", 10), ("stop", 5, "0", 12)], true),
            (&[("monitor", 1, "5", 5)], true),
            (&[("start", 3, "1", 10), ("stop", 5, "0", 12), ("start", 6, "0", 20)], false),
        ];
        for (done, is_fault) in cases {
            let device = resource("mark", "fence_mark", "Started");
            let faults = found(&device, &state("ctl1", MEMBER, "mark", done));
            assert_eq!(faults == ["mark ctl1"], *is_fault, "{done:?}: {faults:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_no_fault() {
        let device = resource("mark", "fence_mark", "Started");
        let failed: &[Done] = &[("monitor", 4, "1", 50)];
        for member in [r#"in_ccm="false" crmd="offline""#, r#"in_ccm="true" crmd="offline""#, ""] {
            assert_eq!(found(&device, &state("ctl1", member, "mark", failed)), [""; 0], "{member}");
        }
        assert_eq!(found(&device, &state("ctl1", MEMBER, "other", failed)), [""; 0], "another resource");
        assert_eq!(found(&device, ""), [""; 0], "no status was read");
        assert_eq!(found("", &state("ctl1", MEMBER, "mark", failed)), [""; 0], "no resource was read");
        let under_way = r#"<node_state id="1" uname="ctl1" in_ccm="true" crmd="online"><lrm id="1"><lrm_resources><lrm_resource id="mark" class="stonith" type="fence_mark"><lrm_rsc_op id="o" operation="start" call-id="-1" rc-code="193" op-status="-1" last-rc-change="50"/></lrm_resource></lrm_resources></lrm></node_state>"#;
        assert_eq!(found(&device, under_way), [""; 0]);
    }
}
