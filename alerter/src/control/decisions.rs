//! What operators decide about groups and hosts, over the control socket: pause, maintenance, release of a group.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use journal::{Done, HeldMark, Journal};
use marks::host::HostName;
use marks::id::NoteId;
use marks::register::{About, Decision, Ending, Scope};
use marks::time::Timestamp;
use pacemaker::cib::Cib;

use super::answer::{Answer, Asked, Refusal};
use super::api::{ChangeAnswer, Request};
use crate::config::Settings;
use crate::policy::{Hold, end_of_pause};
use crate::span;
use crate::state::Shared;
use crate::words::{named_up_to, plain, utc};

/// So many known names are said where one is not known.
const NAMES_SAID: usize = 20;

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/pause", post(pause))
        .route("/v1/resume", post(resume))
        .route("/v1/maintenance/begin", post(begin))
        .route("/v1/maintenance/end", post(end))
}

async fn pause(State(shared): State<Arc<Shared>>, asked: Asked) -> Answer<ChangeAnswer> {
    let group = asked.request.group.as_deref();
    let scope = group.map_or(Ok(Scope::All), |name| known_group(&shared.base.settings(), name))?;
    let (now, seconds) = (Timestamp::now(), asked.request.seconds);
    let until = seconds.map(|seconds| after(now, seconds)).transpose()?;
    let resume = end_of_pause(Some(&scope));
    let by_itself = seconds.map(|seconds| format!(" or {seconds} s have passed")).unwrap_or_default();
    let message = format!(
        "no failure of {scope} is sent until {resume}{by_itself}; marks are made and kept; routes with `when-returned` are still notified of returns"
    );
    decide(&shared, About::Pause { scope, until }, &asked, now, message).await
}

async fn begin(State(shared): State<Arc<Shared>>, asked: Asked) -> Answer<ChangeAnswer> {
    let scope = known(&shared, scope_of(&asked.request)?, shared.base.cib().as_deref()).await?;
    let (now, seconds) = (Timestamp::now(), asked.request.seconds.unwrap_or_default());
    let until = after(now, seconds)?;
    let message = format!("{scope} is on maintenance for {seconds} s at most; marks are made and kept");
    decide(&shared, About::Maintenance { scope, until }, &asked, now, message).await
}

/// What is held of a group now may go. It proves nothing: a mark in doubt needs a release of its own.
pub(super) async fn release_group(shared: &Shared, name: &str, asked: &Asked) -> Answer<ChangeAnswer> {
    let scope = known_group(&shared.base.settings(), name)?;
    let group = scope.clone();
    let changed = shared.base.store.run(move |journal| held_by_storm(journal, &group)).await?;
    if changed == 0 {
        let message = format!("nothing was released: no storm holds a mark of {scope}");
        return Err(Refusal::new(StatusCode::CONFLICT, "not-held", &message));
    }
    let message = format!(
        "{changed} mark(s) of {scope} that a storm held are released; other holds stay: `show HOST` shows them"
    );
    let about = About::ReleaseGroup(name.to_owned());
    let Json(answer) = decide(shared, about, asked, Timestamp::now(), message).await?;
    Ok(Json(ChangeAnswer { changed, ..answer }))
}

fn held_by_storm(journal: &Journal, group: &Scope) -> Done<usize> {
    let is_storm = |word: &String| word == Hold::Storm.as_str();
    let is_its = |held: &&HeldMark| {
        held.words.iter().any(is_storm) && held.cause.scope.as_ref().is_none_or(|scope| scope == group)
    };
    Ok(journal.holds()?.values().filter(is_its).count())
}

async fn decide(
    shared: &Shared,
    about: About,
    asked: &Asked,
    at: Timestamp,
    message: String,
) -> Answer<ChangeAnswer> {
    asked.needs_reason("this needs a reason: others will ask why no mark is sent")?;
    let (id, actor, reason) = (NoteId::generate(), asked.user.clone(), asked.reason.clone());
    let decision = Decision { id, about, at, actor, reason };
    shared.base.store.run(move |journal| journal.decide(&decision)).await?;
    publish(shared);
    Ok(Json(ChangeAnswer { changed: 1, message }))
}

