//! What a driver is, and the words for what it is given and what comes of it.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use marks::delivery::{ACCEPTED, RETURN};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::terms::Terms;
use marks::time::Timestamp;
use site::{Section, blanked};

use crate::kept::Unusable;
use crate::writes::Write;

/// An endpoint that does not let us in is asked again after this time: credentials may be mended any minute, and whoever
/// does it does not say so here.
pub(crate) const LOCKED_OUT: Duration = Duration::from_secs(60);
/// However long an endpoint asks to be left alone, it is not left alone for longer.
pub(crate) const LONGEST_WISH: Duration = Duration::from_secs(15 * 60);

/// One kind of driver.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its word in the configuration: routes are `[WORD.NAME]`.
    pub word: &'static str,
    /// What it tells by, for people: Markdown, a clause.
    pub summary: &'static str,
    /// Makes a driver of a route's table. It asks for all its keys, notes what is wrong, and gives none then.
    pub configure: fn(&mut Section<'_, '_>) -> Option<Arc<dyn Driver>>,
    /// Everything that it changes in the cloud.
    pub writes: &'static [Write],
}

/// The driver of a route; where it could not be made, the table's key says why.
pub(crate) fn usable(
    table: &mut Section<'_, '_>,
    made: Result<impl Driver + 'static, Unusable>,
) -> Option<Arc<dyn Driver>> {
    match made {
        Ok(driver) => Some(Arc::new(driver)),
        Err(why) => {
            table.complain(why.key, why.to_string());
            None
        }
    }
}

/// One endpoint, ready to be told.
pub trait Driver: Send + Sync {
    /// The driver's word in the configuration.
    fn kind(&self) -> &'static str;

    /// The endpoint for people: no secret, no query.
    fn endpoint(&self) -> String;

    /// Where it leads, on one line: a return of a host goes only to where its failure was told. Whoever reads it has to know
    /// which place is meant; no secret.
    fn target(&self) -> String {
        self.endpoint()
    }

    /// What may be left at the endpoint of a host of which it was notified, and how somebody undoes it by hand; none where
    /// nobody but the endpoint knows that.
    fn undo(&self, host: &Named) -> Option<String> {
        let _nobody_knows = host;
        None
    }

    /// The file in which its credentials stand, where they have one of their own.
    fn secret_file(&self) -> Option<&Path> {
        None
    }

    /// The exact bytes that tell this mark. They are made once, at intake, and stored.
    fn body(&self, mark: &Mark) -> Vec<u8>;

    /// The same for a host that failed before: when its earlier marks were generated, oldest first. A controller may want
    /// to tell one outage from the next by its time. Every alerter has to make the same bytes of the same marks.
    fn body_after(&self, mark: &Mark, earlier: &[Timestamp]) -> Vec<u8> {
        let _times_say_nothing_here = earlier;
        self.body(mark)
    }

    /// What this route does for a mark once the controller has acknowledged it, as configured.
    fn further_steps(&self) -> &[Step] {
        &[]
    }

    /// The exact bytes of a return of what was told. They are made once, when the return is; a confirmation has those that were
    /// told.
    fn return_body(&self, mark: &Mark, told: &[u8]) -> Vec<u8> {
        let _what_was_told_serves = mark;
        told.to_vec()
    }

    /// The bytes of a test message, which nobody can take for a failure of a host.
    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8>;

    /// The route's time limit: no exchange takes longer once it has begun.
    fn limit(&self) -> Duration;

    /// How many exchanges it can have at once, where `max-in-flight` may be more: nothing that has begun waits for a place,
    /// since what allowed it may be over by then.
    fn at_once(&self) -> Option<usize> {
        None
    }

    /// Whether its controller confirms a mark later, through the API.
    fn confirms_later(&self) -> bool {
        false
    }

    /// The route's terms where the configuration says nothing: a controller that hears of a failure late may act on a host
    /// that is well again.
    fn terms(&self) -> Terms {
        Terms::default()
    }

    /// What an operator is told at each start: one sentence for each setting that endangers what it is for.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What stands in the way of telling these hosts, as far as the endpoint can be asked without leaving anything there;
    /// `None` where it cannot be asked at all. `check-config --online` does it; it ends by itself.
    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        let _nobody_to_ask = hosts;
        Box::pin(async { None })
    }

    /// When the certificate ends that the endpoint showed at the last [`Driver::check`], where that is known.
    fn certificate_end(&self) -> Option<Timestamp> {
        None
    }

    /// One exchange. It ends by itself, within the route's time limit once it has begun. Dropped before its end its
    /// outcome is unknown.
    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a>;
}

impl fmt::Debug for dyn Driver + '_ {
    /// No secret: what people may see of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.kind()).field("endpoint", &self.endpoint()).finish_non_exhaustive()
    }
}

/// What a route does for a mark: each step is a delivery of its own, with its own schedule and its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// It tells that the host failed.
    #[default]
    Failure,
    /// It asks what became of that.
    Confirm,
    /// It tells that the host is back.
    Return,
}

