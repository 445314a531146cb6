//! The fields of each kind of entry, in their fixed order, between semicolons.

use super::code::{escape, escape_maybe, unescape, unescape_maybe};
use super::notes::{
    About, Acknowledgement, Decision, Ending, MarkEntry, Operation, Returned, Scope, Settled, Watermark,
};
use crate::fencing::{Fencing, Incarnation, Origin};
use crate::host::HostName;
use crate::id::{FencingId, MarkId, NoteId, OperationId};
use crate::mark::{Mark, Settlement, Source};
use crate::time::Timestamp;

pub(super) fn of_fencing(fencing: &Fencing) -> String {
    [
        &escape(fencing.node.as_str()),
        &escape_maybe(fencing.plug.as_ref().map(HostName::as_str)),
        &number(fencing.asked_at),
        &number(fencing.committed_at),
        &escape(&fencing.seen_by),
        fencing.origin.as_str(),
        &escape_maybe(fencing.incarnation.as_ref().map(Incarnation::as_str)),
        &escape_maybe(fencing.given_domain.as_deref()),
        yes_no_or_nothing(fencing.given_shared_storage),
        yes_no_or_nothing(fencing.already_down),
        &escape_maybe(fencing.cause.as_deref()),
    ]
    .join(";")
}

pub(super) fn fencing(id: FencingId, text: &str) -> Option<Fencing> {
    let [node, plug, asked_at, committed_at, seen_by, origin, incarnation, domain, shared, down, cause] =
        fields(text)?;
    let plug = match unescape_maybe(plug)? {
        Some(name) => Some(HostName::parse(&name).ok()?),
        None => None,
    };
    Some(Fencing {
        id,
        node: host(node)?,
        plug,
        asked_at: time(asked_at)?,
        committed_at: time(committed_at)?,
        seen_by: unescape(seen_by)?,
        origin: Origin::parse(origin)?,
        incarnation: unescape_maybe(incarnation)?.map(Incarnation::from_journal),
        already_down: maybe_truth(down)?,
        given_domain: unescape_maybe(domain)?,
        given_shared_storage: maybe_truth(shared)?,
        cause: unescape_maybe(cause)?,
    })
}

pub(super) fn of_mark(entry: &MarkEntry) -> String {
    let mark = &entry.mark;
    [
        &escape(mark.node.as_str()),
        &escape(mark.fqdn.as_str()),
        yes_or_no(mark.on_shared_storage),
        &number(mark.failure_time),
        &number(mark.generated_time),
        entry.source.as_str(),
        &escape_maybe(entry.incarnation.as_ref().map(Incarnation::as_str)),
        &escape(&entry.made_by),
        &number(entry.made_at),
    ]
    .join(";")
}

pub(super) fn mark(id: MarkId, text: &str) -> Option<MarkEntry> {
    let [node, fqdn, shared, failure, generated, source, incarnation, made_by, made_at] = fields(text)?;
    let mark = Mark {
        id,
        node: host(node)?,
        fqdn: host(fqdn)?,
        on_shared_storage: truth(shared)?,
        failure_time: time(failure)?,
        generated_time: time(generated)?,
    };
    Some(MarkEntry {
        mark,
        source: Source::parse(source)?,
        incarnation: unescape_maybe(incarnation)?.map(Incarnation::from_journal),
        made_by: unescape(made_by)?,
        made_at: time(made_at)?,
    })
}

pub(super) fn of_acknowledgement(entry: &Acknowledgement) -> String {
    at_by(entry.at, &entry.by)
}

pub(super) fn acknowledgement(mark: MarkId, route: String, text: &str) -> Option<Acknowledgement> {
    let (at, by) = when_who(text)?;
    Some(Acknowledgement { mark, route, at, by })
}

pub(super) fn of_returned(entry: &Returned) -> String {
    at_by(entry.at, &entry.by)
}

pub(super) fn returned(mark: MarkId, text: &str) -> Option<Returned> {
    let (at, by) = when_who(text)?;
    Some(Returned { mark, at, by })
}

pub(super) fn of_operation(entry: &Operation) -> String {
    [&entry.mark.to_string(), &number(entry.at), &escape(&entry.by)].map(String::as_str).join(";")
}

