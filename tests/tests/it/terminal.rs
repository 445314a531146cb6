//! `status` on a real terminal: it fits, and its colours heed what was asked.

use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::installed;
use tests::lab::wait;
use tests::programs::{Site, built};
use tests::receiver::Receiver;
use tests::trials::Group;

const LIMIT: Duration = Duration::from_secs(40);
const COLUMNS: usize = 80;
const ROWS: usize = 24;

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![the_usual_trouble_fits_on_one_screen_in_the_wanted_colours];
    Group { cannot: installed::cannot(&["script", "stty"]), tests }
}

/// An endpoint is down, and a host waits for it.
fn troubled() -> (Receiver, Site) {
    let mut receiver = Receiver::on_loopback().unwrap();
    let mut site = Site::new(receiver.address()).unwrap();
    receiver.down();
    site.start().unwrap();
    site.fence("compute1").unwrap();
    wait::until("the endpoint is found to be down", LIMIT, || {
        Ok(site.said(&["status"])?.contains("accepts nothing").then_some(()))
    })
    .unwrap();
    (receiver, site)
}

/// The command on a terminal of its own.
fn on_a_terminal(site: &Site, words: &str) -> Command {
    let (program, config) = (built("nova-host-alerter").unwrap(), site.config());
    let line = format!(
        "stty cols {COLUMNS} rows {ROWS}; exec {} --config {} {words}",
        program.display(),
        config.display()
    );
    let mut command = Command::new("script");
    command.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
    command
}

/// The broken variant paints whatever it gets.
fn the_usual_trouble_fits_on_one_screen_in_the_wanted_colours() {
    let (_receiver, mut site) = troubled();
    let shown = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let painted = shown(&mut on_a_terminal(&site, "status"));
    assert!(painted.contains("\u{1b}[1;31mcritical\u{1b}[0m"), "{painted}");
    for (key, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = shown(on_a_terminal(&site, "status").env(key, value));
        assert!(!plain.contains('\u{1b}'), "{key}: {plain}");
        assert!(plain.lines().count() <= ROWS, "{plain}");
        assert!(plain.lines().all(|line| line.trim_end().chars().count() <= COLUMNS), "{plain}");
        assert!(plain.contains("`nova-host-alerter retry --all`"), "a command stays whole: {plain}");
    }
    site.end(Signal::SIGTERM).unwrap();
}
