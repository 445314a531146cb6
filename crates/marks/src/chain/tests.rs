use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const LIMIT: Duration = Duration::from_secs(60);

fn step(order: u32) -> Step {
    Step::new(Link { step: order, timeout: LIMIT })
}

fn waiting(order: u32) -> Seen {
    Seen { step: step(order), state: State::Held, waits: true, is_there: true }
}

fn current(order: u32, state: State, until: Option<Timestamp>) -> Seen {
    Seen { step: Step { until, ..step(order) }, state, waits: false, is_there: true }
}

fn left(order: u32) -> Seen {
    Seen { step: Step { until: Some(NOW - LIMIT), ..step(order) }, ..waiting(order) }
}

fn escalate(from: usize, to: usize, why: Why) -> Next {
    Next::Escalate { from: Some(from), to, why }
}

#[test]
fn the_clock_begins_when_the_mark_may_go_and_stands_while_it_is_held() {
    let mut steps = [current(1, State::Pending, None), waiting(2)];
    assert_eq!(next(&steps, false, NOW), Next::Stay);
    assert_eq!(next(&steps, true, NOW), Next::Run(0));
    steps[0].step.run(NOW);
    assert_eq!(next(&steps, true, NOW), Next::Stay);
    let later = NOW + LIMIT / 2;
    assert_eq!(next(&steps, false, later), Next::Stop(0));
    steps[0].step.stop(later);
    let much_later = NOW + LIMIT * 100;
    assert_eq!(next(&steps, false, much_later), Next::Stay, "no clock runs");
    assert_eq!(next(&steps, true, much_later), Next::Run(0));
    steps[0].step.run(much_later);
    assert_eq!(steps[0].step.until, Some(much_later + LIMIT / 2), "the rest of its time");
    assert_eq!(next(&steps, true, much_later + LIMIT / 2), escalate(0, 1, Why::TimeOut));
}

/// The broken variants start a step whose time has ended, or after which a route is configured again.
#[test]
fn a_step_that_is_over_gets_no_more_time() {
    let pending = current(1, State::Pending, None);
    for over in [Step { left: Some(Duration::ZERO), ..step(1) }, Step { exhausted_at: Some(NOW), ..step(1) }]
    {
        let steps = [Seen { step: over, ..pending }, waiting(2)];
        assert_eq!(next(&steps, true, NOW), escalate(0, 1, Why::TimeOut), "{over:?}");
    }
}

#[test]
fn a_clock_shows_when_it_began_and_runs_no_longer_than_its_step() {
    let mut step = Step { exhausted_at: Some(NOW), ..step(1) };
    assert_eq!(step.since(), None);
    step.run(NOW);
    assert_eq!(step.since(), Some(NOW));
    let later = NOW + LIMIT / 2;
    step.leave(later);
    assert_eq!((step.until, step.left, step.exhausted_at), (Some(later), None, None));
    step.leave(NOW + LIMIT * 2);
    assert_eq!(step.until, Some(later), "it had ended before");
}

/// S0-26: the broken variants are a moment too early, and a failure that is no refusal.
#[test]
fn the_next_step_comes_after_a_refusal_or_the_time_limit_and_not_before() {
    let until = Some(NOW + LIMIT);
    let of = |state, now| next(&[current(1, state, until), waiting(2), waiting(3)], true, now);
    let just_before = NOW + LIMIT - Duration::from_millis(1);
    for state in [State::Pending, State::Held] {
        assert_eq!(of(state, just_before), Next::Stay);
        assert_eq!(of(state, NOW + LIMIT), escalate(0, 1, Why::TimeOut), "{state:?}");
    }
    assert_eq!(of(State::Parked, NOW), escalate(0, 1, Why::Refused));
    let unclocked = [current(1, State::Parked, None), waiting(2)];
    assert_eq!(next(&unclocked, true, NOW), escalate(0, 1, Why::Refused));
    assert_eq!(next(&unclocked, false, NOW), Next::Stay, "its mark is held");
}

/// S0-26: never two at once.
#[test]
fn an_attempt_under_way_is_waited_for() {
    let steps = [current(1, State::InFlight, Some(NOW)), waiting(2)];
    assert_eq!(next(&steps, true, NOW + LIMIT * 10), Next::Stay);
}

#[test]
fn the_last_step_stays() {
    for (state, why) in [(State::Pending, Why::TimeOut), (State::Parked, Why::Refused)] {
        let mut steps = [left(1), current(2, state, Some(NOW))];
        assert_eq!(next(&steps, true, NOW), Next::Exhaust(1, why));
        steps[1].step.exhausted_at = Some(NOW);
        for may_go in [false, true] {
            assert_eq!(next(&steps, may_go, NOW + LIMIT * 10), Next::Stay);
        }
    }
}

