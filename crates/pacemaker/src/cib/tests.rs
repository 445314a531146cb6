//! The CIB as live clusters show it, and as a hostile or broken file might.

use super::*;
use marks::fencing::Incarnation;
use proptest::prelude::*;

const DEVICES: &str = r#"
  <primitive id="power" class="stonith" type="fence_ipmilan"/>
  <group id="g"><primitive id="mark" class="stonith" type="fence_mark">
    <instance_attributes id="mark-ia"><nvpair id="a" name="pcmk_off_timeout" value="40s"/></instance_attributes>
    <operations><op id="o" name="monitor" interval="60s"><instance_attributes id="oi"><nvpair id="b" name="pcmk_off_timeout" value="1"/></instance_attributes></op></operations>
  </primitive></group>
  <template id="tmpl" class="stonith" type="fence_mark">
    <instance_attributes id="t-ia"><nvpair id="c" name="pcmk_off_timeout" value="25s"/></instance_attributes></template>
  <primitive id="mark2" template="tmpl"/>
  <primitive id="other" class="ocf" provider="x" type="fence_mark"/>"#;

fn cib(levels: &str) -> Cib {
    with(DEVICES, levels, "")
}

fn with(resources: &str, levels: &str, status: &str) -> Cib {
    let xml = format!(
        r#"<?xml version="1.0"?><cib validate-with="pacemaker-3.9"><configuration>
        <crm_config><cluster_property_set id="p"><nvpair id="q" name="stonith-timeout" value="70s"/></cluster_property_set></crm_config>
        <nodes><node id="1" uname="ctl1"/><node id="2" uname="ctl2" type="member"/>
          <node id="compute1" uname="compute1" type="remote"><instance_attributes id="n"><nvpair id="r" name="rack" value="A&amp;B"/></instance_attributes></node></nodes>
        <resources>{resources}</resources><constraints/><fencing-topology>{levels}</fencing-topology></configuration>
        <status>{status}</status></cib>"#
    );
    Cib::parse(&xml).unwrap()
}

fn host(name: &str) -> HostName {
    HostName::parse(name).unwrap()
}

fn faults(levels: &str, name: &str) -> Vec<Option<LevelFault>> {
    cib(levels).mark_levels_of(&host(name)).into_iter().map(|level| level.fault).collect()
}

fn level(attributes: &str) -> String {
    format!("<fencing-level id=\"l\" {attributes}/>")
}

#[test]
fn full_nodes_are_distinguished_from_remote_ones() {
    let cib = cib("");
    assert_eq!(cib.cluster_nodes(), [host("ctl1"), host("ctl2")]);
    assert!(cib.is_cluster_node(&host("CTL1")) && !cib.is_cluster_node(&host("compute1")));
}

/// As `crm_attribute --lifetime forever`, `pcs node attribute` and `pcs node utilization` leave it; an attribute until
/// the next start is not permanent.
#[test]
fn an_attribute_of_a_node_is_one_that_lasts() {
    let nodes = r#"
      <node id="1" uname="ctl1"><instance_attributes id="nodes-1"><nvpair id="nodes-1-standby" name="standby" value="off"/>
        <nvpair id="nodes-1-zone" name="zone" value="a"/></instance_attributes></node>
      <node id="2" uname="ctl2" type="member"/>
      <node id="compute1" type="remote" uname="compute1">
        <instance_attributes id="nodes-compute1"><nvpair id="c1" name="zone" value="b &lt; c"/>
          <nvpair id="c2" name="empty" value=""/></instance_attributes>
        <utilization id="u"><nvpair id="c3" name="memory" value="64"/></utilization></node>"#;
    let status = r#"<node_state remote_node="true" id="compute1" uname="compute1"><transient_attributes id="compute1">
      <instance_attributes id="status-compute1"><nvpair id="t" name="rack" value="7"/></instance_attributes>
      </transient_attributes></node_state>"#;
    let xml = format!(
        r#"<cib validate-with="pacemaker-3.9"><configuration><crm_config/><nodes>{nodes}</nodes><resources/><constraints/>
        </configuration><status>{status}</status></cib>"#
    );
    let cib = Cib::parse(&xml).unwrap();
    let of = |node: &str, name: &str| cib.node_attribute(&host(node), name).map(str::to_owned);
    assert_eq!(of("ctl1", "zone").as_deref(), Some("a"));
    assert_eq!(of("COMPUTE1", "zone").as_deref(), Some("b < c"), "nodes are compared without case");
    assert_eq!(of("compute1", "empty").as_deref(), Some(""));
    for (node, name) in [
        ("ctl2", "zone"),
        ("compute1", "Zone"),
        ("compute1", "memory"),
        ("compute1", "rack"),
        ("compute2", "zone"),
    ] {
        assert_eq!(of(node, name), None, "{node} {name}");
    }
}

