//! The mode `remediation`: an object for an external remediation controller is made and deleted.

use marks::time::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use super::annotate::unknown_machine;
use super::body::Stored;
use super::change::machine;
use super::gates::closed;
use super::keys::Options;
use super::object::{Machine, Meta, Object, Whose, done, gone, life, rejected};
use super::remediation::{CLUSTER_API, Template, object};
use super::server::{JSON, Kinds, Server, described, misconfigured, usual};
use crate::driver::{Failure, Outcome};
use crate::web::Answer;

/// How long an object may wait for its finalizers before an operator should check, in seconds.
const ENDING: i64 = 600;

/// One message, and what is needed for it.
pub(super) struct Work<'a> {
    pub(super) server: &'a Server<'a>,
    pub(super) options: &'a Options,
    pub(super) template: &'a Template,
    pub(super) stored: &'a Stored,
}

/// Where the object is.
struct Spot {
    /// Whom it is for, and the version of its API.
    machine: Machine,
    version: String,
    kinds: Kinds,
    /// The path of all objects of its kind in its namespace.
    all: String,
}

impl Spot {
    fn path(&self) -> String {
        format!("{}/{}", self.all, self.machine.metadata.name)
    }
}

impl Work<'_> {
    /// The host was fenced. What keeps it back is not asked after an operator's release.
    pub(super) async fn make(&self, is_released: bool) -> Result<Outcome, Outcome> {
        let Some(spot) = self.spot().await? else { return Ok(unknown_machine(&self.stored.host)) };
        let standing = self.standing(&spot).await?;
        if let Some(outcome) = standing.as_ref().and_then(|meta| self.of_standing(&spot, meta)) {
            return Ok(outcome);
        }
        if !is_released && let Some(kept_back) = closed(self.server, self.options, &self.stored.host).await? {
            return Ok(kept_back);
        }
        match standing {
            Some(meta) => self.replace(&spot, &meta).await,
            None => self.create(&spot).await,
        }
    }

    /// The host was back since the object of an earlier mark was made, and nothing has removed it.
    async fn replace(&self, spot: &Spot, meta: &Meta) -> Result<Outcome, Outcome> {
        self.remove(spot, meta).await?;
        match self.standing(spot).await? {
            None => self.create(spot).await,
            Some(meta) => Ok(self.of_standing(spot, &meta).unwrap_or_else(|| self.ending(spot, &meta))),
        }
    }

    async fn standing(&self, spot: &Spot) -> Result<Option<Meta>, Outcome> {
        Ok(self.server.get::<Object>(&spot.path()).await?.map(|one| one.metadata))
    }

    /// What an object under this name means for the mark; `None` if it must give way.
    fn of_standing(&self, spot: &Spot, meta: &Meta) -> Option<Outcome> {
        match (meta.whose(self.stored), meta.deleted()) {
            (Whose::Ours, None) => Some(done(meta, "")),
            // Its controller has finished with it, or somebody has ended it.
            (Whose::Ours, Some(_)) => Some(done(meta, "being-deleted")),
            (Whose::Later, _) => Some(done(meta, "overtaken")),
            (Whose::Earlier, Some(_)) => Some(self.ending(spot, meta)),
            (Whose::Earlier, None) => None,
            (Whose::Nobodys, _) => Some(rejected(
                "not-ours",
                &format!(
                    "{} is there, and not of ours: check whether it recovers the host, then unmark or delete it",
                    self.name(spot)
                ),
            )),
        }
    }

    /// The object of an earlier mark waits for its finalizers.
    fn ending(&self, spot: &Spot, meta: &Meta) -> Outcome {
        let since = Timestamp::now().seconds().saturating_sub(meta.deleted().unwrap_or(i64::MAX));
        let says = format!("{} of an earlier mark waits for its finalizers", self.name(spot));
        match since > ENDING {
            false => Outcome::Wait(Failure::new("ending", &says)),
            true => rejected("ending", &format!("{says} for {since} s: check its controller")),
        }
    }

    fn name(&self, spot: &Spot) -> String {
        format!(
            "{} {}/{}",
            self.template.object_kind(),
            spot.machine.metadata.namespace,
            spot.machine.metadata.name
        )
    }

    async fn create(&self, spot: &Spot) -> Result<Outcome, Outcome> {
        // A server of Cluster API alone has no Nodes.
        let node = self.server.node(&self.stored.host).await?;
        let sign = spot.machine.metadata.created().max(node.and_then(|node| node.sign()));
        if let Some(lives) = life(sign, self.stored, Timestamp::now()) {
            return Ok(lives);
        }
        let template =
            found_template(self.server, self.template, &spot.kinds, &spot.machine.metadata.namespace).await?;
        let made = object(&template, self.template, (&spot.machine, &spot.version), self.stored)
            .ok_or_else(|| misconfigured(&format!("{} has no spec.template", self.template.name)))?;
        let answer = self.server.write(&Method::POST, &spot.all, JSON, &made).await?;
        match answer.status {
            201 => Ok(self.created(&answer)),
            // Another alerter, or somebody else, was faster.
            409 => {
                let standing = self.standing(spot).await?;
                standing.and_then(|meta| self.of_standing(spot, &meta)).ok_or_else(|| usual(&answer))
            }
            _ => Err(usual(&answer)),
        }
    }

    fn created(&self, answer: &Answer) -> Outcome {
        let made = serde_json::from_slice::<Object>(&answer.body).ok();
        match made.filter(|made| made.metadata.whose(self.stored) == Whose::Ours) {
            Some(made) => done(&made.metadata, ""),
            None => {
                Outcome::Unknown(described(answer, "protocol", " and did not show the object that was made"))
            }
        }
    }

    /// The host is back.
    pub(super) async fn delete(&self) -> Result<Outcome, Outcome> {
        let Some(spot) = self.spot().await? else { return Ok(gone()) };
        let Some(meta) = self.standing(&spot).await? else { return Ok(gone()) };
        if meta.whose(self.stored) != Whose::Ours {
            return Ok(done(&meta, "left-alone"));
        }
        // One that is being deleted is gone when its controller has finished: asking again would do nothing.
        if meta.deleted().is_none() {
            self.remove(&spot, &meta).await?;
        }
        Ok(done(&meta, ""))
    }

    /// Deletes the very object that was read.
    async fn remove(&self, spot: &Spot, meta: &Meta) -> Result<(), Outcome> {
        let only = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": meta.uid}});
        let answer = self.server.write(&Method::DELETE, &spot.path(), JSON, &only).await?;
        match answer.status {
            200 | 202 => Ok(()),
            404 if answer.reason() == "NotFound" => Ok(()),
            _ => Err(usual(&answer)),
        }
    }

    /// `None` if Kubernetes does not know the host. An object that was made before ends with its Machine.
    async fn spot(&self) -> Result<Option<Spot>, Outcome> {
        let version = self.server.cluster_api().await?;
        let found = machine(self.server, self.options, &version, &self.stored.host).await?;
        let Some(machine) = found else { return Ok(None) };
        let (api_version, version) = (&self.template.api_version, format!("{CLUSTER_API}/{version}"));
        let kinds = self.server.kinds(api_version).await?;
        let plural = kinds.plural(self.template.object_kind())?;
        let all = format!("/apis/{api_version}/namespaces/{}/{plural}", machine.metadata.namespace);
        Ok(Some(Spot { machine, version, kinds, all }))
    }
}

/// A template as the server has it.
///
/// # Errors
/// It is not there, or the server did not say.
pub(super) async fn found_template(
    server: &Server<'_>,
    template: &Template,
    kinds: &Kinds,
    namespace: &str,
) -> Result<Value, Outcome> {
    let Template { api_version, kind, name, .. } = template;
    let namespace = template.namespace.as_deref().unwrap_or(namespace);
    let path = format!("/apis/{api_version}/namespaces/{namespace}/{}/{name}", kinds.plural(kind)?);
    let none = || {
        misconfigured(&format!("there is no {kind} {namespace}/{name}: create it, or correct template-name"))
    };
    server.get(&path).await?.ok_or_else(none)
}