/// S4-40: the broken variant is a chain without an acknowledged step.
#[test]
fn an_acknowledgement_of_any_step_ends_the_others() {
    let taken = Seen { state: State::Acknowledged, waits: false, ..left(1) };
    assert_eq!(next(&[taken, current(2, State::Pending, None), waiting(3)], true, NOW), Next::End);
    assert_eq!(next(&[taken, current(2, State::Pending, None)], false, NOW), Next::End, "a held mark too");
    let steps = [taken, current(2, State::InFlight, None)];
    assert_eq!(next(&steps, true, NOW), Next::Stay, "its answer is awaited");
    assert_eq!(next(&[left(1), current(2, State::Pending, None), waiting(3)], true, NOW), Next::Run(1));
}

#[test]
fn a_step_that_is_gone_hands_on_and_the_chain_falls_back_to_the_last_that_is_left() {
    let gone = |to| Next::Escalate { from: None, to, why: Why::Gone };
    let cancelled = |order| current(order, State::Cancelled, Some(NOW));
    assert_eq!(next(&[cancelled(1), waiting(2), waiting(3)], true, NOW), gone(1));
    assert_eq!(next(&[cancelled(1), waiting(2)], false, NOW), Next::Stay);
    assert_eq!(next(&[left(1), left(2), cancelled(3)], true, NOW), gone(1));
    assert_eq!(next(&[cancelled(1), cancelled(2)], true, NOW), Next::Stay, "nothing is left");
    // A damaged row is not trusted, and is not among the steps.
    assert_eq!(next(&[left(1), waiting(3)], true, NOW), gone(1));
}

/// A route without configuration is no step: the chain goes on to those that have one, and back to one that was left; an
/// attempt in flight is awaited. The broken variants are the same chains with all routes configured.
#[test]
fn a_step_whose_route_is_gone_is_passed_over() {
    let gone = |seen: Seen| Seen { is_there: false, ..seen };
    let over = current(1, State::Pending, Some(NOW));
    assert_eq!(next(&[over, waiting(2), waiting(3)], true, NOW), escalate(0, 1, Why::TimeOut));
    assert_eq!(next(&[over, gone(waiting(2)), waiting(3)], true, NOW), escalate(0, 2, Why::TimeOut));
    assert_eq!(next(&[over, gone(waiting(2))], true, NOW), Next::Exhaust(0, Why::TimeOut));
    let runs = |order| current(order, State::Pending, Some(NOW + LIMIT));
    assert_eq!(next(&[left(1), runs(2)], true, NOW), Next::Stay);
    assert_eq!(next(&[left(1), gone(runs(2))], true, NOW), escalate(1, 0, Why::Missing));
    assert_eq!(next(&[left(1), gone(runs(2)), waiting(3)], true, NOW), escalate(1, 2, Why::Missing));
    assert_eq!(next(&[left(1), gone(runs(2))], false, NOW), Next::Stop(1));
    let sent = gone(current(2, State::InFlight, Some(NOW)));
    assert_eq!(next(&[left(1), sent, waiting(3)], true, NOW), Next::Stay);
    assert_eq!(next(&[gone(left(1)), gone(runs(2))], true, NOW), Next::Stay, "somebody is asked");
}

/// The broken variant is the same one while the route of the later step is gone.
#[test]
fn the_last_step_hands_on_when_a_later_route_comes_back() {
    let mut steps = [current(1, State::Pending, Some(NOW)), waiting(2)];
    (steps[0].step.exhausted_at, steps[1].is_there) = (Some(NOW), false);
    assert_eq!(next(&steps, true, NOW), Next::Stay);
    steps[1].is_there = true;
    assert_eq!(next(&steps, true, NOW), escalate(0, 1, Why::TimeOut));
    steps[0].state = State::InFlight;
    assert_eq!(next(&steps, true, NOW), Next::Stay, "its answer is awaited");
}

#[test]
fn a_clock_that_was_set_back_leaves_no_more_than_the_limit() {
    let steps = [current(1, State::Pending, Some(NOW + LIMIT)), waiting(2)];
    assert_eq!(next(&steps, true, NOW - Duration::from_secs(86_400)), Next::Run(0));
}

/// The list's order does not matter: rows come in the order of their routes' names.
#[test]
fn the_order_is_the_one_that_was_configured() {
    let steps = [waiting(3), current(1, State::Parked, None), waiting(2)];
    assert_eq!(next(&steps, true, NOW), escalate(1, 2, Why::Refused));
}

/// What may happen to a chain from outside.
#[derive(Clone, Copy, Debug)]
enum Event {
    Begin,
    Answer(State),
    /// A callback confirms a step, whichever is its turn.
    Confirm(usize),
    Damage(usize),
    CancelCurrent,
    /// The route of a step is configured from now on, or is not.
    Configure(usize, bool),
    Hold(bool),
    Wait(u64),
}

