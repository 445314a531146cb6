//! `list`, `show` and `history`: they read the journal, also without a daemon.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use marks::host::HostName;
use marks::id::MarkId;
use marks::journal::{HistoryFilter, Journal, JournalError, MarkRow, Rows};

use super::report::{MarkReport, Story, VIEW, report};
use super::{print_json, println_all, reader, say, text};
use crate::cli::{self, Cli};

/// How many settled marks `list --all` shows at the most.
const RECENT: u32 = 1000;

pub(super) fn list(cli: &Cli, options: &cli::List) -> anyhow::Result<ExitCode> {
    let journal = reader(cli)?;
    let rows = if options.all { journal.recent_marks(RECENT)? } else { journal.open_marks()? };
    warn_of_damage(&rows);
    let reports: Vec<MarkReport> =
        rows.sound.into_iter().map(|mark| report(&journal, mark)).collect::<Result<_, _>>()?;
    if cli.json {
        print_json(&reports)?;
        return Ok(ExitCode::SUCCESS);
    }
    let new = journal.unfolded_fencings()?;
    warn_of_damage(&new);
    let rows: Vec<_> =
        reports.iter().map(text::line).chain(new.sound.iter().map(text::new_fencing)).collect();
    if rows.is_empty() {
        println_all(&format!("no open marks ({VIEW})"));
    } else {
        println_all(&text::table(&[vec![text::heading()], rows].concat()));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(cli: &Cli, options: &cli::Target) -> anyhow::Result<ExitCode> {
    let journal = reader(cli)?;
    let marks = find(&journal, &options.target)?;
    let stories: Vec<Story> =
        marks.into_iter().map(|mark| story(&journal, mark)).collect::<Result<_, _>>()?;
    if stories.is_empty() {
        bail!(
            "there is no mark of {} in this journal: see `nova-host-alerter list --all`",
            options.target.escape_default()
        );
    }
    if cli.json {
        print_json(&stories)?;
    } else {
        println_all(&stories.iter().map(text::story).collect::<Vec<_>>().join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

fn find(journal: &Journal, target: &str) -> anyhow::Result<Vec<MarkRow>> {
    if let Ok(id) = MarkId::parse(target) {
        return Ok(journal.mark(id)?.into_iter().collect());
    }
    let host = HostName::parse(target).context("neither a host name nor a mark's id")?;
    let rows = journal.marks_of(&host)?;
    warn_of_damage(&rows);
    Ok(rows.sound)
}

fn story(journal: &Journal, mark: MarkRow) -> Result<Story, JournalError> {
    let fencings = journal.fencings_of(mark.id)?.sound;
    let history = journal.history(&HistoryFilter { mark: Some(mark.id), ..HistoryFilter::default() })?.sound;
    Ok(Story { report: report(journal, mark)?, fencings, history })
}

pub(super) fn history(cli: &Cli, options: &cli::History) -> anyhow::Result<ExitCode> {
    let node = options.host.as_deref().map(HostName::parse).transpose()?;
    let rows = reader(cli)?.history(&HistoryFilter { node, mark: None, limit: options.limit })?;
    warn_of_damage(&rows);
    let rows = rows.sound;
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

fn warn_of_damage<T>(rows: &Rows<T>) {
    for damage in &rows.damaged {
        let sentence = format!(
            "nova-host-alerter: the {} row {} is damaged; it is not sent and not dropped\n",
            damage.table, damage.key
        );
        say(&sentence, &mut std::io::stderr());
    }
}
