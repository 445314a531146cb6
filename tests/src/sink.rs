//! An endpoint for benchmarks: threads that answer 202 as fast as they are told to, and that keep what came. [`crate::receiver`] can do more, and is slower.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_timerslack;
use nix::sys::socket::{self, shutdown};

use crate::receiver::own_loopback;

/// One request.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When its last byte had come.
    pub at: Instant,
    /// Exactly as it came.
    pub body: Vec<u8>,
}

/// Listens until it is dropped; may be taken down and up on the same address meanwhile.
pub struct Sink {
    address: SocketAddr,
    workers: usize,
    shared: Arc<Shared>,
    open: Option<Open>,
}

struct Open {
    listener: Arc<TcpListener>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// How long each answer takes.
    delay: Duration,
    came: Mutex<Came>,
    enough: Condvar,
    callers: Mutex<Callers>,
}

#[derive(Default)]
struct Came {
    arrivals: Vec<Arrival>,
    /// How many somebody waits for.
    awaited: Option<usize>,
}

/// The connection of each worker, so that all of them can be cut.
#[derive(Default)]
struct Callers {
    streams: Vec<Option<TcpStream>>,
    closed: bool,
}

impl Sink {
    /// Listens on a loopback address of its own. No more than `workers` connections are served at once: one that is kept
    /// open keeps its worker.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn on_loopback(workers: usize, delay: Duration) -> io::Result<Self> {
        let address = TcpListener::bind((own_loopback(), 0))?.local_addr()?;
        let shared = Arc::new(Shared {
            delay,
            came: Mutex::default(),
            enough: Condvar::new(),
            callers: Mutex::default(),
        });
        let mut sink = Self { address, workers, shared, open: None };
        sink.up()?;
        Ok(sink)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and every connection: callers are refused.
    pub fn down(&mut self) {
        let Some(open) = self.open.take() else { return };
        // `shutdown` on a listening socket ends every waiting `accept`; the port closes with the last descriptor.
        let _ = shutdown(open.listener.as_raw_fd(), socket::Shutdown::Both);
        drop(open.listener);
        self.shared.callers().cut();
        open.workers.into_iter().for_each(|worker| drop(worker.join()));
    }

    /// Opens the port again.
    ///
    /// # Errors
    /// When the address cannot be had any more.
    pub fn up(&mut self) -> io::Result<()> {
        if self.open.is_none() {
            let listener = Arc::new(TcpListener::bind(self.address)?);
            let streams = (0..self.workers).map(|_| None).collect();
            *self.shared.callers() = Callers { streams, closed: false };
            let workers = (0..self.workers).map(|number| self.worker(&listener, number)).collect();
            self.open = Some(Open { listener, workers });
        }
        Ok(())
    }

    fn worker(&self, listener: &Arc<TcpListener>, number: usize) -> JoinHandle<()> {
        let (listener, shared) = (Arc::clone(listener), Arc::clone(&self.shared));
        thread::spawn(move || {
            // The usual slack of a sleep, 50 µs, would be half a percent of a delay of 10 ms.
            let _best_effort = set_timerslack(1);
            while let Ok((stream, _)) = listener.accept() {
                if shared.callers().enter(number, &stream) {
                    let _caller_is_gone = serve(stream, &shared);
                    shared.callers().leave(number);
                }
            }
        })
    }

    /// Waits until `count` requests have come that were not taken yet; says whether they came within `limit`.
    #[must_use]
    pub fn wait_for(&self, count: usize, limit: Duration) -> bool {
        let mut came = self.shared.came();
        came.awaited = Some(count);
        let few = |came: &mut Came| came.arrivals.len() < count;
        let waited = self.shared.enough.wait_timeout_while(came, limit, few);
        let mut came = waited.unwrap_or_else(PoisonError::into_inner).0;
        came.awaited = None;
        came.arrivals.len() >= count
    }

    /// Takes every request that came since the last time, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut self.shared.came().arrivals)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.down();
    }
}

impl Callers {
    /// Whether the caller is served; kept for the time when the port is closed.
    fn enter(&mut self, number: usize, stream: &TcpStream) -> bool {
        if self.closed {
            return false;
        }
        self.streams[number] = stream.try_clone().ok();
        self.streams[number].is_some()
    }

    fn leave(&mut self, number: usize) {
        if let Some(stream) = self.streams.get_mut(number) {
            *stream = None;
        }
    }

    fn cut(&mut self) {
        self.closed = true;
        self.streams.drain(..).flatten().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

impl Shared {
    fn came(&self) -> MutexGuard<'_, Came> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callers(&self) -> MutexGuard<'_, Callers> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, body: Vec<u8>) {
        let mut came = self.came();
        came.arrivals.push(Arrival { at: Instant::now(), body });
        // Waking somebody for each request would slow the one that is measured.
        if came.awaited.is_some_and(|count| came.arrivals.len() >= count) {
            self.enough.notify_all();
        }
    }
}

/// Answers the requests of one connection until either side ends it.
fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::with_capacity(4096);
    while let Some(request) = read(&mut stream, &mut unread)? {
        shared.note(request.body);
        thread::sleep(shared.delay);
        say(&mut stream, request.is_last)?;
        if request.is_last {
            break;
        }
    }
    stream.shutdown(Shutdown::Both)
}

/// One write for each answer: a second one would wait 40 ms for the acknowledgement of the first.
fn say(stream: &mut TcpStream, is_last: bool) -> io::Result<()> {
    let close = if is_last { "connection: close\r\n" } else { "" };
    stream.write_all(format!("HTTP/1.1 202 Accepted\r\n{close}content-length: 0\r\n\r\n").as_bytes())
}

struct Request {
    body: Vec<u8>,
    /// The caller asks that the connection be closed behind it.
    is_last: bool,
}

/// Reads one request; later bytes stay in `unread`. None where the caller has ended the connection.
fn read(stream: &mut impl Read, unread: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let head = loop {
        match unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            Some(end) => break end + 4,
            None if !more(stream, unread)? => return Ok(None),
            None => {}
        }
    };
    let header = String::from_utf8_lossy(&unread[..head]).to_ascii_lowercase();
    let length = field(&header, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while unread.len() < head + length {
        if !more(stream, unread)? {
            return Ok(None);
        }
    }
    let body = unread.drain(..head + length).skip(head).collect();
    Ok(Some(Request { body, is_last: field(&header, "connection") == Some("close") }))
}

fn more(stream: &mut impl Read, unread: &mut Vec<u8>) -> io::Result<bool> {
    let mut bytes = [0; 4096];
    let length = stream.read(&mut bytes)?;
    unread.extend_from_slice(&bytes[..length]);
    Ok(length > 0)
}

/// A field of a header in lower case.
fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = header.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
}
