//! Alerts as Pacemaker sends them, and malformed ones.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use pacemaker::evidence::{Action, EvidenceError};
use proptest::prelude::*;

use super::*;

const OPERATION: &str = "e19eab25-6556-4644-89e9-f9bf9b151b87";

/// The environment of a real alert (Pacemaker 2.1.5), with changes.
fn read(changes: &[(&str, &str)]) -> Result<Evidence, AlertError> {
    let changes: Vec<_> = changes.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
    with(&changes)
}

fn with(changes: &[(&str, OsString)]) -> Result<Evidence, AlertError> {
    let real = [
        ("CRM_alert_kind", "fencing"),
        ("CRM_alert_node", "compute1"),
        ("CRM_alert_task", "st_notify_fence"),
        ("CRM_alert_rc", "0"),
        ("CRM_alert_desc", &sentence("reboot", "ctl3", "pacemaker-controld.64@ctl3", "OK")),
        ("CRM_alert_timestamp_epoch", "1795188458"),
        ("CRM_alert_timestamp_usec", "012345"),
        ("CRM_alert_version", "2.1.5"),
    ];
    let mut variables: BTreeMap<&str, OsString> =
        real.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
    variables.extend(changes.iter().cloned());
    Alert::new(&|name| variables.get(name).cloned()).evidence()
}

fn sentence(action: &str, executor: &str, client: &str, status: &str) -> String {
    format!("Operation {action} of compute1 by {executor} for {client}: {status} (ref={OPERATION})")
}

fn described(rc: &str, text: &str) -> Result<Evidence, AlertError> {
    read(&[("CRM_alert_rc", rc), ("CRM_alert_desc", text)])
}

fn kind(result: Result<Evidence, AlertError>) -> &'static str {
    result.map_or_else(|e| e.kind(), |_| "none")
}

#[test]
fn a_real_alert_is_read_whole() {
    let evidence = read(&[]).unwrap();
    assert_eq!((evidence.target.as_str(), evidence.action), ("compute1", Action::Reboot));
    assert_eq!((evidence.outcome, evidence.operation.to_string().as_str()), (Outcome::Success, OPERATION));
    assert_eq!(evidence.at.micros(), 1_795_188_458_012_345);
    let who = [&evidence.executor, &evidence.client, &evidence.origin].map(Label::as_str);
    assert_eq!(who, ["ctl3", "pacemaker-controld.64", "ctl3"]);
}

