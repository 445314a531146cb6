//! What a driver is: its input and its outcomes.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use marks::delivery::{ACCEPTED, RETURN};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::terms::{IfReturned, Terms};
use marks::time::Timestamp;
use sha2::{Digest as _, Sha256};
use site::{Section, blanked};

use crate::kept::Unusable;
use crate::peer::Peer;
use crate::which::{HostNames, Named};

/// An endpoint that does not let us in is asked again after this time: somebody may repair the credentials at any minute,
/// and the alerter is not notified of that.
pub(crate) const LOCKED_OUT: Duration = Duration::from_secs(60);
/// The longest pause that an endpoint can ask for.
pub(crate) const LONGEST_WISH: Duration = Duration::from_secs(15 * 60);

/// One kind of driver.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its word in the configuration: routes are `[WORD.NAME]`.
    pub word: &'static str,
    /// Makes a driver of a route's table. It reads every key and notes each error; with an error it makes no driver.
    pub configure: fn(&mut Section<'_, '_>) -> Option<Arc<dyn Driver>>,
}

/// The driver of a route. If it could not be made, the table's key says why.
pub(crate) fn usable(
    table: &mut Section<'_, '_>,
    made: Result<impl Driver + 'static, Unusable>,
) -> Option<Arc<dyn Driver>> {
    let said = made.map_err(|why| table.complain(why.key, why.to_string()));
    said.ok().map(|driver| Arc::new(driver) as Arc<dyn Driver>)
}

/// `when-returned` of a driver that can notify its receiver of a return, and does not by itself.
pub(crate) fn notifies_return(table: &mut Section<'_, '_>) -> bool {
    table.choice("when-returned", &[("leave", false), ("notify", true)]).unwrap_or(false)
}

/// The further steps of such a driver.
pub(crate) fn returns(notifies_return: bool) -> &'static [Step] {
    if notifies_return { &[Step::Return] } else { &[] }
}

/// The terms of a driver whose controller might act on a host that is well again.
pub(crate) fn holds(stale_after: Option<Duration>) -> Terms {
    Terms { if_returned: IfReturned::Hold, stale_after, ..Terms::default() }
}

/// What is known of a driver before it is asked anything.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Its word in the configuration.
    pub kind: &'static str,
    /// The endpoint for people: no secret, no query.
    pub endpoint: String,
    /// What its service calls the hosts, if it has names of its own.
    pub names: Option<HostNames>,
    /// What may be left at the endpoint for a host that it was notified of, and how to undo that by hand; `None` if only the
    /// endpoint knows. `{host}` is the service's name of the host, `{lower}` the same in small letters, `{node}` Pacemaker's.
    pub undo: Option<String>,
    /// The file with its credentials, if they have one of their own.
    pub secret_file: Option<PathBuf>,
    /// What this route does for a mark once the controller has acknowledged it, as configured.
    pub steps: &'static [Step],
    /// Whether each return ends what its own mark began, as an incident with the mark's id; else the return of a host's newest
    /// mark stands for all.
    pub ends_each: bool,
    /// The route's time limit: no exchange takes longer once it has begun.
    pub limit: Duration,
    /// How many exchanges it can have at once, even if `max-in-flight` is higher. An exchange that has begun must not
    /// wait for a place: the view that allowed it would grow old.
    pub at_once: Option<usize>,
    /// Whether its controller confirms a mark later, through the API.
    pub confirms_later: bool,
    /// The route's terms unless the configuration sets them. A controller that is notified late may act on a host that is
    /// well again.
    pub terms: Terms,
    /// How long the endpoint may be away after a host has failed before that is a problem: the failure itself may have taken
    /// it away for a while. Marks are retried all the same.
    pub usually_away: Duration,
    /// Warnings at each start: one sentence for each setting that endangers its purpose.
    pub warnings: Vec<String>,
}

impl About {
    /// A driver with this word, endpoint and time limit, and with nothing special.
    pub fn new(kind: &'static str, endpoint: String, limit: Duration) -> Self {
        Self { kind, endpoint, limit, ..Self::default() }
    }

    /// What its service calls a host, and the setting that says so, where a mistake could give two hosts one name there.
    pub fn name_there(&self, host: &Named) -> Option<(HostName, String)> {
        self.names.as_ref()?.there(host)
    }

    /// What may be left of this host, and how to undo that.
    pub fn undo_of(&self, host: &Named) -> Option<String> {
        let name = self.names.as_ref().map_or_else(|| host.fqdn.clone(), |names| names.of_host(host));
        let undo = self.undo.as_ref()?.replace("{host}", name.as_str());
        Some(
            undo.replace("{lower}", &name.as_str().to_ascii_lowercase())
                .replace("{node}", host.node.as_str()),
        )
    }
}

/// What is known beside a mark when its body is made.
pub struct Beside<'a> {
    /// When the host's earlier marks were generated, oldest first: a controller may distinguish outages by their time.
    pub earlier: &'a [Timestamp],
    /// What its health check said, where that had failed.
    pub cause: Option<&'a str>,
}

