//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The configuration where `--config` is not given.
pub const DEFAULT_CONFIG: &str = "/etc/nova-host-alerter/alerter.toml";

/// Tells the cloud's recovery controller which compute hosts were fenced, until it acknowledges.
#[derive(Debug, Parser)]
#[command(name = "nova-host-alerter", version, disable_help_subcommand = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 78 wrong configuration.")]
pub struct Cli {
    /// The configuration file; fragments are read from alerter.d beside it
    #[arg(long, global = true, value_name = "FILE", default_value = DEFAULT_CONFIG)]
    pub config: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon in the foreground
    Run,
    /// Check the configuration and list every problem in it
    CheckConfig(CheckConfig),
    /// Say whether the daemon works, and how the routes are
    Status(Status),
    /// List marks
    List(List),
    /// Tell the whole story of a host's marks, or of one mark
    Show(Target),
    /// List what happened, oldest first
    History(History),
    /// Try open deliveries at once
    Retry(Retry),
    /// Mark a host by hand: only a host that was really fenced, else its machines run twice
    Mark(Mark),
    /// End the open marks of a host, or one mark: nothing more is told
    Unmark(Unmark),
    /// Let a host's last mark, or one mark, go that is held: your word that the host was fenced and that telling it is right
    Release(Release),
    /// Send a test message, which is no host failure, and show what the endpoint answers
    SendTest(SendTest),
}

/// Options of `check-config`.
#[derive(Debug, Args)]
pub struct CheckConfig {
    /// Ask the endpoints too, and look for the cluster's hosts there: without it nobody is asked
    #[arg(long)]
    pub online: bool,
}

/// Options of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Exit as an OCF monitor does: 0 running, 1 broken, 7 not running, 190 degraded
    #[arg(long)]
    pub ocf: bool,
}

/// Options of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// Settled marks too
    #[arg(long)]
    pub all: bool,
}

/// A host or a mark.
#[derive(Debug, Args)]
pub struct Target {
    /// A host's node name, or a mark's id
    #[arg(value_name = "HOST|MARK")]
    pub target: String,
}

/// Options of `history`.
#[derive(Debug, Args)]
pub struct History {
    /// Only this host
    pub host: Option<String>,
    /// At most so many of the newest lines; 0 means all
    #[arg(long, default_value_t = 100)]
    pub limit: u32,
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
}

/// Options of `mark`.
#[derive(Debug, Args)]
pub struct Mark {
    /// The host's Pacemaker node name
    pub host: String,
    /// Your word that the host was fenced and is off
    #[arg(long, required = true)]
    pub fenced: bool,
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
    /// Why; kept in the history
    #[arg(long, value_name = "TEXT", default_value = "no reason given")]
    pub reason: String,
}

/// Options of `release`.
#[derive(Debug, Args)]
pub struct Release {
    /// A host's node name, or a mark's id
    #[arg(value_name = "HOST|MARK")]
    pub target: String,
    /// Why; kept in the history and known on every controller
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// Options of `send-test`.
#[derive(Debug, Args)]
pub struct SendTest {
    /// Only this route
    pub route: Option<String>,
    /// This target of notices, and no route
    #[arg(long, value_name = "NAME", conflicts_with = "route")]
    pub notice: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_mark_by_hand_needs_the_word_and_the_reason() {
        let parse = |words: &[&str]| Cli::try_parse_from([&["nova-host-alerter"], words].concat());
        assert!(parse(&["mark", "c1"]).is_err());
        assert!(parse(&["mark", "c1", "--fenced"]).is_err());
        assert!(parse(&["mark", "c1", "--reason", "x"]).is_err());
        assert!(parse(&["mark", "c1", "--fenced", "--reason", "x"]).is_ok());
        assert!(parse(&["retry"]).is_err() && parse(&["retry", "c1", "--all"]).is_err());
    }
}
