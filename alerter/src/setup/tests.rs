//! The plan against the check: what `setup` does leaves nothing that it could do, whatever the cluster was like before.

use std::collections::{BTreeMap, BTreeSet};

use marks::cib::{Cib, Target};
use marks::evidence;
use marks::host::{HostName, HostPatterns};
use proptest::prelude::*;

use super::alerter::{ALERTER_META, ALERTER_MONITOR};
use super::devices::{MARK_MONITOR, MARK_PARAMETERS};
use super::location::{Condition, Location, Part};
use super::model::{ALERTER_AGENT, Alert, Level, Node, NodeKind, Operation, Resource};
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

fn power(host: &str) -> Resource {
    resource(&format!("power-{host}"), "stonith:fence_ipmilan", pairs([("pcmk_host_list", host)]))
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
        pacemaker: Some((2, 1)),
        nodes: controllers.into_iter().chain(computes).collect(),
        taken: resources.iter().map(|resource| resource.id.clone()).collect(),
        resources,
        wanted: Wanted {
            hosts: None,
            config: "/etc/nova-host-alerter/alerter.toml".into(),
            evidence: evidence::DIRECTORY.into(),
        },
        ..Cluster::default()
    }
}

fn monitor((interval, _): (u32, u32)) -> Operation {
    Operation { name: "monitor".into(), interval: format!("{interval}s"), on_fail: String::new() }
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

/// What the tools do.
fn apply(cluster: &mut Cluster, step: &Step) {
    match step {
        Step::CreateMark { id, hosts } => {
            let list = hosts.join(",");
            let mut mark = resource(id, "stonith:fence_mark", pairs(MARK_PARAMETERS));
            mark.parameters.insert("pcmk_host_list".into(), list);
            mark.operations.push(monitor(MARK_MONITOR));
            cluster.taken.insert(id.clone());
            cluster.resources.push(mark);
        }
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
            cluster.alerts.push(Alert { id, path, is_here: true, selected: Vec::new(), recipients });
        }
        Step::SetProperties(values) => cluster.properties.extend(values.clone()),
        Step::Enable { .. } | Step::Unconstrain { .. } => unreachable!("an operator decides on that"),
    }
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

/// An alert that selects fencings alone is right where no cluster node is a compute host, as it was before there were such.
#[test]
fn where_a_cluster_node_is_a_compute_host_the_alert_is_told_of_nodes_too() {
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

#[test]
fn from_a_bare_cluster_to_one_that_is_right() {
    let right = right();
    assert_eq!((check(&right), plan(&right)), (vec![], vec![]));
    let levels: Vec<Vec<String>> = right.levels_of(&Target::Name("compute1".into())).into_values().collect();
    assert_eq!(levels, [names(&["power-compute1", "mark"]), names(&["power-compute1"])]);
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
        assert!(!check(&cluster).is_empty(), "{left_out:?} was left out, and nobody noticed");
    }
}

#[test]
fn a_host_without_a_power_device_is_named_and_the_others_are_set_up() {
    let mut cluster = bare(&["compute1", "compute2"]);
    cluster.resources.retain(|resource| resource.id != "power-compute2");
    let cluster = applied(cluster);
    let found = check(&cluster);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].kind, found[0].about.as_str()), (Kind::NoPowerDevice, "compute2"));
    assert!(matches!(&found[0].then, Then::Do(text) if text.contains("pcmk_host_list=compute2")));
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

