//! The journal, by a process of its own: where its disk hangs, that process is left behind, and the fencer gets its answer.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use journal::{Agent, JournalError};
use marks::fencing::Fencing;
use marks::id::FencingId;
use marks::register::{Entry, KEPT, Key, Register};
use marks::time::Timestamp;
use pacemaker::aside;

use crate::call::Call;
use crate::failure::JournalGap;
use crate::report::IDENT;
use crate::run::print;
use crate::settings::Settings;

/// The first argument of that process. No option is called so, and the fencer gives no arguments.
pub const WORD: &str = "--at-the-journal";
/// How long the register waits for the journal.
pub(crate) const LIMIT: Duration = Duration::from_secs(8);

/// What the journal is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    /// Append a fencing, and say what the register lacks.
    Append(&'a Fencing),
    /// What the register lacks, and whether it has this one.
    Lacks(FencingId),
    /// Note that these entries stand in the register.
    Note(&'a [String]),
    /// Whether a mark could be written now; what the register lacks, and what must stand there.
    Check,
}

/// What it says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The asked fencing stands in the register.
    is_published: bool,
    /// Fencings that the register lacks, as far as known.
    pub(crate) lacking: Vec<Fencing>,
    /// Fencings that have stood there, without a known end.
    pub(crate) stood: Vec<Fencing>,
}

impl Answer {
    /// The fencings that the register lacks beside this one; `None` if another call has published it.
    pub(crate) fn others_than(mut self, own: FencingId) -> Option<Vec<Fencing>> {
        self.lacking.retain(|other| other.id != own);
        (!self.is_published).then_some(self.lacking)
    }
}

/// Asks the journal.
///
/// # Errors
/// [`JournalGap`]; `Silent` says that it may do later what it was asked for.
pub(crate) fn ask(
    call: &Call,
    settings: &Settings,
    request: Request<'_>,
    limit: Duration,
) -> Result<Answer, JournalGap> {
    let (asked, text) = ((request.word(), settings.register(), settings.creates_store), request.written());
    let failed = |e: JournalError| JournalGap::Failed(e.to_string());
    if let Request::Append(own) = request
        && fencing(&text).as_ref() != Some(own)
    {
        // A controller's name may have characters that no other process would read.
        let done =
            open(&settings.store, settings.creates_store).and_then(|mut journal| journal.append_fencing(own));
        return done.map(|()| Answer::default()).map_err(failed);
    }
    let note = aside::note(call.paths.lock.parent().unwrap_or(Path::new("/")), IDENT, &settings.store);
    let mut command = Command::new(&call.paths.program);
    let creates = if settings.creates_store { "create" } else { "existing" };
    command.args([WORD, asked.0, settings.register().as_str(), creates]).arg(&note).arg(&settings.store);
    let end = Instant::now() + limit;
    match aside::run(command, text.as_bytes(), &note, |_| end.saturating_duration_since(Instant::now())) {
        Ok(Some(output)) if output.status.success() => Ok(read(&output.stdout)),
        Ok(Some(output)) => {
            Err(JournalGap::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
        }
        Ok(None) => Err(JournalGap::Silent),
        // No other process can be had: a mark matters more than an answer in time.
        Err(_) => done(&settings.store, asked, &text).map(|text| read(text.as_bytes())).map_err(failed),
    }
}

/// Does what [`ask`] asks for, as its process.
pub fn serve(words: &[OsString]) -> ExitCode {
    aside::begin();
    let done = || {
        let [word, register, creates, note, store] = words else {
            return Err("these are not its words".to_owned());
        };
        let _until_the_end = aside::alone(Path::new(note));
        let asked = (text(word), Register::parse(text(register)).unwrap_or_default(), creates == "create");
        let lines = io::read_to_string(io::stdin()).map_err(|e| e.to_string())?;
        done(Path::new(store), asked, &lines).map_err(|e| e.to_string())
    };
    match done() {
        Ok(text) => print(&text),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn text(word: &OsStr) -> &str {
    word.to_str().unwrap_or_default()
}

impl Request<'_> {
    fn word(self) -> &'static str {
        match self {
            Self::Append(_) => "append",
            Self::Lacks(_) => "lacks",
            Self::Note(_) => "note",
            Self::Check => "check",
        }
    }

    fn written(self) -> String {
        match self {
            Self::Append(fencing) => line(fencing),
            Self::Lacks(id) => Key::Fencing(id).to_string(),
            Self::Note(keys) => keys.join("\n"),
            Self::Check => String::new(),
        }
    }
}

/// As it stands in the register.
fn line(fencing: &Fencing) -> String {
    let entry = Entry::Fencing(fencing.clone());
    format!("{} {}", entry.key(), entry.value())
}

fn fencing(line: &str) -> Option<Fencing> {
    let (key, value) = line.split_once(' ')?;
    Entry::parse(Key::parse(key)?, value).ok()?.fencing().cloned()
}

fn read(printed: &[u8]) -> Answer {
    let (text, mut answer) = (String::from_utf8_lossy(printed), Answer::default());
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("lacking", line)) => answer.lacking.extend(fencing(line)),
            Some(("stood", line)) => answer.stood.extend(fencing(line)),
            _ => answer.is_published |= line == "published",
        }
    }
    answer
}

