//! `show` and `history`, and the marks of `list`: they read journal and register, also without a daemon.

use std::process::ExitCode;

use anyhow::bail;
use journal::{Done, HistoryFilter, HistoryRow, Journal, Rows};
use marks::host::HostName;
use marks::id::MarkId;
use marks::time::Timestamp;

use super::answer::{Usage, print, say};
use super::filter::Filter;
use super::merged::{self, Found};
use super::report::{self, MarkReport, Story};
use super::sources::{Sources, reader};
use super::{gone, terminal, text};
use crate::cli::{self, Cli};
use crate::outage::Outage;

/// At most so many marks are read where only some of the settled ones are wanted.
const MOST_READ: u32 = 1_000_000;
/// So many times more marks are read where too few are found.
const FURTHER: u32 = 8;
/// So many lines of the history are in memory at once where only some are wanted.
const PAGE: u32 = 1000;

/// What is shown, and whether there is more of it.
pub(super) struct Cut<T> {
    pub(super) shown: Vec<T>,
    pub(super) is_cut: bool,
}

pub(super) fn cut(count: usize, which: &str) -> String {
    format!("nova-host-alerter: only the {which} {count} are shown: more with --limit, 0 is all\n")
}

/// The wanted marks, oldest first: what is unfinished, from the oldest on, or also what is settled, the newest.
pub(super) fn reports(
    sources: &Sources,
    filter: &Filter,
    with_settled: bool,
    limit: u32,
) -> anyhow::Result<Cut<MarkReport>> {
    if with_settled {
        return newest(sources, filter, limit);
    }
    let records = sources.records();
    let rows = sound(records.here(Journal::unfinished_marks)?);
    let mut found = report::maybe_unfinished(records, rows)?;
    found.retain(|found| filter.takes(&found.mark.node, found.mark.failure_time));
    let is_wanted = |report: &MarkReport| report.is_unfinished() && filter.takes_report(report);
    Ok(first(&found, limit, |found| Ok(Some(sources.report(found)?).filter(is_wanted)))?)
}

/// As many as are wanted are mostly among the newest: only where they are not, more are read.
fn newest(sources: &Sources, filter: &Filter, limit: u32) -> anyhow::Result<Cut<MarkReport>> {
    let records = sources.records();
    let mut most = if limit == 0 { MOST_READ } else { limit.saturating_add(1).min(MOST_READ) };
    loop {
        let rows = records.here(|journal| journal.recent_marks(most))?;
        let is_all = most >= MOST_READ || rows.count() < most as usize;
        let rows = if is_all { sound(rows) } else { rows.sound };
        // What others know of older ones comes behind rows that were not read yet.
        let oldest = rows.iter().map(|row| row.id).min().filter(|_| !is_all);
        let mut found = records.marks(rows, |mark| oldest.is_none_or(|oldest| mark.id >= oldest))?;
        found.retain(|found| filter.takes(&found.mark.node, found.mark.failure_time));
        found.reverse();
        let is_wanted = |report: &MarkReport| filter.takes_report(report);
        let mut some = first(&found, limit, |found| Ok(Some(sources.report(found)?).filter(is_wanted)))?;
        if is_all || some.is_cut {
            some.shown.reverse();
            return Ok(some);
        }
        most = most.saturating_mul(FURTHER).min(MOST_READ);
    }
}

/// The first `limit` of what comes of these; no more is read than that needs.
fn first<T, U>(all: &[T], limit: u32, mut make: impl FnMut(&T) -> Done<Option<U>>) -> Done<Cut<U>> {
    let limit = if limit == 0 { usize::MAX } else { limit as usize };
    let mut shown = Vec::new();
    for one in all {
        let Some(made) = make(one)? else { continue };
        if shown.len() == limit {
            return Ok(Cut { shown, is_cut: true });
        }
        shown.push(made);
    }
    Ok(Cut { shown, is_cut: false })
}

