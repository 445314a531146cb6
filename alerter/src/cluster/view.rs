//! The result of one poll of the cluster: quorum, register, CIB, fencing history. What could not be read is missing, with the reason.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use marks::host::HostName;
use marks::register::{Entries, Register};
use marks::returning::Membership;
use marks::sighting::Sighting;
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use pacemaker::evidence;
use pacemaker::tools::Tools;

use super::kept::Kept;
use super::matter::{Fault, Matter};
use super::{Hands, POLL_LIMIT};

/// How often the cluster is polled if nothing wakes the engine: an entry in attrd is seen within two seconds.
pub const POLL: Duration = Duration::from_millis(1500);
/// No mark is sent on an older view (design, section 6).
const FRESH: Duration = Duration::from_secs(2);

/// Something that was read, or one sentence why not.
pub type Part<T> = Result<T, String>;

/// The result of one poll. Its age is measured by the monotonic clock: a daemon that was stopped for an hour knows that it is old.
#[derive(Debug)]
pub struct View {
    /// When the poll began.
    pub taken: Instant,
    /// Whether this partition of the cluster may act.
    pub quorum: Part<bool>,
    /// What the register holds.
    pub entries: Part<Entries>,
    /// What a register in etcd held when it was read last, if it cannot be read now: this controller's quorum and its own fencer still
    /// count.
    pub known: Option<Entries>,
    /// How the register is kept, and what is wrong with that.
    pub kept: Kept,
    /// The CIB as this controller has it.
    pub cib: Part<Arc<Cib>>,
    /// The successful fencings that Pacemaker remembers; none if this poll did not read them.
    pub history: Option<Part<Vec<Sighting>>>,
}

impl View {
    /// Runs the tools side by side. `complaints`: what is wrong with the keys.
    pub(super) fn take(
        hands: &mut Hands,
        (complaints, with_history): (Vec<String>, bool),
        own: impl Fn(&Cib) -> Vec<HostName>,
    ) -> Self {
        let access = &hands.access.clone();
        let taken = Instant::now();
        let deadline = taken + POLL_LIMIT;
        let tools = &access.tools;
        thread::scope(|scope| {
            let quorum = scope.spawn(|| tools.quorum(deadline).map_err(|e| e.to_string()));
            let history = with_history.then(|| scope.spawn(|| history(tools, deadline)));
            let found = scope.spawn(|| access.find(deadline));
            let cib = hands.read_cib(own);
            let joined = "a panic anywhere ends the whole daemon";
            let found = found.join().expect(joined).map_err(|e| e.to_string());
            let (entries, paged) = match found {
                Ok(found) => (Ok(found.entries), found.paged),
                Err(why) => (Err(why), None),
            };
            if access.register == Register::Etcd
                && let Ok(entries) = &entries
            {
                hands.known = Some(entries.clone());
            }
            let kept = Kept::of(entries.as_ref().ok(), paged, (&access.keys, complaints));
            Self {
                taken,
                quorum: quorum.join().expect(joined),
                known: entries.as_ref().err().and_then(|_| hands.known.clone()),
                entries,
                kept,
                cib,
                history: history.map(|reader| reader.join().expect(joined)),
            }
        })
    }

    /// Whether marks may be made and sent on this view.
    ///
    /// # Errors
    /// Why not, in a sentence for `status`.
    pub fn permits(&self) -> Result<&Entries, String> {
        match (&self.quorum, &self.entries) {
            (Ok(true), Ok(entries)) => Ok(entries),
            (Ok(false), _) => {
                Err("this partition of the cluster has no quorum: nothing is sent until the other controllers are back"
                    .to_owned())
            }
            (Err(why), _) => Err(format!("the quorum cannot be read, so nothing is sent: {why}")),
            (_, Err(why)) if self.vouches_alone() => Err(format!(
                "the register cannot be read, so only fencings that this controller's own fencer recorded are sent: {why}"
            )),
            (_, Err(why)) => Err(format!("the register cannot be read, so nothing is sent: {why}")),
        }
    }

    /// The register to act on: as it is, or as it was read last if it is in etcd and cannot be read. On the latter only what this
    /// controller vouches for itself is sent (see [`View::vouches_alone`]): others may have written more since.
    ///
    /// # Errors
    /// As [`View::permits`].
    pub fn acts_on(&self) -> Result<&Entries, String> {
        match (self.permits(), &self.known) {
            (Err(_), Some(known)) if self.vouches_alone() => Ok(known),
            (permits, _) => permits,
        }
    }