/// Opens the journal, and creates it where that is meant.
fn open(store: &Path, creates: bool) -> Result<Agent, JournalError> {
    if creates { Agent::open(store) } else { Agent::open_existing(store) }
}

fn done(
    store: &Path,
    (word, register, creates): (&str, Register, bool),
    lines: &str,
) -> Result<String, JournalError> {
    let mut journal = open(store, creates)?;
    let (since, mut answer) = (Timestamp::now() - KEPT, String::new());
    match word {
        "append" => fencing(lines).iter().try_for_each(|fencing| journal.append_fencing(fencing))?,
        "note" => journal.note_published(register, &lines.lines().map(str::to_owned).collect::<Vec<_>>())?,
        "lacks" if journal.is_published(register, lines)? => answer.push_str("published\n"),
        "check" => journal.check_writable()?,
        _ => {}
    }
    let mut tell = |what: &str, all: Vec<Fencing>| {
        answer.extend(all.iter().map(|fencing| format!("{what} {}\n", line(fencing))));
    };
    if word != "note" && register != Register::None {
        // The register drops older ones: their end could not be seen there. What was appended is safe whatever can be read beside it.
        let lacking = journal.unpublished(since).map(|found| found.sound);
        tell("lacking", if word == "check" { lacking? } else { lacking.unwrap_or_default() });
    }
    if word == "check" && register != Register::None {
        tell("stood", journal.unsettled(register, since)?.sound);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use journal::{Journal, Role, Taken};

    use super::*;

    fn asked(store: &Path, request: Request<'_>) -> Answer {
        let text = done(store, (request.word(), Register::Attrd, true), &request.written()).unwrap();
        read(text.as_bytes())
    }

    /// A quick alerter has its mark acknowledged before the agent has its turn. The broken variant takes the end for a publication by
    /// another call, and the register never hears of the fencing.
    #[test]
    fn what_has_ended_before_its_turn_is_published_and_what_another_call_has_published_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("state/marks.db");
        let [ended, waiting] = ["compute1", "compute2"].map(|host| samples::fencing(host, Timestamp::now()));
        let lacks = |of: &Fencing| asked(&store, Request::Lacks(of.id)).others_than(of.id);
        for fencing in [&ended, &waiting] {
            asked(&store, Request::Append(fencing));
        }
        let (mark, mut journal) = (samples::mark(&ended), Journal::open(&store, Role::Alerter).unwrap());
        journal.make_mark(&mark, Taken::Fencing(&ended), &[], None, Timestamp::now()).unwrap();
        assert!(journal.dismiss(mark.id, "acknowledged", "a test", Timestamp::now()).unwrap());
        assert_eq!(lacks(&ended), Some(vec![waiting.clone()]));
        asked(&store, Request::Note(&[Key::Fencing(ended.id).to_string()]));
        assert_eq!((lacks(&ended), lacks(&waiting)), (None, Some(Vec::new())));
        asked(&store, Request::Note(&[Key::Fencing(waiting.id).to_string()]));
        let checked = asked(&store, Request::Check);
        assert_eq!((checked.lacking, checked.stood), (vec![], vec![waiting]));
    }

    /// What is beside it cannot be read. The broken variant says that the fencing is not in the journal, and the agent fails though it is.
    #[test]
    fn what_was_appended_is_safe_whatever_is_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("state/marks.db");
        let [first, second] = ["compute1", "compute2"].map(|host| samples::fencing(host, Timestamp::now()));
        asked(&store, Request::Append(&first));
        asked(&store, Request::Note(&[Key::Fencing(first.id).to_string()]));
        let damage = "UPDATE published SET register = CAST(x'ff' AS TEXT)";
        rusqlite::Connection::open(&store).unwrap().execute(damage, []).unwrap();
        assert_eq!(asked(&store, Request::Append(&second)), Answer::default());
        assert!(done(&store, ("check", Register::Attrd, true), "").is_err(), "it cannot be read");
    }
}
