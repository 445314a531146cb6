//! How the driver shows who it is, and what it says where that is not enough.

use anyhow::{Context as _, ensure};
use drivers::Outcome;
use tests::kubernetes::{Kubernetes, Login, METAL3, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, Sender, ago, expect, mark, table};
use crate::remediation;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("each_way_to_log_in_is_enough", each_way_to_log_in_is_enough),
    ("a_missing_right_is_said", a_missing_right_is_said),
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
