//! Urls: which are valid, and what is shown of them.

use std::net::IpAddr;

use reqwest::Url;

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

/// The url for people, without its query, which may be a token.
pub fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// A url's host in the form that a name server or a socket takes.
pub fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

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
