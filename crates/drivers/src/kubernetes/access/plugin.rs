//! A credential plugin: a program that the kubeconfig names under `exec`, and what it prints.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};
use site::check_program;
use tokio::time::Instant;

use super::trouble::Trouble;
use crate::program::{self, End};

/// The limit of a run.
const LIMIT: Duration = Duration::from_secs(10);
/// The forms that a plugin may speak.
const FORMS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
/// Where a program without a path is searched.
const PLACES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The program. Its arguments and variables may be secret.
pub(super) struct Plugin {
    command: Vec<String>,
    variables: Vec<(String, String)>,
    form: &'static str,
}

/// What it printed.
pub(super) struct Credential {
    /// A token.
    pub(super) token: Option<SecretString>,
    /// A certificate and its key; PEM.
    pub(super) pair: Option<(String, SecretString)>,
    /// When both end; if unset, when they are refused.
    pub(super) end: Option<Timestamp>,
}

impl Plugin {
    /// Reads `exec` of a kubeconfig in this directory, and checks that nobody else can change the program.
    ///
    /// # Errors
    /// One sentence, without arguments and variables.
    pub(super) fn read(exec: &Value, directory: &Path) -> Result<Self, String> {
        let given = exec["apiVersion"].as_str().unwrap_or_default();
        let form = FORMS.into_iter().find(|form| *form == given).ok_or_else(|| {
            format!("has a wrong exec: apiVersion must be {} or {}: update the plugin", FORMS[0], FORMS[1])
        })?;
        supported(exec)?;
        let program = program(exec["command"].as_str().unwrap_or_default(), directory)?;
        check_program(&program).map_err(|why| format!("has a wrong exec: {}: {why}", program.display()))?;
        let program = program.to_str().ok_or("has a wrong exec: the path of command is no text")?.to_owned();
        let command = [program].into_iter().chain(arguments(exec)?).collect();
        Ok(Self { command, variables: variables(exec)?, form })
    }

    /// Its path.
    pub(super) fn program(&self) -> &str {
        &self.command[0]
    }

    /// Runs it, until `end` at most. What it prints is not shown: it may have a secret in it.
    pub(super) async fn run(&self, end: Instant) -> Result<Credential, Trouble> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Trouble::Late);
        }
        let info = json!({"kind": "ExecCredential", "apiVersion": self.form, "spec": {"interactive": false}});
        let info = ("KUBERNETES_EXEC_INFO".to_owned(), info.to_string());
        let variables: Vec<_> = self.variables.iter().cloned().chain([info]).collect();
        let ran = program::run_in(&variables, &self.command, &[], left.min(LIMIT)).await;
        let read = ended(&ran.end).and_then(|()| Credential::read(&ran.stdout, self.form));
        read.map_err(|why| Trouble::NoCredentials(self.wrong(&why)))
    }

    /// The same with the program before it.
    pub(super) fn wrong(&self, why: &str) -> String {
        format!("the credential plugin {} {why}: run it by hand as the kubeconfig has it", self.program())
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("program", &self.program()).finish_non_exhaustive()
    }
}

/// A plugin that asks a person, or that must know the server, would fail at the first mark.
fn supported(exec: &Value) -> Result<(), String> {
    let is = |key: &str, word: &str| exec[key].as_str().is_some_and(|text| text.eq_ignore_ascii_case(word));
    if is("interactiveMode", "Always") {
        return Err(
            "has a wrong exec: the plugin needs a terminal (interactiveMode): use another credential"
                .to_owned(),
        );
    }
    if is("provideClusterInfo", "true") {
        return Err(
            "has a wrong exec: provideClusterInfo is not supported: use a plugin that does not need it"
                .to_owned(),
        );
    }
    Ok(())
}

/// The program of `command`: a name alone is searched.
fn program(command: &str, directory: &Path) -> Result<PathBuf, String> {
    match command {
        "" => Err("has a wrong exec: there is no command: set it to the plugin's path".to_owned()),
        path if path.contains('/') => Ok(directory.join(path)),
        name => {
            let found = PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.exists());
            let all = PLACES.join(", ");
            found.ok_or_else(|| {
                format!("has a wrong exec: {name} is in none of {all}: set command to its whole path")
            })
        }
    }
}

fn arguments(exec: &Value) -> Result<Vec<String>, String> {
    let wrong = "has a wrong exec: args must be a list of texts";
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| wrong.to_owned());
    match &exec["args"] {
        Value::Null => Ok(Vec::new()),
        Value::Array(all) => all.iter().map(text).collect(),
        _ => Err(wrong.to_owned()),
    }
}

/// The variables. Without a value each is empty.
fn variables(exec: &Value) -> Result<Vec<(String, String)>, String> {
    let wrong = "has a wrong exec: env must be a list of entries with name and value";
    let entry = |entry: &Value| {
        let name = entry["name"].as_str().filter(|name| !name.is_empty() && !name.contains('='))?;
        Some((name.to_owned(), entry["value"].as_str().unwrap_or_default().to_owned()))
    };
    match &exec["env"] {
        Value::Null => Ok(Vec::new()),
        Value::Array(all) => all.iter().map(entry).collect::<Option<_>>().ok_or_else(|| wrong.to_owned()),
        _ => Err(wrong.to_owned()),
    }
}

/// Whether it ended well.
fn ended(end: &End) -> Result<(), String> {
    match end {
        End::Exit(0) => Ok(()),
        End::Exit(code) => Err(format!("ended with code {code}")),
        End::Signal(signal) => Err(format!("was ended by signal {signal}")),
        End::Timeout(limit) => Err(format!("did not end within {:.1} s", limit.as_secs_f32())),
        End::NotStarted { why, .. } => Err(format!("cannot be started ({why})")),
        End::Lost => Err("ended in an unknown way".to_owned()),
    }
}

