//! The mode `remediation`: an object for an external remediation controller is made and deleted.

use marks::time::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use super::body::Stored;
use super::object::{Object, Whose, done, gone, life, rejected, unknown_machine};
use super::remediation::{CLUSTER_API, Template, object};
use super::server::{Kinds, Server, described, misconfigured, usual};
use crate::driver::{Failure, Message, Outcome, Step};
use crate::web::Answer;

/// How long an object may wait for its finalizers before an operator should check, in seconds.
const ENDING: i64 = 600;

/// One message about a host that Kubernetes knows, and where its object is.
struct Work<'a> {
    server: &'a Server<'a>,
    template: &'a Template,
    stored: &'a Stored,
    /// Whom it is for, and the version of its API.
    machine: Object,
    version: String,
    kinds: Kinds,
    /// The path of all objects of its kind in its namespace.
    all: String,
}

impl Server<'_> {
    /// Makes the object of a host that was fenced, or deletes that of one that is back. What keeps a host back is not asked after an
    /// operator's release.
    ///
    /// # Errors
    /// A question was not answered, or a change was refused.
    pub(super) async fn remediate(&self, stored: &Stored, message: Message<'_>) -> Result<Outcome, Outcome> {
        let gone_from_route = "the route has no template any more: delete the object by hand if the host is back, then end the mark";
        let template = self.options.template.as_ref();
        let template = template.ok_or_else(|| rejected("rejected", gone_from_route))?;
        match (self.work(template, stored).await?, message.step) {
            (Some(work), Step::Failure) => work.make(message.is_released).await,
            (None, Step::Failure) => Ok(unknown_machine(&stored.host)),
            (Some(work), Step::Return) => work.delete().await,
            // An object that was made before ends with its Machine.
            (None, Step::Return) => Ok(gone()),
        }
    }

    /// `None` if Kubernetes does not know the host.
    async fn work<'a>(
        &'a self,
        template: &'a Template,
        stored: &'a Stored,
    ) -> Result<Option<Work<'a>>, Outcome> {
        let version = self.cluster_api().await?;
        let Some(machine) = self.machine(&version, &stored.host).await? else { return Ok(None) };
        let (api_version, version) = (&template.api_version, format!("{CLUSTER_API}/{version}"));
        let kinds = self.kinds(api_version).await?;
        let plural = kinds.plural(template.object_kind())?;
        let all = format!("/apis/{api_version}/namespaces/{}/{plural}", machine.namespace());
        Ok(Some(Work { server: self, template, stored, machine, version, kinds, all }))
    }

    /// A template as the server has it.
    ///
    /// # Errors
    /// It is not there, or the server did not say.
    pub(super) async fn template(
        &self,
        Template { api_version, kind, name, namespace: own }: &Template,
        kinds: &Kinds,
        namespace: &str,
    ) -> Result<Object, Outcome> {
        let namespace = own.as_deref().unwrap_or(namespace);
        let path = format!("/apis/{api_version}/namespaces/{namespace}/{}/{name}", kinds.plural(kind)?);
        self.get(&path).await?.ok_or_else(|| {
            misconfigured(&format!(
                "there is no {kind} {namespace}/{name}: create it, or correct template-name"
            ))
        })
    }
}