/// Levels that are for compute hosts alone are changed where they stand; those that are for controllers too are left to them.
#[test]
fn a_pattern_stays_where_it_is_for_compute_hosts_alone() {
    let with = |pattern: &str| {
        let mut cluster = bare(&["compute1", "compute2"]);
        cluster.resources.push(resource(
            "pdu",
            "stonith:fence_apc",
            pairs([("pcmk_host_list", "compute1 compute2 ctl1")]),
        ));
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
    cluster.resources.push(resource("pdu", "stonith:fence_apc", pairs([("pcmk_host_list", "compute1")])));
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

/// The rule of before put the mark behind whatever stood in a level, and made levels of it.
#[test]
fn a_mark_stands_behind_power_alone() {
    let beside = |agent: &str, levels: &[&[&str]]| {
        let mut cluster = bare(&["compute1"]);
        apply(&mut cluster, &Step::CreateMark { id: "mark".into(), hosts: names(&["compute1"]) });
        let listed = pairs([("pcmk_host_list", "compute1")]);
        cluster.resources.push(resource("weak", &format!("stonith:{agent}"), listed));
        cluster.levels =
            (1..).zip(levels).map(|(index, devices)| level("compute1", index, devices)).collect();
        cluster
    };
    let after = |agent: &str, levels: &[&[&str]]| {
        let cluster = applied(beside(agent, levels));
        (levels_of(&cluster, "compute1"), kinds(&cluster))
    };
    let power = ["power-compute1+mark".to_owned(), "power-compute1".to_owned()];
    assert_eq!(after("fence_dummy", &[]), (power.to_vec(), vec![]), "no level of its own");
    let ping = ["weak+power-compute1+mark".to_owned(), "weak+power-compute1".to_owned()];
    assert_eq!(after("fence_heuristics_ping", &[&["weak", "power-compute1"]]), (ping.to_vec(), vec![]));
    let kdump = [vec!["weak".to_owned()], power.to_vec()].concat();
    for levels in
        [&[&["weak"][..], &["power-compute1"]][..], &[&["weak", "mark"], &["power-compute1", "mark"]]]
    {
        assert_eq!(
            after("fence_kdump", levels),
            (kdump.clone(), vec![]),
            "it stands in front, without a mark"
        );
    }
    let (levels, left) = after("fence_dummy", &[&["weak", "mark"], &["weak"]]);
    assert_eq!((levels, left), (kdump, vec!["level-without-power"]), "what it is for only an operator knows");
    let mut none = beside("fence_dummy", &[&["weak", "mark"]]);
    none.resources.retain(|resource| resource.id != "power-compute1");
    assert!(kinds(&none).contains(&"mark-without-power"));
    let then = |cluster: &Cluster| {
        check(cluster).into_iter().find(|f| f.kind == Kind::MarkWithoutPower).unwrap().then
    };
    assert!(matches!(then(&none), Then::Do(text) if text.contains("create its power device")));
}

/// `fence_compute` marks hosts for `NovaEvacuate`: with the mark beside it each host is recovered twice. The rule of before put
/// both agents into one level.
#[test]
fn beside_another_recovery_nothing_is_set_up() {
    for agent in ["stonith:fence_compute", "stonith:fence_evacuate", "ocf:openstack:NovaEvacuate"] {
        let mut cluster = bare(&["compute1"]);
        cluster.resources.push(resource("other", agent, pairs([("pcmk_host_list", "compute1")])));
        cluster.levels = vec![level("compute1", 1, &["power-compute1", "other"])];
        let found = check(&cluster);
        assert_eq!((found[0].kind, found[0].about.as_str()), (Kind::OtherRecovery, "other"), "{agent}");
        assert!(matches!(&found[0].then, Then::Do(text) if text.contains("docs/migrate.md")));
        assert!(found.len() > 1 && plan(&cluster).is_empty(), "{found:#?}");
        cluster.resources.retain(|resource| resource.id != "other");
        cluster.levels.clear();
        assert_eq!(kinds(&applied(cluster)), [""; 0], "once it is gone");
    }
}

/// Before it has its levels, a host must not be one that the mark device can be chosen for alone.
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
    assert!(with(Some((3, 0)), None) && with(None, Some("yes")) && with(Some((2, 1)), Some("true")));
    assert!(!with(Some((2, 1)), None) && !with(None, None) && !with(Some((3, 0)), Some("false")));
}

/// Choices that a failing case can be made smaller by.
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
    match dice.pick(7) {
        0 => Target::Pattern("^compute".into()),
        1 => Target::Pattern("^c".into()),
        2 => Target::Pattern("compute1+?".into()),
        3 => Target::Attribute { name: "zone".into(), value: "east".into() },
        4 => Target::Name("ctl1".into()),
        _ => Target::Name(hosts[dice.pick(hosts.len())].into()),
    }
}

fn devices(dice: &mut Dice<'_>) -> Vec<String> {
    let all = ["power-compute1", "pdu", "mark", "power-compute2", "mark-2", "weak"];
    (0..=dice.pick(3)).map(|_| all[dice.pick(all.len())].to_owned()).collect()
}

/// A cluster in any state of disorder.
fn disordered(choices: &[u8]) -> Cluster {
    let mut dice = Dice(choices.iter());
    let hosts = &["compute1", "compute2", "compute3"][..=dice.pick(3)];
    let mut cluster = bare(hosts);
    for node in cluster.nodes.iter_mut().filter(|_| dice.is()) {
        node.attributes.push(("zone".into(), "east".into()));
    }
    let listed = [None, Some("compute1"), Some("compute1 ctl1"), Some("compute2;compute3")];
    if let Some(list) = listed[dice.pick(4)] {
        cluster.resources.push(resource("pdu", "stonith:fence_apc", pairs([("pcmk_host_list", list)])));
    }
    let agent = ["fence_kdump", "fence_dummy"][dice.pick(2)];
    cluster.resources.push(resource(
        "weak",
        &format!("stonith:{agent}"),
        pairs([("pcmk_host_list", "compute1")]),
    ));
    for id in ["mark", "mark-2"] {
        if dice.is() {
            continue;
        }
        let wrong = [("pcmk_off_timeout", "20s"), ("pcmk_off_retries", "3"), ("pcmk_action_limit", "1")];
        let mut mark = resource(id, "stonith:fence_mark", pairs(wrong.into_iter().take(dice.pick(4))));
        mark.parameters
            .extend(listed[dice.pick(4)].map(|list| ("pcmk_host_list".to_owned(), list.to_owned())));
        mark.operations.extend(dice.is().then(|| monitor(MARK_MONITOR)));
        cluster.taken.insert(id.to_owned());
        cluster.resources.push(mark);
    }
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
    if dice.is() {
        let (path, is_here) = if dice.is() { (ALERT, true) } else { ("/gone/alert_mark", false) };
        let (selected, recipients) = (["nodes", "fencing"], ["/elsewhere", evidence::DIRECTORY]);
        cluster.alerts.push(Alert {
            id: "a".into(),
            path: path.into(),
            is_here,
            selected: names(&selected[..dice.pick(3)]),
            recipients: names(&recipients[..dice.pick(3)]),
        });
    }
    let properties = [("stonith-enabled", "false"), ("concurrent-fencing", "no")];
    cluster.properties = pairs(properties.into_iter().take(dice.pick(3)));
    cluster
}

/// What the fence agent itself would say of a host's levels: the same document, read by its own eyes.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Applied twice is applied once; what is left is an operator's, and each host that can be fenced is marked.
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

    /// Neither tool is ever told to leave a target without levels, or a mark alone or before another device.
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
