//! The fencing levels with a mark device that apply to a host, and whether they are safe.

use super::{Cib, Level, Target, pattern, power};
use marks::host::HostName;

/// Levels are numbered 1 to 9; the fencer ignores all others.
pub const LEVELS: std::ops::RangeInclusive<u32> = 1..=9;

/// One level with a mark device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkLevel {
    /// The level's target, as in the configuration: a name, a pattern, or `attribute=value`.
    pub target: String,
    /// Its number.
    pub index: u32,
    /// Its devices, in order.
    pub devices: Vec<String>,
    /// Its fault.
    pub fault: Option<LevelFault>,
    /// Whether it surely applies to the host. A pattern that cannot be evaluated here may apply.
    pub certain: bool,
}

/// Why a mark device is dangerous in its place: it would be asked although no other device has fenced the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelFault {
    /// No other device is before it.
    Alone,
    /// Another device comes after it.
    NotLast,
    /// No device before it can cut power; what each of them does instead.
    NoPower(Vec<String>),
}

impl MarkLevel {
    /// One sentence for people, or `None` if nothing is wrong.
    pub fn complaint(&self) -> Option<String> {
        let (why, what_to_do) = match self.fault.as_ref()? {
            LevelFault::Alone => (
                "is the only device, so it would report a host that no device has fenced".to_owned(),
                "put it behind the power device",
            ),
            LevelFault::NotLast => (
                "is not the last device, so it would report a host before it is fenced".to_owned(),
                "put it behind the power device",
            ),
            LevelFault::NoPower(weak) => (
                format!(
                    "has no device before it that cuts power ({}), so it would report a host that runs",
                    weak.join("; ")
                ),
                "put a power device before it, or remove it from this level",
            ),
        };
        Some(format!("the mark device in level {} for {} {why}: {what_to_do}", self.index, self.target))
    }
}

/// See [`Cib::mark_levels_of`].
pub(super) fn levels_of(cib: &Cib, host: &HostName) -> Vec<MarkLevel> {
    let exact: Vec<&Level> = held(cib).filter(|level| level.target.has_key(host.as_str())).collect();
    if !exact.is_empty() {
        return mark_levels(cib, &exact, |_| true);
    }
    let matching: Vec<&Level> =
        held(cib).filter(|level| matches(cib, &level.target, host) != Some(false)).collect();
    mark_levels(cib, &matching, |target| matches(cib, target, host) == Some(true))
}

/// See [`Cib::mark_levels`].
pub(super) fn all_levels(cib: &Cib) -> Vec<MarkLevel> {
    mark_levels(cib, &held(cib).collect::<Vec<_>>(), |_| true)
}

fn held(cib: &Cib) -> impl Iterator<Item = &Level> {
    cib.levels.iter().filter(|level| level.holds())
}

impl Level {
    /// Whether the fencer takes it. It ignores one with another number, which then hides no other either.
    pub fn holds(&self) -> bool {
        LEVELS.contains(&self.index)
    }
}

fn matches(cib: &Cib, target: &Target, host: &HostName) -> Option<bool> {
    let own = cib.nodes.iter().filter(|node| node.name == host.as_str()).flat_map(|node| &node.attributes);
    target.covers(host.as_str(), own.map(|(name, value)| (name.as_str(), value.as_str())))
}

/// Joins entries of the same target and number, and keeps those with a mark device.
fn mark_levels(cib: &Cib, levels: &[&Level], certain: impl Fn(&Target) -> bool) -> Vec<MarkLevel> {
    let mut seen: Vec<(String, u32)> = Vec::new();
    let mut found = Vec::new();
    for level in levels {
        let key = (level.target.key(), level.index);
        if seen.contains(&key) {
            continue;
        }
        let entries: Vec<&[String]> = levels
            .iter()
            .filter(|l| l.index == key.1 && l.target.key() == key.0)
            .map(|l| l.devices.as_slice())
            .collect();
        found.extend(joined(cib, &key, &entries, certain(&level.target)));
        seen.push(key);
    }
    found
}

/// The fencer appends an added entry to those it has, but after a full refresh only the last entry is left. So any tail
/// of the entries may apply, and the first faulty one counts.
fn joined(cib: &Cib, key: &(String, u32), entries: &[&[String]], certain: bool) -> Option<MarkLevel> {
    let tails = (0..entries.len()).map(|from| entries[from..].concat());
    let mut with_mark = tails.filter(|devices| devices.iter().any(|id| cib.is_mark_device(id))).peekable();
    let whole = with_mark.peek()?.clone();
    let (devices, fault) =
        with_mark.find_map(|d| fault(cib, &d).map(|f| (d, Some(f)))).unwrap_or((whole, None));
    Some(MarkLevel { target: key.0.clone(), index: key.1, devices, fault, certain })
}

fn fault(cib: &Cib, devices: &[String]) -> Option<LevelFault> {
    LevelFault::of(devices, |id| cib.is_mark_device(id), |id| power::weakness(cib, id))
}

impl LevelFault {
    /// A mark device must be the last of at least two, and one before it must cut power: so it is asked only when the
    /// host is off. `weakness` says why a device cannot cut power.
    pub fn of(
        devices: &[String],
        is_mark: impl Fn(&str) -> bool,
        weakness: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let first_mark = devices.iter().position(|id| is_mark(id))?;
        if first_mark + 1 < devices.len() {
            return Some(Self::NotLast);
        }
        if first_mark == 0 {
            return Some(Self::Alone);
        }
        let weak: Option<Vec<String>> = devices[..first_mark].iter().map(|id| weakness(id)).collect();
        weak.map(Self::NoPower)
    }
}

impl Target {
    /// The attributes of a `<fencing-level>`; `None` without a target.
    pub fn read<'a>(attribute: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let own = |name| attribute(name).map(str::to_owned);
        if let Some(name) = own("target") {
            return Some(Self::Name(name));
        }
        if let Some(pattern) = own("target-pattern") {
            return Some(Self::Pattern(pattern));
        }
        Some(Self::Attribute { name: own("target-attribute")?, value: own("target-value")? })
    }

    /// Whether it is for a node with this name and these permanent attributes, as in the fencer's `topology_matches`;
    /// `None` if that cannot be evaluated here.
    pub fn covers<'a>(
        &self,
        node: &str,
        attributes: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<bool> {
        match self {
            Self::Name(name) => Some(name.eq_ignore_ascii_case(node)),
            Self::Pattern(text) => pattern::matches(text, node),
            Self::Attribute { name, value } => {
                let mut attributes = attributes;
                Some(attributes.any(|(key, found)| key == name && found == value))
            }
        }
    }

    /// Whether the fencer's table has its levels under this text.
    pub fn has_key(&self, text: &str) -> bool {
        match self {
            Self::Name(key) | Self::Pattern(key) => key == text,
            Self::Attribute { .. } => self.key() == text,
        }
    }

    /// The fencer's table has its levels under this text, whatever kind of target it is.
    pub fn key(&self) -> String {
        match self {
            Self::Name(text) | Self::Pattern(text) => text.clone(),
            Self::Attribute { name, value } => format!("{name}={value}"),
        }
    }
}
