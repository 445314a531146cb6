//! One pass over everything new: records become marks, and marks get their deliveries.

use journal::{Done, Journal};
use marks::fencing::Origin;
use marks::host::HostName;
use marks::id::MarkId;
use marks::outage;
use marks::time::Timestamp;

use super::account::Accounts;
use super::coverage::{self, Coverage};
use super::pass::Intake;
use super::register;
use crate::base::Base;
use crate::cluster::View;
use crate::moment::Moment;

/// Takes in everything that is new: the journal's fencings, and with a cluster also its register, alerts, fencing history and CIB.
/// Without quorum nothing is taken in.
///
/// # Errors
/// As any write.
pub fn take_in(journal: &mut Journal, (base, accounts): (&Base, &Accounts), view: Option<&View>) -> Done {
    take_in_at(journal, (base, accounts), view, Moment::now())
}

/// The same at a given time.
///
/// # Errors
/// As any write.
pub fn take_in_at(
    journal: &mut Journal,
    (base, accounts): (&Base, &Accounts),
    view: Option<&View>,
    now: Moment,
) -> Done {
    let settings = base.settings();
    if base.cluster.is_none() {
        return Intake::new(journal, (base, accounts, &settings), now, None).fold_fencings(None);
    }
    let (Some(view), Some(cib)) = (view, base.cib()) else { return Ok(()) };
    let Ok(found) = view.acts_on() else { return Ok(()) };
    base.seen().note_partial(found.is_partial, now.wall.since(*base.started()));
    let sifted = register::sift(journal, base, (found, &cib), now.wall)?;
    let entries = sifted.entries.as_ref();
    let mut intake = Intake::new(journal, (base, accounts, &settings), now, Some(&cib));
    intake.catch_up_once(&cib)?;
    intake.around.forgotten = outage::forgotten(entries, settings.intake.horizon, now.wall);
    intake.register = Some(entries);
    intake.refused = sifted.refused;
    intake.take_in_register(entries)?;
    intake.set_watermark()?;
    intake.note_lost(&cib);
    intake.note_connections(&cib)?;
    intake.note_erased(&cib)?;
    intake.read_evidence();
    intake.note_members(&cib)?;
    // Whether a fencing belongs to an older mark may depend on a sighting.
    if intake.journal.unfolded_fencings()?.count() > 0 {
        intake.take_in_sightings(view, &cib)?;
    }
    intake.fold_fencings(Some(entries))?;
    intake.take_in_sightings(view, &cib)?;
    intake.say_past();
    intake.take_in_decisions(entries)?;
    intake.take_in_ends(entries)?;
    intake.base.seen().note_pass(now);
    intake.note_returns(&cib)?;
    intake.call_back(entries)?;
    intake.say_refused(found);
    // Last: no mark waits for it.
    intake.note_health(&cib)
}

/// What is known here of a host that a client of the API reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// `[hosts] match` does not cover it.
    NotCovered,
    /// The cluster has no such host.
    NoHost,
    /// It is in the outage of this mark, or was a moment ago.
    Known(MarkId),
    /// An earlier report of it waits for the cluster already; the mark will have this id.
    Noted(MarkId),
    /// Nothing is known of it.
    New,
}

/// Checks a report of the API before anything of it is written: it proves nothing, so it must neither fill the journal nor join two
/// outages that Pacemaker reports.
///
/// # Errors
/// As any read.
pub fn spoken_of(journal: &Journal, base: &Base, node: &HostName) -> Done<Spoken> {
    let rules = &base.settings().hosts;
    match coverage::of(node, rules, base.cib().as_deref()) {
        Coverage::Covered => {}
        Coverage::Not => return Ok(Spoken::NotCovered),
        Coverage::Unknown => return Ok(Spoken::NoHost),
    }
    let (outages, coalesce) = (journal.outages_of(node)?, base.settings().intake.coalesce);
    if let Some(outage) = outage::spoken_of(&outages, Timestamp::now(), coalesce) {
        return Ok(Spoken::Known(outage.mark));
    }
    let waiting = journal.unfolded_fencings()?.sound.into_iter();
    let mut waiting = waiting.filter(|fencing| fencing.node == *node && fencing.origin == Origin::Api);
    Ok(waiting.next().map_or(Spoken::New, |fencing| Spoken::Noted(fencing.id.into())))
}
