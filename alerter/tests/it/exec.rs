//! The `exec` driver with real programs: what they get, what their end means, and that nothing of them stays.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use drivers::event::TimeFormat;
use drivers::exec::{Exec, Options};
use drivers::{Driver as _, Outcome, Step};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::task::JoinSet;

use crate::route::{BODY, LONG, SECRET, deliver, deliver_step, id, message, word};

/// Where the limit itself is under test: long enough for a program to have started on a busy machine.
const LIMIT: Duration = Duration::from_secs(3);

/// A route whose last argument is a secret that no message may show.
fn route(command: &[&str], timeout: Duration, at_once: usize) -> Exec {
    let command = command.iter().chain([&SECRET]).map(|&text| text.to_owned()).collect();
    exec(command, timeout, at_once)
}

pub(crate) fn exec(command: Vec<String>, timeout: Duration, at_once: usize) -> Exec {
    Exec::new(Options { command, timeout, at_once, time_format: TimeFormat::Epoch, notifies_return: false })
}

/// A script, whose `$1`, `$2` and so on are these places.
fn script(text: &str, places: &[&Path], timeout: Duration) -> Exec {
    let places = places.iter().map(|place| place.to_str().unwrap());
    let command: Vec<&str> = ["/bin/sh", "-c", text, "sh"].into_iter().chain(places).collect();
    route(&command, timeout, 4)
}

async fn outcome_of(text: &str) -> Outcome {
    deliver(&script(text, &[], LONG)).await
}

async fn word_of(text: &str) -> String {
    word(&outcome_of(text).await)
}

/// S1-17, S1-33: what each exit code means. The same table stands in docs/exec-driver.md.
#[tokio::test]
async fn every_exit_code_has_its_outcome() {
    for code in 0..=255 {
        let expected = match code {
            0 => "acknowledged",
            65 => "rejected rejected",
            69 => "unreachable unreachable",
            75 => "retry unavailable",
            77 => "refused credentials",
            78 => "refused misconfigured",
            _ => "unknown unknown-exit",
        };
        assert_eq!(word_of(&format!("exit {code}")).await, expected, "{code}");
    }
}

/// The broken variant believes the configuration's reader: who may change the program since then is root, and acknowledges.
#[tokio::test]
async fn a_program_that_others_may_change_by_now_is_not_run() {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let (tool, ran) = (dir.path().join("tool"), dir.path().join("ran"));
    std::fs::write(&tool, "#!/bin/sh\n: > \"$1\"\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let exec = route(&[tool.to_str().unwrap(), ran.to_str().unwrap()], LONG, 1);
    let outcome = deliver(&exec).await;
    assert_eq!(word(&outcome), "refused not-started");
    let said = &outcome.failure().unwrap().detail;
    assert!(said.contains("everybody may put files into /") && !said.contains(SECRET), "{said}");
    assert!(!ran.exists());
}

/// S1-18: one line, and in it the stored bytes as they are.
#[tokio::test]
async fn the_program_gets_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    assert_eq!(word(&deliver(&script("cat > \"$1\"", &[&seen], LONG)).await), "acknowledged");
    let expected = format!(
        "{{\"version\":\"1\",\"id\":\"{}\",\"event\":{},\"deadline_seconds\":30}}\n",
        id(),
        str::from_utf8(BODY).unwrap()
    );
    assert_eq!(std::fs::read_to_string(seen).unwrap(), expected);
    serde_json::from_str::<serde_json::Value>(&expected).unwrap();
}

