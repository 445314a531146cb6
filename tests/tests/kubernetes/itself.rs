//! The lab itself: what the other scenarios take for granted.

use anyhow::ensure;
use tests::kubernetes::{ALL, Kubernetes, Who};

use crate::Scenario;
use crate::cluster::Cluster;

pub(crate) const SCENARIOS: &[Scenario] =
    &[("each_user_has_exactly_the_shipped_rights", each_user_has_exactly_the_shipped_rights)];

/// In every mode: whether a host lives.
const LEASES: (&str, &str) = ("leases.coordination.k8s.io", "get");

/// What a user may do beyond everybody's rights, as kubectl lists it: kinds, and the verbs of each.
fn rights(who: Who) -> &'static [(&'static str, &'static str)] {
    match who {
        Who::Admin | Who::Nothing => &[],
        Who::Taint => &[LEASES, ("nodes", "get patch")],
        Who::Condition => &[LEASES, ("nodes", "get"), ("nodes/status", "patch")],
        Who::Annotate => &[LEASES, ("machines.cluster.x-k8s.io", "list get patch"), ("nodes", "get")],
        Who::Remediation => &[
            LEASES,
            ("nodes", "get"),
            ("clusters.cluster.x-k8s.io", "get"),
            ("machines.cluster.x-k8s.io", "list"),
            ("metal3remediations.infrastructure.cluster.x-k8s.io", "get create delete"),
            ("metal3remediationtemplates.infrastructure.cluster.x-k8s.io", "get"),
        ],
    }
}

/// All that the server grants is listed: a right that no driver needs is as wrong as one that is missing.
fn each_user_has_exactly_the_shipped_rights(cluster: &mut Cluster) -> anyhow::Result<()> {
    let lab = &cluster.lab;
    let everybodys = granted(lab, Who::Nothing)?;
    ensure!(everybodys.iter().all(|(kind, _)| kind.starts_with("selfsubject")), "{everybodys:?}");
    for who in ALL.into_iter().filter(|who| *who != Who::Admin) {
        let own: Vec<_> = granted(lab, who)?.into_iter().filter(|one| !everybodys.contains(one)).collect();
        let mut expected: Vec<_> =
            rights(who).iter().map(|(kind, verbs)| (kind.to_string(), verbs.to_string())).collect();
        expected.sort();
        ensure!(own == expected, "{}: {own:?}, and not {expected:?}", who.name());
        for (kind, verbs) in rights(who) {
            verbs.split(' ').try_for_each(|verb| may(lab, who, verb, kind))?;
        }
    }
    Ok(())
}

/// Kinds and verbs, sorted.
fn granted(lab: &Kubernetes, who: Who) -> anyhow::Result<Vec<(String, String)>> {
    let words = ["auth", "can-i", "--list", "--no-headers", "--namespace=metal"];
    let said = lab.kubectl_with(&lab.kubeconfig(who)?, &words, None)?;
    let said = String::from_utf8(said.stdout)?;
    let rule = |line: &str| {
        let kind = line.split_whitespace().next()?;
        let verbs = line.trim_end().strip_suffix(']')?.rsplit('[').next()?;
        // A line without a kind is of addresses.
        (!kind.starts_with('[')).then(|| (kind.to_owned(), verbs.to_owned()))
    };
    let mut all: Vec<_> = said.lines().filter_map(rule).collect();
    all.sort();
    Ok(all)
}

/// One by one, in all namespaces.
fn may(lab: &Kubernetes, who: Who, verb: &str, kind: &str) -> anyhow::Result<()> {
    let (kind, part) = kind.split_once('/').unwrap_or((kind, ""));
    let part = format!("--subresource={part}");
    let words = ["auth", "can-i", verb, kind, &part, "--all-namespaces"];
    let said = lab.kubectl_with(&lab.kubeconfig(who)?, &words, None)?;
    ensure!(said.stdout.starts_with(b"yes"), "{} may not {verb} {kind}", who.name());
    Ok(())
}
