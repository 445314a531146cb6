//! The fencings and sightings of this journal, each with what is known of its end: the data of the account.

use std::collections::HashMap;

use rusqlite::Row;

use crate::intake::fencings;
use crate::intake::folds::rule;
use crate::intake::sightings::{self, KeptSighting};
use crate::store::digest::{Checked, Damage, printable_key};
use crate::{Done, Journal};
use marks::account::{Held, Marked, Record, Trace};
use marks::fencing::Fencing;
use marks::id::{FencingId, MarkId};
use marks::mark::MarkRow;
use marks::rule::Rule;
use marks::time::Timestamp;

impl Journal {
    /// The fencings and sightings of `since` or later, and every fencing without an end; of these, the ones that
    /// `is_wanted`.
    ///
    /// # Errors
    /// As any read.
    pub fn records(&self, since: Timestamp, is_wanted: impl Fn(&Record) -> bool) -> Done<Vec<Record>> {
        let mut marks = Marks { journal: self, known: HashMap::new() };
        let mut records = Vec::new();
        let mut take = |record| records.extend(Some(record).filter(&is_wanted));
        // A record counts as young if either clock says so.
        let sql = format!(
            "SELECT {}, g.mark, g.rule, g.fencing IS NOT NULL FROM fencing f LEFT JOIN folded g
               ON g.fencing = f.id AND g.digest = fold_digest(g.fencing, g.mark)
             WHERE f.asked_at >= ?1 OR f.committed_at >= ?1 OR g.fencing IS NULL",
            fencings::COLUMNS
        );
        self.each(&sql, [since.0], |row| {
            take(folded(row).map_or_else(|damage| Ok(damaged(damage)), |one| marks.of_fencing(one))?);
            Ok(())
        })?;
        let sql = format!("SELECT {} FROM sighting s WHERE s.at >= ?1", sightings::COLUMNS);
        self.each(&sql, [since.0], |row| {
            let kept = sightings::decode(row);
            take(kept.map_or_else(|damage| Ok(damaged(damage)), |one| marks.of_sighting(one))?);
            Ok(())
        })?;
        Ok(records)
    }
}

/// The key of a fencing in the register, which distinguishes it from every other record.
pub fn key_of(fencing: FencingId) -> String {
    format!("f.{fencing}")
}

fn damaged(damage: Damage) -> Record {
    Record { key: format!("{} {}", damage.table, damage.key), node: None, at: None, trace: Trace::Damaged }
}

/// A row on a record's end: the mark, if any, and the rule, if its word is known.
type End = (Option<MarkId>, Option<Rule>);

/// A fencing with its end; `None` if nothing was decided about it.
fn folded(row: &Row<'_>) -> Checked<(Fencing, Option<End>)> {
    let fencing = fencings::decode(row)?;
    let damage = |_| Damage { table: "folded", key: printable_key(row) };
    if !row.get::<_, bool>(15).map_err(damage)? {
        return Ok((fencing, None));
    }
    let mark = row.get::<_, Option<String>>(13).map_err(damage)?;
    let mark = mark.map(|id| MarkId::parse(&id)).transpose();
    let mark = mark.map_err(|_| Damage { table: "folded", key: printable_key(row) })?;
    Ok((fencing, Some((mark, rule(row, 14)))))
}

/// How many marks are remembered, since a mark has several records: all marks would be too many.
const REMEMBERED: usize = 1000;

/// The marks by id.
struct Marks<'j> {
    journal: &'j Journal,
    known: HashMap<MarkId, Option<Marked>>,
}

impl Marks<'_> {
    fn of_fencing(&mut self, (fencing, end): (Fencing, Option<End>)) -> Done<Record> {
        let trace = end.map_or(Ok(Trace::Nothing), |end| self.trace(end))?;
        let (node, at) = (Some(fencing.node), Some(fencing.asked_at));
        Ok(Record { key: key_of(fencing.id), node, at, trace })
    }

    fn of_sighting(&mut self, kept: KeptSighting) -> Done<Record> {
        let KeptSighting { sighting, mark, rule } = kept;
        let (key, trace) = (sighting.key(), self.trace((mark, rule))?);
        Ok(Record { key, node: Some(sighting.node), at: Some(sighting.at), trace })
    }

    fn trace(&mut self, (mark, rule): End) -> Done<Trace> {
        let Some(mark) = mark else { return Ok(Trace::Kept(rule)) };
        let found = match self.known.get(&mark) {
            Some(known) => known.clone(),
            None => self.journal.find_mark(mark)?.map(marked),
        };
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(mark, found.clone());
        Ok(Trace::Joined(mark, rule, found))
    }
}

