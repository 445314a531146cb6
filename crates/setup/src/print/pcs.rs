//! pcs: a copy of the configuration is changed, and the changes are pushed in one go.

use pacemaker::cib::{HEALTH_AGENT, Target};

use super::{
    ALERTER_META, ALERTER_MONITOR, Command, HEALTH_MONITOR, MARK_MONITOR, mark_settings, monitors, owned,
    settings,
};
use crate::alert::FENCING;
use crate::model::{Cluster, Operation};
use crate::step::{Step, clone_of};

/// Only root's: the configuration has passwords.
pub(super) const ROOM: &str = "/run/nova-host-alerter-setup";
const OLD: &str = "/run/nova-host-alerter-setup/old.xml";
const NEW: &str = "/run/nova-host-alerter-setup/new.xml";

pub(super) fn commands(cluster: &Cluster, steps: &[Step]) -> Vec<Command> {
    let mut all = vec![
        Command::new(["install", "-d", "-m", "700", ROOM]),
        Command::new(["pcs", "cluster", "cib", OLD]),
        Command::new(["cp", OLD, NEW]),
    ];
    all.extend(on_copy(cluster, steps, NEW));
    let against = format!("diff-against={OLD}");
    let push = Command::new(["pcs", "cluster", "cib-push", NEW, &against]);
    all.push(Command { does: steps.iter().map(Step::shown).collect(), ..push });
    all.push(Command::new(["rm", "-r", ROOM]));
    all
}

/// The commands that change a copy.
pub(super) fn on_copy(cluster: &Cluster, steps: &[Step], file: &str) -> impl Iterator<Item = Command> {
    let edits = steps.iter().flat_map(|step| edits(cluster, step));
    edits.map(move |words| {
        Command::new(["pcs", "-f", file].into_iter().chain(words.iter().map(String::as_str)))
    })
}

/// The arguments of `pcs -f FILE`.
fn edits(cluster: &Cluster, step: &Step) -> Vec<Vec<String>> {
    let one = |words: &[&str], more: Vec<String>| vec![[owned(words.iter().copied()), more].concat()];
    match step {
        Step::MakeKey { .. } => Vec::new(),
        Step::CreateMark { id, hosts } => {
            let more = [mark_settings(hosts), owned(["op", "monitor"]), every(MARK_MONITOR)].concat();
            one(&["stonith", "create", id, "fence_mark"], more)
        }
        Step::SetLevels { target, levels } => self::levels(cluster, target, levels),
        Step::SetParameters { resource, values } => {
            one(&[kind(cluster, resource), "update", resource], settings(values.iter()))
        }
        Step::SetMeta { resource, values } => {
            one(&[kind(cluster, resource), "meta", resource], settings(values.iter()))
        }
        Step::AddMonitor { resource, interval, timeout } => {
            one(&[kind(cluster, resource), "update", resource, "op", "monitor"], every((*interval, *timeout)))
        }
        Step::CreateAlerter { id, config, .. } => {
            let more = [
                vec![format!("config={config}"), "meta".to_owned()],
                settings(ALERTER_META),
                owned(["op", "start", "timeout=60s", "stop", "timeout=60s", "monitor"]),
                every(ALERTER_MONITOR),
            ];
            let mut made = one(&["resource", "create", id, "ocf:openstack:nova-host-alerter"], more.concat());
            made.push(on_kind(id, "cluster"));
            made
        }
        Step::KeepToControllers { resource, .. } => {
            // A similar rule that lets Pacemaker probe on compute hosts makes pcs refuse this one.
            let force = cluster.has_rule(resource).then(|| "--force".to_owned());
            vec![on_kind(resource, "cluster").into_iter().chain(force).collect()]
        }
        Step::SetAlert { id, path, recipients, selected } => alert(cluster, id, path, (recipients, selected)),
        Step::SetProperties(values) => one(&["property", "set"], settings(values.iter())),
        // Of an agent that is not on this controller pcs knows nothing.
        Step::CreateHealth { id } => {
            let more = [every(HEALTH_MONITOR), owned(["clone", "--force"])].concat();
            let made = ["resource", "create", id, HEALTH_AGENT, "reaction=observe", "op", "monitor"];
            [one(&made, more), vec![on_kind(&clone_of(id), "remote")]].concat()
        }
        Step::FenceUnhealthy { resource, .. } => {
            let monitor = |own: &Operation| {
                let set =
                    [("interval", own.interval.as_str()), ("timeout", &own.timeout), ("on-fail", "fence")];
                let set = settings(set.into_iter().filter(|(_, value)| !value.is_empty()));
                [owned(["op", "monitor"]), set].concat()
            };
            let more = monitors(cluster, resource).flat_map(monitor).chain(owned(["--force"])).collect();
            one(&["resource", "update", resource, "reaction=fence"], more)
        }
    }
}

