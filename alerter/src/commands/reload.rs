//! `reload` and `dismiss --route`: they ask the daemon.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use super::answer::{NOT_NOW, WRONG_CONFIGURATION, print};
use super::change::change;
use super::sources::{patient_control, wait_for};
use crate::cli::{self, Cli};
use crate::control::api::{ReloadAnswer, Request};

/// What the engine may be in the middle of.
const LONGER: Duration = Duration::from_secs(30);

/// The daemon reads the file that is named here, which may be another than that of its start.
pub(super) fn reload(cli: &Cli, options: &cli::Reload) -> anyhow::Result<ExitCode> {
    let file = absolute(&cli.config)?;
    let reason = options.reason.as_deref().unwrap_or_default();
    let request = Request { file: Some(file), ..Request::because(reason) };
    let answer: ReloadAnswer = wait_for(patient_control(cli, LONGER).post("/v1/reload", &request))??;
    print(cli, &answer, || text(&answer))?;
    Ok(ExitCode::from(code(&answer)))
}

fn code(answer: &ReloadAnswer) -> u8 {
    match answer {
        ReloadAnswer { reloaded: true, .. } => 0,
        ReloadAnswer { busy: true, .. } => NOT_NOW,
        ReloadAnswer { .. } => WRONG_CONFIGURATION,
    }
}

/// As it is named, without following links: a link may lead elsewhere at the next reload.
fn absolute(file: &Path) -> anyhow::Result<String> {
    let file = std::path::absolute(file).context("the path of the configuration cannot be found")?;
    file.into_os_string().into_string().ok().context("the path of the configuration is not valid text")
}

fn text(answer: &ReloadAnswer) -> String {
    let lines = |head: &str, lines: &[String]| format!("{head}\n{}", lines.join("\n"));
    match answer {
        ReloadAnswer { busy: true, problems, .. } => {
            lines("nothing has changed: run this again when this problem is solved", problems)
        }
        ReloadAnswer { reloaded: false, problems, .. } => {
            lines("nothing has changed: the former configuration stays in force", problems)
        }
        ReloadAnswer { changes, .. } if changes.is_empty() => {
            "the configuration is valid and in force already: nothing has changed".to_owned()
        }
        ReloadAnswer { changes, .. } => lines("the new configuration is in force", changes),
    }
}

pub(super) fn dismiss(cli: &Cli, options: &cli::Dismiss) -> anyhow::Result<ExitCode> {
    let route = Some(options.route.clone());
    change(cli, "/v1/dismiss", &Request { route, ..Request::because(&options.reason) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant always ends with 78: Pacemaker and scripts take a busy journal for a wrong file.
    #[test]
    fn each_outcome_has_its_code_and_its_head() {
        let of = |reloaded, busy| {
            let problems = vec!["the journal is busy".to_owned()];
            let answer = ReloadAnswer { reloaded, changes: Vec::new(), problems, busy };
            (code(&answer), text(&answer).lines().next().unwrap_or_default().to_owned())
        };
        assert_eq!(
            of(true, false),
            (0, "the configuration is valid and in force already: nothing has changed".to_owned())
        );
        let again = "nothing has changed: run this again when this problem is solved";
        assert_eq!(of(false, true), (75, again.to_owned()));
        assert_eq!(of(false, false).0, 78);
    }
}
