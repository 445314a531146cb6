//! What the CIB says of hosts, as a text that the real reader reads.

use std::fmt::Write as _;

/// The cluster's controllers.
pub const CONTROLLERS: [&str; 3] = ["ctl1", "ctl2", "ctl3"];
/// The word of an attribute that asks not to report a host.
const SKIP: &str = "host-failure-skip";

/// What a host is to the cluster, and how the cluster says whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A remote node: `node_fenced` says that it was fenced, and the history of its resource when it was connected.
    Remote,
    /// A cluster node that runs instances too; `in_ccm` is true or false (before 2.1.7).
    Flag,
    /// The same; `in_ccm` says since when, and 0 for not (2.1.7 and later).
    Epoch,
}

/// A compute host, as the cluster sees it.
#[derive(Clone, Debug)]
pub struct Host {
    /// What it is to the cluster.
    pub kind: Kind,
    /// Since when it is there, by the DC's clock, epoch seconds.
    pub joined: i64,
    /// When a cluster node did its first work since it joined; Pacemaker forgets that with its fencing.
    pub work: Option<i64>,
    /// `in_ccm`; none where the cluster says nothing.
    pub member: Option<bool>,
    /// `node_fenced`, epoch seconds; 0 where it is not.
    pub fenced: i64,
    /// What its health check says; none where it is well.
    pub complaint: Option<&'static str>,
    /// It has the attribute that asks not to report it.
    pub is_skipped: bool,
    /// Its attribute `zone`, where it has one.
    pub zone: &'static str,
    /// The successful starts of its remote resource that the cluster remembers: controller, call, second.
    pub connections: Vec<(&'static str, u32, i64)>,
}

impl Host {
    /// One that this controller has connected then.
    pub fn connected(controller: &'static str, second: i64) -> Self {
        let connections = vec![(controller, 7, second)];
        Self {
            kind: Kind::Remote,
            joined: second,
            work: Some(second),
            member: Some(true),
            fenced: 0,
            complaint: None,
            is_skipped: false,
            zone: "",
            connections,
        }
    }

    /// Whether it is there.
    pub fn is_up(&self) -> bool {
        self.member == Some(true)
    }

    /// It is there again: a controller has connected it, and it has joined by the DC's clock. What it is decides which of these counts.
    pub fn come_back(&mut self, controller: &'static str, second: i64, joined: i64) {
        self.connect(controller, second);
        (self.joined, self.work) = (joined, Some(joined));
    }

    /// Each controller remembers the newest start.
    fn connect(&mut self, controller: &'static str, second: i64) {
        let call = self.connections.iter().map(|(_, call, _)| *call).max().unwrap_or(7) + 1;
        self.forget(controller);
        self.connections.push((controller, call, second));
        (self.member, self.fenced) = (Some(true), 0);
    }

    /// A controller is lost: another one connects a host that is there.
    pub fn move_connection(&mut self, from: &str, to: &'static str, second: i64) {
        let newest = self.connections.iter().max_by_key(|(_, call, _)| *call).map(|(there, _, _)| *there);
        self.forget(from);
        if self.is_up() && newest == Some(from) {
            self.connect(to, second);
        }
    }

    /// What a controller remembered is lost with it.
    pub fn forget(&mut self, controller: &str) {
        self.connections.retain(|(there, _, _)| *there != controller);
    }

    fn in_ccm(&self) -> Option<String> {
        let is_member = self.member?;
        Some(match self.kind {
            Kind::Epoch if is_member => self.joined.to_string(),
            Kind::Epoch => "0".to_owned(),
            Kind::Flag | Kind::Remote => is_member.to_string(),
        })
    }

    /// Its line in the status section.
    fn state(&self, name: &str) -> String {
        let Some(in_ccm) = self.in_ccm() else { return String::new() };
        let fenced = self.fenced;
        match (self.kind, self.is_up()) {
            (Kind::Remote, _) => {
                let health = self.complaint.map_or_else(String::new, health);
                format!(
                    r#"<node_state remote_node="true" id="{name}" uname="{name}" in_ccm="{in_ccm}" node_fenced="{fenced}">{health}</node_state>"#
                )
            }
            (kind, is_member) => {
                let word = if is_member { "member" } else { "down" };
                let crmd = match (kind, is_member) {
                    (Kind::Epoch, _) => in_ccm.clone(),
                    (_, true) => "online".to_owned(),
                    (_, false) => "offline".to_owned(),
                };
                format!(
                    r#"<node_state id="{name}" uname="{name}" in_ccm="{in_ccm}" crmd="{crmd}" join="{word}" expected="{word}"><lrm><lrm_resources>{}</lrm_resources></lrm></node_state>"#,
                    self.work.map_or_else(String::new, probe)
                )
            }
        }
    }

