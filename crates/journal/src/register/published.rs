//! Which entries are in the cluster's register: the alerter publishes missing ones, or the next call of the agent.

use rusqlite::params;

use crate::store::digest::Rows;
use crate::{Agent, Done};
use marks::fencing::Fencing;
use marks::register::Register;
use marks::time::Timestamp;

impl Agent {
    /// This controller's own fencings requested at `since` or later that were never in any register, as far as known, and
    /// whose mark has not ended here, oldest first. A fencing that was in a register may have been sent by any alerter:
    /// after a change of the register, only the alerter that knows its end writes it there.
    ///
    /// # Errors
    /// As any read.
    pub fn unpublished(&self, since: Timestamp) -> Done<Rows<Fencing>> {
        let condition = "f.asked_at >= ?1 AND NOT EXISTS (SELECT 1 FROM imported i WHERE i.fencing = f.id)
             AND NOT EXISTS (SELECT 1 FROM published p WHERE p.entry = 'f.' || f.id
               AND p.digest = published_digest(p.entry, p.register))
             AND NOT EXISTS (SELECT 1 FROM folded g JOIN mark m ON m.id = g.mark
               WHERE g.fencing = f.id AND g.digest = fold_digest(g.fencing, g.mark) AND m.settlement IS NOT NULL)";
        self.fencings_that(condition, [since.0])
    }

    /// This controller's own fencings requested at `since` or later that have been in that register, and whose marks have
    /// not ended here, oldest first. If they are missing there, the register was lost.
    ///
    /// # Errors
    /// As any read.
    pub fn unsettled(&self, register: Register, since: Timestamp) -> Done<Rows<Fencing>> {
        let stood = "SELECT 1 FROM published p WHERE p.register = ?2 AND p.digest = published_digest(p.entry, p.register)";
        let condition = format!(
            "f.asked_at >= ?1 AND NOT EXISTS (SELECT 1 FROM imported i WHERE i.fencing = f.id)
             AND EXISTS ({stood} AND p.entry = 'f.' || f.id) AND NOT EXISTS ({stood} AND p.entry = 's.' || f.id)
             AND NOT EXISTS (SELECT 1 FROM folded g LEFT JOIN mark m ON m.id = g.mark
               WHERE g.fencing = f.id AND g.digest = fold_digest(g.fencing, g.mark)
                 AND (m.id IS NULL OR m.settlement IS NOT NULL))"
        );
        self.fencings_that(&condition, params![since.0, register.as_str()])
    }

    /// Whether an entry is known to be in that register.
    ///
    /// # Errors
    /// As any read.
    pub fn is_published(&self, register: Register, key: &str) -> Done<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM published
             WHERE entry = ?1 AND register = ?2 AND digest = published_digest(entry, register))";
        self.sqlite(self.connection.query_row(sql, params![key, register.as_str()], |row| row.get(0)))
    }

    /// Stores that entries are in that register, because they were read back from it; nothing is written where that is known.
    ///
    /// # Errors
    /// As any write. Nothing is lost then: they are published again.
    pub fn note_published(&mut self, register: Register, keys: &[String]) -> Done {
        let mut new = Vec::new();
        for key in keys {
            if !self.is_published(register, key)? {
                new.push(key);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        self.write(|transaction| {
            let mut note = transaction.prepare_cached(
                "INSERT OR REPLACE INTO published (entry, register, digest)
                 VALUES (?1, ?2, published_digest(?1, ?2))",
            )?;
            for key in new {
                note.execute(params![key, register.as_str()])?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Journal, Role};

    use marks::id::FencingId;

    const THEN: Timestamp = Timestamp(1_800_000_000_000);

    fn journal(dir: &tempfile::TempDir) -> Journal {
        Journal::open(&dir.path().join("state/marks.db"), Role::Agent).unwrap()
    }

    fn append(journal: &mut Journal, node: &str, asked_at: Timestamp) -> FencingId {
        let fencing = samples::fencing(node, asked_at);
        journal.append_fencing(&fencing).unwrap();
        fencing.id
    }

    fn key(id: FencingId) -> String {
        format!("f.{id}")
    }

    fn left(journal: &Journal) -> Vec<FencingId> {
        let rows = journal.unpublished(THEN).unwrap();
        assert!(rows.damaged.is_empty());
        rows.sound.into_iter().map(|fencing| fencing.id).collect()
    }

    /// B2: published fencings that have not ended are compared with the register.
    #[test]
    fn what_has_stood_in_a_register_and_has_not_ended_is_unsettled() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = journal(&dir);
        let [young, ended, unpublished] = ["c1", "c2", "c3"].map(|host| append(&mut journal, host, THEN));
        let old = append(&mut journal, "c4", Timestamp(THEN.0 - 1));
        journal.note_published(Register::Attrd, &[young, ended, old].map(key)).unwrap();
        let unsettled = |journal: &Journal, register| -> Vec<FencingId> {
            let rows = journal.unsettled(register, THEN).unwrap().sound;
            rows.into_iter().map(|fencing| fencing.id).collect()
        };
        let mut both = [young, ended];
        both.sort();
        assert_eq!(unsettled(&journal, Register::Attrd), both);
        assert_eq!(unsettled(&journal, Register::Cib), [], "it was another register");
        journal.note_published(Register::Attrd, &[format!("s.{ended}")]).unwrap();
        assert_eq!(unsettled(&journal, Register::Attrd), [young]);
        assert_eq!(left(&journal), [unpublished]);
    }

    /// A damaged row must not hide a fencing from the cluster.
    #[test]
    fn a_damaged_row_is_no_publication() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = journal(&dir);
        let id = append(&mut journal, "compute1", THEN);
        let forge = "INSERT INTO published SELECT 'f.' || id, 'attrd', x'00' FROM fencing";
        journal.connection.execute(forge, []).unwrap();
        assert_eq!(left(&journal), [id]);
        journal.note_published(Register::Attrd, &[key(id)]).unwrap();
        assert_eq!(left(&journal), []);
    }
}
