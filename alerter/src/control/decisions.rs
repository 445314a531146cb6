//! What operators decide about groups and hosts, over the control socket: pause, maintenance, release of a group.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use journal::{HeldMark, Journal, JournalError};
use marks::host::HostName;
use marks::id::NoteId;
use marks::register::{About, Decision, Ending, Scope};
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, JsonBody, Refusal};
use super::api::ChangeAnswer;
use super::caller::Caller;
use crate::config::Settings;
use crate::policy::Hold;
use crate::span;
use crate::state::Shared;
use crate::words::{plain, utc};

/// So many known names are said where one is not known.
const NAMES_SAID: usize = 20;

/// `POST /v1/pause`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseRequest {
    /// A group; absent means all.
    pub group: Option<String>,
    /// For how long, in seconds; absent means until `resume`.
    pub seconds: Option<u64>,
    /// Why.
    pub reason: String,
    /// Who.
    pub user: String,
}

/// `POST /v1/resume`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeRequest {
    /// A group; absent means the pauses of all groups together.
    pub group: Option<String>,
    /// Why.
    pub reason: String,
    /// Who.
    pub user: String,
}

/// `POST /v1/maintenance/begin`, of a host or of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRequest {
    /// The host's node name.
    pub host: Option<String>,
    /// Or a group.
    pub group: Option<String>,
    /// For how long at most, in seconds.
    pub seconds: u64,
    /// Why.
    pub reason: String,
    /// Who.
    pub user: String,
}

/// `POST /v1/maintenance/end`: all of a host or of a group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndRequest {
    /// The host's node name.
    pub host: Option<String>,
    /// Or a group.
    pub group: Option<String>,
    /// Why.
    pub reason: String,
    /// Who.
    pub user: String,
}

/// The answer to what begins something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Its id.
    pub id: String,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// One sentence.
    pub message: String,
}

/// One line of `GET /v1/decisions`: a decision that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// Its id.
    pub id: String,
    /// `pause`, `maintenance` or `release-group`.
    pub kind: String,
    /// The host, where it is about one.
    pub host: Option<String>,
    /// The group, where it is about one; neither means all groups.
    pub group: Option<String>,
    /// Since when.
    pub at: Timestamp,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

impl From<&Decision> for InForce {
    fn from(decision: &Decision) -> Self {
        let (host, group) = match decision.about.scope() {
            Some(Scope::Host(name)) => (Some(name.to_string()), None),
            Some(Scope::Group(name)) => (None, Some(name)),
            Some(Scope::All) | None => (None, None),
        };
        Self {
            id: decision.id.to_string(),
            kind: decision.about.kind().to_owned(),
            host,
            group,
            at: decision.at,
            until: decision.about.until(),
            actor: decision.actor.clone(),
            reason: decision.reason.clone(),
        }
    }
}

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/pause", post(pause))
        .route("/v1/resume", post(resume))
        .route("/v1/maintenance/begin", post(begin))
        .route("/v1/maintenance/end", post(end))
        .route("/v1/decisions", get(in_force))
}

async fn pause(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<PauseRequest>,
) -> Answer<Decided> {
    let user = caller.signed(&request.user);
    let scope = match &request.group {
        Some(name) => known_group(&shared.base.settings(), name)?,
        None => Scope::All,
    };
    let now = Timestamp::now();
    let until = request.seconds.map(|seconds| after(now, seconds)).transpose()?;
    let resume = match &scope {
        Scope::Group(name) => format!("`nova-host-alerter resume --group {name}`"),
        _ => "`nova-host-alerter resume`".to_owned(),
    };
    let by_itself = request.seconds.map(|seconds| format!(" or {seconds} s have passed")).unwrap_or_default();
    let message = format!(
        "no failure of {scope} is sent until {resume}{by_itself}; marks are made and kept; routes with `when-returned` are still notified of returns"
    );
    decide(&shared, About::Pause { scope, until }, (&request.reason, &user), now, message).await
}

