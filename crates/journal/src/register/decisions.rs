//! Operators' decisions in the journal: made here, or read from the register. A decision is written once, and its end once.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Params, Row, Transaction, params};

use crate::history::{self, ALERTER, NewHistory};
use crate::register::entries::CURRENT;
use crate::row;
use crate::store::digest::{Checked, Rows, checked, of_row, raw_text, text, with_digest};
use crate::{Done, Journal, Writing, Wrote};
use marks::id::{MarkId, NoteId};
use marks::mark::{MarkRow, Proof};
use marks::register::{About, Decision, Ending, Scope};
use marks::time::{Boot, Timestamp};

pub(crate) const COLUMNS: &str =
    "p.id, p.kind, p.mark, p.scope, p.until, p.at, p.actor, p.reason, p.here, p.digest";
const ENDING: &str = "e.decision, e.at, e.actor, e.reason, e.digest";

/// How long the release of a group counts: longer than any of its marks is held.
const GROUP_RELEASE: Duration = Duration::from_secs(7 * 86_400);

/// Without an end, by an operator or by itself. A damaged end counts: only an end has this key.
const IN_FORCE: &str =
    "p.mark IS NULL AND p.kind IN ('pause', 'maintenance') AND (p.here IS NULL OR p.here > ?1)
             AND NOT EXISTS (SELECT 1 FROM ending e WHERE e.decision = p.id)";

impl Journal {
    /// Releases an open mark for an operator: it needs no proof any more, and no rule holds it. `None` if there is no
    /// such mark, or if it was released already and is proven.
    ///
    /// # Errors
    /// As any write.
    pub fn release(
        &mut self,
        mark: MarkId,
        reason: &str,
        actor: &str,
        now: Timestamp,
    ) -> Done<Option<Decision>> {
        let decision = Decision {
            id: NoteId::generate(),
            about: About::Release(mark),
            at: now,
            actor: actor.to_owned(),
            reason: reason.to_owned(),
        };
        Ok(self.decide(&decision)?.then_some(decision))
    }

    /// Stores an operator's decision of this controller. Returns whether it did: the release of a mark that is not open,
    /// or that is neither doubtful nor unreleased, changes nothing.
    ///
    /// # Errors
    /// As any write.
    pub fn decide(&mut self, decision: &Decision) -> Done<bool> {
        self.write_at(decision.at, |writing| match decision.about {
            About::Release(mark) => writing.release(mark, decision),
            _ => {
                let is_new = writing.insert_decision(decision)?;
                if is_new {
                    let (event, sentence) = beginning(decision);
                    writing.note_decision(decision, event, &sentence, &decision.actor)?;
                }
                Ok(is_new)
            }
        })
    }

    /// Ends a pause or a maintenance that is in effect. Returns whether there was one: each ends once.
    ///
    /// # Errors
    /// As any write.
    pub fn end_decision(&mut self, ending: &Ending) -> Done<bool> {
        let condition = format!("{IN_FORCE} AND p.id = ?2");
        let found = self.decisions_that(&condition, params![ending.at.0, ending.id.to_string()])?;
        let Some(decision) = found.sound.first() else { return Ok(false) };
        self.write_at(ending.at, |writing| {
            if !insert_ending(&writing, ending)? {
                return Ok(false);
            }
            let (event, sentence) = end(decision, ending);
            writing.note_decision(decision, event, &sentence, &ending.actor)?;
            Ok(true)
        })
    }

