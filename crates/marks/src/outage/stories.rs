//! Stories of one host: it fails, is fenced, comes back and fails again, on controllers with differing clocks; the
//! records arrive in any order.

use crate::fencing::Origin;
use crate::host::HostName;
use crate::id::{FencingId, OperationId};
use proptest::prelude::*;

use super::*;

const REACH: Reach = Reach::found(Duration::from_secs(180));
/// By the true clock, seconds.
const BEGIN: i64 = 1_000_000;

/// One outage: how long the host had been connected, and how long it was down, in seconds; which controller connected it;
/// which recorded it, and whether `off` was run again.
#[derive(Clone, Debug)]
struct Failure {
    up: i64,
    down: i64,
    connected_by: usize,
    recorded_by: [usize; 2],
    is_repeated: bool,
}

#[derive(Clone, Debug)]
struct Story {
    /// The errors of three controllers' clocks, in seconds; the alerter runs on the first.
    skews: [i64; 3],
    failures: Vec<Failure>,
    /// The order in which records arrive.
    order: Vec<u32>,
}

/// The records, each with the number of its outage.
#[derive(Clone, Debug)]
enum Record {
    Fencing(usize, Fencing),
    Sighting(usize, Sighting),
}

fn failure(least: i64) -> impl Strategy<Value = Failure> {
    (least..400_i64, least..400_i64, 0..3_usize, [0..3_usize, 0..3_usize], any::<bool>()).prop_map(
        |(up, down, connected_by, recorded_by, is_repeated)| Failure {
            up,
            down,
            connected_by,
            recorded_by,
            is_repeated,
        },
    )
}

/// A story of at least this many failures.
fn story(least: i64, failures: usize) -> impl Strategy<Value = Story> {
    // Two records of one outage are up to 10 s apart by a true clock.
    let skews = [-55..=55_i64, -55..=55, -55..=55];
    let failures = prop::collection::vec(failure(least), failures..5);
    let order = prop::collection::vec(any::<u32>(), 32);
    (skews, failures, order).prop_map(|(skews, failures, order)| Story { skews, failures, order })
}

impl Story {
    fn by(&self, controller: usize, time: i64) -> Timestamp {
        Timestamp::from_seconds(time + self.skews[controller])
    }

    /// When each connection was made and ended.
    fn spans(&self) -> Vec<(i64, i64)> {
        let mut now = BEGIN;
        let mut spans = Vec::new();
        for failure in &self.failures {
            spans.push((now, now + failure.up));
            now += failure.up + failure.down;
        }
        spans
    }

    fn connection(&self, number: usize) -> Connection {
        let (made, by) = (self.spans()[number].0, self.failures[number].connected_by);
        let call = 7 + u32::try_from(number).unwrap();
        let incarnation = Incarnation::new(&format!("ctl{by}"), call, self.by(by, made).seconds());
        Connection { since: incarnation.connected_at().unwrap(), incarnation, was_seen: false }
    }

    /// All that were ever made; an alerter that ran then saw them appear within two seconds.
    fn connections(&self, was_seen: bool) -> Vec<Connection> {
        let own = |number: usize| self.by(0, self.spans()[number].0 + 2);
        let seen = |number: usize, known: Connection| match was_seen {
            true => Connection { since: own(number), was_seen, ..known },
            false => known,
        };
        (0..self.failures.len()).map(|number| seen(number, self.connection(number))).collect()
    }

    fn fencings(&self, number: usize) -> Vec<Record> {
        let (failed, failure) = (self.spans()[number].1, &self.failures[number]);
        let times = [(failed + 1, false), (failed + 11, true)];
        let count = if failure.is_repeated { 2 } else { 1 };
        let record = |((time, already_down), by): ((i64, bool), usize)| Fencing {
            id: FencingId::generate(),
            node: HostName::parse("compute1").unwrap(),
            plug: None,
            asked_at: self.by(by, time),
            committed_at: self.by(by, time),
            seen_by: format!("ctl{by}"),
            origin: Origin::Fencer,
            incarnation: Some(self.connection(number).incarnation),
            already_down: Some(already_down),
            given_domain: None,
            given_shared_storage: None,
            cause: None,
        };
        let fencings = times.into_iter().zip(failure.recorded_by).take(count).map(record);
        fencings.map(|fencing| Record::Fencing(number, fencing)).collect()
    }

    /// Alert and history by the alerter's own clock.
    fn sightings(&self, number: usize) -> Vec<Record> {
        let at = self.by(0, self.spans()[number].1 + 4);
        let operation = OperationId::parse(&FencingId::generate().to_string()).unwrap();
        [Witness::Alert(operation), Witness::History]
            .map(|witness| Sighting {
                node: HostName::parse("compute1").unwrap(),
                witness,
                at,
                by_human: false,
            })
            .map(|sighting| Record::Sighting(number, sighting))
            .into()
    }

