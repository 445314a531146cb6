//! What an operator tells an alerter of the model, and what it shows of its work.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use alerter::daemon::pruning;
use alerter::delivery;
use alerter::intake::account;
use alerter::problem::{Kind, Problem};
use alerter::surface::metrics::{counting, write};
use journal::{HistoryFilter, HistoryRow, Round};
use marks::account::Gap;
use marks::delivery::{Delivery, State};
use marks::id::MarkId;
use marks::register::{Decision, Ending, Key};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Alerter, Homes, Site};

/// What a fault, or a hand, does to a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    /// A mark says another name than when it was written.
    OtherName,
    /// The same, and its fencing is judged again, which would make a mark under the same id.
    OtherNameAndUndecided,
    /// A mark has lost its id.
    NoId,
    /// A host's marks are taken away.
    NoMark(&'static str),
    /// The word is lost that a fencing was taken in.
    Undecided,
}

impl Damage {
    fn sql(self) -> String {
        let name = "UPDATE mark SET fqdn = 'compute9.example.org'";
        match self {
            Self::OtherName => name.to_owned(),
            Self::OtherNameAndUndecided => format!("{name}; UPDATE folded SET mark = NULL"),
            Self::NoId => "PRAGMA foreign_keys = OFF; UPDATE mark SET id = CAST(x'ff' AS TEXT)".to_owned(),
            Self::NoMark(host) => {
                format!("PRAGMA foreign_keys = OFF; DELETE FROM mark WHERE node = '{host}'")
            }
            Self::Undecided => "DELETE FROM folded".to_owned(),
        }
    }
}

/// What of a poll cannot be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// That a host was connected.
    Connections,
    /// That a mark is another one now.
    Marks,
}

impl Homes {
    /// Changes a controller's journal by other means than ours.
    pub(crate) fn damage(&self, controller: &str, damage: Damage) {
        self.tamper(controller, &damage.sql());
    }
}

impl Alerter {
    /// One poll that a write cuts off which fails.
    pub(crate) fn poll_is_cut_off(&mut self, site: &Site, cut: Cut) {
        let fault = match cut {
            Cut::Connections => "INSERT ON connection",
            Cut::Marks => "UPDATE ON mark",
        };
        let broken = format!("CREATE TRIGGER broken BEFORE {fault} BEGIN SELECT RAISE(ABORT, 'broken'); END");
        site.homes.tamper(self.controller, &broken);
        assert!(self.poll(site, false).is_err(), "{cut:?}");
        site.homes.tamper(self.controller, "DROP TRIGGER broken");
    }

    /// Makes the attempt that is due on a route with its own driver, and gives the delivery; none where nothing is due.
    pub(crate) async fn exchange(&mut self, site: &Site, route: &str) -> Option<Delivery> {
        let due = self.begin(site, route)?;
        let (mark, sent) = (due.mark.id, self.shared.base.route(route).unwrap());
        let (sender, mut answers) = mpsc::unbounded_channel();
        delivery::serve(self.shared.sending(), sent, due, sender).await;
        let answer = answers.recv().await.unwrap();
        self.journal.dispatch(&[answer.ended], &[], None, self.now(site)).unwrap();
        let all = self.journal.deliveries_of(mark).unwrap().sound;
        all.into_iter().find(|delivery| delivery.route == route)
    }

    /// What a route gets, or got, of a host's marks, oldest first.
    pub(crate) fn bodies(&self, host: &str, route: &str) -> Vec<String> {
        let all = self.marks(host).into_iter().map(|mark| self.journal.deliveries_of(mark.id).unwrap().sound);
        let own = all.flatten().filter(|delivery| delivery.route == route);
        own.map(|delivery| String::from_utf8(delivery.body).unwrap()).collect()
    }

    /// `nova-host-alerter release`.
    pub(crate) fn release(&mut self, site: &Site, mark: MarkId) {
        assert!(self.journal.release(mark, "I checked", "alice", self.now(site)).unwrap().is_some());
    }

    /// The same for a mark that a route's terms keep back.
    pub(crate) fn release_held(&mut self, site: &Site, mark: MarkId) {
        assert!(self.journal.release_held(mark, false, ("I checked", "alice"), self.now(site)).unwrap() > 0);
    }

    /// `nova-host-alerter unmark`.
    pub(crate) fn unmark(&mut self, site: &Site, mark: MarkId) {
        assert!(self.journal.dismiss(mark, "it lives", "alice", self.now(site)).unwrap());
    }

