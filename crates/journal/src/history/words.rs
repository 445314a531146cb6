//! The words of the history: a closed list, which docs/history.md explains.

/// One word of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The value of a row's `event`.
    pub word: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// The value of a row's `actor`.
    pub who: &'static str,
}

const AGENT: &str = "fence_mark, operator or api";
const ALERTER: &str = "nova-host-alerter";
const OPERATOR: &str = "the operator";
const EITHER: &str = "the operator, or nova-host-alerter for an entry of the register";
const RECEIVER: &str = "nova-host-alerter, or the token's owner";

/// Every word, in the order of the alphabet.
pub const WORDS: [Word; 46] = [
    word("accepted", "a route has accepted the message and will confirm it later", ALERTER),
    word("acknowledged", "a route has acknowledged the mark", ALERTER),
    word(
        "acknowledged-elsewhere",
        "the route acknowledged the mark to the alerter on another controller",
        ALERTER,
    ),
    word("asked", "a route's further step was asked and is not done yet", ALERTER),
    word("cancelled", "a delivery ended by a rule of the configuration", ALERTER),
    word("confirmed", "a receiver confirmed a mark that it had only accepted", "the token's owner"),
    word("dismissed", "the open deliveries of a settled mark were ended", OPERATOR),
    word("doubted", "a mark is held, since it may have been sent before", ALERTER),
    word("escalated", "the next route of a chain is notified", ALERTER),
    word(
        "exhausted",
        "the last route of a chain did not acknowledge in time; it is retried forever",
        ALERTER,
    ),
    word("expired", "a mark has ended, since its outage goes out as another mark", ALERTER),
    word("fenced", "a fencing was recorded", AGENT),
    word("fenced-again", "a further fencing of the same outage", ALERTER),
    word("forgotten", "old sightings were removed", ALERTER),
    word("freed", "nothing holds a mark or a delivery any more", ALERTER),
    word("healthy", "a host is in the cluster, and no health check of it fails any more", ALERTER),
    word("held", "a mark or a delivery is held, with the reason", ALERTER),
    word("interrupted", "the daemon ended during an attempt, which is repeated", ALERTER),
    word("late-answer", "an answer came after the delivery had ended", ALERTER),
    word("lost", "the cluster lost the host, before it was fenced", ALERTER),
    word("maintenance-began", "marks of a host or a group are held while it is worked on", EITHER),
    word("maintenance-ended", "the maintenance is over", EITHER),
    word("marked", "a mark was made", ALERTER),
    word("marked-by-hand", "somebody reported that a host has failed", "the operator, or the token's owner"),
    word("named", "a mark that was held without a name has one now", ALERTER),
    word("not-accepted", "an attempt failed; written again only when it fails in another way", ALERTER),
    word(
        "not-confirmed",
        "a route has accepted the message again, after it had not confirmed it in time",
        ALERTER,
    ),
    word("past", "an old fencing gets no mark: it was probably notified before", ALERTER),
    word("paused", "sending is held until it is resumed", EITHER),
    word("proven", "a mark that was held without a proof has one now", ALERTER),
    word("pruned", "old rows were removed from the journal", ALERTER),
    word("quarantined", "a row is damaged: it is never sent and never dropped", ALERTER),
    word("read", "a fencing or a decision of another controller was read from the register", ALERTER),
    word("refused", "a route refuses a mark, which is parked", RECEIVER),
    word("released", "held marks may be sent", EITHER),
    word("reloaded", "the configuration was read again and is in use", OPERATOR),
    word("resumed", "a pause is over", EITHER),
    word("retry", "a delivery is tried at once", OPERATOR),
    word("returned", "the host of a mark is back", ALERTER),
    word("set-aside", "a fencing or a sighting of a host that is not covered was set aside", ALERTER),
    word("settled", "a mark has ended, and how", "nova-host-alerter, or the operator who ended it"),
    word("settled-elsewhere", "a mark has ended on another controller, and how", ALERTER),
    word("sighted", "Pacemaker also reports that the host of a mark was fenced", ALERTER),
    word("test-sent", "a test message was sent, with its result", OPERATOR),
    word("unhealthy", "a health check of a host fails; its agent says what follows", ALERTER),
    word("watermark", "the time from which Pacemaker's history counts", ALERTER),
];

const fn word(word: &'static str, meaning: &'static str, who: &'static str) -> Word {
    Word { word, meaning, who }
}

/// Whether it is a word of the history.
pub fn is_word(event: &str) -> bool {
    WORDS.iter().any(|known| known.word == event)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn sources(below: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(below).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match path.is_dir() {
                true => sources(&path, found),
                false => found.push(path),
            }
        }
    }

    /// The words that code outside of tests writes; this list itself does not count.
    fn code() -> String {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned();
        let mut files = Vec::new();
        for part in ["crates", "alerter/src", "fence-agent/src"] {
            sources(&root.join(part), &mut files);
        }
        let is_code = |file: &&PathBuf| !file.ends_with("words.rs") && !file.ends_with("tests.rs");
        let texts = files.iter().filter(is_code).map(|file| fs::read_to_string(file).unwrap());
        texts.map(|text| text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned()).collect()
    }

    /// The other direction: with debug assertions `append` panics at an unknown word, in every test.
    #[test]
    fn every_word_is_one_that_somebody_writes() {
        let code = code();
        for Word { word, .. } in WORDS {
            assert!(code.contains(&format!("\"{word}\"")), "{word}");
        }
        assert!(!code.contains("\"no-such-word\""));
    }

    /// docs/history.md has a table with exactly these.
    #[test]
    fn the_document_explains_each_word_and_no_other() {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("docs/history.md");
        let text = fs::read_to_string(file).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        let wanted = WORDS.map(|Word { word, meaning, who }| format!("| `{word}` | {meaning} | {who} |"));
        assert_eq!(rows, wanted);
    }
}