    fn shuffled(&self, records: Vec<Record>) -> Vec<Record> {
        let mut keyed: Vec<(u32, Record)> = self.order.iter().copied().cycle().zip(records).collect();
        keyed.sort_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, record)| record).collect()
    }

    /// The outages made of all records of `fence_mark`, in the register's order, each with the numbers of the outages
    /// whose records it took in.
    fn fold(&self) -> Vec<(Outage, Vec<usize>)> {
        let records = (0..self.failures.len()).flat_map(|number| self.fencings(number)).collect();
        let mut made: Vec<(Outage, Vec<usize>)> = Vec::new();
        for record in self.shuffled(records) {
            let Record::Fencing(number, fencing) = record else { continue };
            made.sort_by_key(|(outage, _)| outage.first);
            let outages: Vec<Outage> = made.iter().map(|(outage, _)| outage.clone()).collect();
            let found = of_fencing(&fencing, &outages, REACH).map(|joined| joined.outage.mark);
            match made.iter_mut().find(|(outage, _)| Some(outage.mark) == found) {
                Some((outage, numbers)) => {
                    outage.newest = outage.newest.max(fencing.asked_at);
                    let seen = fencing.incarnation.into_iter().filter(|c| !outage.incarnations.contains(c));
                    outage.incarnations.extend(seen.collect::<Vec<_>>());
                    numbers.push(number);
                }
                None => made.push((self.outage(number, &fencing), vec![number])),
            }
        }
        made.sort_by_key(|(outage, _)| outage.first);
        made
    }

    fn outage(&self, number: usize, fencing: &Fencing) -> Outage {
        let next = (number + 1 < self.failures.len()).then(|| self.connection(number + 1).incarnation);
        let mut outage = Outage {
            mark: fencing.id.into(),
            first: fencing.asked_at,
            newest: fencing.asked_at,
            incarnations: fencing.incarnation.iter().cloned().collect(),
            fenced_at: None,
            returned_at: None,
            settled: None,
            made_at: Timestamp(0),
            is_proven: false,
        };
        let now = Timestamp::from_seconds(BEGIN * 2);
        outage.returned_at = return_from(&outage, next.as_ref(), (true, false), now, REACH.coalesce);
        outage
    }

    /// The host is back from its last outage, which nothing recorded; Pacemaker has lost the connections that the others
    /// ended. The rules that swallow its sightings; `None` if the cluster did not note the others' returns.
    fn swallowed(&self) -> Option<Vec<Rule>> {
        let last = self.failures.len() - 2;
        let forgotten = |(number, outage): (usize, Outage)| {
            let next = self.connection(number + 1).incarnation;
            let outage = Outage { incarnations: Vec::new(), ..outage };
            let now = Timestamp::from_seconds(BEGIN * 2);
            Outage {
                returned_at: return_from(&outage, Some(&next), (true, false), now, REACH.coalesce),
                ..outage
            }
        };
        let made = self.fold().into_iter().map(|(outage, numbers)| (numbers[0], outage));
        let outages: Vec<Outage> = made.filter(|(number, _)| *number < last).map(forgotten).collect();
        outages.iter().all(|outage| outage.returned_at.is_some()).then_some(())?;
        let known = Connections { all: self.connections(true), is_back: true, ..Connections::default() };
        let sightings = self.sightings(last).into_iter().filter_map(|record| match record {
            Record::Sighting(_, sighting) => Some(sighting),
            Record::Fencing(..) => None,
        });
        let of = |sighting: Sighting| joined_of(&sighting, &known, &outages).map(|joined| joined.rule);
        Some(sightings.filter_map(of).collect())
    }

    /// The last failure ends a connection that the alerter saw appear, and power alone fences the host: no `fence_mark` records it.
    /// The rules that swallow its sightings; the host may have been back since, over one more connection.
    fn last_by_power_alone(&self, after: i64, is_back: bool) -> Vec<Rule> {
        let number = self.failures.len() - 1;
        let settled = |outage: Outage| Outage {
            settled: Some((Settlement::Acknowledged, outage.newest)),
            is_proven: true,
            ..outage
        };
        let made = self.fold().into_iter().filter(|(_, numbers)| numbers[0] < number);
        let outages: Vec<Outage> = made.map(|(outage, _)| settled(outage)).collect();
        let mut all = self.connections(true);
        let appeared = all[number].since;
        if is_back {
            let since = appeared + Duration::from_secs(60);
            let incarnation = Incarnation::new("ctl1", 99, since.seconds());
            all.push(Connection { incarnation, since, was_seen: true });
        }
        let current = all.last().map(|connection| connection.incarnation.clone());
        let known = Connections { all, current, is_back, joins: false };
        let at = Timestamp(appeared.0 + after);
        let joined = |sighting: &Sighting| joined_of(sighting, &known, &outages);
        let sightings = self.sightings(number).into_iter().filter_map(|record| match record {
            Record::Sighting(_, sighting) => Some(Sighting { at, ..sighting }),
            Record::Fencing(..) => None,
        });
        sightings.filter_map(|sighting| joined(&sighting).map(|joined| joined.rule)).collect()
    }

    /// For each mark, the numbers of the outages whose sightings proved it.
    fn proven(&self, was_seen: bool) -> Vec<(Vec<usize>, Vec<usize>)> {
        let made = self.fold();
        let outages: Vec<Outage> = made.iter().map(|(outage, _)| outage.clone()).collect();
        let all = self.connections(was_seen);
        let current = all.last().map(|connection| connection.incarnation.clone());
        let known = Connections { all, current, ..Connections::default() };
        let mut proven: Vec<(Vec<usize>, Vec<usize>)> =
            made.iter().map(|(_, numbers)| (numbers.clone(), Vec::new())).collect();
        for record in (0..self.failures.len()).flat_map(|number| self.sightings(number)) {
            let Record::Sighting(number, sighting) = record else { continue };
            let Some(joined) = of_sighting(&sighting, &known, &outages, REACH) else { continue };
            let at = outages.iter().position(|outage| outage.mark == joined.outage.mark).unwrap();
            if is_proof(joined, &sighting, joined.outage.first, &known) {
                proven[at].1.push(number);
            }
        }
        proven
    }
}

