//! The status page of 1,000 fenced hosts in Chromium: how soon its first byte comes and how soon there is something to see,
//! beside the same bytes from a server that does nothing but send them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;
use tests::backlog::Backlog;
use tests::browser::{self, Browser};
use tests::lab::wait;
use tests::programs::Site;
use tests::sink::{Manner, Sink};

use crate::figures::{Times, line, ratio};
use crate::route::{USUAL_IN_FLIGHT, tables};

/// Open marks, of 1,000 hosts: one in ten was fenced twice.
const MARKS: usize = 1111;
const ROUNDS: usize = crate::size(20);
/// For so long no new page is made: each round finds an old one.
const OLD: Duration = Duration::from_millis(1100);
const BEGIN: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(10);
/// What the page loads.
const PATHS: [&str; 4] = ["/", "/page.css", "/page.js", "/icon.svg"];

pub(crate) fn run() -> anyhow::Result<()> {
    if let Some(why) = browser::cannot() {
        println!("not measured: {why}");
        return Ok(());
    }
    let backlog = Backlog::of_marks(MARKS, &["recovery"])?;
    let mut sink = Sink::on_loopback(USUAL_IN_FLIGHT, Manner::After(Duration::ZERO))?;
    sink.down();
    let page = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let routes = tables(USUAL_IN_FLIGHT, &[("recovery", sink.address())]);
    let mut site = Site::with(&format!("{routes}\n[page]\nuri = \"tcp://{page}\"\n"))?;
    backlog.lay_into(&site)?;
    site.launch()?;
    wait::until("the page to show the hosts", BEGIN, || Ok(is_complete(&ask(page, "/")?).then_some(())))?;
    let floor = floor(page)?;
    let browser = Browser::open()?;
    let (mut ours, mut floors) = (Sight::default(), Sight::default());
    for _ in 0..ROUNDS {
        thread::sleep(OLD);
        ours.measure(&browser, page)?;
        floors.measure(&browser, floor)?;
    }
    site.end(Signal::SIGKILL)?;
    line(&format!("the page of {} hosts, in KiB", backlog.hosts()), ask(floor, "/")?.len() / 1024);
    line("GET / -> first byte", &ours.first_byte);
    line("the same bytes, sent statically", &floors.first_byte);
    line("GET / -> first paint", &ours.paint);
    line("the same bytes, sent statically", &floors.paint);
    ratio("first paint to that of the same bytes", ours.paint.median() / floors.paint.median(), "<= 1.5");
    ratio("first paint to 300 ms, median", ours.paint.median() / 300.0, "<= 1");
    Ok(())
}

/// What a browser measures.
#[derive(Default)]
struct Sight {
    first_byte: Times,
    paint: Times,
}

impl Sight {
    fn measure(&mut self, browser: &Browser, address: SocketAddr) -> anyhow::Result<()> {
        browser.go(&format!("http://{address}/"))?;
        let script = "const [page] = performance.getEntriesByType('navigation');
            const paint = performance.getEntriesByType('paint').find(one => one.name === 'first-contentful-paint');
            return paint ? [page.responseStart, paint.startTime] : null;";
        let seen = wait::until("something to be painted", ANSWER, || {
            Ok(Some(browser.run(script)?).filter(|seen| !seen.is_null()))
        })?;
        let time = |at: usize| seen[at].as_f64().context("no time");
        self.first_byte.0.push(time(0)?);
        self.paint.0.push(time(1)?);
        Ok(())
    }
}

/// All marks are counted, and those without a row of their own too.
fn is_complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    text.contains(&format!("<title>({MARKS}) ")) && text.contains(" more open")
}

/// Serves the bytes of the page, unchanged, until this program ends.
fn floor(page: SocketAddr) -> anyhow::Result<SocketAddr> {
    let answers: BTreeMap<&str, Vec<u8>> =
        PATHS.iter().map(|path| Ok((*path, ask(page, path)?))).collect::<anyhow::Result<_>>()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A browser opens connections ahead of what it asks.
            let answers = answers.clone();
            thread::spawn(move || serve(stream, &answers));
        }
    });
    Ok(address)
}

fn serve(mut stream: TcpStream, answers: &BTreeMap<&str, Vec<u8>>) -> std::io::Result<()> {
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            more => head.extend_from_slice(&buffer[..more]),
        }
    }
    let text = String::from_utf8_lossy(&head);
    let path = text.split(' ').nth(1).unwrap_or_default();
    let none = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(answers.get(path).map_or(&none[..], Vec::as_slice))
}

fn ask(address: SocketAddr, path: &str) -> anyhow::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{path}: {}", String::from_utf8_lossy(&answer));
    Ok(answer)
}
