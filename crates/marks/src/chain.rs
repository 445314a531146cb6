//! Escalation chains: which step of a mark's chain is told now, and when the next one is. Pure: the time is an argument.

use std::time::Duration;

use crate::state::State;
use crate::time::Timestamp;

/// The word of a hold by the order of a chain: it is another step's turn. Only the chain itself ends it.
pub const CHAIN: &str = "chain";

/// A clock that stood runs on for so long at least.
pub const LEAST: Duration = Duration::from_secs(30);

/// The place of a route in a chain, as it was configured when the mark was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its order: the first is 1.
    pub step: u32,
    /// So long it has to acknowledge the mark, from when it may first be told.
    pub timeout: Duration,
}

/// A step of a mark's chain, as far as it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was configured.
    pub link: Link,
    /// When its time is over, while its clock runs; when it was left, once it was. None before its clock has begun, and
    /// while the mark is held.
    pub until: Option<Timestamp>,
    /// What was left of its time when the mark was held.
    pub left: Option<Duration>,
    /// Since when no step comes after it: it is tried for ever.
    pub exhausted_at: Option<Timestamp>,
}

impl Step {
    /// One that was never told.
    pub fn new(link: Link) -> Self {
        Self { link, until: None, left: None, exhausted_at: None }
    }

    /// Whether it was ever its turn.
    pub fn has_begun(&self) -> bool {
        self.until.is_some() || self.left.is_some()
    }

    /// When its clock began, as if it had never been stopped; none while it does not run.
    pub fn since(&self) -> Option<Timestamp> {
        self.until.map(|until| until - self.link.timeout)
    }

    /// Lets its clock run, for what was left or for all of its time. Whatever was left, there is time for an attempt.
    pub fn run(&mut self, now: Timestamp) {
        let left = self.left.take().map(|left| left.max(LEAST));
        self.until = Some(now + left.unwrap_or(self.link.timeout));
    }

    /// Stops its clock.
    pub fn stop(&mut self, now: Timestamp) {
        self.left = self.until.take().map(|until| until.since(now));
    }

    /// Another step is next.
    pub fn leave(&mut self, now: Timestamp) {
        self.exhausted_at = None;
        (self.until, self.left) = (Some(self.until.map_or(now, |until| until.min(now))), None);
    }
}

/// A step beside the state of its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The step.
    pub step: Step,
    /// Its delivery's state.
    pub state: State,
    /// Whether it is held because it is another step's turn.
    pub waits: bool,
    /// Whether its route is configured: else nobody can be told there.
    pub is_there: bool,
}

impl Seen {
    /// Whether it is the one that may be told.
    pub fn is_current(&self) -> bool {
        !self.waits && !self.state.is_final() && self.state != State::Quarantined
    }

    /// Whether it can be its turn.
    fn can_come(&self) -> bool {
        self.waits && self.is_there
    }
}

/// Why the current step's turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its controller refused the mark.
    Refused,
    /// It had its time.
    TimeOut,
    /// Its route is not configured any more.
    Missing,
    /// Its delivery has ended or is damaged.
    Gone,
}

/// What becomes of a chain now. The numbers are places in the list of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing changes.
    Stay,
    /// The current step's clock runs from now on.
    Run(usize),
    /// The current step's clock stands: its mark is held.
    Stop(usize),
    /// It is another step's turn.
    Escalate {
        /// The step that is left, where it is still there.
        from: Option<usize>,
        /// The one that may be told now.
        to: usize,
        /// Why.
        why: Why,
    },
    /// No step comes after the current one.
    Exhaust(usize, Why),
    /// A step was acknowledged: the others end.
    End,
}

/// What becomes of a chain now. The next step comes only when the current one was refused, has had its time, or is gone, and
/// never while an attempt of it is under way (P10). A step whose route is not configured is passed over: nobody could be told
/// there. Where no route of the chain is left one such step is the current one all the same, so that somebody is asked about
/// it. A mark that may not go keeps its place, and its clock stands.
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
        // The route of a later step has come back.
        _ if step.exhausted_at.is_some() => true,
        // What was left of it when the mark was held.
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

/// The next step that was never told, else the last that was, so that the mark is told for as long as there is a step that can.
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