/// A pause or a maintenance in a sentence: of what, whose, since and until when, why; none for a decision that holds nothing.
pub(crate) fn sentence(decision: &Decision) -> Option<String> {
    let (kind, scope) = (decision.about.kind(), decision.about.scope()?);
    let until = match (&decision.about, decision.about.until()) {
        (_, Some(at)) => format!(", until {}", utc(at)),
        (About::Pause { .. }, None) => ", until `resume`".to_owned(),
        (_, None) => String::new(),
    };
    let (actor, since, reason) = (&decision.actor, utc(decision.at), &decision.reason);
    decision.about.holds().then(|| format!("{kind} of {scope} by {actor} since {since}{until}: {reason}"))
}

/// The register and the policy have it at once.
pub(super) fn publish(shared: &Shared) {
    shared.base.seen().news = true;
    shared.poke.notify_one();
}

async fn resume(State(shared): State<Arc<Shared>>, asked: Asked) -> Answer<ChangeAnswer> {
    let scope = asked.request.group.clone().map_or(Scope::All, Scope::Group);
    let meant = scope.clone();
    let is_meant =
        move |decision: &Decision| matches!(&decision.about, About::Pause { scope, .. } if *scope == meant);
    end_all(&shared, ("pause", "status"), (scope, is_meant), asked).await
}

async fn end(State(shared): State<Arc<Shared>>, asked: Asked) -> Answer<ChangeAnswer> {
    let scope = scope_of(&asked.request)?;
    let wanted = scope.clone();
    let is_meant = move |decision: &Decision| is_maintenance_of(decision, &wanted);
    end_all(&shared, ("maintenance", "maintenance list"), (scope, is_meant), asked).await
}

fn scope_of(request: &Request) -> Result<Scope, Refusal> {
    match (&request.target, &request.group) {
        (Some(name), None) => host(name),
        (None, Some(name)) => Ok(Scope::Group(name.clone())),
        _ => Err(Refusal::bad("scope", "name exactly one: a host or a group")),
    }
}

fn is_maintenance_of(decision: &Decision, wanted: &Scope) -> bool {
    matches!(&decision.about, About::Maintenance { scope, .. } if scope == wanted)
}

