//! Configurations that Pacemaker reads otherwise than they are written: by references, scores, rules and intervals. Each
//! expectation is what `crm_resource`, `crm_simulate` and `crm_verify` of 2.1.5 do with it.

use super::*;

/// A cluster with all that is needed for one compute host, but no alerter.
const PLAIN: &str = include_str!("cases/reconnect-interval-PT1M.xml");

fn findings(xml: &str) -> Vec<Finding> {
    check(&read(xml, Here::default(), Wanted::default()).unwrap())
}

fn with(pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(PLAIN.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// What is found beyond what is found in [`PLAIN`], and what of that is not found.
fn changes(xml: &str) -> Vec<&'static str> {
    let (plain, found) = (findings(PLAIN), findings(xml));
    let more = found.iter().filter(|one| !plain.contains(one)).map(|one| one.kind.as_str());
    let fewer = plain.iter().filter(|one| !found.contains(one)).map(|_| "one fewer");
    more.chain(fewer).collect()
}

/// The first primitive, the power device, up to its parameters.
const POWER: &str = r#"<primitive id="power" class="stonith" type="fence_ipmilan">"#;
const POWER_LIST: &str = r#"<instance_attributes id="power-ia"><nvpair id="power-pcmk_host_list" name="pcmk_host_list" value="compute1"/></instance_attributes>"#;
const MARK: &str = r#"<primitive id="mark" class="stonith" type="fence_mark">"#;
const MARK_END: &str = r#"</primitive></resources>"#;
const MARK_MONITOR: &str = r#"<operations><op id="mark-mon" name="monitor" interval="60s"/></operations>"#;
const MARK_TIMEOUT: &str = r#"<nvpair id="mark-pcmk_off_timeout" name="pcmk_off_timeout" value="60s"/>"#;
const PROPERTIES: &str = r#"<cluster_property_set id="cib-bootstrap-options">"#;
const CONNECTION_MONITOR: &str =
    r#"<operations><op id="compute1-m" name="monitor" interval="20s" timeout="30s"/></operations>"#;
/// A resource whose parts others refer to.
const OTHER: &str = r#"<resources><primitive id="other" class="ocf" provider="pacemaker" type="Dummy">"#;
const STOPPED: &str =
    r#"<meta_attributes id="off"><nvpair id="off-tr" name="target-role" value="Stopped"/></meta_attributes>"#;
const RESOURCES: &str = "<resources>";

/// A case that was reported: the words that are found, and words that are not.
#[test]
fn what_was_reported_is_read_as_pacemaker_reads_it() {
    let cases = [
        (include_str!("cases/stopped-by-reference.xml"), "stopped", ""),
        (include_str!("cases/stonith-disabled-by-score.xml"), "stonith-enabled", ""),
        (include_str!("cases/maintenance-under-a-rule-of-2020.xml"), "not-judged", "maintenance"),
        (PLAIN, "", "reconnect-interval"),
    ];
    for (xml, found, not) in cases {
        let words: Vec<&str> = findings(xml).iter().map(|one| one.kind.as_str()).collect();
        assert!(found.is_empty() || words.contains(&found), "{found}: {words:?}");
        assert!(!words.contains(&not), "{not}: {words:?}");
    }
}

/// The broken variant reads the sets and pairs that stand in place.
#[test]
fn references_are_followed_wherever_pacemaker_follows_them() {
    let other = format!("{OTHER}{STOPPED}</primitive>");
    let with_other = |pairs: &[(&str, &str)]| with(&[&[(RESOURCES, other.as_str())], pairs].concat());
    let by_set = format!(r#"{POWER}<meta_attributes id-ref="off"/>"#);
    let by_pair = format!(r#"{POWER}<meta_attributes id="pm"><nvpair id-ref="off-tr"/></meta_attributes>"#);
    let to_nothing = format!(r#"{POWER}<meta_attributes id-ref="gone"/>"#);
    let renamed =
        format!(r#"{POWER}<meta_attributes id="pm"><nvpair id-ref="off-tr" name="x"/></meta_attributes>"#);
    let around = |open: &str, close: &str| {
        let (power, end) = (format!("{open}{POWER}"), format!("</primitive>{close}{MARK}"));
        with_other(&[(POWER, &power), (&format!("</primitive>{MARK}"), &end)])
    };
    assert_eq!(changes(&with_other(&[(POWER, &by_set)])), ["stopped"]);
    assert_eq!(changes(&with_other(&[(POWER, &by_pair)])), ["stopped"]);
    assert_eq!(changes(&with_other(&[(POWER, &to_nothing)])), [""; 0]);
    assert_eq!(changes(&with_other(&[(POWER, &renamed)])), [""; 0]);
    let group = r#"<group id="g"><meta_attributes id-ref="off"/>"#;
    assert_eq!(changes(&around(group, "</group>")), ["stopped"]);
    let clone = r#"<clone id="c"><meta_attributes id-ref="off"/><group id="g">"#;
    assert_eq!(changes(&around(clone, "</group></clone>")), ["stopped"]);
    let nearer = r#"<clone id="c"><meta_attributes id-ref="off"/><group id="g"><meta_attributes id="gm"><nvpair id="gt" name="target-role" value="Started"/></meta_attributes>"#;
    assert_eq!(changes(&around(nearer, "</group></clone>")), [""; 0], "the group's own value counts");
    let template = r#"<template id="t" class="stonith" type="fence_ipmilan"><meta_attributes id-ref="off"/></template><primitive id="power" template="t">"#;
    assert_eq!(changes(&with_other(&[(POWER, template)])), ["stopped"]);
    let defaults = r#"</constraints><rsc_defaults><meta_attributes id-ref="off"/></rsc_defaults>"#;
    assert_eq!(changes(&with_other(&[("</constraints>", defaults)])), ["stopped", "stopped"], "both devices");
}

#[test]
fn parameters_and_operations_may_be_references_too() {
    let moved = |what: &str| format!("{OTHER}{what}</primitive>");
    for reference in [
        r#"<instance_attributes id-ref="power-ia"/>"#,
        r#"<instance_attributes id="pi"><nvpair id-ref="power-pcmk_host_list"/></instance_attributes>"#,
    ] {
        let xml = with(&[(POWER_LIST, reference), (RESOURCES, &moved(POWER_LIST))]);
        assert_eq!(changes(&xml), [""; 0], "{reference}");
    }
    let group = r#"<group id="g"><instance_attributes id-ref="power-ia"/><primitive id="power" class="stonith" type="fence_ipmilan">"#;
    let end = format!("</primitive></group>{MARK}");
    let xml = with(&[
        (POWER_LIST, ""),
        (POWER, group),
        (&format!("</primitive>{MARK}"), &end),
        (RESOURCES, &moved(POWER_LIST)),
    ]);
    assert_eq!(changes(&xml), [""; 0], "a group's parameters are its members' too");
    let short = r#"<nvpair id="t" name="x" value="20s"/>"#;
    let xml = with(&[
        (MARK_TIMEOUT, r#"<nvpair id-ref="t" name="pcmk_off_timeout"/>"#),
        (RESOURCES, &moved(&format!(r#"<instance_attributes id="i">{short}</instance_attributes>"#))),
    ]);
    assert_eq!(changes(&xml), ["off-timeout"]);
    let operations = r#"<operations id="ops"><op id="m" name="monitor" interval="PT1M"/><op id="s" name="start" interval="0" on-fail="fence"/></operations>"#;
    let refers = [(RESOURCES, &*moved(operations)), (MARK_MONITOR, r#"<operations id-ref="ops"/>"#)];
    assert_eq!(changes(&with(&refers)), [""; 0], "a monitor by reference");
    let refers = [(RESOURCES, &*moved(operations)), (CONNECTION_MONITOR, r#"<operations id-ref="ops"/>"#)];
    assert_eq!(changes(&with(&refers)), ["start-on-fail"]);
}

/// The broken variant reads what follows the number, and not whether it is one.
#[test]
fn intervals_are_pacemakers_own() {
    let reconnect =
        |interval: &str| changes(&with(&[(r#"value="PT1M""#, &format!(r#"value="{interval}""#))]));
    for right in ["60", "60s", "PT5M", "P1DT1H", "P2D", "P1W", "1h", "1min", "90000ms", "1hour", " 60 s"] {
        assert_eq!(reconnect(right), [""; 0], "{right}");
    }
    for wrong in ["0", "0s", "PT0S", "soon", "", "-5", "P1D"] {
        assert_eq!(reconnect(wrong), ["reconnect-interval"], "{wrong}");
    }
    let recheck = |interval: &str| {
        let set =
            format!(r#"{PROPERTIES}<nvpair id="r" name="cluster-recheck-interval" value="{interval}"/>"#);
        changes(&with(&[(PROPERTIES, &set)]))
    };
    assert_eq!([recheck("PT15M"), recheck("soon"), recheck("1h")], [[""; 0]; 3]);
    assert_eq!([recheck("0"), recheck("0min")], [["reconnect-interval"]; 2]);
    let monitor = |op: &str| changes(&with(&[(r#"id="mark-mon" name="monitor" interval="60s""#, op)]));
    for right in
        [r#"interval="PT1M""#, r#"interval="1min""#, r#"interval="60s" role="Started" enabled="true""#]
    {
        assert_eq!(monitor(&format!(r#"id="mm" name="monitor" {right}"#)), [""; 0], "{right}");
    }
    for wrong in [
        r#"interval="0""#,
        r#"interval="PT0S""#,
        r#"interval="often""#,
        r#"interval="9" enabled="false""#,
        r#"interval="9" role="Stopped""#,
    ] {
        assert_eq!(monitor(&format!(r#"id="mm" name="monitor" {wrong}"#)), ["no-monitor"], "{wrong}");
    }
}

#[test]
fn a_template_s_operations_count_where_the_resource_has_none_of_that_name() {
    let template = |ops: &str| {
        let mark = format!(
            r#"<template id="t" class="stonith" type="fence_mark"><operations>{ops}</operations></template><primitive id="mark" template="t">"#
        );
        move |own: &str| changes(&with(&[(MARK, mark.as_str()), (MARK_MONITOR, own)]))
    };
    let good = template(r#"<op id="tm" name="monitor" interval="60s"/>"#);
    let none = r#"<operations><op id="m" name="monitor" interval="0"/></operations>"#;
    assert_eq!((good(""), good(none)), (vec![], vec!["no-monitor"]));
    assert_eq!(good(r#"<operations id-ref="elsewhere"/>"#), ["no-monitor"], "a reference hides all of them");
    let start = r#"<operations><op id="s" name="start" interval="0" timeout="60s"/></operations>"#;
    assert_eq!(good(start), [""; 0]);
}

#[test]
fn the_set_of_the_highest_score_counts() {
    let of = |sets: &[(&str, &str)]| {
        let set = |(at, (score, value)): (usize, &(&str, &str))| {
            format!(
                r#"<cluster_property_set id="s{at}" score="{score}"><nvpair id="n{at}" name="stonith-enabled" value="{value}"/></cluster_property_set>"#
            )
        };
        let sets: String = sets.iter().enumerate().map(set).collect();
        changes(&with(&[("</crm_config>", &format!("{sets}</crm_config>"))]))
    };
    let (on, off) = ("true", "false");
    assert_eq!(of(&[("-INFINITY", on), ("-5", off)]), ["stonith-enabled"]);
    assert_eq!(of(&[("INFINITY", on), ("1000", off)]), [""; 0]);
    assert_eq!(of(&[("2", off), ("10", on)]), [""; 0], "numbers, not texts");
    assert_eq!(of(&[("0", on), ("0", off)]), ["stonith-enabled"], "of the same score the last");
    let template = r#"<template id="t" class="stonith" type="fence_ipmilan"><meta_attributes id="tm" score="1"><nvpair id="tt" name="target-role" value="Stopped"/></meta_attributes></template><primitive id="power" template="t"><meta_attributes id="pm"><nvpair id="pt" name="target-role" value="Started"/></meta_attributes>"#;
    assert_eq!(changes(&with(&[(POWER, template)])), ["stopped"], "a template's sets are sorted too");
    assert_eq!(changes(&with(&[(POWER, &template.replace(r#"score="1""#, ""))])), [""; 0]);
}

/// What depends on a rule is neither found nor missed in silence. The broken variants take every rule to hold, or none.
#[test]
fn what_is_under_a_rule_is_not_judged() {
    let date = r#"<rule id="r" score="0"><rule id="r2" boolean-op="or"><date_expression id="d" operation="gt" start="2020-01-01"/></rule></rule>"#;
    let pair = |name: &str, value: &str| format!(r#"{date}<nvpair id="rn" name="{name}" value="{value}"/>"#);
    let property = |name: &str, value: &str| {
        let set = format!(
            r#"<cluster_property_set id="window" score="9">{}</cluster_property_set></crm_config>"#,
            pair(name, value)
        );
        findings_beyond(&with(&[("</crm_config>", &set)]))
    };
    let what =
        |all: &[Finding]| all.iter().map(|one| (one.kind.as_str(), one.what.clone())).collect::<Vec<_>>();
    let maintenance = what(&property("maintenance-mode", "true"));
    let [("not-judged", said)] = maintenance.as_slice() else { panic!("{maintenance:?}") };
    let expected = "under a rule: not judged. While the rule of window holds, maintenance-mode is true";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(property("stop-all-resources", "true").len(), 1);
    assert_eq!(property("no-quorum-policy", "ignore"), [], "what changes nothing is not named");
    let set = |kind: &str, name: &str, value: &str| {
        format!(r#"<{kind} id="s" score="9">{}</{kind}>"#, pair(name, value))
    };
    let stopped = set("meta_attributes", "target-role", "Stopped");
    let short = set("instance_attributes", "pcmk_off_timeout", "5s");
    let defaults = format!("</constraints><rsc_defaults>{stopped}</rsc_defaults>");
    for (from, to, count) in [
        (POWER, format!("{POWER}{stopped}"), 1),
        (MARK_END, format!("{short}{MARK_END}"), 1),
        ("</constraints>", defaults, 2),
        (
            "<nodes>",
            format!(
                r#"<nodes><node id="compute1" type="remote" uname="compute1">{}</node>"#,
                set("instance_attributes", "maintenance", "true")
            ),
            1,
        ),
    ] {
        let found = findings_beyond(&with(&[(from, &to)]));
        assert!(found.len() == count && found.iter().all(|one| one.kind == Kind::NotJudged), "{found:?}");
    }
    // A finding that may be wrong is none that is sure, and nothing is planned for it.
    let long = set("instance_attributes", "pcmk_off_timeout", "60s");
    let xml = with(&[(MARK_TIMEOUT, ""), (MARK_END, &format!("{long}{MARK_END}"))]);
    let found = findings_beyond(&xml);
    assert!(
        found.len() == 1 && found[0].what.contains("Unless the rule of s holds, pcmk_off_timeout"),
        "{found:?}"
    );
    assert_eq!(found[0].step(), None);
}

fn findings_beyond(xml: &str) -> Vec<Finding> {
    let plain = findings(PLAIN);
    findings(xml).into_iter().filter(|one| !plain.contains(one)).collect()
}

/// Constraints name resources by tags, templates and sets elsewhere, and rules by reference.
#[test]
fn a_constraint_is_for_all_that_it_means() {
    let never = r#"score="-INFINITY""#;
    let of = |constraint: &str, rest: &str| {
        let with_rest = format!("{constraint}</constraints>{rest}");
        changes(&with(&[("</constraints>", &with_rest)]))
    };
    let tag = r#"<tags><tag id="t"><obj_ref id="mark"/><obj_ref id="power"/></tag></tags>"#;
    assert_eq!(of(&format!(r#"<rsc_location id="b" rsc="t" node="ctl2" {never}/>"#), tag), ["banned"]);
    let by_set = |reference: &str| {
        format!(r#"<rsc_location id="b" node="ctl2" {never}><resource_set {reference}</rsc_location>"#)
    };
    let set = r#"id="s"><resource_ref id="t"/></resource_set>"#;
    assert_eq!(of(&by_set(set), tag), ["banned"]);
    let order =
        r#"<rsc_order id="o"><resource_set id="s"><resource_ref id="mark"/></resource_set></rsc_order>"#;
    assert_eq!(of(&(by_set(r#"id-ref="s"/>"#) + order), ""), ["banned"]);
    let rule = |id: &str, more: &str| {
        format!(
            r##"<rule id="{id}" {never}><expression id="{id}e" attribute="#uname" operation="eq" value="ctl2"/>{more}</rule>"##
        )
    };
    let own = format!(r#"<rsc_location id="o" rsc="other">{}</rsc_location>"#, rule("r", ""));
    let refers = r#"<rsc_location id="b" rsc="mark"><rule id-ref="r"/></rsc_location>"#;
    assert_eq!(of(&format!("{own}{refers}"), ""), ["banned"]);
    let date = r#"<date_expression id="d" operation="lt" end="2020-01-01"/>"#;
    let until = |end: &str| {
        of(&format!(r#"<rsc_location id="b" rsc="mark">{}{end}</rsc_location>"#, rule("r", "")), "")
    };
    assert_eq!(until(""), ["banned"]);
    assert_eq!(until(&format!(r#"<lifetime><rule id="l">{date}</rule></lifetime>"#)), ["not-judged"]);
    let ended = format!(r#"<rsc_location id="b" rsc="mark">{}</rsc_location>"#, rule("r", date));
    assert_eq!(of(&ended, ""), ["not-judged"], "as crm_resource --ban --lifetime leaves it");
    let template =
        r#"<template id="t" class="stonith" type="fence_mark"/><primitive id="mark" template="t">"#;
    let constraint = format!(r#"<rsc_location id="b" rsc="t" node="ctl2" {never}/></constraints>"#);
    assert_eq!(changes(&with(&[(MARK, template), ("</constraints>", &constraint)])), ["banned"]);
}

#[test]
fn other_parts_are_resolved_too() {
    let on_fail = |what: &str| {
        let monitor = r#"<op id="compute1-m" name="monitor""#;
        changes(&with(&[(monitor, &format!("{what}{monitor}"))]))
    };
    let meta = r#"<meta_attributes id="om"><nvpair id="of" name="on-fail" value="fence"/></meta_attributes>"#;
    assert_eq!(on_fail(&format!(r#"<op id="s" name="start" interval="0">{meta}</op>"#)), ["start-on-fail"]);
    let own = format!(r#"<op id="s" name="start" interval="0" on-fail="restart">{meta}</op>"#);
    assert_eq!(on_fail(&own), [""; 0]);
    let defaults = format!("</constraints><op_defaults>{meta}</op_defaults>");
    assert_eq!(changes(&with(&[("</constraints>", &defaults)])), ["start-on-fail"]);
    let other = format!(
        r#"{OTHER}<instance_attributes id="mi"><nvpair id="mm" name="maintenance" value="on"/></instance_attributes></primitive>"#
    );
    let nodes = r#"<nodes><node id="compute1" type="remote" uname="compute1"><instance_attributes id-ref="mi"/></node>"#;
    assert_eq!(changes(&with(&[(RESOURCES, &other), ("<nodes>", nodes)])), ["maintenance"]);
    let guest = r#"<primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain"><meta_attributes id="vm-m"><nvpair id-ref="gn"/></meta_attributes></primitive><primitive id="other" class="ocf" provider="pacemaker" type="Dummy"><meta_attributes id="gm"><nvpair id="gn" name="remote-node" value="guest1"/></meta_attributes></primitive>"#;
    let cluster =
        read(&with(&[(RESOURCES, &format!("{RESOURCES}{guest}"))]), Here::default(), Wanted::default());
    assert!(cluster.unwrap().nodes.iter().any(|node| node.name.as_str() == "guest1"));
}

/// What a rule may bring about makes the scheduler's silence worthless, too.
#[test]
fn each_reading_is_one_cluster() {
    let cluster =
        read(include_str!("cases/maintenance-under-a-rule-of-2020.xml"), Here::default(), Wanted::default());
    let cluster = cluster.unwrap();
    let modes: Vec<_> = cluster.possible().map(|one| one.is_on("maintenance-mode")).collect();
    assert_eq!(modes, [None, Some(true)]);
}
