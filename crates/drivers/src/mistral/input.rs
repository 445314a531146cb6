//! A workflow's input: a table of the configuration, with templates for its texts. Pure.

use std::collections::BTreeMap;

use marks::mark::Mark;
use serde_json::Value;
use site::Section;
use toml::de::DeValue;

use crate::event::TimeFormat;

/// A workflow's input, by name.
#[derive(Clone, Debug)]
pub struct Input(BTreeMap<String, Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(Template),
    Plain(Value),
    List(Vec<Part>),
    Table(Input),
}

impl Default for Input {
    /// The input that `fence_evacuate.py` gives its workflow.
    fn default() -> Self {
        let text = |text: &str| Part::Text(Template::parse(text).expect("these are known placeholders"));
        let search = Self([("host".to_owned(), text("{hostname}"))].into());
        let storage = ("on_shared_storage".to_owned(), text("{on_shared_storage}"));
        Self([("search_opts".to_owned(), Part::Table(search)), storage].into())
    }
}

impl Input {
    /// Reads the table.
    pub(super) fn read(mut table: Section<'_, '_>) -> Self {
        let mut parts = BTreeMap::new();
        for (key, entry) in table.entries() {
            let mut part = entry.table.is_some().then(|| Part::Table(Self::read(table.named_section(key))));
            for value in &entry.values {
                match Part::read(value.value) {
                    _ if entry.table.is_some() => {
                        table.complain_at(value.place, "is also a table, and cannot be a value too");
                    }
                    Ok(read) => part = Some(read),
                    Err(why) => table.complain_at(value.place, why),
                }
            }
            parts.extend(part.map(|part| (key.to_owned(), part)));
        }
        Self(parts)
    }

    /// The input for a mark.
    pub(super) fn value(&self, mark: &Mark, times: TimeFormat) -> Value {
        let filled = |(key, part): (&String, &Part)| (key.clone(), part.value(mark, times));
        Value::Object(self.0.iter().map(filled).collect())
    }
}

impl Part {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let whole = |value: &DeValue<'_>| {
            let integer = value.as_integer()?;
            i64::from_str_radix(integer.as_str(), integer.radix()).ok()
        };
        let fraction = |value: &DeValue<'_>| {
            let float: f64 = value.as_float()?.as_str().parse().ok()?;
            float.is_finite().then_some(float)
        };
        let plain = match value {
            DeValue::String(text) => return Template::parse(text).map(Self::Text),
            DeValue::Array(list) => {
                let parts = list.iter().map(|part| Self::read(part.get_ref()));
                return Ok(Self::List(parts.collect::<Result<_, _>>()?));
            }
            DeValue::Table(table) => {
                let named = |(key, part): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                    let key: &std::borrow::Cow<'_, str> = key.get_ref();
                    Ok((key.clone().into_owned(), Self::read(part.get_ref())?))
                };
                return Ok(Self::Table(Input(table.iter().map(named).collect::<Result<_, String>>()?)));
            }
            DeValue::Boolean(flag) => Some(Value::from(*flag)),
            DeValue::Integer(_) => whole(value).map(Value::from),
            DeValue::Float(_) => fraction(value).map(Value::from),
            DeValue::Datetime(_) => None,
        };
        let why =
            "must be a JSON value: text, a number that is not too large, true or false, a list or a table";
        plain.map(Self::Plain).ok_or_else(|| why.to_owned())
    }

    fn value(&self, mark: &Mark, times: TimeFormat) -> Value {
        match self {
            Self::Text(template) => template.value(mark, times),
            Self::Plain(value) => value.clone(),
            Self::List(parts) => parts.iter().map(|part| part.value(mark, times)).collect(),
            Self::Table(input) => input.value(mark, times),
        }
    }
}

/// A text with placeholders in it.
#[derive(Clone, Debug)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Field(Field),
}

/// What a template shows of a mark.
type Field = fn(&Mark, TimeFormat) -> Value;

