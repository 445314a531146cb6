//! The keys of a route, alone and together: what is wrong is said before anything runs.

use crate::certificates::Ca;
use crate::config::Site;
use crate::route::SECRET;

/// A route with these keys, and a directory that they may name as DIR.
fn route_in(site: Site, keys: &str) -> Site {
    let text = format!("[http.a]\n{}\n", keys.replace("DIR", &site.0.path().display().to_string()));
    site.with("alerter.toml", text)
}

/// S1-45: a secret that others can read is refused. What stands in its file is never shown.
#[test]
fn a_secret_file_is_checked() {
    const GOOD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let secret = |text: &str| {
        let site = Site::new("").with("a", text).with("b", GOOD);
        site.chmod("a", 0o600);
        site.chmod("b", 0o400);
        route_in(site, "url = \"https://h/\"\nsecret-files = [\"DIR/a\", \"DIR/b\"]")
    };
    assert_eq!(secret(&format!("{GOOD}\n")).settings().routes.len(), 1);
    for text in [format!("whsec_{SECRET}"), SECRET.to_owned(), format!("{GOOD}\n{GOOD}"), format!("{GOOD}x")]
    {
        let expected = "alerter.toml:3:17: the secret must be whsec_ and base64, of 24 to 64 bytes";
        assert_eq!(secret(&text).problem(), expected);
    }
    assert_eq!(secret(" \n").problem(), "alerter.toml:3:17: the file is empty");
    let site = secret(GOOD);
    site.chmod("a", 0o640);
    assert!(
        site.problem()
            .starts_with("alerter.toml:3:17: others may read the secret in it (mode 0640): run `chmod 600")
    );
    for (files, expected) in [
        ("[]", "alerter.toml:3:16: name one file, or two while one secret replaces the other"),
        (
            "[\"DIR/b\", \"DIR/b\", \"DIR/b\"]",
            "alerter.toml:3:16: name one file, or two while one secret replaces the other",
        ),
        ("[\"b\"]", "alerter.toml:3:17: must be an absolute path"),
    ] {
        let site = route_in(secret(GOOD), &format!("url = \"https://h/\"\nsecret-files = {files}"));
        assert_eq!(site.problem(), expected, "{files}");
    }
}

/// A route on loopback with these keys, beside files with a secret each; others can read `open`.
fn with_secrets(keys: &str) -> Site {
    let site = Site::new("")
        .with("token", SECRET)
        .with("password", SECRET)
        .with("open", SECRET)
        .with("lines", "s3kr1t\nb");
    for file in ["token", "password", "lines"] {
        site.chmod(file, 0o600);
    }
    route_in(site, &format!("url = \"http://[::1]/\"\n{keys}"))
}

/// S1-45: what is wrong with credentials is said before an endpoint says it.
#[test]
fn credentials_are_checked() {
    for keys in ["bearer-file = \"DIR/token\"", "username = \"nova\"\npassword-file = \"DIR/password\""] {
        assert_eq!(with_secrets(keys).settings().routes.len(), 1, "{keys}");
    }
    for (keys, expected) in [
        ("username = \"nova\"", "3:12: username has no effect without password-file: set both, or neither"),
        (
            "password-file = \"DIR/password\"",
            "3:17: password-file has no effect without username: set both, or neither",
        ),
        (
            "bearer-file = \"DIR/token\"\nusername = \"nova\"\npassword-file = \"DIR/password\"",
            "3:15: a request has only one: use bearer-file, or username and password-file",
        ),
        (
            "bearer-scheme = \"GenieKey\"",
            "3:17: bearer-scheme has no effect without bearer-file: set both, or neither",
        ),
        (
            "bearer-file = \"DIR/token\"\nbearer-scheme = \"Genie Key\"",
            "4:17: must be one word, such as \"GenieKey\"",
        ),
        ("bearer-file = \"token\"", "3:15: must be an absolute path"),
        ("bearer-file = \"DIR/none\"", "3:15: it cannot be read: No such file or directory"),
        ("bearer-file = \"DIR/lines\"", "3:15: the token must be one word of printable ASCII"),
        (
            "username = \"a:b\"\npassword-file = \"DIR/password\"",
            "3:12: the user name must not be empty, and have neither a colon nor a control character",
        ),
        ("username = \"a\"\npassword-file = \"DIR/lines\"", "4:17: the password must stand on one line"),
    ] {
        assert_eq!(with_secrets(keys).problem(), format!("alerter.toml:{expected}"), "{keys}");
    }
    let problem = with_secrets("bearer-file = \"DIR/open\"").problem();
    assert!(problem.starts_with("alerter.toml:3:15: others may read the secret in it"), "{problem}");
}

