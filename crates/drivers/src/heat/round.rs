//! One exchange: it checks and marks one resource after the other, so that an exchange that is cut off has done a part.

use reqwest::Method;
use tokio::time::Instant;

use super::answer::{self, Patched, Tally, Wish, left_open};
use super::body::Stored;
use super::found::Found;
use super::keys::Options;
use super::lookup;
use crate::driver::{Outcome, Request, Step};
use crate::openstack::{Ask, ORCHESTRATION, Place, Session, is_known, place_of};

pub(super) static MARK: Request =
    Request { method: Method::PATCH, path: "/stacks/STACK/ID/resources/RESOURCE" };

/// What is sent, and how far it got.
pub(super) struct Round<'a> {
    session: &'a Session,
    options: &'a Options,
    stored: &'a Stored,
    end: Instant,
    tally: Tally,
    /// Whether Heat was sent anything: it may have taken it, whatever came after.
    has_sent: bool,
}

impl<'a> Round<'a> {
    /// Before the first request.
    pub(super) fn new(session: &'a Session, options: &'a Options, stored: &'a Stored, end: Instant) -> Self {
        Self { session, options, stored, end, tally: Tally::default(), has_sent: false }
    }

    /// The whole exchange.
    pub(super) async fn outcome(mut self) -> Outcome {
        let ended = self.all().await.err();
        let outcome = ended.unwrap_or_else(|| self.tally.outcome());
        match self.has_sent {
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
        for resource in self.options.resources.of(self.stored.node.as_ref()) {
            match lookup::resource(self.session, resource, self.end).await? {
                Ok(found) => moved |= self.still_there(&found).await?,
                Err(missing) => self.lacks(missing)?,
            }
        }
        match moved {
            true => is_known(self.session, &self.stored.host, self.end).await,
            false => Ok(()),
        }
    }

    /// The configuration is true of a server until the server moves: one that Nova has on another host is well. Returns
    /// whether it has moved.
    async fn still_there(&mut self, found: &Found) -> Result<bool, Outcome> {
        if self.stored.step == Step::Return || found.wish(self.stored) != Wish::Patch {
            return self.one(found).await.map(|()| false);
        }
        let Some(server) = found.server() else {
            return self.count(Patched::NotTaken(answer::no_server(found))).map(|()| false);
        };
        match place_of(self.session, server, &self.stored.host, self.end).await? {
            Place::There => self.one(found).await.map(|()| false),
            Place::Elsewhere | Place::Unknown => self.count(Patched::Left).map(|()| true),
        }
    }

    /// Those that Nova has on the host. For a return, our reason finds what was marked, wherever its server is now.
    async fn in_stacks(&mut self) -> Result<(), Outcome> {
        let (session, options) = (self.session, self.options);
        let wants_servers = self.stored.wants_servers();
        let on_host = match wants_servers && !options.stacks.is_empty() {
            true => lookup::servers(session, self.stored, self.end).await?,
            false => Vec::new(),
        };
        if on_host.is_empty() && wants_servers && !self.stored.is_test() {
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

    /// The others are sent all the same; for a return, a deleted resource needs nothing.
    fn lacks(&mut self, missing: Outcome) -> Result<(), Outcome> {
        match self.stored.step {
            Step::Return => Ok(()),
            Step::Failure => self.count(Patched::NotTaken(missing)),
        }
    }

    /// A busy or rejected resource does not block the others.
    async fn one(&mut self, found: &Found) -> Result<(), Outcome> {
        let patched = match found.wish(self.stored) {
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
        let body = self.stored.patch();
        let ask = Ask::write(&MARK, &found.path, &body);
        match self.session.send(&ORCHESTRATION, &ask, self.end).await {
            Ok(said) => {
                self.has_sent = true;
                answer::of_patch(&said)
            }
            Err(outcome) => Patched::Ended(outcome),
        }
    }
}
