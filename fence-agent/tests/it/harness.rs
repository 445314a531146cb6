//! The checks that fence agents run on themselves, on this agent.

use std::process::Command;

use crate::common::{AGENT, Outcome, Store, have, run};

fn shell(script: &str, store: &Store) -> Outcome {
    let mut sh = Command::new("sh");
    sh.args(["-c", script]).env("AGENT", AGENT).env("STORE", store.path()).env_remove("PCMK_service");
    run(sh, b"")
}

/// Conformance 4, `xml-check`: the golden file through the filter that drops defaults of paths and files.
#[test]
fn xml_check() {
    if !have(&["awk", "diff"]) {
        return;
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/metadata.xml");
    let filter = r#"awk 'BEGIN {store=-1} /name=".*_path"/ || /name=".*_file"/ {store=2} {if (store!=0) {print}; store--}'"#;
    let outcome = shell(
        &format!("$AGENT -o metadata | {filter} > \"$STORE.a\"; {filter} {golden} | diff - \"$STORE.a\""),
        &Store::made(),
    );
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "", ""));
}

/// Conformance 29, `delay-check`, with `action=off` and a place added: no action stands for another one here. It measures
/// that ten seconds of delay are ten seconds, and feeds unknown keys and a leading space.
#[test]
fn delay_check() {
    if !have(&["time"]) {
        return;
    }
    let store = Store::new();
    let script = r#"
        A="login=test\npasswd=test\nipaddr=test\nport=compute1\nmanaged=1\ndevices=test\nsession_url=http://test\nemail=test@test.te\nping_targets=localhost\naction=off\nstore=$STORE\ncreate_store=1"
        test $(/usr/bin/time -p sh -c "printf 'delay=10\n $A' | $AGENT" 2>&1 | awk -F'[. ]' -vOFS= '/real/ {print $2,$3}') -ge 1000"#;
    assert_eq!(shell(script, &store).code, Some(0));
    assert_eq!(store.fencings().len(), 1);
}

/// Conformance 28: the scenario `status` in its three ways.
#[test]
fn actions_d_status() {
    let store = Store::new();
    for way in [
        r"printf 'action=status\nport=compute1\n' | $AGENT",
        "$AGENT -o status -n compute1",
        "$AGENT --action status --plug compute1",
    ] {
        assert_eq!(shell(way, &store).code, Some(0), "{way}");
    }
}
