//! The text of a scrape: OpenMetrics, or Prometheus' own older format for those that do not ask for it.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::catalogue::{ALL, Kind, PREFIX};
use super::samples::Samples;
use super::sight::Sight;
use crate::state::Shared;

/// The format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format 0.0.4: for people, and for tools that know nothing newer.
    Plain,
}

impl Form {
    /// What a client that accepts this gets.
    pub fn of(accept: &str) -> Self {
        if accept.split(',').any(wants_open_metrics) { Self::OpenMetrics } else { Self::Plain }
    }

    /// The content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Whether this part of `Accept` names it, and does not refuse it with a weight of zero.
fn wants_open_metrics(part: &str) -> bool {
    let mut words = part.split(';').map(|word| word.trim().to_ascii_lowercase());
    let is_named = words.next().is_some_and(|kind| kind == "application/openmetrics-text");
    let is_zero = |word: String| word.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
    is_named && !words.any(is_zero)
}

/// Everything as it is now, from memory.
pub fn write(shared: &Shared, form: Form) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Scrape(Sight::of(shared))));
    let mut out = String::new();
    text::encode(&mut out, &registry).expect("a String takes everything");
    match form {
        Form::OpenMetrics => out,
        Form::Plain => plain(&out),
    }
}

#[derive(Debug)]
struct Scrape(Sight);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in ALL {
            let unit = metric.unit.map(|unit| Unit::Other(unit.to_owned()));
            let kind = match metric.kind {
                Kind::Gauge => MetricType::Gauge,
                Kind::Counter => MetricType::Counter,
                Kind::Histogram => MetricType::Histogram,
            };
            let encoder = encoder.encode_descriptor(metric.stem(), metric.help, unit.as_ref(), kind)?;
            (metric.values)(&self.0, &mut Samples(Some(encoder)))?;
        }
        Ok(())
    }
}

/// The older format names a counter's family as its samples, and knows neither units nor an end.
fn plain(text: &str) -> String {
    let counters: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("UNIT" | "EOF"), ..) => continue,
            (Some("#"), Some(what), Some(name), Some(rest)) if counters.contains(&name) => {
                out += &format!("# {what} {name}_total {rest}");
            }
            _ => out += line,
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant searches the name alone.
    #[test]
    fn a_form_of_no_weight_is_not_wanted() {
        for (accept, form) in [
            ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3", Form::OpenMetrics),
            ("text/plain, Application/OpenMetrics-Text", Form::OpenMetrics),
            ("application/openmetrics-text; q=0.0, text/plain", Form::Plain),
            ("text/plain", Form::Plain),
            ("", Form::Plain),
        ] {
            assert_eq!(Form::of(accept), form, "{accept}");
        }
    }
}
