//! Whether every fenced host is notified: the one sentence with which the terminal and the status page begin. Pure.

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headline {
    /// Why nobody can say it, if so.
    pub unknown: Option<String>,
    /// How many marks are open.
    pub open: usize,
    /// How many fencings have no mark yet.
    pub unmarked: usize,
    /// The host of the oldest open mark, and since when.
    pub oldest: Option<String>,
    /// Whether no alerter runs anywhere that would notify of the next one.
    pub is_nowhere: bool,
}

impl Headline {
    /// The sentence.
    pub fn sentence(&self) -> String {
        if let Some(why) = &self.unknown {
            return format!("NOBODY CAN SAY HERE whether every fenced host is told: {why}");
        }
        match (self.open, self.unmarked, self.is_nowhere) {
            (0, 0, false) => "No fenced host waits to be told.".to_owned(),
            (0, 0, true) => {
                "No fenced host waits to be told, but THE ALERTER DOES NOT RUN: the next one would."
                    .to_owned()
            }
            (0, unmarked, _) => {
                let are = if unmarked == 1 { "is" } else { "are" };
                format!("NOT EVERY FENCED HOST IS TOLD: {unmarked} {are} not marked yet.")
            }
            (open, unmarked, _) => {
                let oldest = self.oldest.as_ref().map(|oldest| format!(", {oldest}")).unwrap_or_default();
                let new = if unmarked > 0 {
                    let are = if unmarked == 1 { "is" } else { "are" };
                    format!(", {unmarked} more {are} not marked yet")
                } else {
                    String::new()
                };
                let waits = if open == 1 { "waits" } else { "wait" };
                format!("NOT EVERY FENCED HOST IS TOLD: {open} {waits}{oldest}{new}.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant says it of whatever has no open mark.
    #[test]
    fn it_says_notified_only_where_that_is_known() {
        let known = Headline::default();
        assert_eq!(known.sentence(), "No fenced host waits to be told.");
        let others = [
            Headline { unknown: Some("the journal does not answer".into()), ..known.clone() },
            Headline { open: 1, ..known.clone() },
            Headline { unmarked: 1, ..known },
        ];
        assert!(others.iter().all(|other| !other.sentence().starts_with("Every")), "{others:?}");
    }
}
