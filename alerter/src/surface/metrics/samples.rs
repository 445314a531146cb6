//! Where a metric's samples go.

use std::fmt;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;

/// Labels with their values.
type Labels<'l> = [(&'static str, &'l str)];

/// Where a metric's samples go.
pub(super) struct Samples<'e>(pub(super) Option<MetricEncoder<'e>>);

impl Samples<'_> {
    /// A gauge of whole numbers.
    pub(super) fn add(&mut self, labels: &Labels<'_>, value: impl TryInto<u64>) -> fmt::Result {
        self.one(labels, &ConstGauge::new(value.try_into().unwrap_or(u64::MAX)))
    }

    /// A gauge of any number.
    pub(super) fn real(&mut self, labels: &Labels<'_>, value: f64) -> fmt::Result {
        self.one(labels, &ConstGauge::new(value))
    }

    /// A counter.
    pub(super) fn count(&mut self, labels: &Labels<'_>, value: u64) -> fmt::Result {
        self.one(labels, &ConstCounter::new(value))
    }

    /// A histogram.
    pub(super) fn histogram(&mut self, labels: &Labels<'_>, value: &Histogram) -> fmt::Result {
        self.one(labels, value)
    }

    fn one(&mut self, labels: &Labels<'_>, value: &impl EncodeMetric) -> fmt::Result {
        match (&mut self.0, labels.is_empty()) {
            (Some(encoder), false) => value.encode(encoder.encode_family(&labels)?),
            // With an empty set of labels there would be empty braces. Such a metric has one sample.
            (encoder, true) => encoder.take().map_or(Ok(()), |encoder| value.encode(encoder)),
            (None, false) => Ok(()),
        }
    }
}