fn any_event() -> impl Strategy<Value = Event> {
    let answer = prop_oneof![Just(State::Pending), Just(State::Parked), Just(State::Held)];
    prop_oneof![
        6 => Just(Event::Begin),
        6 => answer.prop_map(Event::Answer),
        1 => (0..4_usize).prop_map(Event::Confirm),
        1 => (0..4_usize).prop_map(Event::Damage),
        1 => Just(Event::CancelCurrent),
        2 => (0..4_usize, any::<bool>()).prop_map(|(at, is_there)| Event::Configure(at, is_there)),
        2 => any::<bool>().prop_map(Event::Hold),
        4 => (1..90_u64).prop_map(Event::Wait),
    ]
}

type Decide = fn(&[Seen], bool, Timestamp) -> Next;

/// A chain as the journal has it, without the journal.
struct Model {
    steps: Vec<Seen>,
    now: Timestamp,
    may_go: bool,
}

impl Model {
    fn new(count: u32) -> Self {
        let mut steps: Vec<Seen> = (1..=count).map(waiting).collect();
        (steps[0].state, steps[0].waits) = (State::Pending, false);
        Self { steps, now: NOW, may_go: true }
    }

    fn current(&mut self) -> Option<&mut Seen> {
        self.steps.iter_mut().find(|seen| seen.is_current())
    }

    fn happen(&mut self, event: Event) {
        let may_go = self.may_go;
        match event {
            Event::Begin => {
                let due = self.current().filter(|seen| may_go && seen.state == State::Pending);
                due.into_iter().for_each(|seen| seen.state = State::InFlight);
            }
            Event::Answer(state) => {
                let sent = self.steps.iter_mut().filter(|seen| seen.state == State::InFlight);
                sent.for_each(|seen| seen.state = state);
            }
            Event::Confirm(at) => {
                let open = self.steps.get_mut(at).filter(|seen| !seen.state.is_final());
                open.into_iter().for_each(|seen| (seen.state, seen.waits) = (State::Acknowledged, false));
            }
            // A row that is not trusted is not a step.
            Event::Damage(at) => {
                if self.steps.len() > 1 && self.steps.get(at).is_some_and(|s| s.state != State::InFlight) {
                    self.steps.remove(at);
                }
            }
            Event::CancelCurrent => {
                let idle = self.current().filter(|seen| seen.state != State::InFlight);
                idle.into_iter().for_each(|seen| seen.state = State::Cancelled);
            }
            Event::Configure(at, is_there) => {
                self.steps.get_mut(at).into_iter().for_each(|seen| seen.is_there = is_there);
            }
            Event::Hold(hold) => self.may_go = !hold,
            Event::Wait(seconds) => self.now = self.now + Duration::from_secs(seconds),
        }
    }

    fn apply(&mut self, next: Next) {
        let now = self.now;
        match next {
            Next::Stay => {}
            Next::Run(at) => self.steps[at].step.run(now),
            Next::Stop(at) => self.steps[at].step.stop(now),
            Next::Escalate { from, to, .. } => {
                if let Some(from) = from {
                    self.steps[from].step.leave(now);
                    (self.steps[from].state, self.steps[from].waits) = (State::Held, true);
                }
                let step = Step::new(self.steps[to].step.link);
                self.steps[to] = Seen { step, state: State::Pending, waits: false, ..self.steps[to] };
                self.steps[to].step.run(now);
            }
            Next::Exhaust(at, _) => self.steps[at].step.exhausted_at = Some(now),
            Next::End => {
                let open = self.steps.iter_mut().filter(|s| !s.state.is_final());
                open.filter(|s| s.state != State::InFlight).for_each(|s| s.state = State::Cancelled);
            }
        }
    }

    /// P10: at most one of all steps may be sent or is in flight, and a chain with an acknowledgement has nothing to
    /// send.
    fn complaint(&self) -> Option<String> {
        let current = self.steps.iter().filter(|seen| seen.is_current()).count();
        let is_taken = self.steps.iter().any(|seen| seen.state == State::Acknowledged);
        let is_under_way = |seen: &Seen| seen.state == State::InFlight;
        match current {
            0 => None,
            1 if !is_taken || self.steps.iter().any(is_under_way) => None,
            _ => Some(format!("{current} steps may be sent: {:?}", self.steps)),
        }
    }
}