fn marked(row: Checked<MarkRow>) -> Marked {
    let Ok(row) = row else { return Marked { node: None, held: Some(Held::Damaged) } };
    let held = row.standing.doubt().map(Held::Doubt).or_else(|| row.lacks().next().map(Held::Lack));
    Marked { held: held.filter(|_| row.settled.is_none()), node: Some(row.node) }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::Role;
    use crate::tests::{Home, NOW, fencing, marked};
    use marks::account::{End, Gap, end_of};
    use marks::host::HostName;
    use marks::sighting::{Sighting, Witness};

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn ends(journal: &Journal) -> Vec<Result<End, Gap>> {
        let records = journal.records(NOW - DAY, |_| true).unwrap();
        records.iter().map(|record| end_of(record, Instant::now())).collect()
    }

    fn sighting(node: &str) -> Sighting {
        let node = HostName::parse(node).unwrap();
        Sighting { node, witness: Witness::History, at: NOW, by_human: false }
    }

    /// One of each: a mark of its own, a joined fencing, a joined sighting, and one of each set aside.
    fn furnished(home: &Home) -> (Journal, MarkId) {
        let mut journal = home.open(Role::Alerter);
        let mark = marked(&mut journal, "compute1", NOW);
        for node in ["compute1", "ctl2"] {
            let again = Fencing { asked_at: NOW, ..fencing(node) };
            journal.append_fencing(&again).unwrap();
            if node == "ctl2" {
                journal.set_aside(&again, (Rule::NotCovered, "it is no compute host"), NOW).unwrap();
            } else {
                journal.add_to_mark(&again, (mark, Rule::SameConnection), NOW).unwrap();
            }
        }
        let joined = (Some(mark), Rule::NearByClock);
        journal.keep_sighting(&sighting("compute1"), joined, "its outage has a mark", NOW).unwrap();
        let aside = (None, Rule::Past);
        journal.keep_sighting(&sighting("compute9"), aside, "it is too old", NOW).unwrap();
        (journal, mark)
    }

    #[test]
    fn each_record_of_a_journal_shows_its_end() {
        let home = Home::new();
        let (journal, mark) = furnished(&home);
        let found = ends(&journal);
        for end in [
            End::Own(mark),
            End::Joined(mark, Rule::SameConnection),
            End::Joined(mark, Rule::NearByClock),
            End::SetAside(Rule::NotCovered),
            End::SetAside(Rule::Past),
        ] {
            assert_eq!(found.iter().filter(|one| **one == Ok(end.clone())).count(), 1, "{end:?}");
        }
        assert_eq!(found.len(), 5);
    }

    /// Changes by hand, or by a fault of ours. The broken variant trusts each row by itself.
    #[test]
    fn an_end_that_is_taken_away_is_found() {
        for (what, gap, count) in [
            ("DELETE FROM mark", Gap::MarkGone, 3),
            ("DELETE FROM folded", Gap::Undecided, 3),
            ("UPDATE folded SET rule = ''", Gap::NoRule, 3),
            ("UPDATE folded SET rule = NULL", Gap::NoRule, 3),
            ("UPDATE folded SET mark = NULL", Gap::Undecided, 2),
            ("UPDATE sighting SET rule = 'near-by-clock'", Gap::NoRule, 1),
            ("UPDATE sighting SET digest = x'00'", Gap::Damaged, 2),
        ] {
            let home = Home::new();
            drop(furnished(&home));
            let raw = home.raw();
            raw.pragma_update(None, "foreign_keys", false).unwrap();
            raw.execute_batch(what).unwrap();
            let found = ends(&home.open(Role::Reader));
            let gaps: Vec<Gap> = found.into_iter().filter_map(Result::err).collect();
            assert_eq!(gaps, vec![gap; count], "{what}");
        }
    }

    /// A fencing without a decision is read however old it is.
    #[test]
    fn what_is_old_is_read_only_where_it_has_no_end() {
        let (_home, mut journal) = Home::alerter();
        let old = Fencing { asked_at: NOW - DAY * 2, committed_at: NOW - DAY * 2, ..fencing("compute1") };
        journal.append_fencing(&old).unwrap();
        assert_eq!(ends(&journal), [Err(Gap::Undecided)]);
        journal.pass_over(&old, "it is past", NOW).unwrap();
        assert_eq!(ends(&journal), []);
    }
}
