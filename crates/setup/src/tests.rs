//! The plan compared with the check: `setup` leaves nothing that it could do, whatever the cluster was before.

use std::collections::{BTreeMap, BTreeSet};

use marks::host::{HostName, HostPatterns};
use pacemaker::cib::{Cib, Level, Target};
use pacemaker::evidence;
use proptest::prelude::*;

use super::alerter::{ALERTER_META, ALERTER_MONITOR};
use super::devices::{MARK_MONITOR, MARK_PARAMETERS};
use super::model::{ALERTER_AGENT, Alert, Condition, Location, Node, NodeKind, Operation, Part, Resource};
use super::proof::lost;
use super::*;

const ALERT: &str = "/usr/share/pacemaker/alerts/alert_mark";

fn pairs<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn node(name: &str, kind: NodeKind) -> Node {
    Node { name: HostName::parse(name).unwrap(), kind, attributes: Vec::new() }
}

fn resource(id: &str, agent: &str, parameters: BTreeMap<String, String>) -> Resource {
    Resource { id: id.into(), top: id.into(), agent: agent.into(), parameters, ..Resource::default() }
}

/// A fence device for these hosts.
fn fences(id: &str, agent: &str, hosts: &str) -> Resource {
    resource(id, &format!("stonith:{agent}"), pairs([("pcmk_host_list", hosts)]))
}

fn power(host: &str) -> Resource {
    fences(&format!("power-{host}"), "fence_ipmilan", host)
}

fn remote(host: &str) -> Resource {
    resource(host, "ocf:pacemaker:remote", pairs([("reconnect_interval", "60s")]))
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

fn level(host: &str, index: u32, devices: &[&str]) -> Level {
    Level { target: Target::Name(host.into()), index, devices: names(devices) }
}

/// Two controllers, compute hosts with power devices, and nothing else.
fn bare(hosts: &[&str]) -> Cluster {
    let controllers = ["ctl1", "ctl2"].map(|name| node(name, NodeKind::Cluster));
    let computes = hosts.iter().map(|host| node(host, NodeKind::Remote));
    let resources: Vec<Resource> = hosts.iter().flat_map(|host| [remote(host), power(host)]).collect();
    Cluster {
        pacemaker: Some([2, 1, 5]),
        nodes: controllers.into_iter().chain(computes).collect(),
        taken: resources.iter().map(|resource| resource.id.clone()).collect(),
        resources,
        wanted: Wanted {
            unsaid: Vec::new(),
            hosts: None,
            config: "/etc/nova-host-alerter/alerter.toml".into(),
            evidence: evidence::DIRECTORY.into(),
        },
        ..Cluster::default()
    }
}

fn monitor((interval, _): (u32, u32)) -> Operation {
    Operation { name: "monitor".into(), interval: format!("{interval}s"), ..Operation::default() }
}

fn on_controllers(resource: &str, id: &str) -> Location {
    let condition =
        Condition::Attribute { name: "#kind".into(), operation: "eq".into(), value: "cluster".into() };
    Location {
        id: id.into(),
        resources: vec![resource.into()],
        discovery: "exclusive".into(),
        parts: vec![Part { score: 0, condition: Condition::All(vec![condition]) }],
    }
}

fn own<'a>(cluster: &'a mut Cluster, id: &str) -> &'a mut Resource {
    cluster.resources.iter_mut().find(|resource| resource.id == id).unwrap()
}

/// The effect of the tools.
fn apply(cluster: &mut Cluster, step: &Step) {
    assert!(usize::from(step.place()) < WRITES.len(), "docs/writes.md has every step");
    match step {
        Step::MakeKey { file } => {
            cluster.here.key = Some(Key { sealing: Some(file.clone()), ..Key::default() });
        }
        Step::CreateMark { id, hosts } => {
            let list = hosts.join(",");
            let mut mark = resource(id, "stonith:fence_mark", pairs(MARK_PARAMETERS));
            mark.parameters.insert("pcmk_host_list".into(), list);
            mark.operations.push(monitor(MARK_MONITOR));
            cluster.taken.insert(id.clone());
            cluster.resources.push(mark);
        }
        // What is wrong with a cluster is never one of these.
        Step::CreateHealth { .. } | Step::FenceUnhealthy { .. } => unreachable!("{step:?}"),
        Step::SetLevels { target, levels } => {
            cluster.levels.retain(|level| level.target != *target);
            let new = (1..).zip(levels);
            let new =
                new.map(|(index, devices)| Level { target: target.clone(), index, devices: devices.clone() });
            cluster.levels.extend(new);
        }
        Step::SetParameters { resource, values } => own(cluster, resource).parameters.extend(values.clone()),
        Step::SetMeta { resource, values } => own(cluster, resource).meta.extend(values.clone()),
        Step::AddMonitor { resource, interval, timeout } => {
            own(cluster, resource).operations.push(monitor((*interval, *timeout)));
        }
        Step::CreateAlerter { id, constraint, .. } => {
            let mut alerter = resource(id, ALERTER_AGENT, BTreeMap::new());
            (alerter.meta, alerter.operations) = (pairs(ALERTER_META), vec![monitor(ALERTER_MONITOR)]);
            cluster.resources.push(alerter);
            cluster.locations.push(on_controllers(id, constraint));
        }
        Step::KeepToControllers { resource, id } => cluster.locations.push(on_controllers(resource, id)),
        Step::SetAlert { id, path, recipients, .. } => {
            cluster.alerts.retain(|alert| alert.id != *id);
            let (id, path, recipients) = (id.clone(), path.clone(), recipients.clone());
            cluster.alerts.push(Alert {
                id,
                path,
                is_here: true,
                selected: Vec::new(),
                recipients,
                is_off: false,
            });
        }
        Step::SetProperties(values) => cluster.properties.extend(values.clone()),
    }
}

fn plan(cluster: &Cluster) -> Vec<Step> {
    steps(&check(cluster))
}

fn sets_levels(cluster: &Cluster) -> bool {
    plan(cluster).iter().any(|step| matches!(step, Step::SetLevels { .. }))
}

/// The first finding of a kind.
fn found(cluster: &Cluster, kind: Kind) -> Finding {
    check(cluster).into_iter().find(|finding| finding.kind == kind).unwrap()
}

