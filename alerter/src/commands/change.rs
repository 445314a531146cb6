//! `retry`, `mark`, `unmark`, `release` and `send-test`: they ask the daemon.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use marks::host::HostName;
use marks::id::MarkId;

use super::answer::{Usage, print};
use super::near::{self, Near};
use super::sources::{control, patient_control, wait_for};
use super::text;
use crate::cli::{self, Cli};
use crate::control::api::{
    ChangeAnswer, Daemon, HostAnswer, HostRequest, ReleaseRequest, RetryRequest, RouteStatus, TestAnswer,
    TestRequest, UnmarkRequest,
};
use crate::control::client::ClientError;

pub(super) fn mark(cli: &Cli, options: &cli::Mark) -> anyhow::Result<ExitCode> {
    ensure!(
        !options.reason.trim().is_empty(),
        Usage("a mark by hand needs a reason for the history".to_owned())
    );
    let answer = patch_host(cli, &options.host, true, &options.reason)?;
    let mark = answer.mark.clone().unwrap_or_default();
    print(cli, &answer, || format!("{} (mark {mark})", answer.message))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn unmark(cli: &Cli, options: &cli::Unmark) -> anyhow::Result<ExitCode> {
    let cli::Unmark { target, reason, returns } = options;
    ensure!(!reason.trim().is_empty(), Usage("unmark needs a reason for the history".to_owned()));
    // What is in flight ends by its mark's id alone: nobody knows what comes of it.
    if MarkId::parse(target).is_ok() {
        let (given, reason) = (target.clone(), reason.clone());
        let request = UnmarkRequest { target: given, returns: *returns, reason, user: operator() };
        return changed(cli, &known(cli, target, wait_for(control(cli).post("/v1/unmark", &request))?)?);
    }
    let advice = "--return needs the id of a mark: see `nova-host-alerter list --all`";
    ensure!(!returns, Usage(advice.to_owned()));
    let HostAnswer { changed: count, message, .. } = patch_host(cli, target, false, reason)?;
    // To the API a host without marks is as it should be; an operator who types a name means one that has some.
    if count == 0 && !near::is_known(cli, target) {
        return Err(Near::of(cli, target).into());
    }
    changed(cli, &ChangeAnswer { changed: count, message })
}

/// The answer; for a name that nobody knows the error has those that are like it.
fn known<T>(cli: &Cli, target: &str, answer: Result<T, ClientError>) -> anyhow::Result<T> {
    match answer {
        Err(ClientError::Refused { kind, .. }) if kind == "not-found" && !near::is_known(cli, target) => {
            Err(Near::of(cli, target).into())
        }
        answer => Ok(answer?),
    }
}

fn patch_host(cli: &Cli, host: &str, is_failure: bool, reason: &str) -> anyhow::Result<HostAnswer> {
    // What is no host name would be another path.
    let node = HostName::parse(host).map_err(|why| Usage(why.to_string()))?;
    let request = HostRequest { mark_unhealthy: is_failure, resource_status_reason: Some(reason.to_owned()) };
    let path = format!("/v1/hosts/{node}");
    Ok(wait_for(control(cli).patch(&path, &operator(), &request))??)
}

pub(super) fn release(cli: &Cli, options: &cli::Release) -> anyhow::Result<ExitCode> {
    let (target, group) = (options.target.clone(), options.group.clone());
    let request = ReleaseRequest { target, group, reason: options.reason.clone(), user: operator() };
    let answer = wait_for(control(cli).post("/v1/release", &request))?;
    changed(cli, &known(cli, options.target.as_deref().unwrap_or_default(), answer)?)
}

/// Of very many marks the daemon's own work takes a while, before anything is sent.
const ALL: Duration = Duration::from_secs(600);
pub(super) fn retry(cli: &Cli, options: &cli::Retry) -> anyhow::Result<ExitCode> {
    let reason = options.reason.clone().unwrap_or_default();
    let request = RetryRequest { target: options.target.clone(), reason, user: operator() };
    let answer = wait_for(patient_control(cli, ALL).post("/v1/retry", &request))?;
    changed(cli, &known(cli, options.target.as_deref().unwrap_or_default(), answer)?)
}

pub(super) fn changed(cli: &Cli, answer: &ChangeAnswer) -> anyhow::Result<ExitCode> {
    print(cli, answer, || answer.message.clone())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn send_test(cli: &Cli, options: &cli::SendTest) -> anyhow::Result<ExitCode> {
    let request = TestRequest {
        route: options.route.clone(),
        reason: options.reason.clone().unwrap_or_default(),
        user: operator(),
    };
    let asked = async {
        let daemon: Daemon = control(cli).get("/v1/status").await?;
        patient_control(cli, slowest(&daemon, options)).post("/v1/send-test", &request).await
    };
    let answers: Result<Vec<TestAnswer>, ClientError> = wait_for(asked)?;
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

/// The person behind sudo, where there is one.
pub(super) fn operator() -> String {
    let behind_sudo = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty());
    let uid = nix::unistd::getuid();
    let name = || nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    behind_sudo.or_else(name).unwrap_or_else(|| format!("uid {uid}"))
}
