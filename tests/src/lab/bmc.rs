//! The host's side of the lab: power devices that really end and boot nodes, and the record of what the fencer asked for.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde_json::{Value, json};

use super::plan::Products;
use super::rack::Rack;
use super::{disk, wire};

/// What happened, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A power device was asked.
    Power {
        /// `on`, `off`, `reboot` or `status`.
        action: String,
        /// The node that was meant.
        target: String,
        /// Whether the device did it.
        worked: bool,
    },
    /// The fencer called `fence_mark`.
    Called(Call),
    /// That call ended.
    Returned {
        /// The index of the [`Event::Called`] in the record.
        call: usize,
        /// Its exit code.
        rc: u8,
    },
}

/// What the fencer gave to `fence_mark`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The controller it ran on.
    pub node: String,
    /// Without the program's name.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub environment: BTreeMap<String, String>,
    /// Standard input.
    pub input: String,
}

impl Call {
    /// A value from standard input.
    #[must_use]
    pub fn given(&self, key: &str) -> Option<&str> {
        self.input.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    /// What was asked for.
    #[must_use]
    pub fn action(&self) -> &str {
        self.given("action").unwrap_or_default()
    }
}

/// The program that the fencer finds as `fence_mark`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkMode {
    /// The real agent and nothing beside it.
    Real,
    /// A recorder that runs the real agent.
    Recorded,
    /// A recorder that runs nothing and fails where a mark is asked for, and runs the real agent else: a device whose monitor
    /// fails is stopped, and does not fail then.
    Failing,
    /// A recorder that runs nothing and succeeds: for the tests of the lab itself.
    StandIn,
}

/// A fault of one node's power device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails.
    Dead,
    /// It does nothing and says that it did.
    Lying,
    /// It takes the power, and the node does not boot again.
    NoBoot,
    /// It takes the power at once, and needs [`SLOW`] to give it back.
    SlowOn,
}

/// How long a slow power device takes to switch on.
const SLOW: Duration = Duration::from_secs(20);

/// Whether every power device fails, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dead {
    No,
    Yes,
    UntilOff,
}

/// Power devices and their record.
pub struct Bmc {
    lab: PathBuf,
    dead: Mutex<Dead>,
    faults: Mutex<BTreeMap<String, Fault>>,
    /// Whether calls of `fence_mark` for `off` wait where they are.
    held: Mutex<bool>,
    released: Condvar,
    mode: Mutex<MarkMode>,
    record: Mutex<Vec<(SystemTime, Event)>>,
}

impl Bmc {
    /// Makes every power device fail, or work again.
    pub fn set_dead(&self, dead: bool) {
        *lock(&self.dead) = if dead { Dead::Yes } else { Dead::No };
    }

    /// Makes every power device work again with the next `off`. A fencing whose first level has failed meanwhile asks its
    /// second one for a `reboot`, which still fails: no level without a mark gets the host.
    pub fn work_from_next_off(&self) {
        *lock(&self.dead) = Dead::UntilOff;
    }

    fn is_dead_for(&self, action: &str) -> bool {
        let mut dead = lock(&self.dead);
        if *dead == Dead::UntilOff && action == "off" {
            *dead = Dead::No;
        }
        *dead != Dead::No
    }

    /// Breaks the power device of one node.
    pub fn break_for(&self, node: &str, fault: Fault) {
        lock(&self.faults).insert(node.to_owned(), fault);
    }

    /// Keeps every call of `fence_mark` for `off` before the agent begins, or lets them go on; each is on the record.
    pub fn hold_marks(&self, held: bool) {
        *lock(&self.held) = held;
        self.released.notify_all();
    }

    /// Every power device works again, and nothing is kept.
    pub fn repair(&self) {
        self.hold_marks(false);
        self.set_dead(false);
        lock(&self.faults).clear();
    }

    /// Chooses what the fencer runs as `fence_mark` from now on.
    ///
    /// # Errors
    /// When the program cannot be put in place.
    pub fn set_mark(&self, mode: MarkMode) -> anyhow::Result<()> {
        *lock(&self.mode) = mode;
        disk::choose_mark_agent(&self.lab, mode != MarkMode::Real)
    }

    /// Everything since the lab was booted.
    #[must_use]
    pub fn record(&self) -> Vec<Event> {
        lock(&self.record).iter().map(|(_, event)| event.clone()).collect()
    }

    /// The calls of `fence_mark off` behind so many events, with their exit codes.
    #[must_use]
    pub fn offs_since(&self, events: usize) -> Vec<(Call, Option<u8>)> {
        let record = self.record();
        let exit = |index: usize| {
            record.iter().find_map(|event| match event {
                Event::Returned { call, rc } if *call == index => Some(*rc),
                _ => None,
            })
        };
        let off = |(index, event): (usize, &Event)| match event {
            Event::Called(call) if call.action() == "off" => Some((call.clone(), exit(index))),
            _ => None,
        };
        record.iter().enumerate().skip(events).filter_map(off).collect()
    }

    /// Everything since the lab was booted, with the time at which it ended.
    #[must_use]
    pub fn timed_record(&self) -> Vec<(SystemTime, Event)> {
        lock(&self.record).clone()
    }

    fn note(&self, event: Event) -> usize {
        let mut record = lock(&self.record);
        record.push((SystemTime::now(), event));
        record.len() - 1
    }

