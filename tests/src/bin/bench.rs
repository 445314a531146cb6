//! `make bench`: speed and memory of the whole path. Every figure stands beside a floor that was taken in the same run,
//! in turns with it, so that a busy machine slows both.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use marks::fencing::{Fencing, Origin};
use marks::host::HostName;
use marks::id::FencingId;
use marks::journal::{Journal, Role};
use marks::time::Timestamp;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use tests::programs::{Site, built};
use tests::receiver::Receiver;

const ROUNDS: usize = 200;
const ARRIVAL: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(10);

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, program, stdin] = &words[..]
        && word == "--peak"
    {
        return print_peak(program, stdin);
    }
    let receiver = Receiver::on_loopback()?;
    let mut site = Site::new(receiver.address())?;
    let pid = site.start()?;
    println!("{ROUNDS} rounds each, in turns; medians [p10 p99] in milliseconds\n");
    agent_off(&site)?;
    agent_metadata()?;
    commit_to_post(&site, &receiver)?;
    idle(pid)?;
    site.end(Signal::SIGTERM)
}

/// `fence_mark off`, whole process, against the start of a static program and one 4 KiB fdatasync.
fn agent_off(site: &Site) -> anyhow::Result<()> {
    let floor = static_program(site.directory())?;
    let agent = built("fence_mark")?;
    let mut disk = Disk::new(&site.directory().join("floor"))?;
    let (mut spawns, mut syncs, mut offs) = (Times::default(), Times::default(), Times::default());
    for round in 0..ROUNDS {
        spawns.time(|| run(&floor, ""))?;
        syncs.time(|| disk.sync())?;
        let stdin = site.stdin_of_the_fencer(&format!("off{round}"));
        offs.time(|| run(&agent, &stdin))?;
        settled(site)?;
    }
    let peak = peak(&agent, &site.stdin_of_the_fencer("peak"))?;
    println!("static program, spawn and wait      {spawns}");
    println!("4 KiB overwrite and fdatasync       {syncs}");
    println!("fence_mark off, alerter running     {offs}");
    println!(
        "  ratio to (spawn + fdatasync)      {:.2}   wanted <= 4",
        offs.median() / (spawns.median() + syncs.median())
    );
    println!("  peak memory                       {peak:.1} MiB   wanted <= 10\n");
    Ok(())
}

/// `fence_mark metadata` against the Python agent that every distribution has.
fn agent_metadata() -> anyhow::Result<()> {
    let Some(peer) =
        ["/usr/sbin/fence_dummy", "/sbin/fence_dummy"].into_iter().find(|path| Path::new(path).exists())
    else {
        println!("fence_mark metadata: no fence_dummy here to compare with (run `make deps`)\n");
        return Ok(());
    };
    let (agent, peer) = (built("fence_mark")?, PathBuf::from(peer));
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for _ in 0..ROUNDS / 4 {
        ours.time(|| run(&agent, "action=metadata\n"))?;
        theirs.time(|| run(&peer, "action=metadata\n"))?;
    }
    println!("fence_mark metadata                 {ours}");
    println!("fence_dummy metadata                {theirs}");
    println!("  times faster                      {:.1}   wanted >= 20\n", theirs.median() / ours.median());
    Ok(())
}

/// From the begin of the agent's commit to the last byte of the POST.
fn commit_to_post(site: &Site, receiver: &Receiver) -> anyhow::Result<()> {
    let mut waits = Times::default();
    // The marks of the agent's runs must all be told first.
    receiver.wait_for(ROUNDS + 1, ARRIVAL)?;
    for round in 0..ROUNDS {
        let mut journal = Journal::open(&site.journal(), Role::Agent)?;
        let fencing = fencing(&format!("commit{round}"))?;
        let begun = Instant::now();
        journal.append_fencing(&fencing)?;
        drop(journal);
        let all = receiver.wait_for(ROUNDS + 2 + round, ARRIVAL)?;
        let last = all.last().context("nothing came")?;
        ensure!(String::from_utf8_lossy(&last.body).contains(&fencing.id.to_string()), "another mark came");
        waits.0.push(last.instant.saturating_duration_since(begun).as_secs_f64() * 1000.0);
        settled(site)?;
    }
    println!("commit begun -> POST received       {waits}");
    println!("  median                            {:.2} ms   wanted <= 5\n", waits.median());
    Ok(())
}