/// What an operator is to do about it.
fn advice(finding: &Finding) -> &str {
    let Then::Do(then) = &finding.then else { panic!("{finding:?}") };
    then
}

fn applied(mut cluster: Cluster) -> Cluster {
    plan(&cluster).iter().for_each(|step| apply(&mut cluster, step));
    cluster
}

fn right() -> Cluster {
    applied(bare(&["compute1", "compute2"]))
}

fn kinds(cluster: &Cluster) -> Vec<&'static str> {
    let kinds: BTreeSet<Kind> = check(cluster).into_iter().map(|finding| finding.kind).collect();
    kinds.into_iter().map(Kind::as_str).collect()
}

/// An alert that selects fencings alone is right if no cluster node is a compute host.
#[test]
fn where_a_cluster_node_is_a_compute_host_the_alert_selects_nodes_too() {
    let with = |hosts: Option<&str>, selected: &[&str]| {
        let mut cluster = right();
        cluster.wanted.hosts = hosts.map(|hosts| HostPatterns::parse(hosts).unwrap());
        cluster.alerts[0].selected = names(selected);
        let wrong = kinds(&cluster).contains(&"alert-select");
        let step = plan(&cluster).into_iter().find_map(|step| match step {
            Step::SetAlert { selected, .. } => Some(selected),
            _ => None,
        });
        (wrong, step)
    };
    for hosts in [None, Some("compute*"), Some("*")] {
        assert_eq!(with(hosts, &["fencing"]), (false, None), "{hosts:?}");
    }
    let named = Some("compute*,ctl2");
    assert_eq!(with(named, &["fencing"]), (true, Some(names(&["nodes"]))));
    assert_eq!(with(named, &["resources"]), (true, Some(names(&["resources", "nodes"]))));
    for selected in [&[][..], &["fencing", "nodes"]] {
        assert_eq!(with(named, selected), (false, None), "{selected:?}");
    }
}

/// The broken variants: a plan that forgets any one of its steps is seen.
#[test]
fn every_step_is_needed() {
    let bare = bare(&["compute1", "compute2"]);
    let steps = plan(&bare);
    assert_eq!(steps.len(), 6, "{steps:#?}");
    for left_out in &steps {
        let mut cluster = bare.clone();
        for step in steps.iter().filter(|step| *step != left_out) {
            // Levels name the mark device, which the tools would refuse without it.
            apply(&mut cluster, step);
        }
        assert!(!check(&cluster).is_empty(), "{left_out:?} was left out unnoticed");
    }
}

/// A missing key is made before anything starts that needs it; a file, which others may have, is never overwritten.
#[test]
fn a_register_without_a_key_gets_one_and_none_is_written_over() {
    let own = "/etc/nova-host-alerter/register.key";
    let with = |key: Key| {
        let mut cluster = bare(&["compute1"]);
        cluster.here.key = Some(Key { own: own.into(), ..key });
        cluster
    };
    let none = with(Key::default());
    assert_eq!(plan(&none)[0], Step::MakeKey { file: own.into() });
    for tool in [Tool::Pcs, Tool::Crmsh] {
        let commands = commands(tool, &none, &plan(&none));
        assert!(commands[0].line().starts_with("sh <<'END'\nset -C"), "{}", commands[0].line());
        let does = |command: &Command| command.does.iter().any(|what| what.contains(own));
        assert_eq!(commands.iter().filter(|command| does(command)).count(), 1, "{commands:#?}");
        let alone = super::commands(tool, &none, &[Step::MakeKey { file: own.into() }]);
        assert_eq!(alone.len(), 1, "{alone:#?}");
    }
    assert_eq!(check(&applied(none)), []);
    let complaints = names(&["it is too short"]);
    let bad = applied(with(Key { complaints: complaints.clone(), is_own_there: true, ..Key::default() }));
    assert_eq!(kinds(&bad), ["no-register-key", "bad-register-key"]);
    let other = applied(with(Key { complaints, sealing: Some("authkey".into()), ..Key::default() }));
    assert_eq!(kinds(&other), ["bad-register-key"]);
}

/// It needs no proof, and no failing proof stops it: it does not change the cluster.
#[test]
fn a_key_is_made_whatever_the_cluster_is_like() {
    let mut cluster = right();
    cluster.here.key = Some(Key { own: "/k".into(), ..Key::default() });
    let mut found = check(&cluster);
    prove(Tool::Pcs, &cluster, "no configuration at all", &mut found);
    assert_eq!(steps(&found), [Step::MakeKey { file: "/k".into() }]);
}

#[test]
fn a_host_without_a_power_device_is_named_and_the_others_are_set_up() {
    let mut cluster = bare(&["compute1", "compute2"]);
    cluster.resources.retain(|resource| resource.id != "power-compute2");
    let cluster = applied(cluster);
    let found = check(&cluster);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].kind, found[0].about.as_str()), (Kind::NoPowerDevice, "compute2"));
    assert!(advice(&found[0]).contains("pcmk_host_list=compute2"));
    let mark = cluster.resources.iter().find(|resource| resource.id == "mark").unwrap();
    assert_eq!(mark.parameters["pcmk_host_list"], "compute1", "it could be chosen alone for the other");
}

#[test]
fn only_the_hosts_that_are_wanted_are_set_up() {
    let mut cluster = bare(&["compute1", "storage1"]);
    cluster.wanted.hosts = Some(HostPatterns::parse("compute*").unwrap());
    let cluster = applied(cluster);
    assert_eq!(check(&cluster), []);
    assert!(cluster.levels.iter().all(|level| level.target == Target::Name("compute1".into())));
    let mut none = bare(&["storage1"]);
    none.wanted.hosts = Some(HostPatterns::parse("compute*").unwrap());
    assert!(kinds(&none).contains(&"no-compute-host"));
}