impl Step {
    /// What its deliveries are called behind the route's name; nothing for the first step.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Failure => "",
            Self::Confirm => ".confirm",
            Self::Return => RETURN,
        }
    }
}

/// What is delivered.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Which step this is.
    pub step: Step,
    /// The mark's id, and the idempotency key.
    pub id: &'a MarkId,
    /// The stored bytes.
    pub body: &'a [u8],
    /// How many earlier attempts of this mark on this route may have arrived.
    pub ambiguous: u32,
}

/// An exchange under way.
pub type Exchange<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A host of the cluster under both of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Pacemaker's.
    pub node: HostName,
    /// The one that every route tells.
    pub fqdn: HostName,
}

/// Something that stands in the way of telling hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The only host that it is about, as Pacemaker calls it.
    pub host: Option<HostName>,
    /// What it is: in the words of an exchange that would fail of it.
    pub why: Failure,
}

impl Finding {
    /// What an exchange that was none of a mark ended in, unless it went well.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        outcome.failure().map(|why| Self { host: None, why: why.clone() })
    }
}

/// A question to an endpoint under way.
pub type Check<'a> = Pin<Box<dyn Future<Output = Option<Vec<Finding>>> + Send + 'a>>;

/// What came of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The controller took the mark over.
    Acknowledged {
        /// The controller's own name for what it made of it.
        reference: Option<String>,
    },
    /// It has taken the message, and confirms later that it has the mark; if it does not within this time, it is told again.
    Accepted {
        /// How long that may take.
        within: Duration,
    },
    /// It could not be reached: nothing was sent.
    Unreachable(Failure),
    /// It says that it cannot take it now: try again.
    Retry(Failure),
    /// It takes no mark as things stand: somebody must change something.
    Refused(Failure),
    /// It takes others, but not this one: somebody must look into it.
    Rejected(Failure),
    /// It does not take this one, and might act on a repetition when it must not: nothing more is sent until somebody has
    /// looked into it.
    Held(Failure),
    /// It may have taken it, or not: send the same bytes again.
    Unknown(Failure),
    /// It works on it, which takes its time: ask again after the failure's `after`, or 10 s.
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

    /// The same of a question: unlike a message it can be put again without a thought.
    pub(crate) fn of_a_question(self) -> Self {
        match self {
            Self::Unknown(failure) => Self::Retry(failure),
            other => other,
        }
    }

    /// The same after something was sent in the exchange: that may have arrived, whatever became of the rest.
    pub(crate) fn left_open(self) -> Self {
        match self {
            Self::Unreachable(failure) => Self::Unknown(failure.sent()),
            Self::Retry(failure) => Self::Retry(failure.sent()),
            Self::Refused(failure) => Self::Refused(failure.sent()),
            other => other,
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
    /// Its word, and that of its failure.
    pub(crate) fn words(&self) -> (&'static str, &'static str) {
        (self.as_str(), self.failure().map_or("", |failure| failure.kind))
    }
}

/// Why a mark was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A word for machines, of a closed set for each driver.
    pub kind: &'static str,
    /// The same for people: one printable clause of at most [`Failure::DETAIL`] characters, without a secret.
    pub detail: String,
    /// How long the endpoint asks to be left alone.
    pub after: Option<Duration>,
    /// Nothing was sent to the endpoint.
    pub is_unsent: bool,
}

impl Failure {
    /// Longest detail in characters.
    pub const DETAIL: usize = 256;

    /// A failure; what is not printable in `detail`, or too long, is taken out.
    pub fn new(kind: &'static str, detail: &str) -> Self {
        Self { kind, detail: printable(detail), after: None, is_unsent: false }
    }

    /// The stored bytes are none that the route's driver made: they are not sent, since nobody knows what they would do.
    pub(crate) fn of_others() -> Self {
        let why = "the stored message is that of another driver, which this route had before: tell the host by hand, then end the mark";
        Self::new("rejected", why)
    }

    /// The same with this pause, where the endpoint wished for none.
    pub fn or_after(self, pause: Duration) -> Self {
        Self { after: self.after.or(Some(pause)), ..self }
    }

    /// The same where nothing was sent to the endpoint.
    pub fn unsent(self) -> Self {
        Self { is_unsent: true, ..self }
    }

    /// The same after something was.
    fn sent(self) -> Self {
        Self { is_unsent: false, ..self }
    }

    /// The same with the endpoint's wish.
    pub fn after(self, after: Option<Duration>) -> Self {
        Self { after, ..self }
    }
}

/// A text of others as it may be shown: on one line, with nothing hidden, cut at [`Failure::DETAIL`] characters.
pub(crate) fn printable(text: &str) -> String {
    blanked(text).take(Failure::DETAIL).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant looks for control characters alone: an endpoint could turn a line of the terminal round.
    #[test]
    fn a_detail_is_one_short_printable_line() {
        let failure = Failure::new("closed", &"a\r\n\x1b[31m\u{202e}\u{e0041}".repeat(1000));
        assert_eq!(failure.detail.chars().count(), Failure::DETAIL);
        assert!(!failure.detail.chars().any(site::is_hidden));
    }
}
