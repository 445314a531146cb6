//! The budgets of the programs, each a count. A program without optimization is larger, and has limits of its own:
//! `make budgets` measures a release build, which is what is wanted.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;
use tests::backlog::Backlog;
use tests::installed;
use tests::process;
use tests::programs::{Site, built};
use tests::receiver::Receiver;
use tests::sink::Sink;
use tests::trials::Group;

/// How many marks are many: where nothing is optimized more of them take minutes to write.
fn many() -> usize {
    if is_release() { 100_000 } else { 20_000 }
}

fn is_release() -> bool {
    built("nova-host-alerter").is_ok_and(|path| path.parent().is_some_and(|place| place.ends_with("release")))
}

/// In KiB: what an unoptimized program weighs is up to the symbols that it was built with.
const WITH_SYMBOLS: u64 = 400 * 1024;

/// What a program may cost.
struct Budget {
    name: &'static str,
    /// Of a release build, and of one without optimization.
    limits: [u64; 2],
    unit: &'static str,
    why: &'static str,
    measure: fn() -> anyhow::Result<u64>,
}

macro_rules! budgets {
    ($($name:literal: $limits:expr, $unit:literal, $why:literal => $measure:expr;)*) => {
        &[$(Budget { name: $name, limits: $limits, unit: $unit, why: $why, measure: || $measure }),*]
    };
}

/// All of them: a name; its limits and their unit; why; and how it is measured.
const BUDGETS: &[Budget] = budgets! {
    "wake-ups of an idle alerter": [0; 2], "in 12 s",
        "a controller's processors are for its services, and who polls has missed an event" =>
        idle_wakeups();
    "flushes of one off": [2; 2], "syncs",
        "of the log and of the directory: a fencing waits for the disk no longer than a mark needs" =>
        Ok(count(&calls_of_one_off()?, "sync("));
    "system calls of one off": [500; 2], "calls",
        "each is one more that can hang or fail while a host is being fenced; half are of the process at the journal" =>
        Ok(calls_of_one_off()?.lines().filter(|line| begins_call(line)).count() as u64);
    "own memory of an idle alerter": [2 * 1024, 4 * 1024], "KiB",
        "it is there on every controller, for years" =>
        memory(0, "RssAnon:");
    "own memory with many open marks": [12 * 1024, 8 * 1024], "KiB",
        "an endpoint that is dead for a week must not be a controller's trouble" =>
        memory(many(), "RssAnon:");
    // The program's own pages are most of it: wanted are 10 MiB, and 16 with many open marks.
    "resident memory of an idle alerter": [12 * 1024 + 512, 40 * 1024], "KiB",
        "pages of the program count too, though the kernel may drop them" =>
        memory(0, "VmRSS:");
    "the most memory while many open marks are taken up": [22 * 1024, 48 * 1024], "KiB",
        "what is read all at once grows with what there is" =>
        memory(many(), "VmHWM:");
    "fence_mark": [2944, WITH_SYMBOLS], "KiB",
        "it is read from the disk while a host is being fenced" =>
        size("fence_mark");
    "alert_mark": [448, WITH_SYMBOLS], "KiB",
        "Pacemaker starts it for each alert, on every controller" =>
        size("alert_mark");
    "nova-host-alerter": [12 * 1024, WITH_SYMBOLS], "KiB",
        "a dependency that is larger than its use shows here" =>
        size("nova-host-alerter");
    "compute-health": [1408, WITH_SYMBOLS], "KiB",
        "all of it is held in memory, on every compute host" =>
        size("compute-health");
    "resident memory of a checker": [2 * 1024, 8 * 1024], "KiB",
        "its pages are locked, on every compute host" =>
        checker(|pid| process::kibibytes(pid, "VmRSS:"));
    "wake-ups of a checker": [30; 2], "in 12 s",
        "a look at all takes about ten, and there is one in ten seconds" =>
        checker(fewest_wakeups);
};

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![every_budget_is_kept, what_exceeds_its_budget_is_said];
    Group { cannot: installed::cannot(&["strace"]), tests }
}

impl Budget {
    fn limit(&self) -> u64 {
        self.limits[usize::from(!is_release())]
    }

    /// Why a figure is too much.
    fn excess(&self, figure: u64) -> Option<String> {
        let (Self { name, unit, why, .. }, limit) = (self, self.limit());
        (figure > limit).then(|| format!("{name}: {figure} {unit} instead of {limit}, and {why}"))
    }
}

fn every_budget_is_kept() {
    let measured = BUDGETS.iter().map(|budget| (budget, (budget.measure)().unwrap()));
    let excesses: Vec<String> = measured
        .inspect(|(budget, figure)| {
            println!("{}: {figure} of {} {}", budget.name, budget.limit(), budget.unit);
        })
        .filter_map(|(budget, figure)| budget.excess(figure))
        .collect();
    assert!(excesses.is_empty(), "{excesses:#?}");
}

