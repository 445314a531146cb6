//! The `poll-url` probe: a text in what a url of the host answers.

use std::fmt;
use std::path::PathBuf;

use drivers::web::{self, Fault, IdentityFiles, Why, fault};
use drivers::{Kept, Unusable};
use marks::host::HostName;
use reqwest::{Client, Response, Url, tls};
use tokio::time::{Instant, timeout_at};

use super::ask::{Tries, addresses, no_address, no_connection};
use super::conclusion::{Said, State};
use super::template::{Template, percent_encoded};

/// No more of an answer is read.
const BODY_BYTES: usize = 64 * 1024;
/// Stands for a host's name while a url is checked without one.
const SOMEBODY: &str = "nodename-of-somebody";

/// What a `poll-url` probe is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollUrlOptions {
    /// What is asked for; the name is percent-encoded in it.
    pub url: Template,
    /// What a healthy host's answer holds.
    pub healthy: String,
    /// How often it is asked.
    pub tries: Tries,
    /// Whether a host that gives no answer is taken for unhealthy.
    pub conn_error_as_unhealthy: bool,
    /// The file that says who may have signed the host's certificate; where unset, the system's CAs.
    pub ca_file: Option<PathBuf>,
    /// The client certificate for TLS.
    pub identity: Option<IdentityFiles>,
    /// The oldest TLS that is spoken.
    pub tls_min: tls::Version,
    /// Whether the host's certificate must be good.
    pub verify: bool,
}

/// A `poll-url` probe.
pub struct PollUrl {
    options: PollUrlOptions,
    clients: Kept<Client>,
}

impl PollUrl {
    /// Makes the probe's client.
    ///
    /// # Errors
    /// The url is none, or the certificates cannot be used.
    pub fn new(options: PollUrlOptions) -> Result<Self, Unusable> {
        let url = example(&options.url).ok_or_else(|| Unusable::new("url", "not a valid url"))?;
        let endpoint = web::shown(&url).replace(SOMEBODY, "{nodename}");
        let clients = of_client(&options, url).client(endpoint)?;
        Ok(Self { options, clients })
    }

    /// How often it tries.
    pub fn tries(&self) -> Tries {
        self.options.tries
    }

    pub(super) fn verifies(&self) -> bool {
        self.options.verify
    }

    /// One try. The name is resolved beforehand: the client does not distinguish a name service that is away from a host that is.
    pub(super) async fn once(&self, node: &HostName) -> Said {
        let Some(url) = filled(&self.options.url, node) else {
            return Said::new(State::Unknown, "has no valid url for the host's name");
        };
        let deadline = Instant::now() + self.options.tries.timeout;
        let port = url.port_or_known_default().unwrap_or_default();
        if addresses(web::host(&url), port, deadline).await.is_none() {
            return no_address();
        }
        let exchange = timeout_at(deadline, self.exchange(url)).await;
        exchange.unwrap_or_else(|_| self.faulty(&Fault::Timeout))
    }

    async fn exchange(&self, url: Url) -> Said {
        match self.clients.get().get(url).send().await {
            Ok(response) => self.answered(response).await,
            Err(error) => self.faulty(&fault::of(&error)),
        }
    }

