//! How busy the machine is, and the floors that need nothing of ours.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

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
