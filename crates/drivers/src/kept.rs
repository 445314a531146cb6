//! A thing made of files: made again when they have changed, and kept while they cannot be used.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;
use tracing::{info, warn};

/// How often unusable files are read at most: reading blocks everything else.
const PAUSE: Duration = Duration::from_secs(1);

/// What distinguishes one state of a file from the next without reading it: device, inode, size, and the times of the
/// last change of content and of owner or mode, which decide whether it is trusted.
type Stamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

/// Why the files and settings cannot be used: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{sentence}")]
pub struct Unusable {
    /// The key that must be changed.
    pub key: &'static str,
    sentence: String,
}

impl Unusable {
    /// The key that must be changed, and why.
    pub fn new(key: &'static str, sentence: impl Into<String>) -> Self {
        Self { key, sentence: sentence.into() }
    }
}

/// A thing made of files, kept current.
pub struct Kept<T> {
    of: Files,
    make: Box<dyn Fn() -> Result<T, Unusable> + Send + Sync>,
    current: Mutex<Current<T>>,
}

/// The files, and their names for people.
pub struct Files {
    /// What they hold, in the plural.
    pub what: &'static str,
    /// The endpoint that they are for.
    pub endpoint: String,
    /// Where they are.
    pub paths: Vec<PathBuf>,
}

struct Current<T> {
    made: T,
    /// The state of the files that it was made of.
    stamps: Vec<Stamp>,
    /// The state of files that could not be used, and when they were tried last. An error is logged once. They are tried
    /// again all the same: the cause may be outside of them.
    unusable: Option<(Vec<Stamp>, Instant)>,
}

impl<T: Clone> Kept<T> {
    /// Makes it for the first time.
    pub fn new(
        of: Files,
        make: impl Fn() -> Result<T, Unusable> + Send + Sync + 'static,
    ) -> Result<Self, Unusable> {
        // Before they are read, so that a change meanwhile is seen at the next exchange.
        let stamps = of.stamps();
        let current = Mutex::new(Current { made: make()?, stamps, unusable: None });
        Ok(Self { of, make: Box::new(make), current })
    }

    /// The thing, for the next exchange. If the files cannot be used, the old one stays: they may be in the middle of a
    /// change. Each change is logged once.
    pub fn get(&self) -> T {
        self.get_at(Instant::now())
    }

    fn get_at(&self, now: Instant) -> T {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.of.stamps();
        let before = current.unusable.as_ref().filter(|(unusable, _)| *unusable == stamps);
        let (is_news, is_time) = (before.is_none(), before.is_none_or(|(_, tried)| now >= *tried + PAUSE));
        if stamps != current.stamps && is_time {
            match (self.make)() {
                Ok(made) => {
                    *current = Current { made, stamps, unusable: None };
                    self.of.say_used();
                }
                Err(why) => {
                    current.unusable = Some((stamps, now));
                    if is_news {
                        self.of.say_unusable(&why);
                    }
                }
            }
        }
        current.made.clone()
    }
}

impl Files {
    fn stamps(&self) -> Vec<Stamp> {
        self.paths.iter().map(|path| stamp(path)).collect()
    }

    fn say_used(&self) {
        let Self { what, endpoint, .. } = self;
        info!(%endpoint, "the {what} for {endpoint} have changed; the new ones are used");
    }

    fn say_unusable(&self, why: &Unusable) {
        let Self { what, endpoint, .. } = self;
        warn!(
            %endpoint, key = why.key,
            "the new {what} for {endpoint} cannot be used, the old ones stay: {why}"
        );
    }
}

fn stamp(file: &Path) -> Stamp {
    let meta = fs::metadata(file).ok()?;
    let content = (meta.mtime(), meta.mtime_nsec());
    Some((meta.dev(), meta.ino(), meta.size(), content, (meta.ctime(), meta.ctime_nsec())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The broken variant reads them for each request: dozens of times in one exchange.
    #[test]
    fn what_cannot_be_used_is_read_once_a_second() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("file");
        fs::write(&path, "1").unwrap();
        let files = Files { what: "files", endpoint: "here".to_owned(), paths: vec![path.clone()] };
        let tries = Arc::new(AtomicUsize::new(0));
        let (counted, file) = (Arc::clone(&tries), path.clone());
        let read = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let text = fs::read_to_string(&file).map_err(|_| Unusable::new("key", "gone"))?;
            text.parse::<u32>().map_err(|_| Unusable::new("key", "no number"))
        };
        let kept = Kept::new(files, read).unwrap();
        fs::write(&path, "no number").unwrap();
        let now = Instant::now();
        for _ in 0..5 {
            assert_eq!(kept.get_at(now), 1);
        }
        assert_eq!(tries.load(Ordering::Relaxed), 2);
        kept.get_at(now + PAUSE);
        assert_eq!(tries.load(Ordering::Relaxed), 3);
        fs::write(&path, "22").unwrap();
        assert_eq!(kept.get_at(now + PAUSE), 22, "others are read at once");
    }
}