pub(super) fn show(cli: &Cli, options: &cli::Show) -> anyhow::Result<ExitCode> {
    let sources = Sources::open(cli)?;
    let mut found = find(&sources, &options.target)?;
    if found.is_empty() {
        bail!(nothing(&sources, &options.target));
    }
    found.reverse();
    let told = |found: &Found| Ok(Some(story(&sources, found, sources.report(found)?)?));
    let Cut { shown: mut stories, is_cut } = first(&found, options.limit, told)?;
    stories.reverse();
    if is_cut {
        say(&cut(stories.len(), "newest"), &mut std::io::stderr());
    }
    let now = Timestamp::now();
    print(cli, &stories, || {
        stories.iter().map(|story| text::story(story, now)).collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn nothing(sources: &Sources, target: &str) -> String {
    format!(
        "there is no mark of {} in this journal{}: see `nova-host-alerter list --all`",
        target.escape_default(),
        sources.register.entries().map_or("", |_| " or in the register"),
    )
}

fn find(sources: &Sources, target: &str) -> anyhow::Result<Vec<Found>> {
    let records = sources.records();
    if let Ok(id) = MarkId::parse(target) {
        let row = records.here(|journal| journal.mark(id))?;
        return Ok(records.marks(row.into_iter().collect(), |mark| mark.id == id)?);
    }
    let host = HostName::parse(target)
        .map_err(|_| Usage(format!("{} is neither a host name nor a mark's id", target.escape_default())))?;
    let rows = sound(records.here(|journal| journal.marks_of(&host))?);
    Ok(records.marks(rows, |mark| mark.node == host)?)
}

fn story(sources: &Sources, found: &Found, report: MarkReport) -> Done<Story> {
    let (records, mark) = (sources.records(), found.mark.id);
    let (fencings, sightings) = match records.journal.filter(|_| found.in_journal) {
        Some(journal) => (journal.fencings_of(mark)?.sound, journal.sightings_of(mark)?.sound),
        None => (records.register.first_fencing(mark).cloned().into_iter().collect(), Vec::new()),
    };
    let filter = HistoryFilter { mark: Some(mark), ..HistoryFilter::default() };
    let history = records.here(|journal| journal.history(&filter))?.sound;
    let outage = Outage {
        mark: &report.kept.mark,
        fencings: &fencings,
        sightings: &sightings,
        history: &history,
        deliveries: &report.kept.deliveries,
    };
    let timeline = outage.timeline();
    Ok(Story { timeline, vouched: merged::vouched(found), fencings, history, report })
}

/// The filter with the host that stands by itself.
pub(super) fn asked(options: &cli::History) -> Result<cli::Filter, Usage> {
    let mut asked = options.filter.clone();
    if let Some(host) = &options.host {
        HostName::parse(host).map_err(|why| Usage(why.to_string()))?;
        if let Some(instead) = gone::of(host) {
            return Err(Usage(format!("there is no `history {host}`: {instead}")));
        }
        asked.hosts.push(host.clone());
    }
    Ok(asked)
}

pub(super) fn history(cli: &Cli, options: &cli::History) -> anyhow::Result<ExitCode> {
    let rows = lines(cli, &asked(options)?, options.limit)?;
    let usual = |row: &HistoryRow| {
        let host = row.node.clone().unwrap_or_default();
        vec![text::time(row.at), row.event.clone(), host, terminal::clean(&row.detail), row.actor.clone()]
    };
    let columns = terminal::Style::of_stdout().columns;
    print(cli, &rows, || text::fitted(&rows.iter().map(usual).collect::<Vec<_>>(), columns))?;
    Ok(ExitCode::SUCCESS)
}

/// The newest lines that are wanted, oldest first.
fn lines(cli: &Cli, asked: &cli::Filter, limit: u32) -> anyhow::Result<Vec<HistoryRow>> {
    let journal = reader(cli)?;
    let filter = Filter::read(asked)?;
    if filter.is_empty() {
        return Ok(sound(journal.history(&HistoryFilter { limit, ..HistoryFilter::default() })?));
    }
    let limit = if limit == 0 { usize::MAX } else { limit as usize };
    let (mut wanted, mut before) = (Vec::new(), None);
    loop {
        let page = journal.history_before(before, PAGE)?;
        warn_of_damage(&page.rows);
        for row in page.rows.sound {
            if wanted.len() == limit {
                break;
            }
            if filter.takes_line(row.node.as_deref(), row.at) {
                wanted.push(row);
            }
        }
        before = page.older;
        if before.is_none() || wanted.len() == limit {
            wanted.reverse();
            return Ok(wanted);
        }
    }
}

/// The sound rows; says which are not.
pub(super) fn sound<T>(rows: Rows<T>) -> Vec<T> {
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
