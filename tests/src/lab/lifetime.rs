//! A part that this program plays on a controller: the whole life of a register, in minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use marks::fencing::{Fencing, Incarnation};
use marks::mark::{MarkRow, Settlement};
use marks::register::{
    Acknowledgement, Entry, MarkEntry, Part, Register, Returned, SETTLED_MAX, Settled, Writer,
};
use marks::time::Timestamp;
use register::pages::{self, Line, MOVED, PAGE_MAX, Page, Pages};
use register::{Access, is_understood};
use serde_json::json;
use site::{CONFIG_PATH, keys_beside};

/// So many die at once.
const STORM: usize = 500;
const HOSTS: usize = 500;
const PATIENCE: Duration = Duration::from_secs(30);

/// Both writers of one controller, at a time of their own that runs much faster.
struct Life {
    now: Timestamp,
    agent: Writer,
    alerter: Writer,
    access: Access,
    /// Fencings that nobody has notified yet.
    open: Vec<Fencing>,
    /// What is said of those that ended, oldest first.
    ended: Vec<Vec<Entry>>,
}

/// `REGISTER FENCINGS OPEN`: so many fencings that are sent and settled, then so many that stay open. Prints the figures.
///
/// # Errors
/// What Pacemaker refuses, or an entry that is lost.
pub(super) fn live(arguments: &[String]) -> anyhow::Result<u8> {
    let [register, fencings, open] = arguments else { anyhow::bail!("three words are wanted") };
    let mut life = Life::begin(Register::parse(register).context("no register")?)?;
    for _ in 0..fencings.parse::<usize>()? / STORM {
        life.fence(STORM);
        life.keep_up()?;
        life.settle();
        life.keep_up()?;
    }
    let settled = life.measure()?;
    life.fence(open.parse()?);
    let begun = Instant::now();
    life.keep_up()?;
    let written = begun.elapsed();
    let all = life.measure()?;
    life.end()?;
    println!("{}", json!({"settled": settled, "all": all, "written_ms": written.as_millis()}));
    Ok(0)
}

impl Life {
    fn begin(register: Register) -> anyhow::Result<Self> {
        let (keys, _) = keys_beside(CONFIG_PATH.as_ref());
        ensure!(!keys.is_empty(), "this controller has no key");
        Ok(Self {
            now: Timestamp::now(),
            agent: Part::Agent.on("life"),
            alerter: Part::Alerter.on("life"),
            access: Access { keys, ..Access::to(register, None) },
            open: Vec::new(),
            ended: Vec::new(),
        })
    }

    fn fence(&mut self, count: usize) {
        for number in 0..count {
            let host = format!("compute-{:03}.rack{}.cloud.example.org", number % HOSTS, number % 12);
            let incarnation = Incarnation::new("ctl2", 12, self.now.seconds() - 4000);
            let fencing = samples::fencing(&host, self.now + Duration::from_millis(number as u64));
            self.open.push(Fencing { incarnation: Some(incarnation), ..fencing });
        }
    }

    /// Everything open was acknowledged, and its host is back.
    fn settle(&mut self) {
        for fencing in std::mem::take(&mut self.open) {
            let (mark, at, by) = (fencing.id.into(), self.now, self.alerter.controller.clone());
            let row = MarkRow {
                id: mark,
                fqdn: Some(fencing.node.clone()),
                incarnation: fencing.incarnation,
                node: fencing.node,
                ..samples::mark_of("compute1", fencing.asked_at)
            };
            let entry = MarkEntry::of_row(&row).expect("it has a name");
            let taken = |route: &str| {
                Entry::Acknowledged(Acknowledgement { mark, route: route.into(), at, by: by.clone() })
            };
            self.ended.push(vec![
                Entry::Mark(entry),
                taken("masakari"),
                taken("backup"),
                Entry::Settled(Settled { mark, how: Settlement::Acknowledged, at, by: by.clone() }),
                Entry::Returned(Returned { mark, at, by: by.clone() }),
            ]);
        }
        let over = self.ended.len().saturating_sub(SETTLED_MAX);
        self.ended.drain(..over);
    }

    /// Nothing of it is to be sent.
    fn end(&mut self) -> anyhow::Result<()> {
        self.open.clear();
        self.ended.clear();
        self.keep_up()
    }

    fn wanted(&self, writer: &Writer) -> Vec<Line> {
        match writer.part {
            Part::Agent => self.open.iter().map(|it| Entry::Fencing(it.clone()).line()).collect(),
            Part::Alerter => self.ended.iter().flatten().map(Entry::line).collect(),
        }
    }

    fn keep_up(&mut self) -> anyhow::Result<()> {
        for writer in [self.alerter.clone(), self.agent.clone()] {
            let found = self.read()?;
            let (there, lost) = ((&found, Timestamp(0)), BTreeSet::new());
            let own = (&writer, &self.wanted(&writer)[..], is_understood);
            let writes = pages::own_writes(there, own, (&lost, false), self.now);
            if let Some(writes) = writes {
                self.access.write_pages(&writes, Instant::now() + PATIENCE)?;
            }
        }
        self.now = self.now + MOVED * 2;
        Ok(())
    }

    fn read(&self) -> anyhow::Result<Pages> {
        let found = self.access.find(Instant::now() + PATIENCE)?;
        found.paged.map(|paged| paged.pages).context("it has no pages")
    }

    /// How long reading takes, and the longest answer; nothing that is wanted is missing.
    fn measure(&self) -> anyhow::Result<serde_json::Value> {
        let begun = Instant::now();
        let found = self.read()?;
        let read = begun.elapsed();
        for writer in [&self.agent, &self.alerter] {
            let own: BTreeSet<&Line> = pages::standing(&found, writer).collect();
            // Nothing may be open: then a page of the agent is empty.
            ensure!(found.contains_key(writer), "nothing of a writer stands there");
            ensure!(
                self.wanted(writer).iter().all(|line| own.contains(line)),
                "entries of {writer} are lost"
            );
        }
        let numbers = found.values().flat_map(BTreeMap::keys).copied().max().unwrap_or_default();
        let answer = |number: u16| -> usize {
            let texts = found.iter().filter_map(|(writer, own)| Some((writer, own.get(&number)?)));
            texts.map(|(writer, page)| self.text(writer, number, page).len()).sum()
        };
        let longest = (0..=numbers).map(answer).max().unwrap_or_default();
        Ok(
            json!({"longest_answer": longest, "numbers": numbers + 1, "read_ms": read.as_millis(), "page_max": PAGE_MAX}),
        )
    }

    fn text(&self, writer: &Writer, number: u16, page: &Page) -> String {
        pages::write(writer, number, &page.head, &page.lines, &self.access.keys)
    }
}