    /// Stores a decision from the register, once; the release of a mark only if its mark is here. It lasts from now on as
    /// long as it was made for, since the clock that dates it is another one. It proves nothing:
    /// every member of `haclient` can write the register, and a proof needs root's seal of the reporting controller. With a seal the release
    /// of a mark lets go what was known of it then, here too. Returns whether it is new.
    ///
    /// # Errors
    /// As any write.
    pub fn adopt_decision(&mut self, decision: &Decision, is_sealed: bool, now: Timestamp) -> Done<bool> {
        if !self.decisions_that("p.id = ?1", [decision.id.to_string()])?.sound.is_empty() {
            return Ok(false);
        }
        if let (About::Release(mark), true) = (&decision.about, is_sealed) {
            self.released_elsewhere(*mark, decision.at, now)?;
        }
        self.write_at(now, |writing| match decision.about {
            About::Release(mark) => {
                let Some(row) = row::load(&writing, mark)? else { return Ok(false) };
                let is_new = writing.insert_decision(decision)?;
                if is_new {
                    let (actor, node) = (&decision.actor, &row.node);
                    let detail = format!("{actor} released {node} on another controller (from the register)");
                    writing.note_mark(&row, "read", &detail, ALERTER)?;
                }
                Ok(is_new)
            }
            _ => {
                let is_new = writing.insert_decision(decision)?;
                if is_new {
                    let (event, sentence) = beginning(decision);
                    let sentence = elsewhere(&decision.actor, &sentence);
                    writing.note_decision(decision, event, &sentence, ALERTER)?;
                    if let Some(ending) = load_ending(&writing, decision.id)? {
                        writing.note_end(decision, &ending)?;
                    }
                }
                Ok(is_new)
            }
        })
    }

    /// Stores the end of a decision from the register, once, even if the decision is not known yet. Returns whether it is
    /// new.
    ///
    /// # Errors
    /// As any write.
    pub fn adopt_ending(&mut self, ending: &Ending, now: Timestamp) -> Done<bool> {
        if !self.endings_that("e.decision = ?1", [ending.id.to_string()])?.sound.is_empty() {
            return Ok(false);
        }
        let known = self.decisions_that("p.id = ?1", [ending.id.to_string()])?.sound;
        self.write_at(now, |writing| {
            let is_new = insert_ending(&writing, ending)?;
            if let (true, Some(decision)) = (is_new, known.first()) {
                writing.note_end(decision, ending)?;
            }
            Ok(is_new)
        })
    }

    /// The decisions about one mark, oldest first.
    #[cfg(test)]
    fn decisions_of(&self, mark: MarkId) -> Done<Rows<Decision>> {
        self.decisions_that("p.mark = ?1", [mark.to_string()])
    }

