//! The keys of `[heat.NAME]`.

use std::sync::Arc;

use marks::host::HostPatterns;

use super::{Heat, Options, Resource, Resources, Stack, WhichName};
use crate::config::TableReader;
use crate::drivers::Driver;
use crate::openstack;

/// Reads the route's table.
pub(super) fn configure(table: &mut TableReader<'_, '_>) -> Option<Arc<dyn Driver>> {
    let cloud = openstack::read_options(table);
    let host_name = table.choice("host-name", &WhichName::WORDS).unwrap_or_default();
    let resources = resources(table.section("resources"));
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
    match Heat::new(Options { cloud, host_name, resources, stacks, unmark }) {
        Ok(driver) => Some(Arc::new(driver)),
        Err(why) => {
            table.complain(why.key, why.to_string());
            None
        }
    }
}

/// `[heat.NAME.resources]`: node names or patterns, and what lives there.
fn resources(mut table: TableReader<'_, '_>) -> Resources {
    let mut resources = Resources::default();
    for (key, entry) in table.entries() {
        let texts = table.last_texts(entry, |text| Resource::parse(text).map(drop));
        match HostPatterns::from_entries([key]) {
            Err(why) => table.complain_at(entry.key, why.to_string()),
            Ok(hosts) => {
                let all = texts.into_iter().flatten().filter_map(|text| Resource::parse(text).ok());
                resources.add(hosts, all.collect());
            }
        }
    }
    resources
}
