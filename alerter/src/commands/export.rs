//! `history export` and `report`: the history for other programs, and as a page. They read while the daemon writes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use journal::{Damage, HistoryRow, Journal};
use marks::time::Timestamp;
use site::is_hidden;

use super::answer::{self, Usage, say};
use super::progress::Progress;
use super::sources::{controller, reader};
use crate::cli::{self, Cli, Format};
use crate::surface::markup::sent;
use crate::surface::report::{self, Numbers};
use crate::surface::timeline::Timeline;

/// The fields of a row, in the order of CSV; JSON has the same.
const COLUMNS: [&str; 9] = ["seq", "at", "event", "mark", "host", "route", "outcome", "detail", "actor"];

/// A header and a record for each row.
pub(super) fn records(rows: &[HistoryRow]) -> Vec<Vec<String>> {
    answer::records(&COLUMNS, rows)
}

fn header() -> Vec<String> {
    COLUMNS.map(str::to_owned).to_vec()
}

/// One line of JSON. What a terminal would not show is escaped, which JSON knows how to read.
fn json(row: &HistoryRow) -> io::Result<String> {
    let text = serde_json::to_string(row)?;
    // A character above U+FFFF is two escapes (RFC 8259, section 7).
    let escape = |c: char| -> String {
        c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    };
    let show = |c: char| if is_hidden(c) { escape(c) } else { c.to_string() };
    Ok(text.chars().map(show).collect::<String>() + "\n")
}

fn csv(record: Vec<String>) -> io::Result<String> {
    answer::csv(&[record]).map_err(io::Error::other)
}

/// What is exported, to where, and what came of it.
struct Exporter<W: Write> {
    out: W,
    format: Format,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    rows: u64,
    damaged: u64,
    /// The number of the last row that was read.
    last: i64,
}

impl<W: Write> Exporter<W> {
    fn begin(&mut self) -> io::Result<()> {
        match self.format {
            Format::Csv => self.out.write_all(csv(header())?.as_bytes()),
            Format::Jsonl => Ok(()),
        }
    }

    /// A damaged row is named, and not exported.
    fn take(&mut self, seq: i64, row: Result<HistoryRow, Damage>) -> io::Result<()> {
        self.last = seq;
        match row {
            Ok(row) if self.is_wanted(row.at) => {
                self.rows += 1;
                let text = if self.format == Format::Csv {
                    csv(answer::record(&COLUMNS, &row))?
                } else {
                    json(&row)?
                };
                self.out.write_all(text.as_bytes())
            }
            Ok(_) => Ok(()),
            Err(damage) => {
                self.damaged += 1;
                let key = damage.key;
                note(&format!("the history row {key} is damaged, and is not exported"));
                Ok(())
            }
        }
    }

    fn is_wanted(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }

    /// Everything that was there when it began: a journal that is written all the time has no end.
    fn run(&mut self, journal: &Journal, mut progress: Option<Progress>) -> anyhow::Result<()> {
        let newest = journal.newest_history()?;
        let mut fault = self.begin().err();
        journal.each_history(self.last, |seq, row| {
            if seq > newest || fault.is_some() {
                return ControlFlow::Break(());
            }
            fault = self.take(seq, row).err();
            if let Some(progress) = &mut progress {
                progress.at(self.rows);
            }
            ControlFlow::Continue(())
        })?;
        drop(progress);
        fault.map_or(Ok(()), Err).context("the export cannot be written")
    }
}

pub(super) fn export(cli: &Cli, options: &cli::Export) -> anyhow::Result<ExitCode> {
    let journal = reader(cli)?;
    let mut exporter = Exporter {
        out: Out::open(options.output.as_deref())?,
        format: options.format,
        since: options.since,
        until: options.until,
        rows: 0,
        damaged: 0,
        last: options.after,
    };
    // Rows that go to a terminal themselves are progress enough.
    let is_seen = options.output.is_none() && io::stdout().is_terminal();
    let progress = (!is_seen).then(|| Progress::of("rows exported", None));
    match exporter.run(&journal, progress).and_then(|()| exporter.out.finish()) {
        Err(error) if is_gone(&error) && options.output.is_none() => return Ok(ExitCode::SUCCESS),
        done => done?,
    }
    let Exporter { rows, damaged, last, .. } = exporter;
    note(&format!("{rows} rows exported: export later rows with `--after {last}`"));
    if damaged == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    note(&format!("{damaged} rows are damaged and are not exported: keep the journal, and check its disk"));
    Ok(ExitCode::FAILURE)
}

/// A reader that went away (`| head`) is no fault.
fn is_gone(error: &anyhow::Error) -> bool {
    let is_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(is_pipe)
}

fn note(sentence: &str) {
    say(&format!("nova-host-alerter: {sentence}\n"), &mut io::stderr());
}