    /// The text counts as soon as it is there, whatever becomes of the rest of the answer.
    async fn answered(&self, mut response: Response) -> Said {
        let status = response.status().as_u16();
        if !response.status().is_success() {
            return Said::new(State::Unhealthy, format!("was answered {status}"));
        }
        let mut body = Searched::for_text(&self.options.healthy);
        while !body.is_over() {
            match response.chunk().await {
                Ok(Some(chunk)) if body.finds(&chunk) => {
                    return Said::new(State::Healthy, "was answered with the healthy text");
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return self.faulty(&fault::of(&error)),
            }
        }
        Said::new(State::Unhealthy, format!("was answered {status} without the healthy text"))
    }

    fn faulty(&self, fault: &Fault) -> Said {
        of_fault(fault, self.options.conn_error_as_unhealthy)
    }
}

/// The settings of the `http` driver's client: no redirect is followed, and the environment's proxies are not asked.
fn of_client(options: &PollUrlOptions, url: Url) -> web::ClientOptions {
    web::ClientOptions {
        ca_file: options.ca_file.clone(),
        identity: options.identity.clone(),
        tls_min: options.tls_min,
        verify: options.verify,
        timeout: options.tries.timeout,
        ..web::ClientOptions::to(url)
    }
}

/// The result of a try without an answer. A wrong certificate shows that something answers, but not what; a try that could not be made
/// shows nothing.
fn of_fault(fault: &Fault, conn_error_as_unhealthy: bool) -> Said {
    let failed = if conn_error_as_unhealthy { State::Unhealthy } else { State::Unknown };
    match fault {
        Fault::Unreached(Why::Refused(Some(kind)), _) => no_connection(*kind, failed),
        Fault::Unreached(Why::Late, _) | Fault::Timeout => Said::new(failed, "got no answer in time"),
        Fault::Closed => Said::new(failed, "got an incomplete answer: the connection was closed"),
        Fault::Unreached(Why::Dns, _) => no_address(),
        // That is an answer, and not the healthy one.
        Fault::TooLarge | Fault::Protocol => {
            Said::new(State::Unhealthy, "was answered with something that is not HTTP")
        }
        Fault::Tls(_) | Fault::Request | Fault::Unreached(Why::Refused(None), _) => {
            Said::new(State::Unknown, format!("could not ask: {}", fault.detail()))
        }
    }
}

/// The url without a host's name.
fn example(url: &Template) -> Option<Url> {
    Url::parse(&url.fill(SOMEBODY)).ok()
}

/// The url for a host. A name that a url takes for something else there, as `10` for an address, makes none.
fn filled(template: &Template, node: &HostName) -> Option<Url> {
    let url = Url::parse(&template.fill(&percent_encoded(node.as_str()))).ok()?;
    let wanted = example(template)?.host_str()?.replace(SOMEBODY, &node.as_str().to_ascii_lowercase());
    (url.host_str() == Some(&wanted)).then_some(url)
}

/// What was read of an answer, while a text is searched in it.
struct Searched<'t> {
    text: &'t [u8],
    read: Vec<u8>,
}

impl<'t> Searched<'t> {
    fn for_text(text: &'t str) -> Self {
        Self { text: text.as_bytes(), read: Vec::new() }
    }

    fn is_over(&self) -> bool {
        self.read.len() >= BODY_BYTES
    }

    /// Takes a part, and says whether the text is there. It may have begun in an earlier one.
    fn finds(&mut self, part: &[u8]) -> bool {
        let before = self.read.len().saturating_sub(self.text.len() - 1);
        let left = BODY_BYTES.saturating_sub(self.read.len());
        self.read.extend_from_slice(&part[..part.len().min(left)]);
        self.read[before..].windows(self.text.len()).any(|window| window == self.text)
    }
}

impl PartialEq for PollUrl {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
    }
}

impl Eq for PollUrl {}

impl fmt::Debug for PollUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;

    use super::*;

    fn host(name: &str) -> HostName {
        HostName::parse(name).unwrap()
    }

    /// S0-8: the name stands where it was put, and nowhere else in the url.
    #[test]
    fn a_url_is_filled_in_for_a_host() {
        let of = |template: &str, node: &str| {
            filled(&Template::parse(template).unwrap(), &host(node)).map(String::from)
        };
        assert_eq!(of("https://{nodename}:8774/h", "Compute1").unwrap(), "https://compute1:8774/h");
        assert_eq!(of("https://m.x/h?n={nodename}", "Compute_1").unwrap(), "https://m.x/h?n=Compute_1");
        assert_eq!(of("https://{nodename}.rack1/", "c1").unwrap(), "https://c1.rack1/");
        assert_eq!(of("https://{nodename}/", "10.0.0.7").unwrap(), "https://10.0.0.7/");
        // A url reads these as 0.0.0.10 and 127.0.0.1.
        assert_eq!(of("https://{nodename}/", "10"), None);
        assert_eq!(of("https://{nodename}/", "0x7f.1"), None);
        assert_eq!(of("https://m.x/{nodename}", "10").unwrap(), "https://m.x/10");
    }

    proptest! {
        /// S0-10: the text is found however the answer comes in parts. The broken variant searches each part alone.
        #[test]
        fn a_text_is_found_across_parts(body in "[ab]{0,40}", text in "[ab]{1,4}", at in 1..7usize) {
            let mut searched = Searched::for_text(&text);
            let parts: Vec<&[u8]> = body.as_bytes().chunks(at).collect();
            let found = parts.iter().any(|part| searched.finds(part));
            prop_assert_eq!(found, body.contains(&text));
        }
    }
}
