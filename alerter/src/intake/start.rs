//! What a starting daemon does with the marks that an older one left open.

use std::sync::Arc;

use journal::{Done, Journal, LeftRoute, NewDelivery, PAGE, Position, Resolved};
use marks::delivery::{Delivery, State};
use marks::id::MarkId;
use marks::mark::{Doubt, Mark, MarkRow, Proof, Settlement, Standing};
use marks::outage;
use marks::register::{Decision, Ending, Entries, Key, Register};
use marks::time::Timestamp;
use tracing::{error, warn};

use super::judge::is_surely_down;
use super::made::{announce, deliveries, deliveries_of, recipients};
use super::naming::Names;
use super::storage::Storage;
use crate::base::Base;
use crate::config::{Group, Recipients, Route};
use crate::delivery::endpoint;

/// First after a start: what was under way when an older daemon ended. Returns how many attempts were cut off.
///
/// # Errors
/// As any write.
pub fn recover(journal: &mut Journal, now: Timestamp) -> Done<usize> {
    let unknown = journal.recover(now)?;
    journal.put_off_no_longer_than(now + endpoint::CAP)?;
    Ok(unknown)
}

/// Completes the marks that are held for what they lack, if there is no cluster that has to be read first.
///
/// # Errors
/// As any write.
pub fn complete_without_cluster(journal: &mut Journal, base: &Base, now: Timestamp) -> Done {
    if base.cluster.is_some() {
        return Ok(());
    }
    let settings = base.settings();
    let storage = Storage { hosts: &settings.hosts, groups: &settings.groups, cib: None };
    complete_held(journal, base, (&Names::new(&settings.hosts, None), storage), now)
}

/// How far open marks have been given the deliveries of routes that are new.
#[derive(Clone, Debug, Default)]
pub struct Serving {
    last: Position,
    /// A mark was damaged, and may be repaired.
    is_damaged: bool,
}

/// Gives a page of the open marks the deliveries that they lack, in one transaction: there may be very many. Gives where the following
/// page begins, or none if every mark was served, which is done once for each configuration. To be called once the hosts' groups are
/// known.
///
/// # Errors
/// As any write; then the same page has to be served again.
pub fn serve_page(journal: &mut Journal, base: &Base, at: Serving, now: Timestamp) -> Done<Option<Serving>> {
    let is_first = at.last == Position::default();
    if is_first && journal.served()?.as_ref() == Some(&served(base)) {
        return Ok(None);
    }
    let Some((page, last)) = journal.open_marks_behind(&at.last)? else {
        return note_served(journal, base, &at).map(|()| None);
    };
    base.damages.report(&page.damaged);
    serve(journal, base, &page.sound, now)?;
    Ok(Some(Serving { last, is_damaged: at.is_damaged || !page.damaged.is_empty() }))
}

fn note_served(journal: &mut Journal, base: &Base, served_all: &Serving) -> Done {
    if served_all.is_damaged {
        return Ok(());
    }
    match journal.note_served(&served(base)) {
        // The next start goes through every mark again.
        Err(error) if error.may_pass() => Ok(()),
        noted => noted,
    }
}

/// Gives deliveries to open marks that have none at all, whatever the cause.
///
/// # Errors
/// As any write.
pub fn serve_unserved(journal: &mut Journal, base: &Base, now: Timestamp) -> Done {
    if !base.knows_groups() {
        return Ok(());
    }
    let unserved = journal.unserved_marks()?.sound;
    unserved.chunks(PAGE).try_for_each(|rows| serve(journal, base, rows, now))
}

/// Gives marks what they lack, in one transaction.
fn serve(journal: &mut Journal, base: &Base, rows: &[MarkRow], now: Timestamp) -> Done {
    let mut missing = Vec::new();
    for mark in rows.iter().filter_map(MarkRow::to_mark) {
        let deliveries = missing_routes(journal, base, &mark)?;
        if !deliveries.is_empty() {
            missing.push(Resolved { mark, deliveries });
        }
    }
    journal.add_deliveries_to_all(&missing, now)
}

/// The result of dismissing a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unrouted {
    /// How many marks waited for it, and how many of these have ended by it.
    pub left: LeftRoute,
    /// How many are being sent there and were left alone.
    pub under_way: usize,
}