/// Levels of compute hosts alone are changed in place; levels of controllers too are left to these.
#[test]
fn a_pattern_stays_where_it_is_for_compute_hosts_alone() {
    let with = |pattern: &str| {
        let mut cluster = bare(&["compute1", "compute2"]);
        cluster.resources.push(fences("pdu", "fence_apc", "compute1 compute2 ctl1"));
        let target = Target::Pattern(pattern.into());
        cluster.levels.push(Level { target, index: 1, devices: names(&["pdu"]) });
        applied(cluster)
    };
    let shared = with("^compute");
    assert_eq!(check(&shared), []);
    assert!(shared.levels.iter().all(|level| level.target == Target::Pattern("^compute".into())));
    let wide = with("^c");
    assert_eq!(check(&wide), []);
    let levels = wide.levels_of(&Target::Pattern("^c".into()));
    assert_eq!(levels.into_values().collect::<Vec<_>>(), [names(&["pdu"])], "the controllers are not marked");
    assert_eq!(wide.levels_of(&Target::Name("compute2".into())).len(), 2);
}

#[test]
fn two_ways_to_fence_are_both_marked_and_both_tried_again_without() {
    let mut cluster = bare(&["compute1"]);
    cluster.resources.push(fences("pdu", "fence_apc", "compute1"));
    cluster.levels = vec![level("compute1", 1, &["power-compute1"]), level("compute1", 3, &["pdu"])];
    let cluster = applied(cluster);
    let levels: Vec<String> =
        cluster.levels_of(&Target::Name("compute1".into())).into_values().map(|l| l.join("+")).collect();
    assert_eq!(levels, ["power-compute1+mark", "pdu+mark", "power-compute1", "pdu"]);
    assert_eq!(check(&cluster), []);
}

fn levels_of(cluster: &Cluster, host: &str) -> Vec<String> {
    cluster.levels_of(&Target::Name(host.into())).into_values().map(|level| level.join("+")).collect()
}

/// An older rule put the mark behind any device in a level, and made levels of it.
#[test]
fn a_mark_stands_behind_power_alone() {
    let beside = |agent: &str, levels: &[&[&str]]| {
        let mut cluster = bare(&["compute1"]);
        apply(&mut cluster, &Step::CreateMark { id: "mark".into(), hosts: names(&["compute1"]) });
        cluster.resources.push(fences("weak", agent, "compute1"));
        cluster.levels =
            (1..).zip(levels).map(|(index, devices)| level("compute1", index, devices)).collect();
        cluster
    };
    let after = |agent: &str, levels: &[&[&str]]| {
        let cluster = applied(beside(agent, levels));
        (levels_of(&cluster, "compute1"), kinds(&cluster))
    };
    let power = ["power-compute1+mark".to_owned(), "power-compute1".to_owned()];
    let nobody_knows = (vec![], vec!["mark-alone"]);
    assert_eq!(after("fence_dummy", &[]), nobody_knows, "Pacemaker takes either");
    let ping = ["weak+power-compute1+mark".to_owned(), "weak+power-compute1".to_owned()];
    assert_eq!(after("fence_heuristics_ping", &[&["weak", "power-compute1"]]), (ping.to_vec(), vec![]));
    let kdump = [vec!["weak".to_owned()], power.to_vec()].concat();
    for levels in
        [&[&["weak"][..], &["power-compute1"]][..], &[&["weak", "mark"], &["power-compute1", "mark"]]]
    {
        assert_eq!(after("fence_kdump", levels), (kdump.clone(), vec![]), "it is in front, without a mark");
    }
    let (levels, left) = after("fence_dummy", &[&["weak", "mark"], &["weak"]]);
    assert_eq!((levels, left), (kdump, vec!["level-without-power"]), "only an operator knows its hosts");
    let mut none = beside("fence_dummy", &[&["weak", "mark"]]);
    none.resources.retain(|resource| resource.id != "power-compute1");
    assert!(kinds(&none).contains(&"mark-without-power"));
    assert!(advice(&found(&none, Kind::MarkWithoutPower)).contains("create its power device"));
}

/// `fence_compute` marks hosts for `NovaEvacuate`: with the mark beside it each host is recovered twice. An older rule
/// put both agents into one level.
#[test]
fn beside_another_recovery_nothing_is_set_up() {
    for agent in ["stonith:fence_compute", "stonith:fence_evacuate", "ocf:openstack:NovaEvacuate"] {
        let mut cluster = bare(&["compute1"]);
        cluster.resources.push(resource("other", agent, pairs([("pcmk_host_list", "compute1")])));
        cluster.levels = vec![level("compute1", 1, &["power-compute1", "other"])];
        let found = check(&cluster);
        assert_eq!((found[0].kind, found[0].about.as_str()), (Kind::OtherRecovery, "other"), "{agent}");
        assert!(advice(&found[0]).contains("docs/migrate.md"));
        assert!(found.len() > 1 && plan(&cluster).is_empty(), "{found:#?}");
        cluster.resources.retain(|resource| resource.id != "other");
        cluster.levels.clear();
        assert_eq!(kinds(&applied(cluster)), [""; 0], "once it is gone");
    }
}

/// Before a host has its levels, the mark device must not list it, or it could be chosen alone for it.
#[test]
fn a_mark_device_gets_new_hosts_behind_their_levels() {
    let mut cluster = right();
    cluster.nodes.push(node("compute3", NodeKind::Remote));
    cluster.resources.extend([remote("compute3"), power("compute3")]);
    let steps = plan(&cluster);
    assert!(
        matches!(steps.as_slice(), [Step::SetLevels { .. }, Step::SetParameters { values, .. }]
            if values["pcmk_host_list"] == "compute1,compute2,compute3"),
        "{steps:#?}"
    );
    let commands = commands(Tool::Crmsh, &cluster, &steps);
    assert!(commands[0].line().contains("fencing_topology") && commands[1].line().contains("pcmk_host_list"));
    let pushed = super::commands(Tool::Pcs, &cluster, &steps);
    let changing: Vec<&Command> = pushed.iter().filter(|command| !command.does.is_empty()).collect();
    assert!(changing.len() == 1 && changing[0].line().contains("cib-push"), "with pcs all is one change");
}

/// pcs refuses a second constraint with the same rule.
#[test]
fn a_rule_that_is_there_already_does_not_stop_pcs() {
    let printed = |cluster: &Cluster| {
        let commands = commands(Tool::Pcs, cluster, &plan(cluster));
        commands.iter().map(Command::line).find(|line| line.contains("constraint")).unwrap()
    };
    let mut cluster = right();
    cluster.locations[0].discovery.clear();
    assert!(printed(&cluster).ends_with("'#kind' eq cluster --force"), "{}", printed(&cluster));
    cluster.locations.clear();
    assert!(printed(&cluster).ends_with("'#kind' eq cluster"), "{}", printed(&cluster));
}

