//! An endpoint for benchmarks: threads that answer as fast as they can, or as badly as the benchmark says, and that keep what
//! came. [`crate::receiver`] can do more, and is slower.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_timerslack;
use nix::sys::socket::{self, shutdown};

use crate::receiver::own_loopback;

/// How each request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// 202 after this time, whatever else is under way.
    After(Duration),
    /// 202, one request after the other, each of which takes this time.
    Serially(Duration),
    /// 503 at once.
    Busy,
    /// Not at all, until the caller gives up.
    Silent,
    /// 202 and the whole header at once, then a byte of the body each second.
    Dripping,
}

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
    manner: Manner,
    came: Mutex<Came>,
    enough: Condvar,
    /// Until when the requests that came keep a serial endpoint.
    free_at: Mutex<Instant>,
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
    pub fn on_loopback(workers: usize, manner: Manner) -> io::Result<Self> {
        let address = TcpListener::bind((own_loopback(), 0))?.local_addr()?;
        let shared = Arc::new(Shared {
            manner,
            came: Mutex::default(),
            enough: Condvar::new(),
            free_at: Mutex::new(Instant::now()),
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

    /// When a serial endpoint is done with a request that has just come.
    fn turn(&self, each: Duration) -> Instant {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = (*free_at).max(Instant::now()) + each;
        *free_at
    }
}

/// Answers the requests of one connection until either side ends it.
fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::with_capacity(4096);
    while let Some(request) = read(&mut stream, &mut unread)? {
        shared.note(request.body);
        answer(&mut stream, shared, request.is_last)?;
        if request.is_last {
            break;
        }
    }
    stream.shutdown(Shutdown::Both)
}

fn answer(stream: &mut TcpStream, shared: &Shared, is_last: bool) -> io::Result<()> {
    match shared.manner {
        Manner::After(delay) => {
            thread::sleep(delay);
            say(stream, "202 Accepted", is_last)
        }
        Manner::Serially(each) => {
            thread::sleep(shared.turn(each).saturating_duration_since(Instant::now()));
            say(stream, "202 Accepted", is_last)
        }
        Manner::Busy => say(stream, "503 Service Unavailable", is_last),
        Manner::Silent => until_gone(stream),
        Manner::Dripping => drip(stream),
    }
}

/// One write for each answer: a second one would wait 40 ms for the acknowledgement of the first.
fn say(stream: &mut TcpStream, status: &str, is_last: bool) -> io::Result<()> {
    let close = if is_last { "connection: close\r\n" } else { "" };
    stream.write_all(format!("HTTP/1.1 {status}\r\n{close}content-length: 0\r\n\r\n").as_bytes())
}

/// Waits until the caller has closed the connection or it was cut.
fn until_gone(stream: &mut TcpStream) -> io::Result<()> {
    while stream.read(&mut [0; 512])? > 0 {}
    Err(ErrorKind::ConnectionAborted.into())
}

fn drip(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 4096\r\n\r\n")?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    loop {
        match until_gone(stream) {
            Err(quiet) if matches!(quiet.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                stream.write_all(b".")?;
            }
            gone => return gone,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    fn sink(manner: Manner) -> Sink {
        Sink::on_loopback(4, manner).unwrap()
    }

    fn post(stream: &mut TcpStream, body: &str, fields: &str) {
        let length = body.len();
        let request =
            format!("POST /x HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
    }

    fn heard(stream: &mut TcpStream) -> String {
        let mut answer = [0; 200];
        let length = stream.read(&mut answer).unwrap_or(0);
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    fn bodies(sink: &Sink) -> Vec<String> {
        sink.take().into_iter().map(|arrival| String::from_utf8(arrival.body).unwrap()).collect()
    }

    #[test]
    fn a_connection_is_kept_until_the_caller_asks_for_its_end() {
        let sink = sink(Manner::After(Duration::ZERO));
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        post(&mut stream, "one", "");
        let kept = heard(&mut stream);
        assert!(kept.starts_with("HTTP/1.1 202 ") && !kept.contains("close"), "{kept}");
        post(&mut stream, "two", "Connection: close\r\n");
        assert!(heard(&mut stream).contains("connection: close"));
        assert_eq!(heard(&mut stream), "");
        assert_eq!(bodies(&sink), ["one", "two"]);
        assert!(sink.take().is_empty(), "they were taken");
    }

    #[test]
    fn requests_that_come_in_pieces_or_together_are_distinguished() {
        let text =
            b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nonePOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\ntwo";
        for length in [1, 7, text.len()] {
            let (mut pieces, mut unread) = (Pieces { left: text, length }, Vec::new());
            for body in [b"one", b"two"] {
                assert_eq!(read(&mut pieces, &mut unread).unwrap().unwrap().body, body);
            }
            assert!(read(&mut pieces, &mut unread).unwrap().is_none());
        }
    }

    struct Pieces<'a> {
        left: &'a [u8],
        length: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.length.min(into.len()).min(self.left.len());
            let (now, later) = self.left.split_at(length);
            into[..length].copy_from_slice(now);
            self.left = later;
            Ok(length)
        }
    }

    #[test]
    fn one_that_is_down_refuses_and_cuts_its_callers() {
        let mut sink = sink(Manner::Silent);
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        post(&mut stream, "one", "");
        assert!(sink.wait_for(1, LONG));
        sink.down();
        assert_eq!(heard(&mut stream), "");
        assert!(TcpStream::connect(sink.address()).is_err());
        sink.up().unwrap();
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        post(&mut stream, "two", "");
        assert!(sink.wait_for(2, LONG) && !sink.wait_for(3, Duration::ZERO));
    }

    #[test]
    fn a_slow_body_comes_behind_a_whole_header() {
        let sink = sink(Manner::Dripping);
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        post(&mut stream, "one", "");
        assert!(heard(&mut stream).ends_with("content-length: 4096\r\n\r\n"));
        assert_eq!(heard(&mut stream), ".");
        assert_eq!(heard(&mut stream), ".");
    }

    /// The broken variant reads the requests one by one: each of them is done after its own time alone.
    #[test]
    fn a_serial_endpoint_is_done_with_one_after_the_other() {
        let (sink, each) = (sink(Manner::Serially(LONG)), LONG);
        let first = sink.shared.turn(each);
        assert_eq!(sink.shared.turn(each) - first, each);
        assert_eq!(sink.shared.turn(each) - first, 2 * each);
    }

    #[test]
    fn a_busy_one_says_so() {
        let sink = sink(Manner::Busy);
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        post(&mut stream, "one", "");
        assert!(heard(&mut stream).starts_with("HTTP/1.1 503 "));
    }
}
