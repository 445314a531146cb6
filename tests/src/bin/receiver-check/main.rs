//! `receiver-check`: sends a receiver a script of messages, and says what it does right and wrong.

mod judge;
#[cfg(test)]
mod receivers;
mod script;
mod settle;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use drivers::event::TimeFormat;
use drivers::http::{Credentials, Http, Options, Signing};
use drivers::web::{self, ClientOptions, Endpoint, Said};
use drivers::{Message, Outcome};
use marks::id::{FencingId, MarkId};
use marks::time::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use self::judge::{Acted, Came, Finding, Verdict};
use self::script::{Check, Given, How, Sending};
use self::settle::Reading;

/// So long the kit waits before it closes a connection whose answer it does not want.
const BRIEF: Duration = Duration::from_millis(500);
/// Between two readings of the receiver's list.
const AGAIN: Duration = Duration::from_millis(250);

/// What is printed.
#[derive(Serialize)]
struct Verdicts {
    /// The receiver, without the query of its address.
    receiver: String,
    right: usize,
    wrong: usize,
    not_checked: usize,
    checks: Vec<Finding>,
}

/// Proves a recovery controller: sends it a script of messages about hosts that cannot exist.
#[derive(Debug, Parser)]
#[command(
    name = "receiver-check",
    after_help = "Exit codes: 0 nothing is wrong, 1 something is, 2 wrong usage."
)]
struct Args {
    /// Where the receiver takes events; nothing else is asked there
    #[arg(value_name = "URL")]
    url: String,
    /// Sign each message with the secret in this file, as `secret-files` of a route does
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Send the token in this file with each message
    #[arg(long, value_name = "FILE")]
    bearer_file: Option<PathBuf>,
    /// The CAs for the receiver's certificate, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Allow plain http to another machine
    #[arg(long)]
    allow_http: bool,
    /// Where the receiver lists what it acted upon: JSON, [{"id", "event_type", "hostname"}]
    #[arg(long, value_name = "URL")]
    events: Option<String>,
    /// Within how many seconds each answer must come; routes wait for 30 at most
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=30))]
    timeout: u64,
    /// How many seconds a message is repeated for, where the receiver asks for that, and its list is awaited for
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=900))]
    patience: u64,
    /// How times are written: epoch or rfc3339
    #[arg(long, value_name = "FORMAT", default_value = "epoch", value_parser = time_format)]
    time_format: TimeFormat,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A word of `time-format`.
fn time_format(text: &str) -> Result<TimeFormat, String> {
    let known = TimeFormat::WORDS.into_iter().find(|(word, _)| *word == text);
    known.map(|(_, format)| format).ok_or_else(|| "use epoch or rfc3339".to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    match checked(&args).await {
        Ok(verdicts) => {
            let json =
                || serde_json::to_string_pretty(&verdicts).expect("it has nothing but texts and numbers");
            println!("{}", if args.json { json() } else { shown(&verdicts) });
            ExitCode::from(u8::from(verdicts.wrong > 0))
        }
        Err((code, why)) => {
            eprintln!("receiver-check: {why}");
            ExitCode::from(code)
        }
    }
}

/// The verdicts, or the exit code and why there are none.
async fn checked(args: &Args) -> Result<Verdicts, (u8, String)> {
    let kit = Kit::of(args).map_err(|why| (2, why))?;
    let findings = kit.run().await.map_err(|why| (1, format!("{why:#}")))?;
    Ok(Verdicts::of(web::shown(&kit.url), findings))
}

impl Verdicts {
    fn of(receiver: String, checks: Vec<Finding>) -> Self {
        let count = |verdict| checks.iter().filter(|one| one.verdict() == verdict).count();
        let [right, wrong, not_checked] = [Verdict::Right, Verdict::Wrong, Verdict::NotChecked].map(count);
        Self { receiver, right, wrong, not_checked, checks }
    }
}

/// A table of the checks, a line for each thing that is wrong, and the numbers.
fn shown(verdicts: &Verdicts) -> String {
    let word = |verdict| match verdict {
        Verdict::Right => "right",
        Verdict::Wrong => "WRONG",
        Verdict::NotChecked => "not checked",
    };
    let row = |one: &Finding| {
        [one.check, word(one.answers), word(one.acted), &one.came].map(str::to_owned).to_vec()
    };
    let heading = ["CHECK", "ANSWERS", "ACTS", "CAME"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(heading).chain(verdicts.checks.iter().map(row)).collect();
    let wrong = verdicts.checks.iter().filter(|one| !one.wrong.is_empty());
    let sentences = |one: &Finding| {
        let each = one.wrong.iter().map(|wrong| format!("  {wrong}\n")).collect::<String>();
        format!("\n{}: {}\n{each}", one.check, one.sent)
    };
    let counted = |half: fn(&Finding) -> Verdict| {
        let count = |verdict| verdicts.checks.iter().filter(|one| half(one) == verdict).count();
        let [right, wrong, not_checked] = [Verdict::Right, Verdict::Wrong, Verdict::NotChecked].map(count);
        format!("{right} right, {wrong} wrong, {not_checked} not checked")
    };
    let (answers, acts) = (counted(|one| one.answers), counted(|one| one.acted));
    let numbers = format!("\nanswers: {answers}\nacts: {acts}{}", hint(verdicts));
    table(&rows) + &wrong.map(sentences).collect::<String>() + &numbers
}

/// Columns as wide as their widest cell.
fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:0$}  ", width(column)));
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// What more can be checked.
fn hint(verdicts: &Verdicts) -> &'static str {
    let is_blind = |one: &Finding| one.answers != Verdict::NotChecked && one.acted == Verdict::NotChecked;
    match verdicts.checks.iter().any(is_blind) {
        true => ": only with --events can be checked what the receiver acted upon",
        false => "",
    }
}

