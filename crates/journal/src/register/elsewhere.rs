//! What alerters on other controllers did, from the register: a mark that they sent is not sent again here.

use crate::history::ALERTER;
use crate::queue::{deliveries, delivery_row};
use crate::{Done, Journal, row};
use marks::delivery::{Attempt, State};
use marks::mark::Settlement;
use marks::register::{Acknowledgement, Settled};
use marks::time::Timestamp;

impl Journal {
    /// Ends the delivery whose route took the mark, as an entry says. The mark ends with it if all required routes have
    /// it, unless the register has the mark's own end (`is_settled`): then [`Self::settled_elsewhere`] handles the rest.
    /// A delivery in flight ends too: its answer is history. A step ends its chain. Returns whether there was one to end.
    ///
    /// # Errors
    /// As any write.
    pub fn acknowledged_elsewhere(
        &mut self,
        entry: &Acknowledgement,
        is_settled: bool,
        now: Timestamp,
    ) -> Done<bool> {
        self.write_at(now, |writing| {
            // A damaged row does not count here: it stays quarantined.
            let found = delivery_row::load(&writing, entry.mark, &entry.route)?;
            let may_end = |state: State| state.may_end_elsewhere(State::Acknowledged);
            let Some(mut delivery) = found.filter(|delivery| may_end(delivery.state)) else {
                return Ok(false);
            };
            let detail =
                format!("the alerter on {1} sent it to route {0}, which acknowledged", entry.route, entry.by);
            let (at, kind) = (entry.at, "acknowledged-elsewhere");
            delivery.last = Some(Attempt { at, kind: kind.to_owned(), detail: detail.clone() });
            deliveries::finish_elsewhere(&writing, &mut delivery, State::Acknowledged, at)?;
            writing.note(&delivery, kind, &detail)?;
            if !is_settled {
                writing.settle_if_done(&delivery)?;
            }
            Ok(true)
        })
    }

    /// Ends an open mark as an entry says, with its open deliveries: whether a route that is not required has it is
    /// unknown, so that delivery is cancelled. Returns go on. Returns whether there was one.
    ///
    /// # Errors
    /// As any write.
    pub fn settled_elsewhere(&mut self, entry: &Settled, now: Timestamp) -> Done<bool> {
        // A clock that is ahead must not make it later than what happens here from now on.
        let at = entry.at.min(now);
        self.write_at(now, |writing| {
            let Some(row) = row::load_open(&writing, entry.mark)? else { return Ok(false) };
            let is_dismissed = entry.how == Settlement::Dismissed;
            for mut delivery in deliveries::load_open(&writing, entry.mark)? {
                let end = State::at_the_end(entry.how, delivery.has_to());
                deliveries::finish_elsewhere(&writing, &mut delivery, end, at)?;
            }
            if is_dismissed {
                deliveries::dismiss_damaged(&writing, entry.mark)?;
            }
            let how = entry.how.as_str();
            let detail = format!("the alerter on {1} ended {0} as {how}", row.node, entry.by);
            let history = ("settled-elsewhere", &*detail, ALERTER);
            writing.end(row, (entry.how, at), history)?;
            Ok(true)
        })
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::NewDelivery;
    use crate::tests::{Home, NOW, events, marked_for_two, states};
    use marks::id::MarkId;

    const THEN: Timestamp = Timestamp(NOW.0 - 5_000);
    const SETTLEMENTS: [(Settlement, State); 4] = [
        (Settlement::Acknowledged, State::Acknowledged),
        (Settlement::Dismissed, State::Dismissed),
        (Settlement::Cancelled, State::Cancelled),
        (Settlement::Expired, State::Cancelled),
    ];

    fn taken(mark: MarkId, route: &str) -> Acknowledgement {
        Acknowledgement { mark, route: route.into(), at: THEN, by: "ctl2".into() }
    }

    fn settled(mark: MarkId, how: Settlement) -> Settled {
        Settled { mark, how, at: THEN, by: "ctl2".into() }
    }

    #[test]
    fn a_mark_that_another_controller_sent_is_not_sent_again() {
        let (_home, mut journal, mark) = Home::marked();
        assert!(!journal.acknowledged_elsewhere(&taken(mark, "other"), false, NOW).unwrap(), "no such route");
        assert!(journal.acknowledged_elsewhere(&taken(mark, "recovery"), false, NOW).unwrap());
        assert!(!journal.acknowledged_elsewhere(&taken(mark, "recovery"), false, NOW).unwrap());
        assert!(journal.due(NOW, "recovery", 10, None).unwrap().sound.is_empty());
        let delivery = journal.deliveries_of(mark).unwrap().sound.remove(0);
        assert_eq!((delivery.state, delivery.ended_at), (State::Acknowledged, Some(THEN)));
        assert!(delivery.last.unwrap().detail.contains("ctl2"));
        assert_eq!(journal.mark(mark).unwrap().unwrap().settled, Some((Settlement::Acknowledged, NOW)));
        assert_eq!(events(&journal, mark), ["marked", "acknowledged-elsewhere", "settled"]);
    }

    /// Whether a route that is not required has it is unknown, unless an entry says so.
    #[test]
    fn what_is_not_required_is_not_called_acknowledged_with_its_mark() {
        for wiki_has_it in [false, true] {
            let (_home, mut journal) = Home::alerter();
            let mark = marked_for_two(&mut journal, "compute1", NOW);
            for route in ["recovery", "wiki"].iter().take(1 + usize::from(wiki_has_it)) {
                assert!(journal.acknowledged_elsewhere(&taken(mark, route), true, NOW).unwrap());
            }
            assert_eq!(journal.mark(mark).unwrap().unwrap().settled, None, "the register says how it ended");
            assert!(journal.settled_elsewhere(&settled(mark, Settlement::Acknowledged), NOW).unwrap());
            let wiki = if wiki_has_it { State::Acknowledged } else { State::Cancelled };
            assert_eq!(states(&journal, mark), [State::Acknowledged, wiki]);
            assert_eq!(journal.mark(mark).unwrap().unwrap().settled, Some((Settlement::Acknowledged, THEN)));
        }
    }

    #[test]
    fn a_return_goes_on_when_its_mark_was_settled_elsewhere() {
        for (how, state) in SETTLEMENTS {
            let (_home, mut journal, mark) = Home::marked();
            let named = journal.mark(mark).unwrap().unwrap().to_mark().unwrap();
            let step = NewDelivery {
                route: "recovery.return".into(),
                body: Vec::new(),
                required: false,
                link: None,
            };
            journal.add_deliveries(&named, &[step], NOW).unwrap();
            assert!(journal.settled_elsewhere(&settled(mark, how), NOW).unwrap());
            assert_eq!(states(&journal, mark), [state, State::Pending], "{how:?}");
        }
    }
}
