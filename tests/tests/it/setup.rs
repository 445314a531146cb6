//! `setup`, with the real tools on the configuration of a cluster in a file: from one that knows nothing of us, or all of it
//! wrong, to one that is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use pacemaker::xml::Element;
use serde_json::Value;
use setup::{Here, KINDS, Wanted};
use tempfile::TempDir;
use tests::installed::{self, Installed};
use tests::trials::Group;

const TOOLS: [&str; 5] = ["crm", "pcs", "crm_verify", "crm_simulate", "cibadmin"];

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        pcs_sets_up_a_bare_cluster,
        crmsh_sets_up_a_bare_cluster,
        eleven_hosts_get_two_mark_devices,
        levels_of_power_alone_get_the_mark,
        what_is_wrong_all_over_is_put_right,
        a_right_cluster_stays_as_it_is,
        every_misconfiguration_is_found,
        a_key_is_made_where_there_is_none,
        which_key_seals_is_said,
        every_finding_is_documented,
        the_book_shows_what_is_printed,
        beside_nova_evacuate_nothing_is_set_up,
        wrong_usage_is_refused,
        without_pacemaker_its_own_sentence_is_said_once,
        a_tool_that_refuses_says_why,
        settings_are_read_as_pacemaker_reads_them,
        fencing_that_is_off_is_only_said,
        what_is_not_proven_is_a_question,
        nothing_is_proven_while_pacemaker_does_nothing,
        every_command_of_the_page_leaves_the_fencing,
        no_generated_cluster_loses_anything,
        the_health_of_hosts_is_observed_first,
    ];
    Group { cannot: installed::cannot(&TOOLS), tests }
}

/// As the tools leave it; `EVIDENCE` stands for the directory of the site.
const RIGHT: &str = r##"<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0"
    have-quorum="1" dc-uuid="1"><configuration><crm_config><cluster_property_set id="cib-bootstrap-options">
    <nvpair id="p1" name="dc-version" value="2.1.5-a3f44794f94"/><nvpair id="p2" name="concurrent-fencing" value="true"/>
    <nvpair id="p3" name="stonith-enabled" value="true"/></cluster_property_set></crm_config>
  <nodes><node id="1" uname="ctl1"/><node id="2" uname="ctl2"/></nodes><resources>
    <primitive id="compute1" class="ocf" provider="pacemaker" type="remote"><instance_attributes id="c1">
      <nvpair id="c1a" name="server" value="192.0.2.1"/><nvpair id="c1b" name="reconnect_interval" value="60s"/></instance_attributes>
      <operations><op id="c1s" name="start" interval="0" timeout="60s"/><op id="c1m" name="monitor" interval="10s"/></operations></primitive>
    <primitive id="compute2" class="ocf" provider="pacemaker" type="remote"><instance_attributes id="c2">
      <nvpair id="c2b" name="reconnect_interval" value="60s"/></instance_attributes></primitive>
    <primitive id="power-ctl1" class="stonith" type="fence_ipmilan"><instance_attributes id="k1">
      <nvpair id="k1h" name="pcmk_host_list" value="ctl1"/></instance_attributes></primitive>
    <primitive id="power-compute1" class="stonith" type="fence_ipmilan"><instance_attributes id="w1">
      <nvpair id="w1h" name="pcmk_host_list" value="compute1"/></instance_attributes></primitive>
    <primitive id="power-compute2" class="stonith" type="fence_ipmilan"><instance_attributes id="w2">
      <nvpair id="w2h" name="pcmk_host_map" value="compute2:7"/></instance_attributes></primitive>
    <primitive id="mark" class="stonith" type="fence_mark"><instance_attributes id="m">
      <nvpair id="mh" name="pcmk_host_list" value="compute1 compute2"/><nvpair id="ms" name="pcmk_status_retries" value="1"/>
      <nvpair id="mr" name="pcmk_off_retries" value="1"/><nvpair id="mt" name="pcmk_off_timeout" value="40s"/>
      <nvpair id="ml" name="pcmk_action_limit" value="1"/></instance_attributes>
      <operations><op id="mm" name="monitor" interval="60s" timeout="40s"/></operations></primitive>
    <primitive id="alerter" class="ocf" provider="openstack" type="nova-host-alerter"><meta_attributes id="a">
      <nvpair id="ar" name="requires" value="quorum"/><nvpair id="as" name="resource-stickiness" value="INFINITY"/>
      <nvpair id="am" name="migration-threshold" value="3"/><nvpair id="af" name="failure-timeout" value="120s"/></meta_attributes>
      <operations><op id="ao" name="monitor" interval="10s" timeout="20s"/></operations></primitive></resources>
  <constraints><rsc_location id="l" rsc="alerter" resource-discovery="exclusive"><rule id="lr" score="0">
    <expression id="le" attribute="#kind" operation="eq" value="cluster"/></rule></rsc_location></constraints>
  <fencing-topology><fencing-level id="f1" target="compute1" index="1" devices="power-compute1,mark"/>
    <fencing-level id="f2" target="compute1" index="2" devices="power-compute1"/>
    <fencing-level id="f3" target="compute2" index="1" devices="power-compute2,mark"/>
    <fencing-level id="f4" target="compute2" index="2" devices="power-compute2"/></fencing-topology>
  <alerts><alert id="alert-mark" path="/usr/share/pacemaker/alerts/alert_mark"><select><select_fencing/></select>
    <recipient id="e" value="EVIDENCE"/></alert></alerts></configuration><status>
  <node_state id="1" uname="ctl1" in_ccm="true" crmd="online" join="member" expected="member"/>
  <node_state id="2" uname="ctl2" in_ccm="true" crmd="online" join="member" expected="member"/></status></cib>"##;

/// The register's, unless a test takes it away.
const KEY: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";