impl Work<'_> {
    async fn make(&self, is_released: bool) -> Result<Outcome, Outcome> {
        let standing = self.standing().await?;
        if let Some(outcome) = standing.as_ref().and_then(|object| self.of_standing(object)) {
            return Ok(outcome);
        }
        if !is_released && let Some(kept_back) = self.server.closed(&self.stored.host).await? {
            return Ok(kept_back);
        }
        match standing {
            Some(object) => self.replace(&object).await,
            None => self.create().await,
        }
    }

    /// The host was back since the object of an earlier mark was made, and nothing has removed it.
    async fn replace(&self, earlier: &Object) -> Result<Outcome, Outcome> {
        self.remove(earlier).await?;
        match self.standing().await? {
            None => self.create().await,
            Some(object) => Ok(self.of_standing(&object).unwrap_or_else(|| self.ending(&object))),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.all, self.machine.name())
    }

    async fn standing(&self) -> Result<Option<Object>, Outcome> {
        self.server.get(&self.path()).await
    }

    /// What an object under this name means for the mark; `None` if it must give way.
    fn of_standing(&self, object: &Object) -> Option<Outcome> {
        match (object.whose(self.stored), object.deleted()) {
            (Whose::Ours, None) => Some(done(object, "")),
            // Its controller has finished with it, or somebody has ended it.
            (Whose::Ours, Some(_)) => Some(done(object, "being-deleted")),
            (Whose::Later, _) => Some(done(object, "overtaken")),
            (Whose::Earlier, Some(_)) => Some(self.ending(object)),
            (Whose::Earlier, None) => None,
            (Whose::Nobodys, _) => {
                let says =
                    "is there, and not of ours: check whether it recovers the host, then unmark or delete it";
                Some(rejected("not-ours", &format!("{} {says}", self.name())))
            }
        }
    }

    /// The object of an earlier mark waits for its finalizers.
    fn ending(&self, object: &Object) -> Outcome {
        let since = Timestamp::now().seconds().saturating_sub(object.deleted().unwrap_or(i64::MAX));
        let says = format!("{} of an earlier mark waits for its finalizers", self.name());
        match since > ENDING {
            false => Outcome::Wait(Failure::new("ending", &says)),
            true => rejected("ending", &format!("{says} for {since} s: check its controller")),
        }
    }

    fn name(&self) -> String {
        format!("{} {}/{}", self.template.object_kind(), self.machine.namespace(), self.machine.name())
    }

    async fn create(&self) -> Result<Outcome, Outcome> {
        // A server of Cluster API alone has no Nodes.
        let node = self.server.node(&self.stored.host).await?;
        let sign = self.machine.created().max(node.and_then(|node| node.sign()));
        if let Some(lives) = life(sign, self.stored, Timestamp::now()) {
            return Ok(lives);
        }
        let template = self.server.template(self.template, &self.kinds, self.machine.namespace()).await?;
        let made = object(&template, self.template, (&self.machine, &self.version), self.stored)
            .ok_or_else(|| misconfigured(&format!("{} has no spec.template", self.template.name)))?;
        let answer = self.server.write(&Method::POST, &self.all, &made).await?;
        match answer.status {
            201 => Ok(self.created(&answer)),
            // Another alerter, or somebody else, was faster.
            409 => {
                let standing = self.standing().await?;
                standing.and_then(|object| self.of_standing(&object)).ok_or_else(|| usual(&answer))
            }
            _ => Err(usual(&answer)),
        }
    }

    fn created(&self, answer: &Answer) -> Outcome {
        let made = serde_json::from_slice::<Value>(&answer.body).ok().map(Object::from);
        match made.filter(|made| made.whose(self.stored) == Whose::Ours) {
            Some(made) => done(&made, ""),
            None => {
                Outcome::Unknown(described(answer, "protocol", " and did not show the object that was made"))
            }
        }
    }

    async fn delete(&self) -> Result<Outcome, Outcome> {
        let Some(object) = self.standing().await? else { return Ok(gone()) };
        if object.whose(self.stored) != Whose::Ours {
            return Ok(done(&object, "left-alone"));
        }
        // One that is being deleted is gone when its controller has finished: asking again would do nothing.
        if object.deleted().is_none() {
            self.remove(&object).await?;
        }
        Ok(done(&object, ""))
    }

    /// Deletes the very object that was read.
    async fn remove(&self, object: &Object) -> Result<(), Outcome> {
        let only =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": object.uid()}});
        let answer = self.server.write(&Method::DELETE, &self.path(), &only).await?;
        match answer.status {
            200 | 202 => Ok(()),
            404 if answer.reason() == "NotFound" => Ok(()),
            _ => Err(usual(&answer)),
        }
    }
}
