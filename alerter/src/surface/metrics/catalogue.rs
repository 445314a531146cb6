//! The list of all metrics: name, type, unit, labels, help and values. `docs/metrics.md`, the dashboard and the alert rules are
//! tested against it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use marks::delivery::State;
use marks::time::Timestamp;

use super::samples::Samples;
use super::sight::{STATES, Sight, state};
use crate::policy::Hold;
use crate::policy::groups::GroupFigures;

/// What every name begins with.
pub const PREFIX: &str = "nova_host_alerter";

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only grows while the daemon runs; its samples end with `_total`.
    Counter,
    /// A distribution; its samples end with `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// One metric.
pub struct Metric {
    /// Its name without prefix, unit and suffix.
    name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its unit, which ends the name; none where it is a plain number.
    pub unit: Option<&'static str>,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
    pub(super) values: fn(&Sight, &mut Samples<'_>) -> fmt::Result,
}

impl Metric {
    /// The name as it is registered: without prefix and unit.
    pub(super) fn stem(&self) -> &'static str {
        self.name
    }

    /// The name of the family: with prefix and unit.
    pub fn family(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        format!("{PREFIX}_{}{unit}", self.name)
    }

    /// The names of its samples, as queries have them.
    pub fn samples(&self) -> Vec<String> {
        let suffixes: &[&str] = match self.kind {
            Kind::Gauge => &[""],
            Kind::Counter => &["_total"],
            Kind::Histogram => &["_bucket", "_sum", "_count"],
        };
        suffixes.iter().map(|suffix| self.family() + suffix).collect()
    }
}

impl fmt::Debug for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.family())
    }
}

/// A number with these labels; with a unit where it says so.
macro_rules! metric {
    ($kind:ident $name:literal $(in $unit:literal)? [$($label:literal),*] $help:literal, $values:expr) => {
        Metric {
            name: $name,
            kind: Kind::$kind,
            unit: [$(Some($unit),)? None][0],
            labels: &[$($label),*],
            help: $help,
            values: $values,
        }
    };
}

