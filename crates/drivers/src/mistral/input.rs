//! A workflow's input: a table of the configuration, with templates for its texts. Pure.

use std::collections::BTreeMap;

use marks::mark::Mark;
use serde_json::Value;
use site::Section;
use toml::de::DeValue;

use super::template::Template;
use crate::event::TimeFormat;

/// A workflow's input, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Input(BTreeMap<String, Part>);

#[derive(Clone, Debug, PartialEq)]
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
