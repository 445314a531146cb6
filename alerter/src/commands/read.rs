//! `list`, `show` and `history`: they read journal and register, also without a daemon.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use marks::host::HostName;
use marks::id::MarkId;
use marks::journal::{HistoryFilter, Journal, JournalError, Rows};
use marks::time::Timestamp;

use super::merged::{self, Found, Look};
use super::origin::{self, Record, Witnesses};
use super::report::{self, MarkReport, Story, report};
use super::{Sources, print_json, println_all, reader, say, text};
use crate::cli::{self, Cli};

/// How many settled marks `list --all` shows at the most.
const RECENT: u32 = 1000;

pub(super) fn list(cli: &Cli, options: &cli::List) -> anyhow::Result<ExitCode> {
    let sources = Sources::open(cli)?;
    let (journal, look) = (sources.journal.as_ref(), &sources.look);
    let reports = if options.all {
        all(journal, look)?
    } else {
        report::unfinished(journal, sound(journal.map(Journal::unfinished_marks).transpose()?), look)?
    };
    if cli.json {
        print_json(&reports)?;
        return Ok(ExitCode::SUCCESS);
    }
    let unfolded = sound(journal.map(Journal::unfolded_fencings).transpose()?);
    let new = merged::unmarked(journal, unfolded, look, &sources.controller, Timestamp::now())?;
    let waiting = new.here.iter().map(|fencing| text::new_fencing(fencing, "waits for the daemon"));
    let unmarked =
        new.elsewhere.iter().map(|fencing| text::new_fencing(fencing, "in the register, not marked"));
    let rows: Vec<_> = reports.iter().map(text::line).chain(waiting).chain(unmarked).collect();
    println_all(&text::listing(rows, look.view()));
    Ok(ExitCode::SUCCESS)
}

/// The newest marks, settled ones too.
fn all(journal: Option<&Journal>, look: &Look) -> anyhow::Result<Vec<MarkReport>> {
    let rows = sound(journal.map(|journal| journal.recent_marks(RECENT)).transpose()?);
    let found = merged::marks(journal, rows, look, |_| true)?;
    Ok(found.iter().map(|found| report(journal, look, found)).collect::<Result<_, _>>()?)
}

pub(super) fn show(cli: &Cli, options: &cli::Target) -> anyhow::Result<ExitCode> {
    let sources = Sources::open(cli)?;
    let found = find(&sources, &options.target)?;
    let stories: Vec<Story> = found.iter().map(|found| story(&sources, found)).collect::<Result<_, _>>()?;
    if stories.is_empty() {
        bail!(
            "there is no mark of {} in this journal{}: see `nova-host-alerter list --all`",
            options.target.escape_default(),
            sources.look.entries().map_or("", |_| " or in the register")
        );
    }
    if cli.json {
        print_json(&stories)?;
    } else {
        println_all(&stories.iter().map(text::story).collect::<Vec<_>>().join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

fn find(sources: &Sources, target: &str) -> anyhow::Result<Vec<Found>> {
    let (journal, look) = (sources.journal.as_ref(), &sources.look);
    if let Ok(id) = MarkId::parse(target) {
        let row = journal.map(|journal| journal.mark(id)).transpose()?.flatten();
        return Ok(merged::marks(journal, row.into_iter().collect(), look, |mark| mark.id == id)?);
    }
    let host = HostName::parse(target).context("neither a host name nor a mark's id")?;
    let rows = sound(journal.map(|journal| journal.marks_of(&host)).transpose()?);
    Ok(merged::marks(journal, rows, look, |mark| mark.node == host)?)
}

fn story(sources: &Sources, found: &Found) -> Result<Story, JournalError> {
    let (journal, look, mark) = (sources.journal.as_ref(), &sources.look, found.mark.id);
    let witnesses = match journal.filter(|_| found.in_journal) {
        Some(journal) => witnesses(journal, mark)?,
        None => Witnesses::of_register(look, mark),
    };
    let filter = HistoryFilter { mark: Some(mark), ..HistoryFilter::default() };
    let history = journal.map(|journal| journal.history(&filter)).transpose()?;
    let path = sources.path.display().to_string();
    Ok(Story {
        report: report(journal, look, found)?,
        came_from: origin::came_from(found, &witnesses, &sources.controller),
        kept_in: origin::kept_in(found, &witnesses.records, look, (&sources.controller, &path)),
        vouched: origin::standing(found),
        fencings: witnesses.records.into_iter().map(|record| record.fencing).collect(),
        history: history.map_or_else(Vec::new, |rows| rows.sound),
    })
}

fn witnesses(journal: &Journal, mark: MarkId) -> Result<Witnesses, JournalError> {
    let mut records = Vec::new();
    for fencing in journal.fencings_of(mark)?.sound {
        let imported = journal.is_imported(fencing.id)?;
        records.push(Record { fencing, imported });
    }
    let sightings = journal.sightings_of(mark)?.sound;
    Ok(Witnesses { records, sightings, decisions: journal.decisions_of(mark)?.sound })
}

pub(super) fn history(cli: &Cli, options: &cli::History) -> anyhow::Result<ExitCode> {
    let node = options.host.as_deref().map(HostName::parse).transpose()?;
    let rows =
        sound(Some(reader(cli)?.history(&HistoryFilter { node, mark: None, limit: options.limit })?));
    if cli.json {
        print_json(&rows)?;
    } else {
        let line = |h: &marks::journal::HistoryRow| {
            vec![
                text::time(h.at),
                h.event.clone(),
                h.node.clone().unwrap_or_default(),
                h.detail.clone(),
                h.actor.clone(),
            ]
        };
        println_all(&text::table(&rows.iter().map(line).collect::<Vec<_>>()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The sound rows; says which are not.
pub(super) fn sound<T>(rows: Option<Rows<T>>) -> Vec<T> {
    let Some(rows) = rows else { return Vec::new() };
    warn_of_damage(&rows);
    rows.sound
}

fn warn_of_damage<T>(rows: &Rows<T>) {
    for damage in &rows.damaged {
        let sentence = format!(
            "nova-host-alerter: the {} row {} is damaged; it is not sent and not dropped\n",
            damage.table, damage.key
        );
        say(&sentence, &mut std::io::stderr());
    }
}
