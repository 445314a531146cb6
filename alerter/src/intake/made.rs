//! The deliveries of a new mark, and its line in the log.

use std::time::Duration;

use drivers::Beside;
use journal::{Done, Journal, NewDelivery};
use marks::chain::Link;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::{Doubt, Lack, Mark, MarkRow, Standing};
use marks::register::{Entries, Key};
use marks::time::Timestamp;
use tracing::{error, info};

use super::naming::Clash;
use crate::base::Base;
use crate::config::{Recipients, Route, Settings};

/// Whether the register has the end of a mark. It is taken in before fencings: whether these belong to the mark depends on it.
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
            info!(mark = %id, host = %node, "the register says that {node} was fenced: the mark is held (unproven) until Pacemaker confirms it");
        }
        (_, Standing::Doubtful(Doubt::FencedAgain)) => {
            error!(mark = %id, host = %node, "{node} was fenced again after its last mark ended, and may not have been back in between: the mark is held (fenced-again); if the host was in use again, run `nova-host-alerter release {id} --reason TEXT`; else run `nova-host-alerter unmark {id} --reason TEXT`");
        }
        (_, Standing::Doubtful(Doubt::OutcomeUnknown)) => {
            error!(mark = %id, host = %node, "the mark of {node} is held (outcome-unknown), since its recovery controller may have been told of it before: if that does not know it, run `nova-host-alerter release {id} --reason TEXT`; else run `nova-host-alerter unmark {id} --reason TEXT`");
        }
        (_, Standing::Doubtful(doubt)) => {
            let word = Standing::Doubtful(doubt).as_str();
            error!(mark = %id, host = %node, "the mark of {node} is held ({word}) until Pacemaker confirms the fencing: if the host is off, run `nova-host-alerter release {id} --reason TEXT`");
        }
        (Some(fqdn), _) if row.lacks().next().is_none() => {
            info!(mark = %id, host = %node, "{node} was fenced and will be reported as {fqdn}");
        }
        _ => {
            let said = |lack: &Lack| *lack == Lack::Fqdn && clash.is_some();
            for lack in row.lacks().filter(|lack| !said(lack)) {
                let (word, setting) = (lack.as_str(), lack.setting());
                error!(mark = %id, host = %node, "{node} was fenced and its mark is held ({word}): set {setting}; then run `nova-host-alerter reload`");
            }
        }
    }
}

/// The deliveries of a mark, by the recipients of its host.
pub(super) fn deliveries(base: &Base, journal: &Journal, mark: &Mark) -> Done<Vec<NewDelivery>> {
    let settings = base.settings();
    deliveries_of(&recipients(base, &settings, &mark.node), journal, mark)
}

/// Which routes are notified of a host, by its group.
pub(super) fn recipients<'s>(base: &Base, settings: &'s Settings, node: &HostName) -> Recipients<'s> {
    let attribute = base.attributes();
    base.report_groups(node, &attribute);
    settings.routes_for(node, &attribute)
}

/// One for each recipient. Of a chain every step is required.
pub(super) fn deliveries_of(
    recipients: &Recipients<'_>,
    journal: &Journal,
    mark: &Mark,
) -> Done<Vec<NewDelivery>> {
    let (earlier, cause) =
        (earlier(journal, mark)?, journal.first_fencing(mark.id)?.and_then(|first| first.cause));
    let beside = Beside { earlier: &earlier, cause: cause.as_deref() };
    let new = |route: &Route, required, link| NewDelivery {
        route: route.name.as_str().to_owned(),
        body: route.driver.body_with(mark, &beside),
        required,
        link,
    };
    Ok(match recipients {
        Recipients::Each(routes) => routes.iter().map(|route| new(route, route.required, None)).collect(),
        Recipients::Chain(links) => {
            let link = |(step, (route, timeout)): (u32, &(&Route, Duration))| {
                new(route, true, Some(Link { step, timeout: *timeout }))
            };
            (1..).zip(links).map(link).collect()
        }
    })
}

/// When the host's earlier marks were generated, in the order in which they are sent.
fn earlier(journal: &Journal, mark: &Mark) -> Done<Vec<Timestamp>> {
    let place = |mark: &Mark| (mark.failure_time, mark.id);
    let mut marks: Vec<Mark> =
        journal.marks_of(&mark.node)?.sound.iter().filter_map(MarkRow::to_mark).collect();
    marks.retain(|other| place(other) < place(mark));
    marks.sort_by_key(place);
    Ok(marks.into_iter().map(|mark| mark.generated_time).collect())
}
