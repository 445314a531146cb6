//! Why a mark is held: the reasons, in the order in which they are shown.

use std::sync::Arc;
use std::time::Duration;

use marks::mark::{Doubt, Lack, MarkRow, Settlement};
use marks::register::{About, Cause, Decision, Scope};
use marks::time::Timestamp;
use serde::Serialize;

use crate::config::rules::{Limit, Rules};

/// How long Pacemaker may take to confirm a fencing: the mark is made before the power is switched on again, and some boards
/// take a minute for that.
pub const PROOF_DUE: Duration = Duration::from_secs(120);

/// A host that is probed for so long needs a person; most are probed for moments.
const ASKED: Duration = Duration::from_secs(60);

/// The node attribute that, when true, holds every mark of its host.
pub const SKIP: &str = "host-failure-skip";

/// Why a mark is held. The first that holds is shown, and all are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// The host's full name is not known; a configured name ends it.
    NoFqdn,
    /// Nobody says whether the host's instances are on shared storage; the configuration ends it.
    NoStorage,
    /// Somebody other than Pacemaker's fencer reported the fencing; Pacemaker's confirmation or an operator ends it.
    Unconfirmed,
    /// Only the register has the fencing; Pacemaker's confirmation or an operator ends it.
    Unproven,
    /// It may have been sent before; an operator ends it.
    OutcomeUnknown,
    /// The host was fenced again after its mark ended, and may not have been back in between; an operator ends it.
    FencedAgain,
    /// The host has the node attribute [`SKIP`]; its removal ends it.
    Skip,
    /// Its host or group is in maintenance, until a time.
    Maintenance,
    /// Everything, or its group, is paused by an operator.
    Pause,
    /// A part of the register is missing, and with it may be a decision that holds the mark; it ends by itself.
    PartMissing,
    /// The group's probes have not confirmed that the host is down.
    Confirm,
    /// `deliver-after` is not over.
    Delay,
    /// The host is back, but not for long enough to be believed.
    Returning,
    /// Too many hosts of its group are down at once.
    Storm,
    /// As many hosts of its group as allowed are being reported.
    MaxInFlight,
}

impl Hold {
    /// Every one, in their order.
    pub const ALL: [Self; 15] = [
        Self::NoFqdn,
        Self::NoStorage,
        Self::Unconfirmed,
        Self::Unproven,
        Self::OutcomeUnknown,
        Self::FencedAgain,
        Self::Skip,
        Self::Maintenance,
        Self::Pause,
        Self::PartMissing,
        Self::Confirm,
        Self::Delay,
        Self::Returning,
        Self::Storm,
        Self::MaxInFlight,
    ];

