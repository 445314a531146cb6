//! The parts of a CIB, asked of the installed `cibadmin` with a file in the cluster's place, against the whole document.

use std::fs;
use std::process::Command;

use super::*;
use marks::fencing::Incarnation;
use samples::left_out::lacks;

const CONTROLLER: &str = "/usr/sbin/cibadmin";

/// A CIB in a file, and the tool that reads and changes it.
struct File {
    dir: tempfile::TempDir,
    tools: Tools,
}

impl File {
    /// `None`, with the reason, where the tool is lacking.
    #[track_caller]
    fn new(cib: &str) -> Option<Self> {
        if lacks(&[CONTROLLER]) {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let (file, tool) = (dir.path().join("cib.xml"), dir.path().join("cibadmin"));
        // An older tool knows no later schema.
        let schema = cib.split("validate-with=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        fs::write(&file, cib.replace(&format!("validate-with=\"{schema}\""), "validate-with=\"none\""))
            .unwrap();
        let asked = dir.path().join("asked");
        let script = format!(
            "#!/bin/sh\necho \"$*\" >> {}\nCIB_file={} exec {CONTROLLER} \"$@\"\n",
            asked.display(),
            file.display()
        );
        samples::program(&tool, script);
        Some(Self { tools: Tools { cibadmin: tool, ..Tools::default() }, dir })
    }

    fn change(&self, arguments: &[&str]) {
        let changed = Command::new(&self.tools.cibadmin).args(arguments).status().unwrap();
        assert!(changed.success(), "{arguments:?}");
    }

    /// How many questions were asked so far.
    fn asked(&self) -> usize {
        fs::read_to_string(self.dir.path().join("asked")).unwrap_or_default().lines().count()
    }

    fn refreshed(&self, snapshot: &mut Snapshot) -> Arc<Cib> {
        refresh(snapshot, &self.tools, Duration::from_secs(60), soon()).unwrap()
    }

    fn news(&self, snapshot: &Snapshot) -> bool {
        news(snapshot, &self.tools, soon()).unwrap().of_nodes
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn host_named(name: &str) -> HostName {
    HostName::parse(name).unwrap()
}

/// Everything that is asked of a CIB about its hosts.
type Facts = Vec<(HostName, Option<bool>, Option<Incarnation>, Option<bool>, bool, Option<i64>, usize)>;

fn facts(cib: &Cib) -> (Facts, Option<bool>, Option<String>, usize, usize) {
    let hosts = cib.cluster_nodes().iter().chain(cib.remote_nodes()).cloned();
    let of = |host: HostName| {
        let levels = cib.mark_levels_of(&host).len();
        let (member, life) = (cib.membership(&host), cib.incarnation_of(&host));
        let (fenced, second) = (cib.fenced_before(&host), cib.node_fenced(&host));
        (host.clone(), member, life, fenced, cib.is_expected(&host), second, levels)
    };
    let release = cib.release().map(|release| format!("{release:?}"));
    (hosts.map(of).collect(), cib.quorum(), release, cib.levels().len(), cib.fence_mark_devices().len())
}

fn recorded() -> impl Iterator<Item = &'static str> {
    let all = [
        include_str!("../cib/recorded/2.0.5.txt"),
        include_str!("../cib/recorded/2.1.5.txt"),
        include_str!("../cib/recorded/2.1.10.txt"),
        include_str!("../cib/recorded/3.0.0.txt"),
        include_str!("../cib/recorded/3.0.3.txt"),
    ];
    all.into_iter().flat_map(|text| text.split("== ").skip(1)).map(|part| part.split_once('\n').unwrap().1)
}

/// A cluster that works changes its CIB all the time, and `setup` asks for it right after its own change. The broken variant gives up
/// after three readings.
#[test]
fn a_cib_that_changes_for_a_while_is_read_in_parts() {
    let Some(file) = File::new(CLUSTER) else { return };
    let (at, until) = (file.dir.path(), Instant::now() + Duration::from_secs(2));
    let text = fs::read_to_string(at.join("cib.xml")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for epoch in (10..).take_while(|_| Instant::now() < until) {
                let changed = text.replace("epoch=\"9\"", &format!("epoch=\"{epoch}\""));
                fs::write(at.join("new.xml"), changed).unwrap();
                fs::rename(at.join("new.xml"), at.join("cib.xml")).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let read = whole::in_parts(&file.tools, soon()).unwrap();
        assert_eq!(facts(&Cib::parse(&read).unwrap()), facts(&Cib::parse(CLUSTER).unwrap()));
    });
}