    /// The operators' decisions about groups and hosts that are in effect: pauses and maintenances that have not ended,
    /// each with its end by this controller's clock, and the releases of groups of the last seven days, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn decisions_in_force(&self, now: Timestamp) -> Done<Rows<Decision>> {
        let condition =
            format!("({IN_FORCE}) OR (p.mark IS NULL AND p.kind = 'release-group' AND p.at >= ?2)");
        let sql = format!("SELECT {COLUMNS} FROM decision p WHERE {condition} ORDER BY p.at, p.id");
        self.rows(&sql, params![now.0, (now - GROUP_RELEASE).0], |row| decode_kept(row).map(Kept::here))
    }

    /// Looks by how much the clock was set since this was last called, also where nobody was there: what lasts goes on as long as it would
    /// have, and no longer than it was made for. Where the machine was booted meanwhile, nobody knows for how long it was off: what lasted
    /// when the history last grew has not lasted longer since.
    ///
    /// # Errors
    /// As any write.
    pub fn mind_the_clock(&mut self, boot: &Boot, now: Timestamp) -> Done {
        let known = self.boot()?;
        let set = known.as_ref().and_then(|known| boot.set_since(known));
        let by = match set {
            None if known.is_some() => self.was_off(now)?,
            _ => set.unwrap_or_default(),
        };
        let moved = self.ends_that_move(by, now)?;
        if moved.is_empty() && set == Some(0) {
            return Ok(());
        }
        self.write(|transaction| {
            let sql = "UPDATE decision SET here = ?1, digest = ?2 WHERE id = ?3";
            let mut update = transaction.prepare(sql)?;
            for kept in &moved {
                let (end, id) = (kept.here.map(|end| end.0), kept.decision.id.to_string());
                update.execute(params![end, of_row("decision", &columns(kept)), id])?;
            }
            let sql = "INSERT OR REPLACE INTO boot VALUES (1, ?1, ?2, ?3)";
            transaction.execute(sql, with_digest("boot", columns_of_boot(boot)))?;
            Ok(())
        })
    }

    /// The milliseconds since the history last grew.
    fn was_off(&self, now: Timestamp) -> Done<i64> {
        Ok(self.newest_at()?.map_or(0, |last| now.0.saturating_sub(last.0)))
    }

    /// What was noted last; a damaged row counts as none.
    fn boot(&self) -> Done<Option<Boot>> {
        let read = |row: &Row<'_>| {
            let boot = Boot { id: row.get(0)?, began: Timestamp(row.get(1)?) };
            Ok(checked(row, ("boot", 2), Some(boot), columns_of_boot).ok())
        };
        let read = self.connection.query_row("SELECT id, began, digest FROM boot", [], read);
        Ok(self.sqlite(read.optional())?.flatten())
    }

    fn ends_that_move(&self, set: i64, now: Timestamp) -> Done<Vec<Kept>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM decision p WHERE p.here > ?1 AND NOT EXISTS (SELECT 1 FROM ending e WHERE e.decision = p.id)"
        );
        // What was over by the time before stays so.
        let since = now.0.min(now.0.saturating_sub(set));
        let mut all = self.rows(&sql, [since], decode_kept)?.sound;
        all.retain_mut(|kept| kept.moves(set, now));
        Ok(all)
    }

    /// Whether an operator has ended a decision, also an unknown one.
    ///
    /// # Errors
    /// As any read.
    pub fn has_ended(&self, decision: NoteId) -> Done<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM ending WHERE decision = ?1)";
        self.sqlite(self.connection.query_row(sql, [decision.to_string()], |row| row.get(0)))
    }

    /// The open marks that an operator released, here or by an entry of the register.
    ///
    /// # Errors
    /// As any read; damaged rows are left out.
    pub fn released_marks(&self) -> Done<HashSet<MarkId>> {
        let condition = "p.mark IS NOT NULL AND p.mark IN (SELECT m.id FROM mark m WHERE m.id = p.mark AND m.settlement IS NULL)";
        let found = self.decisions_that(condition, [])?.sound;
        Ok(found.iter().filter_map(|decision| decision.about.mark()).collect())
    }

    /// A number that grows with each decision and each end of one, even if the newest were removed.
    ///
    /// # Errors
    /// As any read.
    pub fn decisions_version(&self) -> Done<i64> {
        let sql = "SELECT coalesce(sum(seq), 0) FROM sqlite_sequence WHERE name IN ('decision', 'ending')";
        self.sqlite(self.connection.query_row(sql, [], |row| row.get(0)))
    }

    /// The decisions that should be in the register: while in effect, or while the mark is open, and from `since` on.
    pub(crate) fn current_decisions(&self, since: Timestamp) -> Done<Vec<Decision>> {
        let end = "coalesce((SELECT e.at FROM ending e WHERE e.decision = p.id), p.here,
             CASE p.kind WHEN 'release-group' THEN p.at END, ?1)";
        let condition = format!(
            "(p.mark IS NULL AND {end} >= ?1) OR EXISTS (SELECT 1 FROM mark m WHERE m.id = p.mark AND {CURRENT})"
        );
        Ok(self.decisions_that(&condition, [since.0])?.sound)
    }

    /// The ends of `since` or later.
    pub(crate) fn current_endings(&self, since: Timestamp) -> Done<Vec<Ending>> {
        Ok(self.endings_that("e.at >= ?1", [since.0])?.sound)
    }

    /// The decisions `p` that meet a condition in SQL, oldest first.
    fn decisions_that(&self, condition: &str, parameters: impl Params) -> Done<Rows<Decision>> {
        let sql = format!("SELECT {COLUMNS} FROM decision p WHERE {condition} ORDER BY p.at, p.id");
        self.rows(&sql, parameters, decode)
    }

    /// The ends `e` that meet a condition in SQL, oldest first.
    fn endings_that(&self, condition: &str, parameters: impl Params) -> Done<Rows<Ending>> {
        let sql = format!("SELECT {ENDING} FROM ending e WHERE {condition} ORDER BY e.at, e.decision");
        self.rows(&sql, parameters, decode_ending)
    }
}

