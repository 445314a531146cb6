//! Watermarks: when an alerter first ran in this cluster. Older events in Pacemaker's history are not sent.

use rusqlite::Row;
use rusqlite::types::Value;

use crate::history::{self, ALERTER, NewHistory};
use crate::store::digest::{Checked, checked, text, with_digest};
use crate::{Done, Journal};
use marks::id::NoteId;
use marks::register::Watermark;
use marks::time::Timestamp;

impl Journal {
    /// All watermarks, oldest first.
    ///
    /// # Errors
    /// As any read; damaged ones are left out.
    pub fn watermarks(&self) -> Done<Vec<Watermark>> {
        let sql = "SELECT id, at, made_by, digest FROM watermark ORDER BY at, id";
        Ok(self.rows(sql, [], decode)?.sound)
    }

    /// Stores a watermark, this controller's own or one from the register. A present one stays unchanged.
    ///
    /// # Errors
    /// As any write.
    pub fn note_watermark(&mut self, watermark: &Watermark) -> Done {
        if self.watermarks()?.iter().any(|known| known.id == watermark.id) {
            return Ok(());
        }
        self.write(|transaction| {
            // A damaged row under this id is replaced.
            let sql = "INSERT OR REPLACE INTO watermark VALUES (?1, ?2, ?3, ?4)";
            transaction.execute(sql, with_digest("watermark", columns(watermark)))?;
            let at = watermark.at;
            let detail = format!("events in Pacemaker's history from before {} s are not sent", at.seconds());
            let row = NewHistory::new(at, "watermark", &detail, ALERTER);
            history::append(transaction, &row)
        })
    }
}

fn columns(watermark: &Watermark) -> Vec<Value> {
    let Watermark { id, at, by } = watermark;
    vec![id.to_string().into(), at.0.into(), text(by)]
}

fn decode(row: &Row<'_>) -> Checked<Watermark> {
    checked(row, ("watermark", 3), decode_unchecked(row), columns)
}

fn decode_unchecked(row: &Row<'_>) -> Option<Watermark> {
    Some(Watermark {
        id: NoteId::parse(&row.get::<_, String>(0).ok()?).ok()?,
        at: Timestamp(row.get(1).ok()?),
        by: row.get(2).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tests::{Home, NOW};
    use crate::{HistoryFilter, Role};

    #[test]
    fn a_watermark_is_written_once_and_never_changed() {
        let (home, mut journal) = Home::alerter();
        let first = Watermark { id: NoteId::generate(), at: NOW, by: "ctl1".into() };
        let earlier =
            Watermark { id: NoteId::generate(), at: NOW - Duration::from_secs(9), by: "ctl2".into() };
        let forged = Watermark { at: NOW + Duration::from_secs(9), ..first.clone() };
        for watermark in [&first, &earlier, &first, &forged] {
            journal.note_watermark(watermark).unwrap();
        }
        let both = [earlier.clone(), first.clone()];
        assert_eq!(home.open(Role::Reader).watermarks().unwrap(), both);
        assert_eq!(journal.history(&HistoryFilter::default()).unwrap().sound.len(), 2);
        home.raw().execute("UPDATE watermark SET at = 0 WHERE made_by = 'ctl2'", []).unwrap();
        assert_eq!(journal.watermarks().unwrap(), std::slice::from_ref(&first), "a damaged one is none");
        journal.note_watermark(&earlier).unwrap();
        assert_eq!(journal.watermarks().unwrap(), both, "until it is read again");
    }
}
