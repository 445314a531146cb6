//! What a new mark gets, and what is said of it.

use std::time::Duration;

use journal::{Journal, JournalError, NewDelivery};
use marks::chain::Link;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::{Doubt, Mark, MarkRow, Standing};
use marks::register::{Entries, Key};
use marks::time::Timestamp;
use tracing::{error, info};

use super::naming::Clash;
use crate::base::Base;
use crate::config::{Recipients, Route, Settings};

pub(super) type Done<T = ()> = Result<T, JournalError>;

/// Such a mark ends before a fencing is taken in: whether that belongs to it depends on how and when it ended.
pub(super) fn has_ended(mark: MarkId, entries: &Entries) -> bool {
    entries.sound.contains_key(&Key::Settled(mark))
}

pub(super) fn announce(row: &MarkRow, clash: Option<&Clash>) {
    let (id, node) = (row.id, &row.node);
    if let Some(clash) = clash {
        error!(mark = %id, host = %node, "{clash}");
    }
    match (&row.fqdn, row.standing) {
        (_, Standing::Doubtful(Doubt::Unproven)) => {
            info!(mark = %id, host = %node, "the register says that {node} was fenced: it is held (unproven) until Pacemaker says so too");
        }
        (_, Standing::Doubtful(Doubt::FencedAgain)) => {
            error!(mark = %id, host = %node, "{node} was fenced again after its last mark had ended, and nobody knows whether it had been back: it is held (fenced-again); if it had been in use again, run `nova-host-alerter release {id} --reason TEXT`, else `nova-host-alerter unmark {id} --reason TEXT`");
        }
        (_, Standing::Doubtful(doubt)) => {
            let word = Standing::Doubtful(doubt).as_str();
            error!(mark = %id, host = %node, "a fencing of {node} is held ({word}) until Pacemaker confirms it: if it is true, run `nova-host-alerter release {id} --reason TEXT`");
        }
        (Some(fqdn), _) => info!(mark = %id, host = %node, "{node} was fenced and will be told as {fqdn}"),
        (None, _) if clash.is_some() => {}
        (None, _) => {
            error!(mark = %id, host = %node, "{node} was fenced and is held (no-fqdn): set [hosts] domain or a name of its own in [hosts.names]");
        }
    }
}

/// Those of the routes that are notified of this mark's host.
pub(super) fn deliveries(base: &Base, journal: &Journal, mark: &Mark) -> Done<Vec<NewDelivery>> {
    let settings = base.settings();
    deliveries_of(&recipients(base, &settings, &mark.node), journal, mark)
}

/// Who is notified of a host, by its group.
pub(super) fn recipients<'s>(base: &Base, settings: &'s Settings, node: &HostName) -> Recipients<'s> {
    let attribute = base.attributes();
    base.report_groups(node, &attribute);
    settings.routes_for(node, &attribute)
}

/// One for each route that is notified of it. Of a chain the mark waits for every step.
pub(super) fn deliveries_of(told: &Recipients<'_>, journal: &Journal, mark: &Mark) -> Done<Vec<NewDelivery>> {
    let earlier = earlier(journal, mark)?;
    let new = |route: &Route, required, link| NewDelivery {
        route: route.name.as_str().to_owned(),
        body: route.driver.body_after(mark, &earlier),
        required,
        link,
    };
    Ok(match told {
        Recipients::Each(routes) => routes.iter().map(|route| new(route, route.required, None)).collect(),
        Recipients::Chain(links) => {
            let link = |(step, (route, timeout)): (u32, &(&Route, Duration))| {
                new(route, true, Some(Link { step, timeout: *timeout }))
            };
            (1..).zip(links).map(link).collect()
        }
    })
}

/// When the host's earlier marks were generated, in the order in which they are notified.
fn earlier(journal: &Journal, mark: &Mark) -> Done<Vec<Timestamp>> {
    let place = |mark: &Mark| (mark.failure_time, mark.id);
    let mut marks: Vec<Mark> =
        journal.marks_of(&mark.node)?.sound.iter().filter_map(MarkRow::to_mark).collect();
    marks.retain(|other| place(other) < place(mark));
    marks.sort_by_key(place);
    Ok(marks.into_iter().map(|mark| mark.generated_time).collect())
}