#[test]
fn the_release_says_whether_fencings_run_beside_each_other_by_themselves() {
    let with = |release, text: Option<&str>| {
        let mut cluster = right();
        cluster.pacemaker = release;
        cluster.properties.clear();
        cluster.properties.extend(text.map(|text| ("concurrent-fencing".to_owned(), text.to_owned())));
        check(&cluster).is_empty()
    };
    assert!(with(Some([3, 0, 0]), None) && with(None, Some("yes")) && with(Some([2, 1, 10]), Some("true")));
    assert!(!with(Some([2, 1, 10]), None) && !with(None, None) && !with(Some([3, 0, 0]), Some("false")));
}

/// 2.1.7 and 2.1.8 read a first alert late, and no other.
#[test]
fn a_first_alert_that_is_read_late_is_said() {
    let is_said = |release, has_another: bool| {
        let mut cluster = right();
        cluster.pacemaker = Some(release);
        let other = Alert { path: "/usr/local/bin/page-somebody".to_owned(), ..cluster.alerts.remove(0) };
        cluster.alerts = if has_another { vec![other] } else { Vec::new() };
        found(&cluster, Kind::NoAlert).what.contains("cluster-recheck-interval")
    };
    assert!(is_said([2, 1, 7], false) && is_said([2, 1, 8], false));
    assert!(!is_said([2, 1, 7], true) && !is_said([2, 1, 5], false) && !is_said([2, 1, 9], false));
}

/// Two racks of compute hosts with levels by patterns that end so.
fn racks(end: &str) -> Cluster {
    let mut cluster = bare(&["r1-c1", "r2-c1"]);
    let level = |rack: &str| Level {
        target: Target::Pattern(format!("^{rack}-{end}")),
        index: 1,
        devices: vec![format!("power-{rack}-c1")],
    };
    cluster.levels = vec![level("r1"), level("r2")];
    cluster
}

/// An older rule used the power device of the first target, whether it was the host's or not: `r2-c1: power-r1-c1 mark`.
#[test]
fn no_host_gets_the_power_device_of_another() {
    let known = applied(racks(r"\w+$"));
    assert_eq!(check(&known), []);
    for (rack, host) in [("r1", "r1-c1"), ("r2", "r2-c1")] {
        let levels = known.levels_of(&Target::Pattern(format!(r"^{rack}-\w+$")));
        let power = format!("power-{host}");
        assert_eq!(levels.into_values().collect::<Vec<_>>(), [names(&[&power, "mark"]), names(&[&power])]);
    }
    let unknown = racks(r"\S+$");
    let marks = plan(&unknown).into_iter().any(|step| matches!(step, Step::CreateMark { .. }));
    assert!(!sets_levels(&unknown) && !marks);
    let all = check(&unknown);
    let asks =
        |host| all.iter().any(|f| f.about == host && matches!(&f.then, Then::Do(do_) if do_.contains('?')));
    assert!(asks("r1-c1") && asks("r2-c1"));
    let mut stolen = unknown.clone();
    let levels = vec![names(&["power-r1-c1", "mark"]), names(&["power-r1-c1"])];
    apply(&mut stolen, &Step::CreateMark { id: "mark".into(), hosts: names(&["r2-c1"]) });
    apply(&mut stolen, &Step::SetLevels { target: Target::Name("r2-c1".into()), levels });
    let lost = lost(&unknown, &stolen);
    assert!(lost[0].starts_with("r2-c1: its levels would not be"), "{lost:?}");
}

/// The fencer takes any of several matching targets: whose devices fence the host is unknown.
#[test]
fn of_two_targets_that_hold_neither_is_taken() {
    let mut cluster = bare(&["compute1"]);
    cluster.resources.push(fences("pdu", "fence_apc", "compute1 ctl1"));
    let level = |pattern: &str, device: &str| Level {
        target: Target::Pattern(pattern.into()),
        index: 1,
        devices: names(&[device]),
    };
    cluster.levels = vec![level("^c", "pdu"), level("compute", "power-compute1")];
    assert!(!sets_levels(&cluster) && kinds(&cluster).contains(&"no-level"));
    cluster.levels.remove(0);
    assert_eq!(check(&applied(cluster)), []);
}

/// S1-22: one of two supplies is not enough, and a device with an unknown effect proves nothing.
#[test]
fn without_a_level_only_one_known_device_is_used() {
    let steps = |agent: &str, list: Option<&str>| {
        let mut cluster = bare(&["compute1"]);
        let list = list.map(|list| ("pcmk_host_list", list));
        cluster.resources.push(resource("other", &format!("stonith:{agent}"), pairs(list)));
        cluster.resources.retain(|resource| resource.id != "power-compute1" || agent == "fence_apc");
        let asked = check(&cluster).into_iter().find(|finding| finding.about == "compute1");
        (sets_levels(&cluster), asked)
    };
    for agent in ["fence_heuristics_ping", "fence_of_a_site", "fence_dummy"] {
        assert!(!steps(agent, Some("compute1")).0, "{agent}");
    }
    let (is_set, asked) = steps("fence_apc", Some("compute1"));
    assert!(!is_set && advice(&asked.unwrap()).contains("is one enough"));
    assert!(!steps("fence_apc", None).0, "a device without a list may be for the host too");
    assert!(!steps("fence_vmware_rest", None).0 && steps("fence_vmware_rest", Some("compute1")).0);
}

