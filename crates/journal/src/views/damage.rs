//! Which of the damaged rows that were found are still there: a row that was repaired, removed, or ended by an operator
//! does not count.

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use crate::intake::fencings;
use crate::queue::delivery_row;
use crate::register::decisions;
use crate::store::digest::{Checked, Damage};
use crate::{Done, Journal, row};
use marks::id::{FencingId, MarkId, NoteId};

impl Journal {
    /// Those of these that are damaged now, in order. A row with an unreadable key counts: it cannot be searched for.
    ///
    /// # Errors
    /// As any read.
    pub fn still_damaged(&self, known: &[Damage]) -> Done<Vec<Damage>> {
        let mut all = Vec::new();
        for damage in known {
            if self.is_damaged(damage)? {
                all.push(damage.clone());
            }
        }
        Ok(all)
    }

    fn is_damaged(&self, damage: &Damage) -> Done<bool> {
        let key = damage.key.as_str();
        match damage.table {
            "mark" if MarkId::parse(key).is_ok() => {
                let sql = format!("SELECT {} FROM mark m WHERE m.id = ?1", row::COLUMNS);
                self.is_bad(&sql, &[key], row::decode)
            }
            "fencing" if FencingId::parse(key).is_ok() => {
                let sql = format!("SELECT {} FROM fencing f WHERE f.id = ?1", fencings::COLUMNS);
                self.is_bad(&sql, &[key], fencings::decode)
            }
            "decision" if NoteId::parse(key).is_ok() => {
                let sql = format!("SELECT {} FROM decision p WHERE p.id = ?1", decisions::COLUMNS);
                self.is_bad(&sql, &[key], decisions::decode)
            }
            "delivery" => match damage.delivery() {
                Some((mark, route)) if MarkId::parse(mark).is_ok() => self.is_delivery_bad(mark, route),
                _ => Ok(true),
            },
            _ => Ok(true),
        }
    }

    fn is_delivery_bad(&self, mark: &str, route: &str) -> Done<bool> {
        // An ended delivery is not sent any more, whatever its row has.
        let sql = format!(
            "SELECT {} FROM delivery d WHERE d.mark = ?1 AND d.route = ?2
             AND d.state NOT IN ('acknowledged', 'dismissed', 'cancelled')",
            delivery_row::COLUMNS
        );
        self.is_bad(&sql, &[mark, route], |row| delivery_row::decode(row, 0))
    }

    fn is_bad<T>(&self, sql: &str, key: &[&str], decode: impl Fn(&Row<'_>) -> Checked<T>) -> Done<bool> {
        let key = key.iter().map(|part| Value::Text((*part).to_owned()));
        Ok(!self.rows(sql, params_from_iter(key), decode)?.damaged.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    use crate::tests::{Home, NOW, marked};

    /// The broken variant keeps what was found once: the alert would stay until the daemon is restarted.
    #[test]
    fn what_is_repaired_or_ended_or_gone_is_no_damage() {
        let (home, mut journal) = Home::alerter();
        let id = marked(&mut journal, "c1", NOW);
        let change = |sql: &str| home.raw().execute(sql, [id.to_string()]).unwrap();
        change("UPDATE mark SET made_by = 'x' || made_by WHERE id = ?1");
        let mark = journal.open_marks().unwrap().damaged;
        assert_eq!(journal.still_damaged(&mark).unwrap(), mark);
        change("UPDATE mark SET made_by = substr(made_by, 2) WHERE id = ?1");
        assert_eq!(journal.still_damaged(&mark).unwrap(), []);
        change("UPDATE delivery SET body = x'00' WHERE mark = ?1");
        let delivery = journal.deliveries_of(id).unwrap().damaged;
        journal.due(NOW + Duration::from_secs(60), "recovery", 100, None).unwrap();
        assert_eq!((delivery.len(), journal.still_damaged(&delivery).unwrap()), (1, delivery.clone()));
        journal.dismiss(id, "by hand", "alice", NOW).unwrap();
        assert_eq!(journal.still_damaged(&delivery).unwrap(), []);
        let gone = Damage { table: "mark", key: MarkId::from(FencingId::generate()).to_string() };
        let unreadable = Damage { table: "mark", key: "?".into() };
        assert_eq!(journal.still_damaged(&[gone, unreadable.clone()]).unwrap(), [unreadable]);
    }
}
