//! What is news after an answer of Nova, or after the mark has changed: rows of the history. Pure.

use marks::mark::MarkRow;
use marks::recovery::{Case, End, Recovery};
use marks::time::Timestamp;

use super::said::{sentence, shown};
use super::{Late, Sight, Unanswered};
use crate::words::counted;

/// A row of the history: its word and its sentence.
pub type News = (&'static str, String);

/// Brings what is known up to date, and says what is new in it.
pub fn advance(recovery: &mut Recovery, was_asked: bool, case: &Case<'_>, now: Timestamp) -> Vec<News> {
    let (mut news, row) = (Vec::new(), case.mark);
    if recovery.ended.is_some() {
        return news;
    }
    if !was_asked && recovery.began_at.is_some() {
        news.push(("instances", first(recovery, row)));
    }
    if let Some(end) = recovery.end(case, now) {
        recovery.ended = Some((end, now));
        // Of an outage that ended before Nova was asked there is nothing to say.
        if recovery.began_at.is_none() {
            return news;
        }
        news.push((word(end), sentence(recovery, row.node.as_str(), row.failure_time).what));
    } else if recovery.late_since.is_none() && recovery.is_late(case, now) {
        recovery.late_since = Some(now);
        news.push(("not-recovered", sentence(recovery, row.node.as_str(), row.failure_time).what));
    }
    news
}

/// Whether there is anything new in it by the mark and the time alone.
pub fn has_news(recovery: &Recovery, case: &Case<'_>, now: Timestamp) -> bool {
    let is_late = || recovery.late_since.is_none() && recovery.is_late(case, now);
    recovery.ended.is_none() && (recovery.end(case, now).is_some() || is_late())
}

fn first(recovery: &Recovery, row: &MarkRow) -> String {
    let count = counted(recovery.tally().there, "instance is", "instances are");
    format!("{count} on {}, as Nova has it", row.node)
}

fn word(end: End) -> &'static str {
    match end {
        End::Recovered => "recovered",
        End::HostBack | End::FailedAgain | End::NothingSeen | End::NotReported | End::GaveUp => {
            "recovery-ended"
        }
    }
}

/// What is seen of it, for problems and metrics.
pub fn sight(recovery: &Recovery, row: &MarkRow, unanswered: Option<Unanswered>) -> Sight {
    let late = recovery.late_since.map(|since| Late { since, left: shown(recovery.unproven()) });
    Sight {
        mark: row.id,
        node: row.node.as_str().to_owned(),
        tally: recovery.tally(),
        late: late.filter(|late| !late.left.is_empty()),
        unanswered,
        is_known: true,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marks::mark::Settlement;
    use marks::recovery::{Host, Rules};

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const RULES: Rules = Rules {
        every: Duration::from_secs(60),
        limit: Duration::from_secs(900),
        ask_for: Duration::from_secs(86_400),
    };

    fn there(recovery: &mut Recovery, count: usize) {
        let one = |number: usize| samples::instance(&number.to_string(), "c7");
        recovery.note_host((0..count).map(one).collect(), Host::Away, NOW);
    }

    fn acknowledged() -> MarkRow {
        MarkRow { settled: Some((Settlement::Acknowledged, NOW)), ..samples::mark_of("compute7", NOW) }
    }

    fn advanced(recovery: &mut Recovery, was_asked: bool, now: Timestamp) -> Vec<News> {
        let row = acknowledged();
        advance(recovery, was_asked, &Case { mark: &row, rules: &RULES, failed_again: false }, now)
    }

    fn words(news: &[News]) -> Vec<&'static str> {
        news.iter().map(|(word, _)| *word).collect()
    }

    /// Each is said once. The broken variant says at each answer that some are left.
    #[test]
    fn an_outage_is_followed_from_the_first_answer_to_its_end() {
        let (mut recovery, row) = (Recovery::default(), acknowledged());
        let late = NOW + RULES.limit;
        there(&mut recovery, 2);
        assert_eq!(words(&advanced(&mut recovery, false, NOW)), ["instances"]);
        assert!(advanced(&mut recovery, true, NOW).is_empty());
        assert_eq!(sight(&recovery, &row, None).late, None);
        assert_eq!(words(&advanced(&mut recovery, true, late)), ["not-recovered"]);
        assert!(advanced(&mut recovery, true, late).is_empty());
        let left = vec!["web-0".to_owned(), "web-1".to_owned()];
        assert_eq!(sight(&recovery, &row, None).late, Some(Late { since: late, left }));
        recovery.note_host(Vec::new(), Host::Away, late);
        for id in ["0", "1"] {
            recovery.note_one(id, "c7", None, late);
        }
        let end = advanced(&mut recovery, true, late);
        assert_eq!(words(&end), ["recovered"]);
        assert!(sight(&recovery, &row, None).late.is_none());
        assert!(advanced(&mut recovery, true, late).is_empty());
    }

    /// The broken variant writes a row for each old mark when Nova is configured.
    #[test]
    fn an_outage_that_was_over_before_nova_was_asked_is_no_news() {
        let mut recovery = Recovery::default();
        assert!(advanced(&mut recovery, true, NOW + RULES.ask_for).is_empty());
        assert_eq!(recovery.ended, Some((End::GaveUp, NOW + RULES.ask_for)));
    }

    /// The broken variant shows one of them: the notice of what is left would be cleared by one failed question.
    #[test]
    fn a_nova_that_is_away_hides_nothing_of_what_is_left() {
        let mut recovery = Recovery { late_since: Some(NOW), ..Recovery::default() };
        there(&mut recovery, 1);
        let unanswered = Some(Unanswered { since: NOW, why: "HTTP 503".into() });
        let sight = sight(&recovery, &acknowledged(), unanswered.clone());
        assert_eq!((sight.late.map(|late| late.since), sight.unanswered), (Some(NOW), unanswered));
    }
}
