//! How a body is laid out.

use marks::delivery::RETURN;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::Url;

use crate::event::template::Template;
use crate::event::{self, TimeFormat};
use crate::web;

/// How a body is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The standard event.
    #[default]
    Standard,
    /// The standard event with the extensions.
    Extended,
    /// By the operator's template.
    Template {
        /// The template.
        template: Template,
        /// Where returns go, if not to the route's `url`.
        return_url: Option<ReturnUrl>,
    },
}

impl Layout {
    /// The same with the address of returns, where the body is by a template.
    pub(super) fn with_return_url(self, url: Option<ReturnUrl>) -> Self {
        match self {
            Self::Template { template, .. } => Self::Template { template, return_url: url },
            other => other,
        }
    }

    /// The body of a failure.
    pub(super) fn failure(&self, mark: &Mark, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_mark(mark, format),
            Self::Extended => event::extended(mark, format),
            Self::Template { template, .. } => template.of_mark(mark, format),
        }
    }

    /// The body of a return.
    pub(super) fn back(&self, mark: &Mark, returned: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_return(mark, returned, format),
            Self::Extended => event::extended_return(mark, returned, format),
            Self::Template { template, .. } => template.of_return(mark, returned, format),
        }
    }

    /// The body of a test.
    pub(super) fn test(&self, id: &MarkId, now: Timestamp, format: TimeFormat) -> Vec<u8> {
        match self {
            Self::Standard => event::of_test(id, now, format),
            Self::Extended => event::extended_test(id, now, format),
            Self::Template { template, .. } => template.of_test(id, now, format),
        }
    }

    /// Where the return of this mark goes, if not to the route's `url`.
    pub(super) fn return_url(&self, id: &MarkId) -> Option<Url> {
        match self {
            Self::Template { return_url: Some(url), .. } => Some(url.of(id)),
            _ => None,
        }
    }
}

/// An address with places in its path or query. It is a url whatever the id is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnUrl {
    /// All in front of the first place: the scheme, the host and the port at least.
    start: String,
    /// Each place, with what stands between it and the next one.
    places: Vec<(Place, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Id,
    Key,
}

impl ReturnUrl {
    /// Reads an address that has the scheme, the host and the port of `url`, which is known to be safe.
    ///
    /// # Errors
    /// One sentence: it has another place, or one in its host, or is no address.
    pub(super) fn parse(text: &str, url: Option<&Url>) -> Result<Self, String> {
        let mut parts = text.split("{{");
        let start = plain(parts.next().unwrap_or_default())?;
        let places = parts.map(place).collect::<Result<Vec<_>, _>>()?;
        let read = Self { start, places };
        let [filled, other] = ["2", "3"].map(|id| web::address(&read.with(id, id), true));
        let filled = filled?;
        if !is_at(&filled, &other?) {
            return Err("may have {{ id }} and {{ key }} only behind its host".to_owned());
        }
        match url.is_none_or(|url| is_at(url, &filled)) {
            true => Ok(read),
            false => Err("must have the scheme, the host and the port of url".to_owned()),
        }
    }

    /// The address for a mark. An id has no character that an address must encode.
    pub(super) fn of(&self, id: &MarkId) -> Url {
        let id = id.to_string();
        let text = self.with(&id, &format!("{id}{RETURN}"));
        text.parse().expect("no id in a path or a query makes a url another thing")
    }

    fn with(&self, id: &str, key: &str) -> String {
        let mut text = self.start.clone();
        for (place, rest) in &self.places {
            text += match place {
                Place::Id => id,
                Place::Key => key,
            };
            text += rest;
        }
        text
    }
}

/// A place, behind its opening braces, and what follows it.
fn place(text: &str) -> Result<(Place, String), String> {
    let (name, rest) = text.split_once("}}").ok_or_else(unknown)?;
    let place = match name.trim() {
        "id" => Place::Id,
        "key" => Place::Key,
        _ => return Err(unknown()),
    };
    Ok((place, plain(rest)?))
}

/// Text without places. Braces are in no url.
fn plain(text: &str) -> Result<String, String> {
    if text.contains(['{', '}']) { Err(unknown()) } else { Ok(text.to_owned()) }
}

fn unknown() -> String {
    "may have nothing in braces but {{ id }} and {{ key }}".to_owned()
}

/// Whether both have the same scheme, host and port.
fn is_at(one: &Url, other: &Url) -> bool {
    let place = |url: &Url| (url.host().map(|host| host.to_owned()), url.port_or_known_default());
    one.scheme() == other.scheme() && place(one) == place(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b";

    fn read(text: &str) -> Result<ReturnUrl, String> {
        ReturnUrl::parse(text, Some(&"https://h/v2".parse().unwrap()))
    }

    #[test]
    fn an_address_has_the_id_in_it() {
        let id = MarkId::parse(ID).unwrap();
        for (text, expected) in [
            (
                "https://h/v2/alerts/{{ id }}/close?key={{ key }}&by=a%20b",
                format!("https://h/v2/alerts/{ID}/close?key={ID}.return&by=a%20b"),
            ),
            ("https://h:443?{{id}}", format!("https://h/?{ID}")),
            ("https://h/closed", "https://h/closed".to_owned()),
        ] {
            assert_eq!(read(text).unwrap().of(&id).as_str(), expected);
        }
    }

    /// The broken variants are an address of ours with some ids, and with others none, or one of another host.
    #[test]
    fn an_address_that_depends_on_the_id_is_refused() {
        let braces = "may have nothing in braces but {{ id }} and {{ key }}";
        let host = "may have {{ id }} and {{ key }} only behind its host";
        for (text, why) in [
            ("https://h/{% if id == \"00000000-0000-7000-8000-000000000000\" %}x{% endif %}", braces),
            ("{% if id < \"1\" %}https://h/x{% endif %}", braces),
            ("https://h/{{ id if id < \"1\" }}", braces),
            ("https://h/{{ id / 0 }}", braces),
            ("https://h/{{ id|upper }}", braces),
            ("https://h/{{ id[:8] }}", braces),
            ("https://h/{{ hostname }}", braces),
            ("https://h/{{ id", braces),
            ("https://h/ id }}", braces),
            ("https://h/{# id #}", braces),
            ("https://h/{{{ id }}}", braces),
            ("https://{{ id }}", host),
            ("https://{{ id }}.h/", host),
            ("https://h:{{ id }}/", host),
            ("https:{{ id }}//h/", host),
            ("https:///{{ id }}/", host),
            (r"https://\/{{ id }}/", host),
        ] {
            assert_eq!(read(text).unwrap_err(), why, "{text}");
        }
        assert!(read("{{ id }}://h/").unwrap_err().contains("not a valid url"));
        assert!(read("https://other/{{ id }}").unwrap_err().contains("the host and the port of url"));
        assert!(read("https://h/#{{ id }}").unwrap_err().contains("fragment"));
    }
}
