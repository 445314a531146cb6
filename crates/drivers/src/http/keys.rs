//! The keys of `[http.NAME]`. All errors, of one key or of several together, are found before anything runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderMap;
use site::Section;

use super::credentials::{self, Credentials};
use super::headers;
use super::layout::Layout;
use super::signature::SigningKey;
use crate::driver::notifies_return;
use crate::event::TimeFormat;
use crate::event::template::Template;
use crate::web;

/// What an `http` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to send, and the client's settings.
    pub client: web::ClientOptions,
    /// The operator's headers of each request.
    pub headers: HeaderMap,
    /// How we authenticate.
    pub credentials: Option<Credentials>,
    /// The files with the secrets that sign each request: none, one, or two during a rotation.
    pub secret_files: Vec<PathBuf>,
    /// How the body is laid out.
    pub body: Layout,
    /// How times are written, if the layout leaves it open.
    pub time_format: TimeFormat,
    /// How long the receiver may take to confirm a mark that it has accepted; if unset, any 2xx acknowledges.
    pub confirmed_within: Option<Duration>,
    /// Whether the receiver is notified that the host is back.
    pub notifies_return: bool,
}

impl Options {
    /// A route to `url` with defaults alone.
    pub fn to(url: Url) -> Self {
        Self::by(web::ClientOptions::to(url))
    }

    /// A route through this client with defaults alone.
    pub fn by(client: web::ClientOptions) -> Self {
        Self {
            client,
            headers: HeaderMap::new(),
            credentials: None,
            secret_files: Vec::new(),
            body: Layout::default(),
            time_format: TimeFormat::default(),
            confirmed_within: None,
            notifies_return: false,
        }
    }
}

/// Reads the route's table. It asks for every key, so that each is checked whatever is wrong with the others.
pub(super) fn read(table: &mut Section<'_, '_>) -> Option<Options> {
    let client = web::read_options(table);
    let headers = headers::read(table.section("headers"));
    let credentials = credentials(table);
    let secret_files = secret_files(table);
    let time_format = table.choice("time-format", &TimeFormat::WORDS).unwrap_or_default();
    let body = body(table, time_format);
    let confirmed_within = confirmation(table);
    let notifies_return = notifies_return(table);
    let (client, body) = (client?, body?);
    table.is_sound().then_some(Options {
        client,
        headers,
        credentials,
        secret_files,
        body,
        time_format,
        confirmed_within,
        notifies_return,
    })
}

/// `ack` and `ack-timeout`: who acknowledges, and how long that may take.
fn confirmation(table: &mut Section<'_, '_>) -> Option<Duration> {
    let by_callback = table.choice("ack", &[("response", false), ("callback", true)]).unwrap_or(false);
    let seconds = table.number("ack-timeout", 60..=86_400).unwrap_or(600);
    let why = "the answer acknowledges, so ack-timeout has no effect: set ack = \"callback\", or remove ack-timeout";
    table.complain_if(!by_callback, "ack-timeout", why);
    by_callback.then(|| Duration::from_secs(seconds.into()))
}

/// `body` with `template`; `None` if that one lacks what it needs.
fn body(table: &mut Section<'_, '_>, time_format: TimeFormat) -> Option<Layout> {
    let template = table.text("template", |text| Template::parse(text, time_format));
    let words = ["standard", "extended", "template"].map(|word| (word, word));
    let body = table.choice("body", &words);
    let why = "template has no effect with this body: set body = \"template\", or remove template";
    table.complain_if(body != Some("template"), "template", why);
    match body {
        Some("extended") => Some(Layout::Extended),
        Some("template") if !table.has("template") => {
            table.complain("body", "this body needs template: set it");
            None
        }
        Some("template") => template.map(Layout::Template),
        _ => Some(Layout::Standard),
    }
}

/// `bearer-file`, or `username` and `password-file`.
fn credentials(table: &mut Section<'_, '_>) -> Option<Credentials> {
    let scheme = table.text("bearer-scheme", credentials::scheme);
    let scheme = scheme.unwrap_or_else(|| "Bearer".to_owned());
    let bearer = table.text("bearer-file", |file| Credentials::bearer(&scheme, file));
    let why = "bearer-scheme has no effect without bearer-file: set both, or neither";
    table.complain_if(!table.has("bearer-file"), "bearer-scheme", why);
    let username = table.text("username", credentials::username);
    let password_file = table.text("password-file", credentials::password_file);
    table.both_or_neither("username", "password-file");
    let has_other = table.has("username") || table.has("password-file");
    let why = "a request has only one: use bearer-file, or username and password-file";
    table.complain_if(has_other, "bearer-file", why);
    bearer.or_else(|| Some(Credentials::Basic { username: username?, password_file: password_file? }))
}

/// `secret-files`: the first signs first. The files' content is checked too.
fn secret_files(table: &mut Section<'_, '_>) -> Vec<PathBuf> {
    let key = "secret-files";
    let files = table.texts(key, |file| SigningKey::read(Path::new(file)).map(drop));
    if files.as_ref().is_some_and(|files| !(1..=2).contains(&files.len())) {
        table.complain(key, "name one file, or two while one secret replaces the other");
    }
    files.unwrap_or_default().into_iter().map(PathBuf::from).collect()
}
