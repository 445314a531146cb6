//! What the kernel says of a running process, and the floors that need nothing of ours.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use anyhow::Context as _;

/// Resident memory of a process now and at its peak, in MiB.
pub(crate) fn resident(pid: u32) -> anyhow::Result<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mebibytes = |name| Ok::<_, anyhow::Error>(field(&status, name)? as f64 / 1024.0);
    Ok((mebibytes("VmRSS:")?, mebibytes("VmHWM:")?))
}

/// Context switches of all threads.
pub(crate) fn switches(pid: u32) -> anyhow::Result<u64> {
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

/// How much of the last ten seconds somebody waited for a processor, in percent; none where the kernel does not say so.
pub(crate) fn pressure() -> Option<f64> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    text.split_once("avg10=")?.1.split_whitespace().next()?.parse().ok()
}

/// 4 KiB of a file, written over and over: the floor of whatever must be durable.
pub(crate) struct Disk(File);

impl Disk {
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(&[0; 4096])?;
        file.sync_all()?;
        Ok(Self(file))
    }

    pub(crate) fn sync(&mut self) -> anyhow::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        self.0.write_all(&[1; 4096])?;
        Ok(self.0.sync_data()?)
    }
}
