//! Options on standard input, one `key=value` on each line, as Pacemaker's fencer passes them.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::given::{Given, GivenError};

/// The longest input.
pub const MAX_BYTES: usize = 64 * 1024;
/// The most lines.
pub const MAX_LINES: usize = 256;
/// The time limit for the end of the input.
pub const LIMIT: Duration = Duration::from_secs(5);

/// Why standard input cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StdinError {
    /// More than [`MAX_BYTES`].
    #[error("the options on standard input are longer than {MAX_BYTES} bytes: pass one option on each line")]
    TooLong,
    /// More than [`MAX_LINES`].
    #[error("the options on standard input have more than {MAX_LINES} lines: pass one option on each line")]
    TooManyLines,
    /// The writer did not close it.
    #[error("the options on standard input did not end within {} seconds: close standard input after the last option", LIMIT.as_secs())]
    NoEnd,
    /// Not UTF-8.
    #[error("the options on standard input are not UTF-8 text: correct the options of the device")]
    NotText,
    /// A NUL byte.
    #[error("the options on standard input have a NUL byte: correct the options of the device")]
    Nul,
    /// A value that no option could have.
    #[error(transparent)]
    Value(#[from] GivenError),
    /// The system's error.
    #[error("standard input cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Reads to the end of the input, within the limits.
///
/// # Errors
/// [`StdinError`] as soon as a limit is passed.
pub fn read(mut input: impl Read + AsFd, limit: Duration) -> Result<Vec<u8>, StdinError> {
    let end = Instant::now() + limit;
    let mut all = Vec::new();
    let mut part = [0; 4096];
    while wait_for(&input, end)? {
        match input.read(&mut part) {
            Ok(0) => return Ok(all),
            Ok(count) => all.extend_from_slice(&part[..count]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
        if all.len() > MAX_BYTES {
            return Err(StdinError::TooLong);
        }
    }
    Err(StdinError::NoEnd)
}

/// Waits for input or its end; false when the time is over.
fn wait_for(input: &impl AsFd, end: Instant) -> Result<bool, StdinError> {
    loop {
        let left =
            PollTimeout::try_from(end.saturating_duration_since(Instant::now())).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(input.as_fd(), PollFlags::POLLIN)], left) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::EINTR) => {}
            Err(e) => return Err(io::Error::from(e).into()),
        }
    }
}

/// Reads the lines, by the rules of the fence agents' library: blank lines and those that begin with `#` are ignored, and
/// space around a line. The first `=` divides it, and one pair of double quotes around a value is removed.
///
/// # Errors
/// [`StdinError`]; nothing of the input counts then.
pub fn parse(bytes: &[u8]) -> Result<Given, StdinError> {
    if bytes.contains(&0) {
        return Err(StdinError::Nul);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| StdinError::NotText)?;
    let mut given = Given::default();
    for (number, line) in text.split('\n').enumerate() {
        let line = line.trim();
        if !line.is_empty() && number >= MAX_LINES {
            return Err(StdinError::TooManyLines);
        }
        if !line.is_empty() && !line.starts_with('#') {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            given.take(key, unquoted(value).to_owned())?;
        }
    }
    Ok(given)
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(line: &str, name: &'static str) -> Option<String> {
        parse(line.as_bytes()).unwrap().get(name).map(str::to_owned)
    }

    /// Conformance 10: how lines are read.
    #[test]
    fn lines_are_read_as_the_fence_agents_library_reads_them() {
        for (line, expected) in [
            ("domain=a b", "a b"),
            ("  domain=a\t\r\n", "a"),
            ("# domain=x\n\n   \n#\ndomain=a", "a"),
            ("domain=a=b=c", "a=b=c"),
            ("domain=\"off\"", "off"),
            ("domain='off'", "'off'"),
            ("domain=\"\"a\"\"", "\"a\""),
            ("domain=\"", "\""),
            ("domain=a#b", "a#b"),
            ("domain= a", " a"),
            ("domain", ""),
            ("domain=", ""),
            ("compute-domain=x\nuser_domain=y\ndomain=a", "a"),
        ] {
            assert_eq!(value(line, "domain").as_deref(), Some(expected), "{line:?}");
        }
        assert_eq!(value("domain = a", "domain"), None);
        assert_eq!(value("; domain=a", "domain"), None);
        assert_eq!(value("no-shared-storage=1", "no_shared_storage").as_deref(), Some("1"));
    }
}
