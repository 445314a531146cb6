//! A recovery controller for tests: a real HTTP server that records what it gets and answers as the test says.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, ensure};
use nix::sys::socket::{setsockopt, sockopt};

/// Between two bytes of an answer that never ends.
const DRIP: Duration = Duration::from_millis(50);

/// What is done with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// An HTTP status with an empty body; the connection is kept.
    Status(u16),
    /// These bytes, written at once; then the connection is closed.
    Raw(Vec<u8>),
    /// These bytes, written at once; then the connection is reset.
    Reset(Vec<u8>),
    /// These bytes, and then one more now and then, for as long as they are taken.
    Trickle(Vec<u8>),
    /// These bytes, and then as many more as are taken.
    Flood(Vec<u8>),
    /// Nothing, until the receiver goes down.
    Silence,
}

/// One request, recorded when its last byte had come.
#[derive(Debug, Clone)]
pub struct Received {
    /// By the clock.
    pub at: SystemTime,
    /// For differences.
    pub instant: Instant,
    /// `POST /v1/host-failures HTTP/1.1`.
    pub first_line: String,
    /// In order, spelling kept.
    pub headers: Vec<(String, String)>,
    /// Exactly as it came.
    pub body: Vec<u8>,
    /// What it was answered.
    pub answer: Answer,
}

impl Received {
    /// The first header of that name, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Listens until it is dropped; may be taken down and up on the same address meanwhile.
pub struct Receiver {
    address: SocketAddr,
    listen: Box<dyn Fn() -> io::Result<TcpListener> + Send>,
    shared: Arc<Shared>,
    open: Option<Open>,
}

struct Open {
    listener: Arc<TcpListener>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    next: VecDeque<Answer>,
    about: Option<(String, Answer)>,
    usual: Option<Answer>,
    streams: Vec<TcpStream>,
}

impl Receiver {
    /// Listens on a free port of a loopback address that nobody else uses: on a shared one, a port that is closed for a
    /// while is given to another socket.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn on_loopback() -> io::Result<Self> {
        let first = TcpListener::bind((own_loopback(), 0))?;
        let address = first.local_addr()?;
        // Kept for the first time: somebody else could get the port meanwhile.
        let first = Mutex::new(Some(first));
        Self::listen(move || {
            let kept = first.lock().unwrap_or_else(PoisonError::into_inner).take();
            kept.map_or_else(|| TcpListener::bind(address), Ok)
        })
    }

