//! Sets the checks of `/health` from the daemon's own work.

use std::time::Duration;

use journal::JournalError;
use marks::time::Timestamp;

use crate::health::{Check, Fault};
use crate::problem::{Kind, Part, Problem, of_marks};
use crate::state::Shared;

/// The loop comes round at least so often, whatever there is to do.
const BEAT: Duration = Duration::from_secs(30);

/// How long the loop may wait at most: an idle daemon's checks must not expire.
pub fn beat(ttl: Option<Duration>) -> Duration {
    ttl.map_or(BEAT, |ttl| BEAT.min(ttl / 3))
}

/// What an error of the journal means for its check. The first error of those that may pass is no failure yet.
pub fn journal_fault(error: &JournalError) -> Fault {
    // Anybody may read `/health`: it does not say where the file is.
    let why = format!(
        "the journal cannot be used ({}): check its disk, and see `nova-host-alerter status`",
        error.kind()
    );
    if error.may_pass() { Fault::Lost(why) } else { Fault::Failed(why) }
}

/// A pass of the loop has ended. Checks that only warn are set in any case; the loop counts as alive only if the pass succeeded.
pub fn after_pass(shared: &Shared, got_through: bool) {
    if got_through {
        shared.health.came_round();
    }
    let problems = shared.problems(Timestamp::now());
    say(shared, Check::Queue, queue(shared, &problems));
    for route in &shared.base.settings().routes {
        let name = route.name.as_str();
        let own = problems.iter().filter(|one| one.route.as_deref() == Some(name));
        say(shared, Check::Driver(name.to_owned()), first(own, Part::Driver));
    }
    let stormy = shared.policy.steering().stormy();
    let storm = stormy.first().map(|sentence| {
        format!("{sentence}; marks that were not sent yet are held: see `nova-host-alerter status`")
    });
    say(shared, Check::Storm, storm);
    say(shared, Check::Config, first(problems.iter(), Part::Config));
}

fn say(shared: &Shared, check: Check, trouble: Option<String>) {
    match trouble {
        None => shared.health.pass(check),
        Some(why) => shared.health.warn(check, &why),
    }
}

/// What the first problem says that belongs to a part of `/health`.
fn first<'p>(mut problems: impl Iterator<Item = &'p Problem>, part: Part) -> Option<String> {
    problems.find_map(|one| one.in_public().filter(|(of, _)| *of == part)).map(|(_, says)| says)
}

/// What somebody has to act on. A mark that only waits is no trouble; a storm and a dead endpoint have checks of their own.
fn queue(shared: &Shared, problems: &[Problem]) -> Option<String> {
    let counted = of_marks(&shared.figures().journal, shared.base.damages.count());
    let of_marks = counted.into_iter().find_map(Kind::health).map(|(_, says)| says.to_owned());
    of_marks.or_else(|| first(problems.iter(), Part::Queue)).or_else(|| overdue(problems))
}

/// Marks have waited for a route for longer than `degraded-after`.
fn overdue(problems: &[Problem]) -> Option<String> {
    let is_overdue = |one: &&Problem| one.degrades && one.failure.is_some();
    let name = problems.iter().find(is_overdue)?.route.as_ref()?;
    Some(format!("marks have waited for route {name} for longer than degraded-after: check its endpoint"))
}

/// A poll of the cluster has ended. A register that cannot be read or written may fail the check; other faults only warn.
pub fn after_poll(shared: &Shared) {
    let register = shared.base.cluster.as_ref().and_then(|cluster| Check::of_register(cluster.register()));
    let Some(check) = register.filter(|_| shared.base.seen().view.is_some()) else { return };
    let problems = shared.cluster_problems(Timestamp::now());
    match first(problems.iter(), Part::RegisterLost) {
        Some(lost) => shared.health.lost(check, &lost),
        None => say(shared, check, first(problems.iter(), Part::Register)),
    }
}
