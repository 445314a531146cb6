//! The simulator: from a seed it plays hours of a cloud against the real journal, intake, policy, chains, outboxes and endpoints,
//! with a clock that is moved by hand, and an audit checks every step (`make simulate`).

mod audit;
mod daemon;
mod run;
mod story;
mod world;

use std::collections::BTreeMap;
use std::time::Instant;

use daemon::Broken;
use marks::host::HostName;
use run::{Played, play, play_story};
use story::{Scale, Story};

/// In `cargo test`.
const FEW: Scale = Scale { hours: 2, most_hosts: 16, hard: 0 };
/// By how hard it is. 1: with clocks that differ, lost registers and parts of them, forged entries, cluster nodes, disks that cannot be
/// written, and routes that refuse some hosts. 3: with clocks that differ by years too, and are set.
const SEEDS_OF: [(u64, u64); 3] = [(0, 3), (1, 7), (3, 25)];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().filter(|text| !text.is_empty()).map(|text| text.parse().expect("a number"))
}

fn complain(seed: u64, played: &Played) {
    println!("make simulate SEED={seed}");
    played.violations.iter().for_each(|wrong| println!("    {wrong}"));
}

/// S4-53, S0-21: whatever happens, every outage is sent as the rules say, and nothing that is held is sent.
#[test]
fn stories_of_a_few_seeds_break_no_promise() {
    let stories = SEEDS_OF
        .into_iter()
        .flat_map(|(hard, seeds)| (0..seeds).map(move |seed| (seed, Scale { hard, ..FEW })));
    let bad: Vec<(u64, Scale)> = stories
        .filter(|(seed, scale)| {
            let played = play(*seed, *scale, Broken::Not, false);
            if !played.violations.is_empty() {
                complain(*seed, &played);
            }
            !played.violations.is_empty()
        })
        .collect();
    assert!(bad.is_empty(), "seeds {bad:?}");
}

/// A. No host waits for another: some hosts an endpoint rejects, and all others are notified as fast as
/// without them.
#[test]
fn whom_an_endpoint_refuses_delays_nobody_else() {
    let played = |rejected| play_story(Story::of_rejected(40, rejected), Broken::Not, false);
    let (alone, beside) = (played(0), played(6));
    let latest = |played: &Played| (6..40).map(|at| played.notified.get(&host(at)).copied()).max();
    let late = |at: &usize| match (alone.notified.get(&host(*at)), beside.notified.get(&host(*at))) {
        (Some(alone), Some(beside)) => *beside > alone + 5_000,
        _ => true,
    };
    let late: Vec<usize> = (6..40).filter(late).collect();
    assert_eq!(late, Vec::<usize>::new(), "{:?} {:?}", latest(&alone), latest(&beside));
}

/// Issue 22, 7 and 8: whatever an endpoint may have, and whatever an operator ends, no host that lives is kept down and none that
/// is dead is called back.
#[test]
fn hosts_are_called_back_when_they_are_back_and_not_before() {
    for hosts in [2, 8, 20] {
        let played = play_story(Story::of_returns(hosts), Broken::Not, false);
        assert_eq!(played.violations, Vec::<String>::new(), "{hosts}");
        assert!(played.tally.returns >= hosts, "nobody was called back");
    }
}

fn host(at: usize) -> HostName {
    HostName::parse(&format!("h{at}")).unwrap()
}

/// A seed is a story: each replay is the same.
#[test]
fn the_same_seed_plays_the_same_story() {
    let played = || {
        let Played { tally, lasted, .. } = play(7, FEW, Broken::Not, false);
        (tally.marks, tally.attempts, tally.passes, tally.holds, lasted)
    };
    assert_eq!(played(), played());
}

/// A finding with this text about a broken model, from a seed on that has it today.
fn is_caught((broken, hard): (Broken, u64), first: u64, says: &str) -> bool {
    (first..first + 40).any(|seed| {
        let played = play(seed, Scale { hard, ..FEW }, broken, false);
        played.violations.iter().any(|wrong| wrong.contains(says))
    })
}

