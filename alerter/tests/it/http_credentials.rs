//! Credentials: each attempt uses what their files have then.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use drivers::Driver;
use drivers::http::{Credentials, Http, Options};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::endpoint::{Endpoint, OK};
use crate::route::{Files, SECRET, deliver, options, signing_secret, word};

fn route(endpoint: &Endpoint, credentials: Credentials) -> Http {
    Http::new(Options { credentials: Some(credentials), ..options(&endpoint.url()) }).unwrap()
}

fn bearer(file: &Path) -> Credentials {
    Credentials::Bearer { scheme: "Bearer".to_owned(), file: file.to_owned() }
}

fn has(request: &[u8], field: &str) -> bool {
    String::from_utf8_lossy(request).lines().any(|line| line == field)
}

/// The broken variant reads the file once, when the route is made: its second request shows the old token.
#[tokio::test]
async fn a_token_that_was_replaced_is_used_at_once() {
    let files = Files::with([("token", &format!("{SECRET}-old\n"))]);
    let file = files.path("token");
    let endpoint = Endpoint::saying(OK).await;
    let route = route(&endpoint, bearer(&file));
    let careless = fs::read_to_string(&file).unwrap();
    for (number, age) in ["old", "new"].into_iter().enumerate() {
        files.put("token", &format!("{SECRET}-{age}\n"));
        assert_eq!(word(&deliver(&route).await), "acknowledged");
        let request = &endpoint.requests()[number];
        assert!(has(request, &format!("authorization: Bearer {SECRET}-{age}")));
        assert_eq!(has(request, &format!("authorization: Bearer {}", careless.trim())), age == "old");
    }
}

#[tokio::test]
async fn a_user_name_goes_with_its_password() {
    let files = Files::with([("password", "open sesame\n")]);
    let endpoint = Endpoint::saying(OK).await;
    let credentials =
        Credentials::Basic { username: "Aladdin".to_owned(), password_file: files.path("password") };
    assert_eq!(word(&deliver(&route(&endpoint, credentials)).await), "acknowledged");
    assert!(has(&endpoint.requests()[0], "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
}

/// Without its credentials nothing is sent: an endpoint that takes anybody would not notice that they are gone.
#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_and_nothing_is_sent() {
    let files = Files::with([]);
    let file = files.path("token");
    let endpoint = Endpoint::saying(OK).await;
    let route = route(&endpoint, bearer(&file));
    assert_eq!(word(&deliver(&route).await), "refused credentials");
    for (text, mode) in [(SECRET, 0o644), (&*format!("{SECRET} {SECRET}"), 0o600), ("", 0o600)] {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(word(&deliver(&route).await), "refused credentials", "{mode:o}");
    }
    assert_eq!(endpoint.connections(), 0);
    files.put("token", SECRET);
    assert_eq!(word(&deliver(&route).await), "acknowledged");
}

/// A secret in every place that has room for one, and every kind of failure: no message shows it, and no part of it.
///
/// The broken variant prints what the driver holds.
#[tokio::test]
async fn no_failure_shows_a_secret() {
    let signing_secret = signing_secret(77);
    let files = Files::with([("token", SECRET), ("secret", &signing_secret)]);
    let headers =
        HeaderMap::from_iter([(HeaderName::from_static("x-token"), HeaderValue::from_static(SECRET))]);
    assert!(format!("{headers:?}").contains(SECRET));
    for answer in [
        format!("HTTP/1.1 401 {SECRET}\r\nWWW-Authenticate: {SECRET}\r\nContent-Length: 0\r\n\r\n"),
        format!("{SECRET}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", SECRET.repeat(5000)),
        String::new(),
    ] {
        let endpoint = Endpoint::saying(answer).await;
        let route = Http::new(Options {
            credentials: Some(bearer(&files.path("token"))),
            secret_files: files.paths(&["secret"]),
            headers: headers.clone(),
            ..options(&endpoint.url())
        })
        .unwrap();
        let outcome = deliver(&route).await;
        assert!(outcome.failure().is_some(), "and `deliver` searches for the secret");
        let shown = format!("{outcome:?} {:?}", &route as &dyn Driver);
        assert!(!shown.contains(&signing_secret) && !shown.contains("77, 77"), "{shown}");
    }
}
