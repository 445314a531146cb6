//! `PATCH /v1/hosts/{host}`: somebody says that a host has failed, or that it has not.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::StatusCode;
use journal::{Done, Journal, NewHistory};
use marks::fencing::{Fencing, Origin};
use marks::host::HostName;
use marks::id::{FencingId, MarkId};
use marks::mark::{Doubt, MarkRow, Standing};
use marks::time::Timestamp;
use tracing::{info, warn};

use super::answer::{Answer, Refusal, Strict};
use super::api::{HostAnswer, HostRequest};
use super::caller::Caller;
use super::marks::is_unfinished;
use super::{left, objection};
use crate::base::Base;
use crate::intake::apply::{self, Spoken};
use crate::state::Shared;
use crate::words::plain;

/// What is on record where nobody said why a host was marked.
pub(super) const MARKED: &str = "explicitly marked unhealthy, without a stated reason";
/// The same where its marks were ended.
pub(super) const UNMARKED: &str = "explicitly marked healthy, without a stated reason";

/// What became of a request.
enum Outcome {
    /// A delivery of the host is under way: nothing was changed.
    UnderWay,
    Made {
        mark: MarkId,
        is_held: bool,
    },
    Joined(MarkId),
    /// The intake may not work now; the mark will have this id, unless the outage has one already.
    Later(MarkId),
    NotCovered,
    NoHost,
    /// More than the API speaks of a mark that is open: nothing was changed.
    NotYours(MarkId),
    /// So many marks were ended, and this may be left of them.
    Ended(usize, Vec<String>),
}

/// S2-3: exactly two keys. What is decided is decided in the same run as the change: nothing begins in between.
pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    host: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    Strict(request): Strict<HostRequest>,
) -> Answer<HostAnswer> {
    let host = host.map_err(|_| Refusal::bad("host", "the host's name is not text"))?.0;
    let node = HostName::parse(&host).map_err(|why| Refusal::bad("host", &why.to_string()))?;
    if !caller.may_mark(&node) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "not-allowed", NOT_ITS_HOST));
    }
    let is_failure = request.mark_unhealthy;
    if is_failure && shared.base.cluster.is_none() && !caller.is_trusted_alone() {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "no-proof", NO_PROOF));
    }
    // In the address, since the body has two keys and no other.
    let insist = query.as_deref() == Some("insist=true");
    let doubt = match caller {
        Caller::Local { .. } if is_failure => objection::to(&shared, &node, insist).await?,
        _ => None,
    };
    let default = if is_failure { MARKED } else { UNMARKED };
    let reason = request.resource_status_reason.as_deref().map(plain).filter(|reason| !reason.is_empty());
    let reason = reason.unwrap_or_else(|| default.to_owned());
    let (state, name, actor) = (Arc::clone(&shared), node.clone(), caller.actor());
    let work = move |journal: &mut Journal| match is_failure {
        _ if journal.is_under_way(&name)? => Ok(Outcome::UnderWay),
        true => mark(journal, &state, name, &caller, &reason),
        false => unmark(journal, &state, &name, &caller, &reason),
    };
    if !is_failure {
        shared.first_reading().await;
    }
    let done = shared.base.store.run(work).await?;
    if matches!(done, Outcome::Ended(0, _)) && shared.is_register_unread() {
        return Err(Refusal::unread());
    }
    if matches!(done, Outcome::Ended(..)) {
        shared.forget_troubles().await?;
    }
    shared.poke.notify_one();
    let mut answer = answer(&node, done, &actor)?;
    answer.message = left::with(answer.message, doubt.into_iter().collect());
    Ok(Json(answer))
}

const NOT_ITS_HOST: &str = "this token may not report this host: name the host in hosts of the token's table";
const NO_PROOF: &str = "register = \"none\", so there is no cluster to confirm that the host was fenced: run `nova-host-alerter mark HOST --fenced --reason TEXT` on the controller, or set trust-marks for this token";

fn mark(
    journal: &mut Journal,
    shared: &Shared,
    node: HostName,
    caller: &Caller,
    reason: &str,
) -> Done<Outcome> {
    if matches!(caller, Caller::Remote { .. }) && shared.base.cluster.is_some() {
        match apply::spoken_of(journal, &shared.base, &node)? {
            Spoken::New => {}
            Spoken::NotCovered => return Ok(Outcome::NotCovered),
            Spoken::NoHost => return Ok(Outcome::NoHost),
            Spoken::Known(mark) => return Ok(Outcome::Joined(mark)),
            Spoken::Noted(mark) => return Ok(Outcome::Later(mark)),
        }
    }
    let fencing = word(node, &shared.base, caller);
    journal.append_fencing(&fencing)?;
    let view = shared.base.seen().view.clone();
    apply::take_in(journal, (&shared.base, &shared.accounts), view.as_deref())?;
    let done = became(journal, &fencing)?;
    note(journal, &fencing, &done, (&caller.actor(), reason))?;
    Ok(done)
}

fn word(node: HostName, base: &Base, caller: &Caller) -> Fencing {
    let (now, cib) = (Timestamp::now(), base.cib());
    Fencing {
        id: FencingId::generate(),
        plug: None,
        asked_at: now,
        committed_at: now,
        seen_by: base.controller.clone(),
        origin: caller.origin(),
        incarnation: cib.as_ref().and_then(|cib| cib.incarnation_of(&node)),
        already_down: cib.and_then(|cib| cib.fenced_before(&node)),
        node,
        given_domain: None,
        given_shared_storage: None,
        cause: None,
    }
}