/// A route with these keys, beside a certificate, its key, another key, and a key that others can read.
fn with_certificates(keys: &str) -> Site {
    let (ours, theirs) = (Ca::new("ours").identity(), Ca::new("theirs").identity());
    let site = Site::new("")
        .with("ours.pem", &ours.0)
        .with("ours.key", &ours.1)
        .with("theirs.key", &theirs.1)
        .with("open.key", &ours.1);
    site.chmod("ours.key", 0o600);
    site.chmod("theirs.key", 0o400);
    route_in(site, keys)
}

fn pair(certificate: &str, key: &str) -> String {
    format!("url = \"https://h/\"\ncertificate-file = \"{certificate}\"\nkey-file = \"{key}\"")
}

/// S1-45: the files of TLS exist, fit together, and are not set where they have no effect.
#[test]
fn the_keys_of_tls_are_checked() {
    for keys in [
        pair("DIR/ours.pem", "DIR/ours.key"),
        "url = \"https://10.0.0.1/\"\nserver-name = \"h.example\"\ntls-min = \"1.3\"".to_owned(),
    ] {
        assert_eq!(with_certificates(&keys).settings().routes.len(), 1, "{keys}");
    }
    for (keys, expected) in [
        (
            pair("DIR/ours.pem", "DIR/theirs.key"),
            "4:12: key-file does not hold the key of the first certificate in certificate-file",
        ),
        (pair("DIR/ours.key", "DIR/ours.key"), "3:20: certificate-file holds no certificate in PEM"),
        (pair("DIR/ours.pem", "DIR/alerter.toml"), "4:12: key-file: others may read the secret in it"),
        (pair("DIR/ours.pem", "DIR/open.key"), "4:12: key-file: others may read the secret in it"),
        (
            pair("DIR/none", "DIR/ours.key"),
            "3:20: certificate-file: it cannot be read: No such file or directory",
        ),
        (pair("ours.pem", "DIR/ours.key"), "3:20: must be an absolute path"),
        (
            "url = \"https://h/\"\nkey-file = \"DIR/ours.key\"".to_owned(),
            "3:12: key-file has no effect without certificate-file: set both, or neither",
        ),
        (
            "url = \"https://h/\"\ncertificate-file = \"DIR/ours.pem\"".to_owned(),
            "3:20: certificate-file has no effect without key-file: set both, or neither",
        ),
        (
            "url = \"https://h/\"\nserver-name = \"10.0.0.1\"".to_owned(),
            "3:15: must be the DNS name in the endpoint's certificate",
        ),
        (
            "url = \"https://h/\"\nserver-name = \"a/b\"".to_owned(),
            "3:15: must be the DNS name in the endpoint's certificate",
        ),
        (
            "url = \"https://h/\"\ntls-min = \"1.1\"".to_owned(),
            "3:11: unknown word; did you mean \"1.2\"? Known are: \"1.2\", \"1.3\"",
        ),
        (
            "url = \"http://[::1]/\"\nserver-name = \"h\"".to_owned(),
            "3:15: server-name has no effect with an http url: use https, or remove server-name",
        ),
        (
            "url = \"http://[::1]/\"\ntls-min = \"1.3\"".to_owned(),
            "3:11: tls-min has no effect with an http url: use https, or remove tls-min",
        ),
    ] {
        let problem = with_certificates(&keys).problem();
        assert!(problem.starts_with(&format!("alerter.toml:{expected}")), "{keys}\n{problem}");
    }
}
