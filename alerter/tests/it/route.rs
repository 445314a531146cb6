//! The route under test, and what it is asked to deliver.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drivers::http::{Http, Options};
use drivers::{Driver, Failure, Message, Outcome, Step, web};
use marks::id::MarkId;
use reqwest::Url;
use tempfile::TempDir;

/// What is delivered; the driver takes any bytes.
pub(crate) const BODY: &[u8] = br#"{"id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b"}"#;
/// A part of every url under test that no message may show.
pub(crate) const SECRET: &str = "s3kr1t";
/// Long enough for an exchange on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);
/// Where the limit itself is under test.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

pub(crate) fn id() -> MarkId {
    MarkId::parse("0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b").unwrap()
}

/// A route to `url`, with the secret in its query.
pub(crate) fn route(url: &str, timeout: Duration) -> Http {
    route_with_ca(url, timeout, None)
}

/// Where to, with the secret in the query, and nothing but defaults.
pub(crate) fn options(url: &str) -> Options {
    let mut url = Url::parse(url).unwrap();
    url.set_query(Some(&format!("token={SECRET}")));
    Options::to(url)
}

pub(crate) fn route_with_ca(url: &str, timeout: Duration, ca_file: Option<&Path>) -> Http {
    let ca_file = ca_file.map(Path::to_owned);
    Http::new(Options::by(web::ClientOptions { ca_file, timeout, ..options(url).client })).unwrap()
}

/// A secret of the signature scheme.
pub(crate) fn signing_secret(byte: u8) -> String {
    format!("whsec_{}", STANDARD.encode([byte; 32]))
}

/// Files that a route names, and that a test changes.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn with<const N: usize>(files: [(&str, &str); N]) -> Self {
        let all = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| all.put(name, text));
        all
    }

    /// Puts a file in the place of the old one, at once and whole.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let new = self.path("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Every file of these names, in order.
    pub(crate) fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.path(name)).collect()
    }
}

/// What is delivered at the first attempt.
pub(crate) fn message<'m>(step: Step, id: &'m MarkId, body: &'m [u8]) -> Message<'m> {
    Message { step, id, body, ambiguous: 0, attempts: 1, is_released: false }
}

/// One exchange. Whatever comes of it, its message is one printable line without a secret.
pub(crate) async fn deliver(route: &dyn Driver) -> Outcome {
    deliver_step(route, Step::Failure).await
}

pub(crate) async fn deliver_step(route: &dyn Driver, step: Step) -> Outcome {
    let id = id();
    let outcome = route.deliver(message(step, &id, BODY)).await;
    assert!(!format!("{outcome:?} {route:?} {}", route.about().endpoint).contains(SECRET), "{outcome:?}");
    if let Some(failure) = outcome.failure() {
        assert!(failure.detail.chars().count() <= Failure::DETAIL);
        assert!(failure.detail.chars().all(|c| !c.is_control()), "{:?}", failure.detail);
    }
    outcome
}

pub(crate) async fn deliver_to(url: &str) -> Outcome {
    deliver(&route(url, LONG)).await
}

/// `acknowledged`, or how it failed and by which word: `unknown closed`.
pub(crate) fn word(outcome: &Outcome) -> String {
    outcome.failure().map_or_else(
        || outcome.as_str().to_owned(),
        |failure| format!("{} {}", outcome.as_str(), failure.kind),
    )
}

pub(crate) async fn word_of(url: &str) -> String {
    word(&deliver_to(url).await)
}
