//! Fencings and sightings of which nothing shows what became of them. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::Figures;
use marks::account::Gap;
use marks::delivery::{RETURN, State};
use marks::time::Timestamp;

use super::{Kind, Problem};
use crate::intake::account::Unaccounted;
use crate::policy::Hold;
use crate::words::{counted, named, utc};

/// One problem for each kind of gap. `log`: how the alerter's log is read.
pub fn of<'u>(all: impl IntoIterator<Item = &'u Unaccounted>, log: &str) -> Vec<Problem> {
    let mut kinds: BTreeMap<Gap, Vec<&Unaccounted>> = BTreeMap::new();
    for one in all {
        kinds.entry(one.kind).or_default().push(one);
    }
    kinds.into_iter().map(|(gap, records)| of_gap(gap, &records, log)).collect()
}

fn of_gap(gap: Gap, records: &[&Unaccounted], log: &str) -> Problem {
    let mut hosts: Vec<String> = records.iter().filter_map(|one| one.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    let since = records.iter().filter_map(|one| one.at).min();
    let when = since.map_or_else(String::new, |at| format!(", the oldest of {}", utc(at)));
    let whom = match hosts.as_slice() {
        [] => "of an unknown host".to_owned(),
        hosts => format!("of {}", named(hosts)),
    };
    let (count, first) = (records.len(), records.first().map_or("", |one| one.record.as_str()));
    let what =
        format!("{count} record(s) of fencings {whom} are unaccounted for{when}: {} ({first})", says(gap));
    let then = advice(gap, hosts.first().map_or("HOST", String::as_str), log);
    let subject = Some(gap.as_str().to_owned());
    Problem { hosts, since, then, subject, ..Problem::of(Kind::Unaccounted, what) }
}

fn says(gap: Gap) -> &'static str {
    match gap {
        Gap::MarkGone => "the mark of the record is missing from the journal",
        Gap::OtherHost => "the mark of the record belongs to another host",
        Gap::NoRule => "no rule says why the record belongs to a mark or was set aside",
        Gap::Overdue => "the record has waited too long for a decision",
        Gap::Damaged => "the row in the journal is damaged",
        Gap::Undecided => "nothing was decided about the record",
    }
}

fn advice(gap: Gap, host: &str, log: &str) -> String {
    let why = match gap {
        Gap::Overdue | Gap::Undecided => format!("check the alerter's log: {log}"),
        _ => "check the journal's disk: `dmesg`".to_owned(),
    };
    format!(
        "see what was sent: `nova-host-alerter show {host}`; if nothing was sent, ask the recovery controller, and check that the host is off; only then run `nova-host-alerter mark {host} --fenced --reason TEXT`; {why}"
    )
}

/// Which problems of marks there are, the worst first, but for what the policy or a doubt holds. `damaged`: rows that cannot be
/// believed.
pub fn of_marks(figures: &Figures, damaged: usize) -> Vec<Kind> {
    let of = |state| figures.marks.of(state) > 0;
    let returns = figures.deliveries.iter().filter(|(route, _)| route.ends_with(RETURN));
    let known = [
        (of(State::Quarantined) || damaged > 0, Kind::Quarantined),
        (
            of(State::Parked) || returns.map(|(_, counts)| counts.of(State::Parked)).sum::<u64>() > 0,
            Kind::Rejected,
        ),
        (figures.without_route > 0, Kind::NoRoute),
        (figures.exhausted > 0, Kind::ChainExhausted),
        (is_held_on_a_route(figures), Kind::HeldOnRoute),
    ];
    known.into_iter().filter(|(holds, _)| *holds).map(|(_, kind)| kind).collect()
}

/// A step whose turn it is not is held too, and nobody has to see it.
fn is_held_on_a_route(figures: &Figures) -> bool {
    let in_chain = |route: &String| figures.in_chain.get(route).copied().unwrap_or_default();
    figures.deliveries.iter().any(|(route, counts)| counts.of(State::Held) > in_chain(route))
}

