//! The mode `remediation`: an object for an external remediation controller is made, followed and deleted.

use marks::time::Timestamp;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::access::Answer;
use super::annotate::unknown_machine;
use super::answer::{described, misconfigured, usual};
use super::body::Stored;
use super::change::{machine, node_path};
use super::keys::Options;
use super::object::{Meta, Node, Object, done, gone, rejected, unknown_node};
use super::remediation::{CLUSTER_API, Contract, Patient, Remediation, Standing, Template, object, progress};
use super::server::{JSON, Server};
use crate::driver::{Failure, Outcome};

/// One message, and what is needed for it.
pub(super) struct Work<'a> {
    pub(super) server: &'a Server<'a>,
    pub(super) options: &'a Options,
    pub(super) template: &'a Template,
    pub(super) stored: &'a Stored,
}

/// Where the object is.
struct Spot {
    patient: Patient,
    /// The path of all objects of its kind in its namespace.
    all: String,
}

impl Spot {
    fn path(&self) -> String {
        format!("{}/{}", self.all, self.patient.name)
    }
}

impl Work<'_> {
    /// The host was fenced.
    pub(super) async fn make(&self) -> Result<Outcome, Outcome> {
        let Some(patient) = self.patient().await? else { return Ok(self.unknown()) };
        let spot = self.spot(patient).await?;
        let standing = self.server.get::<Object>(&spot.path()).await?;
        let standing = match standing.map(|one| one.metadata) {
            Some(meta) if Standing::of(&meta, self.stored) == Standing::Earlier => {
                self.replaced(&spot, &meta).await?
            }
            other => other,
        };
        match standing {
            Some(meta) => Ok(self.of_standing(&spot, &meta)),
            None => self.create(&spot).await,
        }
    }

    /// What stands there after the object of an earlier mark was deleted.
    async fn replaced(&self, spot: &Spot, meta: &Meta) -> Result<Option<Meta>, Outcome> {
        self.remove(spot, meta).await?;
        Ok(self.server.get::<Object>(&spot.path()).await?.map(|one| one.metadata))
    }

    fn of_standing(&self, spot: &Spot, meta: &Meta) -> Outcome {
        let name =
            format!("{} {}/{}", self.template.object_kind(), spot.patient.namespace, spot.patient.name);
        let wait = |why: &str| Outcome::Wait(Failure::new("ending", &format!("{name} {why}")));
        match Standing::of(meta, self.stored) {
            Standing::Ours => done(meta, ""),
            Standing::Ending => wait("of an earlier mark waits for its finalizers"),
            Standing::Earlier => wait("is that of an earlier mark"),
            Standing::Foreign => rejected(
                "not-ours",
                &format!(
                    "{name} is there, and not of ours: check whether it recovers the host, then unmark or delete it"
                ),
            ),
        }
    }

    async fn create(&self, spot: &Spot) -> Result<Outcome, Outcome> {
        let template = self.found_template(&spot.patient.namespace).await?;
        let made = object(&template, self.template, &spot.patient, self.stored)
            .ok_or_else(|| misconfigured(&format!("{} has no spec.template", self.template.name)))?;
        let answer = self.server.write(&Method::POST, &spot.all, JSON, &made).await?;
        match answer.status {
            201 => Ok(self.created(&answer)),
            // Another alerter, or somebody else, was faster.
            409 => match self.server.get::<Object>(&spot.path()).await? {
                Some(one) => Ok(self.of_standing(spot, &one.metadata)),
                None => Err(usual(&answer)),
            },
            _ => Err(usual(&answer)),
        }
    }

    fn created(&self, answer: &Answer) -> Outcome {
        let made = serde_json::from_slice::<Object>(&answer.body).ok();
        match made.filter(|made| Standing::of(&made.metadata, self.stored) == Standing::Ours) {
            Some(made) => done(&made.metadata, ""),
            None => {
                Outcome::Unknown(described(answer, "protocol", " and did not show the object that was made"))
            }
        }
    }

    async fn found_template(&self, namespace: &str) -> Result<Value, Outcome> {
        let Template { api_version, kind, name, .. } = self.template;
        let namespace = self.template.namespace.as_deref().unwrap_or(namespace);
        let resource = self.server.resource(api_version, kind).await?;
        let path = format!("/apis/{api_version}/namespaces/{namespace}/{}/{name}", resource.name);
        let found = self.server.get(&path).await?;
        found.ok_or_else(|| {
            misconfigured(&format!(
                "there is no {kind} {namespace}/{name}: create it, or correct template-name"
            ))
        })
    }

    /// What became of it.
    pub(super) async fn confirm(&self) -> Result<Outcome, Outcome> {
        let within = self.options.confirm_within.unwrap_or_default();
        match self.made::<Remediation>().await? {
            Some((_, one)) => Ok(progress(&one, self.stored, within, Timestamp::now())),
            // It ended with its Machine, or somebody has ended it.
            None => Ok(gone()),
        }
    }

    /// The host is back.
    pub(super) async fn delete(&self) -> Result<Outcome, Outcome> {
        let Some((spot, Object { metadata: meta })) = self.made::<Object>().await? else { return Ok(gone()) };
        if !meta.is_of(self.stored) {
            return Ok(done(&meta, "left-alone"));
        }
        // One that is being deleted is gone when its controller has finished: asking again would do nothing.
        if !meta.is_being_deleted() {
            self.remove(&spot, &meta).await?;
        }
        Ok(done(&meta, ""))
    }

    /// The object under the name of this host's.
    async fn made<T: DeserializeOwned>(&self) -> Result<Option<(Spot, T)>, Outcome> {
        let Some(patient) = self.patient_of_before().await? else { return Ok(None) };
        let spot = self.spot(patient).await?;
        Ok(self.server.get(&spot.path()).await?.map(|found| (spot, found)))
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

    async fn spot(&self, patient: Patient) -> Result<Spot, Outcome> {
        let api_version = &self.template.api_version;
        let resource = self.server.resource(api_version, self.template.object_kind()).await?;
        let all = format!("/apis/{api_version}/namespaces/{}/{}", patient.namespace, resource.name);
        Ok(Spot { patient, all })
    }

    /// `None` if Kubernetes does not know the host.
    async fn patient(&self) -> Result<Option<Patient>, Outcome> {
        match self.template.contract {
            Contract::ClusterApi => self.of_machine().await,
            Contract::Medik8s => {
                let node = self.server.get::<Node>(&node_path(&self.stored.host)).await?;
                Ok(node.map(|node| {
                    Patient::of_node(&node.metadata.name, node.is_control_plane(), self.template)
                }))
            }
        }
    }

    /// The same of an object that was made before. An object of medik8s outlives its node; another ends with its Machine.
    async fn patient_of_before(&self) -> Result<Option<Patient>, Outcome> {
        match self.template.contract {
            Contract::ClusterApi => self.of_machine().await,
            Contract::Medik8s => Ok(Some(Patient::of_node(&self.stored.host, false, self.template))),
        }
    }

    async fn of_machine(&self) -> Result<Option<Patient>, Outcome> {
        let version = self.server.cluster_api().await?;
        let found = machine(self.server, self.options, &version, &self.stored.host).await?;
        let version = format!("{CLUSTER_API}/{version}");
        Ok(found.map(|machine| Patient::of_machine(&machine, &version, self.template)))
    }

    fn unknown(&self) -> Outcome {
        match self.template.contract {
            Contract::ClusterApi => unknown_machine(&self.stored.host),
            Contract::Medik8s => unknown_node(&self.stored.host),
        }
    }
}
