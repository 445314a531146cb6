//! What the daemon's own work says of the checks, at the places where it is known.

use std::time::Duration;

use journal::JournalError;
use marks::delivery::State;
use marks::time::Timestamp;

use crate::cluster::Matter;
use crate::health::{Check, Fault};
use crate::intake::account;
use crate::state::Shared;

/// The loop comes round at least so often, whatever there is to do.
const BEAT: Duration = Duration::from_secs(30);

/// How long the loop may wait at most: an idle daemon's checks must not expire.
pub fn beat(ttl: Option<Duration>) -> Duration {
    ttl.map_or(BEAT, |ttl| BEAT.min(ttl / 3))
}

/// What an error of the journal says of it: some pass, and the first of these is no failure yet.
pub fn journal_fault(error: &JournalError) -> Fault {
    // Where the file is, is nobody's business who may ask here.
    let why = format!(
        "the journal cannot be used ({}): look at its disk, and at `nova-host-alerter status`",
        error.kind()
    );
    if error.may_pass() { Fault::Lost(why) } else { Fault::Failed(why) }
}

/// A pass of the loop has ended. What warns at most is said anew in any case; that the loop came round only where it got through.
pub fn after_pass(shared: &Shared, got_through: bool) {
    if got_through {
        shared.health.came_round();
    }
    say(shared, Check::Queue, queue(shared));
    drivers(shared);
    let stormy = shared.policy.steering().stormy();
    let storm = stormy.first().map(|sentence| {
        format!("{sentence}; what is not told yet is held: look at `nova-host-alerter status`")
    });
    say(shared, Check::Storm, storm);
    say(shared, Check::Config, config(shared).map(str::to_owned));
}

/// What stands in the files, and where our own addresses are, is said where only operators read it.
fn config(shared: &Shared) -> Option<&'static str> {
    let is_unserved = || shared.api_trouble().is_some() || !shared.unserved.reasons().is_empty();
    match shared.health.config_trouble() {
        Some(_) => Some(REFUSED),
        None => is_unserved().then_some(UNSERVED),
    }
}

const REFUSED: &str = "a new configuration is not in force, and the one before goes on: look at `nova-host-alerter check-config`, and at `nova-host-alerter status`";
const UNSERVED: &str = "an address of the alerter's own is not served: look at `nova-host-alerter status`, and at the configuration";

fn say(shared: &Shared, check: Check, trouble: Option<String>) {
    match trouble {
        None => shared.health.pass(check),
        Some(why) => shared.health.warn(check, &why),
    }
}

/// A dead endpoint is nothing that a restart of this process heals.
fn drivers(shared: &Shared) {
    for route in &shared.base.settings().routes {
        let name = route.name.as_str();
        let is_parked = || shared.routes.lanes().get(name).is_some_and(|lane| lane.endpoint.is_parked());
        let trouble = shared.routes.troubles().of(name).map(|trouble| match is_parked() {
            false => {
                format!("route {name} accepts nothing ({}) and is tried again: look at its endpoint", trouble.kind)
            }
            true => format!(
                "route {name} refuses every mark it was sent ({}), and will until somebody changes something: correct its endpoint or its configuration, then run `nova-host-alerter retry --all`",
                trouble.kind
            ),
        });
        say(shared, Check::Driver(name.to_owned()), trouble);
    }
}

/// What waits by itself is no trouble; this is what somebody has to look at. A storm and a dead endpoint say so themselves.
fn queue(shared: &Shared) -> Option<String> {
    let counted = shared.figures();
    let figures = &counted.journal;
    let of = |state| figures.marks.of(state) > 0;
    let known: [(bool, &str); 6] = [
        (of(State::Quarantined) || shared.base.damages.count() > 0, DAMAGED),
        (account::sentence(&shared.base, &shared.accounts).is_some(), UNACCOUNTED),
        (of(State::Parked), PARKED),
        (figures.without_route > 0, WITHOUT_ROUTE),
        (!shared.routes.stranded().is_empty(), STRANDED),
        (figures.exhausted > 0, EXHAUSTED),
    ];
    let known = known.into_iter().find(|(holds, _)| *holds).map(|(_, sentence)| sentence.to_owned());
    known.or_else(|| overdue(shared))
}

const DAMAGED: &str =
    "the journal has damaged rows, which are neither sent nor dropped: look at `nova-host-alerter list`";
const UNACCOUNTED: &str =
    "a record of a fencing has no end that can be shown: look at `nova-host-alerter status`";
const PARKED: &str = "marks are parked, since their endpoints reject or refuse them: look at `nova-host-alerter status`, and at the endpoints";
const WITHOUT_ROUTE: &str =
    "there are open marks that no route is left for: look at `nova-host-alerter list`, and at the routes";
const STRANDED: &str =
    "marks wait for a route that is not configured any more: look at `nova-host-alerter status`";
const EXHAUSTED: &str =
    "no step of a chain took its mark, and the last one is tried on: look at `nova-host-alerter list`";

/// Marks that have waited for a route for longer than it is said to be well.
fn overdue(shared: &Shared) -> Option<String> {
    // Of a route that is not configured any more another sentence speaks.
    let is_required = |name: &str| shared.base.route(name).is_some_and(|route| route.required);
    let limit = shared.base.settings().degraded_after;
    let troubles = shared.routes.troubles();
    let name = *troubles.long(Timestamp::now(), limit, is_required).first()?;
    Some(format!("marks wait for route {name} for longer than degraded-after: look at its endpoint"))
}

/// A look at the cluster has ended. What cannot be read or written is lost; the rest is a matter of the cluster's own.
pub fn after_look(shared: &Shared) {
    let register = shared.base.cluster.as_ref().and_then(|cluster| Check::of_register(cluster.register()));
    let (Some(check), Some(faults)) = (register, shared.base.seen().named_reasons()) else { return };
    let matters: Vec<Matter> = faults.iter().map(|(matter, _)| *matter).collect();
    let is_lost = |matter: &&Matter| {
        matches!(matter, Matter::RegisterUnreadable | Matter::QuorumUnknown | Matter::RegisterUnwritable)
    };
    if let Some(lost) = matters.iter().find(is_lost) {
        shared.health.lost(check, sentence(*lost));
    } else {
        say(shared, check, matters.first().map(|matter| sentence(*matter).to_owned()));
    }
}

/// The words of the cluster's tools, which may say much of the machine, stay in the log and in `status`.
fn sentence(matter: Matter) -> &'static str {
    match matter {
        Matter::NoQuorum => {
            "this partition of the cluster has no quorum, so nothing is told until the other controllers are back"
        }
        Matter::QuorumUnknown => {
            "quorum cannot be asked for, so nothing is told: look at Pacemaker, and at `nova-host-alerter status`"
        }
        Matter::RegisterUnreadable => {
            "the register cannot be read, so nothing is told: look at Pacemaker, and at `nova-host-alerter status`"
        }
        Matter::RegisterUnwritable => {
            "the register cannot be written, so another controller may tell again what was told: look at `nova-host-alerter status`"
        }
        Matter::CibUnreadable => {
            "the CIB cannot be read, so Pacemaker confirms nothing: look at `nova-host-alerter status`"
        }
        Matter::ClockSkew => {
            "the clocks of controllers differ: look at NTP, and at `nova-host-alerter status`"
        }
        Matter::HistoryUnreadable => "the fencing history cannot be read: look at `nova-host-alerter status`",
        Matter::Evidence | Matter::RegisterEntry => {
            "the evidence of Pacemaker's alerts cannot be used: look at `nova-host-alerter status`"
        }
    }
}
