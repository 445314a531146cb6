//! Fencings in the journal: appended by the agent, read by the intake.

use rusqlite::types::Value;
use rusqlite::{Params, Row, Transaction, params_from_iter};

use crate::history::{self, NewHistory};
use crate::store::digest::{Checked, Rows, checked, text, with_digest};
use crate::{Agent, Done, Journal, JournalError};
use marks::fencing::{Fencing, Incarnation, Origin};
use marks::host::HostName;
use marks::id::{FencingId, MarkId};
use marks::time::Timestamp;

pub(crate) const COLUMNS: &str = "f.id, f.node, f.plug, f.asked_at, f.committed_at, f.seen_by, f.origin, f.incarnation, f.given_domain, f.given_shared_storage, f.already_down, f.cause, f.digest";

impl Agent {
    /// Appends a fencing, makes it durable and reads it back. `Ok` means that it survives a power cut.
    ///
    /// # Errors
    /// After an error the fencing may or may not be there: the caller must not report that the host is marked.
    pub fn append_fencing(&mut self, fencing: &Fencing) -> Done {
        let directory = self.place.handle()?;
        self.write(|transaction| {
            insert(transaction, fencing)?;
            let detail = match fencing.origin {
                Origin::Api => {
                    format!(
                        "a client of the API on {} reported that {} failed",
                        fencing.seen_by, fencing.node
                    )
                }
                _ => format!("{} was fenced, seen by {}", fencing.node, fencing.seen_by),
            };
            let actor = match fencing.origin {
                Origin::Fencer | Origin::Shell => "fence_mark",
                Origin::Operator => "operator",
                Origin::Api => "api",
            };
            let row = NewHistory::new(fencing.committed_at, "fenced", &detail, actor);
            history::append(transaction, &NewHistory { node: Some(&fencing.node), ..row })
        })?;
        self.place.sync(&directory)?;
        self.confirm(fencing)?;
        if self.role == crate::Role::Agent {
            self.checkpoint_if_large();
        }
        Ok(())
    }

    /// Reads the row back, and returns `Ok` only if it is the one that was written.
    fn confirm(&self, fencing: &Fencing) -> Done {
        let sql = format!("SELECT {COLUMNS} FROM fencing f WHERE f.id = ?1");
        match self.rows(&sql, [fencing.id.to_string()], decode)?.sound.first() {
            Some(back) if back == fencing => Ok(()),
            _ => Err(JournalError::Damaged {
                path: self.place.file.clone(),
                reason: format!("the fencing of {} did not read back the same", fencing.node),
            }),
        }
    }

    /// The fencings `f` that meet a condition in SQL, oldest first.
    pub(crate) fn fencings_that(&self, condition: &str, parameters: impl Params) -> Done<Rows<Fencing>> {
        let sql = format!("SELECT {COLUMNS} FROM fencing f WHERE {condition} ORDER BY f.asked_at, f.id");
        self.rows(&sql, parameters, decode)
    }
}

impl Journal {
    /// The same, for the connection that also searches for fencings without a mark.
    ///
    /// # Errors
    /// As [`Agent::append_fencing`].
    pub fn append_fencing(&mut self, fencing: &Fencing) -> Done {
        self.all_folded.set(None);
        self.agent.append_fencing(fencing)
    }

    /// Fencings without a mark and without a rule, oldest first. If there are none, that is remembered until the next
    /// write: the search reads all fencings.
    ///
    /// # Errors
    /// As any read.
    pub fn unfolded_fencings(&self) -> Done<Rows<Fencing>> {
        // Before the search: later writes are seen next time.
        let version = self.others_version()?;
        if self.all_folded.get() == Some(version) {
            return Ok(Rows::default());
        }
        let rows = self.fencings_where(
            "NOT EXISTS (SELECT 1 FROM folded WHERE fencing = f.id AND digest = fold_digest(fencing, mark))",
            None,
        )?;
        let none = rows.sound.is_empty() && rows.damaged.is_empty();
        self.all_folded.set(none.then_some(version));
        Ok(rows)
    }