/// The receiver, and how it is asked.
struct Kit {
    url: Url,
    http: Http,
    /// The same without credentials.
    stranger: Http,
    /// The same with another bearer token.
    mistaken: Http,
    /// Where the receiver lists what it acted upon.
    events: Option<Endpoint>,
    given: Given,
    patience: Duration,
}

impl Kit {
    fn of(options: &Args) -> Result<Self, String> {
        let url = web::address(&options.url, options.allow_http)?;
        let route = route(options, url.clone())?;
        let given = Given {
            now: Timestamp::now(),
            format: options.time_format,
            signs: options.secret_file.is_some(),
            has_token: options.bearer_file.is_some(),
        };
        let made = |route| Http::new(route).map_err(|why| why.to_string());
        Ok(Self {
            url,
            stranger: made(Options { credentials: None, ..route.clone() })?,
            mistaken: made(Options { credentials: None, headers: wrong_token(), ..route.clone() })?,
            http: made(route)?,
            events: options.events.as_deref().map(|events| list(options, events)).transpose()?,
            given,
            patience: Duration::from_secs(options.patience),
        })
    }

    async fn run(&self) -> anyhow::Result<Vec<Finding>> {
        // A list that cannot be read is found before anything is sent.
        self.acted().await?;
        let script = script::all(self.given, || MarkId::from(FencingId::generate()));
        let mut sent = Vec::new();
        for check in &script {
            let attempts = match check.needs {
                None if self.is_hopeless(&script, &sent) => {
                    Err("the first message was not accepted".to_owned())
                }
                None => Ok(self.make(check).await),
                Some(option) => Err(format!("needs {option}")),
            };
            sent.push(attempts);
        }
        let made = script.iter().zip(&sent).filter(|(_, sent)| sent.is_ok()).map(|(check, _)| check);
        let acted = self.settled(&made.collect::<Vec<_>>()).await?;
        let found = |(check, sent): (&Check, &Result<Vec<_>, String>)| match sent {
            Ok(attempts) => judge::finding(check, attempts, acted.as_deref()),
            Err(why) => judge::unsent(check, &format!("not sent: {why}")),
        };
        Ok(script.iter().zip(&sent).map(found).collect())
    }

    /// Each of the others would wait as long as the first one did.
    fn is_hopeless(&self, script: &[Check], sent: &[Result<Vec<Vec<Came>>, String>]) -> bool {
        let first = script.first().zip(sent.first());
        first.is_some_and(|(check, sent)| {
            sent.as_ref().is_ok_and(|sent| judge::finding(check, sent, None).answers == Verdict::Wrong)
        })
    }

    /// For each message its attempts.
    async fn make(&self, check: &Check) -> Vec<Vec<Came>> {
        if let [one, other] = &check.sends[..]
            && one.how == How::AtOnce
        {
            let (one, other) =
                tokio::join!(self.delivered(check.name, one), self.delivered(check.name, other));
            return vec![one, other];
        }
        let mut all = Vec::new();
        for sending in &check.sends {
            all.push(self.delivered(check.name, sending).await);
        }
        all
    }

    /// A message, again as long as the receiver asks for it.
    async fn delivered(&self, name: &str, sending: &Sending) -> Vec<Came> {
        let (begun, mut all) = (Instant::now(), Vec::new());
        loop {
            let (came, outcome) = self.attempt(sending, all.len()).await;
            all.push(came);
            let pause = outcome.and_then(|outcome| judge::pause(&outcome, begun.elapsed(), self.patience));
            let Some(pause) = pause else { return all };
            if all.len() == 1 {
                let (came, patience) = (&all[0], self.patience.as_secs());
                eprintln!("{name}: {came}: sent again for up to {patience} s (--patience)");
            }
            sleep(pause).await;
        }
    }