/// What the intake has made of it.
fn became(journal: &Journal, fencing: &Fencing) -> Done<Outcome> {
    let own = MarkId::from(fencing.id);
    Ok(match journal.mark_of(fencing.id)? {
        Some(mark) if mark == own => {
            let is_held = journal.mark(mark)?.is_some_and(|row| row.standing.doubt().is_some());
            Outcome::Made { mark, is_held }
        }
        Some(mark) => Outcome::Joined(mark),
        None if journal.unfolded_fencings()?.sound.contains(fencing) => Outcome::Later(own),
        None => Outcome::NotCovered,
    })
}

fn note(journal: &mut Journal, fencing: &Fencing, done: &Outcome, (actor, reason): (&str, &str)) -> Done {
    let mark = match done {
        Outcome::Made { mark, .. } | Outcome::Joined(mark) => Some(*mark),
        _ => None,
    };
    journal.append_history(&NewHistory {
        mark,
        node: Some(&fencing.node),
        ..NewHistory::new(fencing.asked_at, "marked-by-hand", reason, actor)
    })
}

/// Ends what is open of a host, and nothing else (S2-8).
fn unmark(
    journal: &mut Journal,
    shared: &Shared,
    node: &HostName,
    caller: &Caller,
    reason: &str,
) -> Done<Outcome> {
    let mut open = Vec::new();
    for mark in journal.marks_of(node)?.sound {
        if is_unfinished(journal, &mark)? {
            open.push(mark);
        }
    }
    if matches!(caller, Caller::Remote { .. }) {
        for mark in &open {
            if !is_of_the_api_alone(journal, mark)? {
                return Ok(Outcome::NotYours(mark.id));
            }
        }
    }
    let ids: Vec<MarkId> = open.iter().map(|mark| mark.id).collect();
    let left = left::behind(journal, shared, &ids)?;
    let (now, actor, mut ended) = (Timestamp::now(), caller.actor(), 0);
    for mark in open {
        ended += usize::from(journal.dismiss(mark.id, reason, &actor, now)?);
    }
    Ok(Outcome::Ended(ended, left))
}

/// Whether nobody but the API has spoken of a mark, so that the API may take its word back. What is damaged may be a proof.
fn is_of_the_api_alone(journal: &Journal, mark: &MarkRow) -> Done<bool> {
    let (fencings, sightings) = (journal.fencings_of(mark.id)?, journal.sightings_of(mark.id)?);
    let is_whole = fencings.damaged.is_empty() && sightings.damaged.is_empty();
    let is_said = !fencings.sound.is_empty() && fencings.sound.iter().all(|f| f.origin == Origin::Api);
    let is_held = mark.standing == Standing::Doubtful(Doubt::Unconfirmed);
    Ok(is_held && is_whole && is_said && sightings.sound.is_empty())
}

/// What is said of it, one sentence.
fn answer(node: &HostName, done: Outcome, actor: &str) -> Result<HostAnswer, Refusal> {
    let said = |mark: Option<MarkId>, new, changed, message: String| {
        Ok(HostAnswer { mark: mark.map(|mark| mark.to_string()), new, changed, message })
    };
    match done {
        Outcome::UnderWay => {
            let message = format!(
                "a delivery of {node} is under way, so nothing was changed: try again in some seconds"
            );
            Err(Refusal::new(StatusCode::CONFLICT, "in-progress", &message))
        }
        Outcome::NotYours(mark) => {
            let message = format!(
                "{node} was not reported by the API alone, so nothing was changed: an operator ends its mark with `nova-host-alerter unmark {mark} --reason TEXT` on the controller"
            );
            Err(Refusal::new(StatusCode::CONFLICT, "not-yours", &message))
        }
        Outcome::NotCovered => {
            Err(Refusal::bad("not-covered", "[hosts] match does not cover this host, so it is not reported"))
        }
        Outcome::NoHost => {
            Err(Refusal::absent("the cluster has no compute host of this name: give its node name"))
        }
        Outcome::Made { mark, is_held: true } => {
            warn!(mark = %mark, host = %node, "{actor} reports {node} as failed: it is held (unconfirmed) until Pacemaker confirms it");
            let message = format!(
                "{node} is marked and held (unconfirmed) until Pacemaker confirms it or an operator releases it"
            );
            said(Some(mark), true, 1, message)
        }
        Outcome::Made { mark, is_held: false } => {
            said(Some(mark), true, 1, format!("{node} is marked, and its routes are notified"))
        }
        Outcome::Joined(mark) => said(
            Some(mark),
            false,
            0,
            format!("{node} is already marked in this outage: nothing was changed"),
        ),
        Outcome::Later(mark) => {
            let message = format!("{node} is noted and will be marked when the cluster can be asked");
            said(Some(mark), true, 1, message)
        }
        Outcome::Ended(0, left) => {
            let nothing = format!("{node} has no open mark: nothing was changed");
            said(None, false, 0, left::with(nothing, left))
        }
        Outcome::Ended(ended, left) => {
            info!(host = %node, ended, "{actor} ended the open marks of {node}");
            said(None, false, ended, left::with(format!("{ended} mark(s) of {node} ended by you"), left))
        }
    }
}
