//! What stands against an operator's word that a host has failed: a wrong digit would start the machines of a living host twice.

use axum::http::StatusCode;
use marks::host::HostName;
use marks::id::MarkId;
use marks::register::Scope;

use super::answer::Refusal;
use super::decisions::known;
use crate::state::Shared;

const UNCHECKED: &str = "the cluster could not be asked whether the host is alive: your word counts";

/// Refuses a word about a host that nobody knows, or that lives. Gives what is to be said where the cluster could not be asked.
pub(super) async fn to(shared: &Shared, node: &HostName, insist: bool) -> Result<Option<String>, Refusal> {
    if insist {
        return Ok(None);
    }
    let cib = shared.cib_now().await;
    known(shared, Scope::Host(node.clone()), cib.as_deref()).await?;
    let Some(cib) = cib else { return Ok(Some(UNCHECKED.to_owned())) };
    if cib.membership(node) != Some(true) || cib.fenced_before(node) == Some(true) {
        return Ok(None);
    }
    let message = format!(
        "{node} is a member of the cluster and was not fenced since its last connection, so nothing was changed: to report it would start its machines twice; if it is off all the same, add --insist"
    );
    Err(Refusal::new(StatusCode::CONFLICT, "alive", &message))
}

/// The same about open marks. A return is that of a host that lives.
pub(super) async fn to_release(
    shared: &Shared,
    marks: &[MarkId],
    insist: bool,
) -> Result<Option<String>, Refusal> {
    let mut said = None;
    for id in marks.iter().copied() {
        let row = shared.base.store.run(move |journal| journal.mark(id)).await?;
        if let Some(row) = row.filter(|row| row.settled.is_none()) {
            said = to(shared, &row.node, insist).await?.or(said);
        }
    }
    Ok(said)
}
