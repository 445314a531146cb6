//! The Pacemaker configuration that people are advised to use: loaded by the real tools, and run through Pacemaker's scheduler.

mod cluster;
mod situations;

use std::fs;

use tests::installed::{self, ALERT_AGENT};
use tests::trials::Group;

use cluster::{Cluster, Tool, expect_success};

const TOOLS: [&str; 5] = ["crm", "pcs", "crm_verify", "crm_simulate", "xmllint"];

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        crmsh_loads_the_example,
        pcs_loads_the_example,
        a_blank_for_a_comma_is_caught,
        a_ban_and_a_missing_alert_are_caught,
        the_alerter_stays_off_compute_hosts,
    ];
    let tests = tests.into_iter().chain(situations::tests()).collect();
    Group { cannot: installed::cannot(&TOOLS), tests }
}

/// `ctl1` has connected the compute host.
const CONNECTED: &str = r#"<status>
  <node_state id="1" uname="ctl1" in_ccm="true" crmd="online" join="member" expected="member"><lrm id="1"><lrm_resources>
    <lrm_resource id="compute1" class="ocf" provider="pacemaker" type="remote"><lrm_rsc_op id="compute1_last_0"
      operation_key="compute1_start_0" operation="start" call-id="10" rc-code="0" op-status="0" interval="0"
      transition-key="1:1:0:0" transition-magic="0:0;1:1:0:0"/></lrm_resource></lrm_resources></lrm></node_state>
  <node_state id="2" uname="ctl2" in_ccm="true" crmd="online" join="member" expected="member"/>
  <node_state id="compute1" uname="compute1" remote_node="true" in_ccm="true"/></status>"#;

/// Resource, parameter or meta attribute, value.
const SETTINGS: [(&str, &str, &str); 8] = [
    ("mark", "pcmk_host_list", "compute1"),
    ("mark", "pcmk_status_retries", "1"),
    ("mark", "pcmk_off_retries", "1"),
    ("mark", "pcmk_off_timeout", "40s"),
    ("alerter", "requires", "quorum"),
    ("alerter", "resource-stickiness", "INFINITY"),
    ("alerter", "migration-threshold", "3"),
    ("alerter", "failure-timeout", "120s"),
];

/// Where mark device or alerter may not run, but for the rule that keeps the alerter off compute hosts.
const BANS: &str = "string(count(//rsc_location[not(rule)]))";

impl Cluster {
    fn levels(&self) -> [String; 2] {
        ["1", "2"].map(|index| {
            self.at(&format!("string(//fencing-level[@target='compute1' and @index='{index}']/@devices)"))
        })
    }

    fn assert_as_designed(&self) {
        assert_eq!(self.deviations(), [""; 0]);
    }

    /// Where this configuration deviates from the design.
    fn deviations(&self) -> Vec<String> {
        let settings = SETTINGS.map(|(resource, name, wanted)| {
            (format!("{name} of {resource}"), self.setting(resource, name), wanted)
        });
        let concurrent = self.at("string(//crm_config//nvpair[@name='concurrent-fencing']/@value)");
        let [first, second] = self.levels();
        let others = [
            ("level 1".to_owned(), first, "power-compute1,mark"),
            ("level 2".to_owned(), second, "power-compute1"),
            ("concurrent-fencing".to_owned(), concurrent, "true"),
            ("alert_mark".to_owned(), self.at("string(//alert[@id='alert-mark']/@path)"), ALERT_AGENT),
            ("bans from controllers".to_owned(), self.at(BANS), "0"),
        ];
        let wrong = settings.into_iter().chain(others).filter(|(_, found, wanted)| found != wanted);
        wrong.map(|(what, found, wanted)| format!("{what} is {found:?}, not {wanted:?}")).collect()
    }

    fn setting(&self, resource: &str, name: &str) -> String {
        self.at(&format!("string(//primitive[@id='{resource}']//nvpair[@name='{name}']/@value)"))
    }

    /// Whether Pacemaker would run the alerter on the compute host, or probe it there, once that is connected.
    fn touches_compute1_for_the_alerter(&self) -> bool {
        let text = fs::read_to_string(self.cib()).unwrap();
        let (configuration, _) = text.split_once("<status").unwrap();
        fs::write(self.cib(), format!("{configuration}{CONNECTED}</cib>")).unwrap();
        let simulated = self.tool("crm_simulate").args(["-S", "-x"]).arg(self.cib()).output().unwrap();
        expect_success(&simulated);
        let plan = String::from_utf8(simulated.stdout).unwrap();
        assert!(plan.contains("RemoteOnline: [ compute1 ]"), "{plan}");
        plan.lines().any(|line| line.contains("alerter") && line.contains("on compute1"))
    }
}

/// S1-21: an example for crmsh, read by crmsh. S1-22, S1-24: power first, mark second, in one level. S1-48: it can be applied twice.
fn crmsh_loads_the_example() {
    let cluster = Cluster::base(Tool::Crmsh);
    cluster.assert_verified();
    cluster.assert_as_designed();
    assert_eq!(cluster.at("string(count(//alert/select/*))"), "2", "alerts about fencings and nodes alone");
    cluster.load(Tool::Crmsh, &Tool::Crmsh.base());
    cluster.assert_verified();
    cluster.assert_as_designed();
}

/// S1-21: an example for pcs, read by pcs. S1-22, S1-24: power first, mark second, in one level.
fn pcs_loads_the_example() {
    let cluster = Cluster::base(Tool::Pcs);
    cluster.assert_verified();
    cluster.assert_as_designed();
}

/// S1-24: the mistake that the tools invite, a blank where crmsh wants a comma, makes two levels and is seen.
fn a_blank_for_a_comma_is_caught() {
    let slip = Tool::Crmsh.base().replace("power-compute1,mark power-compute1", "power-compute1 mark");
    let cluster = Cluster::with(Tool::Crmsh, &slip);
    assert_eq!(cluster.levels(), ["power-compute1", "mark"]);
    assert_eq!(cluster.deviations().len(), 2, "{:?}", cluster.deviations());
}

/// S1-13: what would keep a mark on one controller, or its proof away from the others, is seen.
fn a_ban_and_a_missing_alert_are_caught() {
    let example = Tool::Crmsh.base();
    let slip: Vec<&str> = example.lines().filter(|line| !line.starts_with("alert ")).collect();
    let cluster = Cluster::with(Tool::Crmsh, &(slip.join("\n") + "\nlocation ban mark -inf: ctl2\n"));
    let found = cluster.deviations();
    assert!(
        found.len() == 2 && found[0].starts_with("alert_mark") && found[1].starts_with("bans"),
        "{found:?}"
    );
}

/// S1-20, S1-46: nothing of ours runs on a compute host, nor is it probed there.
fn the_alerter_stays_off_compute_hosts() {
    for tool in [Tool::Crmsh, Tool::Pcs] {
        let cluster = Cluster::base(tool);
        assert!(!cluster.touches_compute1_for_the_alerter());

        let careless: Vec<_> =
            tool.base().lines().filter(|line| !line.contains("#kind")).map(String::from).collect();
        let careless = Cluster::with(tool, &careless.join("\n"));
        assert!(careless.touches_compute1_for_the_alerter(), "the check must see a missing rule");
    }
}
