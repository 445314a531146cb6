//! `fence_mark`, the whole process: time and peak memory.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use tests::programs::{Site, built};
use tests::receiver::Receiver;

use crate::figures::{Times, line, ratio};
use crate::path::settled;
use crate::process::Disk;

const ROUNDS: usize = crate::size(200);

/// The word with which this program runs another one and prints what memory it took.
pub(crate) const PEAK: &str = "--peak";

pub(crate) fn run() -> anyhow::Result<()> {
    let receiver = Receiver::on_loopback()?;
    let mut site = Site::new(receiver.address())?;
    site.start()?;
    off(&site)?;
    site.end(Signal::SIGTERM)?;
    metadata()
}

/// `fence_mark off` against the start of a static program and one 4 KiB fdatasync.
fn off(site: &Site) -> anyhow::Result<()> {
    let floor = static_program(site.directory())?;
    let agent = built("fence_mark")?;
    let mut disk = Disk::new(&site.directory().join("floor"))?;
    let (mut spawns, mut syncs, mut offs) = (Times::default(), Times::default(), Times::default());
    for round in 0..ROUNDS {
        spawns.time(|| execute(&floor, ""))?;
        syncs.time(|| disk.sync())?;
        let stdin = site.stdin_of_the_fencer(&format!("off{round}"));
        offs.time(|| execute(&agent, &stdin))?;
        settled(site)?;
    }
    let peak = peak(&agent, &site.stdin_of_the_fencer("peak"))?;
    line("static program, spawn and wait", &spawns);
    line("4 KiB overwrite and fdatasync", &syncs);
    line("fence_mark off, alerter running", &offs);
    ratio("ratio to (spawn + fdatasync)", offs.median() / (spawns.median() + syncs.median()), "<= 4");
    ratio("peak memory in MiB", peak, "<= 10");
    Ok(())
}

/// `fence_mark metadata` against the Python agent that every distribution has.
fn metadata() -> anyhow::Result<()> {
    let Some(peer) =
        ["/usr/sbin/fence_dummy", "/sbin/fence_dummy"].into_iter().find(|path| Path::new(path).exists())
    else {
        println!("fence_mark metadata: no fence_dummy here to compare with (run `make deps`)");
        return Ok(());
    };
    let (agent, peer) = (built("fence_mark")?, PathBuf::from(peer));
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for _ in 0..ROUNDS / 4 {
        ours.time(|| execute(&agent, "action=metadata\n"))?;
        theirs.time(|| execute(&peer, "action=metadata\n"))?;
    }
    line("fence_mark metadata", &ours);
    line("fence_dummy metadata", &theirs);
    ratio("times faster", theirs.median() / ours.median(), ">= 20");
    Ok(())
}

/// The cheapest process there is.
fn static_program(directory: &Path) -> anyhow::Result<PathBuf> {
    let (source, program) = (directory.join("floor.c"), directory.join("floor-program"));
    fs::write(&source, "int main(void) { return 0; }\n")?;
    let built = Command::new("cc").args(["-static", "-O2", "-o"]).arg(&program).arg(&source).status();
    ensure!(built.context("the floor needs a C compiler")?.success(), "the floor could not be built");
    Ok(program)
}

fn execute(program: &Path, stdin: &str) -> anyhow::Result<()> {
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // A program that reads nothing may be gone before we write.
    let _unread = child.stdin.take().map(|mut pipe| pipe.write_all(stdin.as_bytes()));
    ensure!(child.wait()?.success(), "{} failed", program.display());
    Ok(())
}

/// Peak memory of one run in MiB, taken by a small process of its own: the kernel adds up all children of one parent.
fn peak(program: &Path, stdin: &str) -> anyhow::Result<f64> {
    let output = Command::new(std::env::current_exe()?).arg(PEAK).arg(program).arg(stdin).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// What [`peak`] runs in that process.
pub(crate) fn print_peak(program: &str, stdin: &str) -> anyhow::Result<()> {
    execute(Path::new(program), stdin)?;
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() as f64 / 1024.0);
    Ok(())
}
