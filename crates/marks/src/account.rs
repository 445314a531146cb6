//! The end of each fencing and each sighting (design, section 6, accounting). Pure: no I/O, and the time is an argument.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::host::HostName;
use crate::id::MarkId;
use crate::mark::{Doubt, Lack};
use crate::rule::Rule;
use crate::time::Timestamp;

/// How long a wait may last beyond its end: the history is read every ten seconds.
pub const LATE: Duration = Duration::from_secs(30);

/// A wait, by a monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When the record was first seen.
    pub since: Instant,
    /// How long it may wait from then on.
    pub lasts: Duration,
}

/// What holds the mark of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It has no proof yet.
    Doubt(Doubt),
    /// It lacks this.
    Lack(Lack),
    /// Its row is damaged: it is never sent and never dropped.
    Damaged,
}

/// What the journal has under a mark's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// The host; `None` if the row is damaged.
    pub node: Option<HostName>,
    /// What holds it, if it is open and held.
    pub held: Option<Held>,
}

/// What is known of a record's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// A row says that this mark took it in, and by which rule; with the mark of that id.
    Joined(MarkId, Option<Rule>, Option<Marked>),
    /// A row says that it was set aside, and by which rule.
    Kept(Option<Rule>),
    /// Nothing is stored: a rule sets it aside at each poll.
    Aside(Rule),
    /// Nothing is stored: it waits.
    Waits(Waiting),
    /// Nothing is stored: the mark that it would make exists already, and its row is damaged.
    Blocked(MarkId),
    /// Its row is damaged.
    Damaged,
    /// Nothing is known.
    Nothing,
}

/// A fencing or a sighting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key that distinguishes it from all others.
    pub key: String,
    /// The host; `None` if its row is damaged.
    pub node: Option<HostName>,
    /// When it says that the host was fenced.
    pub at: Option<Timestamp>,
    /// What is known of its end.
    pub trace: Trace,
}

/// The one end of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A mark of its own.
    Own(MarkId),
    /// It joined a mark.
    Joined(MarkId, Rule),
    /// Its mark is held.
    Held(MarkId, Held),
    /// A rule set it aside.
    SetAside(Rule),
    /// It waits until then.
    Waiting(Instant),
}

/// Why a record has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// The journal says that a mark took it in, but has no such mark.
    MarkGone,
    /// That mark belongs to another host.
    OtherHost,
    /// There is no rule for why it was taken in or set aside.
    NoRule,
    /// It waits for longer than it may.
    Overdue,
    /// Its row is damaged.
    Damaged,
    /// Nothing was decided about it. This includes a newer daemon's word that this program does not know.
    #[serde(other)]
    Undecided,
}

impl Gap {
    /// A word for machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MarkGone => "mark-gone",
            Self::OtherHost => "other-host",
            Self::NoRule => "no-rule",
            Self::Overdue => "overdue",
            Self::Damaged => "damaged",
            Self::Undecided => "undecided",
        }
    }
}

/// The end of a record.
///
/// # Errors
/// It has none.
pub fn end_of(record: &Record, now: Instant) -> Result<End, Gap> {
    match &record.trace {
        Trace::Joined(mark, rule, found) => {
            let rule = rule.filter(|rule| rule.has_mark()).ok_or(Gap::NoRule)?;
            end_in(record, (*mark, rule), found.as_ref().ok_or(Gap::MarkGone)?)
        }
        Trace::Kept(rule) => aside(rule.ok_or(Gap::NoRule)?),
        Trace::Aside(rule) => aside(*rule),
        Trace::Waits(waiting) => waits(waiting, now),
        Trace::Blocked(mark) => Ok(End::Held(*mark, Held::Damaged)),
        Trace::Damaged => Err(Gap::Damaged),
        Trace::Nothing => Err(Gap::Undecided),
    }
}

fn end_in(record: &Record, (mark, rule): (MarkId, Rule), found: &Marked) -> Result<End, Gap> {
    match (found.held, rule) {
        _ if found.node.is_some() && found.node != record.node => Err(Gap::OtherHost),
        (Some(held), _) => Ok(End::Held(mark, held)),
        (None, Rule::Made) => Ok(End::Own(mark)),
        (None, rule) => Ok(End::Joined(mark, rule)),
    }
}

fn aside(rule: Rule) -> Result<End, Gap> {
    if rule.has_mark() { Err(Gap::NoRule) } else { Ok(End::SetAside(rule)) }
}

