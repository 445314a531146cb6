//! The cluster's configuration as CIB XML, the way a site would have it.

use super::plan::{self, Kind, Shape};

/// Nothing moves only to spread the load: a scenario that waits for a move must have caused it.
const STICKY: &str = r#"<rsc_defaults><meta_attributes id="lab-defaults">
  <nvpair id="lab-sticky" name="resource-stickiness" value="100"/>
</meta_attributes></rsc_defaults>"#;

/// Device lists of the fencing levels that the project recommends: a failing mark never stops the fencing.
pub const RECOMMENDED: [&str; 2] = ["power,mark", "power"];

/// The controller that the mark device and the alerter are kept to by [`Spread::Home`].
pub const HOME: &str = "ctl1";

/// Where the mark device and the alerter may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// On [`HOME`] alone, and no alerts: what one controller knows is all there is.
    Home,
    /// On every controller, with `alert_mark` on each, and with time limits that a test can wait for.
    Everywhere,
    /// Nowhere: compute hosts with a power device each, as a site has them before it knows of us. With the same time limits.
    Nowhere,
}

/// What is loaded into a cluster of the given shape.
#[derive(Debug, Clone, Copy)]
pub struct Configuration {
    /// The nodes.
    pub shape: Shape,
    /// Whether the alerter is a resource.
    pub alerter: bool,
    /// Where the product runs.
    pub spread: Spread,
}

impl Configuration {
    /// The whole of it, without what Pacemaker adds by itself.
    #[must_use]
    pub fn to_xml(self) -> String {
        let (everywhere, ours) = (self.spread == Spread::Everywhere, self.spread != Spread::Nowhere);
        let (remotes, controllers) = (self.names(Kind::Remote), self.names(Kind::Controller));
        let hosts = remotes.join(" ");
        let own_power = |name: &String| power_device(&format!("power-{name}"), name);
        let power =
            if ours { vec![power_device("power", &hosts)] } else { remotes.iter().map(own_power).collect() };
        let resources: Vec<String> = power
            .into_iter()
            .chain(ours.then(|| mark_device("mark", &hosts, everywhere)))
            .chain(controllers.iter().map(own_power))
            .chain(self.remotes())
            .chain(self.alerter.then(alerter))
            .collect();
        format!(
            "<configuration><crm_config><cluster_property_set id=\"lab\">{PROPERTIES}{}</cluster_property_set></crm_config><resources>{}</resources><constraints>{}</constraints>{}{}</configuration>",
            if self.spread == Spread::Home { "" } else { SHORT },
            resources.concat(),
            self.constraints(&controllers),
            if ours { topology(&remotes, &RECOMMENDED) } else { String::new() },
            if everywhere { [ALERTS, STICKY].concat() } else { String::new() },
        )
    }

    fn names(self, kind: Kind) -> Vec<String> {
        plan::nodes(self.shape).into_iter().filter(|node| node.kind == kind).map(|node| node.name).collect()
    }

    fn remotes(self) -> impl Iterator<Item = String> {
        let nodes = plan::nodes(self.shape).into_iter().filter(|node| node.kind == Kind::Remote);
        nodes.map(|node| remote(&node.name, &node.address().to_string()))
    }

    /// The fencer may choose any controller for a device, wherever it "runs": only a ban keeps it away.
    fn constraints(self, controllers: &[String]) -> String {
        let away = controllers.iter().filter(|name| self.spread == Spread::Home && *name != HOME);
        let kept: String = away
            .flat_map(|name| [Some("mark"), self.alerter.then_some("alerter")].map(|rsc| (rsc, name)))
            .filter_map(|(resource, name)| Some(ban(resource?, name)))
            .collect();
        let own: String = controllers.iter().map(|name| ban(&format!("power-{name}"), name)).collect();
        let rule = if self.alerter { CONTROLLERS_ONLY } else { "" };
        [&kept, &own, rule].concat()
    }
}

/// A controller does two things at a time for each of its processors, and one where it is busy: the futile starts of
/// connections to hosts that stay dead would keep it from fencing another controller, and from starting the alerter. A fencing
/// that fails is tried again each second: after ten of them Pacemaker would give up before a scenario repairs its device. And Pacemaker
/// sometimes forgets to probe a host again after its `reconnect_interval`: 2.1.5 by itself, 3.0.0 where a `crm_resource --cleanup`
/// came right behind the fencing. The next recheck does.
const PROPERTIES: &str = r#"<nvpair id="lab-fencing" name="stonith-enabled" value="true"/>
  <nvpair id="lab-concurrent" name="concurrent-fencing" value="true"/>
  <nvpair id="lab-load" name="load-threshold" value="1000%"/>
  <nvpair id="lab-actions" name="node-action-limit" value="100"/>
  <nvpair id="lab-attempts" name="stonith-max-attempts" value="100"/>
  <nvpair id="lab-recheck" name="cluster-recheck-interval" value="5s"/>"#;

/// Where the controller that runs a device dies, Pacemaker waits 1.2 times this time limit before it asks another.
const SHORT: &str = r#"<nvpair id="lab-timeout" name="stonith-timeout" value="8s"/>"#;

/// As docs/deploy/README.md has it. Pacemaker does not probe the alerter on compute hosts: where one dies during a
/// probe, Pacemaker takes the alerter for possibly running there, and leaves the host stopped until its next recheck.
const CONTROLLERS_ONLY: &str = r##"<rsc_location id="alerter-on-controllers" rsc="alerter" resource-discovery="exclusive">
  <rule id="alerter-on-controllers-rule" score="0">
    <expression id="alerter-on-controllers-kind" attribute="#kind" operation="eq" value="cluster"/>
  </rule>
