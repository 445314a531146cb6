//! What a route does behind an acknowledgement: asks what became of it, and says that the host is back.

use marks::delivery::State;
use marks::id::MarkId;
use marks::journal::{MarkRow, NewDelivery};
use marks::register::{Acknowledgement, Entries, Entry, Key};
use tracing::info;

use super::apply::{Done, Intake};
use crate::config::Route;
use crate::delivery::confirmation;
use crate::drivers::Step;

impl Intake<'_> {
    /// What another alerter told and did not ask after to the end, is asked after from here.
    pub(super) fn take_over_confirmations(&mut self, entries: &Entries) -> Done {
        let shared = self.shared;
        for route in shared.settings().routes.iter().filter(|route| route.goes_on_to(Step::Confirm)) {
            for entry in entries.sound.values() {
                match entry {
                    Entry::Acknowledged(end) if end.route == route.name.as_str() => {
                        self.take_over(route, end, entries)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn take_over(&mut self, route: &Route, end: &Acknowledgement, entries: &Entries) -> Done {
        let age = self.around.now.since(end.at);
        if age > self.around.rules.horizon || is_done(route, Step::Confirm, end.mark, entries) {
            return Ok(());
        }
        let known = self.journal.deliveries_of(end.mark)?.sound;
        let told = known.iter().find(|delivery| delivery.route == end.route);
        let Some(told) = told.filter(|told| told.state == State::Acknowledged) else { return Ok(()) };
        let new = confirmation(route, told);
        let is_here = known.iter().any(|delivery| delivery.route == new.route);
        match self.find_sound(end.mark)?.and_then(|row| row.told()) {
            Some(mark) if !is_here => self.journal.add_deliveries(&mark, &[new], self.around.now),
            _ => Ok(()),
        }
    }

    /// Calls hosts back that have returned, on routes that told their failure, and nobody who has failed again.
    pub(super) fn call_back(&mut self, entries: &Entries) -> Done {
        let shared = self.shared;
        for route in shared.settings().routes.iter().filter(|route| route.goes_on_to(Step::Return)) {
            self.journal.cancel_overtaken(route.name.as_str(), self.around.now)?;
            let since = self.around.now - self.around.rules.horizon;
            let returned = self.journal.returned_from(route.name.as_str(), since)?;
            self.shared.report_damage(&returned.damaged);
            for row in &returned.sound {
                if self.is_back(row) && !is_done(route, Step::Return, row.id, entries) {
                    self.call_one_back(route, row)?;
                }
            }
        }
        Ok(())
    }

    fn call_one_back(&mut self, route: &Route, row: &MarkRow) -> Done {
        let Some(mark) = row.told() else { return Ok(()) };
        let known = self.journal.deliveries_of(row.id)?.sound;
        let told = known.iter().find(|delivery| delivery.route == route.name.as_str());
        let Some(told) = told else { return Ok(()) };
        let body = route.driver.step_body(Step::Return, &mark, &told.body);
        let name = route.name.of_step(Step::Return).as_str().to_owned();
        info!(mark = %row.id, host = %row.node, route = %route.name, "{} has come back, and route {} is told so", row.node, route.name);
        let new = NewDelivery { route: name, body, required: false, link: None };
        self.journal.add_deliveries(&mark, &[new], self.around.now)
    }

    /// It is there, and has been for as long as its group asks for (`healthy-delay`).
    fn is_back(&self, row: &MarkRow) -> bool {
        let delay = self.shared.settings().group_of(&row.node, &self.shared.attributes()).rules.healthy_delay;
        let is_member = self.around.cib.is_some_and(|cib| cib.membership(&row.node) == Some(true));
        is_member && row.returned_at.is_none_or(|at| at + delay <= self.around.now)
    }
}

/// Whether another alerter has done it already.
fn is_done(route: &Route, step: Step, mark: MarkId, entries: &Entries) -> bool {
    let name = route.name.of_step(step).as_str().to_owned();
    entries.sound.contains_key(&Key::Acknowledged(mark, name))
}
