//! The history in pages, newest first: a reader that filters it needs little memory.

use rusqlite::params;

use crate::history::{COLUMNS, HistoryRow, decode};
use crate::store::rows::Rows;
use crate::{Journal, JournalError};

/// Some rows of the history, and where the older ones begin.
#[derive(Debug)]
pub struct Page {
    /// Newest first.
    pub rows: Rows<HistoryRow>,
    /// The next page's start; `None` if there are no older rows.
    pub older: Option<i64>,
}

impl Journal {
    /// The newest `limit` rows before row number `before`, or of all.
    ///
    /// # Errors
    /// As any read.
    pub fn history_before(&self, before: Option<i64>, limit: u32) -> Result<Page, JournalError> {
        let sql = format!("SELECT {COLUMNS} FROM history WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2");
        let rows = self.rows(&sql, params![before.unwrap_or(i64::MAX), limit], decode)?;
        let is_full = rows.sound.len() + rows.damaged.len() >= limit as usize;
        let sound = rows.sound.iter().map(|row| row.seq);
        let damaged = rows.damaged.iter().filter_map(|damage| damage.key.parse().ok());
        let oldest = sound.chain(damaged).min();
        Ok(Page { older: oldest.filter(|_| is_full), rows })
    }
}

#[cfg(test)]
mod tests {
    use crate::Role;
    use crate::tests::{Home, fencing};

    /// The broken variant asks for rows not newer than the last one, which comes twice.
    #[test]
    fn pages_hold_every_row_once() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        (0..5).for_each(|number| journal.append_fencing(&fencing(&format!("compute{number}"))).unwrap());
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = journal.history_before(before, 2).unwrap();
            seen.extend(page.rows.sound.iter().map(|row| row.seq));
            before = page.older;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, [5, 4, 3, 2, 1]);
    }
}