pub(super) fn operation(id: OperationId, text: &str) -> Option<Operation> {
    let [mark, at, by] = fields(text)?;
    Some(Operation { id, mark: MarkId::parse(mark).ok()?, at: time(at)?, by: unescape(by)? })
}

pub(super) fn of_settled(entry: &Settled) -> String {
    [entry.how.as_str(), &number(entry.at), &escape(&entry.by)].join(";")
}

pub(super) fn settled(mark: MarkId, text: &str) -> Option<Settled> {
    let [how, at, by] = fields(text)?;
    Some(Settled { mark, how: Settlement::parse(how)?, at: time(at)?, by: unescape(by)? })
}

pub(super) fn of_decision(entry: &Decision) -> String {
    let words = [number(entry.at), escape(&entry.actor), escape(&entry.reason)].join(";");
    let until = || entry.about.until().map(number).unwrap_or_default();
    match (entry.about.mark(), entry.about.scope()) {
        (Some(mark), _) => format!("{};{mark};{words}", entry.about.kind()),
        (None, scope) => {
            let scope = scope.as_ref().map(of_scope).unwrap_or_default();
            format!("{};{scope};{};{words}", entry.about.kind(), until())
        }
    }
}

pub(super) fn decision(id: NoteId, text: &str) -> Option<Decision> {
    let (kind, _) = text.split_once(';')?;
    let (about, [at, actor, reason]) = if About::is_of_a_mark(kind) {
        let [_, mark, at, actor, reason] = fields(text)?;
        (About::Release(MarkId::parse(mark).ok()?), [at, actor, reason])
    } else {
        let [_, scope_of, until, at, actor, reason] = fields(text)?;
        let until = if until.is_empty() { None } else { Some(time(until)?) };
        (About::of_scope(kind, scope(scope_of)?, until)?, [at, actor, reason])
    };
    Some(Decision { id, about, at: time(at)?, actor: unescape(actor)?, reason: unescape(reason)? })
}

pub(super) fn of_ending(entry: &Ending) -> String {
    [number(entry.at), escape(&entry.actor), escape(&entry.reason)].join(";")
}

pub(super) fn ending(id: NoteId, text: &str) -> Option<Ending> {
    let [at, actor, reason] = fields(text)?;
    Some(Ending { id, at: time(at)?, actor: unescape(actor)?, reason: unescape(reason)? })
}

fn of_scope(scope: &Scope) -> String {
    let (word, name) = scope.parts();
    format!("{word}:{}", escape(name))
}

fn scope(text: &str) -> Option<Scope> {
    let (word, name) = text.split_once(':')?;
    Scope::of_parts(word, &unescape(name)?)
}

pub(super) fn of_watermark(entry: &Watermark) -> String {
    at_by(entry.at, &entry.by)
}

pub(super) fn watermark(id: NoteId, text: &str) -> Option<Watermark> {
    let (at, by) = when_who(text)?;
    Some(Watermark { id, at, by })
}

fn at_by(at: Timestamp, by: &str) -> String {
    [number(at), escape(by)].join(";")
}

fn when_who(text: &str) -> Option<(Timestamp, String)> {
    let [at, by] = fields(text)?;
    Some((time(at)?, unescape(by)?))
}

fn fields<const COUNT: usize>(text: &str) -> Option<[&str; COUNT]> {
    text.split(';').collect::<Vec<_>>().try_into().ok()
}

fn host(text: &str) -> Option<HostName> {
    HostName::parse(&unescape(text)?).ok()
}

fn number(time: Timestamp) -> String {
    time.0.to_string()
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(Timestamp)
}

fn yes_or_no(truth: bool) -> &'static str {
    if truth { "y" } else { "n" }
}

fn yes_no_or_nothing(truth: Option<bool>) -> &'static str {
    truth.map_or("", yes_or_no)
}

/// The outer `None` means that the field is malformed.
fn maybe_truth(text: &str) -> Option<Option<bool>> {
    if text.is_empty() { Some(None) } else { truth(text).map(Some) }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "y" => Some(true),
        "n" => Some(false),
        _ => None,
    }
}
