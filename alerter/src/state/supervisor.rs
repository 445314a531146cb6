//! Reports to the service manager (sd_notify): that the daemon is up, its state, and that its engine makes progress.
//!
//! Under Pacemaker there is no such manager, and this does nothing.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use site::blanked;

/// The state is reported no more often than this.
const PACE: Duration = Duration::from_secs(1);
/// Longest sentence of the state, in characters.
const SENTENCE: usize = 400;
/// A beat that could not be sent is tried again after such a part of the beat: a second with our unit.
const AGAIN: u32 = 30;
/// The watchdog is fed this often within its limit, so that a lost beat does no harm.
const PARTS: u32 = 4;
/// An engine without progress for so long is stuck, if no watchdog has another limit: as `WatchdogSec=` in the unit.
pub const WEDGED: Duration = Duration::from_secs(120);

/// The manager's socket, and what was reported there.
#[derive(Debug)]
pub struct Supervisor {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often the watchdog is fed; none where there is none.
    beat: Option<Duration>,
    /// An engine without progress for so long is stuck.
    limit: Duration,
    /// When it last made progress; none before its first pass.
    got_on_at: Mutex<Option<Instant>>,
    reported: Mutex<Reported>,
}

#[derive(Debug, Default)]
struct Reported {
    is_up: bool,
    state: String,
    state_at: Option<Instant>,
    beat_at: Option<Instant>,
    /// When a beat could not be sent.
    missed_at: Option<Instant>,
    is_ending: bool,
}

