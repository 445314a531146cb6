//! `setup`: the commands that have Pacemaker mark fenced hosts; `--apply` runs them, and `--check` only says what is wrong.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use marks::host::HostName;
use pacemaker::cib::Cib;
use pacemaker::read;
use pacemaker::tools::Tools;
use serde::Serialize;
use setup::{Cluster, Command, Finding, Ran, Reaction, Step, Then, Tool, Wanted};

use super::answer::{Usage, print, println_all, say};
use super::key::{self, KeyLine};
use super::sources::{register_of, site};
use crate::base::evidence_of;
use crate::cli::{self, Cli};
use crate::config::{self, Settings};
use crate::intake::roll;

/// How long the cluster may take to say how it is configured.
const LIMIT: Duration = Duration::from_secs(60);

/// What is checked, so that nobody takes it for more.
const SCOPE: &str = "Checked: the cluster's configuration, the last results of its operations, and the files of this controller. Of other controllers, only the results of Pacemaker's operations are known: run this command there too.";

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    right: bool,
    tool: &'static str,
    findings: Vec<FindingLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<Vec<CommandLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<Applied<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a KeyLine>,
    scope: &'static str,
}

#[derive(Serialize)]
struct FindingLine<'a> {
    kind: &'static str,
    about: &'a str,
    what: &'a str,
    then: String,
    setup: bool,
}

#[derive(Serialize)]
struct CommandLine<'a> {
    words: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    does: &'a [String],
}

#[derive(Serialize)]
struct Applied<'a> {
    done: &'a [String],
    left: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// What was found.
struct Found {
    cluster: Cluster,
    xml: String,
    key: Option<KeyLine>,
    tool: Tool,
    /// What it is about instead: the agent for compute hosts.
    health: Option<Reaction>,
    findings: Vec<Finding>,
    steps: Vec<Step>,
    commands: Vec<Command>,
}

impl Found {
    fn take(cli: &Cli, options: &cli::Setup, tool: Tool) -> anyhow::Result<Self> {
        let (cluster, xml, key) = cluster(cli, options)?;
        let mut findings = match options.health {
            Some(reaction) => setup::health(&cluster, reaction),
            None => setup::check(&cluster),
        };
        if !options.check {
            setup::prove(tool, &cluster, &xml, &mut findings);
        }
        let steps = setup::steps(&findings);
        let commands = setup::commands(tool, &cluster, &steps);
        Ok(Self { cluster, xml, key, tool, health: options.health, findings, steps, commands })
    }

    /// The command with its option.
    fn called(&self) -> &'static str {
        match self.health {
            None => "setup",
            Some(Reaction::Observe) => "setup --health",
            Some(Reaction::Fence) => "setup --health=fence",
        }
    }

    /// What `setup` leaves to an operator.
    fn by_hand(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.step().is_none())
    }

    fn advice(&self, finding: &Finding) -> String {
        match &finding.then {
            Then::Setup(Step::MakeKey { file }) => {
                let file = setup::shell(file);
                format!(
                    "on one controller run `nova-host-alerter setup --apply`, which makes the file; then on every other `scp -p CONTROLLER:{file} {file}`"
                )
            }
            Then::Setup(_) => {
                let called = self.called();
                format!(
                    "`nova-host-alerter {called}` proves and prints the commands, `{called} --apply` runs them"
                )
            }
            Then::Do(text) => text.clone(),
        }
    }

    fn line<'a>(&'a self, finding: &'a Finding) -> FindingLine<'a> {
        FindingLine {
            kind: finding.kind.as_str(),
            about: &finding.about,
            what: &finding.what,
            then: self.advice(finding),
            setup: finding.step().is_some(),
        }
    }

    /// In the form of `status`: what it is, and behind the arrow what to type.
    fn text(&self, finding: &Finding) -> String {
        format!("{}: {}\n  -> {}", finding.kind.as_str(), finding.what, self.advice(finding))
    }

    fn answer<'a>(&'a self, with_commands: bool, ran: Option<&'a Ran>) -> Answer<'a> {
        let command = |command: &'a Command| CommandLine {
            words: &command.words,
            input: command.input.as_deref(),
            does: &command.does,
        };
        Answer {
            right: self.findings.is_empty(),
            tool: self.tool.as_str(),
            findings: self.findings.iter().map(|finding| self.line(finding)).collect(),
            commands: with_commands.then(|| self.commands.iter().map(command).collect()),
            applied: ran.map(|ran| Applied {
                done: &ran.done,
                left: &ran.left,
                failed: ran.failed.as_ref().map(|(command, _)| command.as_str()),
                why: ran.failed.as_ref().map(|(_, why)| why.as_str()),
            }),
            key: self.key.as_ref(),
            scope: SCOPE,
        }
    }
}

pub(super) fn run(cli: &Cli, options: &cli::Setup) -> anyhow::Result<ExitCode> {
    let tool = options.tool.or_else(Tool::installed);
    // A check needs no tool.
    let tool = if options.check { Some(tool.unwrap_or(Tool::Pcs)) } else { tool };
    let tool =
        tool.ok_or_else(|| Usage("neither pcs nor crmsh is installed here: choose with --tool".to_owned()))?;
    let found = Found::take(cli, options, tool)?;
    match (options.check, options.apply) {
        (true, _) => check(cli, &found),
        (_, true) => apply(cli, options, found),
        _ => show(cli, &found),
    }
}