async fn begin(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<MaintenanceRequest>,
) -> Answer<Decided> {
    let user = caller.signed(&request.user);
    let scope = match (&request.host, &request.group) {
        (Some(name), None) => known_host(&shared, name).await?,
        (None, Some(name)) => known_group(&shared.base.settings(), name)?,
        _ => return Err(Refusal::bad("scope", "a maintenance covers one host or one group: name one")),
    };
    let now = Timestamp::now();
    let until = after(now, request.seconds)?;
    let message =
        format!("{scope} is on maintenance for {} s at most; marks are made and kept", request.seconds);
    decide(&shared, About::Maintenance { scope, until }, (&request.reason, &user), now, message).await
}

/// What is held of a group now may go. It proves nothing: a mark in doubt needs a release of its own.
pub(super) async fn release_group(
    shared: &Shared,
    name: &str,
    reason: &str,
    user: &str,
) -> Answer<ChangeAnswer> {
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
    let Json(Decided { message, .. }) =
        decide(shared, about, (reason, user), Timestamp::now(), message).await?;
    Ok(Json(ChangeAnswer { changed, message }))
}

fn held_by_storm(journal: &Journal, group: &Scope) -> Result<usize, JournalError> {
    let is_storm = |word: &String| word == Hold::Storm.as_str();
    let is_its = |held: &&HeldMark| {
        held.words.iter().any(is_storm) && held.cause.scope.as_ref().is_none_or(|scope| scope == group)
    };
    Ok(journal.holds()?.values().filter(is_its).count())
}

async fn decide(
    shared: &Shared,
    about: About,
    (reason, user): (&str, &str),
    at: Timestamp,
    message: String,
) -> Answer<Decided> {
    if reason.trim().is_empty() {
        return Err(Refusal::bad("reason", "this needs a reason: others will ask why no mark is sent"));
    }
    let (id, until) = (NoteId::generate(), about.until());
    let decision = Decision { id, about, at, actor: user.to_owned(), reason: plain(reason) };
    shared.base.store.run(move |journal| journal.decide(&decision)).await?;
    publish(shared);
    Ok(Json(Decided { id: id.to_string(), until, message }))
}

/// Each pause and maintenance that is in force, in a sentence.
pub(super) fn sentences(journal: &Journal, now: Timestamp) -> Result<Vec<String>, JournalError> {
    let in_force = journal.decisions_in_force(now)?.sound;
    let sentence = |decision: &Decision| {
        let (kind, scope) = (decision.about.kind(), decision.about.scope()?);
        let until = match (&decision.about, decision.about.until()) {
            (_, Some(at)) => format!(", until {}", utc(at)),
            (About::Pause { .. }, None) => ", until `resume`".to_owned(),
            (_, None) => String::new(),
        };
        let (actor, since, reason) = (&decision.actor, utc(decision.at), &decision.reason);
        decision.about.holds().then(|| format!("{kind} of {scope} by {actor} since {since}{until}: {reason}"))
    };
    Ok(in_force.iter().filter_map(sentence).collect())
}

/// The register and the policy have it at once.
fn publish(shared: &Shared) {
    shared.base.seen().news = true;
    shared.poke.notify_one();
}

async fn resume(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<ResumeRequest>,
) -> Answer<ChangeAnswer> {
    let scope = request.group.clone().map_or(Scope::All, Scope::Group);
    let meant = scope.clone();
    let is_meant = move |decision: &Decision| match &decision.about {
        About::Pause { scope, .. } => *scope == meant,
        _ => false,
    };
    let changed = end_all(&shared, is_meant, (&request.reason, &caller.signed(&request.user))).await?;
    if let (0, Some(name)) = (changed, &request.group) {
        known_group(&shared.base.settings(), name)?;
    }
    let message = match changed {
        0 => format!("there is no pause of {scope} to end: see `nova-host-alerter status`"),
        changed => format!("{changed} pause(s) of {scope} ended by you"),
    };
    Ok(Json(ChangeAnswer { changed, message }))
}

