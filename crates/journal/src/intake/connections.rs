//! The connections of a host that this controller has seen: they show whether the host was back in between.

use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Row, params};

use crate::store::digest::{Checked, checked, text, with_digest};
use crate::{Done, Journal};
use marks::fencing::Incarnation;
use marks::host::HostName;
use marks::time::Timestamp;

/// How many connections of a host are kept: the newest.
const KEPT: usize = 16;
/// Older fencings say nothing of today's connections.
const RECENT: Duration = Duration::from_secs(7 * 24 * 3600);

impl Journal {
    /// Stores a connection of a host; the newest 16 are kept. Returns whether it is new and was kept.
    ///
    /// # Errors
    /// As any write.
    pub fn note_connection(&mut self, node: &HostName, incarnation: &Incarnation) -> Done<bool> {
        let mut kept = self.noted(node)?;
        if kept.contains(incarnation) {
            return Ok(false);
        }
        kept.push(incarnation.clone());
        sort(&mut kept);
        let over = kept.drain(..kept.len().saturating_sub(KEPT)).collect::<Vec<_>>();
        if over.contains(incarnation) {
            return Ok(false);
        }
        self.write(|transaction| {
            // A damaged row under this key is replaced.
            let sql = "INSERT OR REPLACE INTO connection VALUES (?1, ?2, ?3)";
            let columns = columns(&(node.clone(), incarnation.clone()));
            transaction.execute(sql, with_digest("connection", columns))?;
            for old in &over {
                let sql = "DELETE FROM connection WHERE node = ?1 AND incarnation = ?2";
                transaction.execute(sql, [node.as_str(), old.as_str()])?;
            }
            Ok(true)
        })
    }

    /// The known connections of a host, oldest first: the stored ones, and those of its fencings of the last 7 days.
    ///
    /// # Errors
    /// As any read; damaged rows are left out.
    pub fn connections_of(&self, node: &HostName) -> Done<Vec<Incarnation>> {
        let mut all = self.noted(node)?;
        let since = Timestamp::now() - RECENT;
        let condition = "f.node = ?1 COLLATE NOCASE AND f.asked_at >= ?2";
        let fencings = self.fencings_that(condition, params![node.as_str(), since.0])?.sound;
        all.extend(fencings.into_iter().filter_map(|fencing| fencing.incarnation));
        sort(&mut all);
        all.dedup();
        Ok(all)
    }

    fn noted(&self, node: &HostName) -> Done<Vec<Incarnation>> {
        let sql = "SELECT node, incarnation, digest FROM connection WHERE node = ?1";
        Ok(self.rows(sql, [node.as_str()], decode)?.sound)
    }
}

/// Oldest first; equal ones are neighbours.
fn sort(all: &mut [Incarnation]) {
    all.sort_by(|a, b| (a.connected_at(), a.as_str()).cmp(&(b.connected_at(), b.as_str())));
}

/// The host's name in lower case: the same host may have two spellings.
fn columns((node, incarnation): &(HostName, Incarnation)) -> Vec<Value> {
    vec![node.as_str().to_ascii_lowercase().into(), text(incarnation.as_str())]
}

fn decode(row: &Row<'_>) -> Checked<Incarnation> {
    let node = row.get::<_, String>(0).ok().and_then(|node| HostName::parse(&node).ok());
    let both = node.zip(row.get(1).ok().map(Incarnation::from_journal));
    checked(row, ("connection", 2), both, columns).map(|(_, incarnation)| incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::tests::Home;

    fn at(second: i64) -> Incarnation {
        Incarnation::new("ctl1", 4, second)
    }

    fn host(name: &str) -> HostName {
        HostName::parse(name).unwrap()
    }

    #[test]
    fn the_newest_sixteen_are_kept_by_their_time_and_not_by_their_text() {
        let (_home, mut journal) = Home::alerter();
        let node = host("compute1");
        for second in (90..=106).rev() {
            let is_new = journal.note_connection(&node, &at(second)).unwrap();
            assert_eq!(is_new, second > 90, "{second}: sixteen newer ones are there already");
        }
        assert_eq!(journal.connections_of(&node).unwrap(), (91..=106).map(at).collect::<Vec<_>>());
        assert!(journal.note_connection(&node, &at(1000)).unwrap());
        assert!(!journal.note_connection(&host("COMPUTE1"), &at(1000)).unwrap(), "the same host");
        let kept = journal.connections_of(&host("Compute1")).unwrap();
        assert_eq!((kept.len(), kept.first(), kept.last()), (16, Some(&at(92)), Some(&at(1000))));
        assert_eq!(journal.connections_of(&host("compute2")).unwrap(), []);
    }
}