    /// Whether only the register is missing, and it is in etcd and was read before.
    pub fn vouches_alone(&self) -> bool {
        self.known.is_some() && matches!((&self.quorum, &self.entries, &self.cib), (Ok(true), Err(_), Ok(_)))
    }

    /// Who is a member, where the CIB could be read; `now` is the wall clock's time at this moment.
    pub fn members(&self, now: Timestamp) -> Option<Membership> {
        let cib = self.cib.as_ref().ok()?;
        Some(Membership { at: now - self.taken.elapsed(), members: cib.members() })
    }

    /// Whether it is recent enough to send on.
    pub fn is_fresh(&self) -> bool {
        self.taken.elapsed() <= FRESH
    }

    /// How long it will stay so.
    pub fn stays_fresh(&self) -> Duration {
        FRESH.saturating_sub(self.taken.elapsed())
    }

    /// Why marks may not be sent, why the CIB could not be read, and what else recovers hosts.
    pub fn faults(&self) -> Vec<Fault> {
        let hindrance = match self.quorum {
            Ok(true) => Matter::RegisterUnreadable,
            Ok(false) => Matter::NoQuorum,
            Err(_) => Matter::QuorumUnknown,
        };
        let permits = self.permits().err().map(|why| (hindrance, why));
        let cib = self
            .cib
            .as_ref()
            .err()
            .map(|why| (Matter::CibUnreadable, format!("the CIB cannot be read: {why}")));
        permits.into_iter().chain(cib).chain(self.rivals()).collect()
    }

    fn rivals(&self) -> Option<Fault> {
        let cib = self.cib.as_ref().ok()?;
        let all: Vec<String> =
            cib.rivals().map(|(id, agent, does)| format!("{id} ({agent}) {does} too")).collect();
        let what = || format!("{}: a marked host would be recovered twice", all.join(", "));
        (!all.is_empty()).then(|| (Matter::OtherRecovery, what()))
    }
}

fn history(tools: &Tools, deadline: Instant) -> Part<Vec<Sighting>> {
    let xml = tools.history(deadline).map_err(|e| e.to_string())?;
    evidence::history(&xml).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(known: Option<Entries>) -> View {
        let cib = Arc::new(Cib::parse("<cib><configuration/></cib>").unwrap());
        let entries = Err("etcd: no answer in time".to_owned());
        let kept = Kept::default();
        View { taken: Instant::now(), quorum: Ok(true), entries, known, kept, cib: Ok(cib), history: None }
    }

    /// The broken variants act on what they know where the partition may not, where nobody says who is a member, or where the register was
    /// never read: an earlier alerter may have sent what lies in the journal.
    #[test]
    fn a_lost_etcd_leaves_what_is_known_and_a_lost_cluster_leaves_nothing() {
        let known = || lost(Some(Entries::default()));
        assert!(known().acts_on().is_ok() && known().permits().is_err() && known().vouches_alone());
        for view in [
            lost(None),
            View { quorum: Ok(false), ..known() },
            View { quorum: Err("x".to_owned()), ..known() },
            View { cib: Err("x".to_owned()), ..known() },
        ] {
            assert!(view.acts_on().is_err() && !view.vouches_alone());
        }
        assert!(!View { entries: Ok(Entries::default()), ..known() }.vouches_alone());
    }

    /// A migration left half-way. The broken variants: a template alone recovers nobody, and neither does another agent.
    #[test]
    fn who_else_recovers_hosts_is_a_fault() {
        let of = |resource: &str| {
            let xml = format!("<cib><configuration><resources>{resource}</resources></configuration></cib>");
            let cib = Ok(Arc::new(Cib::parse(&xml).unwrap()));
            View { entries: Ok(Entries::default()), cib, ..lost(None) }.faults()
        };
        let evacuate = r#"id="nova-evacuate" class="ocf" provider="openstack" type="NovaEvacuate""#;
        let what = "nova-evacuate (ocf:openstack:NovaEvacuate) evacuates hosts too: a marked host would be recovered twice";
        assert_eq!(of(&format!("<primitive {evacuate}/>")), [(Matter::OtherRecovery, what.to_owned())]);
        let agent = r#"<primitive id="f" class="stonith" type="fence_compute"/>"#;
        assert!(of(agent)[0].1.starts_with("f (stonith:fence_compute) marks hosts for NovaEvacuate too: "));
        assert_eq!(of(&format!("<template {evacuate}/>")), []);
        assert_eq!(of(r#"<primitive id="f" class="stonith" type="fence_ipmilan"/>"#), []);
    }
}