impl Writing<'_> {
    fn release(self, mark: MarkId, decision: &Decision) -> Wrote<bool> {
        let Some(row) = row::load_open(&self, mark)? else { return Ok(false) };
        let is_doubtful = row.standing.doubt().is_some();
        if !is_doubtful && is_released(&self, mark)? {
            return Ok(false);
        }
        self.insert_decision(decision)?;
        if is_doubtful { self.vouch(row, decision) } else { self.let_go(&row, decision) }?;
        Ok(true)
    }

    fn vouch(self, row: MarkRow, decision: &Decision) -> Wrote {
        let (node, hold) = (&row.node, row.standing.as_str());
        let detail = format!("{node} was held ({hold}) and is released: {}", decision.reason);
        self.prove(row, Proof::Operator, ("released", &detail, &decision.actor))
    }

    fn let_go(self, row: &MarkRow, decision: &Decision) -> Wrote {
        let (node, reason) = (&row.node, &decision.reason);
        // A release does not say what a mark lacks: without that nothing can be sent.
        let detail = match row.lacks().next() {
            None => format!("{node} is released: {reason}"),
            Some(lack) => {
                let (until, word) = (lack.ends_when(), lack.as_str());
                format!("{node} is released, but stays held until {until} ({word}): {reason}")
            }
        };
        self.note_mark(row, "released", &detail, &decision.actor)
    }

    fn note_end(self, decision: &Decision, ending: &Ending) -> Wrote {
        let (event, sentence) = end(decision, ending);
        self.note_decision(decision, event, &elsewhere(&ending.actor, &sentence), ALERTER)
    }

    /// For a host, the row belongs to its history.
    fn note_decision(self, decision: &Decision, event: &str, detail: &str, actor: &str) -> Wrote {
        let scope = decision.about.scope();
        let node = scope.as_ref().and_then(Scope::host);
        history::append(&self, &NewHistory { node, ..NewHistory::new(self.now, event, detail, actor) })
    }

    /// Returns whether it is new; it lasts from then on by this controller's clock. A damaged row under its id is replaced.
    fn insert_decision(self, decision: &Decision) -> Wrote<bool> {
        let sql = format!("SELECT {COLUMNS} FROM decision p WHERE p.id = ?1");
        let mut statement = self.prepare_cached(&sql)?;
        let known =
            statement.query_row([decision.id.to_string()], |row| Ok(decode(row).is_ok())).optional()?;
        if known == Some(true) {
            return Ok(false);
        }
        let sql =
            "INSERT OR REPLACE INTO decision (id, kind, mark, scope, until, at, actor, reason, here, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let kept = Kept::since(decision.clone(), self.now);
        self.prepare_cached(sql)?.execute(with_digest("decision", columns(&kept)))?;
        Ok(true)
    }
}

fn is_released(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM decision WHERE mark = ?1)";
    transaction.prepare_cached(sql)?.query_row([mark.to_string()], |row| row.get(0))
}

/// The word and the sentence of the history for decisions about groups and hosts.
fn beginning(decision: &Decision) -> (&'static str, String) {
    let Decision { about, at, reason, .. } = decision;
    let scope = about.scope().unwrap_or(Scope::All);
    let limit = about.until().map(|until| format!(", for {} s at most", until.since(*at).as_secs()));
    let limit = limit.unwrap_or_default();
    match about {
        About::Pause { .. } => ("paused", format!("deliveries of {scope} are paused{limit}: {reason}")),
        About::Maintenance { .. } => {
            ("maintenance-began", format!("maintenance of {scope} began{limit}: {reason}"))
        }
        About::Release(_) | About::ReleaseGroup(_) => {
            ("released", format!("held marks of {scope} may be sent: {reason}"))
        }
    }
}

