//! What all scenarios share: the servers, and a driver that is made of its table in the configuration.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use drivers::{Driver, Finding, KINDS, Message, Named, Outcome, Step};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::Value;
use tests::kubernetes::{Kubernetes, Who};
pub(crate) use tests::outcome::{expect, word};

/// Longer than anything here takes, beside other tests.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// The host of most scenarios, by Pacemaker's name and by its full one.
pub(crate) const NODE: &str = "compute1";
pub(crate) const HOST: &str = "compute1.my.cloud.com";
/// The annotation with a mark's id.
pub(crate) const MARK: &str = "nova-host-alerter/mark";

const ID: &str = "0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b";
const LATER_ID: &str = "0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2c";

/// The servers, running.
pub(crate) struct Cluster {
    pub(crate) lab: Kubernetes,
}

impl Cluster {
    /// Once: a server that fails to start for the first scenario would fail for the next, and each trial takes time.
    pub(crate) fn boot() -> anyhow::Result<Self> {
        static TRIED: AtomicBool = AtomicBool::new(false);
        ensure!(!TRIED.swap(true, Ordering::Relaxed), "the servers did not come up before");
        Ok(Self { lab: Kubernetes::boot()? })
    }

    pub(crate) fn explain(&self) -> String {
        self.lab.explain()
    }

    /// A driver that speaks as somebody, with these keys in its table.
    pub(crate) fn sender(&self, who: Who, keys: &str) -> anyhow::Result<Sender> {
        Sender::new(&self.lab, &table(&self.lab.kubeconfig(who)?, keys))
    }
}

/// The keys of a route that has this kubeconfig.
pub(crate) fn table(kubeconfig: &Path, keys: &str) -> String {
    format!("kubeconfig = \"{}\"\n{keys}\n", kubeconfig.display())
}

/// A driver, and the thread that it runs on.
pub(crate) struct Sender {
    pub(crate) driver: Arc<dyn Driver>,
    runtime: tokio::runtime::Runtime,
}

impl Sender {
    /// The driver of `[kubernetes.lab]` with these keys.
    pub(crate) fn new(lab: &Kubernetes, keys: &str) -> anyhow::Result<Self> {
        let kind = KINDS.iter().find(|kind| kind.word == "kubernetes").context("there is no such driver")?;
        let file = lab.directory()?.join("alerter.toml");
        std::fs::write(&file, format!("[kubernetes.lab]\n{keys}\n"))?;
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let read = site::read(&file, |mut root| {
            let mut all = root.section("kubernetes");
            (kind.configure)(&mut all.named_section("lab"))
        });
        let (driver, _warnings) = read.map_err(|why| anyhow!("{why}"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { driver: driver.context("no driver, and no complaint")?, runtime })
    }

    /// One exchange with these bytes, after so many attempts with an unknown outcome.
    pub(crate) fn send(&self, step: Step, mark: &Mark, body: &[u8], ambiguous: u32) -> Outcome {
        self.send_message(Message { step, id: &mark.id, body, ambiguous, attempts: 1, is_released: false })
    }

    fn send_message(&self, message: Message<'_>) -> Outcome {
        self.runtime.block_on(self.driver.deliver(message))
    }

    /// An attempt to report a failure that an operator has released.
    pub(crate) fn released(&self, mark: &Mark) -> Outcome {
        let body = self.driver.body(mark);
        self.send_message(Message {
            step: Step::Failure,
            id: &mark.id,
            body: &body,
            ambiguous: 0,
            attempts: 2,
            is_released: true,
        })
    }

    /// One attempt to report that a host failed.
    pub(crate) fn down(&self, mark: &Mark) -> Outcome {
        self.send(Step::Failure, mark, &self.driver.body(mark), 0)
    }

    /// One attempt to report that it is back.
    pub(crate) fn back(&self, mark: &Mark) -> Outcome {
        let body = self.driver.return_body(mark, &self.driver.body(mark), Timestamp::now());
        self.send(Step::Return, mark, &body, 0)
    }

    /// A test message.
    pub(crate) fn test(&self) -> Outcome {
        let mark = mark();
        self.send(Step::Failure, &mark, &self.driver.test_body(&mark.id, Timestamp::now()), 0)
    }

    /// What would keep marks of these hosts from the cluster.
    pub(crate) fn check(&self, hosts: &[&str]) -> anyhow::Result<Vec<Finding>> {
        let named = |node: &&str| {
            let fqdn = HostName::parse(&format!("{node}.my.cloud.com"))?;
            Ok(Named { node: HostName::parse(node)?, fqdn })
        };
        let hosts: Vec<Named> = hosts.iter().map(named).collect::<anyhow::Result<_>>()?;
        self.runtime.block_on(self.driver.check(&hosts)).context("nobody was asked")
    }
}

/// The mark of [`HOST`], which failed a moment ago.
pub(crate) fn mark() -> Mark {
    mark_of(NODE)
}

/// The mark of a host by its Pacemaker name.
pub(crate) fn mark_of(node: &str) -> Mark {
    samples::sent(ID, [node, &format!("{node}.my.cloud.com")], Timestamp::now())
}

/// A later outage of the same host.
pub(crate) fn later(mark: &Mark) -> Mark {
    let id = MarkId::parse(LATER_ID).expect("a literal id");
    let at = Timestamp::from_seconds(mark.failure_time.seconds() + 1);
    Mark { id, failure_time: at, generated_time: at, ..mark.clone() }
}

/// So many seconds ago, or to come.
pub(crate) fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(Timestamp::now().seconds() - seconds)
}

/// The mark's id that stands on an object.
pub(crate) fn marked(object: &Value) -> Option<String> {
    object["metadata"]["annotations"][MARK].as_str().map(str::to_owned)
}