#[test]
fn mark_devices_are_found_in_groups_and_through_templates() {
    let devices = cib("").fence_mark_devices();
    let expected = [("mark", 40), ("mark2", 25)];
    let found: Vec<(&str, u64)> =
        devices.iter().map(|d| (d.id.as_str(), d.off_limit.map_or(0, |limit| limit.as_secs()))).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_limit_falls_back_to_stonith_timeout() {
    let plain = r#"<primitive id="mark" class="stonith" type="fence_mark"/>"#;
    assert_eq!(with(plain, "", "").fence_mark_devices()[0].off_limit, Some(Duration::from_secs(70)));
    let own = r#"<primitive id="mark" class="stonith" type="fence_mark"><instance_attributes id="i"><nvpair id="x" name="stonith-timeout" value="20"/></instance_attributes></primitive>"#;
    assert_eq!(with(own, "", "").fence_mark_devices()[0].off_limit, Some(Duration::from_secs(20)));
    let bare = Cib::parse(&format!("<cib><resources>{plain}</resources></cib>")).unwrap();
    assert_eq!(bare.fence_mark_devices()[0].off_limit, None);
}

/// A device has its agent, and `fence_legacy` its plugin, from any place where Pacemaker reads them; a name without a
/// device never succeeds, except `watchdog`, which the fencer makes itself.
#[test]
fn what_a_device_is_is_read_as_the_fencer_reads_it() {
    let resources = format!(
        r#"{DEVICES}<template id="t1" class="stonith" type="fence_dummy"/><primitive id="dummy" template="t1"/>
        <template id="t2" class="stonith" type="fence_legacy"><instance_attributes id="i2"><nvpair id="n2" name="plugin" value="external/ssh"/></instance_attributes></template>
        <primitive id="ssh" template="t2"/>
        <primitive id="ipmi" class="stonith" type="fence_legacy"><instance_attributes id="i3"><nvpair id="n3" name="plugin" value="external/ipmi"/></instance_attributes></primitive>"#
    );
    for (device, is_weak) in [
        ("dummy", true),
        ("ssh", true),
        ("ipmi", false),
        ("other", true),
        ("ghost", true),
        ("watchdog", true),
        ("t1", true),
    ] {
        let level = level(&format!("target=\"compute1\" index=\"1\" devices=\"{device},mark\""));
        let fault = with(&resources, &level, "").mark_levels_of(&host("compute1")).remove(0).fault;
        assert_eq!(matches!(fault, Some(LevelFault::NoPower(_))), is_weak, "{device}");
    }
}

#[test]
fn an_exact_target_hides_patterns_and_attributes() {
    let pattern = level("target-pattern=\"compute[0-9]\" index=\"1\" devices=\"mark\"");
    let attribute =
        level("target-attribute=\"rack\" target-value=\"A&amp;B\" index=\"2\" devices=\"power,mark\"");
    let exact = level("target=\"compute1\" index=\"3\" devices=\"power,mark\"");
    assert_eq!(faults(&(pattern.clone() + &attribute + &exact), "compute1"), [None]);
    assert_eq!(faults(&(pattern.clone() + &attribute), "compute1"), [Some(LevelFault::Alone), None]);
    assert_eq!(faults(&attribute, "compute2"), []);
}

/// Pacemaker's table is searched exactly first, and only then without case.
#[test]
fn another_spelling_hides_nothing() {
    let levels = level("target=\"Compute1\" index=\"1\" devices=\"power,mark\"")
        + &level("target-pattern=\"compute\" index=\"1\" devices=\"mark\"");
    assert_eq!(faults(&levels, "compute1"), [None, Some(LevelFault::Alone)]);
    assert_eq!(faults(&levels, "Compute1"), [None]);
}

/// A pattern with the text of a name is found by that name, as in the fencer's table.
#[test]
fn a_pattern_is_found_by_its_own_text() {
    let levels = level("target-pattern=\"compute1\" index=\"1\" devices=\"mark\"")
        + &level("target-pattern=\"compute.\" index=\"1\" devices=\"power,mark\"");
    assert_eq!(faults(&levels, "compute1"), [Some(LevelFault::Alone)]);
}

#[test]
fn a_pattern_that_cannot_be_judged_may_hold() {
    let levels = cib(&level("target-pattern=\"compute\\d\" index=\"1\" devices=\"power,mark\""))
        .mark_levels_of(&host("compute1"));
    assert!(!levels[0].certain);
    let levels = cib(&level("target-pattern=\"compute.\" index=\"1\" devices=\"power,mark\""))
        .mark_levels_of(&host("compute1"));
    assert!(levels[0].certain);
}

/// The fencer appends entries of one target and number, until a full refresh leaves only the last of them.
#[test]
fn entries_of_one_number_must_be_safe_in_both_readings() {
    let two = |first: &str, second: &str| {
        level(&format!("target=\"compute1\" index=\"1\" devices=\"{first}\""))
            + &level(&format!("target=\"compute1\" index=\"1\" devices=\"{second}\""))
    };
    assert_eq!(faults(&two("power", "power,mark"), "compute1"), [None]);
    assert_eq!(faults(&two("power", "mark"), "compute1"), [Some(LevelFault::Alone)]);
    assert_eq!(faults(&two("power,mark", "power"), "compute1"), [Some(LevelFault::NotLast)]);
}

#[test]
fn levels_that_the_fencer_passes_over_do_not_count() {
    for attributes in [
        "target=\"compute1\" index=\"11\" devices=\"mark\"",
        "target=\"compute1\" index=\"0\" devices=\"mark\"",
        "target=\"compute1\" index=\"x\" devices=\"mark\"",
        "index=\"1\" devices=\"mark\"",
        "target-attribute=\"rack\" index=\"1\" devices=\"mark\"",
    ] {
        assert!(faults(&level(attributes), "compute1").is_empty(), "{attributes}");
    }
}

/// Nor do they hide a pattern's levels from the host. The broken variant has a number that the fencer takes.
#[test]
fn a_level_that_the_fencer_passes_over_hides_no_other() {
    let pattern = level("target-pattern=\"compute.*\" index=\"1\" devices=\"mark\"");
    for (index, seen) in [("0", 1), ("11", 1), ("2", 0)] {
        let own = level(&format!("target=\"compute1\" index=\"{index}\" devices=\"power\""));
        assert_eq!(faults(&format!("{own}{pattern}"), "compute1").len(), seen, "{index}");
    }
}

#[test]
fn the_incarnation_is_the_newest_success() {
    let history =
        |id: &str, ops: &str| format!("<lrm_resource id=\"{id}\" type=\"remote\">{ops}</lrm_resource>");
    let state = |name: &str, inner: &str| {
        format!("<node_state uname=\"{name}\"><lrm><lrm_resources>{inner}</lrm_resources></lrm></node_state>")
    };
    let one = op("start", 0, 3, 100) + &op("monitor", 0, 4, 101) + &op("monitor", 1, 4, 300);
    let two = op("monitor", 7, 2, 400) + &op("start", 193, -1, 500) + &op("stop", 0, 6, 600);
    let both = history("compute1", &one) + &history("compute2", &op("start", 0, 9, 900));
    let cib = with("", "", &(state("ctl1", &both) + &state("ctl2", &history("compute1", &two))));
    assert_eq!(cib.incarnation_of(&host("Compute1")), Some(Incarnation::new("ctl1", 4, 101)));
    assert_eq!(cib.incarnation_of(&host("compute2")), Some(Incarnation::new("ctl1", 9, 900)));
    assert_eq!(cib.incarnation_of(&host("compute3")), None);
}

/// What Pacemaker 2.1.5 has of a cluster node, as seen in a cluster; only unused parts are left out.
fn node_of_2_1_5(attributes: &str, resources: &str) -> Cib {
    let nodes = r#"<node id="1" uname="ctl1"/><node id="3" uname="ctl3"/>"#;
    let lrm = format!(r#"<lrm id="3"><lrm_resources>{resources}</lrm_resources></lrm>"#);
    let xml = format!(
        r#"<cib have-quorum="1" dc-uuid="1"><configuration><crm_config/><nodes>{nodes}</nodes><resources>
          <primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/></resources></configuration><status>
          <node_state id="3" uname="ctl3" {attributes}>{lrm}</node_state></status></cib>"#
    );
    Cib::parse(&xml).unwrap()
}

fn operation(resource: &str, operation: &str, call: i32, rc: u32, at: i64) -> String {
    format!(
        r#"<lrm_resource id="{resource}" type="fence_lab_power" class="stonith"><lrm_rsc_op id="{resource}_last_0"
           operation_key="{resource}_{operation}_0" operation="{operation}" crm_feature_set="3.16.1" exit-reason="" on_node="ctl3"
           call-id="{call}" rc-code="{rc}" op-status="0" interval="0" last-rc-change="{at}" exec-time="5" queue-time="0"/>
           </lrm_resource>"#
    )
}

const LOST: &str =
    r#"in_ccm="false" crmd="offline" crm-debug-origin="do_state_transition" join="down" expected="member""#;
const FENCED: &str =
    r#"in_ccm="false" crmd="offline" crm-debug-origin="send_stonith_update" join="down" expected="down""#;
const JOINED: &str =
    r#"in_ccm="true" crmd="online" crm-debug-origin="do_update_resource" join="member" expected="member""#;

/// Lost, fenced, a member again, and lost again: `off` reads the node's first operation after it had joined. S1-40
#[test]
fn a_cluster_node_has_an_incarnation_of_its_own() {
    let of = |cib: &Cib| cib.incarnation_of(&host("CTL3"));
    let probe = |call, at| operation("power", "monitor", call, 7, at);
    let started = |at| operation("mark", "start", 33, 0, at);
    let first = Incarnation::new("ctl3", 5, 1_795_458_272);
    assert_eq!(of(&node_of_2_1_5(LOST, &(started(1_795_458_274) + &probe(5, 1_795_458_272)))), Some(first));
    assert_eq!(of(&node_of_2_1_5(FENCED, "")), None, "Pacemaker drops all its operations");
    assert_eq!(of(&node_of_2_1_5(JOINED, "")), None, "it has done nothing yet");
    let second = Incarnation::new("ctl3", 21, 1_795_458_287);
    for state in [JOINED, LOST] {
        assert_eq!(of(&node_of_2_1_5(state, &probe(21, 1_795_458_287))), Some(second.clone()));
    }
}

/// The broken variants of a node's own operation: a connection that it has (counted separately), one that has not ended
/// yet, and the DC's note in its place when it does not answer.
#[test]
fn what_a_cluster_node_did_not_do_itself_is_no_incarnation_of_it() {
    let connection = operation("compute1", "monitor", 1, 0, 100).replace(
        r#"type="fence_lab_power" class="stonith""#,
        r#"type="remote" class="ocf" provider="pacemaker""#,
    );
    let pending = operation("power", "start", -1, 193, 50);
    for nothing in [&connection, &pending] {
        assert_eq!(node_of_2_1_5(JOINED, nothing).incarnation_of(&host("ctl3")), None, "{nothing}");
    }
    let own = operation("alerter", "start", 9, 0, 200);
    let cib = node_of_2_1_5(JOINED, &[connection, pending, own].concat());
    assert_eq!(cib.incarnation_of(&host("ctl3")), Some(Incarnation::new("ctl3", 9, 200)));
    assert_eq!(cib.incarnation_of(&host("compute1")), Some(Incarnation::new("ctl3", 1, 100)), "a remote");
}

/// 2.1.5 writes true and false, 2.1.7 and later write since when. A new DC writes its own times, and 1 is not a time.
#[test]
fn a_cluster_node_has_joined_between_two_polls_where_it_was_away_or_its_dc_has_a_later_time() {
    let at = |dc: u8, in_ccm: &str| {
        let xml = format!(
            r#"<cib dc-uuid="{dc}"><configuration><nodes><node id="3" uname="ctl3"/></nodes></configuration><status>
               <node_state id="3" uname="ctl3" in_ccm="{in_ccm}" crmd="{in_ccm}"/></status></cib>"#
        );
        Cib::parse(&xml).unwrap().membership_since(&host("ctl3"))
    };
    let (old, new) = ("1795458286", "1795458296");
    for (before, now, has_joined) in [
        ((1, "false"), (1, "true"), true),
        ((1, "true"), (1, "true"), false),
        ((1, "true"), (1, "false"), false),
        ((1, "0"), (1, new), true),
        ((1, "0"), (2, new), true),
        ((1, old), (1, new), true),
        ((1, new), (1, old), false),
        ((1, old), (2, new), false),
        ((1, old), (1, "1"), false),
        ((1, "1"), (1, new), true),
        ((1, "true"), (1, new), false),
        ((1, old), (1, "0"), false),
    ] {
        let [before, now] = [before, now].map(|(dc, in_ccm)| at(dc, in_ccm).unwrap());
        assert_eq!(now.has_joined_since(&before), has_joined, "{before:?} {now:?}");
    }
    assert_eq!(at(1, new).unwrap().joined_at().unwrap().seconds(), 1_795_458_296);
    assert!(at(1, "1").unwrap().joined_at().is_none() && at(1, "true").unwrap().joined_at().is_none());
    assert!(at(1, "").is_none() && at(1, "perhaps").is_none());
}

const REMOTES: &str = r#"
  <template id="compute" class="ocf" provider="pacemaker" type="remote">
    <meta_attributes id="t-m"><nvpair id="t-1" name="is-managed" value="true"/></meta_attributes></template>
  <primitive id="Compute1" class="ocf" provider="pacemaker" type="remote"/>
  <primitive id="compute2" template="compute"/>
  <group id="g"><primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain">
    <meta_attributes id="v-m"><nvpair id="v-1" name="remote-node" value="guest1"/></meta_attributes></primitive></group>
  <primitive id="other" class="ocf" provider="heartbeat" type="remote"/>"#;

#[test]
fn remote_and_guest_nodes_are_distinguished() {
    let cib = with(REMOTES, "", "");
    assert_eq!(cib.remote_nodes(), [host("compute1"), host("compute2")]);
    assert_eq!(cib.guest_nodes(), [host("guest1")]);
    assert!(cib.is_guest_node(&host("Guest1")) && !cib.is_remote_node(&host("guest1")));
}

/// A resource that an operator has stopped, taken over, or set aside is not missed.
#[test]
fn a_host_is_expected_unless_somebody_set_it_aside() {
    let meta = |name: &str, value: &str| {
        format!(r#"<meta_attributes id="m"><nvpair id="x" name="{name}" value="{value}"/></meta_attributes>"#)
    };
    let primitive = |inner: &str| {
        format!(
            r#"<primitive id="compute1" class="ocf" provider="pacemaker" type="remote">{inner}</primitive>"#
        )
    };
    let expected = |resources: &str, status: &str| with(resources, "", status).is_expected(&host("COMPUTE1"));
    let plain = primitive("");
    assert!(expected(&plain, "") && !expected("", ""));
    for (name, value, is_expected) in [
        ("target-role", "Started", true),
        ("target-role", "stopped", false),
        ("target-role", "Stopped", false),
        ("is-managed", "true", true),
        ("is-managed", "off", false),
        ("maintenance", "true", false),
        ("maintenance", "false", true),
    ] {
        assert_eq!(expected(&primitive(&meta(name, value)), ""), is_expected, "{name}={value}");
        let template = format!(
            r#"<template id="t" class="ocf" provider="pacemaker" type="remote">{}</template><primitive id="compute1" template="t"/>"#,
            meta(name, value)
        );
        assert_eq!(expected(&template, ""), is_expected, "template: {name}={value}");
        let of_an_operation = format!(r#"<operations><op id="o">{}</op></operations>"#, meta(name, value));
        assert!(expected(&primitive(&of_an_operation), ""), "{name}={value}");
    }
    let state = |name: &str, value: &str| {
        format!(
            r#"<node_state id="compute1" uname="compute1"><transient_attributes id="compute1"><instance_attributes id="s"><nvpair id="y" name="{name}" value="{value}"/></instance_attributes></transient_attributes></node_state>"#
        )
    };
    for (name, value, is_expected) in [
        ("standby", "on", false),
        ("standby", "true", false),
        ("standby", "off", true),
        ("maintenance", "true", false),
        ("rack", "true", true),
    ] {
        assert_eq!(expected(&plain, &state(name, value)), is_expected, "{name}={value}");
    }
}

#[test]
fn maintenance_and_standby_of_the_configuration_count() {
    let expected = |property: &str, defaults: &str, node: &str| {
        let pair = |(name, value): (&str, &str)| format!(r#"<nvpair id="x" name="{name}" value="{value}"/>"#);
        let pairs = |text: &str| text.split_once('=').map(pair).unwrap_or_default();
        let xml = format!(
            r#"<cib><configuration><crm_config><cluster_property_set id="p">{}</cluster_property_set></crm_config>
            <nodes><node id="compute1" uname="Compute1" type="remote"><instance_attributes id="i">{}</instance_attributes></node></nodes>
            <resources><primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/></resources>
            <rsc_defaults><meta_attributes id="d">{}</meta_attributes></rsc_defaults></configuration></cib>"#,
            pairs(property),
            pairs(node),
            pairs(defaults)
        );
        Cib::parse(&xml).unwrap().is_expected(&host("compute1"))
    };
    assert!(expected("", "", ""));
    assert!(expected("maintenance-mode=false", "is-managed=true", "standby=off"));
    assert!(!expected("maintenance-mode=TRUE", "", ""));
    assert!(!expected("", "is-managed=false", ""));
    assert!(!expected("", "", "standby=on") && !expected("", "", "maintenance=true"));
}

/// As 2.1.5 writes it and, with times in place of words, later releases.
#[test]
fn membership_and_fencing_are_read_from_the_status() {
    for (attributes, member, fenced, before) in [
        (r#"remote_node="true" in_ccm="true" node_fenced="0""#, Some(true), None, Some(false)),
        (r#"remote_node="true" in_ccm="false" node_fenced="0""#, Some(false), None, Some(false)),
        (r#"remote_node="true" in_ccm="0" node_fenced="1795191""#, Some(false), Some(1_795_191), Some(true)),
        (r#"in_ccm="1795191514""#, Some(true), None, None),
        (r#"in_ccm="1""#, Some(true), None, None),
        (r#"in_ccm="0""#, Some(false), None, None),
        (r#"in_ccm="perhaps" node_fenced="-5""#, None, None, None),
        (r#"node_fenced="soon""#, None, None, None),
        (r#"node_fenced="""#, None, None, None),
    ] {
        for name in [r#"uname="Compute1" id="1""#, r#"id="compute1""#] {
            let cib = with("", "", &format!("<node_state {name} {attributes}/>"));
            assert_eq!(cib.membership(&host("compute1")), member, "{attributes}");
            assert_eq!(cib.node_fenced(&host("COMPUTE1")), fenced, "{attributes}");
            assert_eq!(cib.fenced_before(&host("COMPUTE1")), before, "{attributes}");
            let other = host("compute2");
            assert_eq!((cib.membership(&other), cib.fenced_before(&other)), (None, None));
            let all: Vec<_> = fenced.map(|second| (host("compute1"), second)).into_iter().collect();
            assert_eq!(cib.fenced_nodes(), all);
        }
    }
}

/// A cluster with two controllers and a remote node, by the release of its DC.
fn of_release(release: &str, [remote, ctl2]: [&str; 2], done: [&str; 2]) -> Cib {
    let state = |id: u8, state: &str, done: &str| {
        format!(
            r#"<node_state id="{id}" uname="ctl{id}" {state}><lrm id="{id}"><lrm_resources>
               <lrm_resource id="compute1" class="ocf" provider="pacemaker" type="remote">{done}</lrm_resource></lrm_resources></lrm></node_state>"#
        )
    };
    let [one, two] = done;
    let xml = format!(
        r#"<cib have-quorum="1" dc-uuid="1"><configuration><crm_config><cluster_property_set id="b"><nvpair id="v" name="dc-version" value="{release}"/>
           </cluster_property_set></crm_config><nodes><node id="1" uname="ctl1"/><node id="2" uname="ctl2"/></nodes><resources>
           <primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/></resources></configuration><status>{}{}
           <node_state remote_node="true" id="compute1" uname="compute1" {remote}/></status></cib>"#,
        state(1, THERE, one),
        state(2, ctl2, two),
    );
    Cib::parse(&xml).unwrap()
}

/// With a call id below 0 it is in flight.
fn op(kind: &str, rc: u32, call: i32, at: i64) -> String {
    let status = if call < 0 { -1 } else { 0 };
    format!(
        r#"<lrm_rsc_op operation="{kind}" call-id="{call}" op-status="{status}" rc-code="{rc}" last-rc-change="{at}"/>"#
    )
}

const THERE: &str = r#"in_ccm="1795191514" crmd="1795191514""#;

/// The broken variant takes the 0 literally: then no living host is a member, each is reported as lost, and is notified
/// as failed if somebody confirms it by hand.
#[test]
fn of_a_remote_node_in_a_cluster_of_3_0_the_connection_decides() {
    let held = op("start", 0, 5, 100) + &op("monitor", 0, 6, 101);
    let probe = op("monitor", 7, 2, 50);
    let failed = held.clone() + &op("monitor", 1, 6, 300);
    let stopped = op("monitor", 0, 6, 101) + &op("monitor", 1, 6, 300) + &op("stop", 0, 7, 302);
    let starting = op("monitor", 0, 6, 101) + &op("start", 193, -1, 310);
    let again = |rc, call| stopped.clone() + &op("start", rc, call, 310);
    let and = |kind, rc, call, at| held.clone() + &op(kind, rc, call, at);
    let (held, failed, stopped, probe, none) = (&*held, &*failed, &*stopped, &*probe, "");
    let (left, dead) = (r#"in_ccm="0" crmd="0""#, r#"in_ccm="1" crmd="0""#);
    let (alive, fenced) = (r#"in_ccm="0" node_fenced="0""#, r#"in_ccm="0" node_fenced="1795191999""#);
    let stale = r#"in_ccm="1795191514" node_fenced="0""#;
    for (remote, ctl2, ctl1_did, ctl2_did, member, why) in [
        (alive, THERE, held, probe, Some(true), "connected"),
        (stale, THERE, held, probe, Some(true), "connected a moment ago"),
        (alive, THERE, probe, &op("migrate_from", 0, 9, 90), Some(true), "handed over"),
        (alive, THERE, &and("migrate_to", 0, 7, 90), probe, None, "being handed over"),
        (alive, THERE, &again(0, 8), probe, Some(true), "connected again"),
        (alive, THERE, failed, probe, Some(false), "lost"),
        (stale, THERE, failed, probe, Some(false), "lost, and a new DC has written an old time"),
        (fenced, THERE, failed, probe, Some(false), "lost and fenced"),
        (fenced, THERE, held, probe, None, "confirmed by hand, or just fenced"),
        (fenced, THERE, stopped, probe, Some(false), "fenced, and no controller tries"),
        (alive, THERE, &again(1, 8), probe, Some(false), "cannot be reached"),
        (alive, THERE, &starting, probe, Some(false), "tried again"),
        (alive, THERE, &and("monitor", 193, -1, 310), probe, Some(true), "asked just now"),
        (alive, THERE, none, probe, None, "cleaned up on the controller that holds it"),
        (alive, THERE, none, none, None, "cleaned up everywhere"),
        (alive, THERE, &op("stop", 1, 7, 302), probe, None, "a stop that failed"),
        (alive, left, probe, held, None, "its controller has just died"),
        (alive, dead, probe, held, None, "its controller's daemon has died"),
        (alive, left, stopped, held, None, "moved, then its controller died"),
        (alive, left, probe, none, None, "its controller was fenced"),
        (alive, left, &op("start", 1, 9, 400), failed, Some(false), "lost by two controllers"),
    ] {
        let cib = of_release("3.0.0-2-a1b2c3d4e5", [remote, ctl2], [ctl1_did, ctl2_did]);
        let node = host("Compute1");
        assert_eq!(cib.membership(&node), member, "{why}");
        assert_eq!(cib.is_membership_unclear(&node), member.is_none(), "{why}");
        assert_eq!(cib.members().contains(&node), member == Some(true), "{why}");
    }
}

/// A feature set is compared part by part: 3.9 is older than 3.20.
#[test]
fn a_release_that_was_never_run_is_known_by_its_feature_set() {
    let of = |feature_set: &str| {
        let xml = format!(
            r#"<cib crm_feature_set="{feature_set}"><configuration><crm_config><cluster_property_set id="b"><nvpair id="v" name="dc-version" value="3.1.0-2-a1b2"/>
               </cluster_property_set></crm_config></configuration></cib>"#
        );
        Cib::parse(&xml).unwrap().untried_release().map(str::to_owned)
    };
    for tried in ["3.16.1", "3.9.0", "3.20.5", "", "soon"] {
        assert_eq!(of(tried), None, "{tried}");
    }
    for newer in ["3.20.6", "3.21.0", "4.0"] {
        assert_eq!(of(newer).as_deref(), Some("3.1.0"), "{newer}");
    }
}

/// The cluster's limit has two names since 3.0.2.
#[test]
fn the_limit_of_a_fencing_is_read_by_both_names() {
    for name in releases::FENCING_TIMEOUT {
        let xml = format!(
            r#"<cib><configuration><crm_config><cluster_property_set id="b"><nvpair id="v" name="{name}" value="17s"/></cluster_property_set></crm_config>
               <resources><primitive id="mark" class="stonith" type="fence_mark"/></resources></configuration></cib>"#
        );
        let [device] = &Cib::parse(&xml).unwrap().fence_mark_devices()[..] else { panic!("no device") };
        assert_eq!(device.off_limit, Some(Duration::from_secs(17)), "{name}");
    }
}

/// Seen on 2.1.5: a controller that joined wrote `false`, and it stayed so, although another one was connected to the
/// host. The broken variant trusts it: then a living host that is confirmed by hand is notified as failed.
#[test]
fn a_host_that_a_controller_is_connected_to_is_not_lost() {
    let held = op("start", 0, 5, 100) + &op("monitor", 0, 6, 101);
    let stopped = op("monitor", 1, 6, 300) + &op("stop", 0, 7, 302);
    let left = r#"in_ccm="false" crmd="offline""#;
    for (ctl2, did, member, why) in [
        (THERE, &held, None, "connected"),
        (THERE, &stopped, Some(false), "lost"),
        (left, &held, Some(false), "its controller has died too"),
    ] {
        let cib = of_release("2.1.5-a3f44794f94", [r#"in_ccm="false" node_fenced="0""#, ctl2], ["", did]);
        assert_eq!(cib.membership(&host("compute1")), member, "{why}");
        assert!(!cib.members().contains(&host("compute1")), "{why}");
    }
}

/// Earlier releases write a word, or a time and 0: these are trusted. So is what any release writes of a cluster node.
#[test]
fn what_else_is_written_of_a_member_is_believed() {
    let lost = r#"in_ccm="0" crmd="0""#;
    for (release, written, member) in [
        ("2.1.5-a3f44794f94", "false", Some(false)),
        ("2.1.5-a3f44794f94", "true", Some(true)),
        ("2.1.10-5693eaeee", "0", Some(false)),
        ("2.1.10-5693eaeee", "1795191514", Some(true)),
        ("", "0", Some(false)),
    ] {
        let cib = of_release(release, [&format!(r#"in_ccm="{written}""#), lost], ["", ""]);
        assert_eq!(cib.membership(&host("compute1")), member, "{release}");
    }
    assert_eq!(of_release("3.0.3", [lost, lost], ["", ""]).membership(&host("ctl2")), Some(false));
    assert_eq!(of_release("3.0.3", ["", lost], ["", ""]).membership(&host("compute1")), None, "it is away");
}

#[test]
fn quorum_is_what_the_document_says() {
    for (attribute, quorum) in [
        ("", None),
        ("have-quorum='1'", Some(true)),
        ("have-quorum='0'", Some(false)),
        ("have-quorum='true'", Some(true)),
        ("have-quorum='7'", None),
    ] {
        assert_eq!(Cib::parse(&format!("<cib {attribute}/>")).unwrap().quorum(), quorum, "{attribute}");
    }
}

#[test]
fn the_agent_runs_where_it_was_last_seen_alive() {
    const AGENT: &str = "ocf:openstack:nova-host-alerter";
    let state = |name: &str, member: bool, ops: &str| {
        format!(
            "<node_state uname=\"{name}\" in_ccm=\"{member}\"><lrm><lrm_resources><lrm_resource id=\"x\" class=\"ocf\" provider=\"openstack\" type=\"nova-host-alerter\">{ops}</lrm_resource><lrm_resource id=\"y\" class=\"ocf\" provider=\"heartbeat\" type=\"nova-host-alerter\">{}</lrm_resource></lrm_resources></lrm></node_state>",
            op("start", 0, 90, 9_000)
        )
    };
    let on = |status: &str| with("", "", status).active_on(AGENT);
    let runs = op("start", 0, 5, 100) + &op("monitor", 0, 6, 101);
    for (ops, active) in [
        (runs.clone(), true),
        (op("monitor", 7, 2, 50), false),
        (op("monitor", 0, 2, 50), true),
        (op("monitor", 0, 6, 101) + &op("stop", 0, 7, 200), false),
        (op("stop", 0, 4, 99) + &runs, true),
        (runs.clone() + &op("monitor", 1, 6, 300), false),
        (op("start", 1, 5, 100), false),
        (runs.clone() + &op("stop", 193, -1, 400), true),
        (String::new(), false),
    ] {
        assert_eq!(on(&state("ctl1", true, &ops)).is_some(), active, "{ops}");
    }
    let later = op("start", 0, 1, 500);
    let two = |member| state("ctl1", true, &runs) + &state("ctl2", member, &later);
    assert_eq!((on(&two(true)), on(&two(false))), (Some("ctl2".to_owned()), Some("ctl1".to_owned())));
}

#[test]
fn what_is_no_whole_cib_is_refused() {
    for (text, kind) in [
        ("", "incomplete"),
        ("plain text", "incomplete"),
        ("<cib><configuration>", "incomplete"),
        ("<html></html>", "incomplete"),
        ("<cib/><cib>", "incomplete"),
        ("<!DOCTYPE cib SYSTEM \"file:///etc/passwd\"><cib/>", "incomplete"),
        ("<cib></configuration></cib>", "syntax"),
        ("<cib><node id='1' id='2'/></cib>", "unused"),
        ("<cib><nodes><node uname='a' uname='b'/></nodes></cib>", "syntax"),
        ("<cib><nodes><node uname='&evil;'/></nodes></cib>", "syntax"),
        ("<cib", "syntax"),
    ] {
        let kind_found = Cib::parse(text).err().map_or("unused", |e| e.kind());
        assert_eq!(kind_found, kind, "{text}");
    }
    assert_eq!(Cib::parse("<cib/>"), Ok(Cib::default()));
    assert!(tree("<cib/>").is_ok() && tree("<a/>").is_err() && tree("<cib a=1/>").is_err());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[<>/a-z\"'= &;!\\[\\]?-]{0,200}") {
        let _result = Cib::parse(&text);
    }

    /// A CIB that was cut off anywhere is never taken for a whole one.
    #[test]
    fn a_cut_cib_is_never_taken(part in 0.0f64..1.0) {
        let whole = format!("<cib><configuration><resources>{DEVICES}</resources></configuration></cib>");
        let cut = (whole.len() as f64 * part) as usize;
        prop_assert!(Cib::parse(&whole[..cut]).is_err());
        prop_assert!(Cib::parse(&whole).is_ok());
    }
}
