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

/// Makes the thing, and notes each file before it is read.
type Make<T> = dyn Fn(&mut Seen) -> Result<T, Unusable> + Send + Sync;

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
    what: &'static str,
    endpoint: String,
    make: Box<Make<T>>,
    current: Mutex<Current<T>>,
}

/// Files, and the state of each before it was read: a change meanwhile is seen at the next exchange.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen(Vec<(PathBuf, Stamp)>);

impl Seen {
    /// Notes a file that is about to be read.
    pub fn note(&mut self, path: &Path) {
        self.0.push((path.to_owned(), stamp(path)));
    }

    /// The same files as they are now.
    fn again(&self) -> Self {
        Self(self.0.iter().map(|(path, _)| (path.clone(), stamp(path))).collect())
    }
}

struct Current<T> {
    made: T,
    /// The files that it was made of.
    seen: Seen,
    /// The state of files that could not be used, and when they were tried last. An error is logged once. They are tried
    /// again all the same: the cause may be outside of them.
    unusable: Option<(Seen, Instant)>,
}

impl<T: Clone> Kept<T> {
    /// Makes it for the first time. `make` notes each file before it reads it: one may name the next. `what` they hold, in the
    /// plural, and the `endpoint` that they are for, are for people.
    pub fn new(
        what: &'static str,
        endpoint: String,
        make: impl Fn(&mut Seen) -> Result<T, Unusable> + Send + Sync + 'static,
    ) -> Result<Self, Unusable> {
        let mut seen = Seen::default();
        let current = Mutex::new(Current { made: make(&mut seen)?, seen, unusable: None });
        Ok(Self { what, endpoint, make: Box::new(make), current })
    }

    /// The thing, for the next exchange. If the files cannot be used, the old one stays: they may be in the middle of a
    /// change. Each change is logged once.
    pub fn get(&self) -> T {
        self.get_at(Instant::now())
    }

    /// The same, made again even if no change can be seen.
    pub(crate) fn read_again(&self) -> T {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = current.seen.again();
        self.remake(&mut current, now, Instant::now());
        current.made.clone()
    }

    fn get_at(&self, now: Instant) -> T {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let state = current.seen.again();
        let tried = current.unusable.as_ref().filter(|(unusable, _)| *unusable == state);
        let is_time = tried.is_none_or(|(_, tried)| now >= *tried + PAUSE);
        if state != current.seen && is_time {
            self.remake(&mut current, state, now);
        }
        current.made.clone()
    }

    /// Makes it of the files, which are in this state.
    fn remake(&self, current: &mut Current<T>, state: Seen, now: Instant) {
        let (Self { what, endpoint, .. }, mut seen) = (self, Seen::default());
        match (self.make)(&mut seen) {
            Ok(made) => {
                let has_changed = state != current.seen;
                *current = Current { made, seen, unusable: None };
                if has_changed {
                    info!(%endpoint, "the {what} for {endpoint} have changed; the new ones are used");
                }
            }
            Err(why) => {
                let is_news = current.unusable.as_ref().is_none_or(|(unusable, _)| *unusable != state);
                current.unusable = Some((state, now));
                if is_news {
                    warn!(
                        %endpoint, key = why.key,
                        "the new {what} for {endpoint} cannot be used, the old ones stay: {why}"
                    );
                }
            }
        }
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
        let tries = Arc::new(AtomicUsize::new(0));
        let (counted, file) = (Arc::clone(&tries), path.clone());
        let read = move |seen: &mut Seen| {
            seen.note(&file);
            counted.fetch_add(1, Ordering::Relaxed);
            let text = fs::read_to_string(&file).map_err(|_| Unusable::new("key", "gone"))?;
            text.parse::<u32>().map_err(|_| Unusable::new("key", "no number"))
        };
        let kept = Kept::new("files", "here".to_owned(), read).unwrap();
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

    /// One file names the other. The broken variant watches the files that were named at first.
    #[test]
    fn a_file_that_is_named_later_is_watched() {
        let room = tempfile::tempdir().unwrap();
        let place = |name: &str| room.path().join(name);
        for (name, text) in [("list", "a"), ("a", "1"), ("b", "2")] {
            fs::write(place(name), text).unwrap();
        }
        let root = room.path().to_owned();
        let kept = Kept::new("files", "here".to_owned(), move |seen| {
            let mut read = |name: &str| {
                seen.note(&root.join(name));
                fs::read_to_string(root.join(name)).map_err(|_| Unusable::new("key", "gone"))
            };
            let named = read("list")?;
            read(&named)
        });
        let kept = kept.unwrap();
        assert_eq!(kept.get(), "1");
        fs::write(place("list"), "b ").unwrap();
        assert_eq!(kept.get(), "1", "what it names is not there");
        fs::write(place("list"), "b").unwrap();
        assert_eq!(kept.get(), "2");
        fs::write(place("b"), "22").unwrap();
        assert_eq!(kept.get(), "22");
        fs::remove_file(place("b")).unwrap();
        assert_eq!(kept.read_again(), "22");
    }
}