    fn answer(&self, question: &Value, rack: &Rack) -> Value {
        match wire::text(question, "do") {
            "power" => self.power(wire::text(question, "action"), wire::text(question, "target"), rack),
            "called" => self.called(question),
            "returned" => self.returned(question),
            _ => json!({"rc": 1}),
        }
    }

    fn power(&self, action: &str, target: &str, rack: &Rack) -> Value {
        let fault = lock(&self.faults).get(target).copied();
        let rc = match fault {
            _ if self.is_dead_for(action) => 1,
            Some(Fault::Dead) => 1,
            Some(Fault::Lying) => 0,
            Some(Fault::NoBoot) if action == "reboot" => switch("off", target, rack),
            Some(Fault::NoBoot) if action == "on" => 0,
            Some(Fault::SlowOn) if action == "on" => {
                thread::sleep(SLOW);
                switch(action, target, rack)
            }
            Some(Fault::NoBoot | Fault::SlowOn) | None => switch(action, target, rack),
        };
        let (action, target) = (action.to_owned(), target.to_owned());
        self.note(Event::Power { action, target, worked: rc != 1 });
        json!({"rc": rc})
    }

    fn called(&self, question: &Value) -> Value {
        let pairs = question["environment"].as_object().into_iter().flatten();
        let pairs = pairs.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
        let words = question["arguments"].as_array().into_iter().flatten();
        let call = Call {
            node: wire::text(question, "node").to_owned(),
            arguments: words.map(|word| word.as_str().unwrap_or_default().to_owned()).collect(),
            environment: pairs.collect(),
            input: wire::text(question, "input").to_owned(),
        };
        let is_off = call.action() == "off";
        let call = self.note(Event::Called(call));
        if is_off {
            drop(self.released.wait_while(lock(&self.held), |held| *held));
        }
        let mode = match *lock(&self.mode) {
            MarkMode::Failing if !is_off => MarkMode::Recorded,
            mode => mode,
        };
        json!({"call": call, "mode": word(mode)})
    }

    fn returned(&self, answer: &Value) -> Value {
        let number = |key: &str| answer[key].as_u64().unwrap_or_default();
        let rc = number("rc").try_into().unwrap_or(u8::MAX);
        self.note(Event::Returned { call: number("call").try_into().unwrap_or_default(), rc });
        json!({})
    }
}

fn word(mode: MarkMode) -> &'static str {
    match mode {
        MarkMode::Real | MarkMode::Recorded => "real",
        MarkMode::Failing => "fail",
        MarkMode::StandIn => "stand-in",
    }
}

/// Exit codes of a fence agent: 0, 1, and for `status` 2 for off.
fn switch(action: &str, target: &str, rack: &Rack) -> u8 {
    let done = match action {
        "off" => rack.power_off(target),
        "on" => rack.power_on(target),
        "reboot" => rack.power_off(target).and_then(|()| rack.power_on(target)),
        "status" if rack.is_on(target) => Ok(()),
        "status" => return 2,
        _ => return 1,
    };
    u8::from(done.is_err())
}

/// The threads behind the lab's socket.
pub(super) struct Service {
    bmc: Arc<Bmc>,
    listener: Arc<UnixListener>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub(super) fn start(lab: &Path, rack: Arc<Rack>, products: Option<&Products>) -> anyhow::Result<Self> {
        let mode = if products.is_some() { MarkMode::Recorded } else { MarkMode::StandIn };
        let bmc = Arc::new(Bmc {
            lab: lab.to_owned(),
            dead: Mutex::new(Dead::No),
            faults: Mutex::default(),
            held: Mutex::default(),
            released: Condvar::new(),
            mode: Mutex::new(mode),
            record: Mutex::default(),
        });
        let listener = Arc::new(listen(&lab.join("shared")).context("the lab's socket")?);
        let (accepting, answering) = (Arc::clone(&listener), Arc::clone(&bmc));
        let thread = thread::spawn(move || {
            let mut calls = Vec::new();
            // An error means that the socket was shut down by `drop`.
            while let Ok((stream, _)) = accepting.accept() {
                let (bmc, rack) = (Arc::clone(&answering), Arc::clone(&rack));
                calls.push(thread::spawn(move || serve(stream, &bmc, &rack)));
            }
            calls.into_iter().for_each(|call| drop(call.join()));
        });
        Ok(Self { bmc, listener, thread: Some(thread) })
    }

    pub(super) fn bmc(&self) -> &Arc<Bmc> {
        &self.bmc
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A call that is kept would keep the thread that answers it.
        self.bmc.hold_marks(false);
        let _ = nix::sys::socket::shutdown(self.listener.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Listens below an open directory: the path of a socket may have 107 bytes, that of a lab may have more.
fn listen(directory: &Path) -> anyhow::Result<UnixListener> {
    let directory = File::open(directory)?;
    let name = Path::new(wire::SOCKET).file_name().context("the socket has a name")?;
    Ok(UnixListener::bind(Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))?)
}

fn serve(mut stream: UnixStream, bmc: &Bmc, rack: &Rack) {
    let answered =
        wire::read(&stream).and_then(|question| wire::write(&mut stream, &bmc.answer(&question, rack)));
    if let Err(error) = answered {
        eprintln!("a node's question got no answer: {error:#}");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