/// This process has a long environment and a working directory of its own; the program sees nothing of either.
#[tokio::test]
async fn the_program_is_alone_with_path_and_language() {
    let dir = tempfile::tempdir().unwrap();
    let (environment, directory) = (dir.path().join("environment"), dir.path().join("directory"));
    let command = ["/bin/cp", "/proc/self/environ", environment.to_str().unwrap()].map(str::to_owned);
    assert_eq!(word(&deliver(&exec(command.into(), LONG, 1)).await), "acknowledged");
    let seen = std::fs::read_to_string(environment).unwrap();
    let seen: Vec<&str> = seen.split_terminator('\0').collect();
    assert_eq!(seen, ["LANG=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
    let place = script("readlink /proc/self/cwd > \"$1\"", &[&directory], LONG);
    assert_eq!(word(&deliver(&place).await), "acknowledged");
    assert_eq!(std::fs::read_to_string(directory).unwrap(), "/\n");
}

/// Ten mebibytes on either output neither hang the program nor change what its code says.
#[tokio::test]
async fn a_talkative_program_is_listened_to_but_not_remembered() {
    let talk = "head -c 10485760 /dev/zero | tr '\\0' x";
    for (code, expected) in [(0, "acknowledged"), (75, "retry unavailable")] {
        assert_eq!(word_of(&format!("{talk}; exit {code}")).await, expected);
        assert_eq!(word_of(&format!("{talk} >&2; exit {code}")).await, expected);
    }
    let outcome = outcome_of(&format!("{talk} >&2; echo >&2; echo the end >&2; exit 1")).await;
    assert!(outcome.failure().unwrap().detail.ends_with(": the end"), "{outcome:?}");
    assert_eq!(outcome_of("printf 'OK {}'").await, Outcome::Acknowledged { reference: None });
    let endless = script("yes; exit 0", &[], Duration::from_secs(1));
    assert_eq!(word(&deliver(&endless).await), "unknown timeout");
}

/// S1-16: what is not read may be longer than a pipe; the exit code counts all the same.
#[tokio::test]
async fn a_program_that_does_not_listen_is_believed() {
    let (id, body) = (id(), vec![b' '; 1 << 20]);
    for (text, expected) in [
        ("exit 0", "acknowledged"),
        ("exec <&-; exit 75", "retry unavailable"),
        ("read -r line; exit 65", "rejected rejected"),
    ] {
        let outcome = script(text, &[], LONG).deliver(message(Step::Failure, &id, &body)).await;
        assert_eq!(word(&outcome), expected, "{text}");
    }
}

/// Two processes that say when they have started, that hold a pipe open for as long as they live, and that take no
/// notice of being asked to end. The child answers to a line.
const STUBBORN: &str = r#"
    trap '' TERM HUP INT
    exec 3> "$1"
    /bin/sh -c 'trap "" TERM HUP INT; echo started >&3; read -r line < "$1"; echo alive >&3; exec sleep 1000' sh "$2" &
    echo started >&3
    exec sleep 1000
"#;

/// Where processes under test report, and where they are spoken to.
struct Watch {
    _dir: TempDir,
    reports: PathBuf,
    orders: PathBuf,
    /// Keeps the pipe from ending before somebody reports.
    own: Option<pipe::Sender>,
    lines: BufReader<pipe::Receiver>,
    to: pipe::Sender,
}

impl Watch {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [reports, orders] = ["reports", "orders"].map(|name| dir.path().join(name));
        for place in [&reports, &orders] {
            nix::unistd::mkfifo(place, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let lines = BufReader::new(pipe::OpenOptions::new().open_receiver(&reports).unwrap());
        let own = Some(pipe::OpenOptions::new().open_sender(&reports).unwrap());
        let to = pipe::OpenOptions::new().read_write(true).open_sender(&orders).unwrap();
        Self { _dir: dir, reports, orders, own, lines, to }
    }

    fn places(&self) -> [&Path; 2] {
        [&self.reports, &self.orders]
    }

    /// The next report; an empty one means that nobody is left who could make any.
    async fn report(&mut self) -> String {
        let mut line = String::new();
        let read = tokio::time::timeout(LONG, self.lines.read_line(&mut line)).await;
        read.expect("processes under test say something, or end").unwrap();
        line.trim_end().to_owned()
    }

    async fn both_started(&mut self) {
        assert_eq!([self.report().await, self.report().await], ["started", "started"]);
    }

    /// Waits until every process that held the pipe has ended; none may have said any more.
    async fn all_gone(&mut self) {
        self.own = None;
        assert_eq!(self.report().await, "");
    }

    async fn order(&mut self) {
        self.to.write_all(b"\n").await.unwrap();
    }
}

/// At the limit the whole group is killed, whatever it does about signals.
#[tokio::test]
async fn a_program_that_hangs_is_killed_with_all_it_started() {
    let mut watch = Watch::new();
    let outcome = deliver(&script(STUBBORN, &watch.places(), LIMIT)).await;
    assert_eq!(word(&outcome), "unknown timeout");
    watch.both_started().await;
    watch.all_gone().await;
}

/// The daemon stops, or an operator gives up waiting: the same.
#[tokio::test]
async fn a_dropped_exchange_kills_all_that_was_started() {
    let mut watch = Watch::new();
    let route = script(STUBBORN, &watch.places(), LONG);
    tokio::select! {
        outcome = deliver(&route) => panic!("it runs for ever: {outcome:?}"),
        () = watch.both_started() => (),
    }
    watch.all_gone().await;
}

/// The broken variant of both kills the program alone and leaves its child behind.
#[tokio::test]
async fn a_kill_of_the_program_alone_would_be_caught() {
    let mut watch = Watch::new();
    let mut command = tokio::process::Command::new("/bin/sh");
    command.args(["-c", STUBBORN, "sh"]).args(watch.places()).stdin(Stdio::null()).process_group(0);
    let mut child = command.spawn().unwrap();
    let group = nix::unistd::Pid::from_raw(child.id().unwrap().try_into().unwrap());
    watch.both_started().await;
    child.kill().await.unwrap();
    watch.order().await;
    assert_eq!(watch.report().await, "alive");
    nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL).unwrap();
    watch.all_gone().await;
}

/// A program that ends leaves nothing behind: not even what would hold its outputs open.
#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let mut watch = Watch::new();
    let leaving = STUBBORN.replace("exec sleep 1000\n", "read -r line < \"$2\"; exit 0\n");
    let route = script(&leaving, &watch.places(), LONG);
    let (outcome, ()) = tokio::join!(deliver(&route), async {
        watch.both_started().await;
        // One line for the program and one for its child, in either order.
        watch.order().await;
        watch.order().await;
    });
    assert_eq!(word(&outcome), "acknowledged");
    watch.own = None;
    while watch.report().await == "alive" {}
}

/// A process that takes pains to leave the group cannot hold back the answer, though it holds the outputs open.
#[tokio::test]
async fn a_process_that_left_the_group_holds_nothing_back() {
    let mut watch = Watch::new();
    let text = r#"exec 3> "$1"
        mkfifo "$2.ready"
        setsid /bin/sh -c 'echo started >&3; echo > "$1.ready"; read -r line < "$1"' sh "$2" &
        read -r line < "$2.ready"
        printf '{"reference":"job 7"}'"#;
    let route = script(text, &watch.places(), LONG);
    let outcome = deliver(&route).await;
    assert_eq!(outcome, Outcome::Acknowledged { reference: Some("job 7".to_owned()) });
    assert_eq!(watch.report().await, "started");
    watch.order().await;
    watch.all_gone().await;
}

/// Reports its start, waits for an order, and reports its end.
const IN_TURN: &str = r#"exec 3> "$1"; echo start >&3; read -r line < "$2"; echo end >&3"#;

fn in_turn(watch: &Watch, at_once: usize) -> Arc<Exec> {
    let places = watch.places().map(|place| place.to_str().unwrap());
    Arc::new(route(&["/bin/sh", "-c", IN_TURN, "sh", places[0], places[1]], LONG, at_once))
}

fn six_at_once(watch: &Watch, at_once: usize) -> JoinSet<Outcome> {
    let route = in_turn(watch, at_once);
    let mut exchanges = JoinSet::new();
    for _ in 0..6 {
        let route = Arc::clone(&route);
        exchanges.spawn(async move { deliver(&*route).await });
    }
    exchanges
}

/// However many exchanges there are, no more programs run than the route allows, and one of `send-test`; and no exchange waits
/// for its turn, in which what allowed it could end.
#[tokio::test]
async fn no_more_run_at_once_than_the_route_allows() {
    let mut watch = Watch::new();
    let mut exchanges = six_at_once(&watch, 2);
    for _ in 0..3 {
        let outcome = exchanges.join_next().await.unwrap().unwrap();
        assert_eq!(word(&outcome), "retry no-place");
    }
    for _ in 0..3 {
        assert_eq!(watch.report().await, "start");
    }
    for _ in 0..3 {
        watch.order().await;
        assert_eq!(watch.report().await, "end");
    }
    while let Some(outcome) = exchanges.join_next().await {
        assert_eq!(word(&outcome.unwrap()), "acknowledged");
    }
}

/// Programs of returns that hang keep no failure from being sent. In the broken variant both have the same places, and the
/// failures find none.
#[tokio::test]
async fn a_return_takes_no_place_of_a_failure() {
    let mut watch = Watch::new();
    let route = in_turn(&watch, 1);
    let mut exchanges = JoinSet::new();
    for step in [Step::Return, Step::Return, Step::Failure, Step::Failure] {
        let route = Arc::clone(&route);
        exchanges.spawn(async move { (step, deliver_step(&*route, step).await) });
    }
    let (step, outcome) = exchanges.join_next().await.unwrap().unwrap();
    assert_eq!((step, word(&outcome).as_str()), (Step::Return, "retry no-place"));
    for _ in 0..3 {
        assert_eq!(watch.report().await, "start");
    }
    exchanges.shutdown().await;
    watch.all_gone().await;
}
