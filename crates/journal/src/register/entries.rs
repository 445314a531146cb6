//! The journal's entries for the register.

use crate::queue::deliveries::IS_RETURN;
use crate::{Done, Journal, KeptSighting};
use marks::delivery::{Delivery, State, TAKEN};
use marks::fencing::Fencing;
use marks::mark::{Doubt, MarkRow, Source};
use marks::register::{Acknowledgement, Entry, Key, MarkEntry, Operation, Register, Returned, Settled};
use marks::time::Timestamp;

/// A mark that is open, whose host is not back, or that was settled at `?1` or later. Pacemaker shows an outage to each alerter that begins
/// until the host is back, and only the register says that it was notified: no clock decides that this is over.
pub(crate) const CURRENT: &str = "(m.settlement IS NULL OR m.returned_at IS NULL OR m.settled_at >= ?1)";

/// The mark that a fencing `f` was folded into.
const FOLDED: &str = "FROM folded g LEFT JOIN mark m ON m.id = g.mark
             WHERE g.fencing = f.id AND g.digest = fold_digest(g.fencing, g.mark)";

impl Journal {
    /// Every entry that should be in the register now, in the order of publishing: open ones come first, and no entry of
    /// a mark that has ended goes without its end. Those whose host is back end at `since`. `by` is this controller.
    ///
    /// # Errors
    /// As any read; damaged rows are left out.
    pub fn entries(&self, since: Timestamp, by: &str) -> Done<Vec<Entry>> {
        let marks = self.marks_that(CURRENT, [since.0])?.sound;
        let (open, ended): (Vec<&MarkRow>, Vec<&MarkRow>) =
            marks.iter().partition(|row| row.settled.is_none());
        let decisions = self.current_decisions(since)?.into_iter();
        let (of_marks, of_scopes): (Vec<_>, Vec<_>) = decisions.partition(|it| it.about.mark().is_some());
        let mut all: Vec<Entry> = Vec::new();
        // The end of a decision before the decision: no other alerter takes it for one in effect.
        all.extend(self.current_endings(since)?.into_iter().map(Entry::Ending));
        all.extend(of_scopes.into_iter().map(Entry::Decision));
        for fencing in self.open_fencings()? {
            all.push(self.fencing_entry(fencing)?);
        }
        all.extend(open.into_iter().filter_map(mark_entry).map(Entry::Mark));
        all.extend(ended.iter().filter_map(|row| settled_entry(row, by)).map(Entry::Settled));
        let taken = self.current_deliveries(since)?;
        all.extend(taken.iter().filter_map(|delivery| taken_entry(delivery, by)).map(Entry::Acknowledged));
        all.extend(marks.iter().filter_map(|row| returned_entry(row, by)).map(Entry::Returned));
        all.extend(self.current_operations(since, by)?.into_iter().map(Entry::Operation));
        all.extend(self.ended_fencings(since)?.into_iter().map(Entry::Fencing));
        all.extend(ended.into_iter().filter_map(mark_entry).map(Entry::Mark));
        all.extend(of_marks.into_iter().map(Entry::Decision));
        all.extend(self.watermarks()?.into_iter().map(Entry::Watermark));
        Ok(all)
    }

    /// Those that are not decided yet, or belong to an open mark; but not if it may have been sent already: alone, they
    /// would make others send it again.
    fn open_fencings(&self) -> Done<Vec<Fencing>> {
        let open = "m.settlement IS NULL AND m.standing NOT IN ('outcome-unknown', 'fenced-again')";
        let condition = format!(
            "NOT EXISTS (SELECT 1 {FOLDED}) OR EXISTS (SELECT 1 {FOLDED} AND m.id IS NOT NULL AND {open})"
        );
        Ok(self.fencings_that(&condition, [])?.sound)
    }

    /// A fencing that another controller wrote again stays marked so: the next reader must not take it for an unsent one.
    fn fencing_entry(&self, fencing: Fencing) -> Done<Entry> {
        let again = Key::Again(fencing.id).to_string();
        for register in Register::KEPT {
            if self.is_imported(fencing.id)? && self.is_published(register, &again)? {
                return Ok(Entry::Again(fencing));
            }
        }
        Ok(Entry::Fencing(fencing))
    }

    fn ended_fencings(&self, since: Timestamp) -> Done<Vec<Fencing>> {
        let condition = format!("EXISTS (SELECT 1 {FOLDED} AND m.settlement IS NOT NULL AND {CURRENT})");
        Ok(self.fencings_that(&condition, [since.0])?.sound)
    }

