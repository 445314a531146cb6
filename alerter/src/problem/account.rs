//! Fencings and sightings of which nothing shows what became of them. Pure.

use std::collections::BTreeMap;

use marks::account::Gap;

use super::{Kind, Problem};
use crate::intake::account::Unaccounted;
use crate::words::{named, utc};

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

#[cfg(test)]
mod tests {
    use marks::time::Timestamp;

    use super::*;
    use crate::problem::Level;

    fn record(record: &str, host: Option<&str>, at: i64, kind: Gap) -> Unaccounted {
        Unaccounted {
            record: record.to_owned(),
            host: host.map(str::to_owned),
            at: Some(Timestamp(at)),
            kind,
        }
    }

    /// The broken variant says nothing where all that is known of a fencing is that it is gone.
    #[test]
    fn a_gap_is_shown_with_host_record_and_time() {
        assert!(of(&[], "").is_empty(), "it is silent where everything adds up");
        let gaps = [
            record("f.2", Some("compute2"), 1_800_000_000_000, Gap::MarkGone),
            record("f.1", Some("compute1"), 1_799_999_000_000, Gap::MarkGone),
            record("alert compute3 1", Some("compute3"), 1_800_000_000_000, Gap::Overdue),
        ];
        let all = of(&gaps, "`the log`");
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].level, all[0].kind), (Level::Critical, Kind::Unaccounted));
        assert_eq!(all[0].hosts, ["compute1", "compute2"]);
        assert_eq!(all[0].since, Some(Timestamp(1_799_999_000_000)));
        let what = "2 record(s) of fencings of compute1, compute2 are unaccounted for, the oldest of 2027-01-15 07:43:20Z: the mark of the record is missing from the journal (f.2)";
        assert_eq!(all[0].what, what);
        assert!(all[0].then.contains("`nova-host-alerter show compute1`"), "{}", all[0].then);
        assert!(all[1].what.contains("(alert compute3 1)") && all[1].then.ends_with("`the log`"));
        let nobody = of(&[record("sighting 2", None, 0, Gap::Damaged)], "");
        let what = &nobody[0].what;
        assert!(what.starts_with("1 record(s) of fencings of an unknown host"), "{what}");
    }
}
