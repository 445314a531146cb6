//! The outboxes of all routes: after a start, and after a reload.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use journal::Tried;
use marks::time::Timestamp;

use crate::config::{Route, Settings};
use crate::delivery::endpoint;
use crate::delivery::endpoint::Endpoint;
use crate::delivery::outbox::Outbox;
use crate::reload::RouteChanges;
use crate::state::Shared;

/// One for each route. An endpoint that a former daemon found in trouble is probed at once, but not more than once a second even if
/// daemons restart often.
pub(super) fn new(shared: &Shared, tried: &[Tried], now: Timestamp) -> HashMap<String, Outbox> {
    let settings = shared.base.settings();
    let outbox = |route: &Arc<Route>| {
        let name = route.name.as_str().to_owned();
        let limit = limit(route, &settings);
        let endpoint = match tried.iter().find(|tried| tried.route == name) {
            None => Endpoint::new(limit),
            Some(tried) => {
                let wait = endpoint::FLOOR.saturating_sub(now.since(tried.last.at));
                Endpoint::in_trouble(limit, Instant::now() + wait)
            }
        };
        (name, Outbox::new(endpoint))
    };
    settings.routes.iter().map(outbox).collect()
}

/// Routes that go on keep their outboxes with all that is known of their endpoints; the others begin as after a start.
pub(super) fn renew(shared: &Shared, routes: &RouteChanges, tried: &[Tried], now: Timestamp) {
    let mut renewed = new(shared, tried, now);
    let (settings, mut current) = (shared.base.settings(), shared.routes.outboxes());
    for route in &settings.routes {
        let name = route.name.as_str();
        let is_kept = routes.kept.iter().any(|kept| kept == name);
        if let Some(mut outbox) = current.remove(name).filter(|_| is_kept) {
            outbox.endpoint.set_limit(limit(route, &settings));
            renewed.insert(name.to_owned(), outbox);
        }
    }
    *current = renewed;
}

/// How many exchanges a route may have under way.
fn limit(route: &Route, settings: &Settings) -> usize {
    route.driver.about().at_once.unwrap_or(usize::MAX).min(settings.max_in_flight)
}
