//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use marks::host::HostPatterns;
use marks::time::Timestamp;
use setup::Tool;

use crate::span;

/// The configuration where `--config` is not given.
pub const DEFAULT_CONFIG: &str = "/etc/nova-host-alerter/alerter.toml";

/// Notifies the cloud's recovery controllers of fenced compute hosts until they acknowledge.
#[derive(Debug, Parser)]
#[command(name = "nova-host-alerter", version)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 75 not now, 78 wrong configuration.")]
pub struct Cli {
    /// The configuration file; fragments are read from alerter.d beside it
    #[arg(long, global = true, value_name = "FILE", default_value = DEFAULT_CONFIG)]
    pub config: PathBuf,
    /// Print JSON, the same as `-o json`
    #[arg(long, global = true)]
    pub json: bool,
    /// How to print answers and errors: table or json
    #[arg(id = "print-as", short = 'o', global = true, value_name = "FORMAT", value_enum)]
    #[arg(hide_possible_values = true, conflicts_with = "json")]
    pub print_as: Option<PrintAs>,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// The journal's disk hangs: nothing there may be touched.
    #[arg(skip)]
    pub hangs: bool,
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PrintAs {
    /// Text that fits the terminal
    #[default]
    Table,
    /// JSON
    Json,
}

impl Cli {
    /// The format that was asked for.
    pub fn format(&self) -> PrintAs {
        if self.json { PrintAs::Json } else { self.print_as.unwrap_or_default() }
    }

    /// Whether programs read the answer.
    pub fn is_for_programs(&self) -> bool {
        self.format() == PrintAs::Json
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon in the foreground
    Run,
    /// Check the configuration and list every problem in it
    CheckConfig(CheckConfig),
    /// Show whether the daemon works, and the state of the routes
    Status(Status),
    /// List marks; those that need an operator come first
    List(List),
    /// Show everything about a host's marks, or about one mark
    Show(Show),
    /// List what happened, oldest first
    History(History),
    /// Try open deliveries at once
    Retry(Retry),
    /// Mark a host by hand; unless it is fenced and off, its machines run twice
    Mark(Mark),
    /// End the open marks of a host, or a single mark: no route is notified of them again
    Unmark(Unmark),
    /// Make the running daemon read its configuration again; an invalid one changes nothing
    Reload(Reload),
    /// End all deliveries to a route that is not configured any more; they are never sent
    Dismiss(Dismiss),
    /// Send a held mark; you confirm that its host was fenced. A host name means the host's newest mark
    Release(Release),
    /// Stop sending for all groups, or for one: marks are made and kept until `resume`
    Pause(Pause),
    /// End the pauses that cover all groups, or with --group those of one group
    Resume(Resume),
    /// Stop sending for a host or a group while it is worked on
    #[command(subcommand)]
    Maintenance(Maintenance),
    /// Send a test message, which reports no host, and show the endpoint's answer
    SendTest(SendTest),
    /// Print or run the commands that make Pacemaker mark fenced hosts, or only check the cluster
    Setup(Setup),
}

/// Options of `check-config`.
#[derive(Debug, Args)]
pub struct CheckConfig {
    /// Also ask the endpoints whether they are ready and know the cluster's hosts
    #[arg(long)]
    pub online: bool,
}

/// Options of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Exit as an OCF monitor does: 0 running, 1 broken, 7 not running, 190 degraded; wait SECONDS for the daemon's answer, or 15
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "15")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub ocf: Option<u64>,
    /// Print the process that holds the journal, as its lock names it; for the OCF agent
    #[arg(long, hide = true, conflicts_with_all = ["ocf", "check"])]
    pub process: bool,
    /// Print one line and exit as a Nagios plugin does: 0 ok, 1 warning, 2 critical, 3 unknown
    #[arg(long, conflicts_with = "ocf")]
    pub check: bool,
    /// With --check: warning if a mark is open for this many seconds
    #[arg(long, value_name = "SECONDS", requires = "check", default_value_t = 300)]
    pub warning: u64,
    /// With --check: critical if a mark is open for this many seconds
    #[arg(long, value_name = "SECONDS", requires = "check", default_value_t = 900)]
    pub critical: u64,
}

