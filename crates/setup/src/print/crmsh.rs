//! crmsh: one update of the configuration with everything that is new or belongs together, then changes of existing
//! parts.

use std::fmt::Write as _;

use pacemaker::cib::{HEALTH_AGENT, Target};

use super::{
    ALERTER_META, ALERTER_MONITOR, Command, HEALTH_MONITOR, MARK_MONITOR, mark_settings, monitors, settings,
};
use crate::alert::FENCING;
use crate::model::{Cluster, Operation};
use crate::step::{Step, clone_of};

pub(super) fn commands(cluster: &Cluster, steps: &[Step]) -> Vec<Command> {
    let (mut input, mut does) = (String::new(), Vec::new());
    for step in steps {
        if let Some(text) = definition(step) {
            input.push_str(&text);
            does.push(step.shown());
        }
    }
    if steps.iter().any(|step| matches!(step, Step::SetLevels { .. })) {
        input.push_str(&topology(cluster, steps));
        does.extend(steps.iter().filter(|step| matches!(step, Step::SetLevels { .. })).map(Step::shown));
    }
    // Of an agent that is not on this controller crmsh knows nothing.
    let force = steps.iter().any(|step| matches!(step, Step::CreateHealth { .. })).then_some("--force");
    let load = ["crm"].into_iter().chain(force).chain(["configure", "load", "update", "-"]);
    let load = Command::new(load);
    let load = (!input.is_empty()).then_some(Command { input: Some(input), does, ..load });
    load.into_iter().chain(steps.iter().flat_map(|step| single(cluster, step))).collect()
}

/// The definitions in the one update, except for the topology.
fn definition(step: &Step) -> Option<String> {
    Some(match step {
        Step::CreateMark { id, hosts } => format!(
            "primitive {id} stonith:fence_mark \\\n    params {} \\\n    op monitor {}\n",
            mark_settings(hosts).join(" "),
            every(MARK_MONITOR)
        ),
        Step::CreateAlerter { id, config, constraint } => format!(
            "primitive {id} ocf:openstack:nova-host-alerter \\\n    params config={} \\\n    meta {} \\\n    op start timeout=60s interval=0 \\\n    op stop timeout=60s interval=0 \\\n    op monitor {}\n{}",
            word(config),
            settings(ALERTER_META).join(" "),
            every(ALERTER_MONITOR),
            on_kind(id, constraint, "cluster")
        ),
        Step::KeepToControllers { resource, id } => on_kind(resource, id, "cluster"),
        Step::CreateHealth { id } => {
            let clone = clone_of(id);
            format!(
                "primitive {id} {HEALTH_AGENT} \\\n    params reaction=observe \\\n    op monitor {}\nclone {clone} {id}\n{}",
                every(HEALTH_MONITOR),
                on_kind(&clone, &format!("{id}-on-remotes"), "remote")
            )
        }
        Step::SetAlert { id, path, recipients, selected } => {
            let others: String = selected.iter().map(|what| format!(" {what}")).collect();
            let to: String =
                recipients.iter().map(|recipient| format!(" to {}", quoted(recipient))).collect();
            format!("alert {id} {} select {FENCING}{others}{to}\n", quoted(path))
        }
        Step::SetProperties(values) => format!("property {}\n", settings(values.iter()).join(" ")),
        _ => return None,
    })
}

/// crmsh has the whole topology in one: levels without a step stay unchanged.
fn topology(cluster: &Cluster, steps: &[Step]) -> String {
    let changed = |target: &Target| {
        steps.iter().find_map(|step| match step {
            Step::SetLevels { target: own, levels } if own == target => Some(levels.clone()),
            _ => None,
        })
    };
    let old = cluster.targets();
    let added = steps.iter().filter_map(|step| match step {
        Step::SetLevels { target, .. } if !old.contains(&target) => Some(target),
        _ => None,
    });
    let mut text = "fencing_topology".to_owned();
    for target in old.iter().copied().chain(added) {
        let kept = || cluster.levels_of(target).into_values().collect::<Vec<_>>();
        let levels = changed(target).unwrap_or_else(kept);
        let lists: String = levels.iter().map(|devices| format!(" {}", devices.join(","))).collect();
        write!(text, " \\\n    {}{lists}", target_word(target)).expect("a String takes all that is written");
    }
    text + "\n"
}

fn target_word(target: &Target) -> String {
    match target {
        Target::Name(name) => format!("{name}:"),
        Target::Pattern(text) => word(&format!("pattern:{text}")),
        Target::Attribute { name, value } => word(&format!("attr:{name}={value}")),
    }
}

/// Commands that change one existing thing each.
fn single(cluster: &Cluster, step: &Step) -> Vec<Command> {
    let each = |section: &str, resource: &str, values: &std::collections::BTreeMap<String, String>| {
        let set = values.iter().map(|(name, value)| {
            let command = Command::new(["crm", "resource", section, resource, "set", name, value]);
            Command { does: vec![format!("set {name}={value} on {resource}")], ..command }
        });
        set.collect()
    };
    match step {
        Step::SetParameters { resource, values } => each("param", resource, values),
        Step::SetMeta { resource, values } => each("meta", resource, values),
        Step::AddMonitor { resource, interval, timeout } => {
            let words = ["crm", "configure", "monitor", resource, &format!("{interval}s:{timeout}s")];
            vec![Command { does: vec![step.shown()], ..Command::new(words) }]
        }
        // `load update` would drop the operator's parameters.
        Step::FenceUnhealthy { resource, .. } => {
            let param = Command::new(["crm", "resource", "param", resource, "set", "reaction", "fence"]);
            let operation = |own: &Operation| format!("<op id=\"{}\" on-fail=\"fence\"/>", own.id);
            let modify = |xml: String| Command::new(["cibadmin", "--modify", "--xml-text", &xml]);
            let last = Command { does: vec![step.shown()], ..param };
            monitors(cluster, resource).map(operation).map(modify).chain([last]).collect()
        }
        _ => Vec::new(),
    }
}

fn every((interval, timeout): (u32, u32)) -> String {
    format!("interval={interval}s timeout={timeout}s")
}

fn on_kind(resource: &str, id: &str, kind: &str) -> String {
    format!("location {id} {resource} resource-discovery=exclusive rule 0: #kind eq {kind}\n")
}

/// A word, quoted for crmsh.
fn word(text: &str) -> String {
    let is_odd = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '#');
    if text.is_empty() || text.contains(is_odd) { quoted(text) } else { text.to_owned() }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}
