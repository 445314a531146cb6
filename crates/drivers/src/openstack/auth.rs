//! What Keystone answers: a token, and where the services are. Pure.

use std::time::Duration;

use marks::time::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;

use super::catalog::{Found, Offer};

/// A token is used only if it is valid for this much longer.
const REST: Duration = Duration::from_secs(120);

/// A token of Keystone.
#[derive(Debug)]
pub(super) struct Token {
    /// The token itself.
    pub(super) value: SecretString,
    /// How long it may be used after its issue.
    pub(super) use_for: Duration,
    /// Where the services are.
    pub(super) found: Found,
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
    use serde_json::json;

    use super::*;

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