/// S1-16: which life of a host ended is known by its connection, so no reading may lose one. The broken variants: a path that
/// does not find what a release writes elsewhere, and a part that is read without the node that it belongs to.
#[test]
fn the_parts_say_what_the_whole_says() {
    for xml in recorded() {
        let Some(file) = File::new(xml) else { return };
        let whole_cib = Cib::parse(xml).unwrap();
        let own = whole_cib.cluster_nodes().to_vec();
        let mut snapshot = Snapshot::default();
        snapshot.set_own(own);
        assert_eq!(facts(&file.refreshed(&mut snapshot)), facts(&whole_cib), "{xml}");
        let text = whole::in_parts(&file.tools, soon()).unwrap();
        assert_eq!(facts(&Cib::parse(&text).unwrap()), facts(&whole_cib), "{xml}");
        for node in whole_cib.remote_nodes().iter().chain(whole_cib.cluster_nodes()) {
            let read = host(&file.tools, node, soon()).unwrap();
            let of = |cib: &Cib| {
                let state = (cib.fenced_before(node), cib.incarnation_of(node), cib.is_guest_node(node));
                (state, cib.mark_levels_of(node), cib.cluster_nodes().to_vec())
            };
            assert_eq!(of(&read), of(&whole_cib), "{node}: {xml}");
        }
    }
}

/// A cluster with two hosts, whose levels need every kind of target.
const CLUSTER: &str = r#"<cib validate-with="pacemaker-3.0" admin_epoch="0" epoch="9" num_updates="0" have-quorum="1" dc-uuid="1">
<configuration><crm_config><cluster_property_set id="o"><nvpair id="o-v" name="dc-version" value="2.1.5-x"/></cluster_property_set></crm_config>
<nodes><node id="1" uname="ctl1"/><node id="2" uname="ctl2"/><node id="compute2" uname="compute2" type="remote"><instance_attributes id="c2"><nvpair id="c2-r" name="rack" value="b"/></instance_attributes></node></nodes>
<resources><template id="t" class="stonith" type="fence_mark"/><primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/>
<group id="g"><primitive id="compute2" class="ocf" provider="pacemaker" type="remote"/></group>
<clone id="c"><group id="cg"><primitive id="power" class="stonith" type="fence_ipmilan"/></group></clone><primitive id="mark" template="t"/>
<primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain"><meta_attributes id="vm-m"><nvpair id="vm-r" name="remote-node" value="Guest1"/></meta_attributes></primitive></resources>
<constraints/><fencing-topology><fencing-level id="l1" target="compute1" index="1" devices="power,mark"/>
<fencing-level id="l2" target-attribute="rack" target-value="b" index="1" devices="power,mark"/><fencing-level id="l3" target-pattern="guest.*" index="1" devices="mark"/></fencing-topology></configuration>
<status><node_state id="1" uname="ctl1" in_ccm="true" crmd="online"><lrm id="1"><lrm_resources><lrm_resource id="compute1" type="remote" class="ocf" provider="pacemaker"><lrm_rsc_op id="compute1_last_0" operation="start" on_node="ctl1" call-id="5" rc-code="0" op-status="0" last-rc-change="1000"/></lrm_resource>
<lrm_resource id="web" type="apache" class="ocf" provider="heartbeat"><lrm_rsc_op id="web_last_0" operation="start" on_node="ctl1" call-id="2" rc-code="0" op-status="0" last-rc-change="900"/></lrm_resource></lrm_resources></lrm></node_state>
<node_state id="2" uname="ctl2" in_ccm="true" crmd="online"><lrm id="2"><lrm_resources><lrm_resource id="compute2" type="remote" class="ocf" provider="pacemaker"><lrm_rsc_op id="compute2_last_0" operation="start" on_node="ctl2" call-id="7" rc-code="0" op-status="0" last-rc-change="1000"/></lrm_resource></lrm_resources></lrm></node_state>
<node_state remote_node="true" id="compute1" uname="compute1" in_ccm="true" node_fenced="0"/><node_state remote_node="true" id="compute2" uname="compute2" in_ccm="true" node_fenced="0"/></status></cib>"#;

/// Each form of level, device and guest is found for one host alone. The broken variants miss a level for a pattern or an
/// attribute, a device in a cloned group or with a template, or a guest node.
#[test]
fn what_decides_about_one_host_is_read_whole() {
    let Some(file) = File::new(CLUSTER) else { return };
    let whole_cib = Cib::parse(CLUSTER).unwrap();
    for name in ["compute1", "COMPUTE1", "compute2", "guest1", "Guest1", "ctl1", "unknown"] {
        let host = host_named(name);
        let read = super::host(&file.tools, &host, soon()).unwrap();
        let of = |cib: &Cib| (cib.mark_levels_of(&host), cib.is_guest_node(&host), cib.incarnation_of(&host));
        assert_eq!(of(&read), of(&whole_cib), "{name}");
    }
    let configuration = configuration(&file.tools, soon()).unwrap();
    assert_eq!(configuration.mark_levels(), whole_cib.mark_levels());
    assert_eq!(configuration.guest_nodes(), whole_cib.guest_nodes());
}

