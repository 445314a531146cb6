//! The keys of `[http.NAME]`: what is wrong with them, alone and together, is said before anything runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use site::Section;

use super::credentials::{self, Credentials};
use super::{Body, Http, Options, SigningKey, headers};
use crate::driver::{Driver, usable};
use crate::event::{TimeFormat, cloudevents};
use crate::web::{self, both_or_neither};

/// Where CloudEvents come from, unless the route says it.
const SOURCE: &str = "/nova-host-alerter";

/// Reads `[http.NAME]`.
pub(super) fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = options(table)?;
    if !table.is_sound() {
        return None;
    }
    usable(table, Http::new(options))
}

/// Asks for every key, so that each is checked whatever is wrong with the others.
fn options(table: &mut Section<'_, '_>) -> Option<Options> {
    let client = web::read_options(table, None);
    let method = table.choice("method", &[("POST", Verb::Post), ("PUT", Verb::Put)]).unwrap_or(Verb::Post);
    let headers = headers::read(table.section("headers"));
    let credentials = credentials(table);
    let secret_files = secret_files(table);
    let time_format = table.choice("time-format", &TimeFormat::WORDS).unwrap_or_default();
    let body = body(table);
    let confirmed_within = confirmation(table);
    let (client, method) = (client?, method.into());
    Some(Options { client, method, headers, credentials, secret_files, body, time_format, confirmed_within })
}

/// `ack` and `ack-timeout`: who acknowledges, and how long that may take.
fn confirmation(table: &mut Section<'_, '_>) -> Option<Duration> {
    let by_callback = table.choice("ack", &[("response", false), ("callback", true)]).unwrap_or(false);
    let seconds = table.number("ack-timeout", 60..=86_400).unwrap_or(600);
    if table.has("ack-timeout") && !by_callback {
        table.complain(
            "ack-timeout",
            "the answer acknowledges, so nothing is waited for: set ack = \"callback\", or remove ack-timeout",
        );
    }
    by_callback.then(|| Duration::from_secs(seconds.into()))
}

/// `body`, and `cloudevents-source` where it says something.
fn body(table: &mut Section<'_, '_>) -> Body {
    let (key, word) = ("cloudevents-source", "cloudevents");
    let source = table.text(key, cloudevents::source);
    let words = ["standard", "extended", "doctor", word].map(|word| (word, word));
    let body = table.choice("body", &words);
    if table.has(key) && body != Some(word) {
        table.complain(
            key,
            format!("{key} says nothing about this body: set body = \"{word}\", or remove {key}"),
        );
    }
    match body {
        Some("extended") => Body::Extended,
        Some("doctor") => Body::Doctor,
        Some("cloudevents") => Body::CloudEvents { source: source.unwrap_or_else(|| SOURCE.to_owned()) },
        _ => Body::Standard,
    }
}

/// `bearer-file`, or `username` and `password-file`.
fn credentials(table: &mut Section<'_, '_>) -> Option<Credentials> {
    let bearer = table.text("bearer-file", Credentials::bearer);
    let username = table.text("username", credentials::username);
    let password_file = table.text("password-file", credentials::password_file);
    both_or_neither(table, "username", "password-file");
    if table.has("bearer-file") && (table.has("username") || table.has("password-file")) {
        table.complain(
            "bearer-file",
            "a request has room for one: use bearer-file, or username and password-file",
        );
    }
    bearer.or_else(|| Some(Credentials::Basic { username: username?, password_file: password_file? }))
}

/// `secret-files`: the first signs first. What stands in them now is checked too.
fn secret_files(table: &mut Section<'_, '_>) -> Vec<PathBuf> {
    let key = "secret-files";
    let files = table.texts(key, |file| SigningKey::read(Path::new(file)).map(drop));
    if files.as_ref().is_some_and(|files| !(1..=2).contains(&files.len())) {
        table.complain(key, "name one file, or two while one secret replaces the other");
    }
    files.unwrap_or_default().into_iter().map(PathBuf::from).collect()
}

/// A word for a method: [`Section::choice`] wants one that can be copied.
#[derive(Clone, Copy)]
enum Verb {
    Post,
    Put,
}

impl From<Verb> for Method {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Post => Self::POST,
            Verb::Put => Self::PUT,
        }
    }
}
