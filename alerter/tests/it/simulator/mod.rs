//! The simulator plays hours of a cloud from a seed, with a clock that is moved by hand, to the real journal, intake, policy, chains,
//! outboxes and endpoints, and an audit checks every step (`make simulate`).

mod daemon;

use std::time::Instant;

use daemon::{Broken, Product};
use marks::host::HostName;
use simulator::{Played, Scale, Story};

/// In `cargo test`.
const FEW: Scale = Scale { hours: 2, most_hosts: 16, hard: 0 };
/// By how hard it is. 1: with clocks that differ, lost registers and parts of them, forged entries, cluster nodes, disks that cannot be
/// written, and routes that refuse some hosts. 3: with clocks that differ by years too, and are set.
const SEEDS_OF: [(u64, u64); 3] = [(0, 3), (1, 7), (3, 25)];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().filter(|text| !text.is_empty()).map(|text| text.parse().expect("a number"))
}

fn play_story(story: Story, broken: Broken, is_loud: bool) -> Played {
    let mut product = Product::new(&story.settings, broken);
    simulator::play(story, &mut product, is_loud)
}

fn play(seed: u64, scale: Scale, broken: Broken, is_loud: bool) -> Played {
    play_story(Story::new(seed, scale), broken, is_loud)
}

/// Says what was violated, if anything was.
fn is_bad(seed: u64, played: &Played) -> bool {
    played.violations.iter().for_each(|wrong| println!("make simulate SEED={seed}: {wrong}"));
    !played.violations.is_empty()
}

/// S4-53, S0-21: whatever happens, every outage is sent as the rules say, and nothing that is held is sent.
#[test]
fn stories_of_a_few_seeds_break_no_promise() {
    let stories = SEEDS_OF
        .into_iter()
        .flat_map(|(hard, seeds)| (0..seeds).map(move |seed| (seed, Scale { hard, ..FEW })));
    let bad: Vec<(u64, Scale)> =
        stories.filter(|(seed, scale)| is_bad(*seed, &play(*seed, *scale, Broken::Not, false))).collect();
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

/// The broken variants of the one above, each of which the audit finds: name, variant, how hard, from which seed on, and what it says.
macro_rules! found {
    ($($name:ident: $broken:ident $hard:literal $first:literal $says:literal)*) => {
        $(#[test]
        fn $name() {
            let scale = Scale { hard: $hard, ..FEW };
            let mut played = ($first..$first + 40).map(|seed| play(seed, scale, Broken::$broken, false));
            assert!(played.any(|it| it.violations.iter().any(|wrong| wrong.contains($says))));
        })*
    };
}

found! {
    a_gate_that_blocks_clearing_is_found: BlocksClearing 0 1 "its mark does not know it"
    a_loop_that_ends_at_the_first_error_is_found: StopsAtFirstError 0 5 "nothing holds"
    attempts_that_are_not_counted_are_found: DoesNotCount 0 9 "are sent at once"
    holds_that_hold_nothing_are_found: IgnoresHolds 0 2 "while it is held"
    what_another_clock_has_dated_is_found_to_be_void: VoidsWhatLiesAhead 2 22 "in other bytes"
    a_mark_that_goes_without_the_missing_part_is_found: MissesNothing 1 4 "part-missing"
    an_entry_without_a_seal_that_counts_is_found: BelievesEverybody 2 4 "is in force"
    an_alerter_that_stays_at_its_disk_is_found: StaysAtItsDisk 1 10 "nothing could be written"
}

/// `make simulate` says how many seeds, or which one is played again with a log of everything; without it a few.
#[test]
fn simulate() {
    let most_hosts = number("HOSTS").and_then(|hosts| usize::try_from(hosts).ok()).unwrap_or(100);
    let (hours, hard) = (number("HOURS").unwrap_or(2), number("HARD").unwrap_or(0));
    let scale = Scale { hours, most_hosts, hard };
    if let Some(seed) = number("SEED") {
        return assert!(!is_bad(seed, &play(seed, scale, Broken::Not, true)));
    }
    let (first, count) = (number("FIRST").unwrap_or(0), number("SEEDS").unwrap_or(1));
    let (began, mut bad, mut millis, mut marks, mut attempts) = (Instant::now(), Vec::new(), 0, 0, 0);
    for seed in first..first + count {
        let played = play(seed, scale, Broken::Not, false);
        bad.extend(is_bad(seed, &played).then_some(seed));
        (millis, marks) = (millis + played.lasted, marks + played.tally.marks);
        attempts += played.tally.attempts;
        let seeds = seed + 1 - first;
        if seeds.is_multiple_of(100) || seeds == count {
            let (seconds, hours, bad) = (began.elapsed().as_secs(), millis / 3_600_000, bad.len());
            print!("{seeds} seeds, {seconds} s: {hours} virtual hours, {marks} marks, ");
            println!("{attempts} attempts, {bad} seeds with violations");
        }
    }
    assert!(bad.is_empty(), "seeds {bad:?}");
}
