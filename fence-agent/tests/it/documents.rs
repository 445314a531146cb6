//! Metadata, manual page, help and version.

use std::process::{Command, Stdio};

use proptest::prelude::*;

use crate::common::{Store, agent, call, call_with, have_files, run};
use samples::left_out::lacks;

const GOLDEN: &str = include_str!("../metadata.xml");
const SCHEMA: &str = "/usr/share/cluster/relaxng/metadata.rng";
const PCS_SCHEMA: &str = "/usr/share/pcs/data/ocf-1.0.rng";

/// Conformance 1: the same document on every way, nothing beside it, without a host, a journal or a configuration.
#[test]
fn the_metadata_is_the_same_on_every_way() {
    for outcome in [
        call_with(["-o", "metadata"]),
        call_with(["--action=metadata"]),
        call_with(["-ometa-data"]),
        call("action=metadata\n"),
        call("action=meta-data"),
        call("store=/proc/none/marks.db\nhosts=;\naction=METADATA\n"),
    ] {
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
        assert_eq!(outcome.stdout, call("action=metadata").stdout);
    }
}

/// Conformance 4: the metadata is an interface; a change of it is a change of this file.
/// To accept one: `fence_mark -o metadata > fence-agent/tests/metadata.xml`.
#[test]
fn the_metadata_is_the_golden_file() {
    assert_eq!(call_with(["-o", "metadata"]).stdout, GOLDEN);
}

/// Conformance 2: both documents fit the schema of fence agents and that of pcs.
#[test]
fn both_documents_fit_the_schemas() {
    if lacks(&["xmllint"]) || !have_files(&[SCHEMA, PCS_SCHEMA]) {
        return;
    }
    for schema in [SCHEMA, PCS_SCHEMA] {
        for action in ["metadata", "manpage"] {
            let document = call_with(["-o", action]).stdout;
            let valid = lint(schema, &document);
            assert!(valid, "{action} does not fit {schema}");
            // What the schema is for: a document with a fault must not fit.
            assert!(!lint(schema, &document.replacen("required=\"0\"", "required=\"false\"", 1)));
        }
    }
}

fn lint(schema: &str, document: &str) -> bool {
    let mut xmllint = Command::new("xmllint");
    xmllint.args(["--noout", "--relaxng", schema, "-"]);
    run(xmllint, document.as_bytes()).code == Some(0)
}

/// Conformance 18.
#[test]
fn help_and_version_succeed() {
    let help = call_with(["-h"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.starts_with("Usage:\n\tfence_mark [options]\n"));
    assert_eq!(call_with(["--help"]), help);
    let version = call_with(["-V"]);
    assert_eq!((version.code, version.stdout.as_str()), (Some(0), concat!(env!("CARGO_PKG_VERSION"), "\n")));
    assert_eq!(call("help=1\n"), help);
    // Asked for help, it does nothing else; and an answer to `off` would be taken for a mark.
    for asked in ["-h", "-V"] {
        call_with([asked, "-o", "off", "-n", "compute1"]).is_one_line_failure("nothing was done");
    }
}

/// `pcs stonith create mark fence_mark help=1` is accepted: the fencer passes it with every action.
#[test]
fn a_device_with_help_marks_all_the_same_and_its_monitor_names_it() {
    for asked in ["help", "version"] {
        let store = Store::new();
        call(&store.off(&format!("{asked}=1\nnodename=compute1"))).is_silent_success();
        assert_eq!(store.fencings().len(), 1);
        for action in ["monitor", "validate-all"] {
            call(&format!("{}{asked}=1\n", store.input(action)))
                .is_one_line_failure(&format!("{asked} is ignored"));
        }
    }
}

/// One word of a call, as a line of standard input and as an option.
type Word = (&'static str, &'static str);

fn words() -> impl Strategy<Value = Vec<Word>> {
    let action = prop::sample::select(vec![
        "off",
        "OFF",
        "Off",
        "metadata",
        "meta-data",
        "manpage",
        "status",
        "monitor",
        "validate-all",
        "",
        "on",
        "o ff",
    ]);
    let named = (prop::sample::select(vec!["action", "option"]), action);
    let flag = (
        prop::sample::select(vec!["help", "version", "quiet", "verbose"]),
        prop::sample::select(vec!["1", "yes", "0", "x", ""]),
    );
    let place = prop::sample::select(vec![("nodename", "compute1"), ("plug", "compute1"), ("bogus", "1")]);
    prop::collection::vec(prop_oneof![3 => named, 2 => flag, 2 => place], 0..6)
}

/// The action that counts: the last one under its present name, else under the old one. On the command line both are one option.
fn asks_for_off(words: &[Word], by_stdin: bool) -> bool {
    let last =
        |names: &[&str]| words.iter().rev().find(|(key, _)| names.contains(key)).map(|(_, value)| *value);
    let counts =
        if by_stdin { last(&["action"]).or_else(|| last(&["option"])) } else { last(&["action", "option"]) };
    counts.is_some_and(|action| action.eq_ignore_ascii_case("off"))
}

fn as_options(words: &[Word]) -> Vec<String> {
    let option = |(key, value): &Word| match (*key, *value) {
        ("option", value) => format!("--action={value}"),
        ("help" | "version" | "quiet" | "verbose", _) => format!("--{key}"),
        (key, value) => format!("--{key}={value}"),
    };
    words.iter().map(option).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Whatever stands beside it: 0 for `off` says that there is a record, and nothing but `off` makes one. The broken variant prints
    /// the page that `help` asks for before it reads the action.
    #[test]
    fn no_mixture_of_options_is_a_success_without_a_record(words in words(), by_stdin in any::<bool>()) {
        let store = Store::new();
        let outcome = if by_stdin {
            let lines: String = words.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
            call(&format!("{}{lines}", store.place()))
        } else {
            let place = format!("--store={}", store.path().display());
            call_with([place, "--register=none".into(), "--create-store".into()].into_iter().chain(as_options(&words)))
        };
        let wants_off = asks_for_off(&words, by_stdin);
        let is_marked = !store.fencings().is_empty();
        prop_assert_eq!(is_marked, wants_off && outcome.code == Some(0), "{:?} {:?}", words, outcome);
    }
}

/// A document that nobody could take is a failure.
#[test]
fn a_full_output_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = agent();
    command.args(["-o", "metadata"]).stdin(Stdio::null()).stdout(full);
    assert_eq!(command.status().unwrap().code(), Some(1));
}
