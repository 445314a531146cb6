//! What the CIB says of hosts, as a text that the real reader reads.

use std::fmt::Write as _;

use marks::cib::Cib;

use super::{CONTROLLERS, Site};

/// A compute host, as the cluster sees it.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// `in_ccm`; none where the cluster says nothing.
    pub(crate) member: Option<bool>,
    /// `node_fenced`, epoch seconds; 0 where it is not.
    pub(crate) fenced: i64,
    /// The successful starts of its remote resource that the cluster remembers: controller, call, second.
    pub(crate) connections: Vec<(&'static str, u32, i64)>,
}

impl Host {
    pub(super) fn connected(controller: &'static str, second: i64) -> Self {
        Self { member: Some(true), fenced: 0, connections: vec![(controller, 7, second)] }
    }

    /// Each controller remembers the newest start.
    pub(super) fn come_back(&mut self, controller: &'static str, second: i64) {
        let call = self.connections.iter().map(|(_, call, _)| *call).max().unwrap_or(7) + 1;
        self.connections.retain(|(there, _, _)| *there != controller);
        self.connections.push((controller, call, second));
        (self.member, self.fenced) = (Some(true), 0);
    }

    /// Another controller connects a host that is there.
    pub(crate) fn move_connection(&mut self, from: &str, to: &'static str, second: i64) {
        let newest = self.connections.iter().max_by_key(|(_, _, second)| *second).map(|(there, _, _)| *there);
        self.forget(from);
        if newest == Some(from) {
            self.come_back(to, second);
        }
    }

    /// What a controller remembered is lost with it.
    pub(crate) fn forget(&mut self, controller: &str) {
        self.connections.retain(|(there, _, _)| *there != controller);
    }
}

impl Site {
    /// The CIB as a controller reads it.
    pub(crate) fn cib(&self) -> Cib {
        Cib::parse(&self.cib_xml()).unwrap()
    }

    fn cib_xml(&self) -> String {
        let (mut nodes, mut resources, mut states) = (String::new(), String::new(), String::new());
        for (id, name) in CONTROLLERS.iter().enumerate() {
            write!(nodes, r#"<node id="{id}" uname="{name}"/>"#).unwrap();
            let histories: String =
                self.hosts.iter().map(|(host, state)| history(host, state, name)).collect();
            let own = self.own_work.get(name).map_or_else(String::new, |second| probe(*second));
            write!(
                states,
                r#"<node_state id="{id}" uname="{name}" in_ccm="{}"><lrm id="{id}"><lrm_resources>{histories}{own}</lrm_resources></lrm></node_state>"#,
                !self.lost.contains(name)
            )
            .unwrap();
        }
        for (name, host) in &self.hosts {
            write!(resources, r#"<primitive id="{name}" class="ocf" provider="pacemaker" type="remote"/>"#)
                .unwrap();
            if let Some(member) = host.member {
                let fenced = host.fenced;
                write!(states, r#"<node_state remote_node="true" id="{name}" uname="{name}" in_ccm="{member}" node_fenced="{fenced}"/>"#).unwrap();
            }
        }
        format!(
            "<cib><configuration><crm_config/><nodes>{nodes}</nodes><resources>{resources}</resources><constraints/></configuration><status>{states}</status></cib>"
        )
    }
}

/// What a controller does first of all when it has joined.
fn probe(second: i64) -> String {
    format!(
        r#"<lrm_resource id="power" class="stonith" type="fence_ipmilan"><lrm_rsc_op id="power_last_0" operation="monitor" rc-code="7" call-id="5" last-rc-change="{second}"/></lrm_resource>"#
    )
}

fn history(host: &str, state: &Host, controller: &str) -> String {
    let own = state.connections.iter().filter(|(there, _, _)| *there == controller);
    let operations: String = own
        .map(|(_, call, second)| {
            format!(
                r#"<lrm_rsc_op id="{host}" operation="start" rc-code="0" call-id="{call}" last-rc-change="{second}"/>"#
            )
        })
        .collect();
    format!(
        r#"<lrm_resource id="{host}" class="ocf" provider="pacemaker" type="remote">{operations}</lrm_resource>"#
    )
}