/// Waits until the alerter has nothing to do, so that its work for one round is not timed in the next.
fn settled(site: &Site) -> anyhow::Result<()> {
    let journal = Journal::open(&site.journal(), Role::Reader)?;
    let limit = Instant::now() + ARRIVAL;
    while !(journal.unfolded_fencings()?.sound.is_empty() && journal.open_marks()?.sound.is_empty()) {
        ensure!(Instant::now() < limit, "the alerter does not settle its marks");
        thread::yield_now();
    }
    Ok(())
}

fn fencing(host: &str) -> anyhow::Result<Fencing> {
    let now = Timestamp::now();
    Ok(Fencing {
        id: FencingId::generate(),
        node: HostName::parse(host)?,
        plug: None,
        asked_at: now,
        committed_at: now,
        seen_by: "bench".into(),
        origin: Origin::Shell,
        incarnation: None,
        already_down: None,
        given_domain: None,
        given_shared_storage: None,
    })
}

/// Memory and wake-ups of an alerter with nothing to do.
fn idle(pid: u32) -> anyhow::Result<()> {
    thread::sleep(Duration::from_secs(1));
    let before = switches(pid)?;
    thread::sleep(IDLE);
    let woken = switches(pid)? - before;
    let rss = field(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmRSS:")? as f64 / 1024.0;
    println!("alerter idle, resident memory       {rss:.1} MiB   wanted <= 12");
    println!("  wake-ups in {} s                  {woken}   wanted 0", IDLE.as_secs());
    Ok(())
}

/// Context switches of all threads.
fn switches(pid: u32) -> anyhow::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        sum += field(&status, "\nvoluntary_ctxt_switches:")? + field(&status, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(sum)
}

fn field(status: &str, name: &str) -> anyhow::Result<u64> {
    let (_, rest) = status.split_once(name).with_context(|| format!("no {name} in /proc"))?;
    Ok(rest.split_whitespace().next().unwrap_or("0").parse()?)
}

/// The cheapest process there is.
fn static_program(directory: &Path) -> anyhow::Result<PathBuf> {
    let (source, program) = (directory.join("floor.c"), directory.join("floor-program"));
    fs::write(&source, "int main(void) { return 0; }\n")?;
    let built = Command::new("cc").args(["-static", "-O2", "-o"]).arg(&program).arg(&source).status();
    ensure!(built.context("the floor needs a C compiler")?.success(), "the floor could not be built");
    Ok(program)
}

fn run(program: &Path, stdin: &str) -> anyhow::Result<()> {
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // A program that reads nothing may be gone before we write.
    let _unread = child.stdin.take().map(|mut pipe| pipe.write_all(stdin.as_bytes()));
    ensure!(child.wait()?.success(), "{} failed", program.display());
    Ok(())
}

/// Peak memory of one run in MiB, taken by a small process of its own: the kernel adds up all children of one parent.
fn peak(program: &Path, stdin: &str) -> anyhow::Result<f64> {
    let output = Command::new(std::env::current_exe()?).arg("--peak").arg(program).arg(stdin).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn print_peak(program: &str, stdin: &str) -> anyhow::Result<()> {
    run(Path::new(program), stdin)?;
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() as f64 / 1024.0);
    Ok(())
}

struct Disk(File);

impl Disk {
    fn new(path: &Path) -> anyhow::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(&[0; 4096])?;
        file.sync_all()?;
        Ok(Self(file))
    }

    fn sync(&mut self) -> anyhow::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        self.0.write_all(&[1; 4096])?;
        Ok(self.0.sync_data()?)
    }
}

/// Milliseconds.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn time(&mut self, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let begun = Instant::now();
        work()?;
        self.0.push(begun.elapsed().as_secs_f64() * 1000.0);
        Ok(())
    }

    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(f64::NAN)
    }

    fn median(&self) -> f64 {
        self.percentile(50)
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:7.2} [{:.2} {:.2}]", self.median(), self.percentile(10), self.percentile(99))
    }
}