/// What a sighting joins. A match by clocks alone before a return makes a mark that is held.
fn joined_of<'a>(sighting: &Sighting, known: &Connections, outages: &'a [Outage]) -> Option<Joined<'a>> {
    let before = || of_sighting_before_return(sighting, known, outages, REACH);
    of_sighting(sighting, known, outages, REACH)
        .or_else(|| before().filter(|joined| joined.rule == Rule::BeforeReturn))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// B3, B6: whatever the clocks and the order are, records of two connections are never one outage, so no failure
    /// after a return is swallowed.
    #[test]
    fn no_outage_with_a_connection_of_its_own_is_swallowed(story in story(15, 1)) {
        for (outage, numbers) in story.fold() {
            prop_assert!(numbers.iter().all(|number| *number == numbers[0]), "{outage:?} of {numbers:?}");
        }
    }

    /// B3: clocks that differ by up to 120 s, and hosts that fail as often as hosts can. If the alerter saw the
    /// connections appear, its own sightings prove each mark, and no others.
    #[test]
    fn a_mark_gets_its_proof_from_an_alerter_that_was_there(story in story(15, 1)) {
        let proven = story.proven(true);
        for number in 0..story.failures.len() {
            let is_proven = proven.iter().any(|(numbers, by)| numbers[0] == number && !by.is_empty());
            prop_assert!(is_proven, "outage {number}: {proven:?}");
        }
        for (numbers, by) in proven {
            prop_assert!(by.iter().all(|number| *number == numbers[0]), "{numbers:?} by {by:?}");
        }
    }

    /// If the alerter saw the connections appear, no failure counts as a part of an outage that was over.
    #[test]
    fn a_failure_that_nobody_recorded_is_not_swallowed(story in story(15, 3)) {
        let swallowed = story.swallowed();
        prop_assume!(swallowed.is_some());
        prop_assert_eq!(swallowed.unwrap_or_default(), Vec::new());
    }

    /// However soon after the return it fails: the connection appeared before, by the clock that stamps both. The broken variant gives
    /// that clock a grain of seconds.
    #[test]
    fn a_fencing_by_power_alone_moments_after_the_return_is_an_outage_of_its_own(
        story in story(15, 2),
        after in 0..15_000_i64,
        is_back in any::<bool>(),
    ) {
        prop_assert_eq!(story.last_by_power_alone(after, is_back), Vec::new(), "after {} ms", after);
    }

    /// The same if it did not, for a host that is up and down for longer than clocks may differ.
    #[test]
    fn a_mark_gets_its_proof_from_an_alerter_that_comes_later(story in story(150, 1)) {
        let proven = story.proven(false);
        for number in 0..story.failures.len() {
            let is_proven = proven.iter().any(|(numbers, by)| numbers[0] == number && by.contains(&number));
            prop_assert!(is_proven, "outage {number}: {proven:?}");
        }
        for (numbers, by) in proven {
            prop_assert!(by.iter().all(|number| *number == numbers[0]), "{numbers:?} by {by:?}");
        }
    }
}
