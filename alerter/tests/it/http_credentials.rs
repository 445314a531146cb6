//! Credentials: what stands in their files at an attempt is what the attempt shows.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use alerter::drivers::http::{Credentials, Http, Options};

use crate::endpoint::{Endpoint, OK};
use crate::route::{SECRET, deliver, options, word};

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

fn route(endpoint: &Endpoint, credentials: Credentials) -> Http {
    Http::new(Options { credentials: Some(credentials), ..options(&endpoint.url()) }).unwrap()
}

fn has(request: &[u8], field: &str) -> bool {
    String::from_utf8_lossy(request).lines().any(|line| line == field)
}

/// The broken variant reads the file once, when the route is made: its second request shows the old token.
#[tokio::test]
async fn a_token_that_was_replaced_is_used_at_once() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("token");
    write(&file, &format!("{SECRET}-old\n"));
    let endpoint = Endpoint::saying(OK).await;
    let route = route(&endpoint, Credentials::Bearer(file.clone()));
    let careless = fs::read_to_string(&file).unwrap();
    for (number, age) in ["old", "new"].into_iter().enumerate() {
        write(&file, &format!("{SECRET}-{age}\n"));
        assert_eq!(word(&deliver(&route).await), "acknowledged");
        let request = &endpoint.requests()[number];
        assert!(has(request, &format!("authorization: Bearer {SECRET}-{age}")));
        assert_eq!(has(request, &format!("authorization: Bearer {}", careless.trim())), age == "old");
    }
}

#[tokio::test]
async fn a_user_name_goes_with_its_password() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("password");
    write(&file, "open sesame\n");
    let endpoint = Endpoint::saying(OK).await;
    let credentials = Credentials::Basic { username: "Aladdin".to_owned(), password_file: file };
    assert_eq!(word(&deliver(&route(&endpoint, credentials)).await), "acknowledged");
    assert!(has(&endpoint.requests()[0], "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
}

/// Without its credentials nothing is sent: an endpoint that takes anybody would not notice that they are gone.
#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_and_nothing_is_sent() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("token");
    let endpoint = Endpoint::saying(OK).await;
    let route = route(&endpoint, Credentials::Bearer(file.clone()));
    assert_eq!(word(&deliver(&route).await), "refused credentials");
    for (text, mode) in [(SECRET, 0o644), (&*format!("{SECRET} {SECRET}"), 0o600), ("", 0o600)] {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(word(&deliver(&route).await), "refused credentials", "{mode:o}");
    }
    assert_eq!(endpoint.connections(), 0);
    write(&file, SECRET);
    assert_eq!(word(&deliver(&route).await), "acknowledged");
}
