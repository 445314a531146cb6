//! `pause`, `resume` and `maintenance begin|end|list`.

use std::process::ExitCode;

use journal::Done;
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;
use serde::Serialize;

use super::answer::print;
use super::change::change;
use super::merged::{CLUSTER, Records};
use super::sources::Sources;
use super::terminal::Style;
use super::{read, text};
use crate::cli::{self, Cli};
use crate::control::api::Request;

pub(super) fn pause(cli: &Cli, options: &cli::Pause) -> anyhow::Result<ExitCode> {
    let cli::Pause { group, reason, lasting } = options;
    let seconds = lasting.map(|lasting| lasting.as_secs());
    change(cli, "/v1/pause", &Request { group: group.clone(), seconds, ..Request::because(reason) })
}

pub(super) fn resume(cli: &Cli, options: &cli::Resume) -> anyhow::Result<ExitCode> {
    let cli::Resume { group, reason } = options;
    change(cli, "/v1/resume", &Request { group: group.clone(), ..Request::because(reason) })
}

pub(super) fn begin(cli: &Cli, options: &cli::Begin) -> anyhow::Result<ExitCode> {
    let seconds = Some(options.lasting.as_secs());
    change(cli, "/v1/maintenance/begin", &Request { seconds, ..of(&options.whom, &options.reason) })
}

pub(super) fn end(cli: &Cli, options: &cli::End) -> anyhow::Result<ExitCode> {
    change(cli, "/v1/maintenance/end", &of(&options.whom, &options.reason))
}

fn of(cli::Whom { host, group }: &cli::Whom, reason: &str) -> Request {
    Request { target: host.clone(), group: group.clone(), ..Request::because(reason) }
}

/// A line of `maintenance list --json`.
#[derive(Serialize)]
struct Listed<'a> {
    /// `cluster`, or `local view`: this controller's word alone.
    view: &'a str,
    id: String,
    kind: &'static str,
    /// The host, where it is about one.
    host: Option<String>,
    /// The group, where it is about one.
    group: Option<String>,
    at: Timestamp,
    /// When it ends by itself.
    until: Option<Timestamp>,
    actor: &'a str,
    reason: &'a str,
}

impl<'a> Listed<'a> {
    fn of(Decision { id, about, at, actor, reason }: &'a Decision, view: &'a str) -> Self {
        let (host, group) = match about.scope() {
            Some(Scope::Host(name)) => (Some(name.to_string()), None),
            Some(Scope::Group(name)) => (None, Some(name)),
            Some(Scope::All) | None => (None, None),
        };
        let (id, kind, until) = (id.to_string(), about.kind(), about.until());
        Self { view, id, kind, host, group, at: *at, until, actor, reason }
    }
}

pub(super) fn list(cli: &Cli) -> anyhow::Result<ExitCode> {
    let sources = Sources::open(cli)?;
    let mut all = in_force(sources.records(), Timestamp::now())?;
    all.retain(|decision| matches!(decision.about, About::Maintenance { .. }));
    let view = sources.register.view();
    let listed: Vec<Listed> = all.iter().map(|one| Listed::of(one, view)).collect();
    print(cli, &listed, || listing(&all, view, Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

/// The pauses and maintenances in force, oldest first. What the journal or the register says has ended has ended.
///
/// # Errors
/// As any read.
pub(super) fn in_force(records: Records<'_>, now: Timestamp) -> Done<Vec<Decision>> {
    let (there, ended) = records.register.in_force();
    let mut all = read::sound(records.here(|journal| journal.decisions_in_force(now))?);
    all.retain(|decision| decision.about.holds() && !ended.contains(&decision.id));
    for decision in there {
        let is_over = decision.over_at(None).is_some_and(|until| until <= now);
        let is_known = all.iter().any(|known| known.id == decision.id);
        if !is_over && !is_known && !records.here(|journal| journal.has_ended(decision.id))? {
            all.push(decision.clone());
        }
    }
    all.sort_by_key(|decision| (decision.at, decision.id));
    Ok(all)
}

fn listing(all: &[Decision], view: &str, style: Style) -> String {
    if all.is_empty() {
        return format!("nothing is on maintenance ({view})");
    }
    let mut rows = vec![["WHAT", "SINCE", "UNTIL", "LEFT", "BY", "REASON"].map(str::to_owned).to_vec()];
    let now = Timestamp::now();
    rows.extend(all.iter().map(|decision| line(decision, now)));
    if view != CLUSTER {
        rows[0].push("VIEW".to_owned());
        rows[1..].iter_mut().for_each(|row| row.push(view.to_owned()));
    }
    text::fitted(&rows, style.columns)
}

fn line(decision: &Decision, now: Timestamp) -> Vec<String> {
    let scope = decision.about.scope().unwrap_or(Scope::All);
    let until = decision.about.until();
    vec![
        scope.to_string(),
        text::time(decision.at),
        until.map_or_else(|| "resume".to_owned(), text::time),
        until.map_or_else(String::new, |until| text::span(until.since(now))),
        decision.actor.clone(),
        decision.reason.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marks::host::HostName;
    use marks::id::NoteId;
    use marks::register::{Ending, Entry};

    use super::*;
    use crate::commands::merged::tests::{alone, register};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn decision(about: About) -> Decision {
        let (actor, reason) = ("alice".into(), "new disk".into());
        Decision { id: NoteId::generate(), about, at: NOW, actor, reason }
    }

    fn maintenance(host: &str, until: Timestamp) -> Decision {
        let scope = Scope::Host(HostName::parse(host).unwrap());
        decision(About::Maintenance { scope, until })
    }

    /// S0-3. The broken variant reads what is in force from the register, and not what has ended.
    #[test]
    fn the_register_is_read_where_there_is_no_journal() {
        let open = maintenance("compute1", NOW + Duration::from_secs(60));
        let ended = maintenance("compute2", NOW + Duration::from_secs(60));
        let over = maintenance("compute3", NOW);
        let release = decision(About::ReleaseGroup("rack1".into()));
        let end = Ending { id: ended.id, at: NOW, actor: "bob".into(), reason: "done".into() };
        let all = [&open, &ended, &over, &release].map(|decision| Entry::Decision(decision.clone()));
        let register = register(all.into_iter().chain([Entry::Ending(end)]).collect());
        assert_eq!(in_force(Records { journal: None, register: &register }, NOW).unwrap(), [open]);
        assert_eq!(in_force(Records { journal: None, register: &alone() }, NOW).unwrap(), []);
    }
}
