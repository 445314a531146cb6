//! What a starting daemon makes of the marks that an older one left open.

use std::sync::Arc;
use std::time::Duration;

use journal::{Journal, LeftRoute, NewDelivery, PAGE, Position, Resolved};
use marks::delivery::{Delivery, State};
use marks::id::MarkId;
use marks::mark::{Doubt, Mark, MarkRow, Proof, Settlement, Standing};
use marks::outage;
use marks::register::{Decision, Ending, Entries, Entry, Key, Register};
use marks::time::Timestamp;
use tracing::{error, warn};

use super::judge::is_surely_down;
use super::made::{Done, announce, deliveries, deliveries_of, recipients};
use super::naming::{Names, Naming};
use crate::base::Base;
use crate::config::{Group, Recipients, Route};

/// After a start: marks that were held for want of a name, and open marks made before a route was configured. With a
/// cluster the names wait for its first poll, since they may be another node's.
///
/// # Errors
/// As any write.
pub fn catch_up(journal: &mut Journal, base: &Base, now: Timestamp) -> Done {
    name_without_cluster(journal, base, now)?;
    serve_new_routes(journal, base, now)
}

/// Marks that were held for want of a name, where no cluster has to be asked for it.
///
/// # Errors
/// As any write.
pub fn name_without_cluster(journal: &mut Journal, base: &Base, now: Timestamp) -> Done {
    match base.cluster {
        Some(_) => Ok(()),
        None => name_held(journal, base, &Names::new(&base.settings().hosts, None), now),
    }
}

/// How far open marks have been given the deliveries of routes that are new.
#[derive(Clone, Debug, Default)]
pub struct Serving {
    last: Position,
    /// A mark was damaged, and may be mended.
    is_damaged: bool,
}

/// Gives open marks the deliveries of routes that they have none of, once for each configuration, as soon as it is known
/// which group each host is in. There may be very many: each page is one transaction.
fn serve_new_routes(journal: &mut Journal, base: &Base, now: Timestamp) -> Done {
    if !base.knows_groups() {
        return Ok(());
    }
    let mut serving = Some(Serving::default());
    while let Some(at) = serving {
        serving = serve_page(journal, base, at, now)?;
    }
    Ok(())
}

/// The next page of it; gives where the one behind it begins, or none where every mark has been served. To be called once it
/// is known which group each host is in.
///
/// # Errors
/// As any write; the same page is then to be served again.
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
        // The next start looks at every mark again.
        Err(error) if error.may_pass() => Ok(()),
        noted => noted,
    }
}

/// Gives their deliveries to open marks that have none at all: nobody knows how that came about.
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

/// What has come of the end of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unrouted {
    /// Of how many marks, and how many of these have ended by it.
    pub left: LeftRoute,
    /// How many are being notified there and were left alone.
    pub under_way: usize,
}

/// Ends what waits for a route that is not configured any more, by an operator's word. First its marks get what the routes
/// that there are may still lack of them: a mark is notified to whoever is notified of its host now. What is under way there is left
/// alone.
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
    let group = |group: &Group| format!("{} {:?} {:?}", group.name, group.members, group.told);
    let settings = base.settings();
    settings.routes.iter().map(reach).chain(settings.groups.iter().map(group)).collect::<Vec<_>>().join("\n")
}

/// After a start, once the register is known: a mark that an older daemon left open here, of which the register knows
/// nothing, may have been notified by others meanwhile. It ends if another mark of its outage was acknowledged, or goes out
/// from here; it is held if it is old or the register once had it, and nothing shows that its host is still down. All with a
/// notice. No age ends it.
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
        let Some(other) = taken_over(journal, &row, entries, base.settings().intake.coalesce)? else {
            return doubt(journal, base, register, row, now);
        };
        let reason = format!("the outage of {} was taken over by another alerter as mark {other}", row.node);
        error!(mark = %row.id, host = %row.node, "{reason}");
        journal.expire(row.id, &reason, now).map(drop)
    });
    settled?;
    end_forgotten(journal, base, (register, entries), now)
}

/// A pause or a maintenance that stood in the register and is gone from it was ended elsewhere, so long ago that its end is
/// gone too. Where the register was lost as a whole, nobody knows, and it holds.
fn end_forgotten(
    journal: &mut Journal,
    base: &Base,
    (register, entries): (Register, &Entries),
    now: Timestamp,
) -> Done {
    let is_whole = !entries.is_partial && entries.sound.keys().any(|key| matches!(key, Key::Watermark(_)));
    let in_force = journal.decisions_in_force(now)?.sound;
    let is_old = |decision: &&Decision| decision.about.holds() && decision.at < *base.started();
    for decision in in_force.iter().filter(is_old).filter(|_| is_whole) {
        let key = Key::Decision(decision.id);
        if entries.sound.contains_key(&key) || !journal.is_published(register, &key.to_string())? {
            continue;
        }
        let (kind, actor) = (decision.about.kind(), &decision.actor);
        warn!(
            "the {kind} by {actor} is in force here alone: it was ended on another controller, and ends here"
        );
        let reason = "it was ended on another controller, while this one was away".to_owned();
        let ending = Ending { id: decision.id, at: now, actor: base.controller.clone(), reason };
        journal.end_decision(&ending)?;
    }
    Ok(())
}