impl Supervisor {
    /// By `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    pub fn of_environment() -> Self {
        Self::new(|name| std::env::var_os(name), std::process::id())
    }

    fn new(variable: impl Fn(&str) -> Option<OsString>, pid: u32) -> Self {
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let socket = variable("NOTIFY_SOCKET").and_then(|name| connect(name.as_bytes()));
        // Without it the limit is meant for us; the manager sets it where another process may inherit it.
        let is_ours = variable("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(pid.into());
        let limit = number("WATCHDOG_USEC").filter(|limit| is_ours && *limit > 0 && socket.is_some());
        let beat = limit.map(|limit| Duration::from_micros(limit) / PARTS);
        let limit = limit.map_or(WEDGED, Duration::from_micros);
        Self { socket, beat, limit, got_on_at: Mutex::default(), reported: Mutex::default() }
    }

    /// The engine has done something that needs the journal's thread too. Only this feeds the watchdog, and no timer: a stuck engine or
    /// journal starves it.
    pub fn gets_on(&self) {
        *self.got_on_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let Some(beat) = self.beat else { return };
        let mut reported = self.reported();
        // A little early rather than one beat late.
        if reported.beat_at.is_none_or(|at| at.elapsed() + beat / 8 >= beat) {
            let (now, is_said) = (Some(Instant::now()), self.say("WATCHDOG=1"));
            reported.beat_at = if is_said { now } else { reported.beat_at };
            reported.missed_at = now.filter(|_| !is_said);
        }
    }

    /// The engine has ended a pass. The first one with a poll reports that the daemon is up; the state is reported when it changes.
    pub fn passed(&self, is_up: bool, state: impl FnOnce() -> String) {
        self.gets_on();
        if self.socket.is_none() {
            return;
        }
        let mut reported = self.reported();
        if reported.is_up && reported.state_at.is_some_and(|at| at.elapsed() < PACE) {
            return;
        }
        let state = blanked(&state()).take(SENTENCE).collect::<String>();
        if is_up && !reported.is_up {
            reported.is_up = self.say("READY=1");
        }
        if state != reported.state && self.say(&format!("STATUS={state}")) {
            reported.state = state;
        }
        reported.state_at = Some(Instant::now());
    }

    /// How long the engine may wait until it has to make progress again. If the manager's queue is full it still waits a little: passes
    /// without a pause would not help.
    pub fn rest(&self) -> Option<Duration> {
        let (beat, reported) = (self.beat?, self.reported());
        let left = |at: Option<Instant>, all: Duration| at.map(|at| all.saturating_sub(at.elapsed()));
        let again = left(reported.missed_at, beat / AGAIN).unwrap_or_default();
        Some(left(reported.beat_at, beat).unwrap_or_default().max(again))
    }

    /// The configuration is read again; [`Supervisor::reloaded`] reports the end, whatever the result. Before the daemon is up nothing is
    /// reported: it would count as being up.
    pub fn reloading(&self) {
        if !self.reported().is_up {
            return;
        }
        // systemd.service(5), Type=notify-reload: the moment is compared with that of the signal.
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
    }

    /// The reading has ended.
    pub fn reloaded(&self) {
        let reported = self.reported();
        if reported.is_up && !reported.is_ending {
            self.say("READY=1");
        }
    }

    /// The daemon ends.
    pub fn stopping(&self) {
        self.reported().is_ending = true;
        self.say("STOPPING=1\nSTATUS=waits for attempts in flight and records acknowledgements");
    }

    /// How long the engine has made no progress, if a watchdog would end the daemon for it. The OCF agent's monitor goes by it, since
    /// under Pacemaker there is no watchdog.
    pub fn wedged(&self) -> Option<Duration> {
        let at = *self.got_on_at.lock().unwrap_or_else(PoisonError::into_inner);
        at.map(|at| at.elapsed()).filter(|time| *time >= self.limit)
    }

    /// Never waits: a manager that does not listen must not hold a delivery.
    fn say(&self, what: &str) -> bool {
        let Some((socket, place)) = &self.socket else { return false };
        socket.send_to_addr(what.as_bytes(), place).is_ok()
    }

    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path, or with an `@` before it a name in the kernel alone.
fn connect(name: &[u8]) -> Option<(UnixDatagram, SocketAddr)> {
    let place = match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok()?,
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)).ok()?,
        _ => return None,
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    Some((socket, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> (UnixDatagram, String) {
        let name = format!("nova-host-alerter-test-{}-{:?}", std::process::id(), std::thread::current().id());
        let place = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&place).unwrap();
        socket.set_nonblocking(true).unwrap();
        (socket, format!("@{name}"))
    }

    fn heard(socket: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 1024];
        let next =
            || socket.recv(&mut buffer).ok().map(|n| String::from_utf8_lossy(&buffer[..n]).into_owned());
        std::iter::from_fn(next).collect()
    }

    fn supervisor(variables: &[(&str, &str)]) -> Supervisor {
        let all: Vec<(String, OsString)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        Supervisor::new(|name| Some(all.iter().find(|(known, _)| known == name)?.1.clone()), 77)
    }

    /// The broken variant has the engine make one pass after the other for as long as nobody listens.
    #[test]
    fn a_beat_that_nobody_hears_is_no_reason_to_hurry() {
        let (socket, name) = listener();
        let supervisor = supervisor(&[("NOTIFY_SOCKET", &name), ("WATCHDOG_USEC", "86400000000")]);
        drop(socket);
        assert_eq!(supervisor.rest(), Some(Duration::ZERO), "nothing was tried");
        supervisor.gets_on();
        let rest = supervisor.rest().unwrap();
        assert!(rest > Duration::from_secs(60) && rest <= Duration::from_secs(720), "{rest:?}");
    }

    /// The broken variant that ignores `WATCHDOG_PID` feeds the watchdog of another process.
    #[test]
    fn the_watchdog_is_fed_where_it_is_ours() {
        let (socket, name) = listener();
        let socket_name = ("NOTIFY_SOCKET", name.as_str());
        let day = ("WATCHDOG_USEC", "86400000000");
        for ours in [vec![socket_name, day], vec![socket_name, day, ("WATCHDOG_PID", "77")]] {
            let supervisor = supervisor(&ours);
            assert_eq!(supervisor.rest(), Some(Duration::ZERO));
            supervisor.gets_on();
            supervisor.gets_on();
            assert_eq!(heard(&socket), ["WATCHDOG=1"]);
            assert!(supervisor.rest() > Some(Duration::from_secs(21_000)));
        }
        for other in [
            vec![socket_name, day, ("WATCHDOG_PID", "78")],
            vec![socket_name, day, ("WATCHDOG_PID", "x")],
            vec![socket_name, ("WATCHDOG_USEC", "0")],
            vec![socket_name, ("WATCHDOG_USEC", "soon")],
            vec![day],
            vec![("NOTIFY_SOCKET", "relative"), day],
        ] {
            let supervisor = supervisor(&other);
            supervisor.gets_on();
            assert_eq!((supervisor.rest(), heard(&socket)), (None, vec![]), "{other:?}");
        }
    }
}