</rsc_location>"##;

/// As a site would write it; without a recipient, so that the directory is the default one.
pub const ALERTS: &str = r#"<alerts><alert id="alert-mark" path="/usr/share/pacemaker/alerts/alert_mark">
  <select><select_fencing/><select_nodes/></select>
</alert></alerts>"#;

/// A `<fencing-topology>` with the same levels, first to last, for every target.
#[must_use]
pub fn topology(targets: &[String], levels: &[&str]) -> String {
    format!("<fencing-topology>{}</fencing-topology>", self::levels(targets, levels))
}

fn levels(targets: &[String], levels: &[&str]) -> String {
    let level = |target: &String, index: usize, devices: &str| {
        format!(
            r#"<fencing-level id="{target}-{index}" target="{target}" index="{index}" devices="{devices}"/>"#
        )
    };
    let numbered = || levels.iter().zip(1..);
    targets
        .iter()
        .flat_map(|target| numbered().map(move |(devices, index)| level(target, index, devices)))
        .collect()
}

/// A rack beside the lab's hosts: connections that nobody starts, each with a power device, and the hosts divided over so many mark
/// devices, if any. Its resources and its levels.
#[must_use]
pub fn rack(hosts: &[String], devices: usize) -> [String; 2] {
    let connection = |host: &String| {
        let server = attributes(host, &[("server", "10.77.0.253")]);
        let stopped = pairs("meta_attributes", &format!("{host}-meta"), &[("target-role", "Stopped")]);
        primitive(host, r#"class="ocf" provider="pacemaker" type="remote""#, &[&server, &stopped])
            + &power_device(&format!("power-{host}"), host)
    };
    let share = |index: usize| hosts.iter().skip(index).step_by(devices).cloned().collect::<Vec<_>>();
    let mark = |index: usize| mark_device(&format!("mark{index}"), &share(index).join(" "), false);
    let resources: String = hosts.iter().map(connection).chain((0..devices).map(mark)).collect();
    let level = |(index, host): (usize, &String)| {
        let mark = index.checked_rem(devices).map_or_else(String::new, |share| format!(",mark{share}"));
        levels(std::slice::from_ref(host), &[&format!("power-{host}{mark}")])
    };
    let levels: String = hosts.iter().enumerate().map(level).collect();
    [format!("<resources>{resources}</resources>"), format!("<fencing-topology>{levels}</fencing-topology>")]
}

fn remote(name: &str, address: &str) -> String {
    let settings = attributes(name, &[("server", address), ("reconnect_interval", "3s")]);
    let operations = operations(name, &[("monitor", "2s", "5s"), ("start", "0", "15s")]);
    primitive(name, r#"class="ocf" provider="pacemaker" type="remote""#, &[&settings, &operations])
}

/// Some servers need long until they are on.
fn power_device(id: &str, hosts: &str) -> String {
    let settings = attributes(id, &[("pcmk_host_list", hosts), ("pcmk_on_timeout", "40s")]);
    primitive(id, r#"class="stonith" type="fence_lab_power""#, &[&settings])
}

/// The documented 40 s are long for a test that kills the controller that runs the device; the agent wants 30.
fn mark_device(id: &str, hosts: &str, short: bool) -> String {
    let settings = [
        ("pcmk_host_list", hosts),
        ("pcmk_status_retries", "1"),
        ("pcmk_off_retries", "1"),
        ("pcmk_off_timeout", if short { "30s" } else { "40s" }),
    ];
    let operations = operations(id, &[("monitor", "60s", "20s")]);
    primitive(id, r#"class="stonith" type="fence_mark""#, &[&attributes(id, &settings), &operations])
}

fn alerter() -> String {
    let meta = [
        ("requires", "quorum"),
        ("resource-stickiness", "INFINITY"),
        ("migration-threshold", "3"),
        ("failure-timeout", "120s"),
    ];
    let meta = pairs("meta_attributes", "alerter-meta", &meta);
    let operations =
        operations("alerter", &[("start", "0", "60s"), ("stop", "0", "60s"), ("monitor", "2s", "20s")]);
    primitive(
        "alerter",
        r#"class="ocf" provider="openstack" type="nova-host-alerter""#,
        &[&meta, &operations],
    )
}

fn primitive(id: &str, agent: &str, parts: &[&str]) -> String {
    format!(r#"<primitive id="{id}" {agent}>{}</primitive>"#, parts.concat())
}

fn attributes(id: &str, settings: &[(&str, &str)]) -> String {
    pairs("instance_attributes", &format!("{id}-settings"), settings)
}

fn pairs(element: &str, id: &str, settings: &[(&str, &str)]) -> String {
    let pair =
        |(name, value): &(&str, &str)| format!(r#"<nvpair id="{id}-{name}" name="{name}" value="{value}"/>"#);
    format!(r#"<{element} id="{id}">{}</{element}>"#, settings.iter().map(pair).collect::<String>())
}

fn operations(id: &str, operations: &[(&str, &str, &str)]) -> String {
    let operation = |(name, interval, timeout): &(&str, &str, &str)| {
        format!(r#"<op id="{id}-{name}" name="{name}" interval="{interval}" timeout="{timeout}"/>"#)
    };
    format!("<operations>{}</operations>", operations.iter().map(operation).collect::<String>())
}

fn ban(resource: &str, node: &str) -> String {
    format!(r#"<rsc_location id="{resource}-not-{node}" rsc="{resource}" node="{node}" score="-INFINITY"/>"#)
}
