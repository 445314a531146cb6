//! Requests of a test's own to the services: to prepare what a driver is to find, and to check what it did.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::seed::{ADMIN, PROJECT};

/// An engine may have to start its first work.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody's token, and the project that it is for.
#[derive(Clone)]
pub struct Token {
    /// What is shown to the services.
    pub value: String,
    /// The project's id.
    pub project: String,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Said {
    /// The status.
    pub status: u16,
    /// The body; null where it is no JSON.
    pub body: Value,
    head: String,
}

impl Said {
    /// The body of an answer that is as wanted.
    ///
    /// # Errors
    /// It has another status.
    pub fn expect(self, status: u16) -> anyhow::Result<Value> {
        ensure!(self.status == status, "expected {status}, but: {} {}", self.status, self.body);
        Ok(self.body)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.head.lines().filter_map(|line| line.split_once(':'));
        pairs.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// A token of the administrator.
pub(super) fn token(keystone: SocketAddr) -> anyhow::Result<Token> {
    let domain = json!({"name": "Default"});
    let user = json!({"name": ADMIN.0, "password": ADMIN.1, "domain": domain});
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"name": PROJECT, "domain": domain}},
    }});
    let said = ask(keystone, "POST /v3/auth/tokens", &[], Some(&body))?;
    let value = said.header("X-Subject-Token").context("Keystone gives no token")?.to_owned();
    let project = said.body["token"]["project"]["id"].as_str().context("a token of no project")?.to_owned();
    Ok(Token { value, project })
}

/// One request: its method and path, further headers, and a body.
pub(super) fn ask(
    service: SocketAddr,
    what: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> anyhow::Result<Said> {
    let body = body.map(Value::to_string).unwrap_or_default();
    // HTTP/1.0: neither chunks nor a connection that is kept.
    let mut request = format!("{what} HTTP/1.0\r\nHost: {service}\r\nAccept: application/json\r\n");
    for (key, value) in headers {
        request.push_str(&format!("{key}: {value}\r\n"));
    }
    if !body.is_empty() {
        request.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
    }
    let mut stream = TcpStream::connect(service)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{request}\r\n{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) =
        answer.split_once("\r\n\r\n").with_context(|| format!("{what}: no answer: {answer:?}"))?;
    let status =
        head.split(' ').nth(1).and_then(|word| word.parse().ok()).context("an answer without a status")?;
    Ok(Said { status, body: serde_json::from_str(body).unwrap_or_default(), head: head.to_owned() })
}
