//! `make bench`: speed and memory of the whole path, each figure beside the wanted one.
//!
//! No figure fails the run: the wanted value stands beside it. A wrong result does: a mark that is lost, that comes twice
//! without a reason, or out of order.

mod drain;
mod figures;
mod ledger;
mod memory;
mod route;
mod scale;

use std::time::Instant;

use anyhow::bail;

/// How many there are of something. A build without optimization, whose figures say nothing, measures few: CI sees that each
/// subject still works.
const fn size(full: usize) -> usize {
    if cfg!(debug_assertions) { full.div_ceil(50) } else { full }
}

/// The word for a subject, and what measures and prints it.
type Subject = (&'static str, fn() -> anyhow::Result<()>);

/// What can be measured, in the order in which it is.
const SUBJECTS: [Subject; 3] = [("drain", drain::run), ("memory", memory::run), ("scale", scale::run)];

/// Measures everything, or what the words name.
fn main() -> anyhow::Result<()> {
    let words: Vec<String> = tests::process::words();
    if let Some(unknown) = words.iter().find(|word| SUBJECTS.iter().all(|(name, _)| name != word)) {
        let names: Vec<&str> = SUBJECTS.iter().map(|(name, _)| *name).collect();
        bail!("{unknown} is not measured: choose from {}", names.join(", "));
    }
    let begun = Instant::now();
    println!("times are in milliseconds, as medians [p10 p99]");
    for (name, measure) in SUBJECTS {
        if words.is_empty() || words.iter().any(|word| word == name) {
            println!("\n== {name}");
            measure()?;
        }
    }
    println!("\nmeasured in {} s", begun.elapsed().as_secs());
    Ok(())
}
