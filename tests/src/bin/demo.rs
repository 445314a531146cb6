//! `make demo`: the whole path on one machine: two fencings, an endpoint that is down, an alerter that is killed, and what
//! that proves.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::{Received, Receiver};

/// Until the first notification has come.
const SOON: Duration = Duration::from_secs(5);
/// How long the endpoint stays down.
const OUTAGE: Duration = Duration::from_secs(4);
/// Until an endpoint that is up again gets what it missed.
const RECOVERY: Duration = Duration::from_secs(31);
const HOSTS: [&str; 2] = ["compute1", "compute2"];

/// The standard event, in its order.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Event {
    id: String,
    event_type: String,
    version: String,
    generated_time: i64,
    payload: Payload,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    hostname: String,
    on_shared_storage: bool,
    failure_time: i64,
}

fn main() -> ExitCode {
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            bad(&format!("the demo failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn play() -> anyhow::Result<()> {
    let mut receiver = Receiver::on_loopback()?;
    let mut site = Site::new(receiver.address())?;

    title("1  A recovery controller listens, and the alerter runs");
    let pid = site.start()?;
    good(&format!("receiver http://{}/v1/host-failures; alerter: process {pid}", receiver.address()));

    title("2  Pacemaker has powered compute1 off and calls fence_mark");
    fence(&site, HOSTS[0])?;
    let first = newest(&receiver.wait_for(1, SOON)?)?;
    show_request(&first)?;
    until_settled(&site)?;

    title("3  The endpoint goes down, and compute2 is fenced");
    receiver.down();
    fence(&site, HOSTS[1])?;
    thread::sleep(OUTAGE);
    show_status(&site)?;

    title("4  The alerter is killed (SIGKILL) and started again");
    site.end(Signal::SIGKILL)?;
    let pid = site.start()?;
    ensure!(open(&site)? == 1, "the mark of compute2 is lost");
    good(&format!("alerter: process {pid}; the mark of compute2 is still open"));

    title("5  The endpoint is up again, and an operator runs `nova-host-alerter retry --all`");
    receiver.up()?;
    site.alerter(&["retry", "--all"])?;
    let all = receiver.wait_for(2, RECOVERY)?;
    good(&format!("the receiver got the event of {}", hostname(&newest(&all)?)?));
    until_settled(&site)?;
    proven(&site, &receiver)?;
    site.end(Signal::SIGTERM)
}

fn fence(site: &Site, host: &str) -> anyhow::Result<()> {
    let begun = Instant::now();
    site.fence(host)?;
    let took = begun.elapsed().as_secs_f64() * 1000.0;
    good(&format!("fence_mark exits with 0 after {took:.1} ms: the mark is on disk"));
    Ok(())
}

fn marks(site: &Site, words: &[&str]) -> anyhow::Result<Vec<Value>> {
    Ok(serde_json::from_slice(&site.alerter(&[&["list", "--json"], words].concat())?.stdout)?)
}

fn open(site: &Site) -> anyhow::Result<usize> {
    Ok(marks(site, &[])?.len())
}

/// The acknowledgement is on disk a moment after the receiver has sent it.
fn until_settled(site: &Site) -> anyhow::Result<()> {
    wait::until("the mark is settled", SOON, || Ok((open(site)? == 0).then_some(())))?;
    good("the receiver answered 200: the mark is acknowledged and settled");
    Ok(())
}

fn newest(all: &[Received]) -> anyhow::Result<Received> {
    all.last().cloned().context("no request came")
}

fn event(request: &Received) -> anyhow::Result<Event> {
    serde_json::from_slice(&request.body).context("the body is no standard event")
}

fn hostname(request: &Received) -> anyhow::Result<String> {
    Ok(event(request)?.payload.hostname)
}

fn show_request(request: &Received) -> anyhow::Result<()> {
    good(&format!("the receiver got {}", request.first_line));
    for line in serde_json::to_string_pretty(&event(request)?)?.lines() {
        println!("     {line}");
    }
    Ok(())
}

/// What `status` says first: the verdict, and the route that is down.
fn show_status(site: &Site) -> anyhow::Result<()> {
    let output = site.alerter(&["status"])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| !line.is_empty()).take(2).for_each(bad);
    Ok(())
}

/// Counts what was fenced, and what of it the receiver got and the journal has as acknowledged.
fn proven(site: &Site, receiver: &Receiver) -> anyhow::Result<()> {
    let all = marks(site, &["--all"])?;
    let acknowledged = all.iter().filter(|mark| mark["state"] == "acknowledged").count();
    let got: Vec<String> = receiver.received().iter().map(hostname).collect::<anyhow::Result<_>>()?;
    let lost = HOSTS.iter().filter(|host| !got.iter().any(|name| name.starts_with(**host))).count();
    let (fenced, count) = (HOSTS.len(), got.len());
    let line = format!(
        "{fenced} hosts fenced, {acknowledged} acknowledged, {lost} lost, {count} requests, alerter killed once"
    );
    title(&line);
    ensure!(acknowledged == fenced && lost == 0, "this is not what was promised");
    println!("Next: `make test`, and docs/start.md for a real cluster.");
    Ok(())
}

fn title(text: &str) {
    println!("{}", painted("1", text));
}

fn good(text: &str) {
    println!("   {} {text}", painted("32", "✔"));
}

fn bad(text: &str) {
    println!("   {} {text}", painted("31", "✘"));
}

/// In colour where a person reads it (<https://no-color.org>).
fn painted(code: &str, text: &str) -> String {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match std::io::stdout().is_terminal() && !is_plain {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    }
}