    /// The fencings of one mark, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn fencings_of(&self, mark: MarkId) -> Done<Rows<Fencing>> {
        self.fencings_where("EXISTS (SELECT 1 FROM folded WHERE fencing = f.id AND mark = ?1 AND digest = fold_digest(fencing, mark))", Some(mark))
    }

    /// The fencing that a mark has its id from.
    ///
    /// # Errors
    /// As any read.
    pub fn first_fencing(&self, mark: MarkId) -> Done<Option<Fencing>> {
        Ok(self.fencings_where("f.id = ?1", Some(mark))?.sound.pop())
    }

    fn fencings_where(&self, condition: &str, mark: Option<MarkId>) -> Done<Rows<Fencing>> {
        self.fencings_that(condition, params_from_iter(mark.map(|mark| mark.to_string())))
    }
}

/// The caller has cleared the memory that every fencing was folded.
pub(crate) fn insert(transaction: &Transaction<'_>, fencing: &Fencing) -> rusqlite::Result<()> {
    let sql = "INSERT INTO fencing VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    transaction.prepare_cached(sql)?.execute(with_digest("fencing", columns(fencing)))?;
    Ok(())
}

/// All columns but the digest.
fn columns(fencing: &Fencing) -> Vec<Value> {
    vec![
        fencing.id.to_string().into(),
        text(fencing.node.as_str()),
        fencing.plug.as_ref().map(|plug| text(plug.as_str())).into(),
        fencing.asked_at.0.into(),
        fencing.committed_at.0.into(),
        text(&fencing.seen_by),
        text(fencing.origin.as_str()),
        fencing.incarnation.as_ref().map(|life| text(life.as_str())).into(),
        fencing.given_domain.clone().into(),
        fencing.given_shared_storage.into(),
        fencing.already_down.into(),
        fencing.cause.clone().into(),
    ]
}

pub(crate) fn decode(row: &Row<'_>) -> Checked<Fencing> {
    checked(row, ("fencing", 12), decode_unchecked(row), columns)
}

fn decode_unchecked(row: &Row<'_>) -> Option<Fencing> {
    let plug: Option<String> = row.get(2).ok()?;
    let plug = plug.map(|text| HostName::parse(&text)).transpose().ok()?;
    let incarnation: Option<String> = row.get(7).ok()?;
    Some(Fencing {
        id: FencingId::parse(&row.get::<_, String>(0).ok()?).ok()?,
        node: HostName::parse(&row.get::<_, String>(1).ok()?).ok()?,
        plug,
        asked_at: Timestamp(row.get(3).ok()?),
        committed_at: Timestamp(row.get(4).ok()?),
        seen_by: row.get(5).ok()?,
        origin: Origin::parse(&row.get::<_, String>(6).ok()?)?,
        incarnation: incarnation.map(Incarnation::from_journal),
        already_down: row.get(10).ok()?,
        given_domain: row.get(8).ok()?,
        given_shared_storage: row.get(9).ok()?,
        cause: row.get(11).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use crate::Role;
    use crate::tests::{Home, NOW, fencing, marked};
    use marks::rule::Rule;

    /// The broken variant: without a write, the same answer comes without a search.
    #[test]
    fn that_all_is_folded_is_remembered_until_somebody_writes() {
        let (home, mut journal) = Home::alerter();
        marked(&mut journal, "compute1", NOW);
        let new = |journal: &crate::Journal| {
            let rows = journal.unfolded_fencings().unwrap().sound;
            rows.into_iter().map(|fencing| fencing.node.to_string()).collect::<Vec<_>>()
        };
        assert!(new(&journal).is_empty() && journal.all_folded.get().is_some());
        home.open(Role::Agent).append_fencing(&fencing("by-the-agent")).unwrap();
        assert_eq!(new(&journal), ["by-the-agent"]);
        assert_eq!(new(&journal), ["by-the-agent"], "until it is folded");
        let found = journal.unfolded_fencings().unwrap().sound.remove(0);
        journal.set_aside(&found, (Rule::NotCovered, "not ours"), NOW).unwrap();
        assert!(new(&journal).is_empty());
        journal.append_fencing(&fencing("by-hand")).unwrap();
        assert_eq!(new(&journal), ["by-hand"]);
        let again = journal.unfolded_fencings().unwrap().sound.remove(0);
        journal.set_aside(&again, (Rule::NotCovered, "not ours"), NOW).unwrap();
        assert!(new(&journal).is_empty());
        journal.append_imported(&[fencing("in-the-register")], NOW).unwrap();
        assert_eq!(new(&journal), ["in-the-register"]);
    }
}
