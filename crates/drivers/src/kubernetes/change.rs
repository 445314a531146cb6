//! The modes that change an object which is there: a host's Node, or its Machine.

use marks::time::Timestamp;

use super::body::{Mode, Stored};
use super::keys::Options;
use super::object::{Machine, Node, gone, the_one};
use super::remediation::CLUSTER_API;
use super::server::{MERGE, Place, STRATEGIC, Server};
use super::{annotate, condition, taint};
use crate::driver::{Outcome, Step};

/// Does what the message says, or undoes it.
///
/// # Errors
/// A question was not answered, or a change was refused.
pub(super) async fn changed(
    server: &Server<'_>,
    options: &Options,
    mode: Mode,
    stored: &Stored,
    step: Step,
) -> Result<Outcome, Outcome> {
    let is_back = step == Step::Return;
    match mode {
        Mode::Annotate => of_machine(server, options, stored, is_back).await,
        _ => of_node(server, mode, stored, is_back).await,
    }
}

async fn of_node(
    server: &Server<'_>,
    mode: Mode,
    stored: &Stored,
    is_back: bool,
) -> Result<Outcome, Outcome> {
    let now = Timestamp::now();
    let path = node_path(&stored.host);
    let place = match mode {
        Mode::Condition => Place { path, part: "/status", patch: STRATEGIC },
        _ => Place { path, part: "", patch: MERGE },
    };
    let plan = |node: Option<&Node>| match (mode, is_back) {
        (Mode::Condition, false) => condition::set(stored, node, now),
        (Mode::Condition, true) => condition::clear(stored, node, now),
        (_, false) => taint::set(stored, node),
        (_, true) => taint::clear(stored, node),
    };
    server.amend(&place, plan).await
}

async fn of_machine(
    server: &Server<'_>,
    options: &Options,
    stored: &Stored,
    is_back: bool,
) -> Result<Outcome, Outcome> {
    let version = server.cluster_api().await?;
    let turn = |machine: Option<&Machine>| match is_back {
        false => annotate::set(stored, machine),
        true => annotate::clear(stored, machine),
    };
    match machine(server, options, &version, &stored.host).await? {
        None if is_back => Ok(gone()),
        None => Ok(annotate::unknown_machine(&stored.host)),
        Some(machine) => {
            let place = Place { path: machine_path(&version, &machine), part: "", patch: MERGE };
            server.amend(&place, turn).await
        }
    }
}

/// Where a node is.
pub(super) fn node_path(host: &str) -> String {
    format!("/api/v1/nodes/{host}")
}

fn machine_path(version: &str, machine: &Machine) -> String {
    let meta = &machine.metadata;
    format!("/apis/{CLUSTER_API}/{version}/namespaces/{}/machines/{}", meta.namespace, meta.name)
}

/// The Machine of a host.
///
/// # Errors
/// There are several, or the server did not say.
pub(super) async fn machine(
    server: &Server<'_>,
    options: &Options,
    version: &str,
    host: &str,
) -> Result<Option<Machine>, Outcome> {
    the_one(host, server.machines(version, options.namespace.as_deref()).await?)
}
