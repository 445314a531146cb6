//! The keys of `[heat.NAME]`.

use std::sync::Arc;

use site::Section;

use super::{Heat, Options, Resource, Stack, WhichName};
use crate::driver::{Driver, usable};
use crate::openstack::{self, ByHost};

/// Reads the route's table.
pub(super) fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let cloud = openstack::read_options(table);
    let host_name = table.choice("host-name", &WhichName::WORDS).unwrap_or_default();
    let resources = ByHost::read(table.section("resources"), Resource::parse);
    let stacks = table.texts("stacks", |text| Stack::parse(text).map(drop)).unwrap_or_default();
    let stacks: Vec<Stack> = stacks.into_iter().filter_map(|text| Stack::parse(text).ok()).collect();
    let unmark = table.choice("when-returned", &[("leave", false), ("healthy", true)]).unwrap_or(false);
    if resources.is_empty() && stacks.is_empty() && table.is_sound() {
        let title = table.title().to_owned();
        table.missing(format!(
            "[{title}] names no resource: add a table resources with those of each host, or stacks"
        ));
    }
    if !table.is_sound() {
        return None;
    }
    usable(table, Heat::new(Options { cloud, host_name, resources, stacks, unmark }))
}