/// An older rule listed compute hosts alone, and the controller's level failed from then on.
#[test]
fn a_mark_device_keeps_every_node_whose_level_it_stands_in() {
    let with = |target: Target| {
        let mut cluster = right();
        cluster.resources.push(power("ctl1"));
        cluster.levels.push(Level { target, index: 1, devices: names(&["power-ctl1", "mark"]) });
        own(&mut cluster, "mark").parameters.remove("pcmk_host_list");
        cluster
    };
    let by_name = with(Target::Name("ctl1".into()));
    let mut after = applied(by_name.clone());
    assert_eq!(own(&mut after, "mark").parameters["pcmk_host_list"], "ctl1,compute1,compute2");
    let mut narrowed = by_name.clone();
    let values = pairs([("pcmk_host_list", "compute1,compute2")]);
    apply(&mut narrowed, &Step::SetParameters { resource: "mark".into(), values });
    assert_eq!(lost(&by_name, &narrowed), ["ctl1: it would lose the device mark"]);
    let unsure = with(Target::Pattern(r"^\S+1$".into()));
    assert!(!plan(&unsure).iter().any(|step| matches!(step, Step::SetParameters { .. })));
    assert!(kinds(&unsure).contains(&"no-host-list"));
}

/// An older rule advised listing the hosts of levels by name.
#[test]
fn what_others_need_is_never_advised_away() {
    let mut shared = bare(&["compute1"]);
    shared.resources.push(resource("vmware", "stonith:fence_vmware_rest", BTreeMap::new()));
    shared.levels = vec![level("compute1", 1, &["vmware"])];
    let found = found(&shared, Kind::NoHostList);
    assert!(found.about == "vmware" && advice(&found).contains("controllers"));
    let mut narrowed = shared.clone();
    let values = pairs([("pcmk_host_list", "compute1")]);
    apply(&mut narrowed, &Step::SetParameters { resource: "vmware".into(), values });
    let expected = ["ctl1", "ctl2"].map(|name| format!("{name}: it would lose the device vmware"));
    assert_eq!(lost(&shared, &narrowed), expected);
}

/// Fencing that is off strikes as soon as it is on: never by `setup`, and the hosts are named.
#[test]
fn fencing_is_never_switched_on() {
    let mut cluster = right();
    cluster.properties.insert("stonith-enabled".into(), "false".into());
    let then = |cluster: &Cluster| advice(&found(cluster, Kind::StonithEnabled)).to_owned();
    assert!(plan(&cluster).is_empty() && then(&cluster).ends_with("crm_simulate gave no answer"));
    cluster.would_fence = Some(names(&["compute2"]));
    assert!(then(&cluster).ends_with("now compute2"));
    cluster.resources.retain(|resource| !resource.is_fence_device());
    cluster.levels.clear();
    assert!(then(&cluster).contains("there is no fence device"));
}

/// States that stop fencing or reporting, which an older check accepted: the operator decides. Others are in the test of every finding.
#[test]
fn a_node_or_a_resource_in_maintenance_is_not_right() {
    let mut node = right();
    node.nodes[2].attributes.push(("maintenance".into(), "true".into()));
    let mut resource = right();
    own(&mut resource, "compute1").meta.insert("maintenance".into(), "true".into());
    for (cluster, word) in [(node, "maintenance"), (resource, "unmanaged")] {
        assert_eq!((plan(&cluster), kinds(&cluster)), (vec![], vec![word]));
    }
}

/// Pacemaker makes that device itself.
#[test]
fn a_watchdog_in_a_level_is_a_device_where_it_has_a_timeout() {
    let with = |timeout: Option<&str>| {
        let mut cluster = right();
        cluster.levels.push(level("compute1", 3, &["watchdog"]));
        cluster
            .properties
            .extend(timeout.map(|time| ("stonith-watchdog-timeout".to_owned(), time.to_owned())));
        kinds(&cluster)
    };
    assert_eq!(with(Some("10s")), [""; 0]);
    assert_eq!((with(Some("0")), with(None)), (vec!["unknown-device"], vec!["unknown-device"]));
}

/// A power device that is disabled or banned for a repair is still one of two supplies: a mark behind the other would be
/// false later.
#[test]
fn a_supply_that_is_stopped_or_banned_still_counts() {
    let with = |change: &dyn Fn(&mut Cluster)| {
        let mut cluster = bare(&["compute1"]);
        cluster.resources.push(fences("pdu2", "fence_apc", "compute1"));
        change(&mut cluster);
        sets_levels(&cluster)
    };
    let stop = |cluster: &mut Cluster| {
        cluster.resources.last_mut().unwrap().meta = pairs([("target-role", "Stopped")]);
    };
    let ban = |cluster: &mut Cluster| {
        cluster.locations.extend(["ctl1", "ctl2"].map(|name| Location {
            id: name.into(),
            resources: names(&["pdu2"]),
            parts: vec![Part { score: -1_000_000, condition: Condition::Named(name.into()) }],
            ..Location::default()
        }));
    };
    assert!(!with(&|_| {}), "with two it is unknown whether one is enough");
    assert!(!with(&stop) && !with(&ban), "nor while one of them is not used");
    assert!(with(&|cluster| drop(cluster.resources.pop())), "the only supply gets the mark");
}

/// A host with a disabled device needs no other one.
#[test]
fn for_a_stopped_power_device_no_other_one_is_advised() {
    let mut cluster = bare(&["compute1"]);
    cluster.resources[1].meta = pairs([("target-role", "Stopped")]);
    let own = found(&cluster, Kind::NoPowerDevice);
    assert!(advice(&own).contains("power-compute1") && !advice(&own).contains("create"), "{own:?}");
}

/// A rule for the group would bind its other resources, too.
#[test]
fn the_group_of_the_alerter_gets_no_rule() {
    let mut cluster = right();
    cluster.locations.clear();
    let grouped = |resource: &mut Resource| resource.top = "group".into();
    cluster.resources.iter_mut().filter(|own| own.agent == ALERTER_AGENT).for_each(grouped);
    advice(&found(&cluster, Kind::AlerterOnComputes));
}

fn many(hosts: usize) -> Vec<String> {
    (1..=hosts).map(|number| format!("compute{number}")).collect()
}

/// The hosts of each mark device, by the levels and by its list.
fn divided(cluster: &Cluster) -> Vec<usize> {
    let named = |id: &str| {
        cluster.levels.iter().filter(|level| level.devices.last().is_some_and(|last| last == id)).count()
    };
    let listed = |mark: &Resource| mark.hosts().unwrap().len();
    cluster
        .marks()
        .map(|mark| {
            assert_eq!(named(&mark.id), listed(mark), "{}", mark.id);
            listed(mark)
        })
        .collect()
}

