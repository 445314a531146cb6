//! What all scenarios share: the services, and a driver that speaks with them as somebody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use drivers::masakari::{Masakari, Options};
use drivers::{Driver, Message, Named, Outcome, Step, openstack};
use marks::mark::Mark;
use marks::time::Timestamp;
use tempfile::TempDir;
use tests::openstack::{NOVA_ALONE, OpenStack, Part, Place, Who};
pub(crate) use tests::outcome::{expect, word};

/// When the mark of [`mark`] was generated.
pub(crate) const AT: i64 = 1_784_600_001;
/// The same as Masakari stores it.
pub(crate) const STORED_AT: &str = "2026-07-21 02:13:21.000000";
/// Longer than any answer takes here.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Longer than a service takes to do what was asked, beside other tests.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The services, running.
pub(crate) struct Cloud {
    pub(crate) services: OpenStack,
}

impl Cloud {
    /// Once: a service that fails to start for the first scenario would fail for the next, and each trial takes time.
    pub(crate) fn boot() -> anyhow::Result<Self> {
        static TRIED: AtomicBool = AtomicBool::new(false);
        ensure!(!TRIED.swap(true, Ordering::Relaxed), "the services did not come up before");
        Ok(Self { services: OpenStack::boot(Place::on_loopback()?, &[])? })
    }

    pub(crate) fn explain(&self) -> String {
        self.services.explain()
    }

    /// Everything as it was in the beginning: every service answers, and Masakari has no notification.
    pub(crate) fn put_right(&mut self) -> anyhow::Result<()> {
        for part in [Part::Keystone, Part::Masakari] {
            if !self.services.is_up(part) {
                self.services.start(&[part])?;
            }
        }
        self.services.run_engine(false)?;
        self.services.reset_masakari()
    }

    /// A `masakari` driver that speaks as somebody, with this limit for an exchange.
    pub(crate) fn sender(&self, who: Who, limit: Duration) -> anyhow::Result<Sender> {
        self.sender_of(who, limit, |cloud| Ok(Masakari::new(Options::of(cloud))?))
    }

    /// Any driver that is made of the cloud's options.
    pub(crate) fn sender_of<D: Driver + 'static>(
        &self,
        who: Who,
        limit: Duration,
        make: impl FnOnce(openstack::CloudOptions) -> anyhow::Result<D>,
    ) -> anyhow::Result<Sender> {
        let files = TempDir::new()?;
        let file = self.services.clouds(who, files.path())?;
        let driver = make(openstack::CloudOptions {
            timeout: limit,
            patience: limit,
            ..openstack::CloudOptions::of_file(file)
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Sender { driver: Box::new(driver), runtime, _files: files })
    }

    /// How many notifications Masakari has.
    pub(crate) fn stored(&self) -> anyhow::Result<usize> {
        Ok(self.services.notifications()?.len())
    }
}

/// A driver, and the thread that it runs on.
pub(crate) struct Sender {
    pub(crate) driver: Box<dyn Driver>,
    runtime: tokio::runtime::Runtime,
    _files: TempDir,
}

impl Sender {
    /// One exchange with these bytes, after so many attempts with an unknown outcome.
    pub(crate) fn send(&self, body: &[u8], ambiguous: u32) -> Outcome {
        self.step(Step::Failure, body, ambiguous)
    }

    /// The same for any step of a mark.
    pub(crate) fn step(&self, step: Step, body: &[u8], ambiguous: u32) -> Outcome {
        self.of(&mark("compute1"), step, body, ambiguous)
    }

    fn of(&self, mark: &Mark, step: Step, body: &[u8], ambiguous: u32) -> Outcome {
        let message = Message { step, id: &mark.id, body, ambiguous, attempts: 1, is_released: false };
        self.runtime.block_on(self.driver.deliver(message))
    }

    /// One attempt for this mark, one for its host's return, and a test.
    pub(crate) fn down(&self, mark: &Mark) -> Outcome {
        self.of(mark, Step::Failure, &self.driver.body(mark), 0)
    }

    pub(crate) fn back(&self, mark: &Mark) -> Outcome {
        self.of(mark, Step::Return, &self.driver.return_body(mark, &[], Timestamp::now()), 0)
    }

    pub(crate) fn test(&self) -> Outcome {
        self.send(&self.driver.test_body(&mark(NOVA_ALONE).id, Timestamp::now()), 0)
    }

    /// Whether the driver's check finds nothing wrong with this host.
    pub(crate) fn check(&self, mark: &Mark) -> bool {
        let hosts = [Named { node: mark.node.clone(), fqdn: mark.fqdn.clone() }];
        self.runtime.block_on(self.driver.check(&hosts)).is_some_and(|findings| findings.is_empty())
    }

    /// One attempt for the mark of a host.
    pub(crate) fn attempt(&self, host: &str, ambiguous: u32) -> Outcome {
        self.send(&self.driver.body(&mark(host)), ambiguous)
    }
}

/// The mark of a host, by its name in Masakari.
pub(crate) fn mark(host: &str) -> Mark {
    let (failed, made) = (Timestamp::from_seconds(AT - 1), Timestamp::from_seconds(AT));
    let id = "0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b";
    Mark { generated_time: made, ..samples::sent(id, [host, host], failed) }
}
