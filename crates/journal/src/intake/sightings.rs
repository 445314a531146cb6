//! Sightings in the journal: what other witnesses reported of a fencing, with the mark that it belongs to.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Params, Row, Transaction, params_from_iter};

use crate::history::{self, ALERTER, NewHistory};
use crate::intake::folds;
use crate::store::digest::{Checked, Rows, checked, of_row, text};
use crate::{Done, Journal, Wrote};
use marks::host::HostName;
use marks::id::{MarkId, OperationId};
use marks::rule::Rule;
use marks::sighting::{Sighting, Witness};
use marks::time::Timestamp;

pub(crate) const COLUMNS: &str =
    "s.key, s.node, s.witness, s.operation, s.at, s.by_human, s.mark, s.digest, s.rule";

/// A sighting with its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSighting {
    /// The sighting.
    pub sighting: Sighting,
    /// The mark that it belongs to; `None` if it was set aside.
    pub mark: Option<MarkId>,
    /// The rule for that, if its word is known.
    pub rule: Option<Rule>,
}

impl Journal {
    /// Stores a sighting with its mark; without one it is set aside. `why` goes into the history. Returns whether it is
    /// new.
    ///
    /// # Errors
    /// As any write.
    pub fn keep_sighting(
        &mut self,
        sighting: &Sighting,
        (mark, rule): (Option<MarkId>, Rule),
        why: &str,
        now: Timestamp,
    ) -> Done<bool> {
        self.write(|transaction| {
            if load(transaction, sighting)?.is_some() {
                return Ok(false);
            }
            insert(transaction, sighting, (mark, rule))?;
            let event = if mark.is_some() { "sighted" } else { "set-aside" };
            let detail = format!("{}: {why}", says(sighting));
            let row = NewHistory::new(now, event, &detail, ALERTER);
            history::append(transaction, &NewHistory { mark, node: Some(&sighting.node), ..row })?;
            Ok(true)
        })
    }

    /// Whether a sighting is stored here, with a mark or set aside. One with a damaged row is not: it is stored again.
    ///
    /// # Errors
    /// As any read.
    pub fn has_sighting(&self, sighting: &Sighting) -> Done<bool> {
        Ok(!self.sightings_that("s.key = ?1", [sighting.key()])?.sound.is_empty())
    }

    /// Every sighting of one host, with any end, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn sightings_of_host(&self, node: &HostName) -> Done<Rows<KeptSighting>> {
        self.sightings_that("s.node = ?1 COLLATE NOCASE", [node.as_str()])
    }

    /// The sightings `s` that meet a condition in SQL, oldest first.
    pub(crate) fn sightings_that(
        &self,
        condition: &str,
        parameters: impl Params,
    ) -> Done<Rows<KeptSighting>> {
        let sql = format!("SELECT {COLUMNS} FROM sighting s WHERE {condition} ORDER BY s.at, s.key");
        self.rows(&sql, parameters, decode)
    }

    /// The sightings of one mark, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn sightings_of(&self, mark: MarkId) -> Done<Rows<Sighting>> {
        let rows = self.sightings_that("s.mark = ?1", [mark.to_string()])?;
        Ok(Rows { sound: rows.sound.into_iter().map(|kept| kept.sighting).collect(), damaged: rows.damaged })
    }

    /// Removes sightings older than `before` that belong to a settled mark or were set aside. Returns how many. `before`
    /// must be beyond the horizon: a removed sighting is new again if Pacemaker still reports it.
    ///
    /// # Errors
    /// As any write.
    pub fn forget_sightings(&mut self, before: Timestamp, now: Timestamp) -> Done<usize> {
        let over = "s.at < ?1 AND (s.mark IS NULL
             OR EXISTS (SELECT 1 FROM mark m WHERE m.id = s.mark AND m.settlement IS NOT NULL))";
        let over = self.sightings_that(over, [before.0])?.sound;
        if over.is_empty() {
            return Ok(0);
        }
        self.write(|transaction| {
            let mut forget = transaction.prepare("DELETE FROM sighting WHERE key = ?1")?;
            for kept in &over {
                forget.execute([kept.sighting.key()])?;
            }
            let detail = format!("{} old sightings were removed", over.len());
            let row = NewHistory::new(now, "forgotten", &detail, ALERTER);
            history::append(transaction, &row)?;
            Ok(over.len())
        })
    }
}

