//! The CIB of a large cluster as real ones are: digests, times and run times of its own for each operation. Such a text packs
//! to a twentieth; one whose digests are alike to a hundredth, and shows no limit of Pacemaker.

use std::fmt::Write as _;

/// Three controllers, as most clusters have.
const CONTROLLERS: usize = 3;
const START: i64 = 1_795_572_450;

/// Numbers that pack as digests do, the same in each run.
struct Digits(u64);

impl Digits {
    fn next(&mut self) -> u64 {
        // Knuth's MMIX; only the upper bits are good.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn digest(&mut self) -> String {
        (0..4).map(|_| format!("{:08x}", self.next() & 0xffff_ffff)).collect()
    }
}

/// A whole CIB: host number N is `computeN`, with the levels `ipmiN,mark` and `ipmiN`.
pub(super) fn cib(hosts: usize) -> String {
    let mut digits = Digits(7);
    let mut text = format!(
        r#"<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.0" admin_epoch="0" epoch="900" num_updates="0" have-quorum="1" dc-uuid="1"><configuration><crm_config><cluster_property_set id="o"><nvpair id="o-v" name="dc-version" value="2.1.5-a3f44794f94"/></cluster_property_set></crm_config><nodes>{}</nodes><resources>"#,
        (1..=CONTROLLERS).map(|n| format!(r#"<node id="{n}" uname="ctl{n}"/>"#)).collect::<String>()
    );
    (1..=hosts).for_each(|host| resources(&mut text, &mut digits, host));
    text += r#"<primitive id="mark" class="stonith" type="fence_mark"/></resources><constraints/><fencing-topology>"#;
    for host in 1..=hosts {
        let level = |index: u32, devices: &str| {
            format!(
                r#"<fencing-level id="l{host}-{index}" target="compute{host}" index="{index}" devices="{devices}"/>"#
            )
        };
        text += &(level(1, &format!("ipmi{host},mark")) + &level(2, &format!("ipmi{host}")));
    }
    text += "</fencing-topology></configuration><status>";
    status(&mut text, &mut digits, hosts);
    text + "</status></cib>"
}

fn resources(text: &mut String, digits: &mut Digits, host: usize) {
    let (high, low, password) = (host / 250, host % 250, digits.next());
    let _fits = write!(
        text,
        r#"<primitive id="compute{host}" class="ocf" provider="pacemaker" type="remote"><instance_attributes id="compute{host}-a"><nvpair id="compute{host}-a-s" name="server" value="10.77.{high}.{low}"/><nvpair id="compute{host}-a-r" name="reconnect_interval" value="60s"/></instance_attributes></primitive><primitive id="ipmi{host}" class="stonith" type="fence_ipmilan"><instance_attributes id="ipmi{host}-a"><nvpair id="ipmi{host}-a-i" name="ip" value="10.78.{high}.{low}"/><nvpair id="ipmi{host}-a-p" name="password" value="{password:x}"/><nvpair id="ipmi{host}-a-h" name="pcmk_host_list" value="compute{host}"/></instance_attributes></primitive>"#
    );
}

/// Each controller has probed every connection, and holds its share of them.
fn status(text: &mut String, digits: &mut Digits, hosts: usize) {
    for controller in 1..=CONTROLLERS {
        let _fits = write!(
            text,
            r#"<node_state id="{controller}" uname="ctl{controller}" in_ccm="true" crmd="online" join="member" expected="member"><lrm id="{controller}"><lrm_resources>"#
        );
        for host in 1..=hosts {
            let is_here = host % CONTROLLERS + 1 == controller;
            let (name, of) = (format!("compute{host}"), r#"type="remote" class="ocf" provider="pacemaker""#);
            let mut add = |resource: &str, of: &str, kinds: &[(&str, u32, usize, u32)]| {
                let operations = kinds.iter().map(|(kind, interval, call, code)| {
                    operation(digits, resource, (kind, *interval), (controller, 10 * host + call), *code)
                });
                let operations: String = operations.collect();
                let _fits = write!(text, r#"<lrm_resource id="{resource}" {of}>{operations}</lrm_resource>"#);
            };
            let run = [("start", 0, 3, 0), ("monitor", 30_000, 5, 0)];
            if is_here {
                add(&name, of, &run);
                // Pacemaker probes no fence device.
                add(&format!("ipmi{host}"), r#"type="fence_ipmilan" class="stonith""#, &run);
            } else {
                add(&name, of, &[("monitor", 0, 1, 7)]);
            }
        }
        text.push_str("</lrm_resources></lrm></node_state>");
    }
    for host in 1..=hosts {
        let _fits = write!(
            text,
            r#"<node_state remote_node="true" id="compute{host}" uname="compute{host}" in_ccm="true" crm-debug-origin="remote_node_up" node_fenced="0"/>"#
        );
    }
}

fn operation(
    digits: &mut Digits,
    resource: &str,
    (kind, interval): (&str, u32),
    (controller, call): (usize, usize),
    code: u32,
) -> String {
    let (digest, restart) = (digits.digest(), digits.digest());
    let key = format!(
        "{}:{}:{code}:{}",
        digits.below(9999),
        digits.below(99),
        "ce4e5be2-c8d5-441a-a1cd-1965f5cff676"
    );
    let (at, took) = (START + i64::try_from(digits.below(90_000)).unwrap_or_default(), digits.below(3000));
    format!(
        r#"<lrm_rsc_op id="{resource}_{kind}_{interval}" operation_key="{resource}_{kind}_{interval}" operation="{kind}" crm-debug-origin="do_update_resource" crm_feature_set="3.16.1" transition-key="{key}" transition-magic="0:{code};{key}" exit-reason="" on_node="ctl{controller}" call-id="{call}" rc-code="{code}" op-status="0" interval="{interval}" last-rc-change="{at}" exec-time="{took}" queue-time="0" op-digest="{digest}" op-restart-digest="{restart}"/>"#
    )
}

/// Pacemaker's daemon reads none from its file.
pub(super) fn without_status(cib: &str) -> String {
    let (before, rest) = cib.split_once("<status>").unwrap_or((cib, ""));
    format!("{before}<status/>{}", rest.split_once("</status>").map_or("</cib>", |(_, rest)| rest))
}

/// The status as changes of at most so many elements each.
pub(super) fn status_in_turns(cib: &str, most: usize) -> Vec<String> {
    let status = cib.split_once("<status>").map_or("", |(_, rest)| rest);
    let (mut turns, mut remotes) = (Vec::new(), Vec::new());
    for state in status.split_inclusive("</node_state>") {
        let Some((head, rest)) = state.split_once("<lrm_resources>") else {
            remotes.extend(
                state.split_inclusive("/>").filter(|one| one.starts_with("<node_state")).map(str::to_owned),
            );
            continue;
        };
        let resources: Vec<&str> =
            rest.split_inclusive("</lrm_resource>").filter(|one| one.starts_with("<lrm_resource ")).collect();
        turns.extend(resources.chunks(most).map(|some| {
            format!("{head}<lrm_resources>{}</lrm_resources></lrm></node_state>", some.concat())
        }));
    }
    turns.extend(remotes.chunks(most).map(<[String]>::concat));
    turns
}

/// A host with an attribute of this value.
pub(super) fn load(host: usize, load: usize) -> String {
    format!(
        r#"<node_state id="compute{host}"><transient_attributes id="compute{host}"><instance_attributes id="status-compute{host}"><nvpair id="status-compute{host}-load" name="load" value="{load}"/></instance_attributes></transient_attributes></node_state>"#
    )
}
