//! `make demo`: the whole path on one machine, as readable text: a fencing, its mark, the JSON as it arrived, an endpoint
//! that is down for a while, and the acknowledgement.

use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;
use tests::programs::Site;
use tests::receiver::{Received, Receiver};

/// Until the first notification has come.
const SOON: Duration = Duration::from_secs(5);
/// How long the endpoint stays down.
const OUTAGE: Duration = Duration::from_secs(4);
/// Until an endpoint that is up again gets what it missed.
const RECOVERY: Duration = Duration::from_secs(31);

fn main() -> anyhow::Result<()> {
    let mut receiver = Receiver::on_loopback()?;
    let mut site = Site::new(receiver.address())?;

    title("1. A recovery controller listens, the alerter runs");
    say(&format!("receiver   http://{}/v1/host-failures", receiver.address()));
    say(&format!("journal    {}", site.journal().display()));
    let pid = site.start()?;
    say(&format!("alerter    process {pid}"));

    title("2. Pacemaker has powered compute1 off and calls fence_mark");
    fence(&site, "compute1")?;
    let first = newest(&receiver.wait_for(1, SOON)?)?;
    say("The receiver got:");
    print_request(&first)?;
    wait_until_settled(&site)?;

    title("3. The endpoint goes down, and compute2 is fenced");
    receiver.down();
    fence(&site, "compute2")?;
    thread::sleep(OUTAGE);
    print_output(&site.alerter(&["status"])?);
    print_output(&site.alerter(&["list"])?);

    title("4. The alerter is killed with SIGKILL, and started again");
    site.end(Signal::SIGKILL)?;
    let pid = site.start()?;
    say(&format!("alerter    process {pid}"));
    print_output(&site.alerter(&["list"])?);

    title("5. The endpoint is up again, and an operator says: `retry --all`");
    receiver.up()?;
    print_output(&site.alerter(&["retry", "--all"])?);
    let all = receiver.wait_for(2, RECOVERY)?;
    print_request(&newest(&all)?)?;
    wait_until_settled(&site)?;
    print_output(&site.alerter(&["show", "compute2"])?);
    site.end(Signal::SIGTERM)?;
    say("Nothing was lost. Next: `make test`, and docs/start.md.");
    Ok(())
}

fn fence(site: &Site, host: &str) -> anyhow::Result<()> {
    for line in site.stdin_of_the_fencer(host).lines() {
        say(&format!("  stdin  {line}"));
    }
    let begun = Instant::now();
    site.fence(host)?;
    say(&format!("  exit 0 after {:.1} ms: the mark is on disk\n", begun.elapsed().as_secs_f64() * 1000.0));
    Ok(())
}

/// The acknowledgement is on disk a moment after the receiver has sent it.
fn wait_until_settled(site: &Site) -> anyhow::Result<()> {
    let limit = Instant::now() + SOON;
    while site.alerter(&["list", "--json"])?.stdout.trim_ascii() != b"[]" {
        ensure!(Instant::now() < limit, "the mark is not settled");
        thread::sleep(Duration::from_millis(5));
    }
    say("The mark is acknowledged and settled.");
    Ok(())
}

fn newest(all: &[Received]) -> anyhow::Result<Received> {
    all.last().cloned().context("nothing came")
}

fn print_request(request: &Received) -> anyhow::Result<()> {
    say(&format!("  {}", request.first_line));
    for (name, value) in &request.headers {
        say(&format!("  {name}: {value}"));
    }
    let body = std::str::from_utf8(&request.body).context("the body is no text")?;
    serde_json::from_str::<serde_json::Value>(body).context("the body is no JSON")?;
    say(&format!("\n  {body}\n"));
    Ok(())
}

fn print_output(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    say(&format!("  {}\n", text.trim_end().replace('\n', "\n  ")));
}

fn title(text: &str) {
    say(&format!("\n== {text}"));
}

fn say(text: &str) {
    println!("{text}");
}
