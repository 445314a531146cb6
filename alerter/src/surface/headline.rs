//! Whether every fenced host is notified: the one sentence with which the terminal and the status page begin. Pure.

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headline {
    /// Why it is not known, if so.
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
            return format!("UNKNOWN whether every fenced host is reported: {why}");
        }
        let unmarked = match self.unmarked {
            0 => String::new(),
            1 => "1 is not marked yet".to_owned(),
            more => format!("{more} are not marked yet"),
        };
        match (self.open, self.unmarked) {
            (0, 0) if self.is_nowhere => {
                "No fenced host waits to be reported, but THE ALERTER DOES NOT RUN: the next one will wait."
                    .to_owned()
            }
            (0, 0) => "No fenced host waits to be reported.".to_owned(),
            (0, _) => format!("NOT EVERY FENCED HOST IS REPORTED: {unmarked}."),
            (open, new) => {
                let waits = if open == 1 { "waits" } else { "wait" };
                let oldest = self.oldest.as_ref().map(|oldest| format!(", {oldest}")).unwrap_or_default();
                let unmarked = if new > 0 { format!(", {unmarked}") } else { unmarked };
                format!("NOT EVERY FENCED HOST IS REPORTED: {open} {waits}{oldest}{unmarked}.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant says it wherever no mark is open.
    #[test]
    fn it_says_notified_only_where_that_is_known() {
        let known = Headline::default();
        assert_eq!(known.sentence(), "No fenced host waits to be reported.");
        let others = [
            Headline { unknown: Some("the journal does not answer".into()), ..known.clone() },
            Headline { open: 1, ..known.clone() },
            Headline { unmarked: 1, ..known },
        ];
        assert!(others.iter().all(|other| !other.sentence().starts_with("No fenced")), "{others:?}");
    }
}
