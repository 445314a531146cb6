//! The plan: steps in an order in which no host is ever without a level, or its mark alone.

use super::finding::Finding;
use super::step::Step;

/// The steps that put right what was found, as far as they do; none where nothing is wrong that they could put right.
pub fn steps(findings: &[Finding]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for step in findings.iter().filter_map(Finding::step) {
        if !steps.contains(step) {
            add(&mut steps, step.clone());
        }
    }
    steps.sort_by_key(Step::place);
    steps
}

fn add(steps: &mut Vec<Step>, step: Step) {
    let place = step.place();
    let mut left = Some(step);
    for own in steps.iter_mut().filter(|own| own.place() == place) {
        left = left.and_then(|step| own.join(step));
    }
    steps.extend(left);
}