    /// The word on every screen and in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoFqdn => Lack::Fqdn.as_str(),
            Self::NoStorage => Lack::Storage.as_str(),
            Self::Unconfirmed => "unconfirmed",
            Self::Unproven => "unproven",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::FencedAgain => "fenced-again",
            Self::Skip => "skip",
            Self::Maintenance => "maintenance",
            Self::Pause => "pause",
            Self::PartMissing => "part-missing",
            Self::Confirm => "confirm",
            Self::Delay => "delay",
            Self::Returning => "returning",
            Self::Storm => "storm",
            Self::MaxInFlight => "max-in-flight",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hold| hold.as_str() == word)
    }

    /// Whether it is a doubt about the mark itself: the mark's own row has it, and no rule of a group ends it.
    pub fn is_doubt(self) -> bool {
        self <= Self::FencedAgain
    }

    /// What the mark lacks, where that is the reason.
    pub fn lack(self) -> Option<Lack> {
        Lack::ALL.into_iter().find(|lack| Self::from(*lack) == self)
    }

    /// What a person can do about it. `target` is a mark or its host; `scope` is whom the holding decision is about, where that
    /// is known.
    pub fn advice(self, target: &str, scope: Option<&Scope>) -> String {
        let release = format!("run `nova-host-alerter release {target} --reason TEXT`");
        let unmark = format!("run `nova-host-alerter unmark {target} --reason TEXT`");
        match self {
            Self::NoFqdn => set(Lack::Fqdn, ""),
            Self::NoStorage => set(Lack::Storage, ""),
            Self::Unconfirmed => format!(
                "check the host's power (a host that does not answer a ping may still be on): if it is off, {release}; if the host is alive, {unmark}"
            ),
            Self::Unproven => format!(
                "this is normal until Pacemaker has finished the fencing; if it lasts for minutes: if the host is off, {release}; if the host is alive, {unmark}, and find out who wrote the register's entry"
            ),
            Self::OutcomeUnknown => {
                format!("ask the recovery controller: if it does not know the mark, {release}; else {unmark}")
            }
            Self::FencedAgain => format!(
                "find out whether the host was in use again after its last mark: if it was, {release}; else {unmark}"
            ),
            Self::Skip => format!("remove the host's node attribute {SKIP}, or {release}"),
            Self::Maintenance => format!(
                "maintenance ends by itself, and the mark is sent then; to send it now, run {}; if the host was switched off only for the work, {unmark}",
                end_of_maintenance(scope)
            ),
            Self::Pause => {
                format!(
                    "when the reason no longer applies, run {}: waiting marks are then sent at once",
                    end_of_pause(scope)
                )
            }
            Self::Confirm => {
                format!("the host still answers: if it is off anyway, {release}; if it is alive, {unmark}")
            }
            Self::Storm => {
                let group = match scope {
                    Some(Scope::Group(name)) => name,
                    _ => "NAME",
                };
                format!(
                    "find the common cause (power, switch); only if you have checked that the hosts are off, run `nova-host-alerter release --group {group} --reason TEXT`; for a host that is alive, run `nova-host-alerter unmark HOST --reason TEXT`"
                )
            }
            Self::PartMissing | Self::Delay | Self::Returning | Self::MaxInFlight => {
                "nothing to do: the hold ends by itself".to_owned()
            }
        }
    }

    /// Whether [`Self::advice`] is about one mark, and has to be followed for each.
    pub fn advice_names_target(self) -> bool {
        self.lack().is_none() && self != Self::Pause && !self.passes()
    }

    /// How long it may still last before it is news; none where it is news now. `since` comes from the register, where somebody may
    /// have written a time that is far ahead.
    pub fn not_yet_news(self, since: Timestamp, now: Timestamp) -> Option<Duration> {
        let left = PROOF_DUE.checked_sub(now.since(since)).filter(|left| !left.is_zero());
        left.filter(|_| self == Self::Unproven && since <= now + PROOF_DUE)
    }

    /// Whether a person has to act on a mark that it has held since then.
    pub fn needs_a_person(self, since: Timestamp, now: Timestamp) -> bool {
        let is_asking = self == Self::Confirm && now.since(since) < ASKED;
        !self.passes() && !is_asking && self.not_yet_news(since, now).is_none()
    }

    /// Whether it ends by itself within moments, so that nobody has to be woken.
    pub fn passes(self) -> bool {
        matches!(self, Self::PartMissing | Self::Delay | Self::Returning | Self::MaxInFlight)
    }
}

/// The setting that a mark lacks; `place` says where, with a space before it.
pub fn set(lack: Lack, place: &str) -> String {
    format!("set {}{place}; then run `nova-host-alerter reload`", lack.setting())
}

/// A pause of all groups ends with all pauses.
pub fn end_of_pause(scope: Option<&Scope>) -> String {
    match scope {
        Some(Scope::Group(name)) => format!("`nova-host-alerter resume --group {name}`"),
        Some(_) => "`nova-host-alerter resume`".to_owned(),
        None => "`nova-host-alerter resume`, or `nova-host-alerter resume --group NAME`".to_owned(),
    }
}

fn end_of_maintenance(scope: Option<&Scope>) -> String {
    match scope {
        Some(Scope::Group(name)) => format!("`nova-host-alerter maintenance end --group {name}`"),
        Some(Scope::Host(host)) => format!("`nova-host-alerter maintenance end {host}`"),
        _ => "`nova-host-alerter maintenance end HOST`, or `nova-host-alerter maintenance end --group NAME`"
            .to_owned(),
    }
}

impl From<Lack> for Hold {
    fn from(lack: Lack) -> Self {
        match lack {
            Lack::Fqdn => Self::NoFqdn,
            Lack::Storage => Self::NoStorage,
        }
    }
}

