//! What a route has acknowledged and may forget: the marks among which the rule in `marks::refresh` chooses.

use rusqlite::params;

use crate::{Journal, JournalError};
use marks::delivery::{RETURN, TAKEN};
use marks::id::MarkId;
use marks::time::Timestamp;

impl Journal {
    /// Marks that a route has acknowledged, of hosts that failed at `since` or later and are not back, or whose return it
    /// has acknowledged at `back` or later. The oldest failure comes first.
    ///
    /// # Errors
    /// As any read.
    pub fn taken_on(
        &self,
        route: &str,
        since: Timestamp,
        back: Timestamp,
    ) -> Result<Vec<MarkId>, JournalError> {
        let [by_itself, elsewhere] = TAKEN;
        let taken = format!("state = 'acknowledged' AND last_kind IN ('{by_itself}', '{elsewhere}')");
        let of_route =
            format!("EXISTS (SELECT 1 FROM delivery WHERE mark = m.id AND route = ?1 AND {taken})");
        let returned = format!(
            "EXISTS (SELECT 1 FROM delivery WHERE mark = m.id AND route = ?1 || '{RETURN}' AND {taken} AND ended_at >= ?3)"
        );
        // A mark has few columns, and few hosts are away: reading all marks is cheaper than one more index at each write.
        let sql = format!(
            "SELECT m.id FROM mark m WHERE {of_route} AND ((m.returned_at IS NULL AND m.failure_time >= ?2) OR {returned})
             ORDER BY m.failure_time, m.id"
        );
        let mut found = Vec::new();
        self.each(&sql, params![route, since.0, back.0], |row| {
            // An invalid id belongs to a damaged row, which is reported where it is read as a whole.
            found.extend(
                row.get_ref(0).ok().and_then(|id| id.as_str().ok()).and_then(|id| MarkId::parse(id).ok()),
            );
            Ok(())
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tests::{Home, NOW, acknowledged, again, attempt, marked};
    use crate::{NewDelivery, Role};

    const LATER: Timestamp = Timestamp(NOW.0 + 60_000);

    /// The broken variants: what was not acknowledged, what failed too long ago, and what is back.
    #[test]
    fn what_a_route_has_acknowledged_is_found_while_its_host_is_away() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let [sent, unsent, late] = [("compute1", NOW), ("compute2", NOW), ("compute3", LATER)]
            .map(|(host, at)| marked(&mut journal, host, at));
        for mark in [sent, late] {
            assert!(attempt(&mut journal, mark, "recovery", &acknowledged()));
        }
        attempt(&mut journal, unsent, "recovery", &again(NOW));
        let on = |journal: &Journal, route, since| journal.taken_on(route, since, LATER).unwrap();
        assert_eq!(on(&journal, "recovery", NOW), [sent, late]);
        assert_eq!(on(&journal, "recovery", LATER), [late]);
        assert_eq!(on(&journal, "other", NOW), []);
        assert!(journal.note_return(sent, LATER, LATER).unwrap());
        assert_eq!(on(&journal, "recovery", NOW), [late]);
    }

    #[test]
    fn an_acknowledged_return_is_found_for_a_while() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let mark = marked(&mut journal, "compute1", NOW);
        assert!(attempt(&mut journal, mark, "recovery", &acknowledged()));
        assert!(journal.note_return(mark, LATER, LATER).unwrap());
        let route = format!("recovery{RETURN}");
        let new = NewDelivery { route: route.clone(), body: b"back".to_vec(), required: false, link: None };
        let sent = journal.mark(mark).unwrap().unwrap().to_mark().unwrap();
        journal.add_deliveries(&sent, &[new], LATER).unwrap();
        assert_eq!(journal.taken_on("recovery", NOW, NOW).unwrap(), [], "it is not acknowledged yet");
        attempt(&mut journal, mark, &route, &acknowledged());
        let since = |at| journal.taken_on("recovery", NOW, at).unwrap();
        assert_eq!(since(NOW), [mark]);
        assert_eq!(since(NOW + Duration::from_secs(1)), []);
    }
}
