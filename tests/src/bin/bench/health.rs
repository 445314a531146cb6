//! What health checks cost: from a mark to its POST beside 100,000 open marks, with and without 100 requests a
//! second at `/health` and at `/metrics`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::ensure;
use nix::sys::signal::Signal;
use tests::backlog::Backlog;
use tests::programs::Site;
use tests::sink::{Manner, Sink};

use crate::figures::{Times, line, ratio};
use crate::neighbours::notify;
use crate::route::{USUAL_IN_FLIGHT, tables};

/// Open marks, whose endpoint takes none of them.
const OPEN: usize = crate::size(100_000);
/// Changes between asking and not asking: other load of the machine affects both.
const TURNS: usize = crate::size(20);
/// Marks in each turn.
const ROUNDS: usize = crate::size(20);
/// From one mark to the next.
const PAUSE: Duration = Duration::from_millis(10);
/// From one request at an address to the next: 100 a second.
const EVERY: Duration = Duration::from_millis(10);
/// An answer that takes longer is none.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the daemon may take to begin with so many marks.
const BEGIN: Duration = Duration::from_secs(60);

pub(crate) fn run() -> anyhow::Result<()> {
    let backlog = Backlog::of_marks(OPEN, &["healthy", "closed"])?;
    backlog.acknowledge("healthy")?;
    let (healthy, mut closed) = (sink()?, sink()?);
    closed.down();
    let (health, metrics) = (free()?, free()?);
    let routes = tables(USUAL_IN_FLIGHT, &[("healthy", healthy.address()), ("closed", closed.address())]);
    let served = format!("[healthcheck]\nuri = \"tcp://{health}\"\n[metrics]\nuri = \"tcp://{metrics}\"\n");
    let mut site = Site::with(&format!("{routes}\n{served}"))?;
    backlog.lay_into(&site)?;
    site.launch()?;
    let limit = Instant::now() + BEGIN;
    while !site.answers()? {
        ensure!(Instant::now() < limit, "the alerter does not begin within {} s", BEGIN.as_secs());
    }
    let (mut alone, mut asked, mut answers) = (Times::default(), Times::default(), Times::default());
    for turn in 0..TURNS {
        marks(&site, &healthy, &format!("alone{turn}"), &mut alone)?;
        let askers = [Asker::start(health, "/health"), Asker::start(metrics, "/metrics")];
        marks(&site, &healthy, &format!("asked{turn}"), &mut asked)?;
        for asker in askers {
            answers.0.extend(asker.end()?.0);
        }
    }
    site.end(Signal::SIGKILL)?;
    line(&format!("mark -> POST beside {OPEN} open marks"), &alone);
    line("the same, with 200 requests a second", &asked);
    ratio("p99 with to p99 without", asked.percentile(99) / alone.percentile(99), "<= 1.1");
    line("an answer of /health or /metrics", &answers);
    ratio("its p99 to 50 ms", answers.percentile(99) / 50.0, "<= 1");
    Ok(())
}

fn sink() -> std::io::Result<Sink> {
    Sink::on_loopback(USUAL_IN_FLIGHT, Manner::After(Duration::ZERO))
}

/// An address that nobody has now.
fn free() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn marks(site: &Site, healthy: &Sink, name: &str, times: &mut Times) -> anyhow::Result<()> {
    for round in 0..ROUNDS {
        times.add(notify(site, healthy, &format!("{name}-{round}"))?);
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Asks one path again and again, at a steady pace, on a connection for each.
struct Asker {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    thread: JoinHandle<anyhow::Result<Times>>,
}

impl Asker {
    fn start(address: SocketAddr, path: &'static str) -> Self {
        let (stop, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&asked));
        let thread = thread::spawn(move || {
            let (mut times, mut next) = (Times::default(), Instant::now());
            while !stopped.load(Ordering::Relaxed) {
                times.time(|| ask(address, path))?;
                count.fetch_add(1, Ordering::Relaxed);
                next += EVERY;
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            Ok(times)
        });
        Self { stop, asked, thread }
    }

    fn end(self) -> anyhow::Result<Times> {
        self.stop.store(true, Ordering::Relaxed);
        let times = self.thread.join().expect("it does not panic")?;
        ensure!(self.asked.load(Ordering::Relaxed) > 0, "nobody asked");
        Ok(times)
    }
}

fn ask(address: SocketAddr, path: &str) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{path}: {}", String::from_utf8_lossy(&answer));
    Ok(())
}
