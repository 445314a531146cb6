//! `[recovery]`: whether Nova is asked what became of the instances of a failed host.

use std::sync::Arc;
use std::time::Duration;

use drivers::instances::{self, Instances};
use marks::recovery::Rules;
use site::Section;

use super::written::Written;

/// The table; Nova is asked only where it is written.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The Nova to ask.
    pub nova: Arc<Instances>,
    /// How often, and for how long.
    pub rules: Rules,
    written: Written,
}

/// Two readings of the same text ask the same Nova.
impl PartialEq for Recovery {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

/// Reads `[recovery]`.
pub(super) fn read(mut section: Section<'_, '_>, written: Option<&Written>) -> Option<Recovery> {
    if !section.is_there() {
        return None;
    }
    let mut seconds =
        |key, range, usual| Duration::from_secs(section.number(key, range).unwrap_or(usual).into());
    let rules = Rules {
        every: seconds("interval", 10..=3600, 60),
        limit: seconds("recovery-limit", 60..=86_400, 900),
        ask_for: seconds("ask-for", 600..=604_800, 86_400),
    };
    if !rules.is_long_enough() {
        section.complain(
            "ask-for",
            "must be longer than recovery-limit, and at least eleven minutes and two intervals",
        );
    }
    let nova = instances::read(&mut section).map(Arc::new);
    section.finish();
    Some(Recovery { nova: nova?, rules, written: *written? })
}
