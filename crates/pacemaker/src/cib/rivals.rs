//! What else recovers hosts in a cluster. Beside it a marked host is recovered twice.

use super::Cib;

/// `class:type` or `class:provider:type` of each, and what it does when a host was fenced.
const RIVALS: [(&str, &str); 3] = [
    ("stonith:fence_compute", "marks hosts for NovaEvacuate"),
    ("stonith:fence_evacuate", "has Nova evacuate hosts"),
    ("ocf:openstack:NovaEvacuate", "evacuates hosts"),
];

/// What a resource of this agent does when a host was fenced, if it recovers hosts.
pub fn rival(agent: &str) -> Option<&'static str> {
    RIVALS.iter().find(|(known, _)| *known == agent).map(|(_, does)| *does)
}

impl Cib {
    /// Every resource that also recovers hosts: its id, its agent, and what it does.
    pub fn rivals(&self) -> impl Iterator<Item = (&str, String, &'static str)> {
        let resources = self.resources.iter().filter(|resource| !resource.is_template);
        resources.filter_map(|resource| {
            let typed = self.typed(resource);
            let words = [&typed.class, &typed.provider, &typed.agent];
            let agent = words.map(String::as_str).into_iter().filter(|word| !word.is_empty());
            let agent = agent.collect::<Vec<_>>().join(":");
            let does = rival(&agent)?;
            Some((resource.id.as_str(), agent, does))
        })
    }
}