/// Of a rack that dies each host asks. The broken variant asks for each device of a level once more.
#[test]
fn one_question_is_enough_for_a_host_with_a_power_device_of_its_own() {
    let list = r#"<instance_attributes id="p"><nvpair id="p-l" name="pcmk_host_list" value="Compute1"/></instance_attributes>"#;
    let own = CLUSTER
        .replace(r#"type="fence_ipmilan"/>"#, &format!(r#"type="fence_ipmilan">{list}</primitive>"#))
        .replace(
            r#"<primitive id="mark" template="t"/>"#,
            r#"<primitive id="mark" class="stonith" type="fence_mark"/>"#,
        );
    let Some(file) = File::new(&own) else { return };
    let whole_cib = Cib::parse(&own).unwrap();
    for (name, questions) in [("compute1", 1), ("compute2", 2)] {
        let (host, before) = (host_named(name), file.asked());
        let read = super::host(&file.tools, &host, soon()).unwrap();
        assert_eq!(read.mark_levels_of(&host), whole_cib.mark_levels_of(&host));
        assert_eq!(file.asked() - before, questions, "{name}");
    }
}

/// Every change of a controller's operations, by the arguments of `cibadmin`.
fn changes() -> Vec<(&'static str, Vec<String>)> {
    let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let op = |id: &str, rest: &str| {
        let text = format!(
            r#"<node_state id="1"><lrm id="1"><lrm_resources><lrm_resource id="compute1"><lrm_rsc_op id="{id}" on_node="ctl1" {rest}/></lrm_resource></lrm_resources></lrm></node_state>"#
        );
        words(&["--modify", "--allow-create", "--scope=status", "--xml-text", &text])
    };
    let delete = |path: &str| words(&["--delete-all", "--force", &format!("--xpath={path}")]);
    let state = |text: &str| words(&["--modify", "--allow-create", "--scope=status", "--xml-text", text]);
    vec![
        (
            "a later operation",
            op("compute1_monitor_1", r#"operation="monitor" call-id="9" rc-code="0" last-rc-change="1100""#),
        ),
        (
            "a failure with the number of the good one",
            op(
                "compute1_last_failure_0",
                r#"operation="monitor" call-id="9" rc-code="1" last-rc-change="1200""#,
            ),
        ),
        (
            "the same operation at another time",
            op("compute1_monitor_1", r#"operation="monitor" call-id="9" rc-code="0" last-rc-change="1150""#),
        ),
        (
            "one under way",
            op("compute1_last_0", r#"operation="start" call-id="-1" rc-code="193" op-status="-1""#),
        ),
        ("a failure that is forgotten", delete("//lrm_rsc_op[@id='compute1_last_failure_0']")),
        ("a cleanup", delete("//node_state[@id='1']//lrm_resource[@id='compute1']")),
        (
            "a controller whose clock went back",
            op(
                "compute1_last_0",
                r#"operation="start" call-id="1" rc-code="0" op-status="0" last-rc-change="10""#,
            ),
        ),
        ("a controller that was fenced", delete("//node_state[@id='2']/lrm")),
        ("a host that is lost", state(r#"<node_state id="compute1" in_ccm="false" node_fenced="1234"/>"#)),
        (
            "a host that is set aside",
            state(
                r#"<node_state id="compute1"><transient_attributes id="compute1"><instance_attributes id="s"><nvpair id="s-s" name="standby" value="on"/></instance_attributes></transient_attributes></node_state>"#,
            ),
        ),
    ]
}

/// S1-16: whatever changes, a snapshot that goes on says what one says that begins; and it says that there is news. The broken
/// variants believe an unchanged number of operations, or search for later ones alone: they keep a connection that was erased.
#[test]
fn a_snapshot_that_goes_on_is_like_a_new_one() {
    let Some(file) = File::new(CLUSTER) else { return };
    let mut snapshot = Snapshot::default();
    snapshot.set_own(vec![host_named("ctl1")]);
    file.refreshed(&mut snapshot);
    for (what, arguments) in changes() {
        file.change(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(file.news(&snapshot), "{what}");
        let mut new = Snapshot::default();
        new.set_own(vec![host_named("ctl1")]);
        let (on, new) = (file.refreshed(&mut snapshot), file.refreshed(&mut new));
        assert_eq!(facts(&on), facts(&new), "{what}");
        assert!(!file.news(&snapshot), "{what}");
        assert!(what != "a host that is lost" || !on.has_all_remotes());
    }
}

/// The newest results of a host's health check in the order of their coming, and the reason that is read. The broken variants go by a
/// failure alone, by the controller that operations name, or by the name of a clone's instance; or each reading costs a question more.
#[test]
fn a_health_check_that_fails_is_read_until_it_is_well() {
    let Some(file) = File::new(CLUSTER) else { return };
    let compute1 = host_named("Compute1");
    let mut snapshot = Snapshot::default();
    file.refreshed(&mut snapshot);
    let long = "\u{e4}&#10;".repeat(100);
    let plain = "? ".repeat(80);
    for (id, rest, wanted) in [
        ("monitor_2000", r#"rc-code="0" last-rc-change="1099""#, None),
        ("last_failure", r#"rc-code="190" exit-reason="the disk" last-rc-change="1100""#, Some("the disk")),
        ("monitor_2000", r#"rc-code="0" last-rc-change="1100""#, None),
        ("last_failure", r#"rc-code="1" exit-reason="" last-rc-change="1102""#, Some("no reason is given")),
        ("monitor_2000", r#"rc-code="0" last-rc-change="1103""#, None),
        ("last_failure", &format!(r#"rc-code="1" exit-reason="{long}" last-rc-change="1104""#), Some(&plain)),
    ] {
        let text = format!(
            r#"<node_state id="compute1"><lrm id="compute1"><lrm_resources><lrm_resource id="health:0" class="ocf" provider="openstack" type="compute-health"><lrm_rsc_op id="health_{id}" operation="monitor" on_node="ctl1" call-id="3" {rest}/></lrm_resource></lrm_resources></lrm></node_state>"#
        );
        file.change(&["--modify", "--allow-create", "--scope=status", "--xml-text", &text]);
        let on = file.refreshed(&mut snapshot);
        assert_eq!(on.unhealthy().get(&compute1).map(String::as_str), wanted, "{rest}");
        let asked = host(&file.tools, &compute1, soon()).unwrap();
        assert_eq!(asked.complaint_of(&compute1).as_deref(), wanted, "{rest}");
        let before = file.asked();
        assert!(!file.news(&snapshot), "{rest}");
        file.refreshed(&mut snapshot);
        assert_eq!(file.asked() - before, 2, "{rest}");
    }
    file.change(&["--delete-all", "--force", "--xpath=//node_state[@id='compute1']/lrm"]);
    assert!(file.news(&snapshot) && file.refreshed(&mut snapshot).unhealthy().is_empty());
}

/// An unchanged cluster costs one small question, an attribute that decides nothing two, and neither is news.
#[test]
fn little_is_asked_where_little_has_changed() {
    let Some(file) = File::new(CLUSTER) else { return };
    let mut snapshot = Snapshot::default();
    let first = file.refreshed(&mut snapshot);
    assert!(first.has_all_remotes());
    let cost = |work: &mut dyn FnMut()| {
        let before = file.asked();
        work();
        file.asked() - before
    };
    assert_eq!(cost(&mut || assert!(Arc::ptr_eq(&file.refreshed(&mut snapshot), &first))), 1);
    let text = r#"<node_state id="compute1"><transient_attributes id="compute1"><instance_attributes id="s"><nvpair id="s-l" name="load" value="7"/></instance_attributes></transient_attributes></node_state>"#;
    file.change(&["--modify", "--allow-create", "--scope=status", "--xml-text", text]);
    assert!(!file.news(&snapshot));
    assert_eq!(cost(&mut || assert!(Arc::ptr_eq(&file.refreshed(&mut snapshot), &first))), 1);
    file.change(&["--modify", "--allow-create", "--scope=nodes", "--xml-text", r#"<node id="compute2"><instance_attributes id="c2"><nvpair id="c2-z" name="zone" value="z"/></instance_attributes></node>"#]);
    let of_configuration = News { of_nodes: false, in_configuration: true };
    assert_eq!(news(&snapshot, &file.tools, soon()).unwrap(), of_configuration);
    let mut now = None;
    // The state, the configuration, and once more the state.
    assert_eq!(cost(&mut || now = Some(file.refreshed(&mut snapshot))), 3);
    assert_eq!(now.unwrap().node_attribute(&host_named("compute2"), "zone"), Some("z"));
}