/// All of them, by their names, as they stand between braces.
const FIELDS: [(&str, Field); 6] = [
    ("id", |mark, _| mark.id.to_string().into()),
    ("hostname", |mark, _| mark.fqdn.as_str().into()),
    ("node", |mark, _| mark.node.as_str().into()),
    ("failure_time", |mark, times| times.value(mark.failure_time)),
    ("generated_time", |mark, times| times.value(mark.generated_time)),
    ("on_shared_storage", |mark, _| mark.on_shared_storage.into()),
];

impl Template {
    /// Reads it.
    ///
    /// # Errors
    /// One sentence without any part of the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                plain.push(c);
                rest = after;
            } else if matches!(c, '{' | '}') {
                let (field, after) = field(rest).ok_or_else(unknown)?;
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Field(field));
                rest = after;
            } else {
                plain.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        pieces.push(Piece::Text(plain));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Ok(Self(pieces))
    }

    /// The value for a mark. A text that is one placeholder alone keeps its type: a number, or true or false.
    pub(super) fn value(&self, mark: &Mark, times: TimeFormat) -> Value {
        match self.0.as_slice() {
            [Piece::Field(field)] => field(mark, times),
            _ => self.text(mark, times).into(),
        }
    }

    /// The same as a text.
    pub(super) fn text(&self, mark: &Mark, times: TimeFormat) -> String {
        let shown = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Field(field) => match field(mark, times) {
                Value::String(text) => text,
                other => other.to_string(),
            },
        };
        self.0.iter().map(shown).collect()
    }
}

/// The placeholder at the beginning of a text, and the rest behind it.
fn field(text: &str) -> Option<(Field, &str)> {
    let (name, after) = text.strip_prefix('{')?.split_once('}')?;
    let (_, field) = FIELDS.iter().find(|(known, _)| *known == name)?;
    Some((*field, after))
}

fn unknown() -> String {
    let names: Vec<String> = FIELDS.iter().map(|(name, _)| format!("{{{name}}}")).collect();
    format!("unknown placeholder; known are: {}; a brace itself is written twice", names.join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::event::tests::mark;

    use super::*;

    fn filled(text: &str, times: TimeFormat) -> Value {
        Template::parse(text).unwrap().value(&mark(), times)
    }

    /// The broken variant makes everything a text: a workflow takes "false" for true.
    #[test]
    fn a_placeholder_alone_keeps_its_type() {
        for (text, expected) in [
            ("{on_shared_storage}", json!(true)),
            ("{failure_time}", json!(1_784_600_000)),
            ("{generated_time}", json!(1_784_600_001)),
            ("{hostname}", json!("Compute1.my.cloud.com")),
            ("{node}", json!("compute1")),
            ("{id}", json!("0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b")),
            (" {on_shared_storage}", json!(" true")),
            ("{node} at {failure_time}", json!("compute1 at 1784600000")),
            ("{{node}} {{{node}}}", json!("{node} {compute1}")),
            ("<% $.x %> {{{{ _.x }}}}", json!("<% $.x %> {{ _.x }}")),
            ("", json!("")),
            ("ä{node}ö", json!("äcompute1ö")),
        ] {
            assert_eq!(filled(text, TimeFormat::Epoch), expected, "{text}");
        }
        assert_eq!(filled("{failure_time}", TimeFormat::Rfc3339), json!("2026-07-21T02:13:20Z"));
        let careless = Template::parse("{on_shared_storage}").unwrap().text(&mark(), TimeFormat::Epoch);
        assert_ne!(json!(careless), filled("{on_shared_storage}", TimeFormat::Epoch));
    }

    #[test]
    fn what_is_no_placeholder_is_said() {
        for text in ["{host}", "{", "}", "a}b", "{node", "{}", "{ node }", "{{node}", "{node}}"] {
            let why = Template::parse(text).unwrap_err();
            assert!(why.starts_with("unknown placeholder; known are: {id}, {hostname}"), "{text}: {why}");
        }
    }

    proptest! {
        /// A text with its braces doubled comes out unchanged.
        #[test]
        fn any_text_can_be_said(text in ".{0,60}") {
            let doubled = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(filled(&doubled, TimeFormat::Epoch), json!(text));
            let _never_panics = Template::parse(&text);
        }
    }
}
