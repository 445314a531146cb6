//! Fencings that another controller saw, read from the register. They are never this controller's own proof.

use rusqlite::Transaction;

use crate::history::{self, ALERTER, NewHistory};
use crate::intake::fencings;
use crate::store::digest::{text, with_digest};
use crate::{Done, Journal, Writing, Wrote};
use marks::fencing::Fencing;
use marks::id::FencingId;
use marks::time::Timestamp;

impl Journal {
    /// Appends the register's fencings that are not here yet. Returns how many.
    ///
    /// # Errors
    /// As any write; then none of them is here.
    pub fn append_imported(&mut self, fencings: &[Fencing], now: Timestamp) -> Done<usize> {
        if fencings.is_empty() {
            return Ok(0);
        }
        self.all_folded.set(None);
        self.write_at(now, |writing| {
            let mut count = 0;
            for fencing in fencings {
                if !is_here(&writing, fencing.id)? {
                    writing.import(fencing)?;
                    count += 1;
                }
            }
            Ok(count)
        })
    }

    /// Whether a fencing was read from the register. With a damaged row it is: in doubt it is not this controller's own.
    ///
    /// # Errors
    /// As any read.
    pub fn is_imported(&self, fencing: FencingId) -> Done<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM imported WHERE fencing = ?1)";
        self.sqlite(self.connection.query_row(sql, [fencing.to_string()], |row| row.get(0)))
    }
}

fn is_here(transaction: &Transaction<'_>, fencing: FencingId) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM fencing WHERE id = ?1)";
    transaction.prepare_cached(sql)?.query_row([fencing.to_string()], |row| row.get(0))
}

impl Writing<'_> {
    fn import(self, fencing: &Fencing) -> Wrote {
        fencings::insert(&self, fencing)?;
        let row = with_digest("imported", vec![text(&fencing.id.to_string())]);
        self.prepare_cached("INSERT INTO imported VALUES (?1, ?2)")?.execute(row)?;
        let detail =
            format!("{} was fenced, seen by {}, read from the register", fencing.node, fencing.seen_by);
        let row =
            NewHistory { node: Some(&fencing.node), ..NewHistory::new(self.now, "read", &detail, ALERTER) };
        history::append(&self, &row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HistoryFilter;
    use crate::tests::{Home, NOW, fencing};

    #[test]
    fn what_another_controller_saw_is_taken_over_once() {
        let (_home, mut journal) = Home::alerter();
        let own = fencing("compute1");
        let other = Fencing { seen_by: "ctl2".into(), ..fencing("compute2") };
        journal.append_fencing(&own).unwrap();
        let register = [own.clone(), other.clone()];
        assert_eq!(journal.append_imported(&register, NOW).unwrap(), 1);
        assert_eq!(journal.append_imported(&register, NOW).unwrap(), 0);
        assert!(journal.is_imported(other.id).unwrap());
        assert!(!journal.is_imported(own.id).unwrap(), "the agent wrote it here");
        let mut unfolded = journal.unfolded_fencings().unwrap().sound;
        unfolded.sort_by_key(|fencing| fencing.id);
        assert_eq!(unfolded, register);
        let history = journal.history(&HistoryFilter::default()).unwrap().sound;
        assert_eq!(history[1].event, "read");
        assert_eq!(history[1].detail, "compute2 was fenced, seen by ctl2, read from the register");
    }

    #[test]
    fn the_agent_does_not_publish_what_came_from_the_register() {
        let (_home, mut journal) = Home::alerter();
        let own = fencing("compute1");
        journal.append_fencing(&own).unwrap();
        journal.append_imported(&[fencing("compute2")], NOW).unwrap();
        assert_eq!(journal.unpublished(NOW).unwrap().sound, [own]);
    }

    /// A flipped byte must not make another controller's fencing this one's own, which would be a proof.
    #[test]
    fn a_damaged_row_still_says_that_it_is_anothers_word() {
        let (home, mut journal) = Home::alerter();
        let other = fencing("compute2");
        journal.append_imported(std::slice::from_ref(&other), NOW).unwrap();
        home.raw().execute("UPDATE imported SET digest = x'00'", []).unwrap();
        assert!(journal.is_imported(other.id).unwrap());
    }

    #[test]
    fn all_are_taken_over_or_none() {
        let (home, mut journal) = Home::alerter();
        let refuse = "CREATE TRIGGER t BEFORE INSERT ON fencing WHEN NEW.node = 'compute2'
             BEGIN SELECT RAISE(ABORT, 'no'); END";
        home.raw().execute_batch(refuse).unwrap();
        let both = [fencing("compute1"), fencing("compute2")];
        journal.append_imported(&both, NOW).unwrap_err();
        assert!(journal.unfolded_fencings().unwrap().sound.is_empty());
        assert!(journal.history(&HistoryFilter::default()).unwrap().sound.is_empty());
    }
}