    /// Its line among the nodes.
    fn node(&self, name: &str) -> String {
        let kind = if self.kind == Kind::Remote { r#" type="remote""# } else { "" };
        let word = format!(
            r#"<nvpair id="n" name="{SKIP}" value="{}"/><nvpair id="z" name="zone" value="{}"/>"#,
            self.is_skipped, self.zone
        );
        format!(
            r#"<node id="{name}" uname="{name}"{kind}><instance_attributes id="a">{word}</instance_attributes></node>"#
        )
    }

    /// What a controller remembers of its remote resource.
    fn history(&self, name: &str, controller: &str) -> String {
        let own = self.connections.iter().filter(|(there, _, _)| *there == controller);
        let op = |operation: &str, rc: u8, call: u32, second: i64| {
            format!(
                r#"<lrm_rsc_op id="{name}" operation="{operation}" rc-code="{rc}" call-id="{call}" last-rc-change="{second}"/>"#
            )
        };
        // The controller that held the connection to a host that is lost has seen its monitor fail.
        let failed = |call, second| {
            if self.member == Some(false) { op("monitor", 1, call, second + 1) } else { String::new() }
        };
        let operations: String =
            own.map(|(_, call, second)| op("start", 0, *call, *second) + &failed(*call, *second)).collect();
        format!(
            r#"<lrm_resource id="{name}" class="ocf" provider="pacemaker" type="remote">{operations}</lrm_resource>"#
        )
    }
}

/// A clone's instance that is degraded.
fn health(reason: &str) -> String {
    format!(
        r#"<lrm><lrm_resources><lrm_resource id="health:0" class="ocf" provider="openstack" type="compute-health"><lrm_rsc_op id="health_last_failure_0" operation="monitor" rc-code="190" exit-reason="{reason}" call-id="9" last-rc-change="1"/></lrm_resource></lrm_resources></lrm>"#
    )
}

/// What a controller does first of all when it has joined.
fn probe(second: i64) -> String {
    format!(
        r#"<lrm_resource id="power" class="stonith" type="fence_ipmilan"><lrm_rsc_op id="power_last_0" operation="monitor" rc-code="7" call-id="5" last-rc-change="{second}"/></lrm_resource>"#
    )
}

/// The document as a controller reads it, of hosts by their names; of each controller, whether it is a member and when it did its first
/// work.
///
/// # Panics
/// A text takes whatever is written to it.
pub fn document<'h>(
    hosts: impl Iterator<Item = (&'h str, &'h Host)> + Clone,
    controllers: [(bool, Option<i64>); 3],
    dc: usize,
) -> String {
    let (mut nodes, mut resources, mut states) = (String::new(), String::new(), String::new());
    for (id, (name, (is_member, work))) in CONTROLLERS.iter().zip(controllers).enumerate() {
        write!(nodes, r#"<node id="{id}" uname="{name}"/>"#).unwrap();
        let remote = hosts.clone().filter(|(_, host)| host.kind == Kind::Remote);
        let histories: String = remote.map(|(host, state)| state.history(host, name)).collect();
        let own = work.map_or_else(String::new, probe);
        write!(
            states,
            r#"<node_state id="{id}" uname="{name}" in_ccm="{is_member}"><lrm id="{id}"><lrm_resources>{histories}{own}</lrm_resources></lrm></node_state>"#
        )
        .unwrap();
    }
    for (name, host) in hosts {
        nodes.push_str(&host.node(name));
        if host.kind == Kind::Remote {
            write!(resources, r#"<primitive id="{name}" class="ocf" provider="pacemaker" type="remote"/>"#)
                .unwrap();
        }
        states.push_str(&host.state(name));
    }
    format!(
        r#"<cib dc-uuid="{dc}"><configuration><crm_config/><nodes>{nodes}</nodes><resources>{resources}</resources><constraints/></configuration><status>{states}</status></cib>"#
    )
}
