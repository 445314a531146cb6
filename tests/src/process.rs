//! The kernel's figures of a running process.

use std::fs;

use anyhow::Context as _;

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

fn field(status: &str, name: &str) -> anyhow::Result<u64> {
    let (_, rest) = status.split_once(name).with_context(|| format!("no {name} in /proc"))?;
    Ok(rest.split_whitespace().next().unwrap_or("0").parse()?)
}