/// Which marks: all options together; of one that is given more than once any value.
#[derive(Clone, Debug, Default, Args)]
pub struct Filter {
    /// Only hosts with these node names; `*` stands for any characters, `?` for one
    #[arg(long = "host", value_name = "GLOB")]
    pub hosts: Vec<String>,
    /// Only from this time on: 2026-11-22T03:00:00Z, 2026-11-22, or how long ago, such as 30d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Timestamp>,
}

/// Options of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// Also show settled marks, the newest of them
    #[arg(long)]
    pub all: bool,
    /// Show at most this many marks; 0 shows all
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub limit: u32,
    /// Only marks in this state: open, pending, in-flight, held, parked, quarantined, acknowledged, dismissed, cancelled,
    /// expired, or the reason of their hold, such as no-fqdn or storm
    #[arg(long = "state", value_name = "WORD", value_delimiter = ',')]
    pub states: Vec<String>,
    /// Which of them
    #[command(flatten)]
    pub filter: Filter,
}

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// A host's node name, or a mark's id
    #[arg(value_name = "HOST|MARK")]
    pub target: String,
    /// Show only this many of the newest marks; 0 shows all
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub limit: u32,
}

/// Options of `history`.
#[derive(Debug, Args)]
pub struct History {
    /// Only this host
    #[arg(conflicts_with = "hosts")]
    pub host: Option<String>,
    /// Show only this many of the newest lines; 0 shows all
    #[arg(long, default_value_t = 100)]
    pub limit: u32,
    /// Count outages instead: how they ended, and how long the acknowledgements took
    #[arg(long, conflicts_with = "limit")]
    pub summary: bool,
    /// Which lines
    #[command(flatten)]
    pub filter: Filter,
}

/// A time, or how long ago it was.
fn moment(text: &str) -> Result<Timestamp, String> {
    span::moment(text, Timestamp::now())
}

