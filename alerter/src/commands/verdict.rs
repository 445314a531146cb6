//! `status --check`: one line with figures, and the exit codes of Nagios plugins
//! (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::process::ExitCode;
use std::time::Duration;

use super::answer::{print_json, println_all};
use super::overview::{self, Status};
use super::sources::wait_for;
use super::terminal::clean;
use crate::cli::{self, Cli};
use crate::problem::{Kind, Level, Limits};

/// So many troubles stand in the line; the others are counted.
const SAID: usize = 3;
/// What a plugin exits with that does not know.
const UNKNOWN: u8 = 3;

pub(super) fn check(cli: &Cli, options: &cli::Status) -> anyhow::Result<ExitCode> {
    let limits = Limits {
        warning: Duration::from_secs(options.warning),
        critical: Duration::from_secs(options.critical),
    };
    let daemon = wait_for(overview::ask(cli))?;
    let status = overview::take(cli, daemon, limits);
    if cli.json {
        print_json(&status)?;
    } else {
        println_all(&line(&status, limits));
    }
    Ok(ExitCode::from(code(&status)))
}

/// Nobody knows anything where the journal cannot be read and nothing else is known to be wrong.
fn code(status: &Status) -> u8 {
    let is_only_unread = status
        .troubles
        .iter()
        .all(|trouble| trouble.kind == Kind::Journal || trouble.level < Level::Critical);
    match status.level {
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

/// The bar parts the sentence from the figures, and may stand nowhere else.
fn line(status: &Status, limits: Limits) -> String {
    let said: Vec<String> = status
        .troubles
        .iter()
        .take(SAID)
        .map(|trouble| format!("{} -> {}", trouble.what, trouble.then))
        .collect();
    let mut sentence = if said.is_empty() { status.headline.clone() } else { said.join("; ") };
    if status.troubles.len() > SAID {
        sentence += &format!("; and {} more: `nova-host-alerter status`", status.troubles.len() - SAID);
    }
    let sentence = clean(&sentence).replace('|', "/");
    format!("{}: {sentence} | {}", word(code(status)), figures(status, limits))
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
    use super::*;
    use crate::problem::Problem;

    fn of(levels: &[Level]) -> Status {
        let trouble = |(number, level): (usize, &Level)| Problem {
            level: *level,
            then: "`do it`".into(),
            ..Problem::of(Kind::Rejected, format!("trouble {number} a|b"))
        };
        Status {
            level: Some(levels.iter().copied().max().unwrap_or(Level::Ok)),
            headline: "No fenced host waits to be reported.".into(),
            troubles: levels.iter().enumerate().map(trouble).collect(),
            ..Status::default()
        }
    }

    #[test]
    fn the_line_has_a_word_a_sentence_and_figures_behind_the_only_bar() {
        let limits = Limits::default();
        let figures = "open=0;;;0 held=0;;;0 oldest=0s;300;900;0 routes_failing=0;;;0 damaged=0;;;0 without_route=0;;;0";
        assert_eq!(line(&of(&[]), limits), format!("OK: No fenced host waits to be reported. | {figures}"));
        let said = line(&of(&[Level::Critical, Level::Warning, Level::Warning, Level::Warning]), limits);
        assert!(said.starts_with("CRITICAL: trouble 0 a/b -> `do it`; trouble 1"), "{said}");
        assert!(
            said.contains("; and 1 more: `nova-host-alerter status` | open=")
                && said.matches('|').count() == 1
        );
    }

    #[test]
    fn the_code_is_that_of_the_worst_trouble() {
        let codes =
            [&[][..], &[Level::Warning], &[Level::Critical, Level::Warning]].map(|levels| code(&of(levels)));
        assert_eq!(codes, [0, 1, 2]);
        let mut unread = Status { unknown: Some("no".into()), ..of(&[Level::Critical]) };
        assert_eq!(code(&unread), 2, "something else is wrong too");
        unread.troubles[0].kind = Kind::Journal;
        assert_eq!((code(&unread), code(&Status::default())), (UNKNOWN, UNKNOWN));
    }
}
