//! `retry`, `mark`, `unmark`, `release` and `send-test`: they ask the daemon.

use std::process::ExitCode;

use super::{control, print_json, println_all, text, wait_for};
use crate::cli::{self, Cli};
use crate::control::api::{
    ChangeAnswer, MarkAnswer, MarkRequest, ReleaseRequest, RetryRequest, TestAnswer, TestRequest,
    UnmarkRequest,
};

pub(super) fn mark(cli: &Cli, options: &cli::Mark) -> anyhow::Result<ExitCode> {
    let request = MarkRequest {
        host: options.host.clone(),
        fenced: options.fenced,
        reason: options.reason.clone(),
        user: operator(),
    };
    let answer: MarkAnswer = wait_for(control(cli).post("/v1/mark", &request))??;
    if cli.json {
        print_json(&answer)?;
    } else {
        println_all(&format!("{} (mark {})", answer.message, answer.mark));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn unmark(cli: &Cli, options: &cli::Unmark) -> anyhow::Result<ExitCode> {
    let request =
        UnmarkRequest { target: options.target.clone(), reason: options.reason.clone(), user: operator() };
    changed(cli, wait_for(control(cli).post("/v1/unmark", &request))??)
}

pub(super) fn release(cli: &Cli, options: &cli::Release) -> anyhow::Result<ExitCode> {
    let request =
        ReleaseRequest { target: options.target.clone(), reason: options.reason.clone(), user: operator() };
    changed(cli, wait_for(control(cli).post("/v1/release", &request))??)
}

pub(super) fn retry(cli: &Cli, options: &cli::Retry) -> anyhow::Result<ExitCode> {
    let request = RetryRequest { target: options.target.clone(), user: operator() };
    changed(cli, wait_for(control(cli).post("/v1/retry", &request))??)
}

fn changed(cli: &Cli, answer: ChangeAnswer) -> anyhow::Result<ExitCode> {
    if cli.json {
        print_json(&answer)?;
    } else {
        println_all(&answer.message);
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn send_test(cli: &Cli, options: &cli::SendTest) -> anyhow::Result<ExitCode> {
    let request = TestRequest { route: options.route.clone(), notice: options.notice.clone() };
    let answers: Vec<TestAnswer> = wait_for(control(cli).post("/v1/send-test", &request))??;
    if cli.json {
        print_json(&answers)?;
    } else {
        let line = |a: &TestAnswer| vec![a.route.clone(), a.kind.clone(), a.detail.clone()];
        println_all(&text::table(&answers.iter().map(line).collect::<Vec<_>>()));
    }
    Ok(if answers.iter().all(|a| a.accepted) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The person behind sudo, where there is one.
fn operator() -> String {
    let behind_sudo = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty());
    let uid = nix::unistd::getuid();
    let name = || nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    behind_sudo.or_else(name).unwrap_or_else(|| format!("uid {uid}"))
}