fn run(count: u32, events: &[Event], decide: Decide) -> Result<Model, String> {
    let mut model = Model::new(count);
    for event in events {
        let was_under_way: Vec<u32> = under_way(&model);
        model.happen(*event);
        let next = decide(&model.steps, model.may_go, model.now);
        let held_back =
            matches!(next, Next::Escalate { .. } | Next::Exhaust(..) | Next::Run(_)) && !model.may_go;
        let before = under_way(&model);
        if leads_nowhere(&model.steps, next) {
            return Err(format!("{next:?} after {event:?}: it has no route"));
        }
        model.apply(next);
        if held_back || under_way(&model) != before {
            return Err(format!("{next:?} after {event:?}, with {was_under_way:?} under way"));
        }
        if let Some(complaint) = model.complaint() {
            return Err(complaint);
        }
        let after = decide(&model.steps, model.may_go, model.now);
        if after != Next::Stay {
            return Err(format!("{after:?} at once behind {next:?}: one pass is not enough"));
        }
    }
    Ok(model)
}

/// Whether the next step has no route although another step has one.
fn leads_nowhere(steps: &[Seen], next: Next) -> bool {
    let Next::Escalate { from, to, .. } = next else { return false };
    !steps[to].is_there && (from.is_some() || steps.iter().any(|seen| seen.waits && seen.is_there))
}

fn under_way(model: &Model) -> Vec<u32> {
    let sent = model.steps.iter().filter(|seen| seen.state == State::InFlight);
    sent.map(|seen| seen.step.link.step).collect()
}

/// Ignores that an attempt may be in flight.
fn hasty(steps: &[Seen], may_go: bool, now: Timestamp) -> Next {
    let blind = |seen: &Seen| match seen.state {
        State::InFlight => Seen { state: State::Pending, ..*seen },
        _ => *seen,
    };
    next(&steps.iter().map(blind).collect::<Vec<_>>(), may_go, now)
}

/// Continues while the mark is held.
fn restless(steps: &[Seen], _may_go: bool, now: Timestamp) -> Next {
    next(steps, true, now)
}

/// Ignores that a step was acknowledged.
fn deaf(steps: &[Seen], may_go: bool, now: Timestamp) -> Next {
    let blind = |seen: &Seen| match seen.state {
        State::Acknowledged => Seen { state: State::Cancelled, ..*seen },
        _ => *seen,
    };
    next(&steps.iter().map(blind).collect::<Vec<_>>(), may_go, now)
}

/// Ignores which routes are configured.
fn lost(steps: &[Seen], may_go: bool, now: Timestamp) -> Next {
    let blind = |seen: &Seen| Seen { is_there: true, ..*seen };
    next(&steps.iter().map(blind).collect::<Vec<_>>(), may_go, now)
}

/// The broken variants of the property below.
#[test]
fn a_decision_that_is_wrong_is_noticed() {
    let late = [Event::Wait(1), Event::Begin, Event::Wait(80)];
    let held = [Event::Hold(true), Event::Wait(1)];
    let confirmed = [Event::Wait(1), Event::Confirm(0)];
    let gone = [Event::Configure(1, false), Event::Wait(1), Event::Wait(80)];
    for (events, broken) in
        [(&late[..], hasty as Decide), (&held, restless), (&confirmed, deaf), (&gone, lost)]
    {
        assert!(run(3, events, next).is_ok());
        assert!(run(3, events, broken).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// P10 (S0-25, S0-26, S0-29): at most one step at a time whatever happens, and none while the mark is held.
    #[test]
    fn one_step_at_a_time(count in 1..5_u32, events in prop::collection::vec(any_event(), 1..60)) {
        if let Err(complaint) = run(count, &events, next) {
            prop_assert!(false, "{}", complaint);
        }
    }

    /// No mark is lost: in the end, once it may be sent, either a step is sent, or one was acknowledged, or all have
    /// ended; and with time alone the chain comes to its last step.
    #[test]
    fn a_chain_goes_on_to_its_end(count in 1..5_u32, events in prop::collection::vec(any_event(), 0..60)) {
        let mut model = run(count, &events, next).expect("it is the property above");
        let quiet = [Event::Answer(State::Pending), Event::Hold(false)].into_iter();
        for event in quiet.chain([Event::Wait(61); 12]) {
            model.happen(event);
            let next = next(&model.steps, model.may_go, model.now);
            model.apply(next);
        }
        let has_ended = model.steps.iter().all(|seen| seen.state.is_final());
        let exhausted = model.current().is_some_and(|seen| seen.step.exhausted_at.is_some());
        prop_assert!(has_ended || exhausted, "{:?}", model.steps);
        let can_be_sent = |seen: &Seen| seen.is_there && (seen.waits || seen.is_current());
        let is_sent = model.current().is_none_or(|seen| seen.is_there);
        prop_assert!(is_sent || !model.steps.iter().any(can_be_sent), "{:?}", model.steps);
    }
}
