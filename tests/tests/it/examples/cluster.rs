//! A cluster's configuration in a file: changed by crmsh and pcs, read by Pacemaker's own tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;
use tests::installed::{self, Installed};

/// Two controllers that are members, and nothing else: an administrator's beginning.
const TWO: &str = r#"<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0"
    have-quorum="1" dc-uuid="1"><configuration><crm_config><cluster_property_set id="cib-bootstrap-options"/></crm_config>
  <nodes><node id="1" uname="ctl1"/><node id="2" uname="ctl2"/></nodes><resources/><constraints/></configuration><status>
  <node_state id="1" uname="ctl1" in_ccm="true" crmd="online" join="member" expected="member"/>
  <node_state id="2" uname="ctl2" in_ccm="true" crmd="online" join="member" expected="member"/></status></cib>"#;

/// What a script for pcs is run with: every command works on the file. pcs takes the watchdog's time only where systemd says that sbd is
/// enabled: it asks one that says so.
const PCS: &str = r#"pcs() {
    case $* in *stonith-watchdog-timeout*)
        printf '#!/bin/sh\necho enabled\n' >"$HOME/systemctl"
        chmod 755 "$HOME/systemctl"
        mount --bind "$HOME/systemctl" /usr/bin/systemctl ;;
    esac
    command pcs -f "$CIB" "$@"
}
. "$1""#;

/// The tool that an operator has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tool {
    Crmsh,
    Pcs,
}

impl Tool {
    /// The example that all others build on.
    pub(super) fn base(self) -> String {
        read(match self {
            Self::Crmsh => "crmsh.txt",
            Self::Pcs => "pcs.sh",
        })
    }

    /// The example of one situation.
    pub(super) fn example(self, name: &str) -> String {
        read(&match self {
            Self::Crmsh => format!("crmsh-{name}.txt"),
            Self::Pcs => format!("pcs-{name}.sh"),
        })
    }
}

/// An example's text.
pub(super) fn read(name: &str) -> String {
    fs::read_to_string(installed::source("packaging/examples").join(name)).unwrap()
}

/// A cluster's configuration in a file.
pub(super) struct Cluster {
    installed: Installed,
    directory: TempDir,
}

impl Cluster {
    /// The example that all others build on, loaded by the real tool. That is done once.
    pub(super) fn base(tool: Tool) -> Self {
        Self::of(loaded(tool))
    }

    /// Loads `text` into a cluster of two members that has nothing yet.
    pub(super) fn with(tool: Tool, text: &str) -> Self {
        let cluster = Self::of(TWO);
        cluster.load(tool, text);
        cluster
    }

    /// A cluster that has this.
    pub(super) fn of(cib: &str) -> Self {
        let cluster = Self { installed: Installed::new().unwrap(), directory: TempDir::new().unwrap() };
        cluster.installed.load_pcs().unwrap();
        fs::write(cluster.cib(), cib).unwrap();
        cluster
    }

    pub(super) fn cib(&self) -> PathBuf {
        self.directory.path().join("cib.xml")
    }

    /// A command that sees the product installed.
    pub(super) fn tool(&self, name: &str) -> Command {
        let mut command = self.installed.command(name);
        // crmsh and pcs keep state in the home directory.
        command.env("HOME", self.directory.path());
        command
    }

    /// Loads an example as its first line says.
    pub(super) fn load(&self, tool: Tool, text: &str) {
        let input = self.directory.path().join("input");
        fs::write(&input, text).unwrap();
        let mut command = match tool {
            Tool::Crmsh => self.tool("crm"),
            Tool::Pcs => self.tool("sh"),
        };
        match tool {
            Tool::Crmsh => command.args(["configure", "load", "update"]).arg(input),
            Tool::Pcs => command.args(["-ec", PCS, "sh"]).arg(input),
        };
        expect_success(&self.on_the_file(command, tool).output().unwrap());
    }

    /// Runs a script with functions defined before it, and gives what it said.
    pub(super) fn run(&self, tool: Tool, functions: &str, script: &str) -> String {
        let input = self.directory.path().join("input");
        fs::write(&input, script).unwrap();
        let mut shell = self.tool("sh");
        shell.args(["-ec", &format!("{functions}\n{PCS}"), "sh"]).arg(input);
        let ran = self.on_the_file(shell, tool).output().unwrap();
        expect_success(&ran);
        String::from_utf8(ran.stdout).unwrap()
    }

