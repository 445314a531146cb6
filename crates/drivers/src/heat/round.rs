//! One exchange: it checks and marks one resource after the other, so that an exchange that is cut off has done a part.

use reqwest::Method;
use tokio::time::Instant;

use super::answer::{self, Patched, Tally, left_open};
use super::body::Stored;
use super::found::Found;
use super::keys::Options;
use super::lookup;
use crate::driver::{Outcome, Step};
use crate::openstack::{Exchange, Place};
use crate::web::Ask;

/// What is sent, and how far it got.
pub(super) struct Round<'a> {
    exchange: Exchange<'a>,
    options: &'a Options,
    stored: &'a Stored,
    tally: Tally,
    /// Whether Heat was sent anything: it may have taken it, whatever came after.
    has_sent: bool,
}

impl<'a> Round<'a> {
    /// Before the first request.
    pub(super) fn new(exchange: Exchange<'a>, options: &'a Options, stored: &'a Stored) -> Self {
        Self { exchange, options, stored, tally: Tally::default(), has_sent: false }
    }

    /// The whole exchange.
    pub(super) async fn outcome(mut self) -> Outcome {
        let ended = self.all().await.err();
        let outcome = ended.unwrap_or_else(|| self.tally.outcome());
        match self.has_sent {
            true => left_open(outcome, Instant::now() >= self.exchange.end),
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
        for resource in self.options.resources.of(self.stored.node().as_ref()) {
            match lookup::resource(self.exchange, resource).await? {
                Some(found) => moved |= self.still_there(&found).await?,
                None => {
                    self.lacks("unknown-resource", &format!("resource {}", resource.written), "resources");
                }
            }
        }
        match moved {
            true => self.exchange.is_known(&self.stored.host).await,
            false => Ok(()),
        }
    }

    /// The configuration is true of a server until the server moves: one that Nova has on another host is well. Returns
    /// whether it has moved.
    async fn still_there(&mut self, found: &Found) -> Result<bool, Outcome> {
        if self.stored.step == Step::Return || found.standing(self.stored).is_some() {
            return self.one(found).await.map(|()| false);
        }
        let Some(server) = found.server() else {
            self.tally.add(Patched::NotTaken(answer::no_server(found)));
            return Ok(false);
        };
        let has_moved = self.exchange.place_of(server, &self.stored.host).await? != Place::There;
        match has_moved {
            true => self.tally.add(Patched::Left),
            false => self.one(found).await?,
        }
        Ok(has_moved)
    }

    /// Those that Nova has on the host. For a return, our reason finds what was marked, wherever its server is now.
    async fn in_stacks(&mut self) -> Result<(), Outcome> {
        let (exchange, options) = (self.exchange, self.options);
        let wants_servers = self.stored.wants_servers();
        let on_host = match wants_servers && !options.stacks.is_empty() {
            true => lookup::servers(exchange, self.stored).await?,
            false => Vec::new(),
        };
        if on_host.is_empty() && wants_servers && !self.stored.is_test() {
            return Ok(());
        }
        for stack in &options.stacks {
            let Some(members) = lookup::members(exchange, stack).await? else {
                let name = stack.path.trim_start_matches("/stacks/");
                self.lacks("unknown-stack", &format!("stack {name}"), "stacks");
                continue;
            };
            let is_meant = |member: &&Found| !wants_servers || on_host.contains(&member.physical);
            for member in members.iter().filter(is_meant) {
                self.one(member).await?;
            }
        }
        Ok(())
    }

    /// The others are sent all the same; for a return, a deleted resource needs nothing.
    fn lacks(&mut self, kind: &'static str, what: &str, key: &str) {
        if self.stored.step == Step::Failure {
            self.tally.add(Patched::NotTaken(answer::no_such(kind, what, key)));
        }
    }

    /// A busy or rejected resource does not block the others.
    async fn one(&mut self, found: &Found) -> Result<(), Outcome> {
        let patched = match found.standing(self.stored) {
            Some(patched) => patched,
            None => self.patch(found).await?,
        };
        self.tally.add(patched);
        Ok(())
    }

    async fn patch(&mut self, found: &Found) -> Result<Patched, Outcome> {
        let body = self.stored.patch();
        let answer = self.exchange.send(&Ask::write(&Method::PATCH, &found.path, &body)).await?;
        self.has_sent = true;
        answer::of_patch(&answer)
    }
}
