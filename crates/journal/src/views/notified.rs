//! The notices that were sent: each target gets one for a condition, and one for its end, also across restarts.

use rusqlite::{Row, params};

use crate::store::digest::Digest;
use crate::store::rows::{Checked, Damage, Rows, printable_key};
use crate::{Journal, JournalError};
use marks::time::Timestamp;

/// A condition that a target was notified of, or may have been, and of whose end it was not surely notified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notified {
    /// The condition's key, made by the alerter.
    pub condition: String,
    /// Since when it holds, as it was sent.
    pub since: Timestamp,
    /// Text for the notice of its end, and whether the notice surely arrived; made by the alerter.
    pub about: String,
}

impl Journal {
    /// The notices sent to a target; a damaged row counts as not sent.
    ///
    /// # Errors
    /// As any read.
    pub fn notices_sent(&self, target: &str) -> Result<Rows<Notified>, JournalError> {
        let sql =
            "SELECT condition, since, about, digest, target FROM told WHERE target = ?1 ORDER BY condition";
        self.rows(sql, [target], decode)
    }

    /// Stores the notices that a target was sent or will be sent now, and removes conditions of whose end it was
    /// notified.
    ///
    /// # Errors
    /// As any write. After an error the notice is sent again.
    pub fn record_notices(
        &mut self,
        target: &str,
        sent: &[Notified],
        over: &[String],
    ) -> Result<(), JournalError> {
        self.write(|transaction| {
            // A damaged row under this key is replaced.
            let mut note =
                transaction.prepare_cached("INSERT OR REPLACE INTO told VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for row in sent {
                let Notified { condition, since, about } = row;
                note.execute(params![target, condition, since.0, about, digest(target, row)])?;
            }
            let mut forget =
                transaction.prepare_cached("DELETE FROM told WHERE target = ?1 AND condition = ?2")?;
            for condition in over {
                forget.execute([target, condition])?;
            }
            Ok(())
        })
    }

    /// Removes rows of other targets than these, which are not configured any more. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub fn forget_other_targets(&mut self, targets: &[String]) -> Result<usize, JournalError> {
        const OTHERS: &str = "FROM told WHERE target NOT IN (SELECT value FROM json_each(?1))";
        let count = |row: &Row<'_>| row.get::<_, u32>(0);
        let others = self.connection.query_row(&format!("SELECT count(*) {OTHERS}"), [json(targets)], count);
        // A start writes nothing if there is nothing to remove.
        if self.sqlite(others)? == 0 {
            return Ok(0);
        }
        self.write(|transaction| Ok(transaction.execute(&format!("DELETE {OTHERS}"), [json(targets)])?))
    }
}

/// A list as one SQL parameter.
pub(crate) fn json(list: &[String]) -> String {
    serde_json::Value::from(list).to_string()
}

fn digest(target: &str, row: &Notified) -> Vec<u8> {
    Digest::of("told").text(target).text(&row.condition).int(row.since.0).text(&row.about).finish()
}

fn decode(row: &Row<'_>) -> Checked<Notified> {
    let damage = || Damage { table: "told", key: printable_key(row) };
    let (notified, target) = decode_unchecked(row).map_err(|_| damage())?;
    let kept: Vec<u8> = row.get(3).map_err(|_| damage())?;
    if kept == digest(&target, &notified) { Ok(notified) } else { Err(damage()) }
}

fn decode_unchecked(row: &Row<'_>) -> rusqlite::Result<(Notified, String)> {
    let notified = Notified { condition: row.get(0)?, since: Timestamp(row.get(1)?), about: row.get(2)? };
    Ok((notified, row.get(4)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use crate::tests::{Home, NOW};

    fn notified(condition: &str) -> Notified {
        Notified { condition: condition.into(), since: NOW, about: "{}".into() }
    }

    fn keys(journal: &Journal, target: &str) -> Vec<String> {
        journal.notices_sent(target).unwrap().sound.into_iter().map(|row| row.condition).collect()
    }

    #[test]
    fn a_target_is_notified_and_its_rows_go_with_the_condition_or_with_the_target() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let later = Notified { since: Timestamp(NOW.0 + 1), about: "x".into(), ..notified("a") };
        journal.record_notices("oncall", &[notified("a"), notified("b")], &[]).unwrap();
        journal.record_notices("pager", &[notified("a")], &[]).unwrap();
        journal
            .record_notices("oncall", std::slice::from_ref(&later), &["b".into(), "never".into()])
            .unwrap();
        assert_eq!(home.open(Role::Reader).notices_sent("oncall").unwrap().sound, [later]);
        assert_eq!(keys(&journal, "pager"), ["a"]);
        assert_eq!(journal.forget_other_targets(&["oncall".into(), "new".into()]).unwrap(), 1);
        assert_eq!((keys(&journal, "oncall").len(), keys(&journal, "pager").len()), (1, 0));
        assert_eq!(journal.forget_other_targets(&["oncall".into()]).unwrap(), 0);
        assert_eq!(journal.forget_other_targets(&[]).unwrap(), 1);
    }

    /// A changed row would otherwise keep a condition, or its end, from being sent.
    #[test]
    fn a_damaged_row_counts_as_not_sent_until_it_is_sent_again() {
        for change in ["since = 0", "about = 'x'", "condition = 'b'", "target = 'pager'", "digest = x'00'"] {
            let home = Home::new();
            let mut journal = home.open(Role::Alerter);
            journal.record_notices("oncall", &[notified("a")], &[]).unwrap();
            home.raw().execute(&format!("UPDATE told SET {change}"), []).unwrap();
            let damaged: usize = ["oncall", "pager"]
                .map(|target| {
                    let rows = journal.notices_sent(target).unwrap();
                    assert!(rows.sound.is_empty(), "{change}");
                    rows.damaged.len()
                })
                .iter()
                .sum();
            assert_eq!(damaged, 1, "{change}");
            journal.record_notices("oncall", &[notified("a")], &[]).unwrap();
            assert_eq!(keys(&journal, "oncall"), ["a"], "{change}");
        }
    }
}
