//! The users of the server, and the files by which somebody speaks as one of them.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::papers::{CA, secret};

/// Somebody whom the server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// May do everything.
    Admin,
    /// Has the rights of `packaging/kubernetes/taint.yaml`, and so on.
    Taint,
    /// `condition.yaml`
    Condition,
    /// `annotate.yaml`
    Annotate,
    /// `remediation-cluster-api.yaml`
    Remediation,
    /// Has no rights beyond those of everybody.
    Nothing,
}

/// All of them.
pub const ALL: [Who; 6] =
    [Who::Admin, Who::Taint, Who::Condition, Who::Annotate, Who::Remediation, Who::Nothing];

impl Who {
    /// The user's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Taint => "alerter-taint",
            Self::Condition => "alerter-condition",
            Self::Annotate => "alerter-annotate",
            Self::Remediation => "alerter-remediation",
            Self::Nothing => "alerter-nothing",
        }
    }

    /// The file of `packaging/kubernetes` whose rights the user has, without its ending.
    #[must_use]
    pub fn rights(self) -> Option<&'static str> {
        match self {
            Self::Admin | Self::Nothing => None,
            Self::Taint => Some("taint"),
            Self::Condition => Some("condition"),
            Self::Annotate => Some("annotate"),
            Self::Remediation => Some("remediation-cluster-api"),
        }
    }

    /// A line of the server's file of tokens.
    fn line(self, generation: u32) -> String {
        let groups = if self == Self::Admin { ",system:masters" } else { "" };
        format!("{},{},{}{groups}\n", self.token(generation), self.name(), self.name())
    }

    /// A token of this generation.
    pub(super) fn token(self, generation: u32) -> String {
        format!("s3kr1t-{}-{generation}", self.name())
    }
}

/// Writes the server's file of tokens. Only the administrator's token is always the same.
pub(super) fn write_tokens(file: &Path, generation: u32) -> anyhow::Result<()> {
    let line = |who: Who| who.line(if who == Who::Admin { 0 } else { generation });
    secret(file, &ALL.map(line).concat())
}

/// How somebody shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// A token in the kubeconfig.
    Token,
    /// A token in a file beside it, named relative to it; a wrong token stands in the kubeconfig.
    TokenFile,
    /// A certificate in files.
    Certificate,
    /// A certificate in the kubeconfig.
    EmbeddedCertificate,
}

/// Writes a kubeconfig, as kubectl would, into this directory. Its context `elsewhere` leads to where nobody listens.
pub(super) fn write_kubeconfig(
    directory: &Path,
    room: &Path,
    url: &str,
    (who, login): (Who, Login),
    token: &str,
) -> anyhow::Result<PathBuf> {
    let user = user(directory, room, login, token)?;
    let name = who.name();
    let ca = encoded(&fs::read(room.join(CA))?);
    let text = format!(
        "apiVersion: v1
kind: Config
preferences: {{}}
current-context: lab
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: {url}
  name: lab
- cluster:
    insecure-skip-tls-verify: true
    server: https://127.0.0.1:1
  name: elsewhere
contexts:
- context:
    cluster: lab
    user: {name}
  name: lab
- context:
    cluster: elsewhere
    user: {name}
  name: elsewhere
users:
- name: {name}
  user:
{user}"
    );
    let path = directory.join("kubeconfig");
    secret(&path, &text)?;
    Ok(path)
}

fn user(directory: &Path, room: &Path, login: Login, token: &str) -> anyhow::Result<String> {
    let [certificate, key] = ["client.crt", "client.key"].map(|name| room.join(name));
    Ok(match login {
        Login::Token => format!("    token: {token}\n"),
        Login::TokenFile => {
            secret(&directory.join("token"), token)?;
            "    token: wrong\n    tokenFile: token\n".to_owned()
        }
        Login::Certificate => {
            format!("    client-certificate: {}\n    client-key: {}\n", certificate.display(), key.display())
        }
        Login::EmbeddedCertificate => format!(
            "    client-certificate-data: {}\n    client-key-data: {}\n",
            encoded(&fs::read(certificate)?),
            encoded(&fs::read(key)?)
        ),
    })
}

fn encoded(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}