impl From<Doubt> for Hold {
    fn from(doubt: Doubt) -> Self {
        match doubt {
            Doubt::Unconfirmed => Self::Unconfirmed,
            Doubt::Unproven => Self::Unproven,
            Doubt::OutcomeUnknown => Self::OutcomeUnknown,
            Doubt::FencedAgain => Self::FencedAgain,
        }
    }
}

/// The doubts about a mark; a settled mark has none.
pub fn doubts(mark: &MarkRow) -> Vec<Hold> {
    if mark.settled.is_some() {
        return Vec::new();
    }
    mark.lacks().map(Hold::from).chain(mark.standing.doubt().map(Hold::from)).collect()
}

/// The same, and of a mark that was not acknowledged the doubt in which it ended: nobody had said that its host was down.
pub(super) fn doubts_at_its_end(mark: &MarkRow) -> Vec<Hold> {
    match mark.settled {
        Some((how, _)) if how != Settlement::Acknowledged => {
            mark.standing.doubt().map(Hold::from).into_iter().collect()
        }
        _ => doubts(mark),
    }
}

/// One reason that holds a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which.
    pub hold: Hold,
    /// When it ends by itself, where that is known.
    pub until: Option<Timestamp>,
    /// One sentence, the same for all marks that one thing holds.
    pub why: Arc<str>,
    /// Whom the hold is about, and which decision made it.
    pub cause: Cause,
}

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

/// While a part of the register is missing.
pub const PARTIAL: &str = "a part of the register is missing, and with it may be a decision that holds the mark: it waits for that part, but for no longer than 60 s";

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

    #[test]
    fn a_mark_that_lacks_something_is_held_until_it_has_it_or_is_settled() {
        let now = Timestamp(0);
        let named = samples::mark_of("compute1", now);
        let nameless = MarkRow { fqdn: None, ..named.clone() };
        assert_eq!(doubts(&nameless), [Hold::NoFqdn]);
        let unsaid = MarkRow { on_shared_storage: None, ..nameless.clone() };
        assert_eq!(doubts(&unsaid), [Hold::NoFqdn, Hold::NoStorage]);
        assert_eq!(Hold::ALL.into_iter().filter_map(Hold::lack).collect::<Vec<_>>(), Lack::ALL);
        assert!(doubts(&named).is_empty());
        assert!(doubts(&MarkRow { settled: Some((Settlement::Dismissed, now)), ..nameless }).is_empty());
    }

    /// A writer of the register cannot keep it quiet with a time that is far ahead.
    #[test]
    fn an_unproven_mark_becomes_news_when_proof_is_overdue() {
        let (made, second) = (Timestamp(1_800_000_000_000), Duration::from_secs(1));
        let left = |hold: Hold, now| hold.not_yet_news(made, now);
        assert_eq!(left(Hold::Unproven, made), Some(PROOF_DUE));
        assert_eq!(left(Hold::Unproven, made + (PROOF_DUE - second)), Some(second));
        assert_eq!(left(Hold::Unproven, made + PROOF_DUE), None);
        assert_eq!(Hold::Unproven.not_yet_news(made + (PROOF_DUE + second), made), None);
        assert!(Hold::ALL.into_iter().all(|hold| hold == Hold::Unproven || left(hold, made).is_none()));
    }

    /// The broken variants: what passes by itself wakes somebody, and so does every host that is still being asked.
    #[test]
    fn a_hold_needs_a_person_unless_it_passes_or_is_young() {
        let since = Timestamp(1_800_000_000_000);
        let of = |hold: Hold, age| hold.needs_a_person(since, since + Duration::from_secs(age));
        for hold in Hold::ALL {
            let young = !matches!(hold, Hold::Unproven | Hold::Confirm);
            let ages = [0, 59, 60, 119, 120].map(|age| of(hold, age));
            let wanted = match hold {
                Hold::Unproven => [false, false, false, false, true],
                Hold::Confirm => [false, false, true, true, true],
                _ => [!hold.passes() && young; 5],
            };
            assert_eq!(ages, wanted, "{hold:?}");
        }
    }
}