/// A device marks one host after the other: of 50 hosts that fail together at most ten share one, and neighbours share none
/// before all devices have one. The broken variant is one device for all.
#[test]
fn hosts_are_divided_over_mark_devices() {
    let fresh = |hosts: usize| {
        let names = many(hosts);
        applied(bare(&names.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    for (hosts, devices) in [(1, 1), (10, 1), (11, 2), (24, 3), (50, 5), (60, 5)] {
        let cluster = fresh(hosts);
        let shares = divided(&cluster);
        assert_eq!((shares.len(), shares.iter().sum::<usize>()), (devices, hosts));
        assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1, "{shares:?}");
        assert_eq!(check(&cluster), []);
        assert!(cluster.marks().all(|mark| mark.parameter("pcmk_action_limit").is_none()));
    }
    let cluster = fresh(50);
    let of = |host: usize| {
        levels_of(&cluster, &format!("compute{host}"))[0].rsplit_once('+').unwrap().1.to_owned()
    };
    assert_eq!((1..=5).map(of).collect::<BTreeSet<_>>().len(), 5);
    let plan = plan(&bare(&many(11).iter().map(String::as_str).collect::<Vec<_>>()));
    for tool in [Tool::Pcs, Tool::Crmsh] {
        let printed: String = commands(tool, &cluster, &plan).iter().map(Command::line).collect();
        assert!(printed.contains("mark-2") && !printed.contains("pcmk_action_limit"), "{printed}");
    }
}

/// One device for all hosts, as `setup` made it once, stays; a host that comes to it gets another device. The broken variants find
/// something, move a host to another device, or add to the longest list.
#[test]
fn one_mark_device_for_all_stays_and_new_hosts_get_another() {
    let names = many(24);
    let mut cluster = bare(&names.iter().map(String::as_str).collect::<Vec<_>>());
    apply(&mut cluster, &Step::CreateMark { id: "mark".into(), hosts: names.clone() });
    for name in &names {
        let power = format!("power-{name}");
        cluster.levels.extend([level(name, 1, &[&power, "mark"]), level(name, 2, &[&power])]);
    }
    let cluster = applied(cluster);
    assert_eq!((check(&cluster), divided(&cluster)), (vec![], vec![24]));
    let mut grown = cluster.clone();
    for name in ["compute25", "compute26"] {
        grown.nodes.push(node(name, NodeKind::Remote));
        grown.resources.extend([remote(name), power(name)]);
    }
    let grown = applied(grown);
    assert_eq!((check(&grown), divided(&grown)), (vec![], vec![24, 1, 1]));
    assert!(cluster.levels.iter().all(|level| grown.levels.contains(level)));
}

/// Pacemaker's fencer dies where a device runs several calls for one host at once. The broken variants wanted -1, or see the mark
/// devices alone.
#[test]
fn a_fence_device_runs_one_call_at_a_time() {
    let with = |id: &'static str, limit: &str| {
        let mut cluster = right();
        own(&mut cluster, id).parameters.insert("pcmk_action_limit".into(), limit.into());
        cluster
    };
    for id in ["mark", "power-compute1"] {
        assert_eq!(kinds(&with(id, "1")), [""; 0]);
        for limit in ["-1", "2", "0", "many"] {
            let cluster = with(id, limit);
            let found = check(&cluster);
            assert_eq!((found.len(), found[0].kind, found[0].about.as_str()), (1, Kind::ActionLimit, id));
            assert!(found[0].what.contains("SIGSEGV"), "{}", found[0].what);
            let is_ours = matches!(&found[0].then, Then::Setup(Step::SetParameters { values, .. }) if values["pcmk_action_limit"] == "1");
            assert_eq!(is_ours, id == "mark", "a power device is its operator's");
            assert_eq!(kinds(&applied(cluster)).is_empty(), is_ours);
        }
    }
}

/// Choices that can shrink a failing case.
struct Dice<'a>(std::slice::Iter<'a, u8>);

impl Dice<'_> {
    fn pick(&mut self, sides: usize) -> usize {
        usize::from(*self.0.next().unwrap_or(&0)) % sides
    }

    fn is(&mut self) -> bool {
        self.pick(2) == 1
    }
}

fn target(dice: &mut Dice<'_>, hosts: &[&str]) -> Target {
    match dice.pick(8) {
        0 => Target::Pattern(["^compute", "^compute[12]$", r"^\w+1$"][dice.pick(3)].into()),
        1 => Target::Pattern("^c".into()),
        2 => Target::Pattern("compute1+?".into()),
        3 => Target::Attribute { name: "zone".into(), value: "east".into() },
        4 => Target::Name("ctl1".into()),
        _ => Target::Name(hosts[dice.pick(hosts.len())].into()),
    }
}

fn devices(dice: &mut Dice<'_>) -> Vec<String> {
    let all = ["power-compute1", "pdu", "mark", "power-compute2", "mark-2", "weak", "watchdog"];
    (0..=dice.pick(3)).map(|_| all[dice.pick(all.len())].to_owned()).collect()
}

/// The hosts that a device lists.
const LISTED: [Option<&str>; 4] = [None, Some("compute1"), Some("compute1 ctl1"), Some("compute2;compute3")];

fn fence_devices(dice: &mut Dice<'_>, cluster: &mut Cluster) {
    if dice.is() {
        let list = LISTED[dice.pick(4)].map(|list| ("pcmk_host_list", list));
        let how = dice.is().then_some(("pcmk_host_check", "dynamic-list"));
        let mut pdu = resource("pdu", "stonith:fence_apc", pairs(list.into_iter().chain(how)));
        pdu.meta = pairs(dice.is().then_some(("target-role", "Stopped")));
        cluster.resources.push(pdu);
    }
    for power in cluster.resources.iter_mut().filter(|resource| resource.is_fence_device()) {
        if dice.pick(6) == 0 {
            power.parameters.clear();
        }
    }
    let agent = ["fence_kdump", "fence_dummy", "fence_heuristics_ping", "fence_of_a_site"][dice.pick(4)];
    cluster.resources.push(fences("weak", agent, "compute1"));
}

