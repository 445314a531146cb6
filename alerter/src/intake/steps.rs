//! What a route does after an acknowledgement: it sends the return of the host.

use drivers::Step;
use journal::{Done, Over};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::register::{Acknowledgement, Entries, Entry, Key};
use marks::returning::{Failure, owed_since};
use marks::time::Timestamp;
use tracing::info;

use super::credible::is_ahead;
use super::pass::Intake;
use crate::config::Route;
use crate::delivery::return_of;

impl Intake<'_> {
    /// Makes the returns of hosts that are back for routes that want them; when each is sent is decided later.
    pub(super) fn call_back(&mut self, entries: &Entries) -> Done {
        let (base, now) = (self.base, self.around.now);
        for route in base.settings().routes.iter().filter(|route| route.goes_on_to(Step::Return)) {
            self.journal.free_returns(route.name.as_str(), &route.driver.target(), now)?;
            let each = route.driver.about().ends_each;
            let since = owed_since(now, each, self.around.rules.horizon);
            let over = self.journal.over_on(route.name.as_str(), since, each)?;
            self.base.damages.report(&over.damaged);
            for over in &over.sound {
                let is_due = !each || self.is_recent(over) || was_left(route, over.mark.id, entries);
                if is_due && self.is_owed(route, over) {
                    self.call_one_back(route, over, entries)?;
                }
            }
        }
        Ok(())
    }

    /// Whether its host is known to be back, or it ended, within the horizon.
    fn is_recent(&self, over: &Over) -> bool {
        let since = self.around.now - self.around.rules.horizon;
        let ended = over.delivery.as_ref().and_then(|delivery| delivery.ended_at);
        let ended = ended.or(over.mark.settled.map(|(_, at)| at));
        over.mark.return_known_at.max(ended) >= Some(since)
    }

    /// One that another alerter has made already is kept too, as acknowledged: a register that loses it has it again from here.
    fn call_one_back(&mut self, route: &Route, over: &Over, entries: &Entries) -> Done {
        let row = &over.mark;
        let Some(mark) = row.to_mark() else { return Ok(()) };
        let sent = over.delivery.as_ref().map_or(&[][..], |delivery| &delivery.body);
        let new = return_of(route, &mark, sent, back_since(row));
        let done = acknowledged(entries, row.id, &new.route);
        self.journal.add_deliveries(&mark, &[new], self.around.now)?;
        if let Some(done) = done {
            return self.journal.acknowledged_elsewhere(done, true, self.around.now).map(drop);
        }
        info!(mark = %row.id, host = %row.node, route = %route.name, "{} has come back, and route {} will be notified", row.node, route.name);
        Ok(())
    }

    /// Whether the rule wants a return; a host is back when it has been so for its group's `healthy-delay`.
    fn is_owed(&self, route: &Route, over: &Over) -> bool {
        let (row, now) = (&over.mark, self.around.now);
        let delay = self.base.settings().group_of(&row.node, &self.base.attributes()).rules.healthy_delay;
        let is_member = self.around.cib.is_some_and(|cib| cib.members().contains(&row.node));
        let failure = Failure {
            delivery: over.delivery.as_ref(),
            settled: row.settled,
            was_elsewhere: self.base.was_elsewhere(row),
            has_returned: row.return_known_at.is_some_and(|at| at + delay <= now || is_ahead(at, now)),
            is_member_for_long: is_member && now.since(row.failure_time) > self.around.rules.coalesce + delay,
        };
        failure.is_owed(now, route.driver.about().limit)
    }
}

/// When its host was seen to be back; where nobody saw it, when an operator ended the mark. Each controller knows the same
/// time.
fn back_since(row: &MarkRow) -> Timestamp {
    let ended = row.settled.map(|(_, at)| at);
    row.returned_at.or(ended).unwrap_or(row.generated_time)
}

/// Whether the alerter that owed a return was lost before it could send it: the register still has it that the route acknowledged the
/// mark, and would have the return too. A page that is lacking may have it.
fn was_left(route: &Route, mark: MarkId, entries: &Entries) -> bool {
    !entries.is_partial && acknowledged(entries, mark, route.name.as_str()).is_some()
}

/// What the register has of a route's acknowledgement, to whichever alerter.
fn acknowledged<'e>(entries: &'e Entries, mark: MarkId, route: &str) -> Option<&'e Acknowledgement> {
    match entries.sound.get(&Key::Acknowledged(mark, route.to_owned()))? {
        Entry::Acknowledged(entry) => Some(entry),
        _ => None,
    }
}
