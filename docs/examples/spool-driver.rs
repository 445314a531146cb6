//! The `spool` driver: each mark becomes one file in a directory, and the file being there is the acknowledgement.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use site::Section;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::driver::{Driver, Exchange, Failure, Kind, Message, Outcome};
use crate::event::{self, TimeFormat};

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "spool", configure };

/// What a `spool` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory's absolute path.
    pub directory: PathBuf,
    /// Limit of one exchange.
    pub timeout: Duration,
    /// How times are written.
    pub time_format: TimeFormat,
}

/// One `spool` route.
#[derive(Debug)]
pub struct Spool {
    options: Options,
    /// Goes with each write into its thread: one that hangs keeps the next from beginning, however long ago it was given up.
    turn: Arc<Mutex<()>>,
}

impl Spool {
    /// A route into this directory.
    pub fn new(options: Options) -> Self {
        Self { options, turn: Arc::default() }
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let (id, body) = (message.id.to_string(), message.body.to_vec());
        let directory = self.options.directory.clone();
        outcome(&self.in_turn(move || leave(&directory, &id, &body)).await)
    }

    /// Does this beside the daemon's thread, which no disk may stop, and waits for its end until the route's limit.
    async fn in_turn(&self, work: impl FnOnce() -> End + Send + 'static) -> End {
        let limit = self.options.timeout;
        let end = Instant::now() + limit;
        let Ok(turn) = timeout_at(end, Arc::clone(&self.turn).lock_owned()).await else {
            return End::Busy(limit);
        };
        let under_way = spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        match timeout_at(end, under_way).await {
            Ok(ended) => ended.unwrap_or(End::Lost),
            Err(_) => End::Timeout(limit),
        }
    }
}

impl Driver for Spool {
    fn kind(&self) -> &'static str {
        KIND.word
    }

    fn endpoint(&self) -> String {
        self.options.directory.display().to_string()
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        event::of_mark(mark, self.options.time_format)
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        event::of_test(id, now, self.options.time_format)
    }

    fn limit(&self) -> Duration {
        self.options.timeout
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        Box::pin(self.exchange(message))
    }
}

/// Reads `[spool.NAME]`: all keys first, and only then a decision, so that every mistake is said at once.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let directory = table.text("directory", directory);
    let seconds = table.number("timeout", 1..=300).unwrap_or(30);
    let time_format = table.choice("time-format", &TimeFormat::WORDS).unwrap_or_default();
    if !table.has("directory") {
        let title = table.title().to_owned();
        table.missing(format!("[{title}] has no directory: set it to the one that takes the files"));
    }
    if !table.is_sound() {
        return None;
    }
    let timeout = Duration::from_secs(seconds.into());
    Some(Arc::new(Spool::new(Options { directory: directory?, timeout, time_format })))
}

/// Reads `directory`. It is not made: a misspelled name would get a directory that nobody reads.
fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        return Err("must be the absolute path of a directory, such as /var/spool/recovery".to_owned());
    }
    match fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => Ok(path),
        Ok(_) => Err("it is no directory: name one, or remove what is there".to_owned()),
        Err(error) => Err(format!("the directory cannot be used ({}): make it first", error.kind())),
    }
}

/// How an exchange ended.
#[derive(Debug)]
enum End {
    /// The file is there, and survives a power cut.
    Kept,
    /// A file of this name is there, and it is another one.
    OtherBytes,
    /// There is no file of this name, and this is why.
    NotWritten(ErrorKind),
    /// The file may be there, or may be gone after a power cut.
    InDoubt(ErrorKind),
    /// The limit passed before it began.
    Busy(Duration),
    /// The limit passed while it was under way.
    Timeout(Duration),
    /// Its thread does not say.
    Lost,
}

/// What an end means. Pure: the table is here and nowhere else.
fn outcome(end: &End) -> Outcome {
    let says = |word, clause: &str| Failure::new(word, clause);
    match end {
        End::Kept => Outcome::Acknowledged { reference: None },
        End::OtherBytes => Outcome::Rejected(says(
            "other-bytes",
            "a file of this name with another content is there: check it, and remove it",
        )),
        End::NotWritten(why) => not_written(*why),
        End::InDoubt(why) => {
            Outcome::Unknown(says("in-doubt", &format!("nobody knows whether the file stays: {why}")))
        }
        End::Busy(limit) => Outcome::Unreachable(says(
            "busy",
            &format!("other files were being written for {} s, so this one was not begun", limit.as_secs()),
        )),
        End::Timeout(limit) => Outcome::Unknown(says(
            "timeout",
            &format!("the file was not written within {} s", limit.as_secs()),
        )),
        End::Lost => Outcome::Unknown(says("in-doubt", "the write ended without a word")),
    }
}