fn mark_devices(dice: &mut Dice<'_>, cluster: &mut Cluster) {
    for id in ["mark", "mark-2"] {
        if dice.is() {
            continue;
        }
        let wrong = [("pcmk_off_timeout", "20s"), ("pcmk_off_retries", "3"), ("pcmk_action_limit", "-1")];
        let mut mark = resource(id, "stonith:fence_mark", pairs(wrong.into_iter().take(dice.pick(4))));
        mark.parameters
            .extend(LISTED[dice.pick(4)].map(|list| ("pcmk_host_list".to_owned(), list.to_owned())));
        mark.operations.extend(dice.is().then(|| monitor(MARK_MONITOR)));
        cluster.taken.insert(id.to_owned());
        cluster.resources.push(mark);
    }
}

/// Foreign constraints, which may concern our resources too.
fn bans(dice: &mut Dice<'_>, cluster: &mut Cluster) {
    for _ in 0..dice.pick(3) {
        let of = ["mark", "power-compute1", "alerter", "vip"];
        let on = ["ctl1", "ctl2"][dice.pick(2)];
        cluster.locations.push(Location {
            id: format!("ban-{}", cluster.locations.len()),
            resources: names(&of[..=dice.pick(4)])
                .into_iter()
                .filter(|id| cluster.taken.contains(id))
                .collect(),
            discovery: String::new(),
            parts: vec![Part { score: -1_000_000, condition: Condition::Named(on.into()) }],
        });
    }
}

/// A cluster in any state of disorder.
fn disordered(choices: &[u8]) -> Cluster {
    let mut dice = Dice(choices.iter());
    let hosts = &["compute1", "compute2", "compute3"][..=dice.pick(3)];
    let mut cluster = bare(hosts);
    for node in cluster.nodes.iter_mut().filter(|_| dice.is()) {
        node.attributes.push(("zone".into(), "east".into()));
    }
    fence_devices(&mut dice, &mut cluster);
    mark_devices(&mut dice, &mut cluster);
    for _ in 0..dice.pick(6) {
        let target = target(&mut dice, hosts);
        let index = u32::try_from(dice.pick(4)).unwrap() + 1;
        cluster.levels.push(Level { target, index, devices: devices(&mut dice) });
    }
    if dice.is() {
        let mut alerter = resource("alerter", ALERTER_AGENT, BTreeMap::new());
        alerter.meta =
            pairs([("requires", "fencing"), ("resource-stickiness", "100")].into_iter().take(dice.pick(3)));
        cluster.taken.insert("alerter".into());
        cluster.resources.push(alerter);
    }
    bans(&mut dice, &mut cluster);
    if dice.is() {
        let (path, is_here) = if dice.is() { (ALERT, true) } else { ("/gone/alert_mark", false) };
        let (selected, recipients) = (["nodes", "fencing"], ["/elsewhere", evidence::DIRECTORY]);
        cluster.alerts.push(Alert {
            id: "a".into(),
            path: path.into(),
            is_here,
            selected: names(&selected[..dice.pick(3)]),
            recipients: names(&recipients[..dice.pick(3)]),
            is_off: dice.is(),
        });
    }
    let properties = [("stonith-enabled", "false"), ("concurrent-fencing", "no")];
    cluster.properties = pairs(properties.into_iter().take(dice.pick(3)));
    cluster
}

/// The fence agent's own result for a host's levels, from the same document.
fn agent_marks(cluster: &Cluster, host: &HostName) -> bool {
    let devices: String = cluster
        .resources
        .iter()
        .filter_map(|r| Some((r, r.agent.strip_prefix("stonith:")?)))
        .map(|(r, agent)| format!("<primitive id='{}' class='stonith' type='{agent}'/>", r.id))
        .collect();
    let entry = |level: &Level| {
        let target = match &level.target {
            Target::Name(name) => format!("target='{name}'"),
            Target::Pattern(text) => format!("target-pattern='{text}'"),
            Target::Attribute { name, value } => format!("target-attribute='{name}' target-value='{value}'"),
        };
        format!("<fencing-level {target} index='{}' devices='{}'/>", level.index, level.devices.join(","))
    };
    let node = |node: &Node| {
        let pairs: String =
            node.attributes.iter().map(|(n, v)| format!("<nvpair name='{n}' value='{v}'/>")).collect();
        format!("<node uname='{}'><instance_attributes>{pairs}</instance_attributes></node>", node.name)
    };
    let levels: String = cluster.levels.iter().map(entry).collect();
    let nodes: String = cluster.nodes.iter().map(node).collect();
    let xml = format!(
        "<cib><configuration><nodes>{nodes}</nodes><resources>{devices}</resources><fencing-topology>{levels}</fencing-topology></configuration></cib>"
    );
    let levels = Cib::parse(&xml).unwrap().mark_levels_of(host);
    levels.iter().all(|level| level.fault.is_none()) && levels.iter().any(|level| level.certain)
}

/// An oracle that shares nothing with `lost`: whether a level applies to a node, by the result of Pacemaker's regcomp for
/// the generator's patterns.
fn matches(target: &Target, node: &Node) -> bool {
    let name = node.name.as_str();
    match target {
        Target::Name(own) => own == name,
        Target::Attribute { name, value } => node.attributes.contains(&(name.clone(), value.clone())),
        Target::Pattern(text) => match text.as_str() {
            "^compute" => name.starts_with("compute"),
            "^compute[12]$" => ["compute1", "compute2"].contains(&name),
            r"^\w+1$" => name.ends_with('1'),
            "^c" => name.starts_with('c'),
            _ => name.contains("compute1") || name == "compute",
        },
    }
}

/// Whether a device may fence a node once it is used: it lists the node, or only the device itself knows.
fn may_fence(device: &Resource, node: &Node) -> bool {
    let is_dynamic = device.parameters.contains_key("pcmk_host_check");
    let list = device.parameters.get("pcmk_host_list").filter(|_| !is_dynamic);
    list.is_none_or(|list| list.split([' ', ',', ';']).any(|name| name == node.name.as_str()))
}

