//! Runs one test of this binary once more, with another environment: a process must not change its own.

use std::process::Stdio;

const TOLD: &str = "NOVA_HOST_ALERTER_TEST";

/// What the first run told this one; none in the first run.
pub(crate) fn told() -> Option<String> {
    std::env::var(TOLD).ok()
}

/// Runs the test `name` with `vars`, and fails if it fails.
pub(crate) async fn run(name: &str, tell: &str, vars: &[(&'static str, &str)]) {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).env(TOLD, tell).envs(vars.iter().copied()).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
