//! `check-config`: every problem of the configuration, and with `--online` what the endpoints say of it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use marks::mark::Lack;
use marks::register::Register;
use pacemaker::cib::Cib;
use pacemaker::read;
use pacemaker::tools::Tools;
use serde::Serialize;

use super::answer::{WRONG_CONFIGURATION, print, sentence};
use super::sources::{touch, wait_for};
use crate::cli::{self, Cli};
use crate::commands::online::{self, Answers, Obstacle, OfGroup, OfRoute};
use crate::config::{self, Group, Settings};
use crate::daemon;

/// How long the cluster may take to say which hosts there are.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Default, Serialize)]
struct CheckReport<'a> {
    valid: bool,
    routes: usize,
    groups: Vec<GroupLine<'a>>,
    problems: &'a [site::Problem],
    warnings: &'a [site::Problem],
    /// What keeps the daemon from starting here all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    online: Option<&'a Answers>,
}

/// A group in one line.
#[derive(Serialize)]
struct GroupLine<'a> {
    name: &'a str,
    members: String,
    notified: String,
    limit: String,
}

impl<'a> From<&'a Group> for GroupLine<'a> {
    fn from(group: &'a Group) -> Self {
        Self {
            name: &group.name,
            members: group.members.shown(),
            notified: group.recipients.shown(),
            limit: group.limit_shown(),
        }
    }
}

pub(super) fn run(cli: &Cli, options: &cli::CheckConfig) -> anyhow::Result<ExitCode> {
    match config::load(&cli.config) {
        Ok(settings) if options.online => online(cli, &settings),
        Ok(settings) => good(cli, &settings, None),
        Err(problems) => {
            let verdict = CheckReport { problems: problems.problems(), ..CheckReport::default() };
            print(cli, &verdict, || problems.to_string())?;
            Ok(ExitCode::from(WRONG_CONFIGURATION))
        }
    }
}

/// The files are good; what stands in the daemon's way on this machine comes first, where anything does.
fn good(cli: &Cli, settings: &Settings, online: Option<&Answers>) -> anyhow::Result<ExitCode> {
    let checked = touch(cli, &settings.store.path).map_err(Into::into).and_then(|()| daemon::check(settings));
    let obstacle = checked.err().map(|error| sentence(&error));
    let is_clear = obstacle.is_none() && online.is_none_or(Answers::is_clear);
    let code = if is_clear { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let routes = settings.own_routes().count();
    let groups: Vec<GroupLine<'_>> = settings.groups.iter().map(GroupLine::from).collect();
    // What one host may lack stops nobody; the cluster knows the hosts.
    let unsaid = settings.lacks().filter(|_| online.is_none()).map(|lack| unsaid(settings, lack));
    let warnings: Vec<_> = settings.warnings.iter().cloned().chain(unsaid).collect();
    let valid = obstacle.is_none();
    let report = CheckReport { valid, routes, groups, problems: &[], warnings: &warnings, obstacle, online };
    print(cli, &report, || text(cli, settings, &report))?;
    Ok(code)
}

fn text(cli: &Cli, settings: &Settings, report: &CheckReport<'_>) -> String {
    let but = if report.valid { "" } else { ", but `nova-host-alerter run` does not start here" };
    // The cluster keeps the first 128 characters: they are the obstacle's.
    let mut all: Vec<String> = report.obstacle.iter().cloned().collect();
    all.push(format!("{} is valid, with {} route(s){but}", cli.config.display(), report.routes));
    // The group that is always there is shown where groups were configured.
    if settings.groups != [Group::rest()] {
        all.extend(report.groups.iter().map(group_line));
    }
    all.extend(report.warnings.iter().map(|warning| format!("warning: {warning}")));
    all.extend(report.online.map(lines));
    all.join("\n")
}

fn unsaid(settings: &Settings, lack: Lack) -> site::Problem {
    let what = match lack {
        Lack::Fqdn => "its full name",
        Lack::Storage => "whether its instances are on shared storage",
    };
    let message = format!(
        "it does not say of every host {what}: a mark of such a host may be held ({}); set {}",
        lack.as_str(),
        lack.setting()
    );
    site::Problem { file: settings.file.display().to_string(), line: 1, column: 1, message }
}

fn group_line(GroupLine { name, members, notified, limit }: &GroupLine<'_>) -> String {
    format!("group {name}: {members}; notified: {notified}; {limit}")
}

fn online(cli: &Cli, settings: &Settings) -> anyhow::Result<ExitCode> {
    let answers = wait_for(online::ask(settings, cib(settings)))?;
    good(cli, settings, Some(&answers))
}

/// The cluster as it stands, or why there is none.
fn cib(settings: &Settings) -> Result<Cib, String> {
    if settings.store.register == Register::None {
        return Err("register = \"none\", so no cluster is asked".to_owned());
    }
    read::configuration(&Tools::default(), Instant::now() + LIMIT)
        .map_err(|why| format!("the cluster's hosts cannot be listed: {why}"))
}

/// One line for everything.
fn lines(answers: &Answers) -> String {
    let mut lines = vec![match (&answers.no_cluster, answers.hosts) {
        (Some(why), _) => format!("hosts are not checked: {why}"),
        (None, hosts) => {
            format!("{} host(s) of this cluster are reported if they fail", hosts.unwrap_or_default())
        }
    }];
    let size = |of: &OfGroup| format!("group {}: {} host(s) now", of.group, of.hosts);
    // The group of all hosts was counted above.
    if answers.groups.len() > 1 {
        lines.extend(answers.groups.iter().map(size));
    }
    lines.extend(answers.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.extend(answers.unnamed.iter().map(|node| {
        format!("{node}: not checked: its full name is not in [hosts], and the parameters of fence_mark are not known here")
    }));
    lines.extend(answers.findings.iter().map(obstacle));
    lines.extend(answers.routes.iter().flat_map(of_route));
    lines.join("\n")
}

fn of_route(of: &OfRoute) -> Vec<String> {
    let OfRoute { route, driver, endpoint, asked, findings } = of;
    match (asked, findings.as_slice()) {
        (false, _) => {
            vec![format!(
                "{route}: not checked: only `send-test` shows whether the endpoint of this {driver} route takes messages"
            )]
        }
        (true, []) => {
            vec![format!("{route}: the endpoint {endpoint} is ready")]
        }
        (true, findings) => findings.iter().map(|one| format!("{route}: {}", obstacle(one))).collect(),
    }
}

fn obstacle(Obstacle { host, kind, detail }: &Obstacle) -> String {
    let host = host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default();
    format!("{host}{detail} ({kind})")
}