/// One endpoint, ready for messages.
pub trait Driver: Send + Sync {
    /// What is known of it.
    fn about(&self) -> &About;

    /// Where it leads, on one line and without a secret. A return goes only to where the failure was sent; an operator
    /// must recognise the place.
    fn target(&self) -> String;

    /// The exact bytes of this mark's event. They are made once, at intake, and stored.
    fn body(&self, mark: &Mark) -> Vec<u8>;

    /// The same with what is known beside the mark.
    fn body_with(&self, mark: &Mark, _beside: &Beside<'_>) -> Vec<u8> {
        self.body(mark)
    }

    /// The exact bytes of a return, made once, with the return. `sent` are the bytes of the failure. `returned` is when the host was seen to be back, the same on every controller.
    fn return_body(&self, mark: &Mark, sent: &[u8], returned: Timestamp) -> Vec<u8> {
        let _the_sent_bytes_serve = (mark, returned);
        sent.to_vec()
    }

    /// The bytes of a test message. Nobody can take it for a failure.
    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8>;

    /// What would keep marks of these hosts from the endpoint. It leaves nothing there. `None` if the endpoint cannot be
    /// asked. `check-config --online` calls it; it ends by itself.
    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        let _nobody_to_ask = hosts;
        Box::pin(async { None })
    }

    /// One exchange. Once it has begun, it ends by itself within the route's time limit. If it is dropped earlier, its
    /// outcome is unknown.
    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a>;
}

impl fmt::Debug for dyn Driver + '_ {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let About { kind, endpoint, .. } = self.about();
        f.debug_struct(kind).field("endpoint", endpoint).finish_non_exhaustive()
    }
}

/// The exchange of a driver whose work may end early, with an outcome too.
pub(crate) fn ends<'a>(work: impl Future<Output = Result<Outcome, Outcome>> + Send + 'a) -> Exchange<'a> {
    Box::pin(async { work.await.unwrap_or_else(|outcome| outcome) })
}

/// What a route does for a mark: each step is a delivery of its own, with its own schedule and its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Reports that the host failed.
    #[default]
    Failure,
    /// Reports that the host is back.
    Return,
}

impl Step {
    /// The suffix of its deliveries' names; empty for the first step.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Failure => "",
            Self::Return => RETURN,
        }
    }
}

/// What is delivered.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Which step this is.
    pub step: Step,
    /// The mark's id.
    pub id: &'a MarkId,
    /// The stored bytes.
    pub body: &'a [u8],
    /// How many earlier attempts of this mark on this route may have arrived.
    pub ambiguous: u32,
    /// The number of this attempt.
    pub attempts: u32,
    /// Whether an operator has released it on this route: it goes whatever keeps it back.
    pub is_released: bool,
}

impl Message<'_> {
    /// What the receiver distinguishes messages by: the mark's id, and for a further step a suffix.
    pub fn key(&self) -> String {
        format!("{}{}", self.id, self.step.suffix())
    }
}

/// An exchange in flight.
pub type Exchange<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Something that would keep marks from an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The host that it concerns, by its Pacemaker node name; `None` if it concerns all.
    pub host: Option<HostName>,
    /// The failure that an exchange would end with.
    pub why: Failure,
}

impl Finding {
    /// The finding of a test exchange, unless it went well.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        outcome.failure().map(|why| Self { host: None, why: why.clone() })
    }

    /// The same about one host.
    pub(crate) fn of_host(host: &Named, outcome: &Outcome) -> Option<Self> {
        Self::of(outcome).map(|finding| Self { host: Some(host.node.clone()), ..finding })
    }
}

/// A question to an endpoint, in flight.
pub type Check<'a> = Pin<Box<dyn Future<Output = Option<Vec<Finding>>> + Send + 'a>>;

/// How an exchange ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The controller took the mark over.
    Acknowledged {
        /// The controller's own name for what it made of the mark.
        reference: Option<String>,
    },
    /// It accepted the message and confirms the mark later. If no confirmation comes within this time, the message is
    /// sent again.
    Accepted {
        /// How long the confirmation may take.
        within: Duration,
    },
    /// It could not be reached: nothing was sent.
    Unreachable(Failure),
    /// It cannot take the mark now: try again.
    Retry(Failure),
    /// It takes no mark until somebody changes something.
    Refused(Failure),
    /// It takes other marks, but not this one: an operator must check it.
    Rejected(Failure),
    /// It must not have this mark: nothing is sent until an operator has checked it, or with the failure's `after` until it is
    /// asked again then.
    Held(Failure),
    /// It is unknown whether it took the mark: send the same bytes again.
    Unknown(Failure),
    /// It works on the mark: ask again after the failure's `after`, or 10 s.
    Wait(Failure),
}