fn end(decision: &Decision, ending: &Ending) -> (&'static str, String) {
    let (scope, reason) = (decision.about.scope().unwrap_or(Scope::All), &ending.reason);
    match decision.about {
        About::Maintenance { .. } => ("maintenance-ended", format!("maintenance of {scope} ended: {reason}")),
        _ => ("resumed", format!("deliveries of {scope} are not paused any more: {reason}")),
    }
}

fn elsewhere(actor: &str, sentence: &str) -> String {
    format!("{actor} decided on another controller (from the register): {sentence}")
}

/// The same for an end.
fn insert_ending(transaction: &Transaction<'_>, ending: &Ending) -> rusqlite::Result<bool> {
    if load_ending(transaction, ending.id)?.is_some() {
        return Ok(false);
    }
    let sql =
        "INSERT OR REPLACE INTO ending (decision, at, actor, reason, digest) VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.prepare_cached(sql)?.execute(with_digest("ending", columns_of_ending(ending)))?;
    Ok(true)
}

fn load_ending(transaction: &Transaction<'_>, id: NoteId) -> rusqlite::Result<Option<Ending>> {
    let sql = format!("SELECT {ENDING} FROM ending e WHERE e.decision = ?1");
    let mut statement = transaction.prepare_cached(&sql)?;
    let found = statement.query_row([id.to_string()], |row| Ok(decode_ending(row).ok())).optional()?;
    Ok(found.flatten())
}

/// A decision with its number, and with the time of its end if an operator ended it.
pub(crate) type Decided = (i64, (Checked<Decision>, Option<Timestamp>));

/// Some decisions after a number.
pub(crate) fn page(
    transaction: &Transaction<'_>,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<Decided>> {
    let sql = format!(
        "SELECT {COLUMNS}, p.seq, (SELECT e.at FROM ending e WHERE e.decision = p.id) FROM decision p
         WHERE p.seq > ?1 ORDER BY p.seq LIMIT {limit}"
    );
    let mut query = transaction.prepare_cached(&sql)?;
    let read = |row: &Row<'_>| {
        let end: Option<i64> = row.get(11)?;
        Ok((row.get(10)?, (decode_kept(row).map(Kept::here), end.map(Timestamp))))
    };
    query.query_map([after], read)?.collect()
}

/// An end without a decision: its number, its decision's id, and its time.
pub(crate) type LoneEnding = (i64, (Option<String>, Timestamp));

/// Some ends after a number without their decision.
pub(crate) fn lone_endings(
    transaction: &Transaction<'_>,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<LoneEnding>> {
    let sql = format!(
        "SELECT e.seq, e.decision, e.at FROM ending e WHERE e.seq > ?1
         AND NOT EXISTS (SELECT 1 FROM decision p WHERE p.id = e.decision) ORDER BY e.seq LIMIT {limit}"
    );
    let mut query = transaction.prepare_cached(&sql)?;
    let read = |row: &Row<'_>| {
        // Damage may have made the id no text.
        Ok((row.get(0)?, (String::from_utf8(raw_text(row, 1)?).ok(), Timestamp(row.get(2)?))))
    };
    query.query_map([after], read)?.collect()
}

/// Removes a decision with its end.
pub(crate) fn remove(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM decision WHERE id = ?1",
        "DELETE FROM ending WHERE decision = ?1",
        "DELETE FROM published WHERE entry IN ('p.' || ?1, 'p.' || ?1 || '.end')",
    ] {
        transaction.prepare_cached(sql)?.execute([id])?;
    }
    Ok(())
}

/// A decision, and what counts here, by this controller's clock: when it ends by itself, or of a group's release until when its
/// marks were made.
#[derive(Clone, Debug)]
struct Kept {
    decision: Decision,
    here: Option<Timestamp>,
}

impl Kept {
    /// One that is first seen here at that time.
    fn since(decision: Decision, from: Timestamp) -> Self {
        let here = match decision.about {
            About::ReleaseGroup(_) => Some(decision.at.min(from)),
            _ => decision.lasts().map(|lasts| from + lasts),
        };
        Self { decision, here }
    }

