//! Puts a configuration in force that was read again, and gives open marks what it brings.

use std::sync::Arc;

use journal::{Done, Journal};
use marks::time::Timestamp;

use super::Engine;
use crate::config::Settings;
use crate::daemon::outboxes;
use crate::delivery::outbox::Outbox;
use crate::delivery::trouble;
use crate::intake::start::{self, Serving};
use crate::state::reloads::{Asked, Reloaded};
use crate::{log, reload};

impl Engine {
    /// Takes up the configurations that were read since the last pass.
    pub(super) async fn reload(&mut self) {
        let shared = Arc::clone(&self.shared);
        while let Some(Asked { settings, answer }) = shared.reloads.take() {
            let file = settings.file.clone();
            let came = self.put(settings).await.map_or_else(|why_not| why_not, Reloaded::Changed);
            reload::report(&shared, &file, &came);
            let _nobody_waits_any_more = answer.send(came);
        }
    }

    /// Replaces the configuration; gives what has changed, or why nothing has. Exchanges under way end with the driver that they began
    /// with.
    async fn put(&mut self, mut new: Settings) -> Result<Vec<String>, Reloaded> {
        let old = self.shared.base.settings();
        if let Some(obstacle) = reload::obstacle(&old, &new) {
            return Err(Reloaded::Refused(vec![obstacle]));
        }
        let orders =
            self.shared.base.store.run(|journal: &mut Journal| journal.decisions_in_force(Timestamp::now()));
        let orders = orders.await?;
        if let Some(obstacle) = reload::homeless(&orders.sound, &new) {
            return Err(Reloaded::Refused(vec![obstacle]));
        }
        // The new rules decide about attempts that were not sent yet.
        self.take_back(Outbox::remove_all).await?;
        let routes = reload::keep_what_is_same(&old, &mut new);
        let said = [reload::changed_sections(&old, &new), routes.said.clone()].concat();
        let (new, state, renewed) = (Arc::new(new), Arc::clone(&self.shared), routes.renewed.clone());
        let now = Timestamp::now();
        let swap = move |journal: &mut Journal| {
            let tried = journal.tried()?;
            state.base.put_settings(new);
            outboxes::renew(&state, &routes, &tried, now);
            // Names, groups and routes are checked as after a start.
            state.base.seen().named = false;
            Ok(())
        };
        self.shared.base.store.run(swap).await?;
        let settings = self.shared.base.settings();
        log::put(settings.log);
        settings.warn();
        self.renewed.get_or_insert_default().extend(renewed);
        self.serving = Some(Serving::default());
        (self.wants_poll, self.kept_house) = (true, None);
        Ok(said)
    }

    /// Gives open marks what a new configuration brings, as a start does.
    pub(super) async fn bring_what_is_new(&mut self) -> Done {
        if self.serving.is_some() {
            self.serve_open_marks().await?;
        }
        if self.stop.is_cancelled() {
            return Ok(());
        }
        let Some(renewed) = self.renewed.clone() else { return Ok(()) };
        let state = Arc::clone(&self.shared);
        let work = move |journal: &mut Journal| {
            let now = Timestamp::now();
            // The endpoint that refused them is not used any more.
            renewed.iter().try_for_each(|route| journal.wake_parked(route, now).map(drop))?;
            let waiting = journal.waiting()?;
            state
                .routes
                .troubles()
                .keep_only(|route| waiting.contains_key(route) && state.base.route(route).is_some());
            trouble::check_stranded(journal, &state.base, &state.routes)
        };
        self.shared.base.store.run(work).await?;
        self.renewed = None;
        Ok(())
    }

    /// Gives open marks what the configuration brings, a page at a time, since there may be very many. Between two pages others use the
    /// journal, the watchdog is fed, and a stop takes effect.
    async fn serve_open_marks(&mut self) -> Done {
        let state = Arc::clone(&self.shared);
        let name = move |journal: &mut Journal| {
            start::complete_without_cluster(journal, &state.base, Timestamp::now())
        };
        self.shared.base.store.run(name).await?;
        while let Some(at) = self.serving.clone().filter(|_| self.shared.base.knows_groups()) {
            if self.stop.is_cancelled() {
                return Ok(());
            }
            let state = Arc::clone(&self.shared);
            let page =
                move |journal: &mut Journal| start::serve_page(journal, &state.base, at, Timestamp::now());
            self.serving = self.shared.base.store.run(page).await?;
            self.shared.supervisor.gets_on();
        }
        Ok(())
    }
}
