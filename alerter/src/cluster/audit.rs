//! Hosts that are gone and that nobody fenced: Pacemaker can forget such a host for good. Only an operator learns of it, since
//! nothing proves that the host is dead.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use marks::host::HostName;
use pacemaker::cib::Cib;

/// A host that boots, or that Pacemaker is about to fence, is back or fenced by then.
pub(crate) const AUDIT_AFTER: Duration = Duration::from_secs(300);

/// Which hosts are missed, and since when this daemon has seen it.
#[derive(Debug, Default)]
pub(super) struct Audit {
    missed: BTreeMap<HostName, Instant>,
}

impl Audit {
    /// Checks a CIB. A host is missed if it should be connected, is not, and was not fenced.
    pub(super) fn note(&mut self, cib: &Cib, now: Instant) {
        let is_away =
            |host: &HostName| cib.membership(host) != Some(true) && !cib.is_membership_unclear(host);
        let is_missed =
            |host: &HostName| cib.is_expected(host) && is_away(host) && cib.node_fenced(host).is_none();
        let missed: HashSet<&HostName> = cib.remote_nodes().iter().filter(|host| is_missed(host)).collect();
        self.missed.retain(|host, _| missed.contains(host));
        for host in missed {
            self.missed.entry(host.clone()).or_insert(now);
        }
    }

    /// Every host that is missed, and for how long.
    pub(super) fn missed(&self, now: Instant) -> impl Iterator<Item = (&HostName, Duration)> {
        self.missed.iter().map(move |(host, since)| (host, now.duration_since(*since)))
    }

    /// Those that have been for longer than [`AUDIT_AFTER`].
    pub(super) fn missed_for_long(&self, now: Instant) -> impl Iterator<Item = (&HostName, Duration)> {
        self.missed(now).filter(|(_, time)| *time > AUDIT_AFTER)
    }
}

/// The sentence about a host that has been missed for so long.
pub(crate) fn sentence(host: &HostName, time: Duration) -> String {
    format!(
        "{host} has not been connected for {} s and Pacemaker has not fenced it: nobody is notified",
        time.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cib(state: &str) -> Cib {
        let xml = format!(
            r#"<cib><configuration><crm_config/><nodes/><resources>
                 <primitive id="compute1" class="ocf" provider="pacemaker" type="remote"/>
               </resources><constraints/></configuration><status>{state}</status></cib>"#
        );
        Cib::parse(&xml).unwrap()
    }

    fn state(in_ccm: &str, fenced: &str) -> Cib {
        cib(&format!(
            r#"<node_state remote_node="true" id="compute1" uname="compute1" in_ccm="{in_ccm}" node_fenced="{fenced}"/>"#
        ))
    }

    /// W1: the signature that Pacemaker leaves when it has forgotten a host.
    #[test]
    fn a_host_that_is_gone_and_not_fenced_is_warned_of_after_the_limit() {
        let (mut audit, start) = (Audit::default(), Instant::now());
        let later = |seconds| start + Duration::from_secs(seconds);
        audit.note(&state("false", "0"), start);
        audit.note(&state("false", "0"), later(300));
        assert_eq!(audit.missed_for_long(later(300)).count(), 0);
        let missed: Vec<_> = audit.missed_for_long(later(301)).collect();
        let [(host, time)] = missed[..] else { panic!("{missed:?}") };
        assert_eq!(time, Duration::from_secs(301));
        assert!(sentence(host, time).starts_with("compute1 has not been connected for 301 s"));
        audit.note(&state("true", "0"), later(302));
        assert_eq!(audit.missed_for_long(later(999)).count(), 0);
    }

    #[test]
    fn a_host_that_was_fenced_or_is_connected_is_not_missed() {
        let (mut audit, start) = (Audit::default(), Instant::now());
        for fine in [state("true", "0"), state("false", "1795191514")] {
            audit.note(&fine, start);
            assert_eq!(audit.missed_for_long(start + AUDIT_AFTER * 2).count(), 0);
        }
        audit.note(&cib(""), start);
        assert_eq!(audit.missed_for_long(start + AUDIT_AFTER * 2).count(), 1, "it never came");
    }
}
