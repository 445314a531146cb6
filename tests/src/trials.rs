//! Tests that need more than a Rust toolchain: where this machine cannot run them, each is reported as ignored, and why, or fails.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use samples::left_out::must_run;

/// A test's name and the function that panics if it fails.
pub type Named = (&'static str, fn());

/// Tests that need the same things.
pub struct Group {
    /// Why this machine cannot run them.
    pub cannot: Option<String>,
    /// The tests.
    pub tests: Vec<Named>,
}

impl Group {
    /// Tests that run everywhere.
    #[must_use]
    pub fn everywhere(tests: Vec<Named>) -> Self {
        Self { cannot: None, tests }
    }
}

/// Names each function by itself, with its module: `trials![first, second]`.
#[macro_export]
macro_rules! trials {
    ($($test:ident),* $(,)?) => { vec![$((concat!(module_path!(), "::", stringify!($test)), $test as fn())),*] };
}

/// Runs the tests as the command line asks. Those that cannot run are ignored, each with its reason; with `CI=true` they fail.
#[must_use]
pub fn run(groups: impl IntoIterator<Item = Group>) -> ExitCode {
    let only = only();
    let is_wanted =
        |(name, _): &Named| only.as_ref().is_none_or(|names| names.lines().any(|one| one == *name));
    let trials = groups.into_iter().flat_map(|group| {
        let (cannot, tests) = (group.cannot, group.tests.into_iter().filter(is_wanted));
        tests.map(move |(name, test)| trial(name, test, cannot.as_deref()))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// The names of the tests to run, a line each, where the file that `NHA_ONLY` names says it.
fn only() -> Option<String> {
    let file = std::env::var_os("NHA_ONLY")?;
    Some(std::fs::read_to_string(file).expect("NHA_ONLY can be read"))
}

/// So many of a list's slowest scenarios are printed.
const LONGEST: usize = 8;

/// A scenario's name and its function, which gets what all scenarios share.
pub type Scenario<T> = (&'static str, fn(&mut T) -> anyhow::Result<()>);

/// The scenarios of the lists that `NHA_SCENARIOS` names; where it is not set, of the usual ones, or of all.
///
/// # Panics
/// There is no list of that name.
#[must_use]
pub fn chosen<T>(lists: &[(&str, &[Scenario<T>])], usual: Option<&str>) -> Vec<Scenario<T>> {
    let named = std::env::var("NHA_SCENARIOS").ok().or_else(|| usual.map(str::to_owned));
    let Some(named) = named else { return lists.iter().flat_map(|(_, list)| *list).copied().collect() };
    let list = |name: &str| lists.iter().find(|(list, _)| *list == name).map(|(_, scenarios)| *scenarios);
    let known = |name| list(name).unwrap_or_else(|| panic!("there is no list {name}"));
    named.split_whitespace().flat_map(known).copied().collect()
}

/// What scenarios share, and how it is made.
pub struct Stage<T> {
    /// Made for the first scenario that runs.
    pub set_up: fn() -> anyhow::Result<T>,
    /// What is printed of it where a scenario fails.
    pub on_failure: fn(&T) -> String,
    /// What a machine must have for it.
    pub need: Need,
}

/// What a machine must have for scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    what: &'static str,
    key: &'static str,
}

/// A real cluster: root, and Pacemaker's programs.
pub const CLUSTER: Need = Need { what: "a cluster", key: "NHA_REQUIRE_CLUSTER" };
/// OpenStack's services.
pub const OPENSTACK: Need = Need { what: "OpenStack", key: "NHA_REQUIRE_OPENSTACK" };
/// A Kubernetes API server.
pub const KUBERNETES: Need = Need { what: "Kubernetes", key: "NHA_REQUIRE_KUBERNETES" };
/// Chromium, and the program that steers it.
pub const BROWSER: Need = Need { what: "a browser", key: "NHA_REQUIRE_BROWSER" };

impl<T> Clone for Stage<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Stage<T> {}

/// Runs scenarios one after the other, as often as `NHA_REPEAT` says. Where what they need cannot be had they are ignored,
/// each with the reason; with `CI=true`, or `NHA_REQUIRE_CLUSTER=1` and the like, that is a failure instead.
#[must_use]
pub fn play<T: Send + 'static>(
    stage: Stage<T>,
    scenarios: &[Scenario<T>],
    cannot: Option<&str>,
    beside: Vec<Trial>,
) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let (shared, took) = (Arc::new(Mutex::new(None)), Took::default());
    let mut trials = beside;
    for round in 1..=rounds() {
        let of_round =
            part(scenarios, std::env::var("NHA_PART").ok().as_deref()).iter().map(|(name, scenario)| {
                let name = named(name, round);
                cannot.map_or_else(
                    || in_turn(&name, *scenario, stage, (&shared, &took)),
                    |reason| refused(&name, reason, Some(stage.need)),
                )
            });
        trials.extend(of_round);
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // What they share ends before the process does.
    drop(shared.lock().unwrap_or_else(PoisonError::into_inner).take());
    say_longest(&took);
    conclusion.exit_code()
}

/// `1/2` is the first half of them, in their order: a cluster of its own can have the other one.
fn part<'a, T>(all: &'a [T], named: Option<&str>) -> &'a [T] {
    let Some(named) = named else { return all };
    let numbers = named.split_once('/').and_then(|(one, of)| Some((one.parse().ok()?, of.parse().ok()?)));
    let (one, of): (usize, usize) = numbers.expect("NHA_PART has two numbers, as 1/2");
    assert!((1..=of).contains(&one), "there is no part {named}");
    &all[all.len() * (one - 1) / of..all.len() * one / of]
}

/// How long each scenario took.
type Took = Arc<Mutex<Vec<(Duration, String)>>>;

/// Where a list's time went.
fn say_longest(took: &Took) {
    let mut took = took.lock().unwrap_or_else(PoisonError::into_inner);
    took.sort();
    for (time, name) in took.iter().rev().take(LONGEST) {
        println!("{:>5} s {name}", time.as_secs());
    }
}

/// A scenario's name, with the release if it is not the usual one, and the number of the repetition.
fn named(name: &str, round: u32) -> String {
    let release = std::env::var("NHA_RELEASE").map_or_else(|_| String::new(), |suite| format!("{suite}: "));
    let round = if round == 1 { String::new() } else { format!(", round {round}") };
    format!("{release}{name}{round}")
}

fn rounds() -> u32 {
    std::env::var("NHA_REPEAT").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn in_turn<T: Send + 'static>(
    name: &str,
    scenario: fn(&mut T) -> anyhow::Result<()>,
    stage: Stage<T>,
    (shared, took): (&Arc<Mutex<Option<T>>>, &Took),
) -> Trial {
    let (shared, took, own) = (Arc::clone(shared), Arc::clone(took), name.to_owned());
    Trial::test(name, move || {
        let begun = Instant::now();
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            *shared = Some((stage.set_up)().map_err(|error| Failed::from(format!("{error:#}")))?);
        }
        let Some(shared) = shared.as_mut() else { return Err(Failed::without_message()) };
        // Printed at once too: the list is long, and a run may be cut off.
        let played = scenario(shared);
        took.lock().unwrap_or_else(PoisonError::into_inner).push((begun.elapsed(), own));
        played.map_err(|error| {
            let said = format!("{error:#}\n{}", (stage.on_failure)(shared));
            eprintln!("\n{said}");
            Failed::from(said)
        })
    })
}