fn kind(cluster: &Cluster, resource: &str) -> &'static str {
    let is_device = cluster.resource(resource).is_some_and(crate::model::Resource::is_fence_device);
    if is_device { "stonith" } else { "resource" }
}

fn every((interval, timeout): (u32, u32)) -> Vec<String> {
    vec![format!("interval={interval}s"), format!("timeout={timeout}s")]
}

fn on_kind(resource: &str, kind: &str) -> Vec<String> {
    let rule = ["rule", "resource-discovery=exclusive", "score=0", "#kind", "eq", kind];
    owned(["constraint", "location", resource].into_iter().chain(rule))
}

fn target_word(target: &Target) -> String {
    match target {
        Target::Name(name) => name.clone(),
        Target::Pattern(text) => format!("regexp%{text}"),
        Target::Attribute { name, value } => format!("attrib%{name}={value}"),
    }
}

/// Correct levels stay.
fn levels(cluster: &Cluster, target: &Target, wanted: &[Vec<String>]) -> Vec<Vec<String>> {
    let (has, word) = (cluster.levels_of(target), target_word(target));
    let numbered: Vec<(u32, &Vec<String>)> = (1..).zip(wanted).collect();
    let stays = |index: u32, devices: &Vec<String>| numbered.contains(&(index, devices));
    let gone = has.iter().filter(|(index, devices)| !stays(**index, devices));
    let gone =
        gone.map(|(index, _)| owned(["stonith", "level", "delete", &index.to_string(), "target", &word]));
    let new = numbered.iter().filter(|(index, devices)| has.get(index) != Some(devices));
    let new = new.map(|(index, devices)| {
        let words = owned(["stonith", "level", "add", &index.to_string(), &word]);
        [words, (*devices).clone()].concat()
    });
    gone.chain(new).collect()
}

/// pcs cannot change what an alert selects: an alert without all needed events is made again, and selects everything.
fn alert(
    cluster: &Cluster,
    id: &str,
    path: &str,
    (recipients, others): (&[String], &[String]),
) -> Vec<Vec<String>> {
    let (named, at) = (format!("id={id}"), format!("path={path}"));
    let create = owned(["alert", "create", &at, &named]);
    let old = cluster.alerts.iter().find(|alert| alert.id == id);
    let selects_all = |selected: &[String]| {
        let has = |what: &str| selected.iter().any(|one| one == what);
        selected.is_empty() || (has(FENCING) && others.iter().all(|what| has(what)))
    };
    let (mut all, there) = match old {
        None => (vec![create], &[][..]),
        Some(old) if !selects_all(&old.selected) => (vec![owned(["alert", "remove", id]), create], &[][..]),
        Some(old) if old.path != path => (vec![owned(["alert", "update", id, &at])], &old.recipients[..]),
        Some(old) => (Vec::new(), &old.recipients[..]),
    };
    let new = recipients.iter().filter(|recipient| !there.contains(recipient));
    all.extend(new.map(|recipient| owned(["alert", "recipient", "add", id, &format!("value={recipient}")])));
    all
}