/// The broken variants: programs that cost one more each, and empty measurements.
fn what_exceeds_its_budget_is_said() {
    for budget in BUDGETS {
        assert_eq!(budget.excess(budget.limit()), None);
        assert!(budget.excess(budget.limit() + 1).unwrap().contains(budget.why), "{}", budget.name);
    }
    let calls = calls_of_one_off().unwrap();
    assert!(count(&calls, "sync(") > 0 && count(&calls, " = ") > count(&calls, "pwrite64("), "{calls}");
    assert!(
        built("no-such-program").is_err() && process::kibibytes(std::process::id(), "VmRSS:").unwrap() > 0
    );
    let mut poller = Command::new("sh").args(["-c", "while sleep 10; do :; done"]).spawn().unwrap();
    let wakeups = fewest_wakeups(poller.id());
    poller.kill().and_then(|()| poller.wait()).unwrap();
    assert!(wakeups.unwrap() > 0, "a program that polls every ten seconds");
}

/// Whether a call begins in a line of strace, and is not one that waits: how often a program waits depends on what else the
/// machine does.
fn begins_call(line: &str) -> bool {
    let waits = ["poll(", "wait4(", "waitid(", "nanosleep(", "futex(", "EAGAIN", "sched_yield("];
    let others = [" resumed>", " --- ", " +++ "];
    !waits.iter().chain(&others).any(|word| line.contains(word))
}

/// Lines that hold a word.
fn count(calls: &str, word: &str) -> u64 {
    calls.lines().filter(|line| line.contains(word)).count() as u64
}

fn size(program: &str) -> anyhow::Result<u64> {
    Ok(fs::metadata(built(program)?)?.len() / 1024)
}

fn idle_wakeups() -> anyhow::Result<u64> {
    let receiver = Receiver::on_loopback()?;
    let mut site = Site::new(receiver.address())?;
    let pid = site.start()?;
    at_rest(|| process::switches(pid))?;
    fewest_wakeups(pid)
}

/// A figure of a checker whose every word is taken.
fn checker(measure: fn(u32) -> anyhow::Result<u64>) -> anyhow::Result<u64> {
    let room = TempDir::new()?;
    for tool in ["attrd_updater", "stonith_admin"] {
        fs::copy("/bin/true", room.path().join(tool))?;
    }
    let mut command = Command::new(built("compute-health")?);
    command.arg("watch").env("PATH", format!("{}:/usr/bin:/bin", room.path().display()));
    command.env("OCF_RESOURCE_INSTANCE", room.path()).env("OCF_RESKEY_directories", room.path());
    let mut checker = command.spawn()?;
    let figure = at_rest(|| process::switches(checker.id())).and_then(|()| measure(checker.id()));
    checker.kill()?;
    checker.wait()?;
    figure
}

/// In 12 s, the fewest of three times in a row. What polls more often is awake in each of them; the alerter checks its own health twice a
/// minute, and that may take two of them where the machine is busy.
fn fewest_wakeups(pid: u32) -> anyhow::Result<u64> {
    let mut fewest = u64::MAX;
    for _ in 0..3 {
        let before = process::switches(pid)?;
        thread::sleep(Duration::from_secs(12));
        fewest = fewest.min(process::switches(pid)? - before);
        if fewest == 0 {
            break;
        }
    }
    Ok(fewest)
}

/// Of an alerter whose endpoint is dead, when it has taken up so many open marks.
fn memory(marks: usize, name: &str) -> anyhow::Result<u64> {
    let mut sink = Sink::on_loopback(1, Duration::ZERO)?;
    let mut site = Site::new(sink.address())?;
    sink.down();
    if marks > 0 {
        Backlog::of_marks(marks, &["recovery"])?.lay_into(&site)?;
    }
    let pid = site.start()?;
    at_rest(|| process::kibibytes(pid, "VmRSS:"))?;
    process::kibibytes(pid, name)
}

/// Waits until a figure stays the same for two seconds.
fn at_rest(read: impl Fn() -> anyhow::Result<u64>) -> anyhow::Result<()> {
    let (limit, mut since, mut last) = (Instant::now() + Duration::from_secs(60), Instant::now(), read()?);
    while since.elapsed() < Duration::from_secs(2) {
        ensure!(Instant::now() < limit, "it does not come to rest");
        thread::sleep(Duration::from_millis(100));
        let now = read()?;
        if now != last {
            (since, last) = (Instant::now(), now);
        }
    }
    Ok(())
}

/// The second `off` of a journal, as strace shows it: the first one made the journal.
fn calls_of_one_off() -> anyhow::Result<String> {
    let receiver = Receiver::on_loopback()?;
    let site = Site::new(receiver.address())?;
    site.fence("compute1")?;
    let log = site.directory().join("calls");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(&log).arg(built("fence_mark")?);
    // Of cargo, with places where the loader would search for each library.
    command.env_remove("LD_LIBRARY_PATH");
    let mut agent = command.stdin(Stdio::piped()).spawn()?;
    let mut stdin = agent.stdin.take().context("no pipe to the agent")?;
    stdin.write_all(site.stdin_of_the_fencer("compute2").as_bytes())?;
    drop(stdin);
    ensure!(agent.wait()?.success(), "the agent does not mark");
    Ok(fs::read_to_string(log)?)
}