    fn on_the_file(&self, mut command: Command, tool: Tool) -> Command {
        match tool {
            Tool::Crmsh => command.env("CIB_file", self.cib()),
            Tool::Pcs => command.env("CIB", self.cib()),
        };
        command
    }

    pub(super) fn assert_verified(&self) {
        let checked = self.tool("crm_verify").arg("-VV").arg("-x").arg(self.cib()).output().unwrap();
        expect_success(&checked);
        assert_eq!(String::from_utf8_lossy(&checked.stderr), "", "crm_verify has something to say");
    }

    /// What stands at an XPath, one line each.
    pub(super) fn at(&self, path: &str) -> String {
        at(&self.cib(), path)
    }

    /// The fencing levels of a target in their order, as crmsh writes them: a blank between two levels.
    pub(super) fn topology(&self, target: &str) -> String {
        let levels = (1..=9).map(|index| {
            self.at(&format!("string(//fencing-level[@target='{target}' and @index='{index}']/@devices)"))
        });
        levels.filter(|devices| !devices.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The cluster once everything runs.
    pub(super) fn settled(&self) -> Settled<'_> {
        let [once, twice] = ["once.xml", "twice.xml"].map(|name| self.directory.path().join(name));
        // Probes and starts need a pass each.
        self.simulate(&self.cib(), &["-O", once.to_str().unwrap()]);
        let status = self.simulate(&once, &["-O", twice.to_str().unwrap()]);
        let (_, revised) = status.split_once("Revised Cluster Status:").expect("crm_simulate prints it");
        Settled { cluster: self, state: twice, status: revised.to_owned() }
    }

    fn simulate(&self, state: &Path, arguments: &[&str]) -> String {
        let simulated =
            self.tool("crm_simulate").args(["-S", "-x"]).arg(state).args(arguments).output().unwrap();
        expect_success(&simulated);
        String::from_utf8(simulated.stdout).unwrap()
    }
}

/// A cluster in which everything runs, for Pacemaker's scheduler.
pub(super) struct Settled<'a> {
    cluster: &'a Cluster,
    state: PathBuf,
    status: String,
}

impl Settled<'_> {
    /// The controller that runs a resource.
    pub(super) fn runs(&self, resource: &str) -> String {
        let named = format!("* {resource}\t");
        let line = self.status.lines().find(|line| line.contains(&named));
        let at = line.and_then(|line| line.split_once("Started ")).map(|(_, node)| node.trim().to_owned());
        at.unwrap_or_else(|| panic!("{resource} runs nowhere: {}", self.status))
    }

    /// What the cluster does when the connection to a host is lost, one action a line.
    pub(super) fn when_lost(&self, host: &str, further: &[&str]) -> String {
        let failure = format!("{host}_monitor_10000@{}=1", self.runs(host));
        self.does(&[&["--op-inject", &failure], further].concat())
    }

    /// What the cluster does when a controller dies.
    pub(super) fn when_dead(&self, controller: &str, further: &[&str]) -> String {
        self.does(&[&["--node-fail", controller], further].concat())
    }

    fn does(&self, arguments: &[&str]) -> String {
        let said = self.cluster.simulate(&self.state, arguments);
        let (_, plan) = said.split_once("Transition Summary:").expect("crm_simulate prints it");
        plan.split_once("Revised Cluster Status:").expect("and this").0.to_owned()
    }
}

/// The first example as its tool has put it into a cluster of two members.
pub(super) fn loaded(tool: Tool) -> &'static str {
    static LOADED: [OnceLock<String>; 2] = [const { OnceLock::new() }; 2];
    LOADED[tool as usize].get_or_init(|| {
        let cluster = Cluster::with(tool, &tool.base());
        fs::read_to_string(cluster.cib()).unwrap()
    })
}

/// What stands at an XPath of a file, one line each.
fn at(file: &Path, path: &str) -> String {
    let found = Command::new("xmllint").args(["--xpath", path]).arg(file).output().unwrap();
    String::from_utf8_lossy(&found.stdout).trim().to_owned()
}

pub(super) fn expect_success(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
}
