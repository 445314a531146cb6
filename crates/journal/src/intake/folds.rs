//! Which mark took a fencing in: separate from the fencing, which is written once and never changed.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::history::{self, NewHistory};
use crate::{Done, Journal};
use marks::fencing::Fencing;
use marks::id::{FencingId, MarkId};
use marks::rule::Rule;
use marks::time::Timestamp;

impl Journal {
    /// Adds a further fencing of the same outage to its mark.
    ///
    /// # Errors
    /// As any write.
    pub fn add_to_mark(&mut self, fencing: &Fencing, (mark, rule): (MarkId, Rule), now: Timestamp) -> Done {
        let (node, rule_word, because) = (&fencing.node, rule.as_str(), fencing.because());
        let detail = format!("{node} was fenced again in the same outage ({rule_word}){because}");
        self.fold_with_history(fencing, (Some(mark), rule), ("fenced-again", &detail), now)
    }

    /// Sets a fencing aside, by a rule that gives it no mark.
    ///
    /// # Errors
    /// As any write.
    pub fn set_aside(&mut self, fencing: &Fencing, (rule, reason): (Rule, &str), now: Timestamp) -> Done {
        self.fold_with_history(fencing, (None, rule), ("set-aside", reason), now)
    }

    /// Passes over a fencing that an earlier alerter had (design, section 6).
    ///
    /// # Errors
    /// As any write.
    pub fn pass_over(&mut self, fencing: &Fencing, why: &str, now: Timestamp) -> Done {
        self.fold_with_history(fencing, (None, Rule::Past), ("past", why), now)
    }

    /// The mark that took a fencing in; `None` if it was set aside or not decided yet.
    ///
    /// # Errors
    /// As any read.
    pub fn mark_of(&self, fencing: FencingId) -> Done<Option<MarkId>> {
        let sql = "SELECT mark FROM folded WHERE fencing = ?1 AND digest = fold_digest(fencing, mark)";
        let read = self
            .connection
            .query_row(sql, [fencing.to_string()], |row| row.get::<_, Option<String>>(0))
            .optional();
        Ok(self.sqlite(read)?.flatten().and_then(|id| MarkId::parse(&id).ok()))
    }

    /// How many fencings a mark has taken in.
    ///
    /// # Errors
    /// As any read.
    pub fn fence_count(&self, mark: MarkId) -> Done<u32> {
        let sql = "SELECT count(*) FROM folded WHERE mark = ?1 AND digest = fold_digest(fencing, mark)";
        self.sqlite(self.connection.query_row(sql, [mark.to_string()], |row| row.get(0)))
    }

    fn fold_with_history(
        &mut self,
        fencing: &Fencing,
        (mark, rule): (Option<MarkId>, Rule),
        (event, detail): (&str, &str),
        now: Timestamp,
    ) -> Done {
        self.write(|transaction| {
            fold(transaction, fencing.id, (mark, rule))?;
            let (node, actor) = (Some(&fencing.node), "nova-host-alerter");
            let row = NewHistory { at: now, event, mark, node, route: None, outcome: None, detail, actor };
            history::append(transaction, &row)
        })
    }
}

/// The digest is without the rule, which explains and decides nothing.
pub(crate) fn fold(
    transaction: &Transaction<'_>,
    fencing: FencingId,
    (mark, rule): (Option<MarkId>, Rule),
) -> rusqlite::Result<()> {
    let (fencing, mark) = (fencing.to_string(), mark.map(|m| m.to_string()));
    let sql = "INSERT OR REPLACE INTO folded (fencing, mark, rule, digest) VALUES (?1, ?2, ?3, fold_digest(?1, ?2))";
    transaction.prepare_cached(sql)?.execute(params![fencing, mark, rule.as_str()]).map(drop)
}

/// It is outside of the digest: an unknown word does not make the row damaged.
pub(crate) fn rule(row: &Row<'_>, column: usize) -> Option<Rule> {
    let word: Option<String> = row.get(column).ok().flatten();
    word.and_then(|word| Rule::parse(&word))
}
