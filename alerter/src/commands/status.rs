//! `status`: whether the daemon works, and the state of the routes. Also the OCF agent's monitor.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use journal::{Journal, JournalError, Lock, Role};

use super::answer::{NOT_NOW, print, println_all};
use super::aside;
use super::overview::{self, Status};
use super::screen;
use super::sources::{holder, journal_path, site, wait_for};
use super::terminal::{Style, clean};
use crate::cli::{self, Cli};
use crate::config::control_socket;
use crate::control::api::Health;
use crate::control::client::{self, ClientError};
use crate::problem::{Kind, Level, Limits};

/// "Not on this controller": Pacemaker moves the resource at once.
const OCF_ERR_INSTALLED: u8 = 5;
const OCF_NOT_RUNNING: u8 = 7;
const OCF_DEGRADED: u8 = 190;
/// What may be left of the resource agent's second when no daemon has answered.
const SPARE: Duration = Duration::from_millis(700);

/// Exits as an OCF monitor does. Neither the configuration nor an endpoint can make it fail, nor a daemon that stalls for less
/// than `patience`: the resource agent derives that from the time limit of its operation. Only where no daemon answers is the journal's
/// disk touched, by another process.
pub(super) fn ocf(cli: &Cli, patience: Duration) -> anyhow::Result<ExitCode> {
    let journal = journal_path(cli);
    let (end, daemon) =
        (Instant::now() + patience, client::Daemon::patient(&control_socket(&journal), "", patience));
    let (sentence, code) = if aside::is_one() {
        unanswered(&journal)
    } else {
        match wait_for(daemon.get::<Health>("/v1/health"))? {
            Ok(health) if health.journal == journal => answered(&health),
            Err(ClientError::Refused { message, .. }) => {
                (format!("the daemon refuses to say its state: {message}"), ExitCode::FAILURE)
            }
            // None answers, or one with another journal.
            _ => match aside::run(cli, Some(end + SPARE))? {
                Some(code) => return Ok(code),
                None => (JournalError::Hung { path: journal }.to_string(), ExitCode::from(NOT_NOW)),
            },
        }
    };
    println_all(&sentence);
    Ok(code)
}

/// What the daemon of this journal says of itself.
fn answered(health: &Health) -> (String, ExitCode) {
    match (health.healthy, health.degraded) {
        _ if health.better_elsewhere => (health.reasons.join("; "), ExitCode::from(OCF_ERR_INSTALLED)),
        (false, _) => (health.reasons.join("; "), ExitCode::FAILURE),
        (true, true) => (health.reasons.join("; "), ExitCode::from(OCF_DEGRADED)),
        (true, false) => ("the daemon works".to_owned(), ExitCode::SUCCESS),
    }
}

/// Pacemaker keeps 128 characters: the cause comes first, and no advice to start what runs.
fn unanswered(journal: &Path) -> (String, ExitCode) {
    match Lock::holder(journal) {
        Err(error) => (error.to_string(), ExitCode::FAILURE),
        Ok(None) => (not_running(journal), ExitCode::from(OCF_NOT_RUNNING)),
        Ok(Some(holder)) => {
            (format!("the daemon does not answer (process {})", holder.pid), ExitCode::FAILURE)
        }
    }
}

/// The process that holds the journal. The OCF agent reads no configuration, and asks for it before it starts or stops.
pub(super) fn process(cli: &Cli) -> anyhow::Result<ExitCode> {
    let holder = holder(cli, &journal_path(cli))?;
    println_all(&holder.as_ref().map(ToString::to_string).unwrap_or_default());
    Ok(holder.map_or(ExitCode::from(OCF_NOT_RUNNING), |_| ExitCode::SUCCESS))
}

/// With the reason where that is the journal: else only the system log would have it, and not Pacemaker.
fn not_running(journal: &Path) -> String {
    let said = "the daemon does not run";
    match Journal::open(journal, Role::Reader) {
        Ok(_) | Err(JournalError::Missing { .. }) => said.to_owned(),
        Err(error) => format!("{said}: {error}"),
    }
}

