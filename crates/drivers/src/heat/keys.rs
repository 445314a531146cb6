//! The keys of `[heat.NAME]`.

use site::Section;

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

/// A stack: `NAME/ID`. Heat finds a stack by its name alone in a read, but not in a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Where it is, behind the service's address.
    pub(super) path: String,
}

/// A resource of a stack: `STACK_NAME/STACK_ID/RESOURCE`, where RESOURCE is a name or a physical id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Where it is, behind the service's address.
    pub(super) path: String,
    /// As the configuration has it.
    pub(super) written: String,
}

impl Stack {
    /// Reads one.
    ///
    /// # Errors
    /// How it must be written.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split('/').collect::<Vec<_>>().as_slice() {
            [name, id] if is_plain(name) && is_plain(id) => Ok(Self { path: format!("/stacks/{name}/{id}") }),
            _ => Err(format!("must be STACK_NAME/STACK_ID, {ALPHABET}")),
        }
    }
}

impl Resource {
    /// Reads one.
    ///
    /// # Errors
    /// How it must be written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("must be STACK_NAME/STACK_ID/RESOURCE, {ALPHABET}");
        let (stack, name) = text.rsplit_once('/').filter(|(_, name)| is_plain(name)).ok_or_else(wrong)?;
        let stack = Stack::parse(stack).map_err(|_| wrong())?;
        Ok(Self { path: format!("{}/resources/{name}", stack.path), written: text.to_owned() })
    }
}

const ALPHABET: &str = "each of letters, digits, '_', '-' and '.'";

/// What may stand in a path unchanged and cannot leave it.
pub(super) fn is_plain(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !matches!(part, "" | "." | "..") && part.len() <= 255 && part.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_a_stack_and_a_name() {
        let resource = Resource::parse("web/5e9a-1/server.0").unwrap();
        assert_eq!(resource.path, "/stacks/web/5e9a-1/resources/server.0");
        assert_eq!(Stack::parse("web/5e9a-1").unwrap().path, "/stacks/web/5e9a-1");
        for text in ["", "a", "a/b", "a/b/c/d", "a//c", "a/../c", "a/b/c?d", "a/b/c#", "a/b/%2e", "a/b/c d"] {
            assert!(Resource::parse(text).is_err(), "{text}");
        }
        for text in ["", "a", "a/", "/b", "a/b/c", "../b", "a/b?x"] {
            assert!(Stack::parse(text).is_err(), "{text}");
        }
    }
}