/// Stores the sighting that a mark is made of.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    sighting: &Sighting,
    (mark, rule): (Option<MarkId>, Rule),
) -> rusqlite::Result<()> {
    // A damaged row under this key is replaced.
    let kept = KeptSighting { sighting: sighting.clone(), mark, rule: Some(rule) };
    let mut columns = columns(&kept);
    let digest = of_row("sighting", &columns);
    columns.extend([text(rule.as_str()), digest.into()]);
    // A damaged row under this key is replaced.
    let sql = "INSERT OR REPLACE INTO sighting VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    transaction.prepare_cached(sql)?.execute(params_from_iter(columns)).map(drop)
}

/// The witness of a host's fencing, for people.
pub(crate) fn says(sighting: &Sighting) -> String {
    let witness = match sighting.witness {
        Witness::Alert(operation) => format!("Pacemaker's alert {operation}"),
        Witness::History => "Pacemaker's fencing history".to_owned(),
        Witness::NodeFenced => "node_fenced in the CIB".to_owned(),
    };
    let how = if sighting.by_human { "was confirmed as fenced by hand" } else { "was fenced" };
    format!("{witness} reports that {} {how}", sighting.node)
}

fn load(transaction: &Transaction<'_>, sighting: &Sighting) -> Wrote<Option<KeptSighting>> {
    let sql = format!("SELECT {COLUMNS} FROM sighting s WHERE s.key = ?1");
    let read = transaction.query_row(&sql, [sighting.key()], |row| Ok(decode(row))).optional()?;
    Ok(read.and_then(Result::ok))
}

fn operation(sighting: &Sighting) -> Option<String> {
    match sighting.witness {
        Witness::Alert(operation) => Some(operation.to_string()),
        Witness::History | Witness::NodeFenced => None,
    }
}

/// Without the rule, which explains and decides nothing.
fn columns(KeptSighting { sighting, mark, .. }: &KeptSighting) -> Vec<Value> {
    vec![
        sighting.key().into(),
        text(sighting.node.as_str()),
        text(sighting.source().as_str()),
        operation(sighting).into(),
        sighting.at.0.into(),
        sighting.by_human.into(),
        mark.map(|mark| mark.to_string()).into(),
    ]
}

pub(crate) fn decode(row: &Row<'_>) -> Checked<KeptSighting> {
    let is_its_key = |kept: &KeptSighting| row.get(0).ok() == Some(kept.sighting.key());
    checked(row, ("sighting", 7), decode_unchecked(row).filter(is_its_key), columns)
}

fn decode_unchecked(row: &Row<'_>) -> Option<KeptSighting> {
    let mark: Option<String> = row.get(6).ok()?;
    let mark = mark.map(|id| MarkId::parse(&id)).transpose().ok()?;
    let sighting = Sighting {
        node: HostName::parse(&row.get::<_, String>(1).ok()?).ok()?,
        witness: decode_witness(row)?,
        at: Timestamp(row.get(4).ok()?),
        by_human: row.get(5).ok()?,
    };
    Some(KeptSighting { sighting, mark, rule: folds::rule(row, 8) })
}