pub(super) fn report(cli: &Cli, options: &cli::Report) -> anyhow::Result<ExitCode> {
    let (from, to) = (options.since, options.until.unwrap_or_else(Timestamp::now));
    anyhow::ensure!(from < to, Usage("--since must be before --until".to_owned()));
    let (journal, mut progress) = (reader(cli)?, Progress::of("rows read", None));
    let facts = report::read::read(&journal, from, to, |rows| progress.at(rows))?;
    drop(progress);
    let numbers = Numbers::of(&facts, from, to);
    let text = match answer::for_programs(cli, &numbers)? {
        Some(answer) => answer + "\n",
        None => {
            let drawn = Timeline::of(&report::episodes(&facts), from, to);
            sent(report::page(&numbers, &controller(), &drawn))
        }
    };
    let mut out = Out::open(options.output.as_deref())?;
    match out.write_all(text.as_bytes()).context("the report cannot be written").and_then(|()| out.finish()) {
        Err(error) if is_gone(&error) && options.output.is_none() => {}
        done => done?,
    }
    if numbers.damaged > 0 {
        note(&format!("{} damaged rows are not counted in it", numbers.damaged));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where it goes: stdout, or a file that is put in place when it is whole.
enum Out {
    Stdout(BufWriter<io::Stdout>),
    Draft { file: BufWriter<File>, draft: PathBuf, target: PathBuf, is_done: bool },
}

impl Out {
    fn open(target: Option<&Path>) -> anyhow::Result<Self> {
        let Some(target) = target else { return Ok(Self::Stdout(BufWriter::new(io::stdout()))) };
        let name = target.file_name().context("--output needs a file name")?.to_string_lossy().into_owned();
        let draft = target.with_file_name(format!(".{name}.{}.new", std::process::id()));
        let failure = || format!("{} cannot be written", target.display());
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).with_context(failure)?;
        let (file, target) = (BufWriter::new(file), target.to_owned());
        Ok(Self::Draft { file, draft, target, is_done: false })
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(out) => Ok(out.flush().context("it cannot be written")?),
            Self::Draft { file, draft, target, is_done } => {
                let failure = || format!("{} cannot be written", target.display());
                file.flush().and_then(|()| file.get_ref().sync_all()).with_context(failure)?;
                fs::rename(&*draft, &*target).with_context(failure)?;
                *is_done = true;
                Ok(())
            }
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Draft { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Draft { file, .. } => file.flush(),
        }
    }
}

/// Half of a file is none.
impl Drop for Out {
    fn drop(&mut self) {
        if let Self::Draft { draft, is_done: false, .. } = self {
            let _nobody_can_help = fs::remove_file(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(detail: &str) -> HistoryRow {
        HistoryRow {
            seq: 7,
            at: Timestamp(1_800_000_000_000),
            event: "retry".into(),
            mark: None,
            node: Some("compute1".into()),
            route: None,
            outcome: None,
            detail: detail.into(),
            actor: "alice (uid 0)".into(),
        }
    }

    fn exporter(format: Format) -> Exporter<Vec<u8>> {
        Exporter { out: Vec::new(), format, since: None, until: None, rows: 0, damaged: 0, last: 0 }
    }

    fn exported(format: Format, detail: &str) -> String {
        let mut exporter = exporter(format);
        exporter.begin().unwrap();
        exporter.take(7, Ok(row(detail))).unwrap();
        String::from_utf8(exporter.out).unwrap()
    }

    /// RFC 4180, sections 2.1 to 2.7.
    #[test]
    fn csv_has_a_header_and_quotes_what_it_must() {
        let of = |detail: &str| {
            let text = exported(Format::Csv, detail);
            let line =
                text.strip_prefix(&csv(header()).unwrap()).unwrap().strip_suffix("\r\n").unwrap().to_owned();
            line.strip_prefix("7,2027-01-15T08:00:00.000Z,retry,,compute1,,,").unwrap().to_owned()
        };
        assert_eq!(of("plain"), "plain,alice (uid 0)");
        assert_eq!(of("a,\"b\""), "\"a,\"\"b\"\"\",alice (uid 0)");
        assert_eq!(of("=1+1"), "=1+1,alice (uid 0)", "what was written is what is read");
        assert_eq!(of("a\r\n\u{1b}[31m\u{202e}"), "a\\u{d}\\u{a}\\u{1b}[31m\\u{202e},alice (uid 0)");
    }

    /// The broken variant writes U+E0041 as five digits, of which a reader of JSON takes four.
    #[test]
    fn a_line_of_json_is_one_line_and_shows_everything() {
        let nasty = "a\n\u{1b}\u{9b}\u{202e}\u{e0041}\"";
        let line = exported(Format::Jsonl, nasty);
        assert!(line.ends_with('\n') && !line.trim_end().chars().any(is_hidden), "{line:?}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((read["detail"].as_str(), read["seq"].as_i64()), (Some(nasty), Some(7)));
        assert_eq!((read["at"].as_str(), read["mark"].is_null()), (Some("2027-01-15T08:00:00.000Z"), true));
    }

    /// The broken variant drops it without a word.
    #[test]
    fn a_damaged_row_is_counted_and_a_row_of_another_time_is_not() {
        let mut exporter = exporter(Format::Csv);
        (exporter.since, exporter.until) = (Some(Timestamp(10)), Some(Timestamp(20)));
        for (seq, at) in [(1, 9), (2, 10), (3, 19), (4, 20)] {
            exporter.take(seq, Ok(HistoryRow { at: Timestamp(at), ..row("x") })).unwrap();
        }
        exporter.take(5, Err(Damage { table: "history", key: "5".into() })).unwrap();
        assert_eq!((exporter.rows, exporter.damaged, exporter.last), (2, 1, 5));
    }

    #[test]
    fn a_file_is_its_owners_and_comes_whole_or_not_at_all() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x.csv");
        fs::write(&target, "old").unwrap();
        let open = || {
            let mut out = Out::open(Some(&target)).unwrap();
            out.write_all(b"new").unwrap();
            out
        };
        drop(open());
        assert_eq!(fs::read_to_string(&target).unwrap(), "old", "the broken variant ends before it is whole");
        open().finish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }
}