/// Ends, by an operator's decision, what waits for a route that is not configured any more. First the marks get deliveries of the
/// routes that their hosts have now. What is being sent is left alone.
///
/// # Errors
/// As any write.
pub fn dismiss_route(
    journal: &mut Journal,
    base: &Base,
    (route, reason, user): (&str, &str, &str),
    now: Timestamp,
) -> Done<Unrouted> {
    for marks in journal.marks_waiting_for(route)?.chunks(PAGE) {
        serve(journal, base, &open_of(journal, marks)?, now)?;
    }
    let under_way = journal.under_way_on(route)?;
    let left = journal.dismiss_on(route, reason, user, now)?;
    Ok(Unrouted { left, under_way })
}

/// Those of the marks that are sound and not settled.
fn open_of(journal: &Journal, marks: &[MarkId]) -> Done<Vec<MarkRow>> {
    let mut open = Vec::new();
    for mark in marks {
        if let Some(Ok(row)) = journal.find_mark(*mark)?
            && row.settled.is_none()
        {
            open.push(row);
        }
    }
    Ok(open)
}

/// Everything that decides which marks get which deliveries.
fn served(base: &Base) -> String {
    let reach = |route: &Arc<Route>| {
        format!("{} {:?} {:?} {}", route.name, route.hosts, route.groups, route.required)
    };
    let group = |group: &Group| format!("{} {:?} {:?}", group.name, group.members, group.recipients);
    let settings = base.settings();
    settings.routes.iter().map(reach).chain(settings.groups.iter().map(group)).collect::<Vec<_>>().join("\n")
}

/// After a start, once the register is known: others may have reported the outage of a mark that an older daemon left open here and
/// that the register does not have. The mark ends if another mark of its outage was acknowledged or is sent from here. It is held if
/// it is old or the register once had it, and nothing shows that its host is still down. No age ends it.
///
/// # Errors
/// As any write.
pub(super) fn settle_strangers(
    journal: &mut Journal,
    base: &Base,
    (register, entries): (Register, &Entries),
    now: Timestamp,
) -> Done {
    let settled = journal.each_open_mark(|journal, row| {
        if entries.sound.contains_key(&Key::Mark(row.id)) || row.made_at >= *base.started() {
            return Ok(());
        }
        let (others, coalesce) =
            (notified_elsewhere(journal, &row, entries)?, base.settings().intake.coalesce);
        let Some(other) = others.iter().find(|other| outage::is_twice(&row, other, coalesce)) else {
            // Another clock dated that one, and its host has not been back.
            if others.iter().any(|other| other.returned_at.is_none()) {
                return hold(journal, row, Doubt::FencedAgain, now);
            }
            return doubt(journal, base, register, row, now);
        };
        let reason =
            format!("the outage of {} was taken over by another alerter as mark {}", row.node, other.id);
        error!(mark = %row.id, host = %row.node, "{reason}");
        journal.expire(row.id, &reason, now).map(drop)
    });
    settled?;
    end_forgotten(journal, base, (register, entries), now)
}

/// A pause or a maintenance that is gone from the register was ended elsewhere, so long ago that its end is gone too. If the whole
/// register was lost, that is not known, and the decision stays in force.
fn end_forgotten(
    journal: &mut Journal,
    base: &Base,
    (register, entries): (Register, &Entries),
    now: Timestamp,
) -> Done {
    let is_whole = !entries.is_partial && entries.sound.keys().any(|key| matches!(key, Key::Watermark(_)));
    let in_force = journal.decisions_in_force(now)?.sound;
    // One that was made since this daemon's start was not published yet.
    let holds = |decision: &&Decision| decision.about.holds();
    for decision in in_force.iter().filter(holds).filter(|_| is_whole) {
        let key = Key::Decision(decision.id);
        if entries.sound.contains_key(&key) || !journal.is_published(register, &key.to_string())? {
            continue;
        }
        let (kind, actor) = (decision.about.kind(), &decision.actor);
        warn!(
            "the {kind} by {actor} was ended on another controller while this one was away, and now ends here too"
        );
        let reason = "it was ended on another controller, while this one was away".to_owned();
        let ending = Ending { id: decision.id, at: now, actor: base.controller.clone(), reason };
        journal.end_decision(&ending)?;
    }
    Ok(())
}

/// Doubts a mark that the register has lost, since other controllers may have sent it, or that is found long after. Only this
/// controller can have sent a mark that the register never had, or that an operator made or released here.
fn doubt(journal: &mut Journal, base: &Base, register: Register, row: MarkRow, now: Timestamp) -> Done {
    let is_old = now.since(row.failure_time) > base.settings().intake.horizon;
    let is_ours_alone = row.standing == Standing::Proven(Proof::Operator)
        || !journal.is_published(register, &Key::Mark(row.id).to_string())?;
    if is_ours_alone && !is_old {
        return Ok(());
    }
    let down = base.cib().is_some_and(|cib| is_surely_down(&cib, &row.node, row.failure_time));
    if down { Ok(()) } else { hold(journal, row, Doubt::OutcomeUnknown, now) }
}