    /// Listens on what `listen` gives, now and whenever it comes up again.
    ///
    /// # Errors
    /// Those of `listen`.
    pub fn listen(listen: impl Fn() -> io::Result<TcpListener> + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let listener = listen()?;
        let address = listener.local_addr()?;
        let open = Some(Open::new(listener, Arc::clone(&shared)));
        Ok(Self { address, listen: Box::new(listen), shared, open })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and every connection: callers are refused.
    pub fn down(&mut self) {
        let Some(open) = self.open.take() else { return };
        // `shutdown` on a listening socket ends a waiting `accept`; the port closes with the last descriptor.
        let _ = nix::sys::socket::shutdown(open.listener.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        drop(open.listener);
        let _ = open.thread.join();
        let streams = std::mem::take(&mut self.shared.state().streams);
        streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }

    /// Opens the port again.
    ///
    /// # Errors
    /// When the address cannot be had any more.
    pub fn up(&mut self) -> io::Result<()> {
        if self.open.is_none() {
            self.open = Some(Open::new((self.listen)()?, Arc::clone(&self.shared)));
        }
        Ok(())
    }

    /// The answer to every request from now on; 200 until changed.
    pub fn answer(&self, usual: Answer) {
        self.shared.state().usual = Some(usual);
    }

    /// The answer to every request whose body has these letters, from now on.
    pub fn answer_about(&self, letters: &str, answer: Answer) {
        self.shared.state().about = Some((letters.to_owned(), answer));
    }

    /// The answer to the next request for which there is none yet, once.
    pub fn answer_next(&self, answer: Answer) {
        self.shared.state().next.push_back(answer);
    }

    /// Every request so far.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.shared.state().received.clone()
    }

    /// Waits until `count` requests have come, and gives all that came.
    ///
    /// # Errors
    /// After `limit`, with the number that did come.
    pub fn wait_for(&self, count: usize, limit: Duration) -> anyhow::Result<Vec<Received>> {
        let few = |state: &mut State| state.received.len() < count;
        let waited = self.shared.arrived.wait_timeout_while(self.shared.state(), limit, few);
        let received = waited.unwrap_or_else(PoisonError::into_inner).0.received.clone();
        let came = received.len();
        ensure!(came >= count, "{came} of {count} requests came within {} s", limit.as_secs());
        Ok(received)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.down();
    }
}

impl Open {
    fn new(listener: TcpListener, shared: Arc<Shared>) -> Self {
        let listener = Arc::new(listener);
        let accepting = Arc::clone(&listener);
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = accepting.accept() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { listener, thread }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, mut request: Received) -> Answer {
        let mut state = self.state();
        let body = String::from_utf8_lossy(&request.body);
        let about = state.about.clone().filter(|(letters, _)| body.contains(letters.as_str()));
        let next = state.next.pop_front().or(about.map(|(_, answer)| answer));
        let answer = next.or_else(|| state.usual.clone()).unwrap_or(Answer::Status(200));
        request.answer = answer.clone();
        state.received.push(request);
        self.arrived.notify_all();
        answer
    }
}

/// Answers the requests of one connection until either side ends it.
fn serve(stream: TcpStream, shared: &Shared) {
    let Ok(for_closing) = stream.try_clone() else { return };
    shared.state().streams.push(for_closing);
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    while let Ok(request) = read(&mut reader) {
        let answer = shared.take(request);
        let is_reset = matches!(answer, Answer::Reset(_));
        if !say(&mut reader, answer).unwrap_or(false) {
            end(reader.get_ref(), is_reset, shared);
            break;
        }
    }
}

/// Ends a connection; a reset comes with the close of its last descriptor.
fn end(stream: &TcpStream, is_reset: bool, shared: &Shared) {
    if !is_reset {
        let _ = stream.shutdown(Shutdown::Both);
        return;
    }
    let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = setsockopt(stream, sockopt::Linger, &at_once);
    let peer = stream.peer_addr().ok();
    shared.state().streams.retain(|other| other.peer_addr().ok() != peer);
}

/// Writes an answer in one piece; gives whether the connection goes on.
fn say(reader: &mut BufReader<TcpStream>, answer: Answer) -> io::Result<bool> {
    match answer {
        Answer::Status(status) => {
            let text = format!("HTTP/1.1 {status} Test\r\ncontent-length: 0\r\n\r\n");
            reader.get_mut().write_all(text.as_bytes()).map(|()| true)
        }
        Answer::Raw(bytes) | Answer::Reset(bytes) => reader.get_mut().write_all(&bytes).map(|()| false),
        Answer::Trickle(bytes) => {
            reader.get_mut().write_all(&bytes)?;
            loop {
                thread::sleep(DRIP);
                reader.get_mut().write_all(b"x")?;
            }
        }
        Answer::Flood(bytes) => {
            reader.get_mut().write_all(&bytes)?;
            loop {
                reader.get_mut().write_all(&[b'x'; 4096])?;
            }
        }
        Answer::Silence => reader.read(&mut [0]).map(|_| false),
    }
}

fn read(reader: &mut impl BufRead) -> anyhow::Result<Received> {
    let first_line = line(reader)?;
    let mut headers = Vec::new();
    loop {
        let next = line(reader)?;
        if next.is_empty() {
            break;
        }
        let (name, value) = next.split_once(':').context("a header without a colon")?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.map_or(Ok(0), |(_, value)| value.parse())?];
    reader.read_exact(&mut body)?;
    let (at, instant, answer) = (SystemTime::now(), Instant::now(), Answer::Silence);
    Ok(Received { at, instant, first_line, headers, body, answer })
}

fn line(reader: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    ensure!(line.ends_with('\n'), "the connection ended");
    Ok(line.trim_end().to_owned())
}

/// A loopback address that nobody else uses, another one each time.
#[must_use]
pub fn own_loopback() -> Ipv4Addr {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), TAKEN.fetch_add(1, Ordering::Relaxed));
    let octet = |number: u32| u8::try_from(number % 254).unwrap_or_default() + 1;
    Ipv4Addr::new(127, octet(process), octet(number / 254), octet(number))
}
