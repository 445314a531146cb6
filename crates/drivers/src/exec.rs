//! The `exec` driver: any program as a driver, with JSON on its standard input and an exit code as its answer
//! (docs/exec-driver.md).

mod answer;

use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use site::Section;
use tokio::sync::Semaphore;
use tracing::info;

use crate::driver::{
    About, Driver, Exchange, Failure, Kind, Message, Outcome, Step, fingerprint, notifies_return, returns,
};
use crate::event::{Event, TimeFormat};
use crate::program::{self, command};
use answer::Words;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "exec", configure };

/// What an `exec` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program's absolute path, and its arguments.
    pub command: Vec<String>,
    /// Limit of one run.
    pub timeout: Duration,
    /// How many runs may be in flight at once; `send-test` may have one more.
    pub at_once: usize,
    /// How times are written.
    pub time_format: TimeFormat,
    /// Whether the program is also run when the host is back.
    pub notifies_return: bool,
}

/// One `exec` route.
pub struct Exec {
    options: Options,
    places: Semaphore,
    /// Returns have places of their own: none may take that of a failure.
    places_of_returns: Semaphore,
    about: About,
}

impl Exec {
    /// A route that runs this command. The configuration's reader has checked that the program can be trusted.
    pub fn new(options: Options) -> Self {
        let at_once = options.at_once;
        let (places, places_of_returns) = (Semaphore::new(at_once + 1), Semaphore::new(at_once));
        // The program alone: an argument may be a secret.
        let program = options.command.first().cloned().unwrap_or_default();
        let about = About {
            steps: returns(options.notifies_return),
            ends_each: true,
            at_once: Some(at_once),
            ..About::new(KIND.word, program, options.timeout)
        };
        Self { options, places, places_of_returns, about }
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let places = if message.step == Step::Return { &self.places_of_returns } else { &self.places };
        let Ok(_place) = places.try_acquire() else { return Outcome::Retry(no_place()).not_sent() };
        let ran = program::run(&self.options.command, &self.line(message), self.options.timeout).await;
        let words = Words::read(&ran.stdout, &ran.stderr);
        if words.is_odd {
            info!(mark = %message.id, "the standard output of {} is not used: it is not one JSON object of at most 64 KiB", self.about.endpoint);
        }
        answer::outcome(&ran.end, &words)
    }

    /// The one line on standard input. The body is JSON already and stands in it unchanged.
    fn line(&self, message: Message<'_>) -> Vec<u8> {
        let head = format!(r#"{{"version":"1","id":"{}","event":"#, message.id);
        let tail = format!(",\"deadline_seconds\":{}}}\n", self.options.timeout.as_secs());
        [head.as_bytes(), message.body, tail.as_bytes()].concat()
    }
}

fn no_place() -> Failure {
    Failure::new(
        "no-place",
        "the program already runs as often as at-once allows: the next attempt starts when a run has ended",
    )
}

impl Driver for Exec {
    fn about(&self) -> &About {
        &self.about
    }

    /// Its arguments may lead elsewhere.
    fn target(&self) -> String {
        let program = &self.about.endpoint;
        match self.options.command.get(1..) {
            Some(arguments @ [_, ..]) => format!("{program} ({})", fingerprint(&arguments.join("\0"))),
            _ => program.clone(),
        }
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        Event::of_mark(mark, self.options.time_format).bytes()
    }

    fn return_body(&self, mark: &Mark, _sent: &[u8], returned: Timestamp) -> Vec<u8> {
        Event::of_return(mark, returned, self.options.time_format).bytes()
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        Event::of_test(id, now, self.options.time_format).bytes()
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        Box::pin(self.exchange(message))
    }
}

/// Reads `[exec.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let command = command(table);
    let seconds = table.number("timeout", 1..=300).unwrap_or(30);
    let at_once = table.number("at-once", 1..=64).unwrap_or(4);
    let time_format = table.choice("time-format", &TimeFormat::WORDS).unwrap_or_default();
    let notifies_return = notifies_return(table);
    if !table.is_sound() {
        return None;
    }
    let timeout = Duration::from_secs(seconds.into());
    let at_once = usize::try_from(at_once).expect("at most 64");
    Some(Arc::new(Exec::new(Options { command: command?, timeout, at_once, time_format, notifies_return })))
}
