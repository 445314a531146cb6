//! `retry`, `mark`, `unmark`, `release` and `send-test`: they ask the daemon.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use marks::host::HostName;
use marks::id::MarkId;

use super::answer::{Usage, print, say};
use super::sources::{control, patient_control, wait_for};
use super::text;
use crate::cli::{self, Cli};
use crate::control::api::{ChangeAnswer, Daemon, HostAnswer, HostRequest, Request, RouteStatus, TestAnswer};
use crate::control::client::{self, Said};

pub(super) fn mark(cli: &Cli, options: &cli::Mark) -> anyhow::Result<ExitCode> {
    ensure!(
        !options.reason.trim().is_empty(),
        Usage("a mark by hand needs a reason for the history".to_owned())
    );
    let answer = patch_host(cli, &options.host, (true, options.insist), &options.reason)?;
    let mark = answer.mark.clone().unwrap_or_default();
    print(cli, &answer, || format!("{} (mark {mark})", answer.message))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn unmark(cli: &Cli, options: &cli::Unmark) -> anyhow::Result<ExitCode> {
    let cli::Unmark { target, reason, returns } = options;
    ensure!(!reason.trim().is_empty(), Usage("unmark needs a reason for the history".to_owned()));
    // What is in flight ends by its mark's id alone: nobody knows what comes of it.
    if MarkId::parse(target).is_ok() {
        let of = Some(target.clone());
        return change(
            cli,
            "/v1/unmark",
            &Request { target: of, returns: *returns, ..Request::because(reason) },
        );
    }
    let advice = "--return needs the id of a mark: see `nova-host-alerter list --all`";
    ensure!(!returns, Usage(advice.to_owned()));
    let HostAnswer { changed: count, message, .. } = patch_host(cli, target, (false, false), reason)?;
    // To the API a host without marks is as it should be; an operator who types a name means one that has some.
    ensure!(count > 0, message);
    changed(cli, &ChangeAnswer { changed: count, message })
}

fn patch_host(
    cli: &Cli,
    host: &str,
    (is_failure, insist): (bool, bool),
    reason: &str,
) -> anyhow::Result<HostAnswer> {
    // What is no host name would be another path.
    let node = HostName::parse(host).map_err(|why| Usage(why.to_string()))?;
    let request = HostRequest { mark_unhealthy: is_failure, resource_status_reason: Some(reason.to_owned()) };
    let path = format!("/v1/hosts/{node}?insist={insist}");
    let daemon = control(cli);
    said_of(&daemon, daemon.patch(&path, &request))
}

/// What the daemon answers. What the other controllers do not know yet would be undone if this one failed now.
pub(super) fn said_of<T>(
    daemon: &client::Daemon,
    answer: impl Future<Output = Said<T>>,
) -> anyhow::Result<T> {
    let answer = wait_for(answer)??;
    if daemon.has_accepted_alone() {
        say(NOT_YET_KNOWN, &mut io::stderr());
    }
    Ok(answer)
}

const NOT_YET_KNOWN: &str = "nova-host-alerter: not yet known to the other controllers, since it does not stand in the register: `nova-host-alerter status` says why\n";

pub(super) fn release(cli: &Cli, options: &cli::Release) -> anyhow::Result<ExitCode> {
    let (target, group) = (options.target.clone(), options.group.clone());
    let insist = options.insist;
    change(cli, "/v1/release", &Request { target, group, insist, ..Request::because(&options.reason) })
}

/// Of very many marks the daemon's own work takes a while, before anything is sent.
const ALL: Duration = Duration::from_secs(600);

pub(super) fn retry(cli: &Cli, options: &cli::Retry) -> anyhow::Result<ExitCode> {
    let reason = options.reason.as_deref().unwrap_or_default();
    let request = Request { target: options.target.clone(), ..Request::because(reason) };
    changed(cli, &wait_for(patient_control(cli, ALL).post("/v1/retry", &request))??)
}

/// Asks the daemon for it, and says what has come of it.
pub(super) fn change(cli: &Cli, path: &str, request: &Request) -> anyhow::Result<ExitCode> {
    let daemon = control(cli);
    changed(cli, &said_of(&daemon, daemon.post(path, request))?)
}

fn changed(cli: &Cli, answer: &ChangeAnswer) -> anyhow::Result<ExitCode> {
    print(cli, answer, || answer.message.clone())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn send_test(cli: &Cli, options: &cli::SendTest) -> anyhow::Result<ExitCode> {
    let reason = options.reason.as_deref().unwrap_or_default();
    let request = Request { route: options.route.clone(), ..Request::because(reason) };
    let asked = async {
        let daemon: Daemon = control(cli).get("/v1/status").await?;
        patient_control(cli, slowest(&daemon, options)).post("/v1/send-test", &request).await
    };
    let answers: Said<Vec<TestAnswer>> = wait_for(asked)?;
    let answers = answers?;
    let line = |a: &TestAnswer| vec![a.route.clone(), a.kind.clone(), a.detail.clone()];
    print(cli, &answers, || text::table(&answers.iter().map(line).collect::<Vec<_>>()))?;
    Ok(if answers.iter().all(|a| a.accepted) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The longest that one of the asked routes may take.
fn slowest(daemon: &Daemon, options: &cli::SendTest) -> Duration {
    let is_asked = |route: &&RouteStatus| options.route.as_ref().is_none_or(|name| *name == route.name);
    let limits = daemon.routes.iter().filter(is_asked).map(|route| route.limit_ms);
    Duration::from_millis(limits.max().unwrap_or_default())
}
