//! Real OpenStack services for tests, as child processes on one address: Keystone and Masakari, and others where they are asked for.
//!
//! Their databases are SQLite in a directory of their own. Everything ends with its owner: on drop, on a panic, and, since
//! each service ends when the pipe from the owner closes, also when the owner is killed.

mod ask;
mod files;
mod masakari;
mod nova;
pub mod packages;
mod part;
mod place;
mod seed;
mod service;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use tempfile::TempDir;

pub use ask::{Said, Token};
pub use files::Who;
pub use masakari::Notification;
pub use part::Part;
pub use place::Place;
pub use seed::{DISABLED, ENABLED, MAINTAINED, NOVA_ALONE, RESERVED};

use service::Service;

/// A cloud's services. Dropping it ends every process and removes every file of theirs.
pub struct OpenStack {
    place: Place,
    services: BTreeMap<Part, Service>,
    /// Last: the processes end before their files do.
    room: TempDir,
}

impl OpenStack {
    /// Makes the databases and starts Keystone, Masakari and these others; returns when all of them answer.
    ///
    /// # Errors
    /// What could not be made, with the end of what the service said.
    pub fn boot(place: Place, others: &[Part]) -> anyhow::Result<Self> {
        let room = tempfile::Builder::new().prefix("nha-openstack-").tempdir()?;
        let mut parts = vec![Part::Keystone, Part::Masakari];
        parts.extend(others);
        files::lay_out(room.path(), &place)?;
        let begun: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                parts.iter().map(|part| scope.spawn(|| begin(*part, &place, room.path()))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("it panicked"))))
                .collect()
        });
        let mut services = BTreeMap::new();
        for (part, service) in parts.into_iter().zip(begun) {
            services.insert(part, service.with_context(|| part.name())?);
        }
        Ok(Self { place, services, room })
    }

    /// Makes and starts a service that was not booted, unless that was done before. The catalog has all of them at any time.
    ///
    /// # Errors
    /// As for [`OpenStack::boot`].
    pub fn also(&mut self, part: Part) -> anyhow::Result<()> {
        if !self.services.contains_key(&part) {
            let service = begin(part, &self.place, self.room.path()).with_context(|| part.name())?;
            self.services.insert(part, service);
        }
        Ok(())
    }

    /// A token of the administrator, for requests of a test's own.
    ///
    /// # Errors
    /// Keystone gives none.
    pub fn token(&self) -> anyhow::Result<Token> {
        ask::token(self.address(Part::Keystone))
    }

    /// A request of a test's own: `GET /v2.1/servers`, with headers beside the token's, and a body. It goes out from here,
    /// wherever the services are.
    ///
    /// # Errors
    /// There is no answer.
    pub fn ask(
        &self,
        part: Part,
        token: &Token,
        what: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> anyhow::Result<Said> {
        let all = [&[("X-Auth-Token", token.value.as_str())], headers].concat();
        ask::ask(self.address(part), what, &all, body)
    }

    /// Ends these services at once, as a crash would.
    ///
    /// # Errors
    /// One is not there, or does not end.
    pub fn stop(&mut self, parts: &[Part]) -> anyhow::Result<()> {
        parts.iter().try_for_each(|part| self.service(*part)?.stop())
    }

    /// Starts these services again and returns when they answer.
    ///
    /// # Errors
    /// One does not come up: with the end of what it said.
    pub fn start(&mut self, parts: &[Part]) -> anyhow::Result<()> {
        parts.iter().try_for_each(|part| self.service(*part)?.launch())?;
        parts.iter().try_for_each(|part| self.service(*part)?.wait_until_ready())
    }

    /// Runs Masakari with its engine, or without: a notification becomes `finished` then. It needs Nova.
    ///
    /// # Errors
    /// It does not come up: with the end of what it said.
    pub fn run_engine(&mut self, with_engine: bool) -> anyhow::Result<()> {
        let masakari = self.service(Part::Masakari)?;
        if masakari.has_engine() == with_engine {
            return Ok(());
        }
        masakari.stop()?;
        masakari.set_engine(with_engine);
        self.start(&[Part::Masakari])
    }

    /// Whether a service was started and not stopped since.
    #[must_use]
    pub fn is_up(&self, part: Part) -> bool {
        self.services.get(&part).is_some_and(Service::is_up)
    }

    /// Stops a service where it is: connections are taken, and nothing is answered.
    ///
    /// # Errors
    /// It does not run.
    pub fn freeze(&mut self, part: Part) -> anyhow::Result<()> {
        self.service(part)?.freeze()
    }

    /// Lets a frozen service go on.
    ///
    /// # Errors
    /// It does not run.
    pub fn thaw(&mut self, part: Part) -> anyhow::Result<()> {
        self.service(part)?.thaw()
    }

    /// From their next start on, these services see a clock that is so many hours further than before.
    ///
    /// # Errors
    /// libfaketime is not installed, or a service is not there.
    pub fn pass_hours(&mut self, hours: u32, parts: &[Part]) -> anyhow::Result<()> {
        parts.iter().try_for_each(|part| self.service(*part)?.pass_hours(hours))
    }

    /// What a service has said since it was started last.
    ///
    /// # Errors
    /// It is not there, or its log cannot be read.
    pub fn said(&self, part: Part) -> anyhow::Result<String> {
        self.services.get(&part).with_context(|| format!("{} was not booted", part.name()))?.said()
    }

    /// Where a service listens.
    #[must_use]
    pub fn address(&self, part: Part) -> std::net::SocketAddr {
        self.place.address(part)
    }

    /// Writes `clouds.yaml` for somebody, with the secret in `secure.yaml` beside it, and gives the path of the first.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn clouds(&self, who: Who, directory: &Path) -> anyhow::Result<PathBuf> {
        files::clouds(who, &self.place, directory)
    }

    /// What Masakari has, oldest first.
    ///
    /// # Errors
    /// Its database cannot be read.
    pub fn notifications(&self) -> anyhow::Result<Vec<Notification>> {
        masakari::notifications(self.room.path())
    }

    /// Everything as it was seeded in Masakari: no notification, and one host on maintenance.
    ///
    /// # Errors
    /// Its database cannot be written.
    pub fn reset_masakari(&self) -> anyhow::Result<()> {
        masakari::reset(self.room.path())
    }

    /// Has a host's compute service report, so long ago.
    ///
    /// # Errors
    /// Nova's database cannot be written, or has no such host.
    pub fn compute_reports(&self, host: &str, ago: Duration) -> anyhow::Result<()> {
        nova::report(self.room.path(), host, ago)
    }

    /// Puts a host on maintenance, as Masakari's engine does when it recovers it.
    ///
    /// # Errors
    /// Masakari's database cannot be written, or has no such host.
    pub fn maintain(&self, host: &str) -> anyhow::Result<()> {
        masakari::maintain(self.room.path(), host)
    }

    /// The processes of all services.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.services.values().filter_map(Service::process).collect()
    }

    /// Where the files of all services are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.room.path()
    }

    /// The last log lines of each service, for a scenario that failed.
    #[must_use]
    pub fn explain(&self) -> String {
        let said = |(part, service): (&Part, &Service)| {
            format!("{} said last:\n{}\n", part.name(), service.said_last())
        };
        self.services.iter().map(said).collect()
    }

    fn service(&mut self, part: Part) -> anyhow::Result<&mut Service> {
        self.services.get_mut(&part).with_context(|| format!("{} was not booted", part.name()))
    }
}

/// Starts one service for the first time.
fn begin(part: Part, place: &Place, room: &Path) -> anyhow::Result<Service> {
    let mut service = Service::new(part, place, room);
    service.launch()?;
    service.wait_until_ready()?;
    Ok(service)
}
