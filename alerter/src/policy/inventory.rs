//! Which hosts there are, in which group each is, and which are skipped: what the newest CIB says.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use marks::host::HostName;
use pacemaker::cib::Cib;

use crate::base::Base;
use crate::config::{Group, Members, Settings};
use crate::intake::roll;
use crate::policy::SKIP;
use crate::policy::state::State;

/// The hosts by a CIB.
#[derive(Default)]
pub(super) struct Inventory {
    is_known: bool,
    cib: Option<Arc<Cib>>,
    /// The configuration whose groups these are.
    settings: Option<Arc<Settings>>,
    /// The hosts that are reported, each with the index of its group.
    group_of: HashMap<HostName, usize>,
    /// Those with the node attribute [`SKIP`].
    pub(super) skipped: HashSet<HostName>,
}

impl Inventory {
    /// Goes by the newest CIB and this configuration; says whether either is another one.
    pub(super) fn renew(&mut self, base: &Base, settings: &Arc<Settings>) -> bool {
        let cib = base.cib();
        let is_same_cib = match (&self.cib, &cib) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => self.is_known,
            _ => false,
        };
        let is_same = is_same_cib && self.settings.as_ref().is_some_and(|known| Arc::ptr_eq(known, settings));
        if !is_same {
            *self = Self::new(cib, settings);
        }
        !is_same
    }

    fn new(cib: Option<Arc<Cib>>, settings: &Arc<Settings>) -> Self {
        // Without a cluster only the configuration says which hosts there are.
        let (settings, known): (&Settings, _) = (settings, Some(Arc::clone(settings)));
        let hosts = match &cib {
            Some(cib) => roll::nodes(&settings.hosts, cib),
            None => listed(settings),
        };
        let hosts = hosts.into_iter();
        let group_of = hosts.map(|host| (host.clone(), index(settings, cib.as_deref(), &host))).collect();
        let skipped = cib.as_ref().map(|cib| cib.nodes_with(SKIP)).unwrap_or_default();
        let skipped = skipped
            .into_iter()
            .filter(|(_, word)| pacemaker::cib::truth(word) == Some(true))
            .map(|(host, _)| host);
        Self { is_known: true, skipped: skipped.collect(), group_of, cib, settings: known }
    }

    /// The index of a host's group.
    pub(super) fn group_of(&self, settings: &Settings, host: &HostName) -> usize {
        let known = self.group_of.get(host).copied();
        known.unwrap_or_else(|| index(settings, self.cib.as_deref(), host))
    }

    /// A host that the cluster does not know any more was taken out of it. Without a cluster every host counts as a member.
    pub(super) fn is_member(&self, host: &HostName) -> bool {
        let Some(cib) = &self.cib else { return true };
        self.group_of.contains_key(host) || cib.membership(host) == Some(true)
    }

    /// How many hosts each group has, without those that are set aside.
    pub(super) fn sizes(&self, groups: usize, state: &State) -> Vec<usize> {
        let mut sizes = vec![0; groups];
        for (host, group) in &self.group_of {
            sizes[*group] += usize::from(!state.is_aside(host, *group));
        }
        sizes
    }
}

fn listed(settings: &Settings) -> Vec<HostName> {
    let of_group = |group: &Group| match &group.members {
        Members::Hosts(patterns) => patterns.listed(),
        Members::Attribute { .. } | Members::Rest => None,
    };
    settings.groups.iter().filter_map(of_group).flatten().collect()
}

fn index(settings: &Settings, cib: Option<&Cib>, host: &HostName) -> usize {
    let attribute = |host: &HostName, name: &str| cib?.node_attribute(host, name).map(str::to_owned);
    let name = &settings.group_of(host, &attribute).name;
    settings.groups.iter().position(|group| group.name == *name).unwrap_or_default()
}
