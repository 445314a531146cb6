//! The open outages and recently ended ones, each with its deliveries: for the page. Bounded.

use rusqlite::params;

use crate::store::rows::Rows;
use crate::{Damage, HeldMark, Journal, JournalError, row};
use marks::delivery::Delivery;
use marks::mark::MarkRow;
use marks::time::Timestamp;

/// A mark with its deliveries.
#[derive(Clone, Debug)]
pub struct Recent {
    /// The mark.
    pub mark: MarkRow,
    /// Its deliveries.
    pub deliveries: Vec<Delivery>,
    /// Its damaged deliveries.
    pub damaged: Vec<Damage>,
    /// What the policy holds it for.
    pub held: Option<HeldMark>,
}

impl Journal {
    /// The oldest open marks, and the newest of those that were settled at `since` or later: limited for both. Marks with
    /// a damaged row are listed separately.
    ///
    /// # Errors
    /// As any read.
    pub fn recent(&self, since: Timestamp, most: u32) -> Result<Rows<Recent>, JournalError> {
        let columns = row::COLUMNS;
        let open = format!(
            "SELECT {columns} FROM mark m WHERE m.settlement IS NULL ORDER BY m.failure_time, m.id LIMIT ?1"
        );
        let ended = format!(
            "SELECT {columns} FROM mark m WHERE m.settlement IS NOT NULL AND m.settled_at >= ?1
             ORDER BY m.settled_at DESC, m.id LIMIT ?2"
        );
        let open: Rows<MarkRow> = self.rows(&open, params![most], row::decode)?;
        let ended: Rows<MarkRow> = self.rows(&ended, params![since.0, most], row::decode)?;
        let marks = open.sound.into_iter().chain(ended.sound);
        let sound = marks.map(|mark| self.with_deliveries(mark)).collect::<Result<_, _>>()?;
        Ok(Rows { sound, damaged: open.damaged.into_iter().chain(ended.damaged).collect() })
    }

    fn with_deliveries(&self, mark: MarkRow) -> Result<Recent, JournalError> {
        let Rows { sound: deliveries, damaged } = self.deliveries_of(mark.id)?;
        let held = if mark.settled.is_none() { self.hold_of(mark.id)? } else { None };
        Ok(Recent { mark, deliveries, damaged, held })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::Role;
    use crate::tests::{Home, NOW, acknowledged, attempt, marked};

    #[test]
    fn what_is_open_comes_first_and_what_ended_long_ago_not_at_all() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let sent = marked(&mut journal, "compute1", NOW);
        let open = marked(&mut journal, "compute2", NOW);
        assert!(attempt(&mut journal, sent, "recovery", &acknowledged()));
        let found = |since, most| -> Vec<_> {
            journal.recent(since, most).unwrap().sound.into_iter().map(|recent| recent.mark.id).collect()
        };
        assert_eq!(found(NOW, 9), [open, sent]);
        assert_eq!(found(NOW + Duration::from_secs(86_400), 9), [open]);
        assert!(found(NOW, 0).is_empty());
        assert_eq!(journal.recent(NOW, 9).unwrap().sound[1].deliveries[0].route, "recovery");
    }

    /// The broken variant leaves out damaged rows, as if there were none.
    #[test]
    fn what_is_damaged_is_named() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let (mark, delivery) = (marked(&mut journal, "compute1", NOW), marked(&mut journal, "compute2", NOW));
        let change = |sql: &str, id: &str| assert_eq!(journal.connection.execute(sql, [id]).unwrap(), 1);
        change("UPDATE mark SET node = 'mallory' WHERE id = ?1", &mark.to_string());
        change("UPDATE delivery SET attempts = 77 WHERE mark = ?1", &delivery.to_string());
        let found = journal.recent(NOW, 9).unwrap();
        assert!(found.damaged.len() == 1 && found.damaged[0].key.starts_with(&mark.to_string()));
        assert!(found.sound.len() == 1 && found.sound[0].deliveries.is_empty());
        assert_eq!(found.sound[0].damaged.len(), 1);
    }
}