/// Options of `retry`.
#[derive(Debug, Args)]
pub struct Retry {
    /// A host's node name, or a mark's id
    #[arg(value_name = "HOST|MARK", required_unless_present = "all")]
    pub target: Option<String>,
    /// Every open mark
    #[arg(long, conflicts_with = "target")]
    pub all: bool,
    /// Why; kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Options of `reload`.
#[derive(Debug, Args)]
pub struct Reload {
    /// Why; kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Options of `mark`.
#[derive(Debug, Args)]
pub struct Mark {
    /// The host's Pacemaker node name
    pub host: String,
    /// You confirm that the host was fenced and is off
    #[arg(long, required = true)]
    pub fenced: bool,
    /// Also where the cluster has it as a living member, or does not know it
    #[arg(long)]
    pub insist: bool,
    /// Why it is marked by hand; kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// Options of `unmark`.
#[derive(Debug, Args)]
pub struct Unmark {
    /// A host's node name, or a mark's id
    #[arg(value_name = "HOST|MARK")]
    pub target: String,
    /// With the id of an ended mark: also end its return that waits to be sent
    #[arg(long = "return")]
    pub returns: bool,
    /// Why; kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// Options of `dismiss`.
#[derive(Debug, Args)]
pub struct Dismiss {
    /// A route that is not configured any more
    #[arg(long, value_name = "NAME")]
    pub route: String,
    /// Why; kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// Options of `release`.
#[derive(Debug, Args)]
pub struct Release {
    /// A host's node name, or a mark's id
    #[arg(value_name = "HOST|MARK", required_unless_present = "group")]
    pub target: Option<String>,
    /// All marks of this group that a storm holds
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    pub group: Option<String>,
    /// Also where the cluster has the host as a living member
    #[arg(long)]
    pub insist: bool,
    /// Why; kept in the history and known on every controller
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// Options of `pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// Only this group
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Why; kept in the history and known on every controller
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// This long: a number followed by s, m, h or d; without it, until `resume`
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    pub lasting: Option<Duration>,
}

/// Options of `resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// Only this group's pauses
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Why; kept in the history and known on every controller
    #[arg(long, value_name = "TEXT", default_value = "no reason given")]
    pub reason: String,
}

/// What to do about maintenance.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum Maintenance {
    /// Begin a maintenance, which ends by itself; until then its marks are held
    Begin(Begin),
    /// End every maintenance of a host, or of a group
    End(End),
    /// List hosts and groups on maintenance
    List,
}

/// A host or a group.
#[derive(Debug, Args)]
pub struct Whom {
    /// The host's Pacemaker node name
    #[arg(required_unless_present = "group")]
    pub host: Option<String>,
    /// A group instead
    #[arg(long, value_name = "NAME", conflicts_with = "host")]
    pub group: Option<String>,
}

/// Options of `maintenance begin`.
#[derive(Debug, Args)]
pub struct Begin {
    #[command(flatten)]
    /// Of what
    pub whom: Whom,
    /// Why; kept in the history and known on every controller
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// At most this long: a number followed by s, m, h or d
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    pub lasting: Duration,
}

/// Options of `maintenance end`.
#[derive(Debug, Args)]
pub struct End {
    #[command(flatten)]
    /// Of what
    pub whom: Whom,
    /// Why; kept in the history and known on every controller
    #[arg(long, value_name = "TEXT", default_value = "no reason given")]
    pub reason: String,
}

/// Options of `send-test`.
#[derive(Debug, Args)]
pub struct SendTest {
    /// Only this route
    pub route: Option<String>,
    /// Why; kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Options of `setup`.
#[derive(Debug, Args)]
pub struct Setup {
    /// Only list what is wrong with the cluster's configuration and what to type; exits with 1 if anything is wrong
    #[arg(long, conflicts_with = "apply")]
    pub check: bool,
    /// Run the commands and stop at the first that fails; a correct cluster is not changed
    #[arg(long)]
    pub apply: bool,
    /// Set up only the agent for compute hosts (docs/compute-health.md), which observes; --health=fence later has Pacemaker
    /// fence hosts that fail their health check
    #[arg(long, value_name = "REACTION", value_enum, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "observe")]
    pub health: Option<setup::Reaction>,
    /// Use the commands of this tool; the default is the installed one, or pcs if both are installed
    #[arg(long, value_name = "TOOL", value_enum)]
    pub tool: Option<Tool>,
    /// Only remote nodes with these names, separated by commas; `*` stands for any characters, `?` for one;
    /// the default is `[hosts] match` in the configuration, else all
    #[arg(long, value_name = "PATTERNS", value_parser = patterns)]
    pub hosts: Option<HostPatterns>,
    /// Check this file, an output of `cibadmin --query`, instead of the running cluster
    #[arg(long, value_name = "FILE", conflicts_with = "apply")]
    pub cib: Option<PathBuf>,
}

/// Names and patterns, separated by commas.
fn patterns(text: &str) -> Result<HostPatterns, String> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    HostPatterns::from_entries(entries).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    /// S0-3: a host or a group, a reason, and an end.
    #[test]
    fn a_decision_needs_a_reason_and_a_maintenance_an_end() {
        let is_right = |line: &str| {
            let words = line.split(' ').collect::<Vec<_>>();
            Cli::try_parse_from([&["nova-host-alerter"], &words[..]].concat()).is_ok()
        };
        for right in [
            "pause --reason x",
            "pause --group rack1 --reason x --for 2h",
            "resume",
            "resume --group rack1 --reason x",
            "maintenance begin c1 --reason x --for 90",
            "maintenance begin --group rack1 --reason x --for 1d",
            "maintenance end c1",
            "maintenance end --group rack1",
            "maintenance list",
            "release --group rack1 --reason x",
            "release c1 --reason x",
        ] {
            assert!(is_right(right), "{right}");
        }
        for wrong in [
            "pause",
            "pause --reason x --for tomorrow",
            "maintenance",
            "maintenance begin c1 --reason x",
            "maintenance begin c1 --for 2h",
            "maintenance begin --reason x --for 2h",
            "maintenance begin c1 --group rack1 --reason x --for 2h",
            "maintenance end",
            "maintenance run c1 --reason x --for 2h -- true",
            "release --reason x",
            "release c1 c2 --reason x",
            "release c1 --group rack1 --reason x",
        ] {
            assert!(!is_right(wrong), "{wrong}");
        }
    }
}