    /// The decision as it is in effect here.
    fn here(mut self) -> Decision {
        match &mut self.decision.about {
            About::Pause { until, .. } => *until = self.here,
            About::Maintenance { until, .. } => *until = self.here.unwrap_or(*until),
            About::ReleaseGroup(_) => self.decision.at = self.here.unwrap_or(self.decision.at),
            About::Release(_) => {}
        }
        self.decision
    }

    /// Returns whether its end moves.
    fn moves(&mut self, set: i64, now: Timestamp) -> bool {
        let (Some(end), Some(lasts)) = (self.here, self.decision.lasts()) else { return false };
        let moved = Timestamp(end.0.saturating_add(set)).min(now + lasts);
        self.here = Some(moved);
        moved != end
    }
}

/// All columns but the digest.
fn columns(Kept { decision, here }: &Kept) -> Vec<Value> {
    vec![
        decision.id.to_string().into(),
        text(decision.about.kind()),
        decision.about.mark().map(|mark| mark.to_string()).into(),
        decision.about.scope().map(|scope| scope.text()).into(),
        decision.about.until().map(|until| until.0).into(),
        decision.at.0.into(),
        text(&decision.actor),
        text(&decision.reason),
        here.map(|end| end.0).into(),
    ]
}

fn columns_of_boot(boot: &Boot) -> Vec<Value> {
    vec![text(&boot.id), boot.began.0.into()]
}

fn columns_of_ending(ending: &Ending) -> Vec<Value> {
    let Ending { id, at, actor, reason } = ending;
    vec![id.to_string().into(), at.0.into(), text(actor), text(reason)]
}

pub(crate) fn decode(row: &Row<'_>) -> Checked<Decision> {
    decode_kept(row).map(|kept| kept.decision)
}

fn decode_kept(row: &Row<'_>) -> Checked<Kept> {
    let here = row.get(8).ok().flatten().map(Timestamp);
    let kept = decode_unchecked(row).map(|decision| Kept { decision, here });
    checked(row, ("decision", 9), kept, columns)
}

fn decode_unchecked(row: &Row<'_>) -> Option<Decision> {
    Some(Decision {
        id: NoteId::parse(&row.get::<_, String>(0).ok()?).ok()?,
        about: decode_about(row)?,
        at: Timestamp(row.get(5).ok()?),
        actor: row.get(6).ok()?,
        reason: row.get(7).ok()?,
    })
}

fn decode_about(row: &Row<'_>) -> Option<About> {
    let (kind, mark): (String, Option<String>) = (row.get(1).ok()?, row.get(2).ok()?);
    if About::is_of_a_mark(&kind) {
        return Some(About::Release(MarkId::parse(&mark?).ok()?));
    }
    let (scope, until): (String, Option<i64>) = (row.get(3).ok()?, row.get(4).ok()?);
    About::of_scope(&kind, Scope::of_text(&scope)?, until.map(Timestamp))
}

fn decode_ending(row: &Row<'_>) -> Checked<Ending> {
    checked(row, ("ending", 4), decode_ending_unchecked(row), columns_of_ending)
}

