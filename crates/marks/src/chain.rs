//! Escalation chains: which step of a mark's chain is notified now, and when the next one is. Pure: the time is an
//! argument.

use std::time::Duration;

use crate::state::State;
use crate::time::Timestamp;

/// The word of a hold by a chain's order: it is another step's turn. Only the chain itself ends it.
pub const CHAIN: &str = "chain";

/// A clock that was stopped runs for at least this long again.
pub const LEAST: Duration = Duration::from_secs(30);

/// A route's place in a chain, as configured when the mark was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its position: the first is 1.
    pub step: u32,
    /// How long it has to acknowledge the mark, from the time when it may first be notified.
    pub timeout: Duration,
}

/// A step of a mark's chain, and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its configuration.
    pub link: Link,
    /// When its time ends, while its clock runs; when its turn ended, after that. `None` before its clock has started,
    /// and while the mark is held.
    pub until: Option<Timestamp>,
    /// The rest of its time when the mark was held.
    pub left: Option<Duration>,
    /// Since when no step comes after it: it is retried forever.
    pub exhausted_at: Option<Timestamp>,
}

impl Step {
    /// A step that was never notified.
    pub fn new(link: Link) -> Self {
        Self { link, until: None, left: None, exhausted_at: None }
    }

    /// Whether its turn has ever come.
    pub fn has_begun(&self) -> bool {
        self.until.is_some() || self.left.is_some()
    }

    /// When its clock started, as if it had never stopped; `None` while it is stopped.
    pub fn since(&self) -> Option<Timestamp> {
        self.until.map(|until| until - self.link.timeout)
    }

    /// Starts its clock with the rest of its time, or all of it. There is always time for an attempt.
    pub fn run(&mut self, now: Timestamp) {
        let left = self.left.take().map(|left| left.max(LEAST));
        self.until = Some(now + left.unwrap_or(self.link.timeout));
    }

    /// Stops its clock.
    pub fn stop(&mut self, now: Timestamp) {
        self.left = self.until.take().map(|until| until.since(now));
    }

    /// Its turn has ended.
    pub fn leave(&mut self, now: Timestamp) {
        self.exhausted_at = None;
        (self.until, self.left) = (Some(self.until.map_or(now, |until| until.min(now))), None);
    }
}

/// A step with the state of its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The step.
    pub step: Step,
    /// Its delivery's state.
    pub state: State,
    /// Whether it is held because it is another step's turn.
    pub waits: bool,
    /// Whether its route is configured: otherwise it cannot be notified.
    pub is_there: bool,
}

impl Seen {
    /// Whether it may be notified now.
    pub fn is_current(&self) -> bool {
        !self.waits && !self.state.is_final() && self.state != State::Quarantined
    }

    /// Whether its turn may come.
    fn can_come(&self) -> bool {
        self.waits && self.is_there
    }
}

/// Why the current step's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its controller rejected or refused the mark.
    Refused,
    /// Its time ended.
    TimeOut,
    /// Its route is not configured any more.
    Missing,
    /// Its delivery has ended or is damaged.
    Gone,
}

/// What the chain does now. The numbers are indices in the list of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing changes.
    Stay,
    /// The current step's clock starts.
    Run(usize),
    /// The current step's clock stops: its mark is held.
    Stop(usize),
    /// It is another step's turn.
    Escalate {
        /// The step whose turn ended, if it still exists.
        from: Option<usize>,
        /// The step whose turn it is.
        to: usize,
        /// The reason.
        why: Why,
    },
    /// No step comes after the current one.
    Exhaust(usize, Why),
    /// A step was acknowledged: the others end.
    End,
}

/// What the chain does now. The next step's turn comes only when the current step was refused, its time has ended, or it
/// is gone, and never while one of its attempts is in flight (P10). A step whose route is not configured is passed over.
/// If no route of the chain is configured, one such step is current all the same, so that an operator is asked about it.
/// A mark that may not be sent keeps its place, and its clock stops.
pub fn next(steps: &[Seen], may_go: bool, now: Timestamp) -> Next {
    if steps.iter().any(|seen| seen.state == State::Acknowledged) {
        let can_end = |seen: &Seen| !seen.state.is_final() && seen.state != State::InFlight;
        return if steps.iter().any(can_end) { Next::End } else { Next::Stay };
    }
    match (latest(steps, Seen::is_current), may_go) {
        (Some(at), true) => of_current(steps, at, now),
        (Some(at), false) => of_held(&steps[at].step, at),
        (None, true) => replace(steps),
        (None, false) => Next::Stay,
    }
}

fn of_held(step: &Step, at: usize) -> Next {
    let runs = step.until.is_some() && step.exhausted_at.is_none();
    if runs { Next::Stop(at) } else { Next::Stay }
}

fn of_current(steps: &[Seen], at: usize, now: Timestamp) -> Next {
    let Seen { step, state, is_there, .. } = &steps[at];
    let other = another(steps).filter(|_| !is_there && *state != State::InFlight);
    if let Some(to) = other {
        return Next::Escalate { from: Some(at), to, why: Why::Missing };
    }
    let next = earliest(steps, |seen| seen.can_come() && seen.step.link.step > step.link.step);
    if step.exhausted_at.is_some() && (next.is_none() || *state == State::InFlight) {
        return Next::Stay;
    }
    let is_over = match step.until {
        // The route of a later step is configured again.
        _ if step.exhausted_at.is_some() => true,
        // The rest of its time when the mark was held.
        None if step.left == Some(Duration::ZERO) => true,
        None if *state != State::Parked => return Next::Run(at),
        // The clock was set back.
        Some(until) if until.since(now) > step.link.timeout && *state != State::Parked => {
            return Next::Run(at);
        }
        until => until.is_some_and(|until| now >= until),
    };
    let why = match state {
        State::Parked => Why::Refused,
        State::InFlight => return Next::Stay,
        _ if is_over => Why::TimeOut,
        _ => return Next::Stay,
    };
    match next {
        Some(to) => Next::Escalate { from: Some(at), to, why },
        None => Next::Exhaust(at, why),
    }
}

/// The current step is gone.
fn replace(steps: &[Seen]) -> Next {
    let last = || latest(steps, |seen| seen.waits);
    match another(steps).or_else(last) {
        Some(to) => Next::Escalate { from: None, to, why: Why::Gone },
        None => Next::Stay,
    }
}

/// The next step that was never notified, else the last that was: the mark is sent as long as any step can be.
fn another(steps: &[Seen]) -> Option<usize> {
    let new = earliest(steps, |seen| seen.can_come() && !seen.step.has_begun());
    new.or_else(|| latest(steps, Seen::can_come))
}

fn order(steps: &[Seen], at: usize) -> u32 {
    steps[at].step.link.step
}

fn earliest(steps: &[Seen], is: impl Fn(&Seen) -> bool) -> Option<usize> {
    (0..steps.len()).filter(|at| is(&steps[*at])).min_by_key(|at| order(steps, *at))
}

fn latest(steps: &[Seen], is: impl Fn(&Seen) -> bool) -> Option<usize> {
    (0..steps.len()).filter(|at| is(&steps[*at])).max_by_key(|at| order(steps, *at))
}

#[cfg(test)]
mod tests;
