//! The exchange with Keystone as data: the request and the answer. Pure.

use std::fmt;
use std::time::Duration;

use marks::time::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalog::{Found, Offer};
use super::credentials::{Application, Credentials, Domain, Named, Scope};

/// A token is used only if it is valid for this much longer.
const REST: Duration = Duration::from_secs(120);

/// The body that asks for a token. It holds the secret.
pub(super) fn request(credentials: &Credentials) -> Vec<u8> {
    let auth = match credentials {
        Credentials::Password { user, password, scope } => {
            let mut user = named(user);
            user["password"] = password.expose_secret().into();
            json!({ "identity": { "methods": ["password"], "password": { "user": user } }, "scope": of_scope(scope) })
        }
        // Without a scope: an application credential has its own, and Keystone answers 401 to another.
        Credentials::Application { which, secret } => {
            let mut application = match which {
                Application::Id(id) => json!({ "id": id }),
                Application::Name(name, user) => json!({ "name": name, "user": named(user) }),
            };
            application["secret"] = secret.expose_secret().into();
            json!({ "identity": { "methods": ["application_credential"], "application_credential": application } })
        }
    };
    json!({ "auth": auth }).to_string().into_bytes()
}

fn of_scope(scope: &Scope) -> Value {
    match scope {
        Scope::Project(project) => json!({ "project": named(project) }),
        Scope::System => json!({ "system": { "all": true } }),
    }
}

fn named(named: &Named) -> Value {
    match named {
        Named::Id(id) => json!({ "id": id }),
        Named::Name(name, Domain::Id(id)) => json!({ "name": name, "domain": { "id": id } }),
        Named::Name(name, Domain::Name(domain)) => json!({ "name": name, "domain": { "name": domain } }),
    }
}

/// A token of Keystone.
pub(super) struct Token {
    /// The token itself.
    pub(super) value: SecretString,
    /// How long it may be used after its issue.
    pub(super) use_for: Duration,
    /// Where the services are.
    pub(super) found: Found,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("use_for", &self.use_for).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Answer {
    token: Described,
}

#[derive(Deserialize)]
struct Described {
    expires_at: String,
    issued_at: String,
    project: Option<Project>,
    #[serde(default)]
    catalog: Vec<Offer>,
}

#[derive(Deserialize)]
struct Project {
    id: String,
}

/// Why an answer has no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Its body was cut off. If HTTP does not know the length, only this shows it.
    CutOff,
    /// A clause without any part of the answer.
    Wrong(&'static str),
}

/// Reads the answer with a token: the header, and the body.
///
/// # Errors
/// It has no token.
pub(super) fn read(header: Option<&str>, body: &[u8]) -> Result<Token, Unread> {
    let wrong = Unread::Wrong;
    let value = header.filter(|value| !value.is_empty()).ok_or(wrong("gave no X-Subject-Token"))?;
    let body = described(body)?;
    if body.catalog.is_empty() {
        return Err(wrong("gave a token that knows no service: the user has no role on a project"));
    }
    let use_for =
        use_for(&body.issued_at, &body.expires_at).ok_or(wrong("did not say when its token expires"))?;
    let found = Found { project: body.project.map(|project| project.id), catalog: body.catalog };
    Ok(Token { value: value.into(), use_for, found })
}

fn described(body: &[u8]) -> Result<Described, Unread> {
    match serde_json::from_slice::<Answer>(body) {
        Ok(answer) => Ok(answer.token),
        Err(why) if why.is_eof() => Err(Unread::CutOff),
        Err(_) => Err(Unread::Wrong("gave a token without its description")),
    }
}

/// Both times are of Keystone's own clock, which may differ from ours. A token with a short life is used for half of it.
fn use_for(issued: &str, expires: &str) -> Option<Duration> {
    let (issued, expires) = (Timestamp::parse(issued).ok()?, Timestamp::parse(expires).ok()?);
    let life = (issued <= expires).then(|| expires.since(issued))?;
    Some(life.saturating_sub(REST).max(life / 2))
}

#[cfg(test)]
mod tests {
    use super::super::words::Words;
    use super::*;

