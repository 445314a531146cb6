//! From the tries of a probe to its answer, and from the answers of probes to a conclusion. Pure.

use marks::host::HostName;

/// What one try says of a host, and a probe after its tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It is up.
    Healthy,
    /// It is not.
    Unhealthy,
    /// Not known: it neither confirms nor refuses, and is asked again.
    Unknown,
}

/// A state, and what it is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The state.
    pub state: State,
    /// For people: what the probe did or saw, one clause without a secret.
    pub words: String,
}

impl Said {
    pub(super) fn new(state: State, words: impl Into<String>) -> Self {
        Self { state, words: words.into() }
    }
}

/// A probe's answer after these tries; `None` while another try is due. One healthy try is enough, and used-up retries mean unhealthy.
/// A try with an unknown result does not count as failed.
pub fn of_tries(tries: &[State], retries: u32) -> Option<State> {
    if tries.contains(&State::Healthy) {
        return Some(State::Healthy);
    }
    let all = usize::try_from(retries).unwrap_or(usize::MAX).saturating_add(1);
    match tries.len() < all {
        true => None,
        false if tries.contains(&State::Unknown) => Some(State::Unknown),
        false => Some(State::Unhealthy),
    }
}

/// How the answers of several probes are taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// `all-failed`: every probe must find the host down, and one that finds it up refuses.
    #[default]
    AllFailed,
    /// `any-failed`: one probe that finds the host down is enough, and only all together refuse.
    AnyFailed,
}

/// What a rule makes of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing yet.
    Open,
    /// The host is down.
    Confirmed,
    /// The host is up.
    Refused,
}

impl Rule {
    /// What the rule makes of the probes' answers. Without a probe nothing is decided.
    pub fn decide(self, answers: &[State]) -> Decision {
        let any = |state| answers.contains(&state);
        let all = |state| !answers.is_empty() && answers.iter().all(|answer| *answer == state);
        let (confirmed, refused) = match self {
            Self::AllFailed => (all(State::Unhealthy), any(State::Healthy)),
            Self::AnyFailed => (any(State::Unhealthy), all(State::Healthy)),
        };
        match (confirmed, refused) {
            (true, _) => Decision::Confirmed,
            (false, true) => Decision::Refused,
            (false, false) => Decision::Open,
        }
    }
}

/// What the probes of a mark say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Conclusion {
    /// Nothing yet: the mark waits.
    #[default]
    Open,
    /// The host is down: the mark may be sent.
    Confirmed,
    /// The host is up: the mark waits; which probe said so, and what to do, in one sentence.
    Healthy(String),
}

/// A probe's name and what it said, `None` while it is asked.
pub(super) type Answer<'a> = (&'a str, Option<&'a Said>);

/// What these answers are, for a rule.
pub(super) fn states(answers: &[Answer<'_>]) -> Vec<State> {
    answers.iter().map(|(_, said)| said.map_or(State::Unknown, |said| said.state)).collect()
}

/// What these answers say of a host.
pub(super) fn conclusion(rule: Rule, node: &HostName, answers: &[Answer<'_>]) -> Conclusion {
    match rule.decide(&states(answers)) {
        Decision::Open => Conclusion::Open,
        Decision::Confirmed => Conclusion::Confirmed,
        Decision::Refused => Conclusion::Healthy(format!(
            "{node} is up: {}; make sure that it is off, then release the mark",
            of_state(State::Healthy, answers)
        )),
    }
}

/// Why nothing is decided about a host, as far as the probes say it.
pub(super) fn doubt(node: &HostName, answers: &[Answer<'_>]) -> Option<String> {
    let said = of_state(State::Unknown, answers);
    let sentence =
        || format!("it is not known whether {node} is down: {said}; repair the probe, or release the mark");
    (!said.is_empty()).then(sentence)
}

/// What the probes said that gave this answer: `its probe tcp.ssh got a connection`.
pub(super) fn of_state(state: State, answers: &[Answer<'_>]) -> String {
    let own =
        answers.iter().filter_map(|(name, said)| Some((name, said.filter(|said| said.state == state)?)));
    let clauses: Vec<String> = own.map(|(name, said)| format!("its probe {name} {}", said.words)).collect();
    clauses.join(", and ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STATES: [State; 3] = [State::Healthy, State::Unhealthy, State::Unknown];
    const H: State = State::Healthy;
    const U: State = State::Unhealthy;
    const X: State = State::Unknown;

    /// S0-11, S0-14: the retries come after the first try, and when all have failed the host is unhealthy.
    ///
    /// The broken variants are the document's own words, "considered healthy", and a count that takes the first try for a
    /// retry.
    #[test]
    fn retries_that_are_used_up_mean_unhealthy() {
        assert_eq!(of_tries(&[], 0), None);
        assert_eq!(of_tries(&[U], 0), Some(U));
        assert_eq!(of_tries(&[U, U, U], 3), None);
        assert_eq!(of_tries(&[U, U, U, U], 3), Some(U));
        let as_written = |tries: &[State], retries: usize| (tries.len() > retries).then_some(H);
        assert_ne!(as_written(&[U, U, U, U], 3), of_tries(&[U, U, U, U], 3));
        let first_counted = |tries: &[State], retries: usize| (tries.len() >= retries).then_some(U);
        assert_ne!(first_counted(&[U, U, U], 3), of_tries(&[U, U, U], 3));
    }

    /// S0-10: one good answer is enough, at once; what nobody knows is no failure.
    #[test]
    fn one_healthy_try_is_enough_and_an_unknown_one_is_none() {
        assert_eq!(of_tries(&[H], 3), Some(H));
        assert_eq!(of_tries(&[U, X, H], 3), Some(H));
        assert_eq!(of_tries(&[U, X], 2), None);
        assert_eq!(of_tries(&[U, X, U], 2), Some(X));
        assert_eq!(of_tries(&[X], 0), Some(X));
    }

    /// S0-6, S0-45: every combination of two probes, written out.
    #[test]
    fn two_probes_under_both_rules() {
        use Decision::{Confirmed, Open, Refused};
        for (answers, all_failed, any_failed) in [
            ([H, H], Refused, Refused),
            ([H, U], Refused, Confirmed),
            ([H, X], Refused, Open),
            ([U, H], Refused, Confirmed),
            ([U, U], Confirmed, Confirmed),
            ([U, X], Open, Confirmed),
            ([X, H], Refused, Open),
            ([X, U], Open, Confirmed),
            ([X, X], Open, Open),
        ] {
            assert_eq!(Rule::AllFailed.decide(&answers), all_failed, "all-failed {answers:?}");
            assert_eq!(Rule::AnyFailed.decide(&answers), any_failed, "any-failed {answers:?}");
        }
    }

    fn any_states() -> impl Strategy<Value = Vec<State>> {
        proptest::collection::vec(proptest::sample::select(STATES.to_vec()), 1..8)
    }

    proptest! {
        /// What was decided stays so whatever the others say later.
        #[test]
        fn an_answer_that_is_still_missing_changes_no_decision(answers in any_states(), more in any_states()) {
            let mut more = more.into_iter().cycle();
            let known = |answer: State| if answer == X { more.next().unwrap_or(X) } else { answer };
            let later: Vec<State> = answers.iter().copied().map(known).collect();
            for rule in [Rule::AllFailed, Rule::AnyFailed] {
                let now = rule.decide(&answers);
                prop_assert!(now == Decision::Open || now == rule.decide(&later));
            }
        }
    }
}
