//! Metadata, manual page, help and version.

use std::process::{Command, Stdio};

use crate::common::{AGENT, agent, call, call_with, have, have_files, run};

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

/// Conformance 3: the name is the one by which the agent was called.
#[test]
fn the_name_is_the_invoked_one() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("fence_other");
    std::os::unix::fs::symlink(AGENT, &other).unwrap();
    let output = Command::new(&other).args(["-o", "metadata"]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        GOLDEN.replacen("name=\"fence_mark\"", "name=\"fence_other\"", 1)
    );
}

/// Conformance 2: both documents fit the schema of fence agents and that of pcs.
#[test]
fn both_documents_fit_the_schemas() {
    if !have(&["xmllint"]) || !have_files(&[SCHEMA, PCS_SCHEMA]) {
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

/// Conformance 2: the pipelines that make a schema and a manual page of the documents.
#[test]
fn the_pipelines_of_fence_agents_take_the_documents() {
    if !have(&["xmllint", "xsltproc"]) || !have_files(&[SCHEMA]) {
        return;
    }
    let shell = |script: &str| {
        let mut sh = Command::new("sh");
        sh.args(["-ec", script]).env("AGENT", AGENT);
        run(sh, b"")
    };
    let rng = shell(
        "$AGENT -o metadata | xsltproc /usr/share/cluster/relaxng/fence2rng.xsl - | sed -e 's/ rha:description=/ description=/g' -e 's/ rha:name=/ name=/g' | xmllint --nsclean --noout -",
    );
    assert_eq!((rng.code, rng.stderr.as_str()), (Some(0), ""), "{rng:?}");
    let man = shell("$AGENT -o manpage | xsltproc /usr/share/cluster/relaxng/fence2man.xsl -");
    assert_eq!(man.code, Some(0), "{man:?}");
    assert!(
        man.stdout.contains("\\fBfence_mark\\fP does not fence") && man.stdout.contains(".B -n, --plug=[id]")
    );
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
    // Asked for help, it does nothing else.
    assert_eq!(call_with(["-h", "-o", "off", "-n", "compute1"]), help);
}

/// A document that nobody could take is a failure.
#[test]
fn a_full_output_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = agent();
    command.args(["-o", "metadata"]).stdin(Stdio::null()).stdout(full);
    assert_eq!(command.status().unwrap().code(), Some(1));
}