/// Ends the decisions of a scope that are meant; a scope that does not exist is refused where there is none. `what` they are, and the
/// command that shows them.
async fn end_all(
    shared: &Shared,
    (what, shown_by): (&str, &str),
    (scope, is_meant): (Scope, impl Fn(&Decision) -> bool + Send + 'static),
    Asked { user, reason, .. }: Asked,
) -> Answer<ChangeAnswer> {
    shared.first_reading().await;
    let work = move |journal: &mut Journal| {
        let at = Timestamp::now();
        let mut ended = 0;
        for decision in journal.decisions_in_force(at)?.sound.iter().filter(|decision| is_meant(decision)) {
            let ending = Ending { id: decision.id, at, actor: user.clone(), reason: reason.clone() };
            ended += usize::from(journal.end_decision(&ending)?);
        }
        Ok(ended)
    };
    let changed = shared.base.store.run(work).await?;
    publish(shared);
    let message = match changed {
        0 if shared.is_register_unread() => return Err(Refusal::unread()),
        0 => {
            let scope = known(shared, scope, shared.base.cib().as_deref()).await?;
            format!("there is no {what} of {scope} to end: see `nova-host-alerter {shown_by}`")
        }
        changed => format!("{changed} {what}(s) of {scope} ended by you"),
    };
    Ok(Json(ChangeAnswer { changed, message }))
}

fn after(now: Timestamp, seconds: u64) -> Result<Timestamp, Refusal> {
    let span = span::of_seconds(seconds).map_err(|e| Refusal::bad(e.kind(), &e.to_string()))?;
    Ok(now + span)
}

fn known_group(settings: &Settings, name: &str) -> Result<Scope, Refusal> {
    let known = group_names(settings);
    if known.contains(&name) {
        return Ok(Scope::Group(name.to_owned()));
    }
    Err(unknown("group", name, &known))
}

/// The hosts of no other group are in `default`, whether or not that is written.
fn group_names(settings: &Settings) -> Vec<&str> {
    let mut names: Vec<&str> = settings.groups.iter().map(|group| group.name.as_str()).collect();
    if !names.contains(&"default") {
        names.push("default");
    }
    names
}

/// The scope, if it exists as far as the CIB is known: a typo would cover nothing.
pub(super) async fn known(shared: &Shared, scope: Scope, cib: Option<&Cib>) -> Result<Scope, Refusal> {
    let node = match scope {
        Scope::Host(node) => node,
        Scope::Group(name) => return known_group(&shared.base.settings(), &name),
        Scope::All => return Ok(scope),
    };
    let settings = shared.base.settings();
    let matching = &settings.hosts.matching;
    let nodes = cib.map(|cib| cib.remote_nodes().to_vec());
    let is_literal = matching.as_ref().is_some_and(|patterns| patterns.names_literally(&node));
    let is_matched = matching.as_ref().is_none_or(|patterns| patterns.covers(&node));
    let is_there = nodes.as_ref().is_none_or(|nodes| nodes.contains(&node));
    let asked = node.clone();
    let met = move |journal: &mut Journal| {
        let is_marked = !journal.marks_of(&asked)?.sound.is_empty();
        Ok(is_marked || !journal.sightings_of_host(&asked)?.sound.is_empty())
    };
    let was_met = shared.base.store.run(met).await?;
    if is_literal || (is_matched && is_there) || was_met {
        return Ok(Scope::Host(node));
    }
    let known = nodes.unwrap_or_default();
    Err(unknown("host", node.as_str(), &known.iter().map(HostName::as_str).collect::<Vec<_>>()))
}

fn host(name: &str) -> Result<Scope, Refusal> {
    HostName::parse(name).map(Scope::Host).map_err(|e| Refusal::bad("host", &e.to_string()))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Refusal {
    let name: String = plain(name).chars().take(64).collect();
    let known = match known {
        [] => "[hosts] match leaves it out".to_owned(),
        known => format!("known are {}", named_up_to(known, NAMES_SAID)),
    };
    Refusal::bad(&format!("unknown-{what}"), &format!("there is no {what} {name:?}: {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_of_one_thing() {
        let request = |host: Option<&str>, group: Option<&str>| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            scope_of(&Request { target: own(host), group: own(group), ..Request::default() })
        };
        for (sound, meant) in [
            (true, request(Some("c1"), None)),
            (true, request(None, Some("rack1"))),
            (false, request(None, None)),
            (false, request(Some("c1"), Some("rack1"))),
            (false, request(Some("../c1"), None)),
        ] {
            assert_eq!(meant.is_ok(), sound);
        }
    }

    /// A pause is no maintenance, and a host's name may have capitals.
    #[test]
    fn what_is_meant_is_ended_and_nothing_else() {
        let decision = |about| Decision {
            id: NoteId::generate(),
            about,
            at: Timestamp(0),
            actor: "alice".into(),
            reason: "disk".into(),
        };
        let group = || Scope::Group("c1".into());
        let maintenance = |scope| decision(About::Maintenance { scope, until: Timestamp(9) });
        let of_host = maintenance(host("C1").unwrap_or(Scope::All));
        let others = [maintenance(group()), decision(About::Pause { scope: group(), until: None })];
        let meant = host("c1").unwrap_or(Scope::All);
        assert!(is_maintenance_of(&of_host, &meant));
        assert!(!others.iter().any(|other| is_maintenance_of(other, &meant)));
        assert!(!is_maintenance_of(&others[1], &group()));
    }
}