    async fn attempt(&self, sending: &Sending, earlier: usize) -> (Came, Option<Outcome>) {
        let attempts = u32::try_from(earlier).unwrap_or(u32::MAX).saturating_add(1);
        let Sending { id, step, body, how, .. } = sending;
        let message = Message { step: *step, id, body, ambiguous: 0, attempts, is_released: false };
        let http = match how {
            How::WithoutToken => &self.stranger,
            How::WrongToken => &self.mistaken,
            _ => &self.http,
        };
        let signing = if let How::Signed(signing) = how { *signing } else { Signing::Right };
        let exchange = http.ask(message, signing);
        if *how == How::Unread {
            let _whatever_it_says = timeout(BRIEF, exchange).await;
            return (Came::Unread, None);
        }
        match exchange.await {
            Ok(said) if said.is_page => (Came::Page(said.status), Some(said.outcome())),
            Ok(said) => (Came::Answer(said.status), Some(said.outcome())),
            Err(outcome) => {
                let why = outcome.failure().map(|failure| failure.detail.clone()).unwrap_or_default();
                (Came::None(why), Some(outcome))
            }
        }
    }

    /// The receiver's list; it is awaited until it has what must be there, and nothing follows.
    async fn settled(&self, made: &[&Check]) -> anyhow::Result<Option<Vec<Acted>>> {
        let (begun, mut last) = (Instant::now(), None);
        loop {
            let (read, now) = (self.acted().await, begun.elapsed());
            match read {
                Ok(None) => return Ok(None),
                Ok(Some(acted)) => {
                    let reading = Reading::next(last, acted, now);
                    if reading.is_settled(made, now, self.patience) {
                        return Ok(Some(reading.acted));
                    }
                    last = Some(reading);
                }
                Err(why) if now >= self.patience => return Err(why),
                Err(_) => {}
            }
            sleep(AGAIN).await;
        }
    }

    async fn acted(&self) -> anyhow::Result<Option<Vec<Acted>>> {
        let Some(events) = &self.events else { return Ok(None) };
        let unread = |why: String| format!("the list of what the receiver acted upon cannot be read: {why}");
        let request = events.request(Method::GET).header(ACCEPT, "application/json");
        let said = events.said(request).await.map_err(|outcome| {
            anyhow::anyhow!(unread(
                outcome.failure().map(|failure| failure.detail.clone()).unwrap_or_default()
            ))
        })?;
        let Said { status, body, .. } = &said;
        anyhow::ensure!(*status == 200, unread(format!("{} answered {status}", events.shown())));
        let is_none = || {
            unread(format!(
                "{} answered no list of id, event_type and hostname of at most 1 MiB",
                events.shown()
            ))
        };
        serde_json::from_slice(body).map(Some).with_context(is_none)
    }
}

/// A route as the configuration would make it.
fn route(options: &Args, url: Url) -> Result<Options, String> {
    let bearer = options.bearer_file.as_deref().map(absolute).transpose()?;
    let bearer = bearer.map(|file| Credentials::bearer("Bearer", &file.to_string_lossy()));
    let bearer = bearer.transpose().map_err(|why| format!("--bearer-file: {why}"))?;
    let secret = options.secret_file.as_deref().map(absolute).transpose()?;
    Ok(Options {
        credentials: bearer,
        secret_files: secret.into_iter().collect(),
        ..Options::by(client(options, url)?)
    })
}

fn wrong_token() -> HeaderMap {
    HeaderMap::from_iter([(
        AUTHORIZATION,
        HeaderValue::from_static("Bearer a-wrong-token-of-receiver-check"),
    )])
}

fn list(options: &Args, events: &str) -> Result<Endpoint, String> {
    let url = web::address(events, options.allow_http).map_err(|why| format!("--events: {why}"))?;
    Endpoint::new(client(options, url)?).map_err(|why| why.to_string())
}

fn client(options: &Args, url: Url) -> Result<ClientOptions, String> {
    Ok(ClientOptions {
        ca_file: options.ca_file.as_deref().map(absolute).transpose()?,
        timeout: Duration::from_secs(options.timeout),
        ..ClientOptions::to(url)
    })
}

/// A file of the command line is named from where the operator is.
fn absolute(file: &Path) -> Result<PathBuf, String> {
    std::path::absolute(file).map_err(|why| format!("{}: {why}", file.display()))
}