/// All of them, in the order in which they are shown.
pub const ALL: &[Metric] = &[
    metric!(Gauge "build_info" ["version"] "1, with the version of the program.", |_, s| {
        s.add(&[("version", env!("CARGO_PKG_VERSION"))], 1)
    }),
    metric!(Gauge "start_time" in "seconds" [] "When the daemon began, in seconds since 1970.", |sight, s| {
        s.real(&[], seconds(sight.started))
    }),
    metric!(Gauge "active_controller" [] "1: the alerter runs here. Only the controller that runs it answers a scrape.", |_, s| {
        s.add(&[], 1)
    }),
    metric!(Gauge "degraded_reasons" [] "How many things need a person, or keep the daemon from working well; `nova-host-alerter status` names each.", |sight, s| {
        s.add(&[], sight.degrading)
    }),
    metric!(Gauge "problems" ["kind"] "Problems by kind; `nova-host-alerter status` names each, with what to do. A problem of marks is 1 for any number of marks.", |sight, s| {
        sight.problems.iter().try_for_each(|(kind, count)| s.add(&[("kind", kind)], *count))
    }),
    metric!(Gauge "cluster_permitted" [] "1 where marks may be sent: this partition has quorum, and the register can be read; always 1 without a cluster.", |sight, s| {
        s.add(&[], usize::from(sight.seen.cluster.as_ref().is_none_or(|cluster| cluster.is_permitted)))
    }),
    metric!(Gauge "cluster_poll_age" in "seconds" [] "How long ago the last poll of the cluster began; absent without a cluster.", |sight, s| {
        sight.seen.cluster.as_ref().and_then(|cluster| cluster.age).map_or(Ok(()), |age| s.real(&[], age.as_secs_f64()))
    }),
    metric!(Gauge "hosts_gone" [] "Hosts that are gone from the cluster for longer than a moment and were not fenced.", |sight, s| {
        s.add(&[], sight.seen.cluster.as_ref().map_or(0, |cluster| cluster.missed.len()))
    }),
    metric!(Gauge "hosts_unhealthy" [] "Hosts with a health check that fails, as the agent for compute hosts says.", |sight, s| {
        s.add(&[], sight.seen.cluster.as_ref().map_or(0, |cluster| cluster.unhealthy.len()))
    }),
    metric!(Gauge "register_entries" [] "Valid entries of the register.", |sight, s| {
        s.add(&[], sight.seen.cluster.as_ref().map_or(0, |cluster| cluster.entries))
    }),
    metric!(Gauge "register_answer" in "bytes" [] "The longest answer of the register, of 131072 bytes that fit one message; absent with etcd and without a cluster.", |sight, s| {
        sight.seen.cluster.as_ref().and_then(|cluster| cluster.longest_answer).map_or(Ok(()), |bytes| s.add(&[], bytes))
    }),
    metric!(Counter "register_errors" ["operation"] "How often the register could not be read or written.", |sight, s| {
        sight.register_errors.iter().try_for_each(|(operation, count)| s.count(&[("operation", operation)], *count))
    }),
    metric!(Gauge "marks" ["state"] "Marks in the journal by their state.", |sight, s| {
        State::ALL.into_iter().try_for_each(|state| {
            s.add(&[("state", state.as_str())], sight.figures.journal.marks.of(state))
        })
    }),
    metric!(Gauge "oldest_open_mark_age" in "seconds" [] "How long ago the host of the oldest open mark failed; 0 where none is open.", |sight, s| {
        s.real(&[], age(sight.figures.journal.oldest_open, sight.seen.now))
    }),
    metric!(Gauge "oldest_waiting_mark_age" in "seconds" [] "The same, without marks that are held by a pause, maintenance, a storm, a node attribute or probes.", |sight, s| {
        s.real(&[], age(sight.figures.journal.oldest_waiting, sight.seen.now))
    }),
    metric!(Gauge "marks_without_route" [] "Open marks that wait only for routes that are not configured.", |sight, s| {
        s.add(&[], sight.figures.journal.without_route)
    }),
    metric!(Gauge "unaccounted_records" [] "Fencings and sightings that are unaccounted for; `nova-host-alerter status` names each.", |sight, s| {
        s.add(&[], sight.seen.unaccounted.len())
    }),
    metric!(Gauge "holds" ["reason"] "Open marks by what holds them; a mark is counted for each of its reasons.", |sight, s| {
        let holds = &sight.figures.journal.holds;
        Hold::ALL.into_iter().map(Hold::as_str).try_for_each(|word| {
            s.add(&[("reason", word)], holds.get(word).map_or(0, |held| held.marks))
        })
    }),
    metric!(Gauge "deliveries" ["route", "state"] "Deliveries in the journal by route and state.", deliveries),
    metric!(Gauge "deliveries_in_chain" ["route"] "Held deliveries that wait for another step of their mark's chain.", |sight, s| {
        let waiting = &sight.figures.journal.in_chain;
        sight.seen.routes.iter().try_for_each(|route| {
            s.add(&[("route", &route.name)], waiting.get(&route.name).copied().unwrap_or_default())
        })
    }),
    metric!(Gauge "chains_exhausted" [] "Marks whose chain has no acknowledged step; the last step is retried forever.", |sight, s| {
        s.add(&[], sight.figures.journal.exhausted)
    }),
    metric!(Counter "attempts" ["route", "outcome"] "Attempts by outcome; `late`: the delivery had ended before the answer came.", |sight, s| {
        sight.attempts.iter().try_for_each(|((route, outcome), count)| {
            s.count(&[("route", route), ("outcome", outcome)], *count)
        })
    }),
    metric!(Histogram "fencing_to_acknowledgement" in "seconds" ["route"] "From the failure of a host to the route's acknowledgement; each mark once for each route.", |sight, s| {
        sight.acknowledgements.iter().try_for_each(|(route, histogram)| s.histogram(&[("route", route)], histogram))
    }),
    metric!(Gauge "route_required" ["route"] "1 where a mark stays open until this route acknowledges it.", |sight, s| {
        sight.seen.routes.iter().try_for_each(|route| s.add(&[("route", &route.name)], usize::from(route.required)))
    }),
    metric!(Gauge "route_endpoint" ["route", "state"] "1 for the state of the endpoint: `closed` gets marks; `open` gets one mark now and then as a probe; `parked` refuses every mark until somebody changes something.", |sight, s| {
        let pairs = sight.seen.routes.iter().flat_map(|route| STATES.map(|state| (route, state)));
        pairs.map(|(route, state)| ([("route", route.name.as_str()), ("state", state)], self::state(route) == state))
            .try_for_each(|(labels, is_it)| s.add(&labels, usize::from(is_it)))
    }),
    metric!(Gauge "route_trouble_age" in "seconds" ["route"] "How long the route has accepted nothing; 0 while it accepts.", |sight, s| {
        sight.seen.routes.iter().try_for_each(|route| {
            s.real(&[("route", &route.name)], age(route.trouble.as_ref().map(|trouble| trouble.since), sight.seen.now))
        })
    }),
    metric!(Gauge "group_hosts" ["group"] "Hosts of a group, without those that are skipped or in maintenance.", |sight, s| {
        groups(sight, s, |group| group.hosts)
    }),
    metric!(Gauge "group_hosts_down" ["group"] "Hosts of a group that count as down for its limit; 0 without a limit.", |sight, s| {
        groups(sight, s, |group| group.down)
    }),
    metric!(Gauge "group_marks" ["group"] "Open marks of a group's hosts.", |sight, s| groups(sight, s, |group| group.marks)),
    metric!(Gauge "group_storm" ["group"] "1 while too many hosts of the group are down at once, so that marks that were not sent yet are held.", |sight, s| {
        groups(sight, s, |group| u64::from(group.storm_since.is_some()))
    }),
    metric!(Gauge "journal_size" in "bytes" [] "The size of the journal with its log.", |sight, s| {
        s.add(&[], sight.figures.journal.bytes)
    }),
    metric!(Gauge "journal_used" in "bytes" [] "How much of the journal is in use; free space is used again.", |sight, s| {
        s.add(&[], sight.figures.journal.used)
    }),
    metric!(Gauge "journal_limit" in "bytes" [] "`max-size` of `[history]`: above so many bytes in use the oldest history is removed early.", |sight, s| {
        s.add(&[], sight.journal_limit)
    }),
    metric!(Gauge "journal_unwritable" [] "1 while the journal cannot be written; nothing is sent then.", |sight, s| {
        s.add(&[], usize::from(sight.seen.journal.is_some()))
    }),
    metric!(Gauge "journal_damaged_rows" [] "Damaged rows of the journal that nobody has repaired or ended; they are neither sent nor dropped.", |sight, s| {
        s.add(&[], sight.damaged)
    }),
    metric!(Gauge "counted_time" in "seconds" [] "When the journal was counted last, in seconds since 1970; 0 before the first time.", |sight, s| {
        s.real(&[], sight.figures.journal.at.map_or(0.0, seconds))
    }),
];

fn deliveries(sight: &Sight, samples: &mut Samples<'_>) -> fmt::Result {
    let counted = &sight.figures.journal;
    let configured = sight.seen.routes.iter().map(|route| (route.name.as_str(), ()));
    // Also routes that are not configured any more: their deliveries wait for a decision.
    let routes: BTreeMap<&str, ()> =
        configured.chain(counted.deliveries.keys().map(|route| (route.as_str(), ()))).collect();
    for route in routes.into_keys() {
        for state in State::ALL {
            let labels = [("route", route), ("state", state.as_str())];
            samples.add(&labels, counted.of_route(route).of(state))?;
        }
    }
    Ok(())
}

fn groups(sight: &Sight, samples: &mut Samples<'_>, value: fn(&GroupFigures) -> u64) -> fmt::Result {
    sight.figures.groups.iter().try_for_each(|group| samples.add(&[("group", &group.name)], value(group)))
}

/// Seconds since 1970.
fn seconds(at: Timestamp) -> f64 {
    at.since(Timestamp(0)).as_secs_f64()
}

fn age(since: Option<Timestamp>, now: Timestamp) -> f64 {
    since.map_or(Duration::ZERO, |since| now.since(since)).as_secs_f64()
}