pub(super) fn show(cli: &Cli) -> anyhow::Result<ExitCode> {
    // For its warnings: what cannot be read of the configuration may be the journal's place.
    site(cli);
    let daemon = wait_for(overview::ask(cli))?;
    let status = overview::take(cli, daemon, Limits::default());
    print(cli, &status, || screen::drawn(&status, Style::of_stdout()))?;
    Ok(if status.running { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The line is shorter than this: monitoring systems cut longer ones.
const LONGEST: usize = 250;
/// The exit code of a plugin that does not know.
const UNKNOWN: u8 = 3;

pub(super) fn check(cli: &Cli, options: &cli::Status) -> anyhow::Result<ExitCode> {
    let limits = Limits {
        warning: Duration::from_secs(options.warning),
        critical: Duration::from_secs(options.critical),
    };
    let daemon = wait_for(overview::ask(cli))?;
    let status = overview::take(cli, daemon, limits);
    print(cli, &status, || line(&status, limits))?;
    Ok(ExitCode::from(code(&status)))
}

/// Unknown where the journal cannot be read and nothing else is known to be wrong.
fn code(status: &Status) -> u8 {
    let is_only_unread =
        status.problems.iter().all(|one| one.kind == Kind::Journal || one.level < Level::Critical);
    match status.level {
        _ if status.is_refused => UNKNOWN,
        Some(Level::Critical) if status.unknown.is_some() && is_only_unread => UNKNOWN,
        Some(Level::Critical) => 2,
        Some(Level::Warning) => 1,
        Some(Level::Ok) => 0,
        None => UNKNOWN,
    }
}

fn word(code: u8) -> &'static str {
    match code {
        0 => "OK",
        1 => "WARNING",
        2 => "CRITICAL",
        _ => "UNKNOWN",
    }
}

/// The bar separates the sentence from the figures, and may stand nowhere else.
fn line(status: &Status, limits: Limits) -> String {
    let problems = if status.is_refused { &[] } else { status.problems.as_slice() };
    let (sentence, more) = match problems {
        [] => (status.headline.clone(), String::new()),
        [one] => (format!("{} -> {}", one.what, one.then), String::new()),
        [one, more @ ..] => (one.what.clone(), format!(" (and {} more)", more.len())),
    };
    let sentence = clean(&sentence).replace('|', "/");
    let (word, figures) = (word(code(status)), figures(status, limits));
    let room = LONGEST.saturating_sub(word.len() + figures.len() + more.len() + ":  | ".len() + 1);
    format!("{word}: {}{more} | {figures}", cut(&sentence, room))
}

/// The beginning of a sentence, in so many bytes.
fn cut(sentence: &str, room: usize) -> String {
    if sentence.len() <= room {
        return sentence.to_owned();
    }
    let mut left = room.saturating_sub('…'.len_utf8());
    let fits = |c: &char| {
        let is_in = c.len_utf8() <= left;
        left = left.saturating_sub(c.len_utf8());
        is_in
    };
    sentence.chars().take_while(fits).collect::<String>() + "…"
}

/// `label=value[unit];warning;critical;minimum`.
fn figures(status: &Status, limits: Limits) -> String {
    let routes = status.daemon.iter().flat_map(|daemon| &daemon.routes);
    let failing = routes.filter(|route| route.failing_since.is_some()).count();
    let (warning, critical) = (limits.warning.as_secs(), limits.critical.as_secs());
    // What could not be read is U, as the guidelines have it: a zero would draw a quiet night.
    let of = |value: String| if status.unknown.is_some() { "U".to_owned() } else { value };
    format!(
        "open={};;;0 held={};;;0 oldest={};{warning};{critical};0 routes_failing={failing};;;0 damaged={};;;0 without_route={};;;0",
        of(status.open.to_string()),
        of(status.held.to_string()),
        of(format!("{}s", status.oldest_seconds.unwrap_or(0))),
        of(status.damaged.to_string()),
        of(status.without_route.unwrap_or(0).to_string())
    )
}

#[cfg(test)]
mod tests {
    use crate::problem::Problem;

    use super::*;

    fn of(levels: &[Level]) -> Status {
        let problem = |(number, level): (usize, &Level)| Problem {
            level: *level,
            then: "`do it`".into(),
            ..Problem::of(Kind::Rejected, format!("problem {number} a|b"))
        };
        Status {
            level: Some(levels.iter().copied().max().unwrap_or(Level::Ok)),
            headline: "No fenced host waits to be reported.".into(),
            problems: levels.iter().enumerate().map(problem).collect(),
            ..Status::default()
        }
    }

    #[test]
    fn the_line_has_a_word_a_sentence_and_figures_behind_the_only_bar() {
        let limits = Limits::default();
        let figures = "open=0;;;0 held=0;;;0 oldest=0s;300;900;0 routes_failing=0;;;0 damaged=0;;;0 without_route=0;;;0";
        assert_eq!(line(&of(&[]), limits), format!("OK: No fenced host waits to be reported. | {figures}"));
        let shown = line(&of(&[Level::Critical, Level::Warning, Level::Warning, Level::Warning]), limits);
        assert_eq!(shown, format!("CRITICAL: problem 0 a/b (and 3 more) | {figures}"));
        let one = line(&of(&[Level::Warning]), limits);
        assert_eq!(one, format!("WARNING: problem 0 a/b -> `do it` | {figures}"));
    }

    #[test]
    fn the_code_is_that_of_the_worst_problem() {
        let codes =
            [&[][..], &[Level::Warning], &[Level::Critical, Level::Warning]].map(|levels| code(&of(levels)));
        assert_eq!(codes, [0, 1, 2]);
        let mut unread = Status { unknown: Some("no".into()), ..of(&[Level::Critical]) };
        assert_eq!(code(&unread), 2, "something else is wrong too");
        unread.problems[0].kind = Kind::Journal;
        assert_eq!((code(&unread), code(&Status::default())), (UNKNOWN, UNKNOWN));
        let refused =
            Status { is_refused: true, headline: "Run this as root.".into(), ..of(&[Level::Critical]) };
        assert!(
            code(&refused) == UNKNOWN
                && line(&refused, Limits::default()).starts_with("UNKNOWN: Run this as root. |")
        );
    }
}
