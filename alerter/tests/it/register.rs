//! `list`, `show` and `status` of the built program on a controller that the alerter does not run on: Pacemaker's tools
//! answer for the cluster.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use marks::fencing::Fencing;
use marks::host::HostName;
use marks::mark::{Mark, Source};
use marks::register::{Acknowledgement, Entry, MarkEntry};
use marks::time::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use samples::left_out::leave_out;

/// Where the alerter runs.
const CIB: &str = r#"<cib><configuration><crm_config/><nodes/><resources/><constraints/></configuration><status>
  <node_state id="2" uname="another" in_ccm="true"><lrm id="2"><lrm_resources>
  <lrm_resource id="alerter" class="ocf" provider="openstack" type="nova-host-alerter"><lrm_rsc_op id="o"
    operation="start" call-id="10" rc-code="0" op-status="0" last-rc-change="1800000000"/></lrm_resource>
  </lrm_resources></lrm></node_state></status></cib>"#;

/// A controller that has no journal yet.
struct Controller {
    directory: TempDir,
}

impl Controller {
    /// With tools that answer; without a text they fail as they do where Pacemaker does not run.
    fn new(attributes: Option<&str>, cib: Option<&str>) -> Self {
        let controller = Self { directory: tempfile::tempdir().unwrap() };
        let (config, journal) = (controller.at("alerter.toml"), controller.at("state/marks.db"));
        fs::write(config, format!("[store]\npath = \"{}\"\n", journal.display())).unwrap();
        fs::create_dir(controller.at("sbin")).unwrap();
        controller.tool("attrd_updater", attributes);
        controller.tool("cibadmin", cib);
        controller
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn tool(&self, name: &str, says: Option<&str>) {
        let answer = says.map_or("exit 102".to_owned(), |text| format!("cat <<'X'\n{text}\nX"));
        samples::program(&self.at("sbin").join(name), format!("#!/bin/sh\n{answer}\n"));
    }

    /// Runs a command with these tools laid over the system's, for it alone.
    fn run(&self, words: &[&str]) -> Output {
        let script = "mount -t overlay -o \"lowerdir=$1:/usr/sbin\" overlay /usr/sbin; shift; exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "sh", "-ec", script, "sh"]);
        command.arg(self.at("sbin")).arg(env!("CARGO_BIN_EXE_nova-host-alerter")).args(words);
        command.arg("--config").arg(self.at("alerter.toml")).output().unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_slice(&self.run(&[words, &["--json"]].concat()).stdout).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// True where mounts can be made that nobody else sees; else the test is left out, or fails.
#[track_caller]
fn have_mounts() -> bool {
    let tried = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    let possible = tried.is_ok_and(|output| output.status.success()) && Path::new("/usr/sbin").is_dir();
    if !possible {
        leave_out("private mounts are not possible here (root is needed)");
    }
    possible
}

fn notified() -> (Fencing, Vec<Entry>) {
    let (now, by) = (Timestamp::now(), "another".to_owned());
    let fencing = Fencing { seen_by: by.clone(), ..samples::fencing("compute1", now) };
    let mark = Mark {
        id: fencing.id.into(),
        node: fencing.node.clone(),
        fqdn: HostName::parse("compute1.my.cloud.com").unwrap(),
        on_shared_storage: true,
        failure_time: now,
        generated_time: now,
    };
    let taken = Acknowledgement { mark: mark.id, route: "recovery".into(), at: now, by: by.clone() };
    let made = MarkEntry { mark, source: Source::Fencing, incarnation: None, made_by: by, made_at: now };
    let entries = vec![Entry::Fencing(fencing.clone()), Entry::Mark(made), Entry::Acknowledged(taken)];
    (fencing, entries)
}

fn attributes(entries: &[Entry]) -> String {
    let line = |entry: &Entry| {
        format!(r#"<attribute name="host-failure" host="{}" value="{}"/>"#, entry.key(), entry.value())
    };
    format!("<pacemaker-result>{}</pacemaker-result>", entries.iter().map(line).collect::<String>())
}

/// S1-28: what another controller wrote into the register is shown by a controller without a record of its own.
#[test]
fn a_controller_without_a_journal_shows_the_clusters_marks() {
    if !have_mounts() {
        return;
    }
    let (fencing, entries) = notified();
    let controller = Controller::new(Some(&attributes(&entries)), Some(CIB));
    let listed = controller.json(&["list"]);
    assert_eq!((&listed[0]["view"], &listed[0]["in_journal"]), (&"cluster".into(), &false.into()));
    assert_eq!((&listed[0]["state"], &listed[0]["fence_count"]), (&"open".into(), &1.into()));
    assert_eq!(listed[0]["acknowledged"][0]["route"], "recovery");
    let id = fencing.id.to_string();
    for target in ["compute1", &id] {
        let shown = controller.json(&["show", target]);
        assert_eq!(
            (&shown[0]["fencings"][0]["id"], &shown[0]["in_journal"]),
            (&id.as_str().into(), &false.into())
        );
    }
    let shown = text(&controller.run(&["show", "compute1"]).stdout);
    assert!(shown.starts_with("compute1: open (cluster)\n"), "{shown}");
    let status = controller.run(&["status"]);
    assert_eq!(status.status.code(), Some(1), "no daemon answers here");
    let said = text(&status.stdout);
    assert!(said.starts_with("NOT EVERY FENCED HOST IS REPORTED: 1 waits, compute1 since "), "{said}");
    assert!(
        said.contains("\nthe alerter runs on another: run this command there")
            && said.contains("; cluster; "),
        "{said}"
    );
}

/// Where Pacemaker is not there either, the commands say so once, and end.
#[test]
fn without_pacemaker_and_without_a_journal_there_is_nothing_to_show() {
    if !have_mounts() {
        return;
    }
    let controller = Controller::new(None, None);
    for words in [&["list"][..], &["show", "compute1"]] {
        let refused = controller.run(words);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        let fault = "local view: the register (attrd) cannot be read: Pacemaker does not run here";
        assert_eq!((said.matches(fault).count(), said.matches("no journal").count()), (1, 1), "{said}");
    }
    let status = controller.json(&["status"]);
    assert_eq!((&status["view"], &status["alerter_on"]), (&"local view".into(), &Value::Null));
}
