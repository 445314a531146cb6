//! The text of a scrape: OpenMetrics, whatever a client asks for.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::catalogue::{ALL, Kind, PREFIX};
use super::samples::Samples;
use super::sight::Sight;
use crate::state::Shared;

/// OpenMetrics 1.0.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Everything as it is now, from memory.
pub fn write(shared: &Shared) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Scrape(Sight::of(shared))));
    let mut out = String::new();
    text::encode(&mut out, &registry).expect("a String takes everything");
    out
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
