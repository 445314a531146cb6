//! A test that this machine cannot run says why, and fails where nothing may be left out. That is decided here
//! alone; the tests of other crates take this file in by its path.

/// Whether a test that cannot run fails: with `CI=true`, or where this variable is set to 1 (`NHA_REQUIRE_CLUSTER` and its like).
pub(crate) fn must_run(key: Option<&str>) -> bool {
    let is_set = |key| std::env::var(key).is_ok_and(|value| value == "true" || value == "1");
    is_set("CI") || key.is_some_and(is_set)
}

/// Says why a test does nothing here, or fails it.
#[track_caller]
pub(crate) fn leave_out(reason: &str) {
    assert!(!must_run(None), "this test cannot run here: {reason}");
    eprintln!("left out: {reason}");
}