fn waits(waiting: &Waiting, now: Instant) -> Result<End, Gap> {
    let until = waiting.since + waiting.lasts;
    if now > until + LATE { Err(Gap::Overdue) } else { Ok(End::Waiting(until)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::FencingId;

    fn host(name: &str) -> HostName {
        HostName::parse(name).unwrap()
    }

    fn record(trace: Trace) -> Record {
        Record { key: "f.1".into(), node: Some(host("compute1")), at: Some(Timestamp(0)), trace }
    }

    fn marked(node: &str, held: Option<Held>) -> Option<Marked> {
        Some(Marked { node: Some(host(node)), held })
    }

    fn joined(rule: Option<Rule>, found: Option<Marked>) -> (MarkId, Record) {
        let mark = FencingId::generate().into();
        (mark, record(Trace::Joined(mark, rule, found)))
    }

    #[test]
    fn each_way_that_a_record_can_go_is_an_end() {
        let now = Instant::now();
        let (mark, own) = joined(Some(Rule::Made), marked("Compute1", None));
        assert_eq!(end_of(&own, now), Ok(End::Own(mark)), "host names have no case");
        let held = Held::Doubt(Doubt::Unproven);
        let (mark, doubted) = joined(Some(Rule::Made), marked("compute1", Some(held)));
        assert_eq!(end_of(&doubted, now), Ok(End::Held(mark, held)));
        let damaged = Some(Marked { node: None, held: Some(Held::Damaged) });
        let (mark, of_damaged) = joined(Some(Rule::AlreadyDown), damaged);
        assert_eq!(end_of(&of_damaged, now), Ok(End::Held(mark, Held::Damaged)));
        for rule in Rule::ALL {
            let (mark, joined) = joined(Some(rule), marked("compute1", None));
            let aside =
                [Trace::Aside(rule), Trace::Kept(Some(rule))].map(|trace| end_of(&record(trace), now));
            match rule {
                Rule::Made => assert_eq!(end_of(&joined, now), Ok(End::Own(mark))),
                rule if rule.has_mark() => assert_eq!(end_of(&joined, now), Ok(End::Joined(mark, rule))),
                _ => assert_eq!(end_of(&joined, now), Err(Gap::NoRule), "a rule without a mark"),
            }
            let wanted = if rule.has_mark() { Err(Gap::NoRule) } else { Ok(End::SetAside(rule)) };
            assert!(aside.iter().all(|end| *end == wanted), "{rule:?}");
        }
    }

    #[test]
    fn what_has_no_end_is_found() {
        let now = Instant::now();
        let gap = |record: &Record| end_of(record, now).unwrap_err();
        assert_eq!(gap(&joined(Some(Rule::NearByClock), None).1), Gap::MarkGone);
        assert_eq!(gap(&joined(Some(Rule::Made), marked("compute2", None)).1), Gap::OtherHost);
        assert_eq!(gap(&joined(None, marked("compute1", None)).1), Gap::NoRule);
        assert_eq!(gap(&record(Trace::Kept(None))), Gap::NoRule);
        assert_eq!(gap(&record(Trace::Damaged)), Gap::Damaged);
        assert_eq!(gap(&record(Trace::Nothing)), Gap::Undecided);
    }

    /// The broken variant waits forever: nobody would notice a record with a future date.
    #[test]
    fn a_wait_ends_by_ones_own_clock() {
        let since = Instant::now();
        let waiting = Waiting { since, lasts: Duration::from_secs(10) };
        let after = |time| end_of(&record(Trace::Waits(waiting)), since + time);
        let until = since + Duration::from_secs(10);
        assert_eq!(after(Duration::ZERO), Ok(End::Waiting(until)));
        assert_eq!(after(Duration::from_secs(10) + LATE), Ok(End::Waiting(until)));
        assert_eq!(after(Duration::from_secs(11) + LATE), Err(Gap::Overdue));
    }

    fn any_trace(since: Instant) -> impl Strategy<Value = Trace> {
        let rule = || prop::option::of(prop::sample::select(Rule::ALL.to_vec()));
        let held = prop::option::of(prop::sample::select(vec![Held::Lack(Lack::Fqdn), Held::Damaged]));
        let found = prop::option::of((any::<bool>(), held).prop_map(|(is_own, held)| Marked {
            node: Some(host(if is_own { "compute1" } else { "compute2" })),
            held,
        }));
        let mark = || MarkId::from(FencingId::generate());
        prop_oneof![
            (rule(), found).prop_map(move |(rule, found)| Trace::Joined(mark(), rule, found)),
            rule().prop_map(Trace::Kept),
            prop::sample::select(Rule::ALL.to_vec()).prop_map(Trace::Aside),
            (0..200_u64).prop_map(move |seconds| {
                let lasts = Duration::from_secs(seconds);
                Trace::Waits(Waiting { since, lasts })
            }),
            Just(()).prop_map(move |()| Trace::Blocked(mark())),
            Just(Trace::Damaged),
            Just(Trace::Nothing),
        ]
    }

    /// Whether what is known of a record is consistent.
    fn is_whole(record: &Record, now: Instant) -> bool {
        match &record.trace {
            Trace::Joined(_, rule, found) => {
                rule.is_some_and(Rule::has_mark)
                    && found.as_ref().is_some_and(|found| found.node == record.node)
            }
            Trace::Kept(rule) => rule.is_some_and(|rule| !rule.has_mark()),
            Trace::Aside(rule) => !rule.has_mark(),
            Trace::Waits(waiting) => now <= waiting.since + waiting.lasts + LATE,
            Trace::Blocked(_) => true,
            Trace::Damaged | Trace::Nothing => false,
        }
    }

    proptest! {
        /// A record has one end exactly if what is known of it is consistent; otherwise the gap is found.
        #[test]
        fn a_record_has_one_end_or_is_found(
            traces in prop::collection::vec(any_trace(Instant::now()), 0..40),
            late in 0..400_u64,
        ) {
            let now = Instant::now() + Duration::from_secs(late);
            for trace in traces {
                let one = record(trace);
                let end = end_of(&one, now);
                prop_assert_eq!(end.is_ok(), is_whole(&one, now), "{:?}: {:?}", one, end);
            }
        }
    }
}
