//! Which problems of marks there are, by what was counted in the journal. Pure.

use journal::Figures;
use marks::delivery::State;

use super::Kind;

/// The worst first. `damaged`: rows that cannot be believed.
pub fn of_marks(figures: &Figures, damaged: usize) -> Vec<Kind> {
    let of = |state| figures.marks.of(state) > 0;
    let known = [
        (of(State::Quarantined) || damaged > 0, Kind::Quarantined),
        (of(State::Parked), Kind::Rejected),
        (figures.without_route > 0, Kind::NoRoute),
        (figures.exhausted > 0, Kind::ChainExhausted),
    ];
    known.into_iter().filter(|(holds, _)| *holds).map(|(_, kind)| kind).collect()
}