fn decode_ending_unchecked(row: &Row<'_>) -> Option<Ending> {
    Some(Ending {
        id: NoteId::parse(&row.get::<_, String>(0).ok()?).ok()?,
        at: Timestamp(row.get(1).ok()?),
        actor: row.get(2).ok()?,
        reason: row.get(3).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Home, NOW, events, marked, marked_as};
    use crate::{HistoryFilter, Role};
    use marks::host::HostName;
    use marks::mark::{Doubt, Standing};

    const HELD: Standing = Standing::Doubtful(Doubt::Unconfirmed);

    fn standing(journal: &Journal, mark: MarkId) -> Standing {
        journal.mark(mark).unwrap().unwrap().standing
    }

    /// Any member of `haclient` could have written it.
    #[test]
    fn a_decision_of_another_controller_is_kept_and_releases_nothing() {
        let (here, there) = (Home::new(), Home::new());
        let (mut here, mut there) = (here.open(Role::Alerter), there.open(Role::Alerter));
        let mark = marked_as(&mut here, "compute1", NOW, HELD);
        let decision = here.release(mark, "I saw it burn", "alice", NOW).unwrap().unwrap();
        assert!(!there.adopt_decision(&decision, true, NOW).unwrap(), "its mark is not here yet");
        let same = samples::mark(&here.fencings_of(mark).unwrap().sound[0]);
        let same = MarkRow { standing: HELD, ..same };
        there.make_mark(&same, crate::Taken::Register, &[], None, NOW).unwrap();
        assert!(there.adopt_decision(&decision, true, NOW).unwrap());
        assert!(!there.adopt_decision(&decision, true, NOW).unwrap());
        assert_eq!(standing(&there, mark), HELD);
        assert_eq!(there.decisions_of(mark).unwrap().sound, [decision]);
        assert_eq!(events(&there, mark), ["marked", "read"]);
        assert!(there.release(mark, "I see it too", "bob", NOW).unwrap().is_some());
    }

    const HOUR: Duration = Duration::from_secs(3600);

    fn decision(about: About, at: Timestamp) -> Decision {
        Decision { id: NoteId::generate(), about, at, actor: "alice".into(), reason: "new switch".into() }
    }

    fn pause(scope: Scope, until: Option<Timestamp>) -> Decision {
        decision(About::Pause { scope, until }, NOW)
    }

    fn maintenance(scope: Scope, lasting: Duration) -> Decision {
        decision(About::Maintenance { scope, until: NOW + lasting }, NOW)
    }

    fn rack1() -> Scope {
        Scope::Group("rack1".into())
    }

    fn host(name: &str) -> Scope {
        Scope::Host(HostName::parse(name).unwrap())
    }

    fn end_of(decision: &Decision, at: Timestamp) -> Ending {
        Ending { id: decision.id, at, actor: "bob".into(), reason: "it is in".into() }
    }

    fn in_force(journal: &Journal, now: Timestamp) -> Vec<Decision> {
        let rows = journal.decisions_in_force(now).unwrap();
        assert!(rows.damaged.is_empty());
        rows.sound
    }

    /// Event, host and actor of everything.
    fn story(journal: &Journal) -> Vec<(String, Option<String>, String)> {
        let rows = journal.history(&HistoryFilter::default()).unwrap().sound;
        rows.into_iter().map(|row| (row.event, row.node, row.actor)).collect()
    }

    /// S0-3, S0-40. The broken variant loses the automatic end, and a host would be held forever.
    #[test]
    fn a_decision_is_in_force_until_its_end_or_its_time() {
        let (home, mut journal) = Home::alerter();
        let all = [
            pause(Scope::All, None),
            pause(rack1(), Some(NOW + HOUR)),
            maintenance(host("compute1"), HOUR),
            maintenance(rack1(), 2 * HOUR),
            decision(About::ReleaseGroup("rack1".into()), NOW),
        ];
        for decision in &all {
            assert!(journal.decide(decision).unwrap());
            assert!(!journal.decide(decision).unwrap(), "it is written once");
        }
        let left = |journal: &Journal, now| -> Vec<bool> {
            let found = in_force(journal, now);
            all.iter().map(|decision| found.contains(decision)).collect()
        };
        assert_eq!(left(&journal, NOW), [true; 5]);
        assert_eq!(left(&journal, NOW + HOUR), [true, false, false, true, true]);
        assert_eq!(left(&journal, NOW + 2 * HOUR), [true, false, false, false, true]);
        assert_eq!(left(&journal, NOW + 8 * 24 * HOUR), [true, false, false, false, false]);
        assert!(journal.end_decision(&end_of(&all[0], NOW + HOUR)).unwrap());
        assert_eq!(left(&journal, NOW + HOUR), [false, false, false, true, true]);
        assert_eq!(left(&home.open(Role::Reader), NOW), [false, true, true, true, true]);
    }

    /// P7: only an operator ends it, and the history names that operator.
    #[test]
    fn a_decision_ends_once_and_the_history_names_who_did_it() {
        let (_home, mut journal) = Home::alerter();
        let (pause, maintenance) = (pause(rack1(), None), maintenance(host("compute1"), HOUR));
        let release = decision(About::ReleaseGroup("rack1".into()), NOW);
        assert!(!journal.end_decision(&end_of(&pause, NOW)).unwrap(), "there is none yet");
        for decision in [&pause, &maintenance, &release] {
            journal.decide(decision).unwrap();
        }
        let versions = |journal: &Journal| journal.decisions_version().unwrap();
        assert_eq!(versions(&journal), 3);
        assert!(!journal.end_decision(&end_of(&maintenance, NOW + HOUR)).unwrap(), "it is over by itself");
        for decision in [&pause, &maintenance] {
            assert!(journal.end_decision(&end_of(decision, NOW)).unwrap());
            assert!(!journal.end_decision(&end_of(decision, NOW)).unwrap());
        }
        assert!(!journal.end_decision(&end_of(&release, NOW)).unwrap(), "a release has no end");
        assert_eq!(versions(&journal), 5);
        let row = |event: &str, node: Option<&str>, actor: &str| {
            (event.to_owned(), node.map(str::to_owned), actor.to_owned())
        };
        let wanted = [
            row("paused", None, "alice"),
            row("maintenance-began", Some("compute1"), "alice"),
            row("released", None, "alice"),
            row("resumed", None, "bob"),
            row("maintenance-ended", Some("compute1"), "bob"),
        ];
        assert_eq!(story(&journal), wanted);
    }

    /// Doubt needs a proof; a rule's hold needs only the release.
    #[test]
    fn a_mark_that_only_a_rule_holds_can_be_released_once() {
        let (_home, mut journal) = Home::alerter();
        let (mark, other) = (marked(&mut journal, "compute1", NOW), marked(&mut journal, "compute2", NOW));
        assert!(journal.released_marks().unwrap().is_empty());
        let decision = journal.release(mark, "let it go", "alice", NOW).unwrap().unwrap();
        assert_eq!(journal.release(mark, "again", "bob", NOW).unwrap(), None);
        assert_eq!(standing(&journal, mark), Standing::Proven(Proof::Journal));
        assert_eq!(journal.decisions_of(mark).unwrap().sound, [decision]);
        assert_eq!(journal.released_marks().unwrap(), HashSet::from([mark]));
        assert_eq!(events(&journal, mark), ["marked", "released"]);
        let read = Decision { id: NoteId::generate(), ..self::decision(About::Release(other), NOW) };
        assert!(journal.adopt_decision(&read, true, NOW).unwrap(), "the register's entry overrides rules");
        assert_eq!(journal.released_marks().unwrap(), HashSet::from([mark, other]));
        journal.dismiss(mark, "no", "alice", NOW).unwrap();
        assert_eq!(journal.released_marks().unwrap(), HashSet::from([other]), "a settled mark is none");
        assert!(in_force(&journal, NOW).is_empty(), "the release of a mark is not about a group");
    }

    /// A damaged decision holds nothing until it is read again; a damaged end counts.
    #[test]
    fn damage_makes_no_decision() {
        let (home, mut journal) = Home::alerter();
        let pause = pause(Scope::All, None);
        journal.decide(&pause).unwrap();
        home.raw().execute("UPDATE decision SET scope = 'group:rack1'", []).unwrap();
        let read = journal.decisions_in_force(NOW).unwrap();
        assert!(read.sound.is_empty() && read.damaged.len() == 1);
        assert!(!journal.end_decision(&end_of(&pause, NOW)).unwrap());
        let version = journal.decisions_version().unwrap();
        assert!(journal.adopt_decision(&pause, true, NOW).unwrap());
        assert!(journal.decisions_version().unwrap() > version);
        assert_eq!(in_force(&journal, NOW), std::slice::from_ref(&pause));
        assert!(journal.end_decision(&end_of(&pause, NOW)).unwrap());
        home.raw().execute("UPDATE ending SET actor = 'mallory'", []).unwrap();
        assert!(in_force(&journal, NOW).is_empty());
    }
}
