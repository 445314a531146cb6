//! The `http` driver: the standard event as one POST to an endpoint.

mod answer;
mod fault;

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::header::{CONNECTION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, ClientBuilder, Response, Url, redirect, retry};

use super::event::{self, TimeFormat};
use super::{Driver, Exchange, Kind, Message, Outcome};
use crate::config::{TableReader, read_trusted};

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "http", configure };

const USER_AGENT: &str = concat!("nova-host-alerter/", env!("CARGO_PKG_VERSION"));
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Name resolution, TCP and TLS together; at most half of the route's limit, so that an endpoint that takes no
/// connection is told from one that does not answer.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// More header fields are no answer; the client itself stops reading them at 408 KiB.
const HEADER_FIELDS: usize = 64;
/// How much of an answer's body is read, and for how long; nothing depends on it.
const BODY_BYTES: usize = 64 * 1024;
const BODY_TIME: Duration = Duration::from_secs(2);

/// What an `http` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to send: `http` or `https`, without userinfo.
    pub url: Url,
    /// Who may have signed the endpoint's certificate; where unset, the system's CAs.
    pub ca: Option<Vec<Certificate>>,
    /// Limit of the whole exchange.
    pub timeout: Duration,
    /// How times are written.
    pub time_format: TimeFormat,
}

/// One `http` route.
pub struct Http {
    url: Url,
    time_format: TimeFormat,
    client: Client,
}

impl Http {
    /// Makes the route's client.
    ///
    /// # Errors
    /// One sentence: the certificates cannot be used.
    pub fn new(options: Options) -> Result<Self, String> {
        let own_ca = options.ca.is_some();
        let client = client(&options).build().map_err(|_| match own_ca {
            true => "a certificate in ca-file cannot be used: it must hold CA certificates in PEM".to_owned(),
            false => {
                "the system has no CA certificates: install them (ca-certificates), or set ca-file".to_owned()
            }
        })?;
        Ok(Self { url: options.url, time_format: options.time_format, client })
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let key =
            HeaderValue::try_from(format!("\"{}\"", message.id)).expect("a quoted UUID is a header value");
        let request =
            self.client.post(self.url.clone()).header(IDEMPOTENCY_KEY, key).body(message.body.to_vec());
        match request.send().await {
            Ok(response) => {
                let wish =
                    answer::wish(text(response.headers(), RETRY_AFTER), text(response.headers(), DATE));
                let outcome = answer::outcome(response.status().as_u16(), wish);
                tokio::spawn(tokio::time::timeout(BODY_TIME, read_out(response)));
                outcome
            }
            Err(error) => fault::of(&error).outcome(),
        }
    }
}

/// The settings that must not be left to defaults, each with its reason.
fn client(options: &Options) -> ClientBuilder {
    let tls = options.url.scheme() == "https";
    let client = Client::builder()
        .user_agent(USER_AGENT)
        .default_headers(HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (CONNECTION, HeaderValue::from_static("close")),
        ]))
        // A followed redirect turns the POST into a GET, and its 200 into a false acknowledgement.
        .redirect(redirect::Policy::none())
        // The environment of whoever started the daemon is no configuration.
        .no_proxy()
        // Every attempt is one exchange, counted and journalled; the client makes none of its own.
        .retry(retry::never())
        // A connection serves one exchange: what an endpoint said before it was asked acknowledges nothing.
        .pool_max_idle_per_host(0)
        .http1_only()
        .http1_max_headers(HEADER_FIELDS)
        .https_only(tls)
        .connect_timeout(CONNECT_TIME.min(options.timeout / 2))
        .timeout(options.timeout);
    match &options.ca {
        Some(certificates) => client.tls_certs_only(certificates.clone()),
        // Without TLS no certificates are needed, and a host without any would refuse to make a client.
        None if !tls => client.tls_certs_only([]),
        None => client,
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Reads a short body to its end, so that the endpoint sees an orderly close. The outcome is known before.
async fn read_out(mut response: Response) {
    let mut left = BODY_BYTES;
    while let Ok(Some(chunk)) = response.chunk().await {
        let Some(rest) = left.checked_sub(chunk.len()) else { return };
        left = rest;
    }
}

impl Driver for Http {
    fn kind(&self) -> &'static str {
        KIND.word
    }

    fn endpoint(&self) -> String {
        let mut shown = self.url.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        shown.into()
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        event::of_mark(mark, self.time_format)
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        event::of_test(id, now, self.time_format)
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        Box::pin(self.exchange(message))
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("endpoint", &self.endpoint()).finish_non_exhaustive()
    }
}

/// Reads `[http.NAME]`.
fn configure(table: &mut TableReader<'_, '_>) -> Option<Arc<dyn Driver>> {
    let allow_http = table.flag("allow-http").unwrap_or(false);
    let url = table.text("url", |text| address(text, allow_http));
    let ca = table.text("ca-file", |text| certificates(Path::new(text)));
    let seconds = table.number("timeout", 1..=30).unwrap_or(30);
    let time_format = table.choice("time-format", &TimeFormat::WORDS).unwrap_or_default();
    if !table.has("url") {
        let title = table.title().to_owned();
        table.missing(format!("[{title}] has no url: set it to the address of the recovery controller"));
    }
    let url = url?;
    if ca.is_some() && url.scheme() != "https" {
        table.complain("ca-file", "ca-file says nothing about an http url: use https, or remove ca-file");
    }
    if !table.is_sound() {
        return None;
    }
    match Http::new(Options { url, ca, timeout: Duration::from_secs(seconds.into()), time_format }) {
        Ok(driver) => Some(Arc::new(driver)),
        Err(why) => {
            let key = if table.has("ca-file") { "ca-file" } else { "url" };
            table.complain(key, why);
            None
        }
    }
}

/// Reads a url. It may hold a password or a token: nothing of it stands in a message.
fn address(text: &str, allow_http: bool) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|why| format!("no valid url: {why}"))?;
    let wrong = match url.scheme() {
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            "a url must not hold a user name or password"
        }
        "http" if !allow_http && !is_loopback(&url) => {
            "plain http can be read and changed on its way: use https, or set allow-http = true"
        }
        "http" | "https" if url.fragment().is_some() => "a url with a fragment (#) has no meaning here",
        "http" | "https" if url.port() == Some(0) => "port 0 is no port",
        "http" | "https" => return Ok(url),
        _ => "the url must begin with https:// or http://",
    };
    Err(wrong.to_owned())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(host == "localhost", |address| address.to_canonical().is_loopback())
}

/// Reads the CA certificates of a route. Who can write the file can pretend to be the endpoint.
fn certificates(path: &Path) -> Result<Vec<Certificate>, String> {
    if !path.is_absolute() {
        return Err("must be an absolute path".to_owned());
    }
    let bytes = read_trusted(path).map_err(|why| format!("ca-file: {why}"))?;
    match Certificate::from_pem_bundle(&bytes) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err("ca-file holds no certificate in PEM".to_owned()),
    }
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

    /// The endpoint is shown to people; its query may be a token.
    #[test]
    fn what_people_see_of_an_endpoint_has_no_query() {
        let url = Url::parse("http://127.0.0.1:8080/v1/x?token=s3kr1t").unwrap();
        let options =
            Options { url, ca: None, timeout: Duration::from_secs(1), time_format: TimeFormat::Epoch };
        let driver = Http::new(options).unwrap();
        assert_eq!(driver.endpoint(), "http://127.0.0.1:8080/v1/x");
        assert!(!format!("{driver:?}").contains("s3kr1t"));
    }
}
