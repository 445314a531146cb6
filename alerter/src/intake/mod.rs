//! Which fencings are one outage, and under which name it is told. Pure but for `apply`: no I/O, no clock.

pub mod apply;

use std::time::Duration;

use marks::fencing::Fencing;
use marks::host::{HostName, resolve_fqdn};
use marks::journal::{MarkRow, Outage};
use marks::mark::{Proof, Source, Standing};

use crate::config::HostRules;

/// What becomes of a fencing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fold {
    /// A new outage: this mark.
    Mark(MarkRow),
    /// A further fencing of an outage that has a mark, open or settled.
    Join(Outage),
    /// `[hosts] match` does not cover the host.
    SetAside,
}

/// Decides about one fencing, given its host's outages, oldest first.
pub fn fold(fencing: &Fencing, outages: &[Outage], rules: &HostRules, coalesce: Duration) -> Fold {
    if rules.matching.as_ref().is_some_and(|covered| !covered.covers(&fencing.node)) {
        return Fold::SetAside;
    }
    let same = outages.iter().rev().find(|outage| is_same_outage(fencing, outage, coalesce));
    match same {
        Some(outage) => Fold::Join(outage.clone()),
        None => Fold::Mark(mark_of(fencing, rules)),
    }
}

/// Another incarnation means that the host was back in between, even seconds later; the same one means the same outage,
/// however late. Only where one is unknown are clocks compared (design, section 6).
fn is_same_outage(fencing: &Fencing, outage: &Outage, coalesce: Duration) -> bool {
    if outage.mark == fencing.id.into() {
        return true; // its own mark: only the record that it was taken in is damaged
    }
    match &fencing.incarnation {
        Some(seen) if !outage.incarnations.is_empty() => outage.incarnations.contains(seen),
        _ => fencing.asked_at.distance(outage.newest) <= coalesce,
    }
}

fn mark_of(fencing: &Fencing, rules: &HostRules) -> MarkRow {
    MarkRow {
        id: fencing.id.into(),
        node: fencing.node.clone(),
        fqdn: told_name(fencing, rules),
        // Where nobody said so: a controller that is told "shared" and finds otherwise refuses; the opposite rebuilds
        // the disks from their images.
        on_shared_storage: rules.on_shared_storage.or(fencing.given_shared_storage).unwrap_or(true),
        failure_time: fencing.asked_at,
        generated_time: fencing.committed_at,
        settled: None,
        source: Source::Fencing,
        incarnation: fencing.incarnation.clone(),
        standing: Standing::Proven(Proof::Alone),
        made_by: fencing.seen_by.clone(),
        made_at: fencing.committed_at,
        returned_at: None,
    }
}

