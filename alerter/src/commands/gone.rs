//! Words of the command line that are no more: each is refused like a mistyped one, with what serves instead.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// The word, and what to do instead.
const GONE: [(&str, &str); 17] = [
    ("report", "use `nova-host-alerter history --summary`"),
    ("export", "use `nova-host-alerter history --limit 0 -o json`"),
    (
        "events",
        "use `nova-host-alerter history --limit 0 -o json`, and read the log in the journal or in syslog",
    ),
    ("hold", "use `maintenance begin` for each host, or for a group"),
    ("run", "use `maintenance begin`, run the command, and use `maintenance end`"),
    ("complete", "the shells complete commands and options by themselves"),
    ("--watch", "use `watch nova-host-alerter status`"),
    ("--settled", "use `nova-host-alerter list --all`"),
    ("--wait", "use `nova-host-alerter retry --all`, then `watch nova-host-alerter status`"),
    ("--columns", "use `-o json`"),
    ("--format", "use `-o json`"),
    ("--output", "use `>`"),
    ("wide", "use `-o json`"),
    ("yaml", "use `-o json`"),
    ("csv", "use `-o json`"),
    ("--notice", "notices are gone: Pacemaker's alerts reach people (docs/health.md)"),
    ("receiver-check", "it is a program of the source: `cargo run -p tests --bin receiver-check`"),
];

/// What serves instead of the word that was not understood.
pub(super) fn instead(error: &clap::Error) -> Option<&'static str> {
    const KINDS: [ContextKind; 3] =
        [ContextKind::InvalidSubcommand, ContextKind::InvalidArg, ContextKind::InvalidValue];
    let said = KINDS.iter().filter_map(|kind| error.get(*kind));
    said.filter_map(|said| of(said.to_string().split(['=', ' ']).next()?)).next()
}

/// The same of a word that clap takes for something else.
pub(super) fn of(word: &str) -> Option<&'static str> {
    GONE.iter().find(|(gone, _)| *gone == word).map(|(_, instead)| *instead)
}

/// Says it in the place of what is only similar.
pub(super) fn advise(error: &mut clap::Error, instead: Option<&'static str>) {
    let Some(instead) = instead else { return };
    for similar in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
    {
        error.remove(similar);
    }
    let tips = vec![StyledStr::from(instead)];
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    /// The broken variant names what is like it: `retry` for `report`.
    #[test]
    fn a_word_that_is_gone_is_refused_with_what_serves_instead() {
        for (line, wanted) in [
            ("report --since 30d", "history --summary"),
            ("hold c1 --for 2h", "`maintenance begin`"),
            ("maintenance run c1 -- true", "`maintenance begin`"),
            ("complete -- show", "by themselves"),
            ("send-test --notice x", "Pacemaker's alerts"),
            ("receiver-check http://x", "--bin receiver-check"),
            ("status --watch", "`watch nova-host-alerter status`"),
            ("status --watch=5", "`watch nova-host-alerter status`"),
            ("list --settled", "list --all"),
            ("retry --all --wait=5", "`watch nova-host-alerter status`"),
            ("list --columns host", "`-o json`"),
            ("list -o wide", "`-o json`"),
            ("history -o yaml", "`-o json`"),
            ("history -o csv", "`-o json`"),
            ("history export --format csv", "`-o json`"),
            ("events --follow", "`nova-host-alerter history --limit 0 -o json`"),
            ("history export --output x", "`>`"),
        ] {
            let words = [&["x"][..], &line.split(' ').collect::<Vec<_>>()].concat();
            let mut error = Cli::try_parse_from(words).unwrap_err();
            let instead = instead(&error);
            advise(&mut error, instead);
            let said = error.to_string();
            assert!(said.contains(wanted) && !said.contains("similar"), "{line}: {said}");
        }
        let mistyped = Cli::try_parse_from(["x", "statsu"]).unwrap_err();
        assert_eq!(instead(&mistyped), None);
    }
}