/// One test that shares nothing, or why it cannot run here.
pub fn alone(name: &str, need: Need, cannot: Option<String>, test: fn() -> anyhow::Result<()>) -> Trial {
    match cannot {
        Some(reason) => refused(name, &reason, Some(need)),
        None => Trial::test(name, move || test().map_err(|error| Failed::from(format!("{error:#}")))),
    }
}

/// Ignored from the beginning, so that `--list --ignored` names what this machine cannot run; or a failure.
fn refused(name: &str, reason: &str, need: Option<Need>) -> Trial {
    if must_run(need.map(|need| need.key)) {
        let what = need.map_or("this test", |need| need.what);
        let said = format!("{what} is required, but: {reason}");
        return Trial::test(name, move || Err(said.into()));
    }
    Trial::test(name, || Ok(())).with_kind(reason).with_ignored_flag(true)
}

fn trial(name: &str, test: fn(), cannot: Option<&str>) -> Trial {
    let run = move || {
        test();
        Ok(())
    };
    cannot.map_or_else(|| Trial::test(name, run), |reason| refused(name, reason, None))
}

#[cfg(test)]
mod unit_tests {
    use super::part;

    #[test]
    fn the_parts_of_a_list_are_all_of_it() {
        for count in 0..20 {
            let all: Vec<usize> = (0..count).collect();
            let of = |parts: usize| (1..=parts).flat_map(move |one| [format!("{one}/{parts}")]);
            for parts in 1..5 {
                let together: Vec<usize> =
                    of(parts).flat_map(|named| part(&all, Some(&named)).to_vec()).collect();
                assert_eq!(together, all, "{parts}");
            }
            assert_eq!(part(&all, None), all);
        }
    }
}
