//! Urls: which are valid, and what is shown of them.

use std::net::IpAddr;

use reqwest::Url;

use crate::driver::fingerprint;
use crate::peer::Peer;

/// Reads a url. It may contain a password or a token: no message shows it.
///
/// # Errors
/// One sentence for the operator.
pub fn address(text: &str, allow_http: bool) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|why| format!("not a valid url: {why}"))?;
    let wrong = match url.scheme() {
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            "a url must not hold a user name or password"
        }
        "http" if !allow_http && !is_loopback(&url) => {
            "plain http can be read and changed by others: use https, or set allow-http = true"
        }
        "http" | "https" if url.fragment().is_some() => "a url must not have a fragment (#)",
        "http" | "https" if url.port() == Some(0) => "port 0 is not allowed",
        "http" | "https" => return Ok(url),
        _ => "the url must begin with https:// or http://",
    };
    Err(wrong.to_owned())
}

fn is_loopback(url: &Url) -> bool {
    let host = host(url);
    host.parse::<IpAddr>().map_or(host == "localhost", |address| address.to_canonical().is_loopback())
}

/// The words that parts of a path may have and still be shown: no secret is made of them.
const OPEN_WORDS: &str = "alerter alerts api auth clusters compute enqueue event events failure failures health heat hook \
    hooks host hosts identity incoming mark marks masakari metrics mistral notice notices notifications \
    orchestration page recovery reliability report senlin services tickets tokens webhook webhooks";
/// A shorter part holds no secret.
const SECRET_MIN: usize = 4;

/// The url for people: without its query, and with its path up to the first part that may be a secret. Chat services have
/// theirs in the path.
pub fn shown(url: &Url) -> String {
    match url.as_str().split_at(open_until(url)) {
        (open, "") => open.to_owned(),
        (open, rest) if rest.starts_with('?') => open.to_owned(),
        (open, _) => format!("{open}…"),
    }
}

/// The same, where urls that are shown alike must differ.
pub(crate) fn target(url: &Url) -> String {
    let mark = hidden(url).map(|hidden| format!(" ({})", fingerprint(hidden)));
    shown(url) + &mark.unwrap_or_default()
}

/// What [`shown`] leaves out.
fn hidden(url: &Url) -> Option<&str> {
    Some(&url.as_str()[open_until(url)..]).filter(|rest| !rest.is_empty())
}

/// Where the part of a url begins that is not shown.
fn open_until(url: &Url) -> usize {
    let text = url.as_str();
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let parts = url.path().split_inclusive('/');
    let open = parts.take_while(|part| is_open(part.trim_end_matches('/'))).map(str::len).sum::<usize>();
    end - url.path().len() + open
}

/// Whether a part of a path is surely no secret: it is short, a version, or made of known words.
fn is_open(part: &str) -> bool {
    let is_version = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    part.len() < SECRET_MIN
        || part.strip_prefix('v').is_some_and(|digits| digits.len() < SECRET_MIN && is_version(digits))
        || part.split(['-', '_', '.']).all(|word| OPEN_WORDS.split(' ').any(|open| open == word))
}

/// A url's host in the form that a name server or a socket takes.
pub fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

/// What connections to it go to.
pub(crate) fn peer(url: &Url) -> Peer {
    Peer(host(url).to_owned(), url.port_or_known_default().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant leaves out the query alone: a chat's address is a password with a host before it.
    #[test]
    fn what_people_see_of_a_url_has_no_secret() {
        for (url, expected) in [
            (
                "https://recovery.my.cloud.com/v1/host-failures",
                "https://recovery.my.cloud.com/v1/host-failures",
            ),
            ("https://h", "https://h/"),
            ("https://h:8443/api/v2/alerts", "https://h:8443/api/v2/alerts"),
            ("https://h/identity/v3/auth/tokens", "https://h/identity/v3/auth/tokens"),
            ("https://h/v2.1/", "https://h/v2.1/"),
            (
                "https://hooks.slack.com/services/TSECRET01/BSECRET02/SECRETsecret",
                "https://hooks.slack.com/services/…",
            ),
            (
                "https://discord.com/api/webhooks/1234567890/SECRET_secret-0",
                "https://discord.com/api/webhooks/…",
            ),
            (
                "https://h.webhook.office.com/webhookb2/SECRET@1/IncomingWebhook/x/y",
                "https://h.webhook.office.com/…",
            ),
            ("https://api.telegram.org/bot1:SECRET/sendMessage", "https://api.telegram.org/…"),
            ("https://ntfy.sh/secrettopic", "https://ntfy.sh/…"),
            ("https://h/hooks/secret/alerts", "https://h/hooks/…"),
            ("https://h/hooks/secret-alerts", "https://h/hooks/…"),
            ("https://h/v1/%53ecret", "https://h/v1/…"),
            ("https://h/v12345678", "https://h/…"),
            ("https://h/v1;secret", "https://h/…"),
            ("https://h/v1/x?token=secret", "https://h/v1/x"),
            ("https://h/secret?token=secret", "https://h/…"),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(shown(&url), expected);
            assert!(!shown(&url).to_ascii_lowercase().contains("secret"), "{url}");
            assert_eq!(hidden(&url).is_some(), shown(&url) != url.as_str(), "{url}");
        }
    }

    /// Whatever stands behind the host: nothing is shown that is not short, a version, or of the known words.
    #[test]
    fn a_part_is_shown_only_if_it_is_known() {
        proptest::proptest!(|(part in "[A-Za-z0-9_.~-]{4,40}")| {
            let is_known = part.split(['-', '_', '.']).all(|word| OPEN_WORDS.split(' ').any(|open| open == word));
            let is_version = part.starts_with('v') && part.len() < 5;
            let url = Url::parse(&format!("https://h/{part}")).unwrap();
            proptest::prop_assert!(is_known || is_version || !shown(&url).contains(&part));
        });
    }

    #[test]
    fn plain_http_needs_a_word_unless_it_stays_on_this_machine() {
        for text in [
            "http://127.0.0.1/x",
            "http://127.8.7.6:80",
            "http://[::1]:8080/",
            "http://localhost/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(address(text, false).is_ok(), "{text}");
        }
        for text in
            ["http://recovery.example/", "http://10.0.0.1/", "http://localhost.example/", "http://[::2]/"]
        {
            assert!(address(text, false).is_err(), "{text}");
            assert!(address(text, true).is_ok(), "{text}");
        }
        assert!(address("https://recovery.example/", false).is_ok());
    }

    #[test]
    fn a_url_with_credentials_is_refused_and_not_repeated() {
        for text in [
            "https://admin:s3kr1t@h/",
            "https://s3kr1t@h/",
            "http://:s3kr1t@h/",
            "s3kr1t://h",
            "https://s3kr1t:99999/",
            "s3kr1t",
        ] {
            let why = address(text, true).unwrap_err();
            assert!(!why.contains("s3kr1t"), "{why}");
        }
    }
}