fn hold(journal: &mut Journal, mut row: MarkRow, doubt: Doubt, now: Timestamp) -> Done {
    if journal.doubt(row.id, doubt, now)? {
        row.standing = Standing::Doubtful(doubt);
        announce(&row, None);
    }
    Ok(())
}

/// The marks that other alerters may have made of the same outage. An entry of the register alone is not enough: the mark was
/// acknowledged, or is proven here and so is sent.
fn notified_elsewhere(journal: &Journal, row: &MarkRow, entries: &Entries) -> Done<Vec<MarkRow>> {
    let mut all = journal.marks_of(&row.node)?.sound;
    let stands = |other: &MarkRow| entries.sound.contains_key(&Key::Mark(other.id));
    all.retain(|other| outage::may_be_twice(row, other) && stands(other) && is_notified(other));
    Ok(all)
}

/// Whether a mark was acknowledged, or only waits for its acknowledgement.
fn is_notified(row: &MarkRow) -> bool {
    match row.settled {
        Some((how, _)) => how == Settlement::Acknowledged,
        None => row.standing.doubt().is_none() && row.lacks().next().is_none(),
    }
}

fn missing_routes(journal: &Journal, base: &Base, mark: &Mark) -> Done<Vec<NewDelivery>> {
    let existing = journal.deliveries_of(mark.id)?;
    // The route in a damaged row is not certain: a delivery beside it could send the same mark twice.
    if !existing.damaged.is_empty() {
        return Ok(Vec::new());
    }
    let settings = base.settings();
    let recipients = recipients(base, &settings, &mark.node);
    let mut missing = match recipients {
        // A chain that is under way goes on as it was made.
        Recipients::Chain(_) if is_under_way(base, &recipients, &existing.sound) => Vec::new(),
        _ => deliveries_of(&recipients, journal, mark)?,
    };
    missing.retain(|new| existing.sound.iter().all(|old| old.route != new.route));
    Ok(missing)
}

/// Whether a required delivery still waits for a configured route, or a step of the chain was acknowledged. An acknowledgement of
/// another route says nothing about the chain's recovery controllers.
fn is_under_way(base: &Base, recipients: &Recipients<'_>, existing: &[Delivery]) -> bool {
    let chain = recipients.routes();
    existing.iter().any(|old| {
        let is_step = || old.chain.is_some() || chain.iter().any(|route| route.name.as_str() == old.route);
        let is_awaited = !old.state.is_final() && base.route(&old.route).is_some();
        old.required && (is_awaited || (old.state == State::Acknowledged && is_step()))
    })
}

/// Completes the marks that are held for what they lack, as far as it is known now.
pub(super) fn complete_held(
    journal: &mut Journal,
    base: &Base,
    known: (&Names<'_>, Storage<'_>),
    now: Timestamp,
) -> Done {
    let lacking = journal.lacking_marks()?.sound;
    lacking.into_iter().try_for_each(|row| complete(journal, base, row, known, now))
}

/// Completes a mark by what the rules say now: nothing of it was sent.
pub(super) fn complete(
    journal: &mut Journal,
    base: &Base,
    mut row: MarkRow,
    (names, storage): (&Names<'_>, Storage<'_>),
    now: Timestamp,
) -> Done {
    let fencings = journal.fencings_of(row.id)?.sound;
    let naming = match fencings.first() {
        Some(first) => names.of_fencing(first, journal.is_imported(first.id)?),
        None => names.of_node(&row.node),
    };
    let given = fencings.iter().find_map(|fencing| fencing.given_shared_storage);
    let before = (row.fqdn.clone(), row.on_shared_storage);
    row.on_shared_storage = storage.of(&row.node, given);
    row.fqdn = naming.as_ref().ok().cloned().flatten();
    if before != (row.fqdn.clone(), row.on_shared_storage) {
        let deliveries = match row.to_mark() {
            Some(mark) => deliveries(base, journal, &mark)?,
            None => Vec::new(),
        };
        journal.complete_mark(&row, &deliveries, now)?;
        base.seen().news = true;
    }
    announce(&row, naming.as_ref().err());
    Ok(())
}
