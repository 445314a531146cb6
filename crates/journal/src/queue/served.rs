//! The routes for which every open mark has its deliveries: a daemon that starts with the same routes need not check each
//! mark.

use rusqlite::{OptionalExtension, params};

use crate::store::digest::Digest;
use crate::{Journal, JournalError};

impl Journal {
    /// The routes that were served last, as stored; `None` if the row is damaged.
    ///
    /// # Errors
    /// As any read.
    pub fn served(&self) -> Result<Option<String>, JournalError> {
        let read = self.connection.query_row("SELECT routes, digest FROM served", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
        });
        let found = self.sqlite(read.optional())?;
        Ok(found.filter(|(routes, kept)| *kept == digest(routes)).map(|(routes, _)| routes))
    }

    /// Notes that every open mark has its deliveries for these routes.
    ///
    /// # Errors
    /// As any write.
    pub fn note_served(&mut self, routes: &str) -> Result<(), JournalError> {
        self.write(|transaction| {
            let sql = "INSERT OR REPLACE INTO served VALUES (1, ?1, ?2)";
            transaction.execute(sql, params![routes, digest(routes)])?;
            Ok(())
        })
    }
}

fn digest(routes: &str) -> Vec<u8> {
    Digest::of("served").text(routes).finish()
}

#[cfg(test)]
mod tests {
    use crate::Role;
    use crate::tests::Home;

    #[test]
    fn what_was_served_is_known_until_the_row_is_damaged() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        assert_eq!(journal.served().unwrap(), None);
        for routes in ["recovery", "recovery wiki"] {
            journal.note_served(routes).unwrap();
            assert_eq!(journal.served().unwrap().as_deref(), Some(routes));
        }
        home.raw().execute("UPDATE served SET routes = 'recovery wiki other'", []).unwrap();
        assert_eq!(journal.served().unwrap(), None);
    }
}
