//! An alerter, as the cluster, its agents, its operators and its receivers see it.

use std::collections::BTreeMap;

use marks::host::HostName;
use marks::id::{FencingId, MarkId, NoteId};
use marks::time::Timestamp;

use crate::scene::Scene;
use crate::story::{Cut, Forgery};
use crate::world::World;

/// The three controllers' alerter, its agents and its disks. One runs at a time, on `world.clock.active`; by that clock every time is
/// said.
pub trait Alerter {
    /// `fence_mark` ran on a controller; where the disk there is not written, the register alone has what it says.
    fn off(&mut self, world: &mut World, controller: usize, fenced: &Fenced);
    /// `fence_mark` is monitored there: what that disk has and the register lacks is published.
    fn monitor(&mut self, world: &mut World, controller: usize);
    /// The alerter starts on the active controller.
    fn start(&mut self, world: &World);
    /// It is killed.
    fn kill(&mut self);
    /// Something in the cluster may have changed.
    fn wake(&mut self, now: u64);
    /// One turn of its engine; gives where it was killed, or that it could not write.
    fn pass(&mut self, scene: &mut Scene, cut: Option<Cut>) -> Result<(), Cut>;
    /// What it waits for, and when that comes, in milliseconds since the story began.
    fn reasons(&self, world: &World) -> Vec<(&'static str, u64)>;
    /// Its monitor fails, for want of a disk since `world.trouble`.
    fn is_better_elsewhere(&self, world: &World) -> bool;
    /// An operator or a receiver says something; gives whether it was taken.
    fn decide(&mut self, command: &Command, at: Timestamp) -> bool;
    /// Something befalls the disk of a controller.
    fn disk(&mut self, controller: usize, what: Disk<'_>);
    /// The entry of the register, key and value, by which somebody claims what is not so.
    fn forge(&mut self, world: &mut World, fake: Fake) -> (String, String);
    /// What it shows.
    fn status(&mut self, world: &World) -> Status;
    /// What it shows of a mark's deliveries, and whether one is damaged.
    fn deliveries(&self, mark: MarkId) -> (Vec<Delivery>, bool);
}

/// A record of `fence_mark`.
#[derive(Clone, Debug)]
pub struct Fenced {
    /// Its own id, which is its mark's.
    pub id: FencingId,
    /// Who was fenced.
    pub host: HostName,
    /// By the clock of the controller.
    pub at: Timestamp,
}

/// What a disk does.
pub enum Disk<'a> {
    /// Of each kind of thing that is written there, this says whether it is full for that.
    Fills(&'a mut dyn FnMut() -> bool),
    /// It is a new one.
    IsWiped,
    /// A part of this mark is damaged.
    Damages(MarkId),
}

/// What nobody wrote who should.
#[derive(Clone, Debug)]
pub enum Fake {
    /// A mark has ended, says a controller that does not exist.
    Ends(MarkId, Timestamp),
    /// The host of a mark is back.
    Returns(MarkId, Timestamp),
    /// A host was fenced; the record names its connection, or (false) none.
    Fences(Fenced, bool),
    /// It has a mark, in this form.
    Marks(Fenced, Forgery),
    /// Everything is paused.
    Pauses(NoteId, Timestamp),
    /// A mark is released.
    Releases(NoteId, MarkId, Timestamp),
}

/// Of whom somebody speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everybody.
    All,
    /// A group.
    Group(String),
    /// One host.
    Host(HostName),
}

/// What an operator or a receiver says.
#[derive(Clone, Debug)]
pub enum Command {
    /// Nothing is sent.
    Pause(NoteId, Scope, Option<Timestamp>),
    /// It is worked on.
    Maintain(NoteId, Scope, Timestamp),
    /// One of these is over.
    End(NoteId),
    /// A mark may be sent.
    Release(NoteId, MarkId),
    /// What a group has now may be sent.
    ReleaseGroup(NoteId, String),
    /// What a route's terms keep back may be sent.
    LetGo(MarkId),
    /// A mark is ended.
    Unmark(MarkId),
    /// A route's receiver has a mark, or (true) does not take it.
    Confirm(String, MarkId, bool),
}

/// What an alerter shows.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The marks that have changed since this was asked last, or since the start.
    pub marks: Vec<Mark>,
    /// By what each mark is held, the displayed reason first.
    pub holds: BTreeMap<MarkId, Vec<String>>,
    /// Records without an end that can be shown.
    pub gaps: Vec<String>,
}

/// A mark, as it is shown.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its id.
    pub id: MarkId,
    /// Its host.
    pub node: HostName,
    /// When that failed.
    pub failure_time: Timestamp,
    /// Which controller's alerter made it.
    pub made_by: String,
    /// When.
    pub made_at: Timestamp,
    /// Its proof or doubt, in a word.
    pub standing: &'static str,
    /// It is a doubt.
    pub is_doubted: bool,
    /// How and when it ended.
    pub settled: Option<(&'static str, Timestamp)>,
    /// When its host was back, by the clock of whoever saw it.
    pub returned_at: Option<Timestamp>,
    /// When this controller learned that.
    pub return_known_at: Option<Timestamp>,
}

/// A mark's way to a route, as it is shown.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The route, and behind a point the step that follows it.
    pub route: String,
    /// Its state, in a word.
    pub state: &'static str,
    /// Its mark stays open until the route has it.
    pub required: bool,
    /// It is a step of a chain.
    pub is_in_chain: bool,
    /// It waits for its turn there.
    pub waits_in_chain: bool,
    /// Since when it is its turn.
    pub turn: Option<Timestamp>,
    /// Attempts begun.
    pub attempts: u32,
    /// What is sent.
    pub body: Vec<u8>,
    /// What came of the newest attempt, in a word, and when.
    pub last: Option<(String, Timestamp)>,
    /// When an operator released it.
    pub released_at: Option<Timestamp>,
}

impl Delivery {
    /// Its route without the step.
    pub fn base(&self) -> &str {
        self.route.split('.').next().unwrap_or_default()
    }

    /// Whether it reports a return.
    pub fn is_return(&self) -> bool {
        self.route.ends_with(".return")
    }

    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.route, self.state)
    }
}

/// What comes of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The receiver has it.
    Taken,
    /// It has accepted it, and says later whether it has it.
    Accepted,
    /// It does not take this host's message.
    Rejected,
    /// It takes nobody's.
    Refused,
    /// It cannot now.
    Busy,
    /// Nobody knows.
    TimedOut,
    /// There was no connection.
    Unreachable,
}
