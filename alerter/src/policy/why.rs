//! The sentences that say what an operator's decision or a storm holds, written here, and read here for whoever has to say how
//! it ends.

use marks::host::HostName;
use marks::register::{About, Decision, Scope};

use crate::config::rules::{Limit, Rules};

const PAUSED: &str = "paused";
const IN_MAINTENANCE: &str = "in maintenance";
const EVERYTHING: &str = "everything";

/// Of a pause or a maintenance; none of a decision that holds nothing.
pub fn of_decision(decision: &Decision) -> Option<String> {
    let (scope, how) = match &decision.about {
        About::Pause { scope, .. } => (scope, PAUSED),
        About::Maintenance { scope, .. } => (scope, IN_MAINTENANCE),
        About::Release(_) | About::ReleaseGroup(_) => return None,
    };
    let what = match scope {
        Scope::All => EVERYTHING.to_owned(),
        Scope::Group(name) => format!("group {name}"),
        Scope::Host(host) => host.to_string(),
    };
    Some(format!("{what} is {how} by {}: {}", decision.actor, decision.reason))
}

/// Behind the sentence of a decision about a group that the configuration does not have.
pub const STRAY: &str = "; the configuration has no group of this name, so every host is held";

/// Whether a mark is held by the decision that says so, and not by one whose reason goes on where this one's ends.
pub fn is_of(held: &str, decision: &str) -> bool {
    held.strip_prefix(decision).is_some_and(|rest| rest.is_empty() || rest == STRAY)
}

/// The same with what ends it.
pub fn of_stray(why: &str, decision: &Decision, group: &str) -> String {
    let end = match decision.about {
        About::Maintenance { .. } => "maintenance end",
        _ => "resume",
    };
    format!(
        "{why}{STRAY}: run `nova-host-alerter {end} --group {group}`, or give the group its name back and run `nova-host-alerter reload`"
    )
}

/// Of a storm in a group of `size` hosts, with its limit. It is the same for all marks of a storm, however many hosts fail: how
/// many are down now only the group's own figures say.
pub fn of_storm(group: &str, rules: &Rules, size: usize) -> String {
    let limit = match rules.limit {
        Limit::None => String::new(),
        Limit::AtMost(amount) => format!(": more than {}", amount.of(size)),
        Limit::Range { low, high } => format!(": not {low} to {high}"),
    };
    // Where nobody can say how many hosts there are, none are known.
    let of = if size > 0 && rules.limit != Limit::None { format!(" of {size}") } else { String::new() };
    let within = rules.window.map(|window| format!(" within {} s", window.as_secs())).unwrap_or_default();
    format!("{IN_GROUP}{group}{ARE_DOWN}{limit}{of}{within}")
}

const IN_GROUP: &str = "too many hosts of group ";
const ARE_DOWN: &str = " are down at once";

/// The group of a storm's sentence.
pub fn stormy_group(why: &str) -> Option<&str> {
    Some(why.strip_prefix(IN_GROUP)?.split_once(ARE_DOWN)?.0)
}

/// Whom the sentence of a pause or a maintenance is about.
pub(super) fn scope(why: &str) -> Option<Scope> {
    let ends = [PAUSED, IN_MAINTENANCE].map(|how| format!(" is {how} by "));
    let at = ends.iter().filter_map(|end| why.find(end.as_str())).min()?;
    let what = &why[..at];
    match what.strip_prefix("group ") {
        Some(name) => Some(Scope::Group(name.to_owned())),
        None if what == EVERYTHING => Some(Scope::All),
        None => HostName::parse(what).ok().map(Scope::Host),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marks::id::NoteId;
    use marks::time::Timestamp;

    use super::*;
    use crate::config::rules::{Amount, Rounding};

    #[test]
    fn who_is_held_can_be_read_in_what_was_said() {
        let until = Timestamp(0) + Duration::from_secs(60);
        let said = |about| {
            let (actor, reason) = ("alice".to_owned(), "group x is paused by bob: why".to_owned());
            of_decision(&Decision { id: NoteId::generate(), about, at: Timestamp(0), actor, reason })
        };
        let host = Scope::Host(HostName::parse("compute1").unwrap());
        for whom in [Scope::All, Scope::Group("rack1".into()), host] {
            let pause = said(About::Pause { scope: whom.clone(), until: None }).unwrap();
            let maintenance = said(About::Maintenance { scope: whom.clone(), until }).unwrap();
            assert_eq!([scope(&pause), scope(&maintenance)], [Some(whom.clone()), Some(whom)], "{pause}");
        }
        assert_eq!(said(About::ReleaseGroup("rack1".into())), None);
        let storm = of_storm("rack 1", &Rules::default(), 0);
        assert_eq!((stormy_group(&storm), stormy_group("a storm")), (Some("rack 1"), None));
        assert_eq!(scope("nobody knows"), None);
    }

    /// The broken variant says "too many", and not how many of how many.
    #[test]
    fn a_storm_has_its_figures() {
        let percent = Limit::AtMost(Amount::Percent { percent: 10, rounding: Rounding::Down });
        let window = Some(Duration::from_secs(300));
        for (limit, window, size, figures) in [
            (percent, window, 40, "more than 4 of 40 within 300 s"),
            (Limit::AtMost(Amount::Hosts(1)), None, 0, "more than 1"),
            (Limit::Range { low: 2, high: 4 }, None, 40, "not 2 to 4 of 40"),
        ] {
            let rules = Rules { limit, window, ..Rules::default() };
            let said = of_storm("rack1", &rules, size);
            assert_eq!(said, format!("too many hosts of group rack1 are down at once: {figures}"));
            assert_eq!(stormy_group(&said), Some("rack1"));
        }
    }
}
