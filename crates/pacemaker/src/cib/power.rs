//! Fence agents that leave a host running. A mark behind these alone would report a host that still runs.

use super::{Cib, Resource};

/// An agent whose success does not mean that the host is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Powerless {
    /// The agent, as the CIB names its type.
    pub agent: &'static str,
    /// What it does instead; follows the word "it".
    pub does: &'static str,
    /// Whether a level of it alone may be in a topology: its success still means that the host is down.
    pub stands_alone: bool,
}

const fn it(agent: &'static str, does: &'static str) -> Powerless {
    Powerless { agent, does, stands_alone: false }
}

const fn alone(agent: &'static str, does: &'static str) -> Powerless {
    Powerless { agent, does, stands_alone: true }
}

/// Storage and network fencing count as powerless: the host's instances run on, with their addresses, and write to every
/// disk that the device does not guard.
const DISKS: &str = "takes the host's access to some disks away, but its instances keep running";
const NETWORK: &str = "cuts the host off from a network or fabric, but its instances keep running";
const SHELL: &str = "asks the host to switch itself off, and treats silence as success";

/// Every agent that is known to leave the host running. Any other agent counts as cutting power: sites have their own.
pub const POWERLESS: &[Powerless] = &[
    it(super::MARK_AGENT, "writes down that the host was fenced"),
    it("fence_compute", "reports the host to Nova"),
    it("fence_evacuate", "has Nova evacuate the host"),
    it("fence_dummy", "only pretends"),
    it("fence_heuristics_ping", "pings addresses"),
    it("fence_heuristics_resource", "checks a resource"),
    it("fence_crosslink", "treats a silent cable as a dead host"),
    alone("fence_kdump", "waits for a message of a crashed kernel, which anybody on the network can send"),
    alone("fence_watchdog", "waits, and assumes that the host's own watchdog has fired"),
    it("fence_scsi", DISKS),
    it("fence_mpath", DISKS),
    it("fence_brocade", NETWORK),
    it("fence_cisco_mds", NETWORK),
    it("fence_sanbox2", NETWORK),
    it("fence_ifmib", NETWORK),
    it("fence_aws_vpc_net", NETWORK),
    // Plugins of cluster-glue, by the names that the CIB has for them.
    it("null", "only pretends"),
    it("external/ssh", SHELL),
    it("ssh", SHELL),
    it("meatware", "waits for a person's confirmation"),
    alone("external/kdumpcheck", "waits for a message of a crashed kernel"),
];

/// Agents that are known to cut a host's power, or to stop the virtual machine that it is. If no operator has written a
/// level, only these are put before a mark: for an agent in neither list, the meaning of its success is unknown.
const CUTTING: &[&str] = &[
    "external/ipmi",
    "external/libvirt",
    "external/vcenter",
    "fence_aliyun",
    "fence_alom",
    "fence_amt",
    "fence_amt_ws",
    "fence_apc",
    "fence_apc_snmp",
    "fence_aws",
    "fence_azure_arm",
    "fence_bladecenter",
    "fence_bladecenter_snmp",
    "fence_cdu",
    "fence_cisco_ucs",
    "fence_cyberpower_ssh",
    "fence_drac",
    "fence_drac5",
    "fence_eaton_snmp",
    "fence_eaton_ssh",
    "fence_emerson",
    "fence_eps",
    "fence_gce",
    "fence_hpblade",
    "fence_ibm_powervs",
    "fence_ibm_vpc",
    "fence_ibmblade",
    "fence_ibmz",
    "fence_idrac",
    "fence_ilo",
    "fence_ilo2",
    "fence_ilo3",
    "fence_ilo3_ssh",
    "fence_ilo4",
    "fence_ilo4_ssh",
    "fence_ilo5",
    "fence_ilo5_ssh",
    "fence_ilo6",
    "fence_ilo6_ssh",
    "fence_ilo_moonshot",
    "fence_ilo_mp",
    "fence_ilo_ssh",
    "fence_imm",
    "fence_intelmodular",
    "fence_ipdu",
    "fence_ipmilan",
    "fence_ipmilanplus",
    "fence_ironic",
    "fence_kubevirt",
    "fence_ldom",
    "fence_lindypdu",
    "fence_lpar",
    "fence_netio",
    "fence_nutanix_ahv",
    "fence_openstack",
    "fence_ovh",
    "fence_powerman",
    "fence_pve",
    "fence_raritan",
    "fence_raritan_px3",
    "fence_rcd_serial",
    "fence_redfish",
    "fence_rhevm",
    "fence_rsa",
    "fence_rsb",
    "fence_tripplite_snmp",
    "fence_vbox",
    "fence_virsh",
    "fence_virt",
    "fence_vmware",
    "fence_vmware_rest",
    "fence_vmware_soap",
    "fence_vmware_vcloud",
    "fence_wti",
    "fence_xenapi",
    "fence_xvm",
    "fence_zvmip",
];

/// Whether this agent is known to cut power.
pub fn surely_cuts(agent: &str) -> bool {
    CUTTING.contains(&agent)
}

/// The device of this name needs no resource: the fencer makes it if `stonith-watchdog-timeout` is set.
pub const WATCHDOG: &str = "watchdog";
/// The agent that runs plugins of cluster-glue, and its parameter.
const LEGACY: (&str, &str) = ("fence_legacy", "plugin");

/// What this agent does instead of cutting power; `None` if it counts as cutting power.
fn powerless(agent: &str) -> Option<&'static Powerless> {
    POWERLESS.iter().find(|powerless| powerless.agent == agent)
}

/// The same for a device with its parameters: `fence_legacy` counts as its plugin.
pub fn powerless_device<'a>(
    agent: &str,
    parameter: impl Fn(&str) -> Option<&'a str>,
) -> Option<&'static Powerless> {
    let plugin = (agent == LEGACY.0).then(|| parameter(LEGACY.1)).flatten();
    powerless(plugin.unwrap_or(agent))
}

/// Why a device of a level cannot cut power; `None` if it counts as cutting power.
pub(super) fn weakness(cib: &Cib, id: &str) -> Option<String> {
    let mut named = cib.index.resources(id).iter().filter_map(|at| cib.resources.get(*at));
    let device = named.find(|resource| !resource.is_template && resource.id == id);
    let typed = device.map(|device| cib.typed(device)).filter(|typed| typed.class == "stonith");
    let (Some(device), Some(typed)) = (device, typed) else {
        let watchdog = powerless("fence_watchdog").filter(|_| id == WATCHDOG && device.is_none());
        let why = watchdog.map_or("is no fence device of this cluster", |watchdog| watchdog.does);
        return Some(format!("{id} {why}"));
    };
    let weak = powerless_device(&typed.agent, |name| parameter(cib, device, name))?;
    Some(format!("{id} ({}) {}", weak.agent, weak.does))
}

fn parameter<'a>(cib: &'a Cib, device: &'a Resource, name: &str) -> Option<&'a str> {
    let lists = [Some(device), cib.template_of(device)].into_iter().flatten();
    let mut values = lists.flat_map(|resource| &resource.parameters).filter(|(key, _)| key == name);
    values.next().map(|(_, value)| value.as_str())
}
