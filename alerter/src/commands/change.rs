//! `retry`, `mark`, `unmark`, `release` and `send-test`: they ask the daemon.

use std::process::ExitCode;
use std::time::Duration;

use super::{control, patient_control, print_json, println_all, text, wait_for};
use crate::cli::{self, Cli};
use crate::control::api::{
    ChangeAnswer, Daemon, MarkAnswer, MarkRequest, ReleaseRequest, RetryRequest, RouteStatus, TestAnswer,
    TestRequest, UnmarkRequest,
};
use crate::control::client::ClientError;

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
    let request = TestRequest { route: options.route.clone() };
    let asked = async {
        let daemon: Daemon = control(cli).get("/v1/status").await?;
        patient_control(cli, slowest(&daemon, options)).post("/v1/send-test", &request).await
    };
    let answers: Result<Vec<TestAnswer>, ClientError> = wait_for(asked)?;
    let answers = answers?;
    if cli.json {
        print_json(&answers)?;
    } else {
        let line = |a: &TestAnswer| vec![a.route.clone(), a.kind.clone(), a.detail.clone()];
        println_all(&text::table(&answers.iter().map(line).collect::<Vec<_>>()));
    }
    Ok(if answers.iter().all(|a| a.accepted) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The longest that a route may take of those that are asked.
fn slowest(daemon: &Daemon, options: &cli::SendTest) -> Duration {
    let is_asked = |route: &&RouteStatus| options.route.as_ref().is_none_or(|name| *name == route.name);
    let limits = daemon.routes.iter().filter(is_asked).map(|route| route.limit_ms);
    Duration::from_millis(limits.max().unwrap_or_default())
}

/// The person behind sudo, where there is one.
fn operator() -> String {
    let behind_sudo = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty());
    let uid = nix::unistd::getuid();
    let name = || nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    behind_sudo.or_else(name).unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::api::Health;

    fn route(name: &str, seconds: u64) -> RouteStatus {
        RouteStatus {
            name: name.into(),
            driver: "exec".into(),
            endpoint: "/bin/true".into(),
            required: true,
            limit_ms: seconds * 1000,
            waiting: 0,
            failing_since: None,
            failure: None,
            detail: None,
        }
    }

    /// The broken variant waits for all alike: the slowest route there can be takes 300 s.
    #[test]
    fn a_test_message_is_waited_for_as_long_as_its_route_may_take() {
        let daemon = Daemon {
            version: String::new(),
            pid: 1,
            controller: "ctl1".into(),
            health: Health { healthy: true, degraded: false, reasons: Vec::new() },
            routes: vec![route("fast", 5), route("slow", 300)],
            cluster: None,
        };
        let wait = |name: Option<&str>| {
            slowest(&daemon, &cli::SendTest { route: name.map(str::to_owned) }).as_secs()
        };
        assert_eq!([None, Some("slow"), Some("fast"), Some("none")].map(wait), [300, 300, 5, 0]);
    }
}