/// What waits for somebody is refused; what may pass by itself is tried soon, and that is all that is not known.
fn not_written(why: ErrorKind) -> Outcome {
    let says = |word, clause: &str| Failure::new(word, &format!("{clause}: {why}"));
    match why {
        ErrorKind::NotFound => Outcome::Unreachable(says("missing", "the directory is not there")),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Outcome::Retry(says("full", "the directory takes no more"))
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory => {
            Outcome::Refused(says("not-writable", "the directory cannot be written"))
        }
        _ => Outcome::Retry(says("failed", "the file cannot be written")),
    }
}

/// Leaves the file, durably, unless it is there.
fn leave(directory: &Path, id: &str, body: &[u8]) -> End {
    let place = directory.join(format!("{id}.json"));
    match is_there(&place, body) {
        Ok(Some(true)) => keep(directory, || Ok(())),
        Ok(Some(false)) => End::OtherBytes,
        Ok(None) => put(directory, &place, &directory.join(format!(".{id}.part")), body),
        Err(error) => End::NotWritten(error.kind()),
    }
}

/// Whether there is a file of this name with these bytes, on the disk; `None` where there is none.
fn is_there(place: &Path, body: &[u8]) -> io::Result<Option<bool>> {
    let meta = match place.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        meta => meta?,
    };
    // Neither a FIFO nor a file without end is read.
    if !meta.is_file() || usize::try_from(meta.len()) != Ok(body.len()) {
        return Ok(Some(false));
    }
    // Who wrote it is not known, so it is not known either whether it was written to its end.
    File::open(place)?.sync_all()?;
    Ok(Some(fs::read(place)? == body))
}

fn put(directory: &Path, place: &Path, part: &Path, body: &[u8]) -> End {
    match write(part, body) {
        Ok(()) => keep(directory, || fs::rename(part, place)),
        Err(error) => {
            // A disk that is full is not filled further.
            let _may_not_be_there = fs::remove_file(part);
            End::NotWritten(error.kind())
        }
    }
}

/// The whole file under a name that nobody reads: the rest of a killed attempt is overwritten.
fn write(part: &Path, body: &[u8]) -> io::Result<()> {
    match fs::remove_file(part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(part)?;
    file.write_all(body)?;
    file.sync_all()
}

/// The last step, and the directory's own sync: what fails from here on may have happened all the same.
fn keep(directory: &Path, last_step: impl FnOnce() -> io::Result<()>) -> End {
    match last_step().and_then(|()| File::open(directory)?.sync_all()) {
        Ok(()) => End::Kept,
        Err(error) => End::InDoubt(error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn word(outcome: &Outcome) -> (&'static str, &'static str) {
        (outcome.as_str(), outcome.failure().map_or("", |failure| failure.kind))
    }

    /// The table once more.
    #[test]
    fn every_end_has_its_outcome() {
        let limit = Duration::from_secs(30);
        for (end, expected) in [
            (End::Kept, ("acknowledged", "")),
            (End::OtherBytes, ("rejected", "other-bytes")),
            (End::NotWritten(ErrorKind::NotFound), ("unreachable", "missing")),
            (End::NotWritten(ErrorKind::StorageFull), ("retry", "full")),
            (End::NotWritten(ErrorKind::QuotaExceeded), ("retry", "full")),
            (End::NotWritten(ErrorKind::PermissionDenied), ("refused", "not-writable")),
            (End::NotWritten(ErrorKind::ReadOnlyFilesystem), ("refused", "not-writable")),
            (End::NotWritten(ErrorKind::NotADirectory), ("refused", "not-writable")),
            (End::NotWritten(ErrorKind::OutOfMemory), ("retry", "failed")),
            (End::NotWritten(ErrorKind::Other), ("retry", "failed")),
            (End::InDoubt(ErrorKind::StorageFull), ("unknown", "in-doubt")),
            (End::Busy(limit), ("unreachable", "busy")),
            (End::Timeout(limit), ("unknown", "timeout")),
            (End::Lost, ("unknown", "in-doubt")),
        ] {
            assert_eq!(word(&outcome(&end)), expected, "{end:?}");
        }
    }

    /// A disk that hangs takes one thread, not one for each attempt, and the next file comes when it has come back.
    #[tokio::test]
    async fn a_write_that_hangs_ends_with_the_limit_and_keeps_the_next_from_beginning() {
        let of = |timeout| Options { directory: "/".into(), timeout, time_format: TimeFormat::Epoch };
        let (release, hangs) = mpsc::channel::<()>();
        let mut spool = Spool::new(of(Duration::from_millis(50)));
        let hanging = spool.in_turn(move || hangs.recv().map_or(End::Lost, |()| End::Kept)).await;
        assert_eq!(word(&outcome(&hanging)), ("unknown", "timeout"));
        let next = spool.in_turn(|| End::Kept).await;
        assert_eq!(word(&outcome(&next)), ("unreachable", "busy"));
        release.send(()).unwrap();
        spool.options = of(Duration::from_secs(30));
        assert!(matches!(spool.in_turn(|| End::Kept).await, End::Kept));
    }
}