fn cluster(cli: &Cli, options: &cli::Setup) -> anyhow::Result<(Cluster, String, Option<KeyLine>)> {
    let site = site(cli);
    let (evidence, register) = (evidence_of(&site.store), register_of(&site));
    // Pacemaker has another working directory.
    let config = std::path::absolute(&cli.config).unwrap_or_else(|_| cli.config.clone());
    let (key, line) = key::take(&config, register);
    let here = setup::here(&evidence, register, key);
    let settings = config::load(&cli.config).ok();
    let (xml, is_cib_too_large) = xml(options.cib.as_deref())?;
    let wanted = Wanted {
        hosts: options.hosts.clone().or_else(|| settings.as_ref()?.hosts.matching.clone()),
        unsaid: settings.map(|settings| unsaid(&settings, &xml)).unwrap_or_default(),
        config: config.display().to_string(),
        evidence: evidence.display().to_string(),
    };
    let here = setup::Here { is_cib_too_large, ..here };
    let cluster = setup::read(&xml, here, wanted).context("the cluster's configuration cannot be read")?;
    Ok((setup::with_lost(cluster, &xml), xml, line))
}

/// The hosts of which nobody says whether their instances are on shared storage. Of a configuration that is wrong, or not there yet,
/// nothing is known, and all remote nodes are compute hosts.
fn unsaid(settings: &Settings, xml: &str) -> Vec<HostName> {
    Cib::parse(xml).map(|cib| roll::of(settings, &cib).unsaid).unwrap_or_default()
}

/// Also whether Pacemaker can say it in one answer.
fn xml(file: Option<&Path>) -> anyhow::Result<(String, bool)> {
    match file {
        Some(file) => {
            let xml =
                fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
            Ok((xml, false))
        }
        None => Ok(read::whole(&Tools::default(), Instant::now() + LIMIT)?),
    }
}

fn code(is_right: bool) -> ExitCode {
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(cli: &Cli, found: &Found) -> anyhow::Result<ExitCode> {
    let is_right = found.findings.is_empty();
    print(cli, &found.answer(false, None), || checked(found))?;
    Ok(code(is_right))
}

fn checked(found: &Found) -> String {
    let mut all: Vec<String> = found.findings.iter().map(|finding| found.text(finding)).collect();
    if found.findings.is_empty() && found.health.is_none() {
        let hosts = found.cluster.compute_hosts();
        all.push(format!("Nothing is wrong: {hosts} compute host(s) are marked when they are fenced."));
    }
    all.extend(found.key.iter().map(|line| line.message.clone()));
    all.push(SCOPE.to_owned());
    all.join("\n")
}

fn show(cli: &Cli, found: &Found) -> anyhow::Result<ExitCode> {
    let is_done = found.by_hand().next().is_none();
    print(cli, &found.answer(true, None), || match found.commands.is_empty() {
        true => format!("# {}", nothing(is_done)),
        false => script(found),
    })?;
    if !cli.is_for_programs() {
        note_by_hand(found);
    }
    Ok(code(is_done))
}

/// What stands where there is no command.
fn nothing(is_right: bool) -> &'static str {
    if is_right {
        "Nothing to do."
    } else {
        "Nothing was changed: no command of setup corrects these findings."
    }
}

/// The commands, and before them in comments what they do.
fn script(found: &Found) -> String {
    let (tool, called) = (found.tool.as_str(), found.called());
    let head = format!("# With {tool}; `nova-host-alerter {called} --apply` runs the same.");
    let does = found.steps.iter().map(|step| format!("#  - {}", step.shown()));
    let lines = found.commands.iter().map(Command::line);
    std::iter::once(head).chain(does).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Beside the commands, so that these can be piped into a shell.
fn note_by_hand(found: &Found) {
    for finding in found.by_hand() {
        say(&format!("{}\n", found.text(finding)), &mut std::io::stderr());
    }
}

fn apply(cli: &Cli, options: &cli::Setup, found: Found) -> anyhow::Result<ExitCode> {
    if !found.cluster.is_installed() {
        return refuse(cli, &found);
    }
    ensure!(
        found.commands.is_empty() || setup::is_same(&found.xml, &xml(None)?.0),
        "nothing was changed: somebody else changed the configuration at the same time; run this command again"
    );
    let ran = setup::run(&found.commands, |command| {
        if !cli.is_for_programs() {
            println_all(&command.line());
        }
    });
    if ran.failed.is_some() {
        setup::tidy();
    }
    let after = if ran.failed.is_none() && !found.commands.is_empty() {
        Found::take(cli, options, found.tool)?
    } else {
        found
    };
    let is_right = ran.failed.is_none() && after.findings.is_empty();
    if cli.is_for_programs() {
        print(cli, &after.answer(true, Some(&ran)), String::new)?;
        return Ok(code(is_right));
    }
    match (&ran.failed, ran.done.is_empty()) {
        (Some(_), _) => say(&format!("nova-host-alerter: {}\n", ran.sentence()), &mut std::io::stderr()),
        (None, true) => println_all(nothing(is_right)),
        (None, false) => println_all(&ran.sentence()),
    }
    note_by_hand(&after);
    Ok(code(is_right))
}

/// The tools would refuse what is not installed here, and Pacemaker could not run it.
fn refuse(cli: &Cli, found: &Found) -> anyhow::Result<ExitCode> {
    if cli.is_for_programs() {
        print(cli, &found.answer(true, Some(&Ran::default())), String::new)?;
    } else {
        note_by_hand(found);
        say(
            "nova-host-alerter: nothing was changed: install the package on this controller first\n",
            &mut std::io::stderr(),
        );
    }
    Ok(ExitCode::FAILURE)
}
