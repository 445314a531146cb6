//! `make bench`: speed and memory of the whole path, as ratios. Every figure stands beside a floor or a peer that was
//! measured in the same run, in turns with it, so that a busy machine slows both.
//!
//! No figure fails the run: the wanted value stands beside it. A wrong result does: a mark that is lost, that comes twice
//! without a reason, or out of order.

mod agent;
mod drain;
mod figures;
mod fold;
mod health;
mod latency;
mod ledger;
mod memory;
mod neighbours;
mod outage;
mod page;
mod path;
mod peers;
mod plan;
mod process;
mod route;
mod scale;

use std::time::Instant;

use anyhow::bail;

/// More pressure on the processors than this, in percent, comes from other work.
const QUIET: f64 = 12.0;

/// How many there are of something. A build without optimization, whose figures say nothing, measures few: CI sees that each
/// subject still works.
const fn size(full: usize) -> usize {
    if cfg!(debug_assertions) { full.div_ceil(50) } else { full }
}

/// The word for a subject, and what measures and prints it.
type Subject = (&'static str, fn() -> anyhow::Result<()>);

/// What can be measured, in the order in which it is.
const SUBJECTS: [Subject; 12] = [
    ("agent", agent::run),
    ("path", path::run),
    ("fold", fold::run),
    ("drain", drain::run),
    ("latency", latency::run),
    ("memory", memory::run),
    ("neighbours", neighbours::run),
    ("health", health::run),
    ("outage", outage::run),
    ("page", page::run),
    ("plan", plan::run),
    ("scale", scale::run),
];

/// Measures everything, or what the words name.
fn main() -> anyhow::Result<()> {
    let words: Vec<String> = tests::process::words();
    if let [word, program, stdin] = &words[..]
        && word == agent::PEAK
    {
        return agent::print_peak(program, stdin);
    }
    if let Some(unknown) = words.iter().find(|word| SUBJECTS.iter().all(|(name, _)| name != word)) {
        let names: Vec<&str> = SUBJECTS.iter().map(|(name, _)| *name).collect();
        bail!("{unknown} is not measured: choose from {}", names.join(", "));
    }
    let begun = Instant::now();
    println!("times are in milliseconds, as medians [p10 p99]");
    if let Some(pressure) = process::pressure().filter(|pressure| *pressure > QUIET) {
        println!(
            "this machine is busy ({pressure:.0} % of the time somebody waits for a processor): figures are noisy"
        );
    }
    for (name, measure) in SUBJECTS {
        if words.is_empty() || words.iter().any(|word| word == name) {
            println!("\n== {name}");
            measure()?;
        }
    }
    println!("\nmeasured in {} s", begun.elapsed().as_secs());
    Ok(())
}
