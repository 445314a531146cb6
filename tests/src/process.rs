//! A test program's words, and the kernel's figures of a running process.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, bail};

/// The words behind the program's name.
#[must_use]
pub fn words() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A process that is killed with this value.
#[derive(Debug)]
pub struct Bound(pub Child);

impl Deref for Bound {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Bound {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let (_already_gone, _reaped) = (self.0.kill(), self.0.wait());
    }
}

/// Resident memory of a process now and at its peak, in MiB.
///
/// # Errors
/// It is not there.
pub fn resident(pid: u32) -> anyhow::Result<(f64, f64)> {
    let mebibytes = |name| Ok::<_, anyhow::Error>(kibibytes(pid, name)? as f64 / 1024.0);
    Ok((mebibytes("VmRSS:")?, mebibytes("VmHWM:")?))
}

/// What the kernel calls by this name in the status of a process, in KiB.
///
/// # Errors
/// It is not there.
pub fn kibibytes(pid: u32, name: &str) -> anyhow::Result<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/status"))?, name)
}

/// Context switches of all threads.
///
/// # Errors
/// It is not there.
pub fn switches(pid: u32) -> anyhow::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        sum += field(&status, "\nvoluntary_ctxt_switches:")? + field(&status, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(sum)
}

/// The processor time of a process, and of its children that have ended.
///
/// # Errors
/// It is not there.
pub fn cpu(pid: u32) -> anyhow::Result<[Duration; 2]> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Its name stands in brackets, and may have any letters.
    let (_, rest) = stat.rsplit_once(')').context("no name in /proc")?;
    let ticks: Vec<u64> =
        rest.split_whitespace().skip(11).take(4).map_while(|word| word.parse().ok()).collect();
    let [user, system, of_children, their_system] = ticks[..] else { bail!("no times in /proc") };
    Ok([user + system, of_children + their_system].map(|ticks| Duration::from_millis(ticks * 10)))
}

fn field(status: &str, name: &str) -> anyhow::Result<u64> {
    let (_, rest) = status.split_once(name).with_context(|| format!("no {name} in /proc"))?;
    Ok(rest.split_whitespace().next().unwrap_or("0").parse()?)
}
