//! `retry`, `mark`, `unmark`, `release` and `send-test`: they ask the daemon.

use std::process::ExitCode;
use std::time::Duration;

use marks::host::HostName;
use marks::id::MarkId;
use serde_json::json;

use super::{control, patient_control, print_json, println_all, text, wait_for};
use crate::cli::{self, Cli};
use crate::control::api::{
    ChangeAnswer, Daemon, HostAnswer, HostRequest, ReleaseRequest, RetryRequest, RouteStatus, TestAnswer,
    TestRequest, UnmarkRequest,
};
use crate::control::client::ClientError;

pub(super) fn mark(cli: &Cli, options: &cli::Mark) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        !options.reason.trim().is_empty(),
        "a mark by hand needs a reason: it stands in the history"
    );
    let answer = patch_host(cli, &options.host, true, &options.reason)?;
    let mark = answer.mark.unwrap_or_default();
    if cli.json {
        print_json(&json!({ "mark": mark, "new": answer.new, "message": answer.message }))?;
    } else {
        println_all(&format!("{} (mark {mark})", answer.message));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is under way can be ended by its id alone: nobody knows what comes of it.
pub(super) fn unmark(cli: &Cli, options: &cli::Unmark) -> anyhow::Result<ExitCode> {
    let cli::Unmark { target, reason } = options;
    if MarkId::parse(target).is_ok() {
        let request = UnmarkRequest { target: target.clone(), reason: reason.clone(), user: operator() };
        return changed(cli, wait_for(control(cli).post("/v1/unmark", &request))??);
    }
    let HostAnswer { changed: count, message, .. } = patch_host(cli, target, false, reason)?;
    changed(cli, ChangeAnswer { changed: count, message })
}

fn patch_host(cli: &Cli, host: &str, is_failure: bool, reason: &str) -> anyhow::Result<HostAnswer> {
    // What is no host name would be another path.
    let node = HostName::parse(host)?;
    let request = HostRequest { mark_unhealthy: is_failure, resource_status_reason: Some(reason.to_owned()) };
    let path = format!("/v1/hosts/{node}");
    Ok(wait_for(control(cli).patch(&path, &operator(), &request))??)
}

pub(super) fn release(cli: &Cli, options: &cli::Release) -> anyhow::Result<ExitCode> {
    let (target, group) = (options.target.clone(), options.group.clone());
    let request = ReleaseRequest { target, group, reason: options.reason.clone(), user: operator() };
    changed(cli, wait_for(control(cli).post("/v1/release", &request))??)
}

pub(super) fn retry(cli: &Cli, options: &cli::Retry) -> anyhow::Result<ExitCode> {
    let request = RetryRequest { target: options.target.clone(), user: operator() };
    changed(cli, wait_for(control(cli).post("/v1/retry", &request))??)
}

pub(super) fn changed(cli: &Cli, answer: ChangeAnswer) -> anyhow::Result<ExitCode> {
    if cli.json {
        print_json(&answer)?;
    } else {
        println_all(&answer.message);
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn send_test(cli: &Cli, options: &cli::SendTest) -> anyhow::Result<ExitCode> {
    let request = TestRequest { route: options.route.clone(), notice: options.notice.clone() };
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

/// The longest that any driver allows for one exchange.
const LONGEST: Duration = Duration::from_secs(300);

/// The longest that a route may take of those that are asked. The daemon does not say it of notice targets.
fn slowest(daemon: &Daemon, options: &cli::SendTest) -> Duration {
    if options.notice.is_some() {
        return LONGEST;
    }
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
            groups: Vec::new(),
            orders: Vec::new(),
        };
        let wait = |name: Option<&str>| {
            slowest(&daemon, &cli::SendTest { route: name.map(str::to_owned), notice: None }).as_secs()
        };
        assert_eq!([None, Some("slow"), Some("fast"), Some("none")].map(wait), [300, 300, 5, 0]);
    }
}