/// The parts of it that are ours.
const OURS: [(&str, &str); 5] = [
    (r#"    <primitive id="mark""#, "</primitive>"),
    (r#"    <primitive id="alerter""#, "</primitive>"),
    ("<rsc_location", "</rsc_location>"),
    ("<fencing-topology>", "</fencing-topology>"),
    ("<alerts>", "</alerts>"),
];

/// Everything of a text between two of its words, with these.
fn without(text: &str, from: &str, to: &str) -> String {
    let (before, rest) = text.split_once(from).unwrap();
    let (_, after) = rest.split_once(to).unwrap();
    format!("{before}{after}")
}

fn bare() -> String {
    let text = OURS.iter().fold(RIGHT.to_owned(), |text, (from, to)| without(&text, from, to));
    text.replace(r#"name="concurrent-fencing" value="true""#, r#"name="cluster-name" value="x""#)
}

/// The levels that a site has before it knows of us.
fn with_power_levels() -> String {
    let levels = r#"<fencing-topology><fencing-level id="f1" target="compute1" index="1" devices="power-compute1"/>
      <fencing-level id="f3" target="compute2" index="1" devices="power-compute2"/>
      <fencing-level id="f0" target-pattern="^ctl1$" index="1" devices="power-ctl1"/></fencing-topology></configuration>"#;
    bare().replace("</configuration>", levels)
}

/// A controller with a cluster's configuration in a file.
struct Site {
    installed: Installed,
    room: TempDir,
}

struct Answer {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }

    fn kinds(&self) -> Vec<String> {
        let found = self.json()["findings"].clone();
        found.as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
    }
}

impl Site {
    fn with(cib: &str) -> Self {
        let site = Self { installed: Installed::new().unwrap(), room: TempDir::new().unwrap() };
        site.installed.load_pcs().unwrap();
        fs::write(site.path("alerter.toml"), site.store()).unwrap();
        let mut install = Command::new("install");
        install.args(["-d", "-m", "700", "-o", "hacluster", "-g", "haclient"]).arg(site.evidence());
        expect_success(&install.output().unwrap());
        fs::write(site.key(), format!("{KEY}\n")).unwrap();
        fs::set_permissions(site.key(), Permissions::from_mode(0o600)).unwrap();
        site.set(cib);
        site
    }

    fn set(&self, cib: &str) {
        fs::write(self.cib(), cib.replace("EVIDENCE", &self.evidence().display().to_string())).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn store(&self) -> String {
        format!("[store]\npath = \"{}\"\n", self.path("marks.db").display())
    }

    fn cib(&self) -> PathBuf {
        self.path("cib.xml")
    }

    fn key(&self) -> PathBuf {
        self.path("register.key")
    }

    fn evidence(&self) -> PathBuf {
        self.path("evidence")
    }

    fn setup(&self, options: &[&str]) -> Answer {
        let mut command = self.installed.command("nova-host-alerter");
        command
            .arg("--config")
            .arg(self.path("alerter.toml"))
            .arg("setup")
            .args(options)
            .arg("--cib")
            .arg(self.cib());
        answer(&command.output().unwrap())
    }

    /// `setup --check`, once a shell has prepared what this controller has.
    fn check_behind(&self, prepare: &str) -> Answer {
        let mut shell = self.installed.command("sh");
        let around = format!(
            "{prepare}\nexec nova-host-alerter --config \"$CONFIG\" --json setup --check --cib \"$CIB\""
        );
        shell.args(["-ec", &around]).env("KEY", self.key()).env("CIB", self.cib());
        answer(&shell.env("CONFIG", self.path("alerter.toml")).output().unwrap())
    }

    /// Types what was printed into a shell, whose tools change the file.
    fn type_in(&self, script: &str) {
        // One shell's /run is no other's: the copies of pcs have their place there.
        let around = r#"mount -t tmpfs tmpfs /run
            pcs() { case "$1" in -f) command pcs "$@" ;; *) command pcs -f "$CIB_file" "$@" ;; esac; }
            . "$1""#;
        let input = self.path("script");
        fs::write(&input, script).unwrap();
        let mut shell = self.installed.command("sh");
        shell
            .args(["-ec", around, "sh"])
            .arg(input)
            .env("CIB_file", self.cib())
            .env("HOME", self.room.path());
        expect_success(&shell.output().unwrap());
    }

    /// What `setup` prints is typed; then nothing is wrong, and nothing is left to do.
    fn set_up(&self, tool: &str) {
        let printed = self.setup(&["--tool", tool]);
        assert_eq!(printed.code, Some(0), "{}\n{}", printed.out, printed.err);
        self.type_in(&printed.out);
        self.is_right(tool);
    }

    fn is_right(&self, tool: &str) {
        let checked = self.setup(&["--check"]);
        assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{tool}: {}", checked.out);
        let again = self.setup(&["--tool", tool]);
        assert_eq!((again.code, again.out.as_str()), (Some(0), "# Nothing to do.\n"));
        let verified =
            self.installed.command("crm_verify").arg("-VV").arg("-x").arg(self.cib()).output().unwrap();
        expect_success(&verified);
        assert_eq!(String::from_utf8_lossy(&verified.stderr), "", "crm_verify has something to say");
    }

    fn levels(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(self.cib()).unwrap();
        let root = Element::parse(&text).unwrap();
        let shown = |level: &Element| {
            let [target, pattern, index, devices] =
                ["target", "target-pattern", "index", "devices"].map(|name| level.get(name));
            format!("{target}{pattern} {index}: {devices}")
        };
        root.at(&["configuration", "fencing-topology", "fencing-level"]).into_iter().map(shown).collect()
    }

    /// What Pacemaker would do once the connection to `compute1` fails.
    fn plan_of_an_outage(&self) -> String {
        let text = fs::read_to_string(self.cib()).unwrap();
        let (configuration, _) = text.split_once("<status").unwrap();
        fs::write(self.path("failed.xml"), format!("{configuration}{CONNECTED}</cib>")).unwrap();
        let mut simulate = self.installed.command("crm_simulate");
        simulate
            .args(["-S", "--op-inject", "compute1_monitor_10000@ctl1=1", "-x"])
            .arg(self.path("failed.xml"));
        let simulated = simulate.output().unwrap();
        expect_success(&simulated);
        String::from_utf8(simulated.stdout).unwrap()
    }
}

/// `ctl1` has connected the compute host, and the alerter runs there.
const CONNECTED: &str = r#"<status>
  <node_state id="1" uname="ctl1" in_ccm="true" crmd="online" join="member" expected="member"><lrm id="1"><lrm_resources>
    <lrm_resource id="compute1" class="ocf" provider="pacemaker" type="remote"><lrm_rsc_op id="compute1_last_0"
      operation_key="compute1_start_0" operation="start" call-id="10" rc-code="0" op-status="0" interval="0"
      transition-key="1:1:0:0" transition-magic="0:0;1:1:0:0"/></lrm_resource>
    <lrm_resource id="alerter" class="ocf" provider="openstack" type="nova-host-alerter"><lrm_rsc_op id="alerter_last_0"
      operation_key="alerter_start_0" operation="start" call-id="11" rc-code="0" op-status="0" interval="0"
      transition-key="2:1:0:0" transition-magic="0:0;2:1:0:0"/></lrm_resource></lrm_resources></lrm></node_state>
  <node_state id="2" uname="ctl2" in_ccm="true" crmd="online" join="member" expected="member"/>
  <node_state id="compute1" uname="compute1" remote_node="true" in_ccm="true"/></status>"#;

fn answer(output: &Output) -> Answer {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8(bytes.clone()).unwrap());
    Answer { code: output.status.code(), out, err }
}

fn expect_success(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
}

fn lines(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|&line| line.to_owned()).collect()
}

const RECOMMENDED: [&str; 4] = [
    "compute1 1: power-compute1,mark",
    "compute1 2: power-compute1",
    "compute2 1: power-compute2,mark",
    "compute2 2: power-compute2",
];

fn sets_up_a_bare_cluster(tool: &str) {
    let site = Site::with(&bare());
    assert_eq!(site.setup(&["--check"]).code, Some(1));
    site.set_up(tool);
    assert_eq!(site.levels(), lines(&RECOMMENDED));
    let plan = site.plan_of_an_outage();
    assert!(plan.contains("Fencing compute1"), "{plan}");
    let moves = plan.lines().filter(|line| line.contains("alerter") && !line.contains("monitor"));
    assert!(!moves.clone().any(|line| line.contains("compute") || line.contains("Stop")), "{plan}");
}

/// S1-21, S1-24: the commands that are printed for pcs, typed.
fn pcs_sets_up_a_bare_cluster() {
    sets_up_a_bare_cluster("pcs");
}

/// S1-21, S1-24: the commands that are printed for crmsh, typed.
fn crmsh_sets_up_a_bare_cluster() {
    sets_up_a_bare_cluster("crmsh");
}

/// Ten hosts share a mark device at most, with either tool. The broken variant makes one device for all.
fn eleven_hosts_get_two_mark_devices() {
    let more: String = (3..=11)
        .map(|number| {
            format!(
                r#"<primitive id="compute{number}" class="ocf" provider="pacemaker" type="remote"><instance_attributes id="c{number}x">
      <nvpair id="c{number}r" name="reconnect_interval" value="60s"/></instance_attributes></primitive>
    <primitive id="power-compute{number}" class="stonith" type="fence_ipmilan"><instance_attributes id="w{number}x">
      <nvpair id="w{number}h" name="pcmk_host_list" value="compute{number}"/></instance_attributes></primitive>"#
            )
        })
        .collect();
    for tool in ["pcs", "crmsh"] {
        let site = Site::with(&bare().replace("</resources>", &format!("{more}</resources>")));
        site.set_up(tool);
        let levels = site.levels();
        let of = |device: &str| levels.iter().filter(|level| level.ends_with(device)).count();
        assert_eq!((of(",mark"), of(",mark-2"), levels.len()), (6, 5, 22), "{tool}: {levels:?}");
    }
}

