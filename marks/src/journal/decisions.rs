//! Operators' decisions in the journal: made here, or read from the register.

use rusqlite::{Params, Row, Transaction, params};

use super::digest::Digest;
use super::fencings::{Checked, Damage, Rows, printable_key};
use super::marks::{ALERTER, load_doubtful, note, prove};
use super::row::{self, MarkRow};
use super::{Fault, Journal, JournalError};
use crate::id::{MarkId, NoteId};
use crate::mark::Proof;
use crate::register::{Decision, DecisionKind};
use crate::time::Timestamp;

const COLUMNS: &str = "p.id, p.kind, p.mark, p.at, p.actor, p.reason, p.digest";

impl Journal {
    /// Lets an open mark go that is held for want of a proof: the operator vouches for it. `None` if there is no such
    /// mark.
    ///
    /// # Errors
    /// As any write.
    pub fn release(
        &mut self,
        mark: MarkId,
        reason: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<Option<Decision>, JournalError> {
        self.write(|transaction| {
            let Some(row) = load_doubtful(transaction, mark)? else { return Ok(None) };
            let decision = Decision {
                id: NoteId::generate(),
                kind: DecisionKind::Release,
                mark,
                at: now,
                actor: actor.to_owned(),
                reason: reason.to_owned(),
            };
            insert(transaction, &decision)?;
            release(transaction, row, &decision, now)?;
            Ok(Some(decision))
        })
    }

    /// Keeps a decision that was read from the register, once, if its mark is here. It releases nothing: every member of
    /// `haclient` can write the register, and a release needs root's word on the controller that tells. Says whether it
    /// is new.
    ///
    /// # Errors
    /// As any write.
    pub fn adopt_decision(&mut self, decision: &Decision, now: Timestamp) -> Result<bool, JournalError> {
        self.write(|transaction| {
            let Some(row) = row::load(transaction, decision.mark)? else { return Ok(false) };
            let is_new = insert(transaction, decision)?;
            if is_new {
                let DecisionKind::Release = decision.kind;
                let detail = format!(
                    "the register says that {} released {} on another controller",
                    decision.actor, row.node
                );
                note(transaction, &row, now, "read", &detail, ALERTER)?;
            }
            Ok(is_new)
        })
    }

    /// The decisions about one mark, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn decisions_of(&self, mark: MarkId) -> Result<Rows<Decision>, JournalError> {
        self.decisions_that("p.mark = ?1", [mark.to_string()])
    }

    /// The decisions `p` for which a condition of SQL holds, oldest first.
    pub(super) fn decisions_that(
        &self,
        condition: &str,
        parameters: impl Params,
    ) -> Result<Rows<Decision>, JournalError> {
        let sql = format!("SELECT {COLUMNS} FROM decision p WHERE {condition} ORDER BY p.at, p.id");
        self.rows(&sql, parameters, decode)
    }
}

fn release(
    transaction: &Transaction<'_>,
    row: MarkRow,
    decision: &Decision,
    now: Timestamp,
) -> Result<(), Fault> {
    let (node, hold) = (&row.node, row.standing.as_str());
    let detail = format!("{node} was held ({hold}) and is released: {}", decision.reason);
    prove(transaction, row, Proof::Operator, ("released", &detail, &decision.actor), now)
}

/// Says whether it was not there yet. A decision is written once.
fn insert(transaction: &Transaction<'_>, decision: &Decision) -> rusqlite::Result<bool> {
    let sql = "INSERT OR IGNORE INTO decision VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let inserted = transaction.prepare_cached(sql)?.execute(params![
        decision.id.to_string(),
        decision.kind.as_str(),
        decision.mark.to_string(),
        decision.at.0,
        decision.actor,
        decision.reason,
        digest(decision),
    ])?;
    Ok(inserted == 1)
}

fn digest(decision: &Decision) -> Vec<u8> {
    Digest::of("decision")
        .text(&decision.id.to_string())
        .text(decision.kind.as_str())
        .text(&decision.mark.to_string())
        .int(decision.at.0)
        .text(&decision.actor)
        .text(&decision.reason)
        .finish()
}

fn decode(row: &Row<'_>) -> Checked<Decision> {
    let damage = || Damage { table: "decision", key: printable_key(row) };
    let decision = decode_unchecked(row).ok_or_else(damage)?;
    let kept: Vec<u8> = row.get(6).map_err(|_| damage())?;
    if kept == digest(&decision) { Ok(decision) } else { Err(damage()) }
}