fn decode_witness(row: &Row<'_>) -> Option<Witness> {
    let word: String = row.get(2).ok()?;
    let operation: Option<String> = row.get(3).ok()?;
    match (word.as_str(), operation) {
        ("alert", Some(id)) => Some(Witness::Alert(OperationId::parse(&id).ok()?)),
        ("history", None) => Some(Witness::History),
        ("node-fenced", None) => Some(Witness::NodeFenced),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Role;
    use crate::tests::{Home, NOW, events, marked};

    const JOINED: Rule = Rule::SameConnection;
    const OPERATION: &str = "e19eab25-6556-4644-89e9-f9bf9b151b87";

    fn sighting(node: &str, witness: Witness, at: Timestamp) -> Sighting {
        Sighting { node: HostName::parse(node).unwrap(), witness, at, by_human: false }
    }

    fn all_witnesses() -> [Witness; 3] {
        [Witness::Alert(OperationId::parse(OPERATION).unwrap()), Witness::History, Witness::NodeFenced]
    }

    #[test]
    fn every_kind_of_sighting_is_kept_once_with_its_mark() {
        let (home, mut journal, mark) = Home::marked();
        let kept: Vec<Sighting> = all_witnesses()
            .into_iter()
            .zip(1..)
            .map(|(witness, second)| {
                let at = NOW + Duration::from_secs(second);
                Sighting { by_human: second == 2, ..sighting("compute1", witness, at) }
            })
            .collect();
        for sighting in &kept {
            assert!(!journal.has_sighting(sighting).unwrap());
            assert!(journal.keep_sighting(sighting, (Some(mark), JOINED), "the same outage", NOW).unwrap());
            assert!(!journal.keep_sighting(sighting, (None, Rule::NotCovered), "seen again", NOW).unwrap());
            assert!(journal.has_sighting(sighting).unwrap());
        }
        assert_eq!(home.open(Role::Reader).sightings_of(mark).unwrap().sound, kept);
        assert_eq!(events(&journal, mark), ["marked", "sighted", "sighted", "sighted"]);
        let newest = journal.outages_of(&kept[0].node).unwrap()[0].newest;
        assert_eq!(newest, NOW + Duration::from_secs(3));
    }

    #[test]
    fn a_damaged_sighting_is_not_believed_and_kept_again_when_it_is_seen_again() {
        let (home, mut journal, mark) = Home::marked();
        let seen = sighting("compute1", Witness::History, NOW);
        for damage in ["at = at + 1000", "by_human = 1", "mark = NULL", "witness = 'node-fenced'"] {
            journal.keep_sighting(&seen, (Some(mark), JOINED), "the same outage", NOW).unwrap();
            home.raw().execute(&format!("UPDATE sighting SET {damage}"), []).unwrap();
            assert!(!journal.has_sighting(&seen).unwrap(), "{damage}");
            assert!(journal.sightings_of(mark).unwrap().sound.is_empty(), "{damage}");
        }
        assert!(journal.keep_sighting(&seen, (Some(mark), JOINED), "the same outage", NOW).unwrap());
        assert_eq!(journal.sightings_of(mark).unwrap().sound, [seen]);
    }

    #[test]
    fn only_what_is_over_and_old_is_forgotten() {
        let (home, mut journal, open) = Home::marked();
        let ended = marked(&mut journal, "compute2", NOW);
        journal.dismiss(ended, "no", "alice", NOW).unwrap();
        let old = |node| sighting(node, Witness::NodeFenced, NOW);
        let young = sighting("compute2", Witness::NodeFenced, NOW + Duration::from_secs(9));
        journal.keep_sighting(&old("compute1"), (Some(open), JOINED), "", NOW).unwrap();
        journal.keep_sighting(&old("compute2"), (Some(ended), JOINED), "", NOW).unwrap();
        journal.keep_sighting(&old("compute3"), (None, Rule::NotCovered), "", NOW).unwrap();
        journal.keep_sighting(&young, (Some(ended), JOINED), "", NOW).unwrap();
        let damaged = old("compute4");
        journal.keep_sighting(&damaged, (None, Rule::NotCovered), "", NOW).unwrap();
        let raw = home.raw();
        raw.execute("UPDATE sighting SET digest = x'00' WHERE node = 'compute4'", []).unwrap();
        let before = NOW + Duration::from_secs(5);
        assert_eq!(journal.forget_sightings(before, NOW).unwrap(), 2);
        assert_eq!(journal.forget_sightings(before, NOW).unwrap(), 0);
        assert!(journal.has_sighting(&old("compute1")).unwrap() && journal.has_sighting(&young).unwrap());
        assert!(!journal.has_sighting(&old("compute2")).unwrap());
        assert!(!journal.has_sighting(&old("compute3")).unwrap());
        let left: i64 = raw.query_row("SELECT count(*) FROM sighting", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 3, "a damaged row is never dropped");
    }
}