/// The name under which a fencing's host is told; none means the hold `no-fqdn`.
pub fn told_name(fencing: &Fencing, rules: &HostRules) -> Option<HostName> {
    let domain = rules.domain.as_deref().or(fencing.given_domain.as_deref());
    resolve_fqdn(&fencing.node, fencing.plug.as_ref(), &rules.names, domain)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use marks::fencing::{Incarnation, Origin};
    use marks::host::HostPatterns;
    use marks::id::FencingId;
    use marks::time::Timestamp;
    use proptest::prelude::*;

    use super::*;

    const COALESCE: Duration = Duration::from_secs(180);

    fn rules() -> HostRules {
        HostRules {
            domain: Some("my.cloud.com".into()),
            names: BTreeMap::new(),
            on_shared_storage: None,
            matching: None,
        }
    }

    fn fencing(second: i64, incarnation: Option<u32>) -> Fencing {
        Fencing {
            id: FencingId::generate(),
            node: HostName::parse("compute1").unwrap(),
            plug: None,
            asked_at: Timestamp::from_seconds(second),
            committed_at: Timestamp::from_seconds(second + 1),
            seen_by: "ctl1".into(),
            origin: Origin::Fencer,
            incarnation: incarnation.map(|call| Incarnation::new("ctl1", call, 7)),
            given_domain: None,
            given_shared_storage: None,
        }
    }

    fn outage(second: i64, incarnation: Option<u32>) -> Outage {
        let first = fencing(second, incarnation);
        Outage {
            mark: first.id.into(),
            first: first.asked_at,
            newest: first.asked_at,
            incarnations: first.incarnation.into_iter().collect(),
            returned_at: None,
            settled: false,
        }
    }

    fn joins(fencing: &Fencing, outages: &[Outage]) -> bool {
        matches!(fold(fencing, outages, &rules(), COALESCE), Fold::Join(_))
    }

    #[test]
    fn the_same_incarnation_is_the_same_outage_however_late() {
        assert!(joins(&fencing(10_000, Some(4)), &[outage(0, Some(4))]));
    }

    #[test]
    fn another_incarnation_is_another_outage_even_seconds_later() {
        assert!(!joins(&fencing(2, Some(5)), &[outage(0, Some(4))]));
    }

    #[test]
    fn where_an_incarnation_is_unknown_only_time_decides_and_both_ways() {
        for (known, other) in [(None, None), (Some(4), None), (None, Some(4))] {
            assert!(joins(&fencing(180, known), &[outage(0, other)]));
            assert!(!joins(&fencing(181, known), &[outage(0, other)]));
            assert!(joins(&fencing(0, known), &[outage(180, other)]), "a clock was set back");
        }
    }

    #[test]
    fn a_fencing_makes_its_mark_once() {
        let first = fencing(0, Some(4));
        let own = Outage {
            newest: Timestamp::from_seconds(9_999),
            incarnations: vec![],
            mark: first.id.into(),
            ..outage(0, None)
        };
        assert!(joins(&first, &[own]));
    }

    #[test]
    fn an_older_outage_is_found_behind_a_newer_one() {
        let old = outage(0, Some(4));
        let Fold::Join(found) =
            fold(&fencing(500, Some(4)), &[old.clone(), outage(400, Some(5))], &rules(), COALESCE)
        else {
            panic!("joins none");
        };
        assert_eq!(found, old);
    }

    /// S1-38, S1-39: what the mark says comes from the fencing, and configuration goes before what the agent was given.
    #[test]
    fn a_mark_says_when_the_agent_was_asked() {
        let mut first = fencing(100, None);
        first.given_shared_storage = Some(false);
        let Fold::Mark(mark) = fold(&first, &[], &rules(), COALESCE) else { panic!("no mark") };
        assert_eq!((mark.failure_time.seconds(), mark.generated_time.seconds()), (100, 101));
        assert_eq!(mark.fqdn.unwrap().as_str(), "compute1.my.cloud.com");
        assert_eq!(mark.id.to_string(), first.id.to_string());
        assert!(!mark.on_shared_storage);
        let decided = HostRules { on_shared_storage: Some(true), ..rules() };
        let Fold::Mark(mark) = fold(&first, &[], &decided, COALESCE) else { panic!("no mark") };
        assert!(mark.on_shared_storage);
    }

    #[test]
    fn without_a_domain_the_mark_is_made_and_held() {
        let silent = HostRules { domain: None, ..rules() };
        let Fold::Mark(mark) = fold(&fencing(0, None), &[], &silent, COALESCE) else { panic!("no mark") };
        assert_eq!(mark.fqdn, None);
    }

    #[test]
    fn a_host_outside_of_match_makes_no_mark() {
        let narrow = HostRules { matching: Some(HostPatterns::parse("nova*").unwrap()), ..rules() };
        assert_eq!(fold(&fencing(0, None), &[], &narrow, COALESCE), Fold::SetAside);
    }

    proptest! {
        /// However often the agent is run in one outage, it is one mark.
        #[test]
        fn repeated_fencings_of_one_incarnation_are_one_mark(mut seconds in proptest::collection::vec(0i64..100_000, 1..20)) {
            seconds.sort_unstable();
            let mut outages: Vec<Outage> = Vec::new();
            for second in seconds {
                let fencing = fencing(second, Some(4));
                match fold(&fencing, &outages, &rules(), COALESCE) {
                    Fold::Mark(mark) => outages.push(Outage { mark: mark.id, ..outage(second, Some(4)) }),
                    Fold::Join(outage) => prop_assert_eq!(outage.mark, outages[0].mark),
                    Fold::SetAside => prop_assert!(false),
                }
            }
            prop_assert_eq!(outages.len(), 1);
        }
    }
}
