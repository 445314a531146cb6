//! `events`: what happened as lines of JSON, from the history, and while it is followed also from the daemon's log.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use journal::{HistoryRow, Journal};
use marks::time::Timestamp;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Sender};
use tokio::time::{MissedTickBehavior, interval};

use super::answer::{self, say};
use super::sources::{journal_path, reader};
use crate::cli::{self, Cli};
use crate::config::control_socket;
use crate::control::client::{ClientError, Daemon, READING};
use crate::control::events::WAIT;
use crate::log::ring::{LogEvent, Page};

/// How often the history is polled: an indexed question, which writes nothing.
const POLL: Duration = Duration::from_millis(250);
/// How long after a failure the daemon is asked again.
const PAUSE: Duration = Duration::from_millis(500);
/// A run that no daemon has.
const NONE: &str = "none";
/// Rows that are read at once.
const ROWS: u32 = 500;

pub(super) fn run(cli: &Cli, options: &cli::Events) -> anyhow::Result<ExitCode> {
    let mut history = Followed::start(cli, options)?;
    if options.follow {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("the runtime did not start")?;
        let followed = runtime.block_on(follow(cli, history));
        // A reader who takes nothing must not hold up the end.
        runtime.shutdown_background();
        return followed.map(|()| ExitCode::SUCCESS);
    }
    loop {
        let lines = history.next()?;
        if lines.is_empty() || print(&lines).is_err() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Until Ctrl-C, or until nobody reads any more.
async fn follow(cli: &Cli, mut history: Followed) -> anyhow::Result<()> {
    let mut ends = Ends::listen()?;
    let (sender, mut logged) = mpsc::channel(1);
    tokio::spawn(listen(Connections::of(cli), history.asked_since, sender));
    let mut polls = interval(POLL);
    polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut complained = None;
    loop {
        let lines = tokio::select! {
            () = ends.come() => return Ok(()),
            _ = polls.tick() => {
                if nobody_reads() {
                    return Ok(());
                }
                history.next_or_reopen(cli, &mut complained)
            }
            Some(lines) = logged.recv() => lines,
        };
        if lines.is_empty() {
            continue;
        }
        let printing = tokio::task::spawn_blocking(move || print(&lines));
        tokio::select! {
            () = ends.come() => return Ok(()),
            printed = printing => if !matches!(printed, Ok(Ok(()))) {
                return Ok(());
            }
        }
    }
}

/// The history behind the last row that was printed.
struct Followed {
    journal: Journal,
    after: i64,
    since: Timestamp,
    /// Where the operator has said since when: of the log too.
    asked_since: Option<Timestamp>,
}

impl Followed {
    fn start(cli: &Cli, options: &cli::Events) -> anyhow::Result<Self> {
        let journal = reader(cli)?;
        let asked_since = options.since;
        let after = match options.after {
            Some(after) => after,
            None if options.follow && asked_since.is_none() => journal.newest_history()?,
            None => 0,
        };
        Ok(Self { journal, after, since: asked_since.unwrap_or(Timestamp(0)), asked_since })
    }

    fn next(&mut self) -> anyhow::Result<Vec<Value>> {
        let part = self.journal.history_behind(self.after, self.since, ROWS)?;
        self.after = part.last;
        let gone = (part.gone > 0).then(|| lost("history", part.gone));
        let damaged = part.rows.damaged.iter().map(|damage| {
            let message = format!("the history row {} is damaged and is not shown", damage.key);
            json!({ "type": "damaged", "seq": damage.key.parse::<i64>().ok(), "message": message })
        });
        Ok(gone.into_iter().chain(damaged).chain(part.rows.sound.iter().map(of_history)).collect())
    }

    /// A journal that cannot be read now is opened again the next time.
    fn next_or_reopen(&mut self, cli: &Cli, complained: &mut Option<String>) -> Vec<Value> {
        match self.next() {
            Ok(lines) => {
                *complained = None;
                lines
            }
            Err(error) => {
                let sentence = format!("nova-host-alerter: {}\n", answer::sentence(&error));
                if complained.as_ref() != Some(&sentence) {
                    say(&sentence, &mut io::stderr());
                    *complained = Some(sentence);
                }
                if let Ok(journal) = reader(cli) {
                    self.journal = journal;
                }
                Vec::new()
            }
        }
    }
}

/// Connections to the daemon: for answers that come at once, and for those that wait for an event.
struct Connections {
    quick: Daemon,
    patient: Daemon,
}

impl Connections {
    fn of(cli: &Cli) -> Self {
        let socket = control_socket(&journal_path(cli));
        Self { quick: Daemon::reading(&socket), patient: Daemon::patient(&socket, WAIT + READING) }
    }
}

/// What the daemon says, over all its restarts.
async fn listen(daemons: Connections, since: Option<Timestamp>, sender: Sender<Vec<Value>>) {
    // A run that never was: everything that the daemon still has.
    let mut place = since.map(|_| (NONE.to_owned(), 0));
    let mut answers = None;
    loop {
        let (daemon, way) = match &place {
            None => (&daemons.quick, "/v1/events/now".to_owned()),
            // A run that never was is behind everything: that is answered at once.
            Some((run, after)) if run == NONE => (&daemons.quick, format!("/v1/events/{run}/{after}")),
            Some((run, after)) => (&daemons.patient, format!("/v1/events/{run}/{after}")),
        };
        let (lines, pause) = match daemon.get::<Page>(&way).await {
            Ok(page) => {
                let news =
                    (answers.replace(true) != Some(true)).then(|| of_daemon(true, "the daemon answers"));
                // What an earlier run said last is not known to be lost.
                let gone = (page.lost > 0).then(|| lost("log", page.lost));
                let said = page.events.iter().filter(|event| since.is_none_or(|since| event.at >= since.0));
                let said = said.map(|event| of_log(&page.run, event));
                let lines: Vec<Value> = news.into_iter().chain(gone).chain(said).collect();
                place = Some((page.run, page.last));
                (lines, Duration::ZERO)
            }
            Err(error) => {
                let news = answers.replace(false) != Some(false);
                // What comes up next is read from its beginning.
                place.get_or_insert_with(|| (NONE.to_owned(), 0));
                (news.then(|| of_daemon(false, &why(&error))).into_iter().collect(), PAUSE)
            }
        };
        if !lines.is_empty() && sender.send(lines).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

fn why(error: &ClientError) -> String {
    match error {
        ClientError::Silent(socket) => format!("the daemon does not answer at {socket}; trying again"),
        ClientError::Refused { message, .. } => message.clone(),
    }
}

fn of_history(row: &HistoryRow) -> Value {
    json!({
        "type": "history", "seq": row.seq, "at": row.at, "event": row.event, "mark": row.mark, "host": row.node,
        "route": row.route, "outcome": row.outcome, "detail": row.detail, "actor": row.actor,
    })
}

fn of_log(run: &str, event: &LogEvent) -> Value {
    json!({
        "type": "log", "run": run, "seq": event.seq, "at": Timestamp(event.at), "level": event.level,
        "message": event.message, "fields": event.fields,
    })
}

fn of_daemon(answers: bool, message: &str) -> Value {
    json!({ "type": "daemon", "at": Timestamp::now(), "answers": answers, "message": message })
}

fn lost(of: &str, count: u64) -> Value {
    let message = match of {
        "log" => {
            format!(
                "{count} event(s) of the log came faster than they were read, and are not shown: see syslog or journald"
            )
        }
        _ => format!("{count} row(s) of the history were removed, since they are older than [history] keeps"),
    };
    json!({ "type": "lost", "of": of, "count": count, "message": message })
}

/// One object a line, and whole lines at once.
fn print(lines: &[Value]) -> io::Result<()> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// A pipe says so even when there is nothing to write into it.
fn nobody_reads() -> bool {
    let stdout = io::stdout();
    let mut asked = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    poll(&mut asked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Ctrl-C, and what a service manager sends.
struct Ends {
    interrupt: Signal,
    terminate: Signal,
}

impl Ends {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be received");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn come(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    /// What docs/logs.md says of each line; a reader's program breaks where a field goes.
    #[test]
    fn the_fields_are_those_of_the_documentation() {
        let row = HistoryRow {
            seq: 7,
            at: Timestamp(1_700_000_000_123),
            event: "marked".into(),
            mark: Some("m".into()),
            node: None,
            route: None,
            outcome: None,
            detail: "d".into(),
            actor: "a".into(),
        };
        let line = of_history(&row);
        assert_eq!(
            keys(&line),
            ["actor", "at", "detail", "event", "host", "mark", "outcome", "route", "seq", "type"]
        );
        assert_eq!(line["at"], json!("2023-11-14T22:13:20.123Z"));
        let event = LogEvent { seq: 1, at: 0, level: "warn".into(), message: "m".into(), fields: [].into() };
        let line = of_log("r", &event);
        assert_eq!(keys(&line), ["at", "fields", "level", "message", "run", "seq", "type"]);
        assert_eq!(keys(&of_daemon(true, "m")), ["answers", "at", "message", "type"]);
        assert_eq!(keys(&lost("log", 3)), ["count", "message", "of", "type"]);
        let documented = include_str!("../../../docs/logs.md");
        for (kind, line) in [
            ("history", of_history(&row)),
            ("log", line),
            ("daemon", of_daemon(true, "m")),
            ("lost", lost("log", 1)),
        ] {
            let table = documented.lines().find(|text| text.starts_with(&format!("| `{kind}` |"))).unwrap();
            for key in keys(&line).into_iter().filter(|key| *key != "type") {
                assert!(table.contains(&format!("`{key}`")), "{kind}: {key}");
            }
        }
    }
}
