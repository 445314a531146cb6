//! How the driver shows who it is, and what it says where that is not enough.

use std::fs;

use anyhow::{Context as _, ensure};
use drivers::Outcome;
use tests::kubernetes::{Kubernetes, Login, METAL3, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, Sender, ago, expect, mark, table};
use crate::remediation;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("each_way_to_log_in_is_enough", each_way_to_log_in_is_enough),
    ("a_new_token_in_the_file_is_read", a_new_token_in_the_file_is_read),
    ("a_context_is_chosen", a_context_is_chosen),
    ("what_others_can_read_is_refused", what_others_can_read_is_refused),
    ("a_missing_right_is_said", a_missing_right_is_said),
    ("no_mode_has_the_rights_of_another", no_mode_has_the_rights_of_another),
];

const KEYS: &str = r#"mode = "taint""#;

fn fresh(lab: &mut Kubernetes) -> anyhow::Result<()> {
    lab.clean()?;
    lab.node(HOST, ago(60))
}

fn each_way_to_log_in_is_enough(cluster: &mut Cluster) -> anyhow::Result<()> {
    for login in [Login::Token, Login::TokenFile, Login::Certificate, Login::EmbeddedCertificate] {
        fresh(&mut cluster.lab)?;
        let sender = Sender::new(&cluster.lab, &table(&cluster.lab.kubeconfig_by(Who::Taint, login)?, KEYS))?;
        expect(&sender.down(&mark()), "acknowledged").with_context(|| format!("{login:?}"))?;
    }
    Ok(())
}

/// The server knows the former token no more: 401, and the file is read again. Until there is a new one, the route is refused,
/// and no mark is lost.
fn a_new_token_in_the_file_is_read(cluster: &mut Cluster) -> anyhow::Result<()> {
    fresh(&mut cluster.lab)?;
    let file = cluster.lab.kubeconfig_by(Who::Taint, Login::TokenFile)?;
    let sender = Sender::new(&cluster.lab, &table(&file, KEYS))?;
    expect(&sender.down(&mark()), "acknowledged")?;
    cluster.lab.rotate()?;
    let stale = sender.down(&mark());
    expect(&stale, "refused credentials")?;
    ensure!(!format!("{stale:?}").contains("s3kr1t"), "a token is shown: {stale:?}");
    fs::write(file.with_file_name("token"), cluster.lab.token(Who::Taint))?;
    expect(&sender.down(&mark()), "acknowledged")
}

/// The current one unless another is named; a name that is not there is an error of the configuration.
fn a_context_is_chosen(cluster: &mut Cluster) -> anyhow::Result<()> {
    fresh(&mut cluster.lab)?;
    let there = cluster.sender(Who::Taint, &format!("{KEYS}\ncontext = \"lab\""))?;
    expect(&there.down(&mark()), "acknowledged")?;
    let made = cluster.sender(Who::Taint, &format!("{KEYS}\ncontext = \"nosuch\""));
    let why = made.err().context("a context that is not there is taken")?;
    ensure!(format!("{why:#}").contains("nosuch"), "{why:#}");
    // It skips the check of certificates, and nobody listens there.
    let elsewhere = cluster.sender(Who::Taint, &format!("{KEYS}\ncontext = \"elsewhere\""))?;
    ensure!(elsewhere.driver.warnings()[0].contains("insecure"), "{:?}", elsewhere.driver.warnings());
    expect(&elsewhere.down(&mark()), "unreachable")
}

fn what_others_can_read_is_refused(cluster: &mut Cluster) -> anyhow::Result<()> {
    let file = cluster.lab.kubeconfig(Who::Taint)?;
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    let why = Sender::new(&cluster.lab, &table(&file, KEYS)).err().context("it is taken")?;
    ensure!(format!("{why:#}").contains("chmod 600"), "{why:#}");
    Ok(())
}

/// It names where the rights are that are missing.
fn a_missing_right_is_said(cluster: &mut Cluster) -> anyhow::Result<()> {
    for keys in [KEYS, remediation::KEYS] {
        fresh(&mut cluster.lab)?;
        cluster.lab.machine("metal", "worker-1", HOST)?;
        let outcome = cluster.sender(Who::Nothing, keys)?.down(&mark());
        expect(&outcome, "refused forbidden")?;
        let detail = detail(&outcome);
        ensure!(detail.contains("/usr/share/nova-host-alerter/kubernetes"), "{detail}");
    }
    ensure!(cluster.lab.list(METAL3.plural)?.is_empty());
    Ok(())
}

fn detail(outcome: &Outcome) -> String {
    outcome.failure().map(|why| why.detail.clone()).unwrap_or_default()
}

/// Each user has one shipped file's rights, and each mode wants its own: every other pair is refused, and changes nothing.
fn no_mode_has_the_rights_of_another(cluster: &mut Cluster) -> anyhow::Result<()> {
    let modes = [
        (Who::Taint, KEYS),
        (Who::Condition, r#"mode = "condition""#),
        (Who::Annotate, r#"mode = "annotate""#),
        (Who::Remediation, remediation::KEYS),
    ];
    for (who, _) in modes {
        for (of, keys) in modes {
            fresh(&mut cluster.lab)?;
            cluster.lab.machine("metal", "worker-1", HOST)?;
            cluster.lab.template(METAL3, "metal", "worker", &serde_json::json!({"spec": {}}))?;
            let before = everything(&cluster.lab)?;
            let outcome = cluster.sender(who, keys)?.down(&mark());
            let expected = if who == of { "acknowledged" } else { "refused forbidden" };
            expect(&outcome, expected).with_context(|| format!("{who:?} in the mode of {of:?}"))?;
            ensure!((everything(&cluster.lab)? == before) == (who != of), "{who:?} in the mode of {of:?}");
        }
    }
    Ok(())
}

fn everything(lab: &Kubernetes) -> anyhow::Result<Vec<serde_json::Value>> {
    lab.list(&["nodes", "machines", METAL3.plural].join(","))
}
