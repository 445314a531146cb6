//! The keys of `[heat.NAME]`.

use site::Section;

use super::targets::{Resource, Stack};
use crate::openstack::{self, ByHost};
use crate::which::HostNames;

/// What a `heat` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cloud that Heat belongs to; its project is that of the stacks.
    pub cloud: openstack::CloudOptions,
    /// Which of a host's names Nova knows.
    pub host_name: HostNames,
    /// The resources of each host that the configuration names.
    pub resources: ByHost<Resource>,
    /// The stacks whose servers are read from Nova.
    pub stacks: Vec<Stack>,
    /// Whether a resource is unmarked when the host is back.
    pub unmark: bool,
}

/// Reads the route's table.
pub(super) fn read(table: &mut Section<'_, '_>) -> Option<Options> {
    let cloud = openstack::read_options(table);
    let host_name = HostNames::read(table);
    let resources = ByHost::read(table.section("resources"), Resource::parse);
    let stacks = table.texts("stacks", |text| Stack::parse(text).map(drop)).unwrap_or_default();
    let stacks: Vec<Stack> = stacks.into_iter().filter_map(|text| Stack::parse(text).ok()).collect();
    let unmark = table.choice("when-returned", &[("leave", false), ("healthy", true)]).unwrap_or(false);
    if resources.is_empty() && stacks.is_empty() && table.is_sound() {
        let title = table.title().to_owned();
        table.missing(format!(
            "[{title}] names no resource: add a table resources with the resources of each host, or stacks"
        ));
    }
    table.is_sound().then_some(Options { cloud, host_name, resources, stacks, unmark })
}