fn decode_unchecked(row: &Row<'_>) -> Option<Decision> {
    Some(Decision {
        id: NoteId::parse(&row.get::<_, String>(0).ok()?).ok()?,
        kind: DecisionKind::parse(&row.get::<_, String>(1).ok()?)?,
        mark: MarkId::parse(&row.get::<_, String>(2).ok()?).ok()?,
        at: Timestamp(row.get(3).ok()?),
        actor: row.get(4).ok()?,
        reason: row.get(5).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Role;
    use crate::journal::tests::{Home, NOW, events, marked, marked_as};
    use crate::mark::{Doubt, Standing};

    const HELD: Standing = Standing::Doubtful(Doubt::Unconfirmed);
    const OPERATOR: Standing = Standing::Proven(Proof::Operator);

    fn standing(journal: &Journal, mark: MarkId) -> Standing {
        journal.mark(mark).unwrap().unwrap().standing
    }

    #[test]
    fn an_operator_releases_what_is_held_and_nothing_else() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let held = marked_as(&mut journal, "compute1", NOW, HELD);
        let decision = journal.release(held, "I saw it burn", "alice", NOW).unwrap().unwrap();
        assert_eq!((decision.mark, decision.actor.as_str()), (held, "alice"));
        assert_eq!(standing(&journal, held), OPERATOR);
        assert_eq!(journal.decisions_of(held).unwrap().sound, [decision]);
        assert_eq!(events(&journal, held), ["marked", "released"]);
        assert_eq!(journal.release(held, "again", "alice", NOW).unwrap(), None);
        let proven = marked(&mut journal, "compute2", NOW);
        assert_eq!(journal.release(proven, "why not", "alice", NOW).unwrap(), None);
        let ended = marked_as(&mut journal, "compute3", NOW, HELD);
        assert!(journal.dismiss(ended, "no", "alice", NOW).unwrap());
        assert_eq!(journal.release(ended, "yes", "alice", NOW).unwrap(), None);
    }

    /// Everybody in `haclient` could have written it.
    #[test]
    fn a_decision_of_another_controller_is_kept_and_releases_nothing() {
        let (here, there) = (Home::new(), Home::new());
        let (mut here, mut there) = (here.open(Role::Alerter), there.open(Role::Alerter));
        let mark = marked_as(&mut here, "compute1", NOW, HELD);
        let decision = here.release(mark, "I saw it burn", "alice", NOW).unwrap().unwrap();
        assert!(!there.adopt_decision(&decision, NOW).unwrap(), "its mark is not here yet");
        let same = crate::journal::tests::row_of(&here.fencings_of(mark).unwrap().sound[0]);
        let same = MarkRow { standing: HELD, ..same };
        there.make_mark(&same, crate::journal::Taken::Register, &[], NOW).unwrap();
        assert!(there.adopt_decision(&decision, NOW).unwrap());
        assert!(!there.adopt_decision(&decision, NOW).unwrap());
        assert_eq!(standing(&there, mark), HELD);
        assert_eq!(there.decisions_of(mark).unwrap().sound, [decision]);
        assert_eq!(events(&there, mark), ["marked", "read"]);
        assert!(there.release(mark, "I see it too", "bob", NOW).unwrap().is_some());
    }

    #[test]
    fn a_decision_about_a_mark_that_was_proven_meanwhile_is_kept_and_changes_nothing() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let mark = marked(&mut journal, "compute1", NOW);
        let decision = Decision {
            id: NoteId::generate(),
            kind: DecisionKind::Release,
            mark,
            at: NOW,
            actor: "alice".into(),
            reason: "late".into(),
        };
        assert!(journal.adopt_decision(&decision, NOW).unwrap());
        assert!(!journal.adopt_decision(&decision, NOW).unwrap());
        assert_eq!(standing(&journal, mark), Standing::Proven(Proof::Journal));
        assert_eq!(events(&journal, mark), ["marked", "read"]);
        home.raw().execute("UPDATE decision SET actor = 'bob'", []).unwrap();
        let read = journal.decisions_of(mark).unwrap();
        assert!(read.sound.is_empty() && read.damaged.len() == 1);
    }
}
