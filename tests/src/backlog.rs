//! Journals with work in them. Each is made once, in memory, and copied to where it is needed: as many commits to a disk
//! would take minutes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use journal::{Journal, NewDelivery, Role, Taken};
use marks::fencing::Fencing;
use marks::host::HostName;
use marks::mark::{MarkRow, Proof, Standing};
use marks::time::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use crate::programs::Site;
use crate::sink::Arrival;

/// A file system in memory, where there is one.
const MEMORY: &str = "/dev/shm";
/// From one fencing to the next: two of the same host are farther apart than `[intake] coalesce`.
const STEP: Duration = Duration::from_millis(200);
/// One host in so many was fenced twice.
const TWICE: usize = 10;

/// A journal of fencings, or of the marks that were made of them.
pub struct Backlog {
    directory: TempDir,
    /// How many of either.
    pub count: usize,
    /// The bodies to be sent by their ids, with their place in the order.
    expected: HashMap<String, (usize, Vec<u8>)>,
}

/// What has come of a backlog.
#[derive(Clone, Copy, Debug, Default)]
pub struct Came {
    /// How many of its marks.
    pub marks: usize,
    /// How many requests beyond one for each of them.
    pub again: usize,
}

impl Backlog {
    /// Fencings of which no mark was made yet.
    pub fn of_fencings(count: usize) -> anyhow::Result<Self> {
        Self::fill(count, &[])
    }

    /// Open marks that were never sent, on each of the routes.
    pub fn of_marks(count: usize, routes: &[&str]) -> anyhow::Result<Self> {
        Self::fill(count, routes)
    }

    fn fill(count: usize, routes: &[&str]) -> anyhow::Result<Self> {
        let room = tempfile::Builder::new();
        let directory = if Path::new(MEMORY).is_dir() { room.tempdir_in(MEMORY) } else { room.tempdir() }?;
        let mut backlog = Self { directory, count, expected: HashMap::new() };
        let mut journal = Journal::open(&backlog.file(), Role::Alerter)?;
        let begin = Timestamp::now() - STEP * u32::try_from(count)?;
        for number in 0..count {
            let host = format!("compute{}", number % hosts(count));
            let fencing = samples::fencing(&host, begin + STEP * u32::try_from(number)?);
            journal.append_fencing(&fencing)?;
            if !routes.is_empty() {
                let body = mark(&mut journal, &fencing, routes)?;
                backlog.expected.insert(fencing.id.to_string(), (number, body));
            }
        }
        Ok(backlog)
    }

    /// Copies the journal to a site whose alerter does not run.
    pub fn lay_into(&self, site: &Site) -> anyhow::Result<()> {
        // Makes the directory and the file as they have to be.
        drop(Journal::open(&site.journal(), Role::Alerter)?);
        fs::copy(self.file(), site.journal())?;
        Ok(File::open(site.journal())?.sync_all()?)
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        hosts(self.count)
    }

    /// Counts what has come.
    ///
    /// # Errors
    /// A body that is none of these marks', or a host's mark behind a later one.
    pub fn check(&self, arrivals: &[Arrival]) -> anyhow::Result<Came> {
        let (mut came, mut newest) = (vec![0_usize; self.count], vec![0; self.hosts()]);
        for arrival in arrivals {
            let number = self.number_of(&arrival.body)?;
            let newest = &mut newest[number % self.hosts()];
            ensure!(*newest <= number, "mark {number} came behind mark {newest} of the same host");
            (*newest, came[number]) = (number, came[number] + 1);
        }
        let marks = came.iter().filter(|times| **times > 0).count();
        Ok(Came { marks, again: arrivals.len() - marks })
    }

    /// Which mark a body is of.
    fn number_of(&self, body: &[u8]) -> anyhow::Result<usize> {
        let id = id_of(body)?;
        let (number, expected) = self.expected.get(&id).with_context(|| format!("nobody asked for {id}"))?;
        ensure!(expected == body, "{id} came with other bytes");
        Ok(*number)
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("state/marks.db")
    }
}

fn hosts(count: usize) -> usize {
    count - count / TWICE
}

/// Makes a mark as the intake would.
fn mark(journal: &mut Journal, fencing: &Fencing, routes: &[&str]) -> anyhow::Result<Vec<u8>> {
    let fqdn = Some(HostName::parse(&format!("{}.my.cloud.com", fencing.node))?);
    let row = MarkRow { fqdn, standing: Standing::Proven(Proof::Alone), ..samples::mark(fencing) };
    let body = body(&row)?;
    let delivery = |route: &&str| NewDelivery {
        route: (*route).to_owned(),
        body: body.clone(),
        required: true,
        link: None,
    };
    let deliveries: Vec<NewDelivery> = routes.iter().map(delivery).collect();
    journal.make_mark(&row, Taken::Fencing(fencing), &deliveries, None, row.made_at)?;
    Ok(body)
}

/// The standard event, of its usual size.
fn body(row: &MarkRow) -> anyhow::Result<Vec<u8>> {
    let (id, fqdn) = (row.id, row.fqdn.as_ref().context("every host has a name here")?);
    let (failed, generated) = (row.failure_time.seconds(), row.generated_time.seconds());
    let payload = format!(r#"{{"hostname":"{fqdn}","on_shared_storage":true,"failure_time":{failed}}}"#);
    Ok(format!(
        r#"{{"id":"{id}","event_type":"host failure","version":"1.0","generated_time":{generated},"payload":{payload}}}"#
    )
    .into_bytes())
}

fn id_of(body: &[u8]) -> anyhow::Result<String> {
    let event: Value = serde_json::from_slice(body).context("a body is no JSON")?;
    Ok(event["id"].as_str().context("a body has no id")?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn arrivals(backlog: &Backlog, numbers: &[usize]) -> Vec<Arrival> {
        let body = |number: &usize| {
            let found = backlog.expected.values().find(|(other, _)| other == number);
            found.expect("it is one of them").1.clone()
        };
        numbers.iter().map(|number| Arrival { at: Instant::now(), body: body(number) }).collect()
    }

    /// The broken results: another order, other bytes, a mark of nobody.
    #[test]
    fn a_wrong_result_is_an_error() {
        let backlog = Backlog::of_marks(10, &["recovery"]).unwrap();
        assert_eq!(backlog.hosts(), 9, "the first and the last are of the same host");
        assert!(backlog.check(&arrivals(&backlog, &[9, 0])).is_err());
        let mut other = arrivals(&backlog, &[5]);
        other[0].body.push(b' ');
        assert!(backlog.check(&other).is_err());
        let strangers = Backlog::of_marks(10, &["recovery"]).unwrap();
        assert!(backlog.check(&arrivals(&strangers, &[5])).is_err());
    }
}
