//! A test that this machine cannot run says why, and fails where nothing may be left out. That is decided here alone.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Whether a test that cannot run fails: with `CI=true`, or where this variable is set to 1 (`NHA_REQUIRE_CLUSTER` and its like).
#[must_use]
pub fn must_run(key: Option<&str>) -> bool {
    let is_set = |key| std::env::var(key).is_ok_and(|value| value == "true" || value == "1");
    is_set("CI") || key.is_some_and(is_set)
}

/// The first of these programs that is not installed.
#[must_use]
pub fn missing<'a>(programs: &[&'a str]) -> Option<&'a str> {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let is_there = |program: &&&str| places.iter().any(|place| Path::new(place).join(program).exists());
    programs.iter().find(|program| !is_there(program)).copied()
}

/// Whether one of these programs is not there, and the test is left out for that.
///
/// # Panics
/// As [`leave_out`].
#[track_caller]
#[must_use]
pub fn lacks(programs: &[&str]) -> bool {
    let missing = missing(programs);
    if let Some(program) = missing {
        leave_out(&format!("{program} is not installed"));
    }
    missing.is_some()
}

/// Says why a test does nothing here. Rust's own harness takes one that ends for one that passed: its name, which is that of its
/// thread, goes to the file that `NHA_LEFT_OUT` names (`tests/lists.sh`).
///
/// # Panics
/// The test must run, or the file cannot be written.
#[track_caller]
pub fn leave_out(reason: &str) {
    assert!(!must_run(None), "this test cannot run here: {reason}");
    eprintln!("left out: {reason}");
    let Some(path) = std::env::var_os("NHA_LEFT_OUT") else { return };
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("NHA_LEFT_OUT is a file");
    let test = std::thread::current();
    writeln!(file, "{}", test.name().unwrap_or_default()).expect("NHA_LEFT_OUT can be written");
}
