//! One probe of one host: its tries, and what each kind of them says.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use std::{fmt, io};

use drivers::program::{self, End};
use marks::host::HostName;
use tokio::net::lookup_host;
use tokio::time::{Instant, sleep, timeout_at};

use super::conclusion::{Said, State, of_tries};
use super::template::Template;

/// How often a probe tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    /// After the first try.
    pub retries: u32,
    /// Between a try's end and the next one's beginning.
    pub interval: Duration,
    /// Limit of one try.
    pub timeout: Duration,
}

/// An `exec` probe. Its arguments may hold a secret, so that they do not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Exec {
    /// The program's absolute path, and its arguments.
    pub command: Vec<Template>,
    /// Limit of its one run.
    pub timeout: Duration,
}

impl fmt::Debug for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Tries {
    /// The longest that they all can take.
    pub fn longest(&self) -> Duration {
        self.timeout.saturating_mul(self.retries.saturating_add(1))
            + self.interval.saturating_mul(self.retries)
    }

    pub(super) async fn of<F: Future<Output = Said>>(&self, mut once: impl FnMut() -> F) -> Said {
        let mut said: Vec<Said> = Vec::new();
        loop {
            said.push(once().await);
            let states: Vec<State> = said.iter().map(|said| said.state).collect();
            if let Some(state) = of_tries(&states, self.retries) {
                return last_of(said, state);
            }
            sleep(self.interval).await;
        }
    }
}

/// What the last try with this state said, and how many there were.
fn last_of(said: Vec<Said>, state: State) -> Said {
    let count = said.len();
    let last = said.into_iter().rev().find(|said| said.state == state);
    let last = last.expect("a probe says what one of its tries said");
    match (count, state) {
        (2.., State::Unhealthy) => Said::new(state, format!("{} ({count} tries)", last.words)),
        _ => last,
    }
}

/// The addresses of a name; none where the name service does not know them in time.
pub(super) async fn addresses(host: &str, port: u16, deadline: Instant) -> Option<Vec<SocketAddr>> {
    let found = timeout_at(deadline, lookup_host((host, port))).await;
    Some(found.ok()?.ok()?.collect())
}

/// A try that got no connection: a failed one, as far as that can be the host's doing.
pub(super) fn no_connection(kind: io::ErrorKind, failed: State) -> Said {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, TimedOut};
    match kind {
        ConnectionRefused | ConnectionReset | ConnectionAborted | TimedOut | HostUnreachable => {
            Said::new(failed, format!("got no connection: {kind}"))
        }
        // No route (NetworkUnreachable), descriptor, port, permission: that is so on this controller.
        _ => Said::new(State::Unknown, format!("could not try to connect from this controller: {kind}")),
    }
}

/// A name without an address says nothing about the host: the name service may be away, or the name mistyped.
pub(super) fn no_address() -> Said {
    Said::new(State::Unknown, "found no address for the host's name")
}

impl Exec {
    /// Only its program's end counts, not what it prints.
    pub(super) async fn once(&self, node: &HostName) -> Said {
        let command: Vec<String> = self.command.iter().map(|part| part.fill(node.as_str())).collect();
        of_end(&program::run(&command, b"", self.timeout).await.end)
    }
}

/// What a program's end says of a host.
fn of_end(end: &End) -> Said {
    let unknown = |words: String| Said::new(State::Unknown, words);
    match end {
        End::Exit(0) => Said::new(State::Healthy, "ended with 0, which means healthy"),
        End::Exit(1) => Said::new(State::Unhealthy, "ended with 1, which means unhealthy"),
        End::Exit(75) => unknown("ended with 75, which means: ask again later".to_owned()),
        End::Exit(code) => {
            unknown(format!("ended with {code}, which means neither healthy (0) nor unhealthy (1)"))
        }
        End::Signal(signal) => unknown(format!("was ended by signal {signal}")),
        End::Timeout(limit) => unknown(format!("did not end within {} s and was killed", limit.as_secs())),
        End::Lost => unknown("ended, and the system does not say how".to_owned()),
        End::NotStarted { why, .. } => unknown(format!("cannot be started: {why}")),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Only 0 and 1 say something. The broken variant takes every failure of a program for a failure of the host: a script
    /// that is not found ends with 127.
    #[test]
    fn only_two_codes_say_something() {
        let careless = |code: i32| if code == 0 { State::Healthy } else { State::Unhealthy };
        let mut differ = 0;
        for code in 0..=255 {
            let expected = [State::Healthy, State::Unhealthy].get(code as usize).copied();
            let state = of_end(&End::Exit(code)).state;
            assert_eq!(state, expected.unwrap_or(State::Unknown), "{code}");
            differ += usize::from(careless(code) != state);
        }
        assert_eq!(differ, 254);
        let not_started = End::NotStarted { why: "Permission denied".to_owned(), passes: false };
        for end in [End::Signal(9), End::Timeout(Duration::from_secs(5)), End::Lost, not_started] {
            assert_eq!(of_end(&end).state, State::Unknown, "{end:?}");
        }
    }

    /// S0-9: what lacks on this controller is no failure of a host. The broken variant takes a controller without a route
    /// (ENETUNREACH) for a host that is down.
    #[test]
    fn only_an_unreachable_host_is_unhealthy() {
        for kind in
            [io::ErrorKind::ConnectionRefused, io::ErrorKind::HostUnreachable, io::ErrorKind::TimedOut]
        {
            assert_eq!(no_connection(kind, State::Unhealthy).state, State::Unhealthy, "{kind}");
        }
        let too_many_files = io::Error::from_raw_os_error(24).kind();
        let no_route = io::Error::from_raw_os_error(101).kind();
        for kind in
            [io::ErrorKind::PermissionDenied, io::ErrorKind::AddrNotAvailable, too_many_files, no_route]
        {
            assert_eq!(no_connection(kind, State::Unhealthy).state, State::Unknown, "{kind}");
        }
    }
}