    /// `pause`, `maintenance begin`, and what another one decided.
    pub(crate) fn decide(&mut self, decision: &Decision) {
        assert!(self.journal.decide(decision).unwrap());
    }

    /// `resume` and `maintenance end`.
    pub(crate) fn end(&mut self, ending: &Ending) {
        self.journal.end_decision(ending).unwrap();
    }

    /// The decisions that hold marks now.
    pub(crate) fn in_force(&self, site: &Site) -> Vec<Decision> {
        let rows = self.journal.decisions_in_force(self.now(site)).unwrap();
        assert!(rows.damaged.is_empty());
        rows.sound
    }

    /// The open marks that an operator has released.
    pub(crate) fn released(&self) -> Vec<MarkId> {
        self.journal.released_marks().unwrap().into_iter().collect()
    }

    /// Why the policy holds a mark, in the words of `list`.
    pub(crate) fn holds_of(&self, mark: MarkId) -> Vec<String> {
        self.journal.hold_of(mark).unwrap().map(|held| held.words).unwrap_or_default()
    }

    /// The routes and states of a mark's deliveries.
    pub(crate) fn deliveries(&self, mark: MarkId) -> Vec<(String, State)> {
        let rows = self.journal.deliveries_of(mark).unwrap();
        assert!(rows.damaged.is_empty());
        rows.sound.into_iter().map(|delivery| (delivery.route, delivery.state)).collect()
    }

    /// `history --json`, of everything.
    pub(crate) fn history(&self) -> Vec<Value> {
        self.lines(&HistoryFilter::default())
    }

    /// The same of one mark.
    pub(crate) fn history_of(&self, mark: MarkId) -> Vec<Value> {
        self.lines(&HistoryFilter { mark: Some(mark), ..HistoryFilter::default() })
    }

    fn lines(&self, filter: &HistoryFilter) -> Vec<Value> {
        let line = |row: HistoryRow| serde_json::to_value(row).unwrap();
        self.journal.history(filter).unwrap().sound.into_iter().map(line).collect()
    }

    /// What `status` says is wrong, of one kind.
    pub(crate) fn problems(&self, site: &Site, kind: Kind) -> Vec<Problem> {
        let all = self.shared.problems(self.now(site));
        all.into_iter().filter(|one| one.kind == kind).collect()
    }

    /// `/metrics`, with everything counted at this moment.
    pub(crate) fn metrics(&self) -> String {
        self.shared.put_figures(counting::count_now(&self.journal, &self.shared).unwrap());
        self.scrape()
    }

    /// The same with what was counted before.
    pub(crate) fn scrape(&self) -> String {
        write(&self.shared)
    }

    /// The journal's thread hangs in a disk, and with it the plan that it holds, until what this gives is dropped.
    pub(crate) fn hangs(&self) -> Sender<()> {
        let (shared, (held, is_held), (free, is_free)) = (self.shared(), channel(), channel());
        thread::spawn(move || {
            let _plan = shared.policy.steering();
            held.send(()).unwrap();
            let _the_test_lets_go = is_free.recv();
        });
        is_held.recv().unwrap();
        free
    }

    /// Whether what stands in the register under this key has no effect.
    pub(crate) fn refuses(&self, key: &Key) -> bool {
        self.shared.base.seen().refused().contains_key(key)
    }

    /// Host and kind of each record of a fencing that has no end that can be shown, so many seconds after the site's present.
    pub(crate) fn unaccounted(&self, site: &Site, later: u64) -> Vec<(String, Gap)> {
        let (base, now) = (&self.shared.base, site.moment(self.controller));
        account::check(&self.journal, base, &self.shared.accounts, now).unwrap();
        let then = now.instant + Duration::from_secs(later);
        let found = account::unaccounted(base, &self.shared.accounts, then);
        found.into_iter().map(|one| (one.host.unwrap(), one.kind)).collect()
    }

    /// Removes what nothing needs any more, as the daemon does from time to time. Gives how much.
    pub(crate) fn prune(&mut self, site: &Site) -> usize {
        let (mut round, mut removed) = (Round::default(), 0);
        for _ in 0..1000 {
            removed += pruning::step(&mut self.journal, &self.shared, &mut round, site.now).unwrap();
            if round.is_done() || round == Round::default() {
                return removed;
            }
        }
        panic!("a round without an end");
    }
}
