//! Which entries of the register may be believed (SECURITY.md, T3): every member of `haclient` can write it, and is not
//! root. What a seal does not settle, a comparison does as far as it can. Pure: no I/O, no clock.

use std::fmt;

use marks::fencing::Incarnation;
use marks::host::HostName;
use marks::mark::MarkRow;
use marks::outage::{GRAIN, Outage};
use marks::register::{Entry, MarkEntry, Unsealed};
use marks::time::{CLOCK_SKEW, Timestamp};
use pacemaker::cib::{Cib, is_same_controller};

/// What must be known beside the entry that is checked.
pub(super) struct Around<'a> {
    /// This controller.
    pub(super) controller: &'a str,
    pub(super) cib: Option<&'a Cib>,
    /// Since when this controller's journal is complete.
    pub(super) journal_since: Timestamp,
}

/// Who vouches for an entry.
#[derive(Clone, Copy, Default)]
pub(super) struct Behind {
    /// Root on the controller that it names.
    pub(super) is_sealed: bool,
    /// Nobody, for this reason.
    pub(super) unsealed: Option<Unsealed>,
}

/// What is known here about the subject of an entry. What is not known is not compared.
#[derive(Default)]
pub(super) struct Known<'a> {
    pub(super) behind: Behind,
    /// This controller did what the entry says: the journal has it.
    pub(super) is_on_record: bool,
    /// The outage of the mark.
    pub(super) outage: Option<(&'a HostName, &'a Outage)>,
    /// The mark as the rules of this controller make it.
    pub(super) ours: Option<&'a MarkRow>,
}

/// Why an entry counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It names a writer that is no controller of this cluster.
    Stranger(String),
    /// It names this controller as its writer, which has not written it.
    NotOurs,
    /// It says that the host is back, and the CIB contradicts that.
    Away,
    /// It has the id or the name of another host.
    AnotherHost,
    /// It has no seal.
    Unsealed(Unsealed),
    /// It differs from the fencing that it was made of, or from this controller's configuration.
    Differs(What),
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Host,
    Name,
    SharedStorage,
    Times,
    Connection,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stranger(by) => {
                write!(f, "it names {by:?} as its writer, which is not a controller of this cluster")
            }
            Self::NotOurs => {
                f.write_str("it names this controller as its writer, whose journal does not have it")
            }
            Self::Away => f.write_str("the CIB says that the host has not been back"),
            Self::Unsealed(Unsealed::Forged) => f.write_str(
                "it has no seal, though the controller that it names has sealed later entries: it is forged",
            ),
            Self::Unsealed(Unsealed::Unknown) => f.write_str(
                "it has no seal by a key of this cluster: a controller without this key wrote it, or a member of haclient",
            ),
            Self::AnotherHost => f.write_str("it has the id or the name of another host"),
            Self::Differs(what) => {
                let what = match what {
                    What::Host => "host",
                    What::Name => "host name",
                    What::SharedStorage => "on_shared_storage",
                    What::Times => "time of the failure",
                    What::Connection => "connection",
                };
                write!(
                    f,
                    "its {what} differs from its fencing or from this controller's configuration: its mark is held"
                )
            }
        }
    }
}

impl Reason {
    /// Whether the mark that it ends may have been notified all the same: by a controller that has left the cluster, by this one
    /// before its journal was set back, or by one that has another key.
    pub(super) fn leaves_a_doubt(&self) -> bool {
        let without_a_key = Self::Unsealed(Unsealed::Unknown);
        matches!(self, Self::Stranger(_) | Self::NotOurs) || *self == without_a_key
    }
}

/// Whether an entry may be believed as far as a comparison shows. That proves nothing. What no key vouches for counts for nothing,
/// whatever it says; of what one does, the time says nothing: this controller's clock may be the wrong one.
pub(super) fn credible(entry: &Entry, around: &Around<'_>, known: &Known<'_>) -> Result<(), Reason> {
    if let Some(why) = known.behind.unsealed {
        return Err(Reason::Unsealed(why));
    }
    match entry {
        Entry::Acknowledged(_) | Entry::Settled(_) if known.behind.is_sealed => Ok(()),
        Entry::Acknowledged(end) => may_end(&end.by, end.at, around, known),
        Entry::Settled(end) => may_end(&end.by, end.at, around, known),
        Entry::Returned(back) => match known.outage {
            Some((node, outage)) if is_away(node, outage, back.at, around) => Err(Reason::Away),
            _ => Ok(()),
        },
        Entry::Mark(entry) => known.ours.map_or(Ok(()), |ours| compare(entry, ours)),
        Entry::Fencing(_)
        | Entry::Again(_)
        | Entry::Operation(_)
        | Entry::Decision(_)
        | Entry::Ending(_)
        | Entry::Watermark(_) => Ok(()),
    }
}

/// Whether a time has not come yet, by more than clocks may differ.
pub(super) fn is_ahead(at: Timestamp, now: Timestamp) -> bool {
    at > now + CLOCK_SKEW
}

/// What this controller did is in its journal. Other writers have to be controllers of the cluster; if Pacemaker and the kernel name
/// this controller differently, that cannot be checked.
fn may_end(by: &str, at: Timestamp, around: &Around<'_>, known: &Known<'_>) -> Result<(), Reason> {
    if is_same_controller(by, around.controller) {
        let is_ours = known.is_on_record || at < around.journal_since;
        return if is_ours { Ok(()) } else { Err(Reason::NotOurs) };
    }
    let is_checked = around.cib.filter(|cib| cib.has_controller(around.controller));
    match is_checked.is_none_or(|cib| cib.has_controller(by)) {
        true => Ok(()),
        false => Err(Reason::Stranger(by.to_owned())),
    }
}

/// Whether the CIB holds that the host was fenced and has not been back: a return erases that. A newer connection than those of
/// the outage is a return, however little else is known; and a host that was fenced after it was back is away again, unless
/// that fencing is one of this outage.
fn is_away(node: &HostName, outage: &Outage, back: Timestamp, around: &Around<'_>) -> bool {
    let Some(cib) = around.cib.filter(|cib| cib.membership(node) == Some(false)) else { return false };
    let Some(fenced) = cib.node_fenced(node).map(Timestamp::from_seconds) else { return false };
    let made = |connection: &Incarnation| connection.connected_at();
    let newest = outage.incarnations.iter().filter_map(made).max().unwrap_or(outage.newest);
    let was_connected = cib.incarnation_of(node).as_ref().and_then(made).is_some_and(|made| made > newest);
    let is_of_outage = outage.first - GRAIN <= fenced && fenced <= outage.newest + GRAIN;
    !was_connected && (is_of_outage || fenced + CLOCK_SKEW < back)
}

/// Whether a mark of another alerter is the one that this controller would have made.
fn compare(entry: &MarkEntry, ours: &MarkRow) -> Result<(), Reason> {
    let mark = &entry.mark;
    let times = (mark.failure_time, mark.generated_time) == (ours.failure_time, ours.generated_time);
    let same = [
        (What::Host, mark.node == ours.node),
        (What::Name, ours.fqdn.as_ref() == Some(&mark.fqdn)),
        (What::SharedStorage, Some(mark.on_shared_storage) == ours.on_shared_storage),
        (What::Times, times),
        (What::Connection, entry.incarnation == ours.incarnation),
    ];
    match same.into_iter().find(|(_, is_same)| !is_same) {
        Some((what, _)) => Err(Reason::Differs(what)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
