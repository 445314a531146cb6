//! The names that a request over TCP may use for this machine. A web site could let its own name lead to an address of this machine (DNS
//! rebinding) and read an answer through a visitor's browser; it cannot use an address or a name of this machine as its own.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::address::{Address, Host};

/// Names of this machine without a name service.
const HOSTS: &str = "/etc/hosts";
const REFUSED: &str = "nothing is answered under this name: use an IP address, localhost, or a name of this machine, or add the name to allowed-hosts in the configuration\n";

/// The names that are answered, beside addresses and `localhost`.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeSet<String>);

impl Names {
    /// The names of the configured addresses, those of `allowed-hosts`, and this machine's own.
    pub fn of(addresses: &[Address], allowed: &[String]) -> Self {
        let host = nix::unistd::gethostname().unwrap_or_default();
        let hosts = fs::read_to_string(HOSTS).unwrap_or_default();
        Self::with(addresses, allowed, &own(&host.to_string_lossy(), &hosts))
    }

    fn with(addresses: &[Address], allowed: &[String], own: &[String]) -> Self {
        let configured = addresses.iter().filter_map(|address| match address {
            Address::Tcp { host: Host::Name(name), .. } => Some(name),
            _ => None,
        });
        Self(configured.chain(allowed).chain(own).map(|name| name.to_ascii_lowercase()).collect())
    }

    fn knows(&self, host: &str) -> bool {
        if let Some(inner) = host.strip_prefix('[') {
            let inner = inner.split_once(']').filter(|(_, port)| is_port(port));
            return inner.is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
        }
        let (name, port) = host.find(':').map_or((host, ""), |at| host.split_at(at));
        let name = name.to_ascii_lowercase();
        is_port(port) && (name == "localhost" || name.parse::<IpAddr>().is_ok() || self.0.contains(&name))
    }

    /// Whether a request is answered. No browser asks without a `Host`; health checkers that speak HTTP/1.0 do.
    fn take(&self, request: &Request) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        hosts.all(|host| host.to_str().is_ok_and(|host| self.knows(host)))
    }
}

/// Refuses requests with another name, before anything else of them is read.
pub(super) fn only(router: Router, names: Names) -> Router {
    let names = Arc::new(names);
    router.layer(middleware::from_fn(move |request: Request, next: Next| {
        let names = Arc::clone(&names);
        async move { answer(&names, request, next).await }
    }))
}

async fn answer(names: &Names, request: Request, next: Next) -> Response {
    match names.take(&request) {
        true => next.run(request).await,
        false => (StatusCode::MISDIRECTED_REQUEST, REFUSED).into_response(),
    }
}

/// What the kernel calls this machine, without its domain too, and every name that the file has beside one of these.
fn own(host: &str, hosts: &str) -> Vec<String> {
    let short = host.split('.').next().unwrap_or_default();
    let is_own = |name: &&str| name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(short);
    let beside = hosts.lines().map(|line| line.split('#').next().unwrap_or_default()).flat_map(|line| {
        let names: Vec<&str> = line.split_whitespace().skip(1).collect();
        if names.iter().any(is_own) { names } else { Vec::new() }
    });
    [host, short].into_iter().chain(beside).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;
    use crate::listen;

    const HOSTS: &str =
        "127.0.0.1 localhost\n127.0.1.1\tctl2.my.cloud ctl2 # ctl9 ctl2\n192.0.2.9 evil.example other\n";

    fn names() -> Names {
        let addresses = listen::parse("tcp://page.example.org:7430,unix:///run/page.sock").unwrap();
        Names::with(&addresses, &["Metrics.example.org".to_owned()], &own("CTL2", HOSTS))
    }

    /// The broken variant believes every name: that of another site, or one that is only similar to ours.
    #[test]
    fn only_our_own_names_are_answered() {
        let names = names();
        for known in [
            "localhost",
            "LOCALHOST:7430",
            "127.0.0.1:7430",
            "[::1]:7430",
            "[::1]",
            "page.example.org:80",
            "metrics.example.org",
            "ctl2:7411",
            "CTL2.my.cloud:7411",
        ] {
            assert!(names.knows(known), "{known}");
        }
        for strange in [
            "evil.example",
            "other",
            "ctl9",
            "ctl2.evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            ":80",
            "[evil]",
            "localhost:x",
            "[::1]evil",
        ] {
            assert!(!names.knows(strange), "{strange}");
        }
        assert_eq!(own("ctl2.my.cloud", ""), ["ctl2.my.cloud", "ctl2"]);
    }

    /// HAProxy's `option httpchk` and netcat ask by HTTP/1.0 without a name, which no browser does.
    #[test]
    fn who_asks_without_a_name_is_answered_and_who_asks_by_two_is_not_believed() {
        let asked = |hosts: &[&str]| {
            let mut request = Request::builder();
            for host in hosts {
                request = request.header(HOST, *host);
            }
            names().take(&request.body(Body::empty()).unwrap())
        };
        assert!(asked(&[]) && asked(&["ctl2"]));
        assert!(!asked(&["evil.example"]) && !asked(&["ctl2", "evil.example"]));
    }
}
