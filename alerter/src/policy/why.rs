//! The sentences that say what an operator's decision or a storm holds. They are for people: no program parses them.

use marks::register::{About, Decision, Scope};

use crate::config::rules::{Limit, Rules};

/// Of a pause or a maintenance; none of a decision that holds nothing.
pub fn of_decision(decision: &Decision) -> Option<String> {
    let (scope, how) = match &decision.about {
        About::Pause { scope, .. } => (scope, "paused"),
        About::Maintenance { scope, .. } => (scope, "in maintenance"),
        About::Release(_) | About::ReleaseGroup(_) => return None,
    };
    let what = match scope {
        Scope::All => "everything".to_owned(),
        Scope::Group(name) => format!("group {name}"),
        Scope::Host(host) => host.to_string(),
    };
    Some(format!("{what} is {how} by {}: {}", decision.actor, decision.reason))
}

/// Ends the sentence of a decision about a group that is not configured.
pub const STRAY: &str = "; the configuration has no group of this name, so every host is held";

/// The same with the command that ends it.
pub fn of_stray(why: &str, decision: &Decision, group: &str) -> String {
    let end = match decision.about {
        About::Maintenance { .. } => "maintenance end",
        _ => "resume",
    };
    format!(
        "{why}{STRAY}: run `nova-host-alerter {end} --group {group}`, or give the group its name back and run `nova-host-alerter reload`"
    )
}

/// Of a storm in a group of `size` hosts, with its limit. All marks of a storm have the same sentence, so it does not say how
/// many hosts are down now.
pub fn of_storm(group: &str, rules: &Rules, size: usize) -> String {
    let limit = match rules.limit {
        Limit::None => String::new(),
        Limit::AtMost(amount) => format!(": more than {}", amount.of(size)),
        Limit::Range { low, high } => format!(": not {low} to {high}"),
    };
    // The size is 0 where nothing says how many hosts there are.
    let of = if size > 0 && rules.limit != Limit::None { format!(" of {size}") } else { String::new() };
    let within = rules.window.map(|window| format!(" within {} s", window.as_secs())).unwrap_or_default();
    format!("too many hosts of group {group} are down at once{limit}{of}{within}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::rules::Amount;

    /// The broken variant says "too many", and not how many of how many.
    #[test]
    fn a_storm_has_its_figures() {
        let percent = Limit::AtMost(Amount::Percent(10));
        let window = Some(Duration::from_secs(300));
        for (limit, window, size, figures) in [
            (percent, window, 40, "more than 4 of 40 within 300 s"),
            (Limit::AtMost(Amount::Hosts(1)), None, 0, "more than 1"),
            (Limit::Range { low: 2, high: 4 }, None, 40, "not 2 to 4 of 40"),
        ] {
            let rules = Rules { limit, window, ..Rules::default() };
            let said = of_storm("rack1", &rules, size);
            assert_eq!(said, format!("too many hosts of group rack1 are down at once: {figures}"));
        }
    }
}
