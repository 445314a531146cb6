//! The lab itself: it touches nothing but its own, and it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::lab::{Lab, Shape, wait};

use crate::Scenario;
use crate::cloud::Cloud;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_lab_beside_another_leaves_nothing", a_lab_beside_another_leaves_nothing),
    ("a_lab_ends_with_its_killed_owner", a_lab_ends_with_its_killed_owner),
];

const OWNER: &str = "lab-owner";
const SMALL: Shape = Shape { controllers: 1, remotes: 0 };

/// What of a lab could be left behind.
struct Traces {
    directory: PathBuf,
    processes: Vec<PathBuf>,
}

impl Traces {
    fn of(directory: &Path) -> anyhow::Result<Self> {
        let processes = processes_of(directory)?;
        ensure!(!processes.is_empty(), "no process can be seen in {}", directory.display());
        Ok(Self { directory: directory.to_owned(), processes })
    }

    fn left(&self) -> anyhow::Result<Vec<String>> {
        let processes = self.processes.iter().filter(|process| lives_in(process, &self.directory));
        let mut left: Vec<String> = processes.map(|process| process.display().to_string()).collect();
        let text = self.directory.to_string_lossy().into_owned();
        left.extend(fs::read_to_string("/proc/self/mountinfo")?.contains(&text).then_some(text));
        Ok(left)
    }
}

/// Every process that sees the lab's directory mounted: those of its nodes.
fn processes_of(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let all = fs::read_dir("/proc")?.flatten().map(|entry| entry.path());
    Ok(all.filter(|process| lives_in(process, directory)).collect())
}

fn lives_in(process: &Path, directory: &Path) -> bool {
    let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
    mounts.contains(&*directory.to_string_lossy())
}

fn links() -> anyhow::Result<String> {
    Ok(fs::read_to_string("/proc/net/dev")?
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(n, _)| n)
        .collect())
}

/// A second lab beside the first, ended by a panic of its owner's thread.
fn a_lab_beside_another_leaves_nothing(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = links()?;
    let (send, receive) = std::sync::mpsc::channel();
    let owner = std::thread::spawn(move || {
        let lab = Lab::boot(SMALL, None).expect("a second lab can be booted");
        send.send(Traces::of(lab.directory())).expect("the test waits");
        panic!("this panic is part of the test");
    });
    let traces = receive.recv().context("the second lab was not booted")??;
    ensure!(owner.join().is_err(), "the owner did not panic");
    let left = traces.left()?;
    ensure!(left.is_empty() && !traces.directory.exists(), "left: {left:?}");
    ensure!(links()? == before, "the host's links changed");
    ensure!(!Traces::of(cloud.lab.directory())?.left()?.is_empty(), "the first lab is gone too");
    cloud.lab.wait_until_ready()
}

/// An owner that is killed cannot tear anything down: the pipe to PID 1 of each node does.
fn a_lab_ends_with_its_killed_owner(_: &mut Cloud) -> anyhow::Result<()> {
    let mut owner = Command::new(std::env::current_exe()?)
        .arg(OWNER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut directory = String::new();
    BufReader::new(owner.stdout.take().context("no pipe")?).read_line(&mut directory)?;
    let traces = Traces::of(Path::new(directory.trim()))?;
    owner.kill()?;
    owner.wait()?;
    wait::until("everything to be gone", Duration::from_secs(30), || {
        Ok(traces.left()?.is_empty().then_some(()))
    })?;
    ensure!(traces.directory.exists(), "a killed owner removed its directory");
    drop(Lab::boot(SMALL, None)?);
    ensure!(!traces.directory.exists(), "the next lab left the directory of a dead one");
    Ok(())
}

/// Boots a lab and waits to be killed.
pub(crate) fn play_the_owner() -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != OWNER {
        return None;
    }
    let owned = Lab::boot(SMALL, None).and_then(|lab| {
        println!("{}", lab.directory().display());
        std::io::stdout().flush()?;
        std::io::stdin().read_to_end(&mut Vec::new())?;
        Ok(lab)
    });
    Some(if owned.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