/// The ordered lists of devices that fence a node while only these devices are used, for every target that may apply;
/// without a level Pacemaker takes any of its devices. If `marks` work, they do for each node.
fn fencing(
    cluster: &Cluster,
    node: &Node,
    is_used: &dyn Fn(&str) -> bool,
    marks: bool,
) -> Vec<Vec<Vec<String>>> {
    let able = |id: &String| {
        let device = cluster.resources.iter().find(|own| own.id == *id);
        let is_for = |own: &Resource| (marks && own.id.starts_with("mark")) || may_fence(own, node);
        is_used(id) && device.is_some_and(|own| own.agent.starts_with("stonith:") && is_for(own))
    };
    let is_mark = |id: &String| id.starts_with("mark");
    let named = cluster.levels.iter().any(|level| level.target == Target::Name(node.name.to_string()));
    let holds =
        |level: &&Level| matches(&level.target, node) && (!named || matches!(level.target, Target::Name(_)));
    let mut ways: Vec<(&Target, BTreeMap<u32, Vec<String>>)> = Vec::new();
    for level in cluster.levels.iter().filter(holds) {
        let at = ways.iter().position(|(target, _)| **target == level.target).unwrap_or_else(|| {
            ways.push((&level.target, BTreeMap::new()));
            ways.len() - 1
        });
        ways[at].1.entry(level.index).or_default().extend(level.devices.iter().cloned());
    }
    if ways.is_empty() {
        let ids = cluster.resources.iter().map(|own| own.id.clone());
        let any: Vec<String> = ids.filter(|id| able(id) && !is_mark(id)).collect();
        return vec![Vec::from_iter((!any.is_empty()).then_some(any))];
    }
    let passing = |levels: BTreeMap<u32, Vec<String>>| {
        let mut lists: Vec<Vec<String>> = Vec::new();
        for list in levels.into_values().filter(|list| list.iter().all(able)) {
            let list: Vec<String> = list.into_iter().filter(|id| !is_mark(id)).collect();
            if !list.is_empty() {
                lists.push(list);
            }
        }
        lists
    };
    ways.into_iter().map(|(_, levels)| passing(levels)).collect()
}

/// Whether everything that fenced a node still does.
type Kept = fn(&[Vec<String>], &[Vec<String>]) -> bool;

/// Retries do not count.
fn in_order(old: &[Vec<String>], new: &[Vec<String>]) -> bool {
    let mut left = new.iter();
    let first = old.iter().enumerate().filter(|(at, list)| !old[..*at].contains(list));
    first.map(|(_, list)| list).all(|list| left.any(|other| other == list))
}

fn at_all(old: &[Vec<String>], new: &[Vec<String>]) -> bool {
    old.iter().all(|list| new.contains(list))
}

/// The first node and the used devices for which a list that fenced it is gone, or has another order. The order counts as
/// if each mark worked: a failing mark fails its levels, and `setup` moves it or adds to its list.
fn poorer(before: &Cluster, after: &Cluster) -> Option<String> {
    let powers = before.resources.iter().filter(|own| own.agent.starts_with("stonith:"));
    let ids: Vec<&str> = powers.map(|own| own.id.as_str()).chain(["mark", "mark-2"]).collect();
    let states = std::iter::once(ids.clone())
        .chain(ids.iter().map(|off| ids.iter().filter(|id| *id != off).copied().collect()))
        .chain(ids.iter().map(|on| vec![*on]));
    for used in states {
        for node in &before.nodes {
            let by = |cluster: &Cluster, works: bool| {
                fencing(cluster, node, &|id| used.contains(&id) || (works && id.starts_with("mark")), works)
            };
            for (works, is_kept) in [(true, in_order as Kept), (false, at_all)] {
                let (was, is) = (by(before, works), by(after, works));
                if !is.iter().all(|new| was.iter().any(|old| is_kept(old, new))) {
                    return Some(format!("{} with {used:?}: {was:?}, then {is:?}", node.name));
                }
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Applying twice equals applying once; the rest is the operator's, and each host that can be fenced is marked.
    #[test]
    fn the_plan_leaves_nothing_that_it_could_do(choices in proptest::collection::vec(any::<u8>(), 0..120)) {
        let cluster = applied(disordered(&choices));
        let found = check(&cluster);
        prop_assert_eq!(plan(&cluster), vec![], "{:#?}", &cluster);
        for node in cluster.nodes.iter().filter(|node| node.kind == NodeKind::Remote) {
            let is_left = found.iter().any(|finding| finding.about == node.name.as_str());
            prop_assert!(is_left || agent_marks(&cluster, &node.name), "{}: {:#?}", node.name, &cluster.levels);
        }
    }

    /// Whatever the cluster was before: every node keeps its fencing, and foreign parts stay unchanged.
    #[test]
    fn nobody_loses_anything(choices in proptest::collection::vec(any::<u8>(), 0..160)) {
        let (before, after) = (disordered(&choices), applied(disordered(&choices)));
        prop_assert_eq!(poorer(&before, &after), None, "{:#?}\n{:#?}", plan(&before), &before.levels);
        prop_assert_eq!(lost(&before, &after), [""; 0], "{:#?}\n{:#?}", plan(&before), &before.levels);
        let is_ours = |resource: &&Resource| resource.is_mark() || resource.agent == ALERTER_AGENT;
        let others = |cluster: &Cluster| -> Vec<Resource> {
            cluster.resources.iter().filter(|resource| !is_ours(resource)).cloned().collect()
        };
        prop_assert_eq!(others(&before), others(&after));
        prop_assert!(before.locations.iter().all(|location| after.locations.contains(location)));
        let off = |cluster: &Cluster| cluster.switched_off();
        prop_assert_eq!(off(&before), off(&after), "only an operator switches fencing on");
    }

    /// Neither tool ever gets a command to leave a target without levels, or a mark alone or before another device.
    #[test]
    fn no_step_makes_what_the_check_would_find(choices in proptest::collection::vec(any::<u8>(), 0..120)) {
        let (cluster, after) = (disordered(&choices), applied(disordered(&choices)));
        for step in plan(&cluster) {
            let Step::SetLevels { levels, .. } = step else { continue };
            prop_assert!(!levels.is_empty() && levels.len() <= 9);
            for devices in levels {
                let marks: Vec<usize> = (0..devices.len()).filter(|at| after.is_mark(&devices[*at])).collect();
                let is_last = marks == [devices.len() - 1];
                prop_assert!(marks.is_empty() || (is_last && after.cuts_power(&devices)), "{:?}", devices);
            }
        }
    }
}
