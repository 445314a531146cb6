//! The modes as a table, and the work of those that change an object which is there: a host's Node, or its Machine.

use marks::time::Timestamp;

use super::body::{Mode, Stored};
use super::object::{Object, gone};
use super::remediation::CLUSTER_API;
use super::row::{Case, Change, Row};
use super::server::{Server, node_path};
use super::{annotate, condition, remediation, taint};
use crate::driver::{Message, Outcome, Step};

/// What a mode does.
pub(super) fn row(mode: Mode) -> &'static Row {
    match mode {
        Mode::Taint => &taint::ROW,
        Mode::Condition => &condition::ROW,
        Mode::Remediation => &remediation::ROW,
        Mode::Annotate => &annotate::ROW,
    }
}

impl Server<'_> {
    /// Does what the message says, or undoes it.
    ///
    /// # Errors
    /// A question was not answered, or a change was refused.
    pub(super) async fn change(
        &self,
        (row, change): (&Row, &Change),
        stored: &Stored,
        message: Message<'_>,
    ) -> Result<Outcome, Outcome> {
        let (host, is_back) = (&stored.host, message.step == Step::Return);
        let path = match row.is_of_machine {
            false => Some(node_path(host)),
            true => self.machine_path(host).await?,
        };
        let Some(path) = path else { return Ok(if is_back { gone() } else { (change.unknown)(host) }) };
        let node = if row.is_of_machine && !is_back { self.node(host).await? } else { None };
        let case = Case { stored, now: Timestamp::now(), attempt: message.attempts, node: node.as_ref() };
        let plan = |object: Option<&Object>| match is_back {
            false => change.set(object, &case),
            true => change.clear(object, &case),
        };
        self.amend(&path, (change.part, change.patch), &plan).await
    }

    async fn machine_path(&self, host: &str) -> Result<Option<String>, Outcome> {
        let version = self.cluster_api().await?;
        let found = self.machine(&version, host).await?;
        let path = |one: Object| {
            format!("/apis/{CLUSTER_API}/{version}/namespaces/{}/machines/{}", one.namespace(), one.name())
        };
        Ok(found.map(path))
    }
}
