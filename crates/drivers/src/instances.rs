//! What Nova says of the instances of a failed host. It only reads.

use std::time::Duration;

use marks::mark::Mark;
use marks::recovery::Seen;
use serde_json::Value;
use site::Section;
use tokio::time::Instant;

use crate::driver::{Failure, Named, Outcome};
use crate::kept::Unusable;
use crate::openstack::{self, Ask, COMPUTE, HOST, Session, each_on, found, services_of};
use crate::which::HostNames;

/// How many instances are asked for at once; fewer where an answer is longer than is read of one.
const PAGES: [&str; 3] = ["200", "20", "1"];
/// A host's whole list may take longer than one request.
const LIST: Duration = Duration::from_secs(300);

/// A Nova to ask.
#[derive(Debug)]
pub struct Instances {
    session: Session,
    host_name: HostNames,
}

/// Reads the keys of the cloud, and `host-name`.
pub fn read(table: &mut Section<'_, '_>) -> Option<Instances> {
    let cloud = openstack::read_options(table);
    let host_name = HostNames::read(table);
    if !table.is_sound() {
        return None;
    }
    match Instances::new(cloud, host_name) {
        Ok(instances) => Some(instances),
        Err(why) => {
            table.complain(why.key, why.to_string());
            None
        }
    }
}

impl Instances {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(cloud: openstack::CloudOptions, host_name: impl Into<HostNames>) -> Result<Self, Unusable> {
        Ok(Self { session: Session::new(cloud)?, host_name: host_name.into() })
    }

    /// What Nova calls the host of a mark.
    pub fn host_of(&self, mark: &Mark) -> String {
        self.host_name.of(mark).as_str().to_owned()
    }

    /// The same of a host without a mark.
    pub fn host_of_named(&self, host: &Named) -> String {
        self.host_name.of_host(host).as_str().to_owned()
    }

    /// Every instance on a host, whatever its project.
    ///
    /// # Errors
    /// Nova did not answer, or not with all of them, or knows no such host.
    pub async fn on(&self, host: &str) -> Result<Vec<Seen>, Failure> {
        let mut all = Vec::new();
        let end = Instant::now() + LIST.max(self.session.limit());
        let listed = each_on(&self.session, host, &PAGES, end, |row| all.extend(seen(row))).await;
        listed.map_err(failure)?;
        // Of a host that it does not know Nova says the same: nothing.
        if all.is_empty() {
            services_of(&self.session, host, end).await.map_err(failure)?;
        }
        Ok(all)
    }

    /// Whether a host's nova-compute is up: without it Nova has every instance in the state of before.
    ///
    /// # Errors
    /// Nova did not answer, or knows no such host.
    pub async fn is_up(&self, host: &str) -> Result<bool, Failure> {
        let rows = services_of(&self.session, host, Instant::now() + self.session.limit()).await;
        Ok(rows.map_err(failure)?.iter().any(|row| row["state"] == "up"))
    }

    /// One instance; `None` if Nova does not have it.
    ///
    /// # Errors
    /// The answer is unknown.
    pub async fn one(&self, id: &str) -> Result<Option<Seen>, Failure> {
        let (path, end) = (format!("/servers/{id}"), Instant::now() + self.session.limit());
        let answer = self.session.send(&COMPUTE, &Ask::get(&path, &[]), end).await;
        let answer = answer.map_err(|trouble| failure(trouble.outcome()))?;
        // Nova's own 404: another's means that the address is wrong.
        if answer.status == 404 && answer.json()["itemNotFound"].is_object() {
            return Ok(None);
        }
        let row = found(COMPUTE.who, &answer, "server").map_err(failure)?;
        match row.as_ref().and_then(seen) {
            Some(seen) => Ok(Some(seen)),
            None => Err(Failure::new(
                "protocol",
                "Nova does not show the hosts of servers: give the user the role that Nova's policy requires",
            )),
        }
    }
}

/// A row of Nova's list; `None` if it has no usable id, or Nova hides its host.
fn seen(row: &Value) -> Option<Seen> {
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let host = row.get(HOST)?.as_str().map(str::to_owned);
    let is_busy = row["OS-EXT-STS:task_state"].is_string();
    let one = Seen {
        id: text("id"),
        name: text("name"),
        project: text("tenant_id"),
        status: text("status"),
        is_busy,
        host,
    };
    openstack::is_uuid(&one.id).then_some(one)
}

fn failure(outcome: Outcome) -> Failure {
    let unclear = || Failure::new("protocol", "Nova gave no answer that can be used");
    outcome.failure().cloned().unwrap_or_else(unclear)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A name is a tenant's own text: it is kept as it is, and the id must not become another path.
    #[test]
    fn a_row_is_read_or_left_out() {
        let id = "0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b";
        let row = |id: &str| {
            json!({"id": id, "name": "web", "tenant_id": "p", "status": "ACTIVE", HOST: "c7",
            "OS-EXT-STS:task_state": null})
        };
        let whole = seen(&row(id)).unwrap();
        assert_eq!((whole.host.as_deref(), whole.is_busy, whole.project.as_str()), (Some("c7"), false, "p"));
        let busy = json!({"id": id, HOST: null, "OS-EXT-STS:task_state": "rebuilding"});
        assert!(seen(&busy).is_some_and(|one| one.is_busy && one.host.is_none()));
        assert_eq!(seen(&row("../../x")), None);
        assert_eq!(seen(&json!({"id": id, "name": "web"})), None, "Nova hides the host");
    }
}