    /// Which operations and fencings belong to which outage, but for those whose id is the mark's own. A return erases `node_fenced`.
    fn current_operations(&self, since: Timestamp, by: &str) -> Done<Vec<Operation>> {
        let condition = format!(
            "EXISTS (SELECT 1 FROM mark m WHERE m.id = s.mark AND {CURRENT}
               AND (s.witness = 'alert' OR s.witness = 'node-fenced' AND m.returned_at IS NULL))"
        );
        let kept = self.sightings_that(&condition, [since.0])?.sound;
        let mut all: Vec<Operation> = kept.iter().filter_map(|kept| operation(kept, by)).collect();
        let further = format!("EXISTS (SELECT 1 {FOLDED} AND m.id <> f.id AND {CURRENT})");
        for Fencing { id, asked_at: at, .. } in self.fencings_that(&further, [since.0])?.sound {
            let mark = self.mark_of(id)?;
            all.extend(mark.map(|mark| Operation { id: id.into(), mark, at, by: by.to_owned() }));
        }
        Ok(all)
    }

    fn current_deliveries(&self, since: Timestamp) -> Done<Vec<Delivery>> {
        let condition = format!(
            "(d.state = 'acknowledged' OR d.state = 'dismissed' AND {IS_RETURN}) AND EXISTS (SELECT 1 FROM mark m WHERE m.id = d.mark AND {CURRENT})"
        );
        Ok(self.deliveries_that(&condition, [since.0])?.sound)
    }
}

/// A doubtful mark is no entry: other controllers would trust it. One that was asked for without a fencing is, beside its end: nothing
/// else says whose it is. An alerter that adopted it here holds it as unproven.
fn mark_entry(row: &MarkRow) -> Option<MarkEntry> {
    let is_asked = row.settled.is_some() && row.source != Source::Fencing;
    let is_fit = match row.standing.doubt() {
        None => true,
        Some(Doubt::OutcomeUnknown | Doubt::Unproven) => is_asked,
        Some(Doubt::Unconfirmed | Doubt::FencedAgain) => false,
    };
    MarkEntry::of_row(row).filter(|_| is_fit)
}

/// For a mark that another alerter settled, it may only be known that the whole mark was acknowledged. A return that an
/// operator ended is done for every alerter.
fn taken_entry(delivery: &Delivery, by: &str) -> Option<Acknowledgement> {
    let is_taken = delivery.last.as_ref().is_some_and(|last| TAKEN.contains(&last.kind.as_str()));
    if !is_taken && delivery.state != State::Dismissed {
        return None;
    }
    let (mark, route, at) = (delivery.mark, delivery.route.clone(), delivery.ended_at?);
    Some(Acknowledgement { mark, route, at, by: by.to_owned() })
}

fn operation(KeptSighting { sighting, mark, .. }: &KeptSighting, by: &str) -> Option<Operation> {
    let mark = mark.filter(|mark| *mark != sighting.mark_id())?;
    Some(Operation { id: sighting.operation()?, mark, at: sighting.at, by: by.to_owned() })
}

fn returned_entry(row: &MarkRow, by: &str) -> Option<Returned> {
    let at = row.returned_at?;
    Some(Returned { mark: row.id, at, by: by.to_owned() })
}

