//! The status page of the built daemon in a real browser, against its journal.
//!
//! The scenarios share one daemon with a story to show; each opens a browser of its own and also runs alone:
//! `cargo test -p tests --test page -- NAME`. Without Chromium they are ignored, with the reason beside the name; with
//! `CI=true` or `NHA_REQUIRE_BROWSER=1` that is a failure instead.

mod crowd;
mod shown;
mod story;

use std::process::ExitCode;

use story::Story;
use tests::browser;
use tests::trials::{self, Stage};

/// A name, and what it stands for.
type Scenario = trials::Scenario<Story>;

const ALL: [&[Scenario]; 2] = [shown::SCENARIOS, crowd::SCENARIOS];

const STAGE: Stage<Story> = Stage { set_up: Story::begin, on_failure: Story::explain, need: trials::BROWSER };

fn main() -> ExitCode {
    trials::play(STAGE, &ALL.concat(), browser::cannot().as_deref(), Vec::new())
}