/// Why the daemon is degraded for its marks, one sentence each: some need a person, or one was not sent in time. `limit`:
/// `degraded-after`.
pub fn reasons_of_marks(figures: &Figures, damaged: usize, limit: Duration, now: Timestamp) -> Vec<String> {
    let stuck =
        of_marks(figures, damaged).into_iter().filter_map(Kind::health).map(|(_, says)| says.to_owned());
    let held = figures.holds.iter().filter_map(|(word, held)| {
        Hold::parse(word).filter(|hold| hold.needs_a_person(held.since, now))?;
        let marks = usize::try_from(held.marks).unwrap_or(usize::MAX);
        let what = counted(marks, "mark is", "marks are");
        Some(format!("{what} held ({word}) since {}: see `nova-host-alerter status`", utc(held.since)))
    });
    let waits = figures.oldest_waiting.filter(|at| now.since(*at) > limit);
    let waits =
        waits.map(|at| format!("the mark of a host that failed at {} is not acknowledged yet", utc(at)));
    stuck.chain(held).chain(waits).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use journal::{Counts, HeldCount};
    use marks::time::Timestamp;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const LIMIT: Duration = Duration::from_secs(300);
    const MOMENT: Duration = Duration::from_millis(1);

    fn reasons(figures: &Figures) -> Vec<String> {
        reasons_of_marks(figures, 0, LIMIT, NOW)
    }

    fn held(word: &str, marks: u64, age: Duration) -> Figures {
        let held = HeldCount { marks, since: NOW - age };
        Figures { holds: [(word.to_owned(), held)].into(), ..Figures::default() }
    }

    fn on_route(route: &str, state: State) -> Figures {
        let mut counts = Counts::default();
        counts.add(state, 1);
        Figures { deliveries: BTreeMap::from([(route.to_owned(), counts)]), ..Figures::default() }
    }

    /// S1-5: whatever holds a mark for a person. The broken variants: what ends within moments wakes somebody; an unproven mark does
    /// before Pacemaker can have confirmed it.
    #[test]
    fn a_mark_that_is_held_for_a_person_degrades() {
        assert_eq!(reasons(&Figures::default()), [""; 0]);
        for hold in Hold::ALL {
            let is_old = reasons(&held(hold.as_str(), 1, LIMIT)).len() == 1;
            assert_eq!(is_old, !hold.passes(), "{hold:?}");
        }
        assert_eq!(reasons(&held("unproven", 1, MOMENT)), [""; 0]);
        assert_eq!(
            reasons(&held("storm", 7, Duration::from_secs(60))),
            ["7 marks are held (storm) since 2027-01-15 07:59:00Z: see `nova-host-alerter status`"]
        );
    }

    /// S1-5: a mark that a route refuses or holds, and a return. The broken variant counts a step whose turn it is not.
    #[test]
    fn a_mark_that_is_refused_or_held_on_its_route_degrades() {
        let mut parked = Figures::default();
        parked.marks.add(State::Parked, 1);
        let stuck = [
            parked,
            Figures { without_route: 1, ..Figures::default() },
            Figures { exhausted: 1, ..Figures::default() },
            on_route("recovery", State::Held),
            on_route("recovery.return", State::Parked),
        ];
        for figures in stuck {
            assert_eq!(reasons(&figures).len(), 1, "{figures:?}");
        }
        assert_eq!(reasons_of_marks(&Figures::default(), 1, LIMIT, NOW).len(), 1, "a damaged row");
        let in_chain = BTreeMap::from([("recovery".to_owned(), 1)]);
        assert_eq!(reasons(&Figures { in_chain, ..on_route("recovery", State::Held) }), [""; 0]);
        assert_eq!(reasons(&on_route("recovery", State::Pending)), [""; 0]);
    }

    /// S1-5, S4-31: exactly at the limit it does not count yet.
    #[test]
    fn a_mark_that_waits_for_longer_than_the_limit_degrades() {
        let waits = |age| reasons(&Figures { oldest_waiting: Some(NOW - age), ..Figures::default() });
        assert_eq!(waits(LIMIT), [""; 0]);
        assert_eq!(
            waits(LIMIT + MOMENT),
            ["the mark of a host that failed at 2027-01-15 07:54:59Z is not acknowledged yet"]
        );
    }
}