fn settled_entry(row: &MarkRow, by: &str) -> Option<Settled> {
    let (how, at) = row.settled?;
    Some(Settled { mark: row.id, how, at, by: by.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tests::{Home, NOW, acknowledged, fencing, marked_as, to_recovery};
    use crate::{NewDelivery, Role, Taken};
    use marks::id::{MarkId, NoteId};
    use marks::mark::{Settlement, Standing};
    use marks::register::{About, Decision, Ending, Scope};
    use marks::rule::Rule;

    const HELD: Standing = Standing::Doubtful(Doubt::Unproven);
    const BEFORE: Timestamp = Timestamp(NOW.0 - 1);

    fn keys(journal: &Journal, since: Timestamp) -> Vec<String> {
        journal.entries(since, "ctl1").unwrap().iter().map(|entry| entry.key().to_string()).collect()
    }

    fn deliver(journal: &mut Journal, mark: MarkId, at: Timestamp) {
        journal.begin_attempt(mark, "recovery").unwrap();
        journal.finish_attempt(mark, "recovery", &acknowledged(), at).unwrap();
    }

    /// Another controller with evidence of it would take its fencing for a new one, and send it.
    #[test]
    fn a_mark_that_may_have_been_sent_has_no_entry() {
        let (_home, mut journal) = Home::alerter();
        let mark = marked_as(&mut journal, "compute1", NOW, Standing::Doubtful(Doubt::OutcomeUnknown));
        assert_eq!(keys(&journal, NOW), Vec::<String>::new());
        journal.dismiss(mark, "it was reported", "alice", NOW).unwrap();
        assert_eq!(keys(&journal, NOW), [format!("s.{mark}"), format!("f.{mark}")]);
    }

    /// C10, issue 45 A1: what was ended of an outage that lasts stays said for as long as Pacemaker shows it, and for whom it was. The broken
    /// variants forget it after a week, and say only the id, which another clock makes another one.
    #[test]
    fn the_end_of_a_mark_stays_until_the_host_is_back() {
        let (_home, mut journal) = Home::alerter();
        let standing = Standing::Doubtful(Doubt::OutcomeUnknown);
        let asked = MarkRow {
            source: Source::NodeFenced,
            standing,
            ..samples::mark(&samples::fencing("compute1", BEFORE))
        };
        journal.make_mark(&asked, Taken::Register, &[], None, NOW).unwrap();
        journal.dismiss(asked.id, "it was reported", "alice", NOW).unwrap();
        let days = NOW + Duration::from_secs(3650 * 86_400);
        assert_eq!(keys(&journal, days), [format!("s.{}", asked.id), format!("m.{}", asked.id)]);
        journal.note_return(asked.id, NOW, NOW).unwrap();
        assert_eq!(keys(&journal, days), Vec::<String>::new());
    }

    /// The register says how the whole mark ended, which is no route's acknowledgement. The broken variant is a named
    /// acknowledgement.
    #[test]
    fn what_is_only_known_to_be_settled_is_no_routes_acknowledgement() {
        for names_the_route in [false, true] {
            let (_home, mut journal, mark) = Home::marked();
            let (at, by, route) = (NOW, "ctl2".to_owned(), "recovery".to_owned());
            if names_the_route {
                let taken = Acknowledgement { mark, route, at, by: by.clone() };
                assert!(journal.acknowledged_elsewhere(&taken, true, NOW).unwrap());
            }
            let settled = Settled { mark, how: Settlement::Acknowledged, at, by };
            assert!(journal.settled_elsewhere(&settled, NOW).unwrap());
            let taken = format!("a.{mark}.recovery");
            assert_eq!(keys(&journal, BEFORE).contains(&taken), names_the_route);
        }
    }

    /// The next alerter would otherwise make a return again that an operator has ended. The broken variant is still open.
    #[test]
    fn a_return_that_an_operator_ended_is_done_for_all() {
        for is_ended in [false, true] {
            let (_home, mut journal, mark) = Home::marked();
            deliver(&mut journal, mark, NOW);
            let row = journal.mark(mark).unwrap().unwrap().to_mark().unwrap();
            let back = NewDelivery { route: "recovery.return".into(), ..to_recovery("back") };
            journal.add_deliveries(&row, &[back], NOW).unwrap();
            if is_ended {
                assert_eq!(journal.dismiss_returns(mark, true, ("by hand", "alice"), NOW).unwrap(), 1);
            }
            assert_eq!(keys(&journal, NOW).contains(&format!("a.{mark}.recovery.return")), is_ended);
        }
    }

    #[test]
    fn an_open_mark_stands_there_with_its_fencings() {
        let (home, mut journal, mark) = Home::marked();
        let again = Fencing { asked_at: NOW + Duration::from_secs(1), ..fencing("compute1") };
        journal.append_fencing(&again).unwrap();
        journal.add_to_mark(&again, (mark, Rule::SameConnection), NOW).unwrap();
        let fresh = Fencing { asked_at: NOW + Duration::from_secs(2), ..fencing("compute2") };
        journal.append_imported(std::slice::from_ref(&fresh), NOW).unwrap();
        let aside = fencing("ctl2");
        journal.append_fencing(&aside).unwrap();
        journal.set_aside(&aside, (Rule::NotCovered, "no compute host"), NOW).unwrap();
        let wanted = [
            format!("f.{mark}"),
            format!("f.{}", again.id),
            format!("f.{}", fresh.id),
            format!("m.{mark}"),
            format!("o.{}", again.id),
        ];
        assert_eq!(keys(&journal, NOW), wanted);
        assert_eq!(keys(&home.open(Role::Reader), NOW), wanted, "a reader sees the same");
    }

    #[test]
    fn what_became_of_a_mark_stays_until_it_is_long_over() {
        let (_home, mut journal, mark) = Home::marked();
        deliver(&mut journal, mark, NOW);
        let entries = journal.entries(NOW, "ctl1").unwrap();
        let taken = Acknowledgement { mark, route: "recovery".into(), at: NOW, by: "ctl1".into() };
        assert!(entries.contains(&Entry::Acknowledged(taken)));
        let settled = Settled { mark, how: Settlement::Acknowledged, at: NOW, by: "ctl1".into() };
        assert!(entries.contains(&Entry::Settled(settled)));
        assert_eq!(entries.len(), 4, "with f. and m.");
        let returned = Returned { mark, at: NOW + Duration::from_secs(1), by: "ctl1".into() };
        journal.note_return(mark, returned.at, NOW).unwrap();
        assert!(journal.entries(NOW, "ctl1").unwrap().contains(&Entry::Returned(returned)));
        assert_eq!(keys(&journal, NOW + Duration::from_secs(1)), Vec::<String>::new());
    }

    /// Only a mark with a proof and a name here is an entry for the others.
    #[test]
    fn a_mark_that_is_held_is_no_entry_but_its_fencings_are() {
        let (_home, mut journal) = Home::alerter();
        let doubtful = marked_as(&mut journal, "compute1", NOW, HELD);
        let first = fencing("compute2");
        journal.append_fencing(&first).unwrap();
        let nameless = MarkRow { fqdn: None, ..samples::mark(&first) };
        journal.make_mark(&nameless, Taken::Fencing(&first), &[], None, NOW).unwrap();
        let mut wanted = vec![format!("f.{doubtful}"), format!("f.{}", first.id)];
        wanted.sort();
        let mut found = keys(&journal, NOW);
        found.sort();
        assert_eq!(found, wanted);
        let decision = journal.release(doubtful, "seen", "alice", NOW).unwrap().unwrap();
        let found = keys(&journal, NOW);
        assert!(found.contains(&format!("m.{doubtful}")) && found.contains(&format!("p.{}", decision.id)));
    }

    #[test]
    fn an_operators_end_of_a_doubtful_mark_holds_everywhere() {
        let (_home, mut journal) = Home::alerter();
        let doubtful = marked_as(&mut journal, "compute1", NOW, HELD);
        journal.dismiss(doubtful, "no", "alice", NOW).unwrap();
        assert_eq!(keys(&journal, NOW), [format!("s.{doubtful}"), format!("f.{doubtful}")]);
    }

    /// Decisions in effect always stay; ended ones go after `since`. The broken variant writes a pause before its end,
    /// and another alerter holds everything in between.
    #[test]
    fn decisions_stand_there_while_they_are_in_force_and_their_ends_before_them() {
        let (_home, mut journal) = Home::alerter();
        let decide = |journal: &mut Journal, about| {
            let (id, actor, reason) = (NoteId::generate(), "alice".to_owned(), "disk".to_owned());
            journal.decide(&Decision { id, about, at: NOW, actor, reason }).unwrap();
            id
        };
        let pause = || About::Pause { scope: Scope::All, until: None };
        let (ended, kept) = (decide(&mut journal, pause()), decide(&mut journal, pause()));
        let (until, scope) = (NOW + Duration::from_secs(60), Scope::Group("rack1".into()));
        let over = decide(&mut journal, About::Maintenance { scope, until });
        let group = decide(&mut journal, About::ReleaseGroup("rack1".into()));
        let end = Ending { id: ended, at: NOW, actor: "bob".into(), reason: "done".into() };
        assert!(journal.end_decision(&end).unwrap());
        let found = keys(&journal, NOW);
        let mut wanted = [ended, kept, over, group].map(|id| format!("p.{id}"));
        wanted.sort();
        assert_eq!(found[0], format!("p.{ended}.end"));
        let mut rest = found[1..].to_vec();
        rest.sort();
        assert_eq!(rest, wanted);
        let mut found = keys(&journal, NOW + Duration::from_secs(1));
        found.sort();
        let mut wanted = [kept, over].map(|id| format!("p.{id}"));
        wanted.sort();
        assert_eq!(found, wanted);
        assert_eq!(keys(&journal, until + Duration::from_secs(1)), [format!("p.{kept}")]);
    }
}
