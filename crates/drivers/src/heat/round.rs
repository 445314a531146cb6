//! One exchange: a resource after the other is looked at and told, so that one that is cut off has done something.

use reqwest::Method;
use tokio::time::Instant;

use super::answer::{self, Patched, Tally, Wish, left_open};
use super::body::Stored;
use super::found::Found;
use super::keys::Options;
use super::lookup;
use crate::driver::{Outcome, Step};
use crate::openstack::{Ask, ORCHESTRATION, Place, Session, is_known, place_of};
use crate::writes::Request;

pub(super) static MARK: Request =
    Request { method: Method::PATCH, path: "/stacks/STACK/ID/resources/RESOURCE" };

/// What is told, and how far it got.
pub(super) struct Round<'a> {
    session: &'a Session,
    options: &'a Options,
    told: &'a Stored,
    end: Instant,
    tally: Tally,
    /// Whether Heat was told anything: it may have taken it, whatever came after.
    has_told: bool,
}

impl<'a> Round<'a> {
    /// Before anything is asked.
    pub(super) fn new(session: &'a Session, options: &'a Options, told: &'a Stored, end: Instant) -> Self {
        Self { session, options, told, end, tally: Tally::default(), has_told: false }
    }

    /// All of it.
    pub(super) async fn outcome(mut self) -> Outcome {
        let ended = self.all().await.err();
        let outcome = ended.unwrap_or_else(|| self.tally.outcome());
        match self.has_told {
            true => left_open(outcome, Instant::now() >= self.end),
            false => outcome,
        }
    }

    async fn all(&mut self) -> Result<(), Outcome> {
        self.configured().await?;
        self.in_stacks().await
    }

    /// The resources that the configuration names for this host.
    async fn configured(&mut self) -> Result<(), Outcome> {
        let mut moved = false;
        for resource in self.options.resources.of(self.told.node.as_ref()) {
            match lookup::resource(self.session, resource, self.end).await? {
                Ok(found) => moved |= self.still_there(&found).await?,
                Err(missing) => self.lacks(missing)?,
            }
        }
        match moved {
            true => is_known(self.session, &self.told.host, self.end).await,
            false => Ok(()),
        }
    }

    /// What the configuration says of a server is true until the server moves: one that Nova has elsewhere by now is well.
    /// Says whether it has moved.
    async fn still_there(&mut self, found: &Found) -> Result<bool, Outcome> {
        if self.told.step == Step::Return || found.wish(self.told) != Wish::Patch {
            return self.one(found).await.map(|()| false);
        }
        let Some(server) = found.server() else {
            return self.count(Patched::NotTaken(answer::no_server(found))).map(|()| false);
        };
        match place_of(self.session, server, &self.told.host, self.end).await? {
            Place::There => self.one(found).await.map(|()| false),
            Place::Elsewhere | Place::Unknown => self.count(Patched::Left).map(|()| true),
        }
    }

    /// Those that Nova says are on the host. What was marked is found by its reason, wherever its server is now.
    async fn in_stacks(&mut self) -> Result<(), Outcome> {
        let (session, options) = (self.session, self.options);
        let wants_servers = self.told.wants_servers();
        let on_host = match wants_servers && !options.stacks.is_empty() {
            true => lookup::servers(session, self.told, self.end).await?,
            false => Vec::new(),
        };
        if on_host.is_empty() && wants_servers && !self.told.is_test() {
            return Ok(());
        }
        for stack in &options.stacks {
            let members = match lookup::members(session, stack, self.end).await? {
                Ok(members) => members,
                Err(missing) => {
                    self.lacks(missing)?;
                    continue;
                }
            };
            let is_meant = |member: &&Found| !wants_servers || on_host.contains(&member.physical);
            for member in members.iter().filter(is_meant) {
                self.one(member).await?;
            }
        }
        Ok(())
    }

    /// The others are told all the same; what is deleted since has nothing that could be taken back.
    fn lacks(&mut self, missing: Outcome) -> Result<(), Outcome> {
        match self.told.step {
            Step::Return => Ok(()),
            Step::Failure | Step::Confirm => self.count(Patched::NotTaken(missing)),
        }
    }

    /// One that is busy, or not taken, keeps none of the others waiting.
    async fn one(&mut self, found: &Found) -> Result<(), Outcome> {
        let patched = match found.wish(self.told) {
            Wish::Patch => self.patch(found).await,
            Wish::Done => Patched::Done,
            Wish::Leave => Patched::Left,
        };
        self.count(patched)
    }

    fn count(&mut self, patched: Patched) -> Result<(), Outcome> {
        self.tally.add(patched).map_or(Ok(()), Err)
    }

    async fn patch(&mut self, found: &Found) -> Patched {
        let body = self.told.patch();
        let ask = Ask::write(&MARK, &found.path, &body);
        match self.session.send(&ORCHESTRATION, &ask, self.end).await {
            Ok(said) => {
                self.has_told = true;
                answer::of_patch(&said)
            }
            Err(trouble) => Patched::Ended(trouble.outcome()),
        }
    }
}
