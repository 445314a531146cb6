//! The CIB as live clusters show it, and as a hostile or broken file might.

use super::*;
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
fn full_nodes_are_told_from_remote_ones() {
    assert_eq!(cib("").cluster_nodes(), [host("ctl1"), host("ctl2")]);
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

/// A mark device that is asked alone, or first, would report a host that nothing has fenced.
#[test]
fn the_mark_must_be_the_last_of_at_least_two() {
    for (devices, fault) in [
        ("power,mark", None),
        ("power,other,mark2", None),
        ("mark", Some(LevelFault::Alone)),
        ("mark2", Some(LevelFault::Alone)),
        ("mark,power", Some(LevelFault::NotLast)),
        ("mark,mark2", Some(LevelFault::NotLast)),
        ("power,mark,mark", Some(LevelFault::NotLast)),
        ("power,mark,power", Some(LevelFault::NotLast)),
    ] {
        let level = level(&format!("target=\"compute1\" index=\"1\" devices=\"{devices}\""));
        assert_eq!(faults(&level, "compute1"), [fault], "{devices}");
    }
}

#[test]
fn levels_without_a_mark_do_not_count() {
    let levels = level("target=\"compute1\" index=\"1\" devices=\"power,mark\"")
        + &level("target=\"compute1\" index=\"2\" devices=\"power\"");
    assert_eq!(faults(&levels, "compute1"), [None]);
    assert!(faults(&level("target=\"compute1\" index=\"1\" devices=\"power,other\""), "compute1").is_empty());
}

#[test]
fn only_the_hosts_own_levels_count() {
    let levels = level("target=\"compute1\" index=\"1\" devices=\"power,mark\"")
        + &level("target=\"compute2\" index=\"1\" devices=\"mark\"");
    assert_eq!(faults(&levels, "compute1"), [None]);
    assert_eq!(faults(&levels, "compute2"), [Some(LevelFault::Alone)]);
    assert!(faults(&levels, "compute3").is_empty());
    assert_eq!(cib(&levels).mark_levels().len(), 2);
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

/// Pacemaker's table is searched letter by letter first, and only then without case.
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

/// Entries of one target and number are appended by the fencer, until a full refresh leaves only the last of them.
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

#[test]
fn the_incarnation_is_the_newest_success() {
    let history =
        |id: &str, ops: &str| format!("<lrm_resource id=\"{id}\" type=\"remote\">{ops}</lrm_resource>");
    let op = |operation: &str, rc: u32, call: i32, at: u64| {
        format!(
            "<lrm_rsc_op id=\"x{call}\" operation=\"{operation}\" call-id=\"{call}\" rc-code=\"{rc}\" last-rc-change=\"{at}\"/>"
        )
    };
    let state = |name: &str, inner: &str| {
        format!("<node_state uname=\"{name}\"><lrm><lrm_resources>{inner}</lrm_resources></lrm></node_state>")
    };
    let status = state(
        "ctl1",
        &(history(
            "compute1",
            &(op("start", 0, 3, 100) + &op("monitor", 0, 4, 101) + &op("monitor", 1, 4, 300)),
        ) + &history("compute2", &op("start", 0, 9, 900))),
    ) + &state(
        "ctl2",
        &history(
            "compute1",
            &(op("monitor", 7, 2, 400) + &op("start", 193, -1, 500) + &op("stop", 0, 6, 600)),
        ),
    );
    let cib = with("", "", &status);
    assert_eq!(cib.incarnation_of(&host("Compute1")), Some(Incarnation::new("ctl1", 4, 101)));
    assert_eq!(cib.incarnation_of(&host("compute2")), Some(Incarnation::new("ctl1", 9, 900)));
    assert_eq!(cib.incarnation_of(&host("compute3")), None);
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
