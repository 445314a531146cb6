//! The history from a row on, in parts, for a reader that follows it.

use rusqlite::params;

use crate::history::{COLUMNS, decode};
use crate::{HistoryRow, Journal, JournalError, Rows};
use marks::time::Timestamp;

/// A part of the history.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its rows, oldest first; of damaged ones only the numbers.
    pub rows: Rows<HistoryRow>,
    /// The number of the last row that was read, damaged or not.
    pub last: i64,
    /// How many rows after the requested one were removed because of their age.
    pub gone: u64,
}

impl Journal {
    /// At most `most` rows after the row number `after`, of `since` or later, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn history_behind(&self, after: i64, since: Timestamp, most: u32) -> Result<Part, JournalError> {
        // `history` is never rolled back in part: gaps in its numbers are removed old rows.
        let oldest = "SELECT coalesce(min(seq), 0) FROM history";
        let oldest: i64 = self.sqlite(self.connection.query_row(oldest, [], |row| row.get(0)))?;
        let newest = self.newest_history()?;
        let sql = format!(
            "SELECT {COLUMNS} FROM history WHERE seq > ?1 AND seq <= ?4 AND at >= ?2 ORDER BY seq LIMIT ?3"
        );
        let rows = self.rows(&sql, params![after, since.0, most, newest], decode)?;
        // No index has the times: rows that were too old are not read again.
        let is_all = rows.sound.len() + rows.damaged.len() < usize::try_from(most).unwrap_or(usize::MAX);
        let damaged = rows.damaged.iter().filter_map(|damage| damage.key.parse().ok());
        let last = rows.sound.iter().map(|row| row.seq).chain(damaged);
        let last = last.chain(is_all.then_some(newest)).max();
        let gone = if after > 0 { u64::try_from(oldest - after - 1).unwrap_or(0) } else { 0 };
        Ok(Part { rows, last: last.unwrap_or(after), gone })
    }
}

#[cfg(test)]
mod tests {
    use crate::Role;
    use crate::tests::{Home, NOW, fencing};
    use marks::time::Timestamp;

    /// One broken variant continues after the last young row, and reads all old ones again each time. Another continues
    /// after the last sound row, and reads a damaged one at its end forever.
    #[test]
    fn the_history_is_read_part_by_part_and_what_is_missing_is_counted() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        for host in ["compute1", "compute2", "compute3", "compute4"] {
            journal.append_fencing(&fencing(host)).unwrap();
        }
        let numbers = |after, since, most| {
            let part = journal.history_behind(after, since, most).unwrap();
            let sound: Vec<i64> = part.rows.sound.iter().map(|row| row.seq).collect();
            (sound, part.last, part.gone)
        };
        let always = Timestamp(0);
        assert_eq!(numbers(0, always, 3), (vec![1, 2, 3], 3, 0));
        assert_eq!(numbers(3, always, 3), (vec![4], 4, 0));
        assert_eq!(numbers(4, always, 3), (vec![], 4, 0));
        assert_eq!(numbers(0, Timestamp(i64::MAX), 3), (vec![], 4, 0), "they were read");
        assert!(NOW > always);
        home.raw()
            .execute_batch("DROP TRIGGER history_is_kept; UPDATE history SET detail = 'x' WHERE seq = 4")
            .unwrap();
        assert_eq!(numbers(3, always, 3), (vec![], 4, 0));
        home.raw()
            .execute_batch("DROP TRIGGER IF EXISTS history_stays; DELETE FROM history WHERE seq < 3")
            .unwrap();
        assert_eq!(numbers(1, always, 1), (vec![3], 3, 1));
        assert_eq!(numbers(0, always, 1), (vec![3], 3, 0), "a reader of everything misses nothing");
    }
}
