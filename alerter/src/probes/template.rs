//! A text with the host's name in it: `{nodename}`, and no other name in braces.

use std::fmt;

/// What stands for the host's name, as Pacemaker calls the node.
const PLACE: &str = "{nodename}";

/// Such a text. It may hold a secret, so that it does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Template(
    /// What stands between the places.
    Vec<String>,
);

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// A brace that does not belong to `{nodename}`; one sentence for the operator.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<String> = text.split(PLACE).map(str::to_owned).collect();
        match parts.iter().any(|part| part.contains(['{', '}'])) {
            true => {
                Err("the only name allowed in braces is {nodename}, Pacemaker's name of the host".to_owned())
            }
            false => Ok(Self(parts)),
        }
    }

    /// Whether the host's name stands in it.
    pub fn is_about_the_host(&self) -> bool {
        self.0.len() > 1
    }

    /// The text with this name in it.
    pub fn fill(&self, name: &str) -> String {
        self.0.join(name)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").finish_non_exhaustive()
    }
}

/// The message about a text that is the same for every host.
pub(super) fn same_for_all() -> String {
    format!("must contain {PLACE}: without it the probe is the same for every host")
}

/// A name as it may stand anywhere in a url: all but the unreserved characters of RFC 3986 are encoded.
pub(super) fn percent_encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let encoded = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S0-8: `{nodename}` wherever it stands, and no other name.
    #[test]
    fn only_the_nodes_name_is_filled_in() {
        for (text, filled) in [
            ("https://{nodename}:8774/health", "https://c1:8774/health"),
            ("{nodename}", "c1"),
            ("https://m/{nodename}?h={nodename}", "https://m/c1?h=c1"),
        ] {
            let template = Template::parse(text).unwrap();
            assert!(template.is_about_the_host());
            assert_eq!(template.fill("c1"), filled);
        }
        assert!(!Template::parse("plain").unwrap().is_about_the_host());
        for text in
            ["{fqdn}", "{}", "{nodename", "nodename}", "{{nodename}}", "{ nodename }", "{Nodename}", "a{b}c"]
        {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    /// S0-8: nothing in a name ends the part of the url that it stands in.
    #[test]
    fn a_name_cannot_leave_its_place_in_a_url() {
        assert_eq!(percent_encoded("compute-1.rack_2"), "compute-1.rack_2");
        assert_eq!(percent_encoded("a/b?c#d@e:f%g h\u{e4}"), "a%2Fb%3Fc%23d%40e%3Af%25g%20h%C3%A4");
    }
}
