//! The modes that change an object which is there: a host's Node, or its Machine.

use marks::time::Timestamp;

use super::body::{Mode, Stored};
use super::keys::Options;
use super::object::{Machine, Node, gone, the_one};
use super::remediation::CLUSTER_API;
use super::server::{MERGE, Place, STRATEGIC, Server, node_path};
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
    (step, attempt): (Step, u32),
) -> Result<Outcome, Outcome> {
    match (mode, step) {
        (Mode::Annotate, _) => of_machine(server, options, stored, step == Step::Return).await,
        (_, _) => of_node(server, mode, stored, (step == Step::Return, attempt)).await,
    }
}

async fn of_node(
    server: &Server<'_>,
    mode: Mode,
    stored: &Stored,
    (is_back, attempt): (bool, u32),
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
        (_, false) => taint::set(stored, node, now),
        (_, true) => taint::clear(stored, node, attempt),
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
    let (now, node) = (Timestamp::now(), if is_back { None } else { server.node(&stored.host).await? });
    let plan = |machine: Option<&Machine>| match is_back {
        false => annotate::set(stored, machine, node.as_ref(), now),
        true => annotate::clear(stored, machine),
    };
    match machine(server, options, &version, &stored.host).await? {
        None if is_back => Ok(gone()),
        None => Ok(annotate::unknown_machine(&stored.host)),
        Some(machine) => {
            let place = Place { path: machine_path(&version, &machine), part: "", patch: MERGE };
            server.amend(&place, plan).await
        }
    }
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
    let all = server.machines(version, options.namespace.as_deref(), |node| node == host).await?;
    the_one(host, &all).map(Option::<&Machine>::cloned)
}