/// The register has lost a mark that stood there for all to notify, or it is found long after. Nobody but this controller
/// could notify one that never stood there, or that an operator made or released here.
fn doubt(journal: &mut Journal, base: &Base, register: Register, mut row: MarkRow, now: Timestamp) -> Done {
    let is_old = now.since(row.failure_time) > base.settings().intake.horizon;
    let is_ours_alone = row.standing == Standing::Proven(Proof::Operator)
        || !journal.is_published(register, &Key::Mark(row.id).to_string())?;
    if is_ours_alone && !is_old {
        return Ok(());
    }
    let down = base.cib().is_some_and(|cib| is_surely_down(&cib, &row.node, row.failure_time));
    if !down && journal.doubt(row.id, Doubt::OutcomeUnknown, now)? {
        row.standing = Standing::Doubtful(Doubt::OutcomeUnknown);
        announce(&row, None);
    }
    Ok(())
}

/// A mark that another alerter made of the same outage. The register's word alone is not enough: it was acknowledged, or
/// something here proves it, so that it goes out.
fn taken_over(
    journal: &Journal,
    row: &MarkRow,
    entries: &Entries,
    coalesce: Duration,
) -> Done<Option<MarkId>> {
    for entry in entries.sound.values() {
        let Entry::Mark(entry) = entry else { continue };
        if outage::is_twice(row, entry, coalesce)
            && let Some(Ok(other)) = journal.find_mark(entry.mark.id)?
            && is_notified(&other)
        {
            return Ok(Some(other.id));
        }
    }
    Ok(None)
}

/// Whether a mark was acknowledged, or nothing but a recovery controller keeps it from being.
fn is_notified(row: &MarkRow) -> bool {
    match row.settled {
        Some((how, _)) => how == Settlement::Acknowledged,
        None => row.standing.doubt().is_none() && row.fqdn.is_some(),
    }
}

fn missing_routes(journal: &Journal, base: &Base, mark: &Mark) -> Done<Vec<NewDelivery>> {
    let existing = journal.deliveries_of(mark.id)?;
    // A damaged row has no believable route: adding one beside it could send the same mark twice.
    if !existing.damaged.is_empty() {
        return Ok(Vec::new());
    }
    let settings = base.settings();
    let told = recipients(base, &settings, &mark.node);
    let mut missing = match told {
        // A chain that is under way is gone through as it was made.
        Recipients::Chain(_) if is_under_way(base, &told, &existing.sound) => Vec::new(),
        _ => deliveries_of(&told, journal, mark)?,
    };
    missing.retain(|new| existing.sound.iter().all(|old| old.route != new.route));
    Ok(missing)
}

/// Whether anybody is still to be notified on a route that is there, or a step of a chain has it. What another route has come to is
/// no word of the controllers in the chain.
fn is_under_way(base: &Base, told: &Recipients<'_>, existing: &[Delivery]) -> bool {
    let chain = told.routes();
    existing.iter().any(|old| {
        let is_step = || old.chain.is_some() || chain.iter().any(|route| route.name.as_str() == old.route);
        let is_awaited = !old.state.is_final() && base.route(&old.route).is_some();
        old.required && (is_awaited || (old.state == State::Acknowledged && is_step()))
    })
}

/// Gives marks that were held for want of a name the one that they have now.
pub(super) fn name_held(journal: &mut Journal, base: &Base, names: &Names<'_>, now: Timestamp) -> Done {
    for row in journal.nameless_marks()?.sound {
        let naming = naming(journal, names, &row)?;
        name(journal, base, row, naming, now)?;
    }
    Ok(())
}

fn naming(journal: &Journal, names: &Names<'_>, row: &MarkRow) -> Done<Naming> {
    Ok(match journal.fencings_of(row.id)?.sound.first() {
        Some(first) => names.of_fencing(first, journal.is_imported(first.id)?),
        None => names.of_node(&row.node),
    })
}

fn name(journal: &mut Journal, base: &Base, mut row: MarkRow, naming: Naming, now: Timestamp) -> Done {
    let clash = naming.as_ref().err();
    row.fqdn = naming.as_ref().ok().cloned().flatten();
    if let Some(mark) = row.to_mark() {
        let deliveries = deliveries(base, journal, &mark)?;
        journal.name_mark(&Resolved { mark, deliveries }, now)?;
        base.seen().news = true;
    }
    announce(&row, clash);
    Ok(())
}