    fn credentials(words: &[(&str, &str)]) -> Credentials {
        let words: Words = words.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        Credentials::read(&words).unwrap()
    }

    fn asked(words: &[(&str, &str)]) -> Value {
        serde_json::from_slice(&request(&credentials(words))).unwrap()
    }

    #[test]
    fn a_password_comes_with_its_scope() {
        let words = [
            ("auth.username", "alerter"),
            ("auth.user_domain_name", "Default"),
            ("auth.password", "p\"w"),
            ("auth.project_name", "ops"),
            ("auth.project_domain_id", "default"),
        ];
        assert_eq!(
            asked(&words),
            json!({"auth": {
                "identity": {"methods": ["password"], "password": {"user":
                    {"name": "alerter", "domain": {"name": "Default"}, "password": "p\"w"}}},
                "scope": {"project": {"name": "ops", "domain": {"id": "default"}}}}})
        );
        let system = [("auth.user_id", "u"), ("auth.password", "p"), ("auth.system_scope", "all")];
        assert_eq!(asked(&system)["auth"]["scope"], json!({"system": {"all": true}}));
    }

    /// Keystone answers 401 to an application credential with a scope, also if the file names a project.
    #[test]
    fn an_application_credential_comes_without_a_scope() {
        let secret = ("auth.application_credential_secret", "s");
        let by_id = [secret, ("auth.application_credential_id", "i"), ("auth.project_name", "ops")];
        assert_eq!(
            asked(&by_id),
            json!({"auth": {"identity": {"methods": ["application_credential"],
                "application_credential": {"id": "i", "secret": "s"}}}})
        );
        let by_name = [
            secret,
            ("auth.application_credential_name", "n"),
            ("auth.username", "u"),
            ("auth.user_domain_id", "default"),
        ];
        assert_eq!(
            asked(&by_name)["auth"]["identity"]["application_credential"],
            json!({"name": "n", "secret": "s", "user": {"name": "u", "domain": {"id": "default"}}})
        );
    }

    fn answer(issued: &str, expires: &str) -> Vec<u8> {
        json!({"token": {"issued_at": issued, "expires_at": expires, "project": {"id": "p", "name": "ops"},
            "catalog": [{"type": "instance-ha", "name": "masakari", "id": "x", "endpoints": []}], "roles": []}})
        .to_string()
        .into_bytes()
    }

    #[test]
    fn a_token_is_left_two_minutes_before_its_end() {
        let used = |seconds: i64| {
            let issued = Timestamp::from_seconds(1_800_000_000);
            let expires = Timestamp::from_seconds(1_800_000_000 + seconds);
            let token = read(Some("t"), &answer(&issued.rfc3339(), &expires.rfc3339()));
            token.map(|token| token.use_for.as_secs())
        };
        assert_eq!([3600, 240, 180, 60, 0].map(|seconds| used(seconds).unwrap()), [3480, 120, 90, 30, 0]);
        assert!(used(-1).is_err());
    }

    #[test]
    fn half_an_answer_is_no_token() {
        let whole = answer("2026-11-20T15:32:39.000000Z", "2026-11-20T16:32:39.000000Z");
        let token = read(Some("s3kr1t"), &whole).unwrap();
        assert_eq!(token.found.project.as_deref(), Some("p"));
        assert!(!format!("{token:?}").contains("s3kr1t"));
        assert!(read(None, &whole).is_err() && read(Some(""), &whole).is_err());
        for end in 0..whole.len() {
            assert_eq!(read(Some("t"), &whole[..end]).err(), Some(Unread::CutOff), "{end}");
        }
        let other = Unread::Wrong("gave a token without its description");
        assert_eq!(read(Some("t"), b"<html>").err(), Some(other), "the broken variant of the above");
        let unscoped =
            br#"{"token":{"issued_at":"2026-11-20T15:32:39Z","expires_at":"2026-11-20T16:32:39Z"}}"#;
        let Err(Unread::Wrong(why)) = read(Some("t"), unscoped) else { unreachable!() };
        assert!(why.contains("no role on a project"), "{why}");
    }
}