impl Credential {
    /// Reads an `ExecCredential` of this form.
    ///
    /// # Errors
    /// One clause, without any part of it.
    fn read(printed: &[u8], form: &str) -> Result<Self, String> {
        let all: Value = serde_json::from_slice(printed).unwrap_or_default();
        if all["kind"] != "ExecCredential" || all["apiVersion"] != form {
            return Err(format!("printed no ExecCredential of {form}"));
        }
        let word = |key: &str| all["status"][key].as_str().filter(|word| !word.is_empty());
        let end = word("expirationTimestamp").map(str::parse).transpose();
        let end = end.map_err(|_| "printed an expirationTimestamp that is no time".to_owned())?;
        let token = word("token").map(SecretString::from);
        let pair = match (word("clientCertificateData"), word("clientKeyData")) {
            (Some(certificate), Some(key)) => Some((certificate.to_owned(), key.into())),
            (None, None) => None,
            _ => return Err("printed a certificate without its key, or a key alone".to_owned()),
        };
        match (&token, &pair) {
            (None, None) => Err("printed neither a token nor a certificate".to_owned()),
            _ => Ok(Self { token, pair, end }),
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn exec(more: Value) -> Value {
        let mut all = json!({"apiVersion": FORMS[0], "command": "/bin/sh"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    }

    fn why(more: Value) -> String {
        let why = Plugin::read(&exec(more), Path::new("/etc")).unwrap_err();
        assert!(!why.contains("s3kr1t"), "{why}");
        why
    }

    #[test]
    fn a_plugin_has_its_arguments_and_variables() {
        let args =
            json!({"args": ["-c", "s3kr1t"], "env": [{"name": "A", "value": "s3kr1t"}, {"name": "B"}]});
        let plugin = Plugin::read(&exec(args), Path::new("/etc")).unwrap();
        assert_eq!(plugin.command, ["/bin/sh", "-c", "s3kr1t"]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(plugin.variables, [pair("A", "s3kr1t"), pair("B", "")]);
        assert_eq!(format!("{plugin:?}"), "Plugin { program: \"/bin/sh\", .. }");
        for (command, found) in [("sh", "/bin/sh"), ("../bin/sh", "/etc/../bin/sh")] {
            let plugin = Plugin::read(&exec(json!({"command": command})), Path::new("/etc")).unwrap();
            assert!(plugin.program().ends_with(found), "{plugin:?}");
        }
        let older = Plugin::read(&exec(json!({"apiVersion": FORMS[1]})), Path::new("/"));
        assert_eq!(older.unwrap().form, FORMS[1]);
    }

    #[test]
    fn what_is_wrong_with_a_plugin_has_its_sentence() {
        for (more, expected) in [
            (json!({"apiVersion": "client.authentication.k8s.io/v1alpha1"}), "apiVersion must be"),
            (json!({"command": ""}), "there is no command"),
            (json!({"command": "no-such-program"}), "is in none of /usr/local/bin, /usr/bin, /bin"),
            (json!({"command": "./none"}), "/etc/./none: it cannot be read"),
            (json!({"args": "s3kr1t"}), "args must be a list"),
            (json!({"args": [["s3kr1t"]]}), "args must be a list"),
            (json!({"env": [{"value": "s3kr1t"}]}), "env must be a list"),
            (json!({"env": {"A": "s3kr1t"}}), "env must be a list"),
            (json!({"interactiveMode": "Always"}), "needs a terminal"),
            (json!({"provideClusterInfo": "true"}), "provideClusterInfo is not supported"),
        ] {
            let why = why(more);
            assert!(why.starts_with("has a wrong exec: ") && why.contains(expected), "{why}");
        }
    }

    /// Anybody could put another program there. The broken variant runs what is found.
    #[test]
    fn a_program_that_others_can_exchange_is_not_run() {
        let room = tempfile::tempdir_in("/tmp").unwrap();
        let program = room.path().join("plugin");
        std::fs::write(&program, "").unwrap();
        let command = json!({"command": program.to_str().unwrap()});
        assert!(why(command).contains("everybody may put files into"));
    }

    #[test]
    fn what_a_plugin_prints_is_read_strictly() {
        let with = |status: Value| {
            json!({"kind": "ExecCredential", "apiVersion": FORMS[0], "status": status}).to_string()
        };
        let read = |text: &str| Credential::read(text.as_bytes(), FORMS[0]);
        let whole = read(&with(json!({"token": "t", "expirationTimestamp": "2026-07-21T00:00:00Z",
            "clientCertificateData": "c", "clientKeyData": "k"})))
        .unwrap();
        assert_eq!(whole.token.unwrap().expose_secret(), "t");
        assert_eq!(whole.pair.unwrap().0, "c");
        assert_eq!(whole.end, Some("2026-07-21T00:00:00Z".parse().unwrap()));
        for (text, expected) in [
            (String::new(), "no ExecCredential"),
            (with(json!({"token": "s3kr1t"})).replace("v1\"", "v1beta1\""), "no ExecCredential"),
            (with(json!({"token": "s3kr1t", "expirationTimestamp": "s3kr1t"})), "is no time"),
            (with(json!({"clientKeyData": "s3kr1t"})), "a key alone"),
            (with(json!({})), "neither a token nor a certificate"),
            (with(json!({"token": ""})), "neither a token nor a certificate"),
        ] {
            let Err(why) = read(&text) else { panic!("{text}") };
            assert!(why.contains(expected) && !why.contains("s3kr1t"), "{why}");
        }
    }
}