/// What is in force ends, whether or not its name is still known.
async fn end(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<EndRequest>,
) -> Answer<ChangeAnswer> {
    let (scope, user) = (scope_of(&request)?, caller.signed(&request.user));
    let (wanted, why) = (scope.clone(), (request.reason.as_str(), user.as_str()));
    let is_meant = move |decision: &Decision| is_maintenance_of(decision, &wanted);
    let changed = end_all(&shared, is_meant, why).await?;
    match &scope {
        Scope::Group(name) if changed == 0 => drop(known_group(&shared.base.settings(), name)?),
        Scope::Host(name) if changed == 0 => {
            known_host(&shared, name.as_str()).await?;
        }
        _ => {}
    }
    let message = match changed {
        0 => format!("there is no maintenance of {scope} to end: see `nova-host-alerter maintenance list`"),
        changed => format!("{changed} maintenance(s) of {scope} ended by you"),
    };
    Ok(Json(ChangeAnswer { changed, message }))
}

/// Whose maintenances an operator wants to end.
fn scope_of(request: &EndRequest) -> Result<Scope, Refusal> {
    match (&request.host, &request.group) {
        (Some(name), None) => host(name),
        (None, Some(name)) => Ok(Scope::Group(name.clone())),
        _ => Err(Refusal::bad("scope", "name exactly one: a host or a group")),
    }
}

fn is_maintenance_of(decision: &Decision, wanted: &Scope) -> bool {
    matches!(&decision.about, About::Maintenance { scope, .. } if scope == wanted)
}

/// Ends what is in force and meant; says how many there were.
async fn end_all(
    shared: &Shared,
    is_meant: impl Fn(&Decision) -> bool + Send + 'static,
    (reason, user): (&str, &str),
) -> Result<usize, JournalError> {
    let (reason, actor) = (plain(reason), user.to_owned());
    let work = move |journal: &mut Journal| {
        let at = Timestamp::now();
        let mut ended = 0;
        for decision in journal.decisions_in_force(at)?.sound.iter().filter(|decision| is_meant(decision)) {
            let ending = Ending { id: decision.id, at, actor: actor.clone(), reason: reason.clone() };
            ended += usize::from(journal.end_decision(&ending)?);
        }
        Ok(ended)
    };
    let ended = shared.base.store.run(work).await?;
    publish(shared);
    Ok(ended)
}

async fn in_force(State(shared): State<Arc<Shared>>) -> Answer<Vec<InForce>> {
    let found = shared.base.store.run(|journal| journal.decisions_in_force(Timestamp::now())).await?;
    shared.base.damages.report(&found.damaged);
    Ok(Json(found.sound.iter().map(InForce::from).collect()))
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

/// A host that could be notified: of those that the cluster knows, or that has marks; without a cluster to ask, every host that
/// `[hosts] match` does not leave out.
async fn known_host(shared: &Shared, name: &str) -> Result<Scope, Refusal> {
    let Scope::Host(node) = host(name)? else { return Err(Refusal::bad("host", "this is not a host")) };
    let settings = shared.base.settings();
    let (cib, matching) = (shared.base.cib(), &settings.hosts.matching);
    let nodes = cib.map(|cib| cib.remote_nodes().to_vec());
    let is_literal = matching.as_ref().is_some_and(|patterns| patterns.names_literally(&node));
    let is_matched = matching.as_ref().is_none_or(|patterns| patterns.covers(&node));
    let is_there = nodes.as_ref().is_none_or(|nodes| nodes.contains(&node));
    let asked = node.clone();
    let has_marks =
        shared.base.store.run(move |journal| Ok(!journal.marks_of(&asked)?.sound.is_empty())).await?;
    if is_literal || (is_matched && is_there) || has_marks {
        return Ok(Scope::Host(node));
    }
    let known = nodes.unwrap_or_default();
    Err(unknown("host", name, &known.iter().map(HostName::as_str).collect::<Vec<_>>()))
}

fn host(name: &str) -> Result<Scope, Refusal> {
    HostName::parse(name).map(Scope::Host).map_err(|e| Refusal::bad("host", &e.to_string()))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Refusal {
    let name: String = plain(name).chars().take(64).collect();
    let more = match known.len().saturating_sub(NAMES_SAID) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let known = match known {
        [] => "[hosts] match leaves it out".to_owned(),
        known => format!("known are {}{more}", known[..known.len().min(NAMES_SAID)].join(", ")),
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
            scope_of(&EndRequest { host: own(host), group: own(group), ..EndRequest::default() })
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
