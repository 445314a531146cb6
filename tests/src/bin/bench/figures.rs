//! Figures and how they are printed: one to a line, in columns.

use std::fmt;
use std::time::Duration;

use alerter::commands::summary::percentile;

/// Prints a figure with its name.
pub(crate) fn line(name: &str, figure: impl fmt::Display) {
    println!("{name:<44} {figure}");
}

/// Prints a ratio with what is wanted of it.
pub(crate) fn ratio(name: &str, ratio: f64, wanted: &str) {
    line(&format!("  {name}"), format_args!("{ratio:<9.3} wanted {wanted}"));
}

/// Durations in milliseconds.
#[derive(Default)]
pub(crate) struct Times(pub(crate) Vec<f64>);

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1000.0);
    }

    pub(crate) fn percentile(&self, percent: u8) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        percentile(&sorted, percent).unwrap_or(f64::NAN)
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:7.2} [{:.2} {:.2}]", self.median(), self.percentile(10), self.percentile(99))
    }
}

/// Rates for each second, one for each round.
#[derive(Default)]
pub(crate) struct Rates(pub(crate) Vec<f64>);

impl Rates {
    pub(crate) fn median(&self) -> f64 {
        Times(self.0.clone()).median()
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds: Vec<String> = self.0.iter().map(|rate| format!("{rate:.0}")).collect();
        write!(f, "{:7.0} a second   (rounds: {})", self.median(), rounds.join(" "))
    }
}
