//! Requests of a test's own, by curl: for what kubectl has no command.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// No answer takes longer.
const PATIENCE: &str = "60";

/// One request.
pub(super) struct Ask {
    method: &'static str,
    path: String,
    body: Value,
}

impl Ask {
    pub(super) fn post(path: &str, body: Value) -> Self {
        Self { method: "POST", path: path.to_owned(), body }
    }

    pub(super) fn merge(path: &str, body: Value) -> Self {
        Self { method: "PATCH", path: path.to_owned(), body }
    }

    /// As curl reads it from a file.
    fn lines(&self, url: &str, ca: &Path, token: &str) -> String {
        let kind = if self.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let words = [
            ("url", format!("{url}{}", self.path)),
            ("request", self.method.to_owned()),
            ("cacert", ca.display().to_string()),
            ("header", format!("Authorization: Bearer {token}")),
            ("header", format!("Content-Type: {kind}")),
            ("data-binary", self.body.to_string()),
            ("max-time", PATIENCE.to_owned()),
            ("write-out", "\\n".to_owned()),
        ];
        let line = |(key, value): (&str, String)| {
            // Its own escapes: what is meant as such has them already.
            let value = if key == "write-out" { value } else { escaped(&value) };
            format!("{key} = \"{value}\"\n")
        };
        words.into_iter().map(line).chain(["fail-with-body\n".to_owned()]).collect()
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Sends all by this curl, one after the other, until one fails; gives the answers.
pub(super) fn send(
    mut command: Command,
    all: &[Ask],
    url: &str,
    ca: &Path,
    token: &str,
) -> anyhow::Result<Vec<Value>> {
    command.args(["--silent", "--show-error", "--fail-early", "--noproxy", "*", "--config", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut curl = command.spawn().context("curl")?;
    let config: Vec<String> = all.iter().map(|ask| ask.lines(url, ca, token)).collect();
    let mut stdin = curl.stdin.take().context("no pipe to curl")?;
    let writing = std::thread::spawn(move || stdin.write_all(config.join("next\n").as_bytes()));
    let ended = curl.wait_with_output()?;
    writing.join().ok().context("curl's input")??;
    let said = String::from_utf8(ended.stdout)?;
    if !ended.status.success() {
        bail!("{}{}", String::from_utf8_lossy(&ended.stderr), said.lines().last().unwrap_or_default());
    }
    let answers = serde_json::Deserializer::from_str(&said).into_iter();
    Ok(answers.collect::<Result<_, _>>()?)
}