/// Cluster, operator, manual confirmation, unfencing; an operation without an executor; a failure with a reason.
#[test]
fn every_known_description_is_understood() {
    let table = [
        ("0", "off", "ctl2", "stonith_admin.812@ctl1", "OK"),
        ("0", "off", "a human", "stonith_admin.9@ctl1", "OK"),
        ("0", "on", "ctl1", "stonith_admin.9@ctl1", "OK"),
        ("0", "reboot", "the cluster", "a client@ctl1", "OK (delayed)"),
        ("-61", "reboot", "<no-one>", "pacemaker-controld.64@ctl3", "No data available"),
        ("-61", "reboot", "ctl3", "pacemaker-controld.64@ctl3", "Error"),
        ("1", "off", "ctl3", "pacemaker-controld.64@ctl3", "Error (Agent said (ref=x) : \"no\")"),
        ("-62", "off", "ctl3", "odd@name@ctl3", "Timed Out (Fencing did not complete: in time)"),
    ];
    for (rc, action, executor, client, status) in table {
        let text = sentence(action, executor, client, status);
        let evidence = described(rc, &text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(evidence.action.as_str(), action, "{text}");
        assert_eq!(evidence.outcome.rc().to_string(), rc, "{text}");
        assert_eq!(evidence.executor.as_str(), executor, "{text}");
        assert_eq!(format!("{}@{}", evidence.client, evidence.origin), client, "{text}");
        assert_eq!(evidence.operation.to_string(), OPERATION, "{text}");
    }
}

/// A failed program's output is in the middle of the sentence: it cannot add another id or success.
#[test]
fn a_reason_forges_nothing() {
    let other = "00000000-1111-4222-8333-444444444444";
    let reason = format!("Error (x: OK (ref={other}) of compute2 by)\n\u{1b}[2J");
    let evidence = described("1", &sentence("off", "ctl1", "c@ctl1", &reason)).unwrap();
    assert_eq!((evidence.operation.to_string().as_str(), evidence.outcome.rc()), (OPERATION, 1));
    let long = sentence("off", "ctl1", "c@ctl1", &format!("Error ({})", "x".repeat(100 * 1024)));
    assert_eq!(described("1", &long).unwrap().operation.to_string(), OPERATION);
    let mut bytes = b"Operation off of compute1 by ctl1 for c@ctl1: Error (\xff\xfe) (ref=".to_vec();
    bytes.extend_from_slice(OPERATION.as_bytes());
    bytes.push(b')');
    let odd = [("CRM_alert_desc", OsString::from_vec(bytes)), ("CRM_alert_rc", "1".into())];
    assert_eq!(with(&odd).unwrap().operation.to_string(), OPERATION);
}

#[test]
fn long_and_odd_names_of_who_did_it_are_cut_and_cleaned() {
    let long = "x".repeat(100 * 1024);
    let evidence =
        described("0", &sentence("off", &long, &format!("a\nb\u{7f}@{}", "é".repeat(300)), "OK")).unwrap();
    assert_eq!((evidence.executor.as_str().len(), evidence.client.as_str()), (255, "a?b?"));
    assert_eq!(evidence.origin.as_str(), "é".repeat(127));
}

#[test]
fn what_is_no_such_sentence_is_refused() {
    let good = sentence("off", "ctl1", "c@ctl1", "OK");
    let bad = [
        String::new(),
        "Fencing history may have changed".to_owned(),
        good.replace("compute1", "compute11"),
        good.replace("compute1", "compute2"),
        good.replace("compute1", "comput\u{e9}"),
        good.replace(" off ", " cycle "),
        good.replace(" off ", " OFF "),
        good.replace(OPERATION, "(none)"),
        good.replace(OPERATION, ""),
        good.replace('@', ""),
        good.replace(": OK", ""),
        format!("{good}\n"),
        format!("{good} Operation"),
        format!(" {good}"),
        good.trim_end_matches(')').to_owned(),
        "x".repeat(100 * 1024),
    ];
    for text in bad {
        assert_eq!(kind(described("0", &text)), "description", "{text:.200}");
    }
    assert_eq!(kind(described("0", &good)), "none");
}

/// No false mark: both of Pacemaker's values must say success.
#[test]
fn a_success_that_the_text_denies_is_refused() {
    for status in ["Error", "OKAY", "ok", "Timed Out (OK)"] {
        let text = sentence("off", "ctl1", "c@ctl1", status);
        assert_eq!(kind(described("0", &text)), "contradiction", "{status}");
    }
    let failed = described("-61", &sentence("off", "ctl1", "c@ctl1", "OK")).unwrap();
    assert_eq!(failed.outcome.rc(), -61);
}

#[test]
fn a_missing_or_broken_variable_is_refused_by_its_kind() {
    for node in ["", "../../etc", "a b", "compute1\n", &"x".repeat(100 * 1024)] {
        assert_eq!(kind(read(&[("CRM_alert_node", node)])), "target", "{node:.40}");
    }
    for rc in ["", "zero", "0x0", "0 ", "99999999999999999999"] {
        assert_eq!(kind(read(&[("CRM_alert_rc", rc)])), "result", "{rc}");
    }
    for name in ["CRM_alert_node", "CRM_alert_rc"] {
        assert_ne!(kind(with(&[(name, OsString::from_vec(vec![b'a', 0xff]))])), "none", "{name}");
    }
    let missing = AlertError::Evidence {
        host: HostName::parse("compute1").unwrap(),
        source: EvidenceError::Missing { path: "/x".into() },
    };
    assert_eq!(missing.kind(), "missing");
}

#[test]
fn a_time_that_is_none_is_that_of_the_clock() {
    let before = Moment::now();
    for epoch in ["", "-1", "x", "99999999999999", "18446744073709551615"] {
        let at = read(&[("CRM_alert_timestamp_epoch", epoch)]).unwrap().at;
        assert!(before <= at && at <= Moment::now(), "{epoch}: {at:?}");
    }
    for micros in ["", "x", "1000000"] {
        let at = read(&[("CRM_alert_timestamp_usec", micros)]).unwrap().at;
        assert_eq!(at.micros(), 1_795_188_458_000_000, "{micros}");
    }
}

#[test]
fn the_older_names_are_read_where_the_present_ones_are_missing() {
    let older = |name: &str| name.strip_prefix("CRM_notify_").map(|rest| OsString::from(value_of(rest)));
    let alert = Alert::new(&older);
    assert!(alert.is_fencing());
    assert_eq!(alert.evidence().unwrap().target.as_str(), "compute1");
    assert_eq!(alert.directory(), Some(PathBuf::from("/srv/evidence")));
    assert_eq!(read(&[("CRM_notify_node", "compute2")]).unwrap().target.as_str(), "compute1");
}

fn value_of(name: &str) -> String {
    match name {
        "kind" => "fencing".to_owned(),
        "node" => "compute1".to_owned(),
        "desc" => sentence("off", "ctl1", "c@ctl1", "OK"),
        "recipient" => "/srv/evidence".to_owned(),
        _ => "0".to_owned(),
    }
}

#[test]
fn the_recipient_names_the_directory() {
    let directory = |recipient: Option<&str>| {
        Alert::new(&|name| recipient.filter(|_| name == "CRM_alert_recipient").map(OsString::from))
            .directory()
    };
    assert_eq!(directory(None), Some(PathBuf::from(DIRECTORY)));
    assert_eq!(directory(Some("")), Some(PathBuf::from(DIRECTORY)));
    assert_eq!(directory(Some("/srv/evidence")), Some(PathBuf::from("/srv/evidence")));
    assert_eq!(directory(Some("admin@example.org")), None);
    assert_eq!(directory(Some("../x")), None);
}

/// The environment of a real node alert (Pacemaker 2.1.5), with changes.
fn node_alert(changes: &[(&str, &str)]) -> Option<Result<Join, AlertError>> {
    let real = [
        ("CRM_alert_kind", "node"),
        ("CRM_alert_node", "ctl3"),
        ("CRM_alert_nodeid", "3"),
        ("CRM_alert_desc", "member"),
        ("CRM_alert_timestamp_epoch", "1795458286"),
        ("CRM_alert_timestamp_usec", "141259"),
    ];
    let variables: BTreeMap<&str, &str> = real.into_iter().chain(changes.iter().copied()).collect();
    let variable = |name: &str| variables.get(name).map(OsString::from);
    let alert = Alert::new(&variable);
    alert.is_join().then(|| alert.join())
}

/// A remote node's connection is a better witness, and for a lost node a fencing says more.
#[test]
fn of_the_alerts_about_nodes_those_count_that_say_that_a_cluster_node_has_joined() {
    let join = node_alert(&[]).unwrap().unwrap();
    assert_eq!((join.node.as_str(), join.at.micros()), ("ctl3", 1_795_458_286_141_259));
    for other in [
        ("CRM_alert_desc", "lost"),
        ("CRM_alert_desc", ""),
        ("CRM_alert_desc", "Member"),
        ("CRM_alert_nodeid", "0"),
        ("CRM_alert_kind", "fencing"),
    ] {
        assert!(node_alert(&[other]).is_none(), "{other:?}");
    }
    for node in ["", "../x", "a b"] {
        let refused = node_alert(&[("CRM_alert_node", node)]).unwrap().unwrap_err();
        assert_eq!(refused.kind(), "node", "{node}");
    }
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in ".{0,200}", node in "(compute1|.{0,20})", rc in "(0|-?[0-9]{0,12})") {
        let changes = [("CRM_alert_desc", &*text), ("CRM_alert_node", &*node), ("CRM_alert_rc", &*rc)];
        prop_assert!(read(&changes).is_err());
    }

    #[test]
    fn a_sentence_is_taken_apart_as_it_was_put_together(
        executor in "[a-z0-9-]{1,20}", client in "[a-z0-9_.-]{1,20}", origin in "[a-z0-9-]{1,20}",
        status in "[A-Z][a-z]{0,8}", reason in "\\PC{0,80}",
    ) {
        let text = sentence("off", &executor, &format!("{client}@{origin}"), &format!("{status} ({reason})"));
        let evidence = described("1", &text).unwrap();
        prop_assert_eq!(evidence.operation.to_string(), OPERATION);
        prop_assert_eq!(evidence.executor.as_str(), executor);
        prop_assert_eq!(evidence.client.as_str(), client);
        prop_assert_eq!(evidence.origin.as_str(), origin);
    }
}
