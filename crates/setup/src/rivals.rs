//! Other software that recovers hosts in this cluster: each host would be recovered twice, so nothing is set up.

use pacemaker::cib::rival;

use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Resource};

/// The advice for them.
const WAY: &str = "migrate: see docs/migrate.md; the commands are in packaging/examples/crmsh-migrate-fence-compute.sh and pcs-migrate-fence-compute.sh; then run `nova-host-alerter setup` again";

/// Finds them, and postpones every other finding.
pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    let rivals: Vec<Finding> = cluster.resources.iter().filter_map(finding).collect();
    if rivals.is_empty() {
        return;
    }
    for finding in found.iter_mut().filter(|finding| finding.step().is_some()) {
        finding.then = Then::Do("migrate first: setup changes nothing before that".to_owned());
    }
    found.splice(0..0, rivals);
}

fn finding(resource: &Resource) -> Option<Finding> {
    let does = rival(&resource.agent)?;
    let what = format!(
        "{} ({}) {does}, so a marked host would be recovered twice: setup changes nothing",
        resource.id, resource.agent
    );
    Some(Finding::new(Kind::OtherRecovery, &resource.id, what, Then::Do(WAY.to_owned())))
}
