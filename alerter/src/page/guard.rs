//! Who is answered, and what a browser may do with the answer.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::listen::{Address, Host};

/// Nothing is loaded from elsewhere, nothing is sent anywhere, and nobody puts the page into another.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// The names under which the page is asked for.
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Those of the configured addresses.
    pub(super) fn of(addresses: &[Address]) -> Self {
        let name = |address: &Address| match address {
            Address::Tcp { host: Host::Name(name), .. } => Some(name.to_ascii_lowercase()),
            _ => None,
        };
        Self(addresses.iter().filter_map(name).collect())
    }

    /// A web site could let its own name lead to this machine (DNS rebinding) and read the page through a visitor's
    /// browser; it cannot choose an address as its name.
    fn knows(&self, host: &str) -> bool {
        if let Some(inner) = host.strip_prefix('[') {
            let inner = inner.split_once(']').filter(|(_, port)| is_port(port));
            return inner.is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
        }
        let (name, port) = host.find(':').map_or((host, ""), |at| host.split_at(at));
        let name = name.to_ascii_lowercase();
        is_port(port) && (name == "localhost" || name.parse::<IpAddr>().is_ok() || self.0.contains(&name))
    }
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

pub(super) async fn checked(names: &Names, request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let mut answer = match host.is_some_and(|host| names.knows(host)) {
        true => next.run(request).await,
        false => {
            let told = "ask for the page by localhost, by an address, or by the name in [page] uri\n";
            (StatusCode::MISDIRECTED_REQUEST, told).into_response()
        }
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen;

    /// The broken variant believes every name: that of another site, or one that only looks like ours.
    #[test]
    fn only_our_own_names_are_answered() {
        let names = Names::of(&listen::parse("tcp://ctl1.example.org:7430,unix:///run/page.sock").unwrap());
        for known in
            ["localhost", "LOCALHOST:7430", "127.0.0.1:7430", "[::1]:7430", "[::1]", "ctl1.example.org:80"]
        {
            assert!(names.knows(known), "{known}");
        }
        for strange in [
            "evil.example",
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
    }
}