/// The broken variants of the one above, each of which the audit finds: a gate that blocks clearing,
#[test]
fn a_gate_that_blocks_clearing_is_found() {
    assert!(is_caught((Broken::BlocksClearing, 0), 1, "its mark does not know it"));
}

/// a loop that ends at the first error,
#[test]
fn a_loop_that_ends_at_the_first_error_is_found() {
    assert!(is_caught((Broken::StopsAtFirstError, 0), 5, "nothing holds"));
}

/// attempts that are not counted,
#[test]
fn attempts_that_are_not_counted_are_found() {
    assert!(is_caught((Broken::DoesNotCount, 0), 9, "are sent at once"));
}

/// and holds that hold nothing.
#[test]
fn holds_that_hold_nothing_are_found() {
    assert!(is_caught((Broken::IgnoresHolds, 0), 2, "while it is held"));
}

/// Clocks that are wrong. The broken variant voids what lies ahead of its own: an outage is sent once more after a failover.
#[test]
fn what_another_clock_has_dated_is_found_to_be_void() {
    assert!(is_caught((Broken::VoidsWhatLiesAhead, 2), 22, "in other bytes"));
}

/// A part of the register is missing. The broken variant waits for nothing.
#[test]
fn a_mark_that_goes_without_the_missing_part_is_found() {
    assert!(is_caught((Broken::MissesNothing, 1), 4, "part-missing"));
}

/// Entries that no key seals. The broken variant believes them.
#[test]
fn an_entry_without_a_seal_that_counts_is_found() {
    assert!(is_caught((Broken::BelievesEverybody, 2), 4, "is in force"));
}

/// A disk that cannot be written. The broken variant of the alerter stays there.
#[test]
fn an_alerter_that_stays_at_its_disk_is_found() {
    assert!(is_caught((Broken::StaysAtItsDisk, 1), 10, "nothing could be written"));
}

/// `make simulate` says how many seeds, or which one is played again with a log of everything; without it a few.
#[test]
fn simulate() {
    let most_hosts = number("HOSTS").and_then(|hosts| usize::try_from(hosts).ok()).unwrap_or(100);
    let (hours, hard) = (number("HOURS").unwrap_or(2), number("HARD").unwrap_or(0));
    let scale = Scale { hours, most_hosts, hard };
    if let Some(seed) = number("SEED") {
        let played = play(seed, scale, Broken::Not, true);
        complain(seed, &played);
        assert!(played.violations.is_empty());
        return;
    }
    let (first, count) = (number("FIRST").unwrap_or(0), number("SEEDS").unwrap_or(1));
    let (began, mut all) = (Instant::now(), Sum::default());
    for seed in first..first + count {
        let played = play(seed, scale, Broken::Not, false);
        if !played.violations.is_empty() {
            complain(seed, &played);
            all.bad.push(seed);
        }
        all.add(&played);
        if (seed + 1 - first).is_multiple_of(100) {
            println!("{} seeds, {} s: {}", seed + 1 - first, began.elapsed().as_secs(), all.shown());
        }
    }
    println!("{}", all.shown());
    assert!(all.bad.is_empty(), "seeds {:?}", all.bad);
}

/// All stories together.
#[derive(Default)]
struct Sum {
    millis: u64,
    marks: usize,
    attempts: usize,
    passes: usize,
    holds: BTreeMap<String, usize>,
    bad: Vec<u64>,
}

impl Sum {
    fn add(&mut self, played: &Played) {
        self.millis += played.lasted;
        self.marks += played.tally.marks;
        self.attempts += played.tally.attempts;
        self.passes += played.tally.passes;
        for (word, count) in &played.tally.holds {
            *self.holds.entry(word.clone()).or_default() += count;
        }
    }

    fn shown(&self) -> String {
        let holds: Vec<String> = self.holds.iter().map(|(word, count)| format!("{word} {count}")).collect();
        let Self { marks, attempts, passes, bad, .. } = self;
        let hours = self.millis / 3_600_000;
        format!(
            "{hours} virtual hours, {marks} marks, {attempts} attempts, {passes} passes; held: {}; {} seeds with violations",
            holds.join(", "),
            bad.len()
        )
    }
}