/// S1-22, S1-24: the levels of the site get the mark behind their power devices; those of controllers stay as they are.
fn levels_of_power_alone_get_the_mark() {
    for tool in ["pcs", "crmsh"] {
        let site = Site::with(&with_power_levels());
        site.set_up(tool);
        let wanted = [&RECOMMENDED[..], &["^ctl1$ 1: power-ctl1"]].concat();
        assert_eq!(site.levels(), lines(&wanted), "{tool}");
    }
}

/// Everything that `setup` can put right, wrong at once.
fn what_is_wrong_all_over_is_put_right() {
    let wrong = [
        (r#"devices="power-compute1,mark""#, r#"devices="mark,power-compute1""#),
        (r#"index="2" devices="power-compute1""#, r#"index="3" devices="mark""#),
        (r#"devices="power-compute2,mark""#, r#"devices="power-compute2""#),
        (r#"value="compute1 compute2""#, r#"value="compute2""#),
        (r#"value="40s""#, r#"value="20s""#),
        (r#"name="pcmk_action_limit" value="1""#, r#"name="pcmk_action_limit" value="-1""#),
        (r#"<op id="mm" name="monitor" interval="60s" timeout="40s"/>"#, ""),
        (r#"<op id="ao" name="monitor" interval="10s" timeout="20s"/>"#, ""),
        (r#"value="quorum""#, r#"value="fencing""#),
        (r#"<nvpair id="as" name="resource-stickiness" value="INFINITY"/>"#, ""),
        (r#" resource-discovery="exclusive"><rule id="lr" score="0""#, r#"><rule id="lr" score="100""#),
        ("<select_fencing/>", "<select_nodes/>"),
        (r#"value="EVIDENCE""#, r#"value="/elsewhere""#),
        (r#"name="concurrent-fencing" value="true""#, r#"name="concurrent-fencing" value="false""#),
    ];
    let cib = wrong.iter().fold(RIGHT.to_owned(), |text, pair| broken(&text, &[*pair]));
    for tool in ["pcs", "crmsh"] {
        let site = Site::with(&cib);
        let found: BTreeSet<String> = site.setup(&["--check", "--json"]).kinds().into_iter().collect();
        assert!(found.len() >= 13, "{found:?}");
        site.set_up(tool);
        assert_eq!(site.levels(), lines(&RECOMMENDED), "{tool}");
    }
}

/// S1-48: nothing is printed for a cluster that is right, whichever tool made it.
fn a_right_cluster_stays_as_it_is() {
    let site = Site::with(RIGHT);
    let before = fs::read(site.cib()).unwrap();
    ["pcs", "crmsh"].into_iter().for_each(|tool| site.is_right(tool));
    assert_eq!(fs::read(site.cib()).unwrap(), before);
    let said = site.setup(&["--check", "--json"]).json();
    assert_eq!((said["right"].as_bool(), said["findings"].as_array().map(Vec::len)), (Some(true), Some(0)));
}

/// A stable word, and what must be exchanged in a right configuration, for what, so that it is found; `@` stands for what was there.
const BROKEN: [(&str, &str, &str); 50] = [
    ("no-compute-host", r#"type="remote""#, r#"type="Dummy""#),
    ("no-mark-device", r#"type="fence_mark""#, r#"type="fence_dummy""#),
    ("no-level", r#"devices="power-compute1,mark""#, r#"devices="power-compute1""#),
    ("mark-alone", r#"index="2" devices="power-compute1""#, r#"index="2" devices="mark""#),
    ("mark-alone", r#"value="compute1 compute2""#, r#"value="compute1 compute2 ctl2""#),
    ("mark-not-last", r#"devices="power-compute1,mark""#, r#"devices="mark,power-compute1""#),
    ("mark-without-power", POWER_OF_COMPUTE1, PING_FOR_COMPUTE1),
    ("level-without-power", POWER_OF_COMPUTE1, PING_FOR_COMPUTE1),
    (
        "other-recovery",
        ALERTER,
        r#"<primitive id="evac" class="ocf" provider="openstack" type="NovaEvacuate"/>@"#,
    ),
    ("level-without-mark", r#"index="2" devices="power-compute1""#, r#"index="2" devices="power-ctl1""#),
    ("no-fallback", r#"<fencing-level id="f2" target="compute1" index="2" devices="power-compute1"/>"#, ""),
    ("unknown-device", r#"index="2" devices="power-compute1""#, r#"index="2" devices="ghost""#),
    ("no-host-list", r#"<nvpair id="mh" name="pcmk_host_list" value="compute1 compute2"/>"#, ""),
    ("no-host-list", r#"<nvpair id="w1h" name="pcmk_host_list" value="compute1"/>"#, ""),
    ("host-not-listed", r#"value="compute1 compute2""#, r#"value="compute1""#),
    ("host-not-listed", "compute2:7", "compute20:7"),
    ("off-timeout", r#"<nvpair id="mt" name="pcmk_off_timeout" value="40s"/>"#, ""),
    ("off-timeout", r#"value="40s""#, r#"value="39s""#),
    ("off-retries", r#"<nvpair id="mr" name="pcmk_off_retries" value="1"/>"#, ""),
    ("action-limit", r#"name="pcmk_action_limit" value="1""#, r#"name="pcmk_action_limit" value="-1""#),
    ("action-limit", r#"<nvpair id="w1h""#, r#"<nvpair id="w1l" name="pcmk_action_limit" value="2"/>@"#),
    ("no-monitor", r#"<op id="mm" name="monitor" interval="60s" timeout="40s"/>"#, ""),
    ("stopped", r#"<nvpair id="ar""#, r#"<nvpair id="at" name="target-role" value="Stopped"/>@"#),
    ("banned", "<constraints>", r#"@<rsc_location id="b" rsc="mark" node="ctl2" score="-INFINITY"/>"#),
    ("fails-on", "<status>", FAILED_MARK),
    ("not-installed", "<status>", NOT_INSTALLED),
    ("no-alerter", r#"type="nova-host-alerter""#, r#"type="other""#),
    ("requires", r#"value="quorum""#, r#"value="fencing""#),
    ("stickiness", r#"value="INFINITY""#, r#"value="100""#),
    ("migration-threshold", r#"<nvpair id="am" name="migration-threshold" value="3"/>"#, ""),
    ("failure-timeout", r#"<nvpair id="af" name="failure-timeout" value="120s"/>"#, ""),
    ("alerter-on-computes", r#" resource-discovery="exclusive""#, ""),
    ("no-alert", r#"path="/usr/share/pacemaker/alerts/alert_mark""#, r#"path="/usr/sbin/other""#),
    ("alert-path", r#"path="/usr/share/pacemaker/alerts/alert_mark""#, r#"path="/gone/alert_mark""#),
    ("alert-select", "<select_fencing/>", "<select_nodes/>"),
    (
        "alert-off",
        "<select>",
        r#"<meta_attributes id="am"><nvpair id="ame" name="enabled" value="false"/></meta_attributes><select>"#,
    ),
    ("alert-recipient", r#"<recipient id="e" value="EVIDENCE"/>"#, ""),
    ("concurrent-fencing", r#"name="concurrent-fencing" value="true""#, r#"name="x" value="true""#),
    ("stonith-enabled", r#"name="stonith-enabled" value="true""#, r#"name="stonith-enabled" value="no""#),
    ("maintenance", r#"name="stonith-enabled""#, r#"name="maintenance-mode""#),
    ("stop-all-resources", r#"name="stonith-enabled""#, r#"name="stop-all-resources""#),
    ("unmanaged", r#"<nvpair id="ar""#, r#"<nvpair id="au" name="is-managed" value="false"/>@"#),
    (
        "unmanaged",
        "<nodes>",
        r#"<rsc_defaults><meta_attributes id="d"><nvpair id="d1" name="is-managed" value="false"/></meta_attributes></rsc_defaults><nodes>"#,
    ),
    (
        "several-alerters",
        ALERTER,
        r#"<primitive id="other" class="ocf" provider="openstack" type="nova-host-alerter"/>@"#,
    ),
    ("stopped", POWER_OF_COMPUTE1, STOPPED_POWER),
    (
        "banned",
        "<constraints>",
        r##"<constraints><rsc_location id="b" rsc-pattern="^al\w+$" score="-INFINITY"><rule id="br" score="-INFINITY"><expression id="be" attribute="#kind" operation="eq" value="cluster"/></rule></rsc_location>"##,
    ),
    ("unknown-device", r#"index="2" devices="power-compute1""#, r#"index="2" devices="watchdog""#),
    ("reconnect-interval", r#"<nvpair id="c1b" name="reconnect_interval" value="60s"/>"#, ""),
    ("start-on-fail", r#"name="start" interval="0""#, r#"name="start" interval="0" on-fail="fence""#),
    (
        "not-judged",
        r#"<nvpair id="ar" name="requires""#,
        r#"<rule id="ru"><date_expression id="rd" operation="gt" start="2020-01-01"/></rule><nvpair id="ar" name="requires""#,
    ),
];

/// The same where more than one place must be exchanged.
fn broken_together() -> [(&'static str, String); 4] {
    let no_levels = without(RIGHT, "<fencing-topology>", "</fencing-topology>");
    let without_power = broken(
        &no_levels,
        &[(r#"name="pcmk_host_list" value="compute1""#, r#"name="pcmk_host_list" value="ctl2""#)],
    );
    let unlisted = broken(&no_levels, &[(r#"value="compute1 compute2""#, r#"value="none""#)]);
    let end = ("</primitive></resources>", "</primitive></clone></resources>");
    let cloned = broken(RIGHT, &[(ALERTER, r#"<clone id="all">@"#), end]);
    [
        ("no-power-device", without_power),
        ("no-level", unlisted),
        ("mark-alone", no_levels),
        ("several-alerters", cloned),
    ]
}

const ALERTER: &str = r#"<primitive id="alerter" class"#;
/// A virtual machine of the cluster itself.
const GUEST: (&str, &str) = (
    ALERTER,
    r#"<primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain"><meta_attributes id="v"><nvpair id="v1" name="remote-node" value="guest1"/></meta_attributes></primitive>@"#,
);
const POWER_OF_COMPUTE1: &str = r#"<primitive id="power-compute1" class="stonith" type="fence_ipmilan">"#;
const STOPPED_POWER: &str = r#"<primitive id="power-compute1" class="stonith" type="fence_ipmilan"><meta_attributes id="ws"><nvpair id="wst" name="target-role" value="Stopped"/></meta_attributes>"#;
const PING_FOR_COMPUTE1: &str =
    r#"<primitive id="power-compute1" class="stonith" type="fence_heuristics_ping">"#;

/// It did not start on the other controller, and was stopped there.
const FAILED_MARK: &str = r#"<status><node_state id="2" uname="ctl2"><lrm id="2"><lrm_resources><lrm_resource id="mark" class="stonith" type="fence_mark">
  <lrm_rsc_op id="mark_last_failure_0" operation="start" call-id="8" rc-code="1" op-status="4" last-rc-change="1795190000" exit-reason="no journal"/>
  <lrm_rsc_op id="mark_last_0" operation="stop" call-id="9" rc-code="0" op-status="0" last-rc-change="1795190001"/></lrm_resource></lrm_resources></lrm></node_state>"#;

/// What Pacemaker finds where the package is missing.
const NOT_INSTALLED: &str = r#"<status><node_state id="2" uname="ctl2"><lrm id="2"><lrm_resources><lrm_resource id="alerter" class="ocf" provider="openstack" type="nova-host-alerter">
  <lrm_rsc_op id="alerter_last_failure_0" operation="monitor" call-id="5" rc-code="5" op-status="0" last-rc-change="1795190000"/></lrm_resource></lrm_resources></lrm></node_state>"#;

fn broken(text: &str, pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        let count = if *from == r#"type="remote""# { 9 } else { 1 };
        text.replacen(from, &to.replace('@', from), count)
    })
}

/// S1-49: each known misconfiguration is found in a configuration that is right but for it, with what to type.
fn every_misconfiguration_is_found() {
    let site = Site::with(RIGHT);
    // `scale.rs` has a CIB that is too large.
    let mut seen = BTreeSet::from(["evidence-directory", "cib-too-large"]);
    // `the_health_of_hosts_is_observed_first` has these.
    seen.extend(["no-health", "health-observes"]);
    let alone = BROKEN.map(|(word, from, to)| (word, broken(RIGHT, &[(from, to)])));
    for (word, cib) in alone.into_iter().chain(broken_together()) {
        site.set(&cib);
        let said = site.setup(&["--check", "--json"]);
        assert!(said.code == Some(1) && said.kinds().contains(&word.to_owned()), "{word}: {}", said.out);
        let advises = |one: &Value| one["then"].as_str().is_some_and(|then| then.len() > 10);
        assert!(said.json()["findings"].as_array().unwrap().iter().all(advises), "{}", said.out);
        let text = site.setup(&["--check"]).out;
        assert!(text.contains(&format!("{word}: ")) && text.contains("\n  -> "), "{text}");
        seen.insert(word);
    }
    site.set(&broken(RIGHT, &[GUEST]));
    let guests = |hosts: &str| {
        let kinds = site.setup(&["--check", "--json", "--hosts", hosts]).kinds();
        kinds.contains(&"guest-node".to_owned())
    };
    assert!(guests("compute*,guest1") && !guests("compute*,guest*"), "a pattern means the others");
    seen.insert("guest-node");
    site.set(RIGHT);
    fs::remove_dir(site.evidence()).unwrap();
    assert_eq!(site.setup(&["--check", "--json"]).kinds(), ["evidence-directory"]);
    seen.extend(without_a_key_or_a_tool());
    seen.insert(what_nobody_says_of_the_storage());
    let all: BTreeSet<&str> = KINDS.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(seen, all, "a kind that no configuration here shows");
}

/// S1-38: of a cluster that is right. A host that only the agent's option speaks for is no finding.
fn what_nobody_says_of_the_storage() -> &'static str {
    let site = Site::with(RIGHT);
    let route = "[http.recovery]\nurl = \"https://recovery.my.cloud.com/\"\n";
    let checked = |hosts: &str| {
        fs::write(site.path("alerter.toml"), format!("{}{hosts}{route}", site.store())).unwrap();
        let said = site.setup(&["--check", "--json"]);
        (said.code, said.kinds())
    };
    assert_eq!(checked(""), (Some(1), vec!["no-storage".to_owned()]));
    assert_eq!(checked("[hosts]\non-shared-storage = false\n"), (Some(0), vec![]));
    let option = r#"name="no_shared_storage" value="1"/><nvpair id="option" name="pcmk_off_retries""#;
    site.set(&broken(RIGHT, &[(r#"name="pcmk_off_retries""#, option)]));
    assert_eq!(checked(""), (Some(0), vec![]));
    "no-storage"
}

/// What no configuration of a cluster shows: files of this controller.
fn without_a_key_or_a_tool() -> [&'static str; 3] {
    let site = Site::with(RIGHT);
    let found = |prepare: &str| site.check_behind(prepare).kinds();
    assert_eq!(found("rm -f \"$KEY\""), ["no-register-key"]);
    assert_eq!(found("echo short >\"$KEY\""), ["bad-register-key", "no-register-key"]);
    let etcd = "printf 'register = \"etcd\"\\n' >>\"$CONFIG\"; mount -t tmpfs tmpfs /usr/bin";
    assert_eq!(found(etcd), ["no-etcdctl", "bad-register-key", "no-register-key"]);
    ["no-register-key", "bad-register-key", "no-etcdctl"]
}

/// Whatever the cluster is like; what is printed is typed, and makes a file that root alone can read. A second controller is shown
/// to copy it, and a file that is there stays as it is.
fn a_key_is_made_where_there_is_none() {
    let site = Site::with(RIGHT);
    fs::remove_file(site.key()).unwrap();
    let said = site.setup(&["--check"]);
    let advice = format!("scp -p CONTROLLER:{0} {0}", site.key().display());
    assert!(said.code == Some(1) && said.out.contains(&advice), "{}", said.out);
    let printed = site.setup(&["--tool", "pcs"]);
    assert!(printed.code == Some(0) && !printed.out.contains("pcs cluster"), "{}", printed.out);
    let mut shell = Command::new("sh");
    let typed = |shell: &mut Command| shell.arg("-ec").arg(&printed.out).output().unwrap();
    expect_success(&typed(&mut shell));
    assert_eq!(fs::metadata(site.key()).unwrap().permissions().mode() & 0o777, 0o600);
    site.is_right("pcs");
    let made = fs::read(site.key()).unwrap();
    assert!(!typed(&mut Command::new("sh")).status.success());
    assert_eq!(fs::read(site.key()).unwrap(), made);
    fs::write(site.key(), "short\n").unwrap();
    let refused = site.setup(&["--tool", "pcs"]);
    assert!(refused.code == Some(1) && refused.err.contains("no-register-key: "), "{}", refused.err);
    assert_eq!(refused.out, "# Nothing was changed: no command of setup corrects these findings.\n");
}

/// By its digest, and to root alone; the key itself is nowhere.
fn which_key_seals_is_said() {
    let site = Site::with(RIGHT);
    let answer = site.setup(&["--check", "--json"]).json();
    let digest = answer["key"]["digest"].as_str().unwrap();
    assert_eq!((digest.len(), answer["key"]["file"].as_str()), (12, site.key().to_str()));
    let text = site.setup(&["--check"]).out;
    assert!(text.contains(&format!("digest {digest}: it must be the same on every controller")), "{text}");
    assert!(!text.contains(KEY) && !answer.to_string().contains(KEY));
    let by_corosync = site.check_behind(&format!("rm \"$KEY\"\n{COROSYNC_KEY}"));
    assert_eq!(by_corosync.json()["key"]["file"], "/etc/corosync/authkey");
    assert_eq!(by_corosync.code, Some(0), "{}", by_corosync.out);
    let alone = site.check_behind("printf 'register = \"none\"\\n' >>\"$CONFIG\"; rm -f \"$KEY\"");
    assert!(alone.code == Some(0) && alone.json().get("key").is_none(), "{}", alone.out);
}

/// As pcs makes it, in a place of its own.
const COROSYNC_KEY: &str = "mount -t tmpfs tmpfs /etc/corosync
    (umask 277; head -c 256 /dev/urandom >/etc/corosync/authkey)";

/// S1-49: what an operator may be shown stands in the manual, by its word.
fn every_finding_is_documented() {
    let manual = fs::read_to_string(installed::source("docs/setup.md")).unwrap();
    let missing: Vec<&str> = KINDS
        .iter()
        .map(|kind| kind.as_str())
        .filter(|word| !manual.contains(&format!("\n| `{word}` |")))
        .collect();
    assert_eq!(missing, [""; 0]);
}

/// S1-21: the commands in the book are those that are printed for the cluster that it speaks of.
fn the_book_shows_what_is_printed() {
    let compute2 = without(&bare(), r#"    <primitive id="compute2""#, "</primitive>");
    let site = Site::with(&without(&compute2, r#"    <primitive id="power-compute2""#, "</primitive>"));
    for tool in ["crmsh", "pcs"] {
        let mut command = site.installed.command("sh");
        let around = format!("{COROSYNC_KEY}\nexec nova-host-alerter setup --tool {tool} --cib \"$CIB\"");
        command.args(["-ec", &around]).env("CIB", site.cib());
        let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let page = fs::read_to_string(installed::source(&format!("docs/deploy/{tool}.md"))).unwrap();
        let (_, shown) = page.split_once(&format!("<!-- test: setup {tool} -->\n```\n")).unwrap();
        let commands: Vec<&str> =
            printed.lines().filter(|line| !line.starts_with("# ") && !line.starts_with("#  ")).collect();
        assert_eq!(shown.split_once("```").unwrap().0.lines().collect::<Vec<_>>(), commands, "{tool}");
    }
}

/// A cluster that recovers hosts by itself: `setup` gives no command, changes nothing, and names the way.
fn beside_nova_evacuate_nothing_is_set_up() {
    let cib = fs::read_to_string(installed::source("tests/data/fence-compute.xml")).unwrap();
    let site = Site::with(&cib);
    let before = fs::read(site.cib()).unwrap();
    for tool in ["pcs", "crmsh"] {
        let printed = site.setup(&["--tool", tool]);
        assert!(printed.code == Some(1) && printed.err.contains("docs/migrate.md"), "{}", printed.err);
        assert!(["nova-evacuate", "fence-nova"].iter().all(|id| printed.err.contains(id)), "{}", printed.err);
        let commands = printed.out.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(commands.collect::<Vec<_>>(), [""; 0]);
    }
    assert_eq!(fs::read(site.cib()).unwrap(), before);
}

fn wrong_usage_is_refused() {
    let site = Site::with(RIGHT);
    for options in
        [&["--apply"][..], &["--check", "--apply"], &["--tool", "vi"], &["--hosts", "a b"], &["--hosts", ""]]
    {
        assert_eq!(site.setup(options).code, Some(2), "{options:?}");
    }
    fs::write(site.cib(), "<cib>").unwrap();
    let said = site.setup(&["--check"]);
    assert!(said.code == Some(1) && said.err.contains("cannot be read"), "{}", said.err);
}

/// The broken variant says "it failed (exit status: 102)", and that twice. In a network of its own no Pacemaker is reached.
fn without_pacemaker_its_own_sentence_is_said_once() {
    let site = Site::with(RIGHT);
    for options in [&["--check"][..], &[]] {
        let mut command = site.installed.command("unshare");
        command
            .args(["--net", "nova-host-alerter", "--config"])
            .arg(site.path("alerter.toml"))
            .arg("setup")
            .args(options);
        let said = answer(&command.output().unwrap());
        let once = ["Pacemaker does not run here", "Could not connect to the CIB", "exit status: 102"];
        assert!(once.iter().all(|words| said.err.matches(words).count() == 1), "{}", said.err);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{}", said.err);
    }
}

/// The broken variants show pcs's last line, which is always the same, or the colours of crmsh.
fn a_tool_that_refuses_says_why() {
    let site = Site::with(&bare());
    site.installed.replace_ocf_agent("#!/bin/sh\nexit 1\n").unwrap();
    for (tool, reason) in
        [("pcs", "copy: Error: Agent 'ocf:openstack:nova-host-alerter'"), ("crmsh", "copy: ERROR: ")]
    {
        let said = site.setup(&["--tool", tool]);
        assert!(said.err.contains(reason), "{}", said.err);
        let json = site.setup(&["--tool", tool, "--json"]).out;
        for text in [said.err, said.out, json] {
            assert!(!text.contains("Errors have occurred"), "{text}");
            assert!(!["\u{1b}", "\\u001b", "[31m"].iter().any(|escape| text.contains(escape)), "{text}");
        }
    }
}

/// Sets of one kind with scores, references and pairs, by which some refer to others of the same document.
struct Sets {
    numbers: Numbers,
    made: u32,
    /// The ids so far, of sets of both kinds and of pairs.
    ids: [Vec<String>; 3],
}

impl Sets {
    fn known(&mut self, kind: usize) -> Option<String> {
        let at = self.numbers.below(2 * self.ids[kind].len() as u64 + 1);
        self.ids[kind].get(usize::try_from(at).unwrap()).cloned()
    }

    fn id(&mut self) -> String {
        self.made += 1;
        format!("i{}", self.made)
    }

    fn pair(&mut self) -> String {
        let (id, name) = (self.id(), self.numbers.of(&["a", "b", "c"]).to_owned());
        match (self.known(2), self.numbers.below(3)) {
            (Some(known), 0) => format!(r#"<nvpair id-ref="{known}"/>"#),
            (Some(known), 1) => format!(r#"<nvpair id-ref="{known}" name="{name}"/>"#),
            _ => {
                self.ids[2].push(id.clone());
                format!(r#"<nvpair id="{id}" name="{name}" value="{id}"/>"#)
            }
        }
    }

    fn set(&mut self, kind: usize) -> String {
        let name = ["meta_attributes", "instance_attributes"][kind];
        if let (Some(known), 0) = (self.known(kind), self.numbers.below(3)) {
            return format!(r#"<{name} id-ref="{known}"/>"#);
        }
        let (id, score) =
            (self.id(), self.numbers.of(&["", "0", "-5", "5", "40", "INFINITY", "-INFINITY"]).to_owned());
        let score = if score.is_empty() { score } else { format!(r#" score="{score}""#) };
        let pairs: String = (0..self.numbers.below(4)).map(|_| self.pair()).collect();
        self.ids[kind].push(id.clone());
        format!(r#"<{name} id="{id}"{score}>{pairs}</{name}>"#)
    }

    /// Up to three of each kind.
    fn of(&mut self, kinds: &[usize]) -> String {
        let kinds = kinds.iter().flat_map(|kind| [*kind; 3]);
        kinds
            .filter(|_| self.numbers.below(3) > 0)
            .collect::<Vec<_>>()
            .into_iter()
            .map(|kind| self.set(kind))
            .collect()
    }
}

/// A resource with a template in a group in a clone, one by itself, and defaults.
fn layered(seed: u64) -> String {
    let mut sets = Sets { numbers: Numbers(seed), made: 0, ids: Default::default() };
    let [q, template, clone, group, p] = [[0, 1]; 5].map(|kinds| sets.of(&kinds));
    let defaults = sets.of(&[0]);
    let dummy = r#"class="ocf" provider="pacemaker" type="Dummy""#;
    format!(
        r#"<cib validate-with="pacemaker-3.9" crm_feature_set="3.16.1" epoch="1" num_updates="0" admin_epoch="0"><configuration>
        <crm_config/><nodes/><resources><primitive id="q" {dummy}>{q}</primitive><template id="t" {dummy}>{template}</template>
        <clone id="c">{clone}<group id="g">{group}<primitive id="p" template="t">{p}</primitive></group></clone></resources>
        <constraints/><rsc_defaults>{defaults}</rsc_defaults></configuration><status/></cib>"#
    )
}

/// Ours, and those of `crm_resource`. Broken variants take the first set of the document, leave out templates or parents, or
/// follow no reference.
fn settings_are_read_as_pacemaker_reads_them() {
    let site = Site::with(RIGHT);
    let ask = r#"for r in p q; do for n in a b c; do
        echo "$r $n $(crm_resource -r $r -g $n 2>/dev/null)"; echo "$r meta $n $(crm_resource -r $r --meta -g $n 2>/dev/null)"; done; done"#;
    for seed in 0..12 {
        let cib = layered(seed);
        site.set(&cib);
        let verified = site.installed.command("crm_verify").arg("-x").arg(site.cib()).output().unwrap();
        let verified = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(!verified.contains("schema"), "{verified}\n{cib}");
        let theirs = answer(
            &site.installed.command("sh").args(["-c", ask]).env("CIB_file", site.cib()).output().unwrap(),
        );
        let cluster = setup::read(&cib, Here::default(), Wanted::default()).unwrap();
        let mut ours = String::new();
        for resource in
            ["p", "q"].map(|id| cluster.resources.iter().find(|resource| resource.id == id).unwrap())
        {
            for name in ["a", "b", "c"] {
                let [own, meta] = [&resource.parameters, &resource.meta]
                    .map(|all| all.get(name).map_or("", String::as_str));
                writeln!(ours, "{0} {name} {own}\n{0} meta {name} {meta}", resource.id).unwrap();
            }
        }
        assert_eq!(ours, theirs.out, "{cib}");
    }
}

/// The hosts of the right configuration, called after their racks.
fn in_racks(cib: &str) -> String {
    cib.replace("compute1", "r1-c1").replace("compute2", "r2-c1")
}

/// It would fence the controller that was lost meanwhile: the operator is shown whom, and no command says it.
fn fencing_that_is_off_is_only_said() {
    let lost = (
        r#"<node_state id="2" uname="ctl2" in_ccm="true" crmd="online" join="member""#,
        r#"<node_state id="2" uname="ctl2" in_ccm="false" crmd="offline" join="down""#,
    );
    let off = (r#"name="stonith-enabled" value="true""#, r#"name="stonith-enabled" value="false""#);
    let site = Site::with(&broken(RIGHT, &[lost, off]));
    for tool in ["pcs", "crmsh"] {
        let printed = site.setup(&["--tool", tool]);
        assert_eq!(printed.code, Some(1), "{}", printed.out);
        assert!(!printed.out.contains("stonith-enabled"), "{}", printed.out);
        assert!(printed.err.contains("takes for lost: now ctl2"), "{}", printed.err);
    }
}

/// What the tools refuse on a copy, or what moves a resource of others, is asked; the rest is done.
fn what_is_not_proven_is_a_question() {
    let site = Site::with(&bare());
    site.installed.replace_ocf_agent("#!/bin/sh\nexit 1\n").unwrap();
    let printed = site.setup(&["--tool", "pcs"]);
    assert_eq!(printed.code, Some(1), "{}", printed.err);
    assert!(printed.err.contains("should this be done: create the alerter alerter"), "{}", printed.err);
    assert!(printed.err.contains("not proven harmless: `pcs -f"), "{}", printed.err);
    assert!(printed.out.contains("stonith level add 1 compute1 power-compute1 mark"), "{}", printed.out);
    assert!(!printed.out.contains("ocf:openstack:nova-host-alerter"), "{}", printed.out);
}

/// Under maintenance-mode and its like the scheduler moves nothing, whatever a change does when that ends: all of it is asked.
fn nothing_is_proven_while_pacemaker_does_nothing() {
    let property = |name: &str| {
        format!(r#"name="cluster-name" value="x"/><nvpair id="inert" name="{name}" value="true""#)
    };
    let of = |name: &str| broken(&bare(), &[(r#"name="cluster-name" value="x""#, property(name).as_str())]);
    let without_quorum = broken(&bare(), &[(r#"have-quorum="1""#, r#"have-quorum="0""#)]);
    for cib in [of("maintenance-mode"), of("stop-all-resources"), without_quorum] {
        let printed = Site::with(&cib).setup(&["--tool", "pcs"]);
        assert!(!printed.out.contains("pcs -f"), "{}", printed.out);
        assert!(printed.err.contains("cannot be tried now"), "{}", printed.err);
    }
}

/// The commands of `docs/writes.md` that change a cluster, typed for the site `RIGHT`.
const TYPED: [(&str, &str); 15] = [
    (
        "pcs resource update",
        "pcs resource create health ocf:openstack:compute-health clone --force; pcs resource update health reaction=observe --force",
    ),
    ("crm_attribute --type", "crm_attribute --type crm_config --name cluster-recheck-interval --update 7min"),
    (
        "crm_resource --resource",
        "crm_resource --resource mark --meta --set-parameter target-role --parameter-value Started",
    ),
    ("cibadmin --delete --xml-text", "cibadmin --delete --xml-text '<rsc_location id=\"l\"/>'"),
    ("pcs resource disable", "pcs resource disable alerter"),
    ("pcs constraint location", "pcs constraint location mark avoids ctl1"),
    ("pcs stonith delete", "pcs stonith delete mark"),
    ("pcs stonith update", "pcs stonith update mark pcmk_off_timeout=20s"),
    ("pcs resource delete", "pcs resource delete alerter"),
    ("pcs resource meta", "pcs resource meta alerter migration-threshold=5"),
    ("pcs resource op remove", "pcs resource op remove alerter monitor"),
    ("pcs constraint delete", "pcs constraint delete l"),
    ("pcs alert remove", "pcs alert remove alert-mark"),
    ("pcs property set", "pcs property set concurrent-fencing="),
    (
        "cibadmin --replace --scope fencing-topology --xml-file",
        "cibadmin --query --scope fencing-topology > $HOME/t; cibadmin --replace --scope fencing-topology --xml-file $HOME/t",
    ),
];
/// What a configuration in a file cannot show, with the reason.
const NOT_TYPED: [(&str, &str); 12] = [
    ("crm_resource --cleanup --resource", "it asks the running controller, and forgets failures alone"),
    ("crm_resource --restart --resource", "it waits for Pacemaker; it stops and starts the alerter alone"),
    ("stonith_admin --reboot", "it cuts a host by its nature; the page says when it may be typed"),
    ("systemctl start nova-host-alerter", "systemd's: it changes no configuration of the cluster"),
    ("systemctl stop nova-host-alerter", "systemd's: it changes no configuration of the cluster"),
    ("openstack server evacuate", "the cloud's; the page says when it may be typed"),
    ("openstack segment host update", "the cloud's: no host's fencing is there"),
    ("openstack compute service set --enable", "the cloud's"),
    ("openstack workflow execution update --state", "the cloud's"),
    ("openstack --os-compute-api-version compute service set --up", "the cloud's"),
    ("openstack --os-compute-api-version compute service set --down", "the cloud's"),
    ("openstack stack resource mark unhealthy", "the cloud's, with `--reset` and without"),
];

/// Each command of the cluster that the page advises is typed here, or it is said why not.
fn every_command_of_the_page_leaves_the_fencing() {
    let page = fs::read_to_string(installed::source("docs/writes.md")).unwrap();
    let is_ours = |stem: &String| {
        ["nova-host-alerter ", "chmod", "chown", "install", "kill "].iter().any(|own| stem.starts_with(own))
    };
    let known = |stem: &String| {
        TYPED.iter().any(|(own, _)| own == stem)
            || NOT_TYPED.iter().any(|(own, _)| stem.trim_end_matches(" --reset") == *own)
    };
    let unknown: Vec<String> =
        super::papers::changers(&page).into_iter().filter(|stem| !is_ours(stem) && !known(stem)).collect();
    assert!(unknown.is_empty(), "neither typed nor said why not: {unknown:?}");
    let site = Site::with(RIGHT);
    let before = fs::read_to_string(site.cib()).unwrap();
    for (_, command) in TYPED {
        site.set(RIGHT);
        site.type_in(command);
        let after = fs::read_to_string(site.cib()).unwrap();
        assert_eq!(power_of(&before), power_of(&after), "{command}");
        site.disturbs_nothing(&before, command);
    }
    site.set(RIGHT);
    site.type_in("pcs stonith level clear target compute1");
    let after = fs::read_to_string(site.cib()).unwrap();
    assert_ne!(power_of(&before), power_of(&after), "the broken variant is seen");
}

/// For each target of the topology the devices that fence it, level by level, marks left out; and whom each device lists. Read
/// from the document alone, with nothing of `setup`.
fn power_of(cib: &str) -> BTreeMap<String, Vec<String>> {
    let root = Element::parse(cib).unwrap();
    let mut levels = root.at(&["configuration", "fencing-topology", "fencing-level"]);
    levels.sort_by_key(|level| level.get("index").parse::<u32>().unwrap());
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for level in levels {
        let target = ["target", "target-pattern", "target-attribute", "target-value"]
            .map(|name| level.get(name))
            .concat();
        let own = level.get("devices").split(',').filter(|id| *id != "mark").collect::<Vec<_>>().join(",");
        let lists = all.entry(target).or_default();
        if !own.is_empty() && !lists.contains(&own) {
            lists.push(own);
        }
    }
    let devices = root.at(&["configuration", "resources", "primitive"]);
    for device in
        devices.into_iter().filter(|own| own.get("class") == "stonith" && own.get("type") != "fence_mark")
    {
        let pairs = device.walk().into_iter().filter(|pair| pair.name == "nvpair");
        let pairs = pairs.map(|pair| format!("{}={}", pair.get("name"), pair.get("value")));
        all.insert(format!("device {}", device.get("id")), pairs.collect());
    }
    all
}

/// A host that fails its check, in an observed cluster.
const UNHEALTHY: &str = r#"in_ccm="true"><lrm id="compute1"><lrm_resources><lrm_resource id="health" class="ocf" provider="openstack"
    type="compute-health"><lrm_rsc_op id="health_last_failure_0" operation_key="health_monitor_10000" operation="monitor" call-id="9" rc-code="190"
    op-status="0" interval="10000" exit-reason="the disk" on_node="compute1" transition-key="1:1:0:0" transition-magic="0:190;1:1:0:0"
    last-rc-change="1795191514"/></lrm_resource></lrm_resources></lrm></node_state></status>"#;

/// S1-21: with each tool, and with an agent that is not on this controller. The broken variants: the reaction in one step with the clone;
/// an update that drops an operator's parameter or the monitor's time limit; a clone for controllers too.
fn the_health_of_hosts_is_observed_first() {
    for tool in ["pcs", "crmsh"] {
        let site = Site::with(RIGHT);
        let early = site.setup(&["--tool", tool, "--health=fence"]);
        assert!(early.code == Some(1) && early.err.contains("run `nova-host-alerter setup --health` first"));
        let types = |reaction: &str, says: &str| {
            let before = fs::read_to_string(site.cib()).unwrap();
            let printed = site.setup(&["--tool", tool, reaction]);
            assert_eq!(printed.code, Some(0), "{}", printed.err);
            assert!(printed.out.contains(says), "{}", printed.out);
            site.type_in(&printed.out);
            site.kept_everything(&before, tool);
        };
        types("--health", "`nova-host-alerter setup --health --apply` runs the same");
        assert_eq!(
            health_of(&site),
            ["health-clone", "reaction=observe", "2s 20s ", "exclusive #kind eq remote"]
        );
        let again = site.setup(&["--tool", tool, "--health"]);
        assert_eq!((again.code, again.out.as_str()), (Some(0), "# Nothing to do.\n"));
        let text = fs::read_to_string(site.cib()).unwrap();
        let (head, tail) =
            text.split_once("<nvpair id=\"health").or(text.split_once("<nvpair name=\"reaction\"")).unwrap();
        let text = format!(
            "{head}<nvpair id=\"own\" name=\"links\" value=\"bond0\"/>{}{tail}",
            &text[head.len()..text.len() - tail.len()]
        );
        let (configuration, _) = text.split_once("<status").unwrap();
        let status = CONNECTED.replace(r#"in_ccm="true"/></status>"#, UNHEALTHY);
        site.set(&format!("{configuration}{status}</cib>"));
        types("--health=fence", "it would fence at this moment: compute1 (the disk).");
        let on =
            ["health-clone", "links=bond0", "reaction=fence", "2s 20s fence", "exclusive #kind eq remote"];
        assert_eq!(health_of(&site), on, "{tool}");
        assert_eq!(site.setup(&["--check"]).code, Some(0), "{tool}");
        assert_eq!(site.setup(&["--tool", tool, "--health=fence"]).out, "# Nothing to do.\n");
    }
}

/// The clone, its parameters, its monitor and its place.
fn health_of(site: &Site) -> Vec<String> {
    let root = Element::parse(&fs::read_to_string(site.cib()).unwrap()).unwrap();
    let words = |element: &Element, names: &[&str]| {
        names.iter().map(|name| element.get(name)).collect::<Vec<_>>().join(" ")
    };
    let clone = root.at(&["configuration", "resources", "clone"])[0];
    let mut all = vec![clone.get("id").to_owned()];
    for element in clone.walk() {
        match element.name.as_str() {
            "nvpair" => all.push(format!("{}={}", element.get("name"), element.get("value"))),
            "op" if element.get("name") == "monitor" => {
                all.push(words(element, &["interval", "timeout", "on-fail"]));
            }
            _ => {}
        }
    }
    let there = root.at(&["configuration", "constraints", "rsc_location"]);
    let own = there.into_iter().find(|one| one.get("rsc") == "health-clone").unwrap();
    let rule = own.walk().into_iter().find(|element| element.name == "expression").unwrap();
    all.push(format!(
        "{} {}",
        own.get("resource-discovery"),
        words(rule, &["attribute", "operation", "value"])
    ));
    all
}

impl Site {
    /// Against the configuration of before: every node has the fencing it had, and Pacemaker starts and stops the same.
    fn kept_everything(&self, before: &str, what: &str) {
        let after = fs::read_to_string(self.cib()).unwrap();
        let read = |xml: &str| setup::read(xml, Here::default(), Wanted::default()).unwrap();
        assert_eq!(setup::lost(&read(before), &read(&after)), [""; 0], "{what}\n{before}\n{after}");
        let (was, is) = (power_of(before), power_of(&after));
        for (target, lists) in was {
            let mut left = is.get(&target).into_iter().flatten();
            let is_kept = lists.iter().all(|list| left.any(|own| own == list));
            assert!(is_kept, "{what}: {target}\n{before}\n{after}");
        }
        self.disturbs_nothing(before, what);
    }

    /// Pacemaker's scheduler stops and fences nothing that it would not have.
    fn disturbs_nothing(&self, before: &str, what: &str) {
        fs::write(self.path("before.xml"), before).unwrap();
        let disturbed = |name: &str| -> BTreeSet<String> {
            let mut simulate = self.installed.command("crm_simulate");
            let simulated =
                simulate.args(["-S", "--output-as=xml", "-x"]).arg(self.path(name)).output().unwrap();
            expect_success(&simulated);
            let out = String::from_utf8(simulated.stdout).unwrap();
            let is_harm = |line: &&str| {
                line.contains("<fencing_action")
                    || line.contains("<rsc_action action=") && !line.contains(r#""start""#)
            };
            out.lines().filter(is_harm).map(|line| line.trim().to_owned()).collect()
        };
        let (was, is) = (disturbed("before.xml"), disturbed("cib.xml"));
        assert!(is.is_subset(&was), "{what}: {is:?}\n{before}");
    }
}

/// Numbers for a cluster that differs in everything: the same ones each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// Hosts by racks and a controller, with levels by name, pattern and attribute, devices that several share or that list nobody,
/// constraints of others, and a mark device of any kind.
fn generated(seed: u64) -> String {
    let mut numbers = Numbers(seed);
    let devices = ["power-r1-c1", "power-r2-c1", "power-ctl1", "pdu", "ping"];
    let mut levels = String::new();
    for id in 0..numbers.below(5) {
        let target = numbers.of(&[
            r#"target="r1-c1""#,
            r#"target="ctl1""#,
            r#"target-pattern="^r1-\w+$""#,
            r#"target-pattern="^r[12]""#,
            r#"target-pattern="c""#,
            r#"target-attribute="zone" target-value="east""#,
        ]);
        let first = numbers.of(&devices);
        let second = numbers.of(&["", ",pdu", ",mark", ",watchdog"]);
        if first.len() == second.len().saturating_sub(1) {
            continue;
        }
        let index = id + 1;
        write!(levels, r#"<fencing-level id="l{id}" {target} index="{index}" devices="{first}{second}"/>"#)
            .unwrap();
    }
    let listed = |list: &str| match list {
        "" => String::new(),
        list => format!(
            r#"<instance_attributes id="pdu-i"><nvpair id="pdu-h" name="pcmk_host_list" value="{list}"/></instance_attributes>"#
        ),
    };
    let pdu = listed(numbers.of(&["", "r1-c1", "r1-c1 ctl1", "r1-c1,r2-c1,ctl1,ctl2"]));
    // Two of four are stopped for a repair, and are a supply all the same.
    let stopped = r#"<meta_attributes id="pdu-m"><nvpair id="pdu-r" name="target-role" value="Stopped"/></meta_attributes>"#;
    let pdu = format!("{pdu}{}", if seed & 2 == 0 { "" } else { stopped });
    let mark = match numbers.below(3) {
        0 => String::new(),
        1 => r#"<primitive id="mark" class="stonith" type="fence_mark"/>"#.to_owned(),
        _ => r#"<primitive id="mark" class="stonith" type="fence_mark"><instance_attributes id="m"><nvpair id="mh" name="pcmk_host_list" value="r1-c1"/></instance_attributes></primitive>"#.to_owned(),
    };
    let more = format!(
        r#"<primitive id="pdu" class="stonith" type="fence_apc">{pdu}</primitive>
        <primitive id="ping" class="stonith" type="fence_heuristics_ping"><instance_attributes id="ping-i">
          <nvpair id="ping-h" name="pcmk_host_list" value="r1-c1"/></instance_attributes></primitive>{mark}
        <primitive id="vip" class="ocf" provider="pacemaker" type="Dummy"/></resources>
        <constraints><rsc_location id="others" score="-INFINITY" node="ctl2"><resource_set id="set"><resource_ref id="vip"/>
          <resource_ref id="{}"/></resource_set></rsc_location></constraints>
        <fencing-topology>{levels}</fencing-topology>"#,
        numbers.of(&["pdu", "power-ctl1", "ping"])
    );
    let attribute = r#"<node id="1" uname="ctl1"><instance_attributes id="n1"><nvpair id="n1z" name="zone" value="east"/></instance_attributes></node>"#;
    let bare = in_racks(&without(&bare(), "<constraints>", "</constraints>"));
    broken(&bare, &[("</resources>", &more), (r#"<node id="1" uname="ctl1"/>"#, attribute)])
}

/// S1-22: what is printed for any cluster is typed with the real tools, and takes nothing from anybody.
fn no_generated_cluster_loses_anything() {
    let mut typed = 0;
    for seed in 0..4 {
        let tool = ["pcs", "crmsh"][usize::from(seed % 2 == 1)];
        let site = Site::with(&generated(seed));
        let before = fs::read_to_string(site.cib()).unwrap();
        let printed = site.setup(&["--tool", tool]);
        let has_printed = matches!(printed.code, Some(0 | 1)) && !printed.err.contains("nova-host-alerter:");
        assert!(has_printed, "{}", printed.err);
        site.type_in(&printed.out);
        site.kept_everything(&before, &format!("{seed} {tool}\n{}", printed.out));
        let after = fs::read_to_string(site.cib()).unwrap();
        assert!(after.contains(r#"id="others""#) && after.matches("<resource_ref ").count() == 2, "{after}");
        typed += usize::from(printed.out.contains("level") || printed.out.contains("fencing_topology"));
    }
    assert!(typed > 1, "hardly any cluster was changed: {typed}");
}