impl Outcome {
    /// Its word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Acknowledged { .. } => "acknowledged",
            Self::Accepted { .. } => ACCEPTED,
            Self::Unreachable(_) => "unreachable",
            Self::Retry(_) => "retry",
            Self::Refused(_) => "refused",
            Self::Rejected(_) => "rejected",
            Self::Held(_) => "held",
            Self::Unknown(_) => "unknown",
            Self::Wait(_) => "wait",
        }
    }

    /// The same with another failure, unless the message was taken.
    pub(crate) fn map(self, change: impl FnOnce(Failure) -> Failure) -> Self {
        match self {
            Self::Acknowledged { .. } | Self::Accepted { .. } => self,
            Self::Unreachable(failure) => Self::Unreachable(change(failure)),
            Self::Retry(failure) => Self::Retry(change(failure)),
            Self::Refused(failure) => Self::Refused(change(failure)),
            Self::Rejected(failure) => Self::Rejected(change(failure)),
            Self::Held(failure) => Self::Held(change(failure)),
            Self::Unknown(failure) => Self::Unknown(change(failure)),
            Self::Wait(failure) => Self::Wait(change(failure)),
        }
    }

    /// The same for a question: unlike a message it can always be repeated.
    pub(crate) fn of_a_question(self) -> Self {
        match self {
            Self::Unknown(failure) => Self::Retry(failure),
            other => other,
        }
    }

    /// The same where only a question was sent: nothing of the message can have arrived.
    pub(crate) fn not_sent(self) -> Self {
        match self {
            Self::Unknown(failure) => Self::Unreachable(failure),
            other => other,
        }
    }

    /// The same after something was sent in the exchange: that may have arrived.
    pub(crate) fn left_open(self) -> Self {
        match self {
            Self::Unreachable(failure) => Self::Unknown(failure.sent()),
            other => other.map(Failure::sent),
        }
    }

    /// The failure, unless the message was taken.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Acknowledged { .. } | Self::Accepted { .. } => None,
            Self::Unreachable(failure)
            | Self::Retry(failure)
            | Self::Refused(failure)
            | Self::Rejected(failure)
            | Self::Held(failure)
            | Self::Unknown(failure)
            | Self::Wait(failure) => Some(failure),
        }
    }
}

#[cfg(test)]
impl Outcome {
    /// Its word, and the word of its failure.
    pub(crate) fn words(&self) -> (&'static str, &'static str) {
        (self.as_str(), self.failure().map_or("", |failure| failure.kind))
    }
}

/// Why a mark was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A word for machines, from a closed set for each driver.
    pub kind: &'static str,
    /// The same for people: one printable clause of at most [`Failure::DETAIL`] characters, without a secret.
    pub detail: String,
    /// How long the endpoint asks us to wait.
    pub after: Option<Duration>,
    /// Nothing was sent to the endpoint.
    pub is_unsent: bool,
    /// What took no connection, where that is why.
    pub peer: Option<Peer>,
}

impl Failure {
    /// Longest detail in characters.
    pub const DETAIL: usize = 256;

    /// A failure. `detail` is made printable and cut.
    pub fn new(kind: &'static str, detail: &str) -> Self {
        Self { kind, detail: printable(detail), after: None, is_unsent: false, peer: None }
    }

    /// Another driver made the stored bytes. They are not sent: their effect is unknown.
    pub(crate) fn of_others() -> Self {
        let why = "the stored message was made by another driver that this route had before: report the host by hand, then end the mark";
        Self::new("rejected", why)
    }

    /// The same with this address in front of its text.
    pub(crate) fn at(self, address: &str) -> Self {
        Self { detail: printable(&format!("{address}: {}", self.detail)), ..self }
    }

    /// The same with this pause, if the endpoint asked for none.
    pub fn or_after(self, pause: Duration) -> Self {
        Self { after: self.after.or(Some(pause)), ..self }
    }

    /// The same where nothing was sent to the endpoint.
    pub fn unsent(self) -> Self {
        Self { is_unsent: true, ..self }
    }

    /// The same where this took no connection.
    pub fn of_peer(self, peer: Option<Peer>) -> Self {
        Self { peer, ..self }
    }

    /// The same after something was sent.
    fn sent(self) -> Self {
        Self { is_unsent: false, ..self }
    }

    /// The same with the pause that the endpoint asked for.
    pub fn after(self, after: Option<Duration>) -> Self {
        Self { after, ..self }
    }
}

/// Distinguishes places that differ only in parts that may be secret.
pub(crate) fn fingerprint(secret: &str) -> String {
    let digest = Sha256::digest(secret.as_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// A foreign text as it may be shown: on one line, with nothing hidden, cut at [`Failure::DETAIL`] characters.
pub(crate) fn printable(text: &str) -> String {
    blanked(text).take(Failure::DETAIL).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant checks control characters alone: an endpoint could reverse a line of the terminal.
    #[test]
    fn a_detail_is_one_short_printable_line() {
        let failure = Failure::new("closed", &"a\r\n\x1b[31m\u{202e}\u{e0041}".repeat(1000));
        assert_eq!(failure.detail.chars().count(), Failure::DETAIL);
        assert!(!failure.detail.chars().any(site::is_hidden));
    }
}
