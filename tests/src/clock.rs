//! A clock for programs that a test sets while they run: the wall clock alone, by libfaketime. What is measured by the
//! monotonic clock goes on as it is.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use marks::time::Timestamp;
use tempfile::TempDir;

/// Its name where packages put it; this one is made for programs with threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// A clock of one's own, which ends with this value.
pub struct Clock {
    directory: TempDir,
    library: PathBuf,
}

impl Clock {
    /// A clock that is so many seconds ahead of the real one.
    ///
    /// # Errors
    /// libfaketime is not installed, or a file cannot be written.
    pub fn ahead(seconds: i64) -> anyhow::Result<Self> {
        let library = library().context("libfaketime is not installed: run `make deps`")?;
        let clock = Self { directory: TempDir::new()?, library };
        clock.set_ahead(seconds)?;
        Ok(clock)
    }

    /// Sets it, for every program that has it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_ahead(&self, seconds: i64) -> anyhow::Result<()> {
        let draft = self.directory.path().join("draft");
        fs::write(&draft, format!("{seconds:+}\n"))?;
        // At once: half a file would be another time.
        Ok(fs::rename(draft, self.file())?)
    }

    /// What a program needs in its environment to have this clock.
    #[must_use]
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        environment(&self.library, &self.file())
    }

    /// Why this machine cannot have such a clock, or `None` if it can.
    #[must_use]
    pub fn cannot() -> Option<String> {
        Self::ahead(0).err().map(|error| format!("{error:#}"))
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("offset")
    }
}

/// The same for a clock whose file is read at another place.
pub(crate) fn environment(library: &Path, file: &Path) -> Vec<(OsString, OsString)> {
    let known = [
        ("LD_PRELOAD", library.into()),
        ("FAKETIME_TIMESTAMP_FILE", file.into()),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        // The clock leaves the times of files alone.
        ("NO_FAKE_STAT", "1".into()),
    ];
    known.map(|(key, value)| (key.into(), value)).into()
}

/// How far ahead a clock is that shows this second since 1970 now.
#[must_use]
pub fn ahead_at(second: i64) -> i64 {
    second - Timestamp::now().seconds()
}

/// The library, if it is installed.
pub(crate) fn library() -> Option<PathBuf> {
    let architectures = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let places = architectures.chain(["/usr/lib".into(), "/usr/lib64".into()]);
    places.map(|place| place.join(LIBRARY)).find(|path| path.is_file())
}
