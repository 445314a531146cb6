//! Runs one test of this binary once more, with another environment: a process must not change its own.

use std::process::Stdio;

const ARGUMENT: &str = "NOVA_HOST_ALERTER_TEST";

/// What the first run gave this one; none in the first run.
pub(crate) fn argument() -> Option<String> {
    std::env::var(ARGUMENT).ok()
}

/// Runs the test `name` with `vars`, and fails if it fails.
pub(crate) async fn run(name: &str, argument: &str, vars: &[(&'static str, &str)]) {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).env(ARGUMENT, argument).envs(vars.iter().copied()).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
