//! A comma list of addresses, each a URI by RFC 3986: `tcp://HOST:PORT` or `unix:///PATH`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use axum::http::uri::Authority;

/// The kernel takes no longer path of a unix socket (`sun_path` with its end).
pub(crate) const PATH_MAX: usize = 107;

/// Where something is served.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// `tcp://HOST:PORT`.
    Tcp {
        /// The address, or the name of one.
        host: Host,
        /// From 1.
        port: u16,
    },
    /// `unix:///PATH`; absolute.
    Unix(PathBuf),
}

/// What stands before a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// An address.
    Ip(IpAddr),
    /// A name, in lower case, that is resolved when it is listened to.
    Name(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host: Host::Ip(ip), port } => write!(f, "tcp://{}", SocketAddr::new(*ip, *port)),
            Self::Tcp { host: Host::Name(name), port } => write!(f, "tcp://{name}:{port}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

impl Address {
    /// Whether others than this machine may reach it: whatever is neither a unix socket nor loopback by its name.
    pub fn is_routable(&self) -> bool {
        match self {
            Self::Unix(_) => false,
            Self::Tcp { host: Host::Ip(ip), .. } => !ip.to_canonical().is_loopback(),
            Self::Tcp { host: Host::Name(name), .. } => name != "localhost" && !name.ends_with(".localhost"),
        }
    }
}

/// Reads a comma list. Letters of schemes and names may be upper case; blanks are not allowed, as anywhere in a URI.
///
/// # Errors
/// What is wrong with the first wrong one, by its number; never its text, which may hold a password.
pub fn parse(text: &str) -> Result<Vec<Address>, String> {
    let mut addresses = Vec::new();
    for (index, item) in text.split(',').enumerate() {
        let number = index + 1;
        let address = one(item).map_err(|why| format!("address {number} {why}"))?;
        if let Some(first) = addresses.iter().position(|other| *other == address) {
            return Err(format!("address {number} is the same as address {}: remove one of them", first + 1));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

const FORM: &str = "must be tcp://HOST:PORT or unix:///PATH";

fn one(item: &str) -> Result<Address, String> {
    if item.is_empty() {
        return Err(format!("is empty: it {FORM}, and commas are only between addresses"));
    }
    if item.contains(char::is_whitespace) {
        return Err("has a blank in it: leave out blanks, also after commas".to_owned());
    }
    let Some((scheme, rest)) = item.split_once("://") else {
        let fault = if item.contains(':') { "has no // behind its scheme" } else { "is not a URI" };
        return Err(format!("{fault}: it {FORM}"));
    };
    if rest.contains(['?', '#']) {
        return Err(format!("has a query or a fragment: it {FORM}"));
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err("names a user: leave out the part before @".to_owned());
    }
    let address = match scheme.to_ascii_lowercase().as_str() {
        "tcp" => tcp(authority, path)?,
        "unix" => unix(authority, path)?,
        _ => return Err(format!("has an unknown scheme: it {FORM}")),
    };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.:/[]".contains(&b);
    if !item.bytes().all(is_plain) {
        return Err("has a character that is not allowed: use letters, digits and - _ . : / [ ]".to_owned());
    }
    Ok(address)
}

/// What is no authority is mostly a bare IPv6 address.
fn no_authority(text: &str) -> String {
    if text.matches(':').count() > 1 && !text.contains('[') {
        return "has an IPv6 address without brackets, or more than one port: write tcp://[::1]:PORT"
            .to_owned();
    }
    format!("is not a URI (RFC 3986): it {FORM}")
}

fn tcp(text: &str, path: &str) -> Result<Address, String> {
    let authority: Authority = text.parse().map_err(|_| no_authority(text))?;
    if !path.is_empty() {
        return Err("has a path: end it after the port".to_owned());
    }
    let bare = authority.host().trim_matches(['[', ']']);
    let is_in_brackets = bare != authority.host();
    let host = match bare.parse::<IpAddr>() {
        Ok(ip) if ip.is_ipv6() == is_in_brackets => Host::Ip(ip),
        _ if is_in_brackets => return Err(no_authority(text)),
        _ => Host::Name(name_of(bare)?),
    };
    match authority.port_u16() {
        Some(port) if port != 0 => Ok(Address::Tcp { host, port }),
        None if authority.as_str().len() == authority.host().len() => {
            Err("has no port: write tcp://HOST:PORT".to_owned())
        }
        _ => Err("has no usable port: it must be from 1 to 65535".to_owned()),
    }
}

/// A name whose last part is a number is a mistyped IPv4 address: some resolvers turn it into another address.
fn name_of(name: &str) -> Result<String, String> {
    let labels: Vec<&str> = name.split('.').collect();
    let is_label =
        |label: &&str| (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-');
    let last_is_number = labels.last().is_some_and(|label| label.parse::<u64>().is_ok());
    match name {
        "" => Err("has no host: write 127.0.0.1 for this machine alone".to_owned()),
        _ if last_is_number => Err("has a host that is neither an IPv4 address nor a name".to_owned()),
        _ if !labels.iter().all(is_label) || name.len() > 253 => {
            Err("has a host that is not a name".to_owned())
        }
        _ => Ok(name.to_ascii_lowercase()),
    }
}

fn unix(authority: &str, path: &str) -> Result<Address, String> {
    if !authority.is_empty() {
        return Err("has no absolute path: write three slashes, as in unix:///run/NAME.sock".to_owned());
    }
    let steps = path.strip_prefix('/').unwrap_or_default();
    if steps.split('/').any(|step| matches!(step, "" | "." | "..")) {
        return Err("has a path that is not plain: each step must be a name, none of them . or ..".to_owned());
    }
    if path.len() > PATH_MAX {
        return Err(format!("has a path that is too long for a socket: {PATH_MAX} bytes at the most"));
    }
    Ok(Address::Unix(Path::new(path).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<String>, String> {
        parse(text).map(|found| found.iter().map(ToString::to_string).collect())
    }

    /// S3-17, S3-40: both schemes, alone and in a list. They are shown as they are compared: in lower case, as addresses.
    #[test]
    fn addresses_of_both_schemes_are_read() {
        for (text, shown) in [
            ("tcp://localhost:42424", vec!["tcp://localhost:42424"]),
            ("unix:///run/nova/nova-compute.sock", vec!["unix:///run/nova/nova-compute.sock"]),
            ("tcp://127.0.0.1:1,unix:///run/a.sock", vec!["tcp://127.0.0.1:1", "unix:///run/a.sock"]),
            ("TCP://LocalHost:65535", vec!["tcp://localhost:65535"]),
            ("tcp://[::1]:7410,tcp://[::]:7410", vec!["tcp://[::1]:7410", "tcp://[::]:7410"]),
            ("tcp://[0:0::1]:7", vec!["tcp://[::1]:7"]),
            ("tcp://ctl-1.my_cloud.com:7", vec!["tcp://ctl-1.my_cloud.com:7"]),
            ("unix:///run/A_b-c.d/0", vec!["unix:///run/A_b-c.d/0"]),
        ] {
            assert_eq!(all(text), Ok(shown.iter().map(|&text| text.to_owned()).collect()), "{text}");
        }
    }

    const REFUSED: &[(&str, &str)] = &[
        ("", "is empty"),
        ("tcp://h:1,", "address 2 is empty"),
        ("tcp://h:1, tcp://h:2", "blank"),
        ("tcp://h:1,tcp://h:1", "address 2 is the same as address 1"),
        ("tcp://[::1]:1,tcp://[0::1]:1", "the same"),
        ("unix://./a.sock", "three slashes"),
        ("unix:a.sock", "no //"),
        ("unix://", "not plain"),
        ("unix:///run/", "not plain"),
        ("unix:///run/../a", "not plain"),
        ("unix:///run/a%2fb", "a character"),
        ("http://h:1", "unknown scheme"),
        ("h:1", "no //"),
        ("/run/a.sock", "not a URI"),
        ("tcp://s3cret@h:1", "user"),
        ("tcp://h:1?s3cret", "query"),
        ("tcp://h:1#s3cret", "fragment"),
        ("tcp://h", "no port"),
        ("tcp://h:65536", "1 to 65535"),
        ("tcp://localhost:424242", "1 to 65535"),
        ("tcp://:1", "no host"),
        ("tcp://::1:7410", "brackets"),
        ("tcp://[::1", "not a URI"),
        ("tcp://[fe80::1%25eth0]:1", "not a URI"),
        ("tcp://256.0.0.1:1", "neither an IPv4 address"),
        ("tcp://a..b:1", "not a name"),
        ("tcp://h!:1", "a character"),
        ("tcp://h:1/", "a path"),
        ("tcp://h:1;tcp://g:1", "more than one port"),
    ];

    /// S3-40, S3-42: everything else is refused, with a word of what is wrong, and without any of the text.
    #[test]
    fn everything_else_is_refused() {
        for (text, why) in REFUSED {
            let said = parse(text).expect_err(text);
            assert!(said.contains(why), "{text:?}: {said}");
            assert!(!said.contains("s3cret") && said.starts_with("address "), "{text:?}: {said}");
        }
        assert!(parse(&format!("unix:///{}", "a".repeat(PATH_MAX))).is_err());
        assert!(parse(&format!("unix:///{}", "a".repeat(PATH_MAX - 1))).is_ok());
    }

    /// S3-36. The broken variant takes an IPv4 address in IPv6 for a routable one, and every name for a harmless one.
    #[test]
    fn what_others_may_reach_is_known() {
        for (text, is_routable) in [
            ("tcp://127.0.0.1:1", false),
            ("tcp://127.9.9.9:1", false),
            ("tcp://[::1]:1", false),
            ("tcp://[::ffff:127.0.0.1]:1", false),
            ("tcp://localhost:1", false),
            ("unix:///run/a", false),
            ("tcp://0.0.0.0:1", true),
            ("tcp://[::]:1", true),
            ("tcp://192.0.2.1:1", true),
            ("tcp://ctl1:1", true),
            ("tcp://localhost.my.cloud.com:1", true),
        ] {
            assert_eq!(parse(text).map(|found| found[0].is_routable()), Ok(is_routable), "{text}");
        }
    }
}
