//! What the reading commands show: the cluster's register as it stands now, beside this controller's journal. Neither
//! Pacemaker nor a daemon has to be there.

use std::thread;
use std::time::{Duration, Instant};

use journal::{Done, Journal, JournalError};
use marks::delivery::{Attempt, Delivery, State};
use marks::fencing::Fencing;
use marks::id::{FencingId, MarkId, NoteId};
use marks::mark::{Doubt, MarkRow, Proof, Standing};
use marks::register::{Acknowledgement, Decision, Entries, Entry, Key, MarkEntry, Register, Settled};
use pacemaker::read;
use register::Access;

/// A poll takes about 20 ms. Nobody waits longer for what works without it too.
pub(super) const LIMIT: Duration = Duration::from_secs(2);
/// The alerter as the CIB names it.
const ALERTER: &str = "ocf:openstack:nova-host-alerter";

/// The answer is the whole cluster's.
pub(super) const CLUSTER: &str = "cluster";

/// The register, asked once.
pub(super) struct RegisterView {
    register: Register,
    entries: Result<Entries, String>,
    /// The controller that the alerter runs on, as far as the CIB was asked and says so.
    pub(super) alerter_on: Option<String>,
    /// What the alerter's resource is called there.
    pub(super) resource: Option<String>,
    /// The release of Pacemaker, where it is newer than each that this program was run with.
    pub(super) untried: Option<String>,
}

/// A mark as it is known here.
pub(super) struct Found {
    pub(super) mark: MarkRow,
    /// Else only the register knows it.
    pub(super) in_journal: bool,
    /// Whether the journal itself has it as settled: what is open of it all the same is still tried.
    pub(super) settled_here: bool,
}

impl RegisterView {
    /// Reads the register; with `none` there is nothing to read.
    pub(super) fn take(access: &Access) -> Self {
        let read = access.read(Instant::now() + LIMIT);
        Self::of(access.register, read.map_err(|e| e.to_string()))
    }

    /// What was read, without what counts for nothing.
    fn of(register: Register, read: Result<Entries, String>) -> Self {
        let entries = read.map(Entries::believed);
        Self { register, entries, alerter_on: None, resource: None, untried: None }
    }

    /// The same, and asks the CIB where the alerter runs.
    pub(super) fn with_alerter(access: &Access) -> Self {
        if access.register == Register::None {
            return Self::take(access);
        }
        thread::scope(|scope| {
            let cib = scope.spawn(|| read::agent(&access.tools, ALERTER, Instant::now() + LIMIT).ok());
            let register = Self::take(access);
            let cib = cib.join().expect("a panic anywhere ends the whole program");
            let Some(cib) = cib else { return register };
            let resource = cib.resource_of(ALERTER).map(str::to_owned);
            let untried = cib.untried_release().map(str::to_owned);
            Self { alerter_on: cib.active_on(ALERTER), resource, untried, ..register }
        })
    }

    /// Whether the answer is the cluster's, or this controller's alone.
    pub(super) fn view(&self) -> &'static str {
        if self.entries().is_some() { CLUSTER } else { "local view" }
    }

    /// Where the register is.
    pub(super) fn register(&self) -> Register {
        self.register
    }

    /// Why the answer is this controller's alone, where it should not be.
    pub(super) fn fault(&self) -> Option<String> {
        let why = self.entries.as_ref().err()?;
        Some(format!("the register ({}) cannot be read: {why}", self.register.as_str()))
    }

    /// What stands in the register, where there is one and it could be read.
    pub(super) fn entries(&self) -> Option<&Entries> {
        self.entries.as_ref().ok().filter(|_| self.register != Register::None)
    }

    pub(super) fn entry(&self, key: &Key) -> Option<&Entry> {
        self.entries()?.sound.get(key)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries().into_iter().flat_map(|entries| entries.sound.values())
    }

    fn settled(&self, mark: MarkId) -> Option<&Settled> {
        match self.entry(&Key::Settled(mark))? {
            Entry::Settled(settled) => Some(settled),
            _ => None,
        }
    }

    /// The routes of which the register says that they took the mark.
    pub(super) fn acknowledged(&self, mark: MarkId) -> Vec<&Acknowledgement> {
        let from = Key::Acknowledged(mark, String::new());
        let behind = self.entries().into_iter().flat_map(|entries| entries.sound.range(from.clone()..));
        let own = behind.map(|(_, entry)| entry).take_while(|entry| entry.key().mark() == Some(mark));
        own.filter_map(|entry| match entry {
            Entry::Acknowledged(taken) => Some(taken),
            _ => None,
        })
        .collect()
    }

    /// The fencing that the mark was made of.
    pub(super) fn first_fencing(&self, mark: MarkId) -> Option<&Fencing> {
        let id = FencingId::parse(&mark.to_string()).ok()?;
        self.entry(&Key::Fencing(id)).or_else(|| self.entry(&Key::Again(id)))?.fencing()
    }

    /// What operators decided about groups and hosts and have not ended, and the ids of what they have ended.
    pub(super) fn in_force(&self) -> (Vec<&Decision>, Vec<NoteId>) {
        let (mut decisions, mut ended) = (Vec::new(), Vec::new());
        for entry in self.all() {
            match entry {
                Entry::Decision(decision) if decision.about.holds() => decisions.push(decision),
                Entry::Ending(ending) => ended.push(ending.id),
                _ => {}
            }
        }
        decisions.retain(|decision| !ended.contains(&decision.id));
        (decisions, ended)
    }

    /// The marks that stand there, as far as a journal would keep them.
    fn marks(&self) -> impl Iterator<Item = MarkRow> {
        self.all().filter_map(|entry| match entry {
            Entry::Mark(entry) => Some(self.row(entry)),
            _ => None,
        })
    }

    fn row(&self, entry: &MarkEntry) -> MarkRow {
        let settled = self.settled(entry.mark.id).map(|end| (end.how, end.at));
        let returned_at = match self.entry(&Key::Returned(entry.mark.id)) {
            Some(Entry::Returned(returned)) => Some(returned.at),
            _ => None,
        };
        MarkRow { settled, returned_at, ..entry.row() }
    }
}

/// The journal, where there is one, and the register.
#[derive(Clone, Copy)]
pub(super) struct Records<'r> {
    pub(super) journal: Option<&'r Journal>,
    pub(super) register: &'r RegisterView,
}

impl Records<'_> {
    /// What the journal says; nothing where there is none.
    pub(super) fn here<T: Default>(self, read: impl FnOnce(&Journal) -> Done<T>) -> Done<T> {
        self.journal.map_or_else(|| Ok(T::default()), read)
    }

    /// The wanted marks of journal and register, oldest first. `rows` are those of the journal; one that is open here and
    /// has ended elsewhere has ended.
    ///
    /// # Errors
    /// As any read.
    pub(super) fn marks(self, rows: Vec<MarkRow>, wanted: impl Fn(&MarkRow) -> bool) -> Done<Vec<Found>> {
        let ended = |mut mark: MarkRow| {
            let settled_here = mark.settled.is_some();
            mark.settled =
                mark.settled.or_else(|| self.register.settled(mark.id).map(|end| (end.how, end.at)));
            Found { mark, in_journal: true, settled_here }
        };
        let mut all: Vec<Found> = rows.into_iter().map(ended).filter(|found| wanted(&found.mark)).collect();
        for mark in self.register.marks().filter(&wanted) {
            if self.is_strange(mark.id)? {
                all.push(Found { mark, in_journal: false, settled_here: false });
            }
        }
        all.sort_by_key(|found| (found.mark.failure_time, found.mark.id));
        Ok(all)
    }

    /// A damaged row is here too; its reader says so.
    fn is_strange(self, mark: MarkId) -> Done<bool> {
        match self.here(|journal| journal.mark(mark)) {
            Ok(here) => Ok(here.is_none()),
            Err(JournalError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Shows a delivery as ended that another alerter has ended: what the daemon will write when it runs here.
pub(super) fn end_elsewhere(delivery: &mut Delivery, found: &Found, register: &RegisterView) {
    let mark = found.mark.id;
    let taken = register.acknowledged(mark).into_iter().find(|taken| taken.route == delivery.route);
    let settled = register.settled(mark).filter(|_| !found.settled_here);
    let end = match (taken, settled) {
        (Some(taken), _) => (State::Acknowledged, taken.at, &taken.by),
        (None, Some(settled)) => (State::at_the_end(settled.how, delivery.has_to()), settled.at, &settled.by),
        (None, None) => return,
    };
    let (state, at, by) = end;
    if !delivery.state.may_end_elsewhere(state) {
        return;
    }
    let word = state.as_str();
    let detail =
        format!("route {} is {word} by the alerter on {by}, according to the register", delivery.route);
    delivery.state = state;
    delivery.last = Some(Attempt { at, kind: format!("{word}-elsewhere"), detail });
    delivery.ended_at = Some(at);
}

/// Who vouches for a mark.
pub(super) fn vouched(found: &Found) -> String {
    let mark = &found.mark;
    if !found.in_journal {
        return format!("vouched for by the alerter on {}, according to the register", mark.made_by);
    }
    match mark.standing {
        Standing::Proven(proof) => format!("vouched for by {}", voucher(proof)),
        Standing::Doubtful(doubt) => {
            format!("nobody vouches for it ({}): {}", mark.standing.as_str(), why(doubt))
        }
    }
}

fn voucher(proof: Proof) -> &'static str {
    match proof {
        Proof::Alone => "fence_mark alone: register = \"none\", so no cluster is asked",
        Proof::Journal => {
            "Pacemaker's fencer, which ran fence_mark: this controller's journal says so, or root's seal on the register's entry"
        }
        Proof::Alert => "Pacemaker's alert",
        Proof::History => "Pacemaker's fencing history",
        Proof::NodeFenced => "node_fenced in the CIB",
        Proof::Operator => "an operator",
    }
}

fn why(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Unconfirmed => "it was recorded or confirmed by hand, and Pacemaker reports no fencing",
        Doubt::Unproven => "only the register says so",
        Doubt::OutcomeUnknown => "a record from before: its routes may have been notified then",
        Doubt::FencedAgain => {
            "the host was fenced again after its last mark had ended, and it is not known whether it was back in between"
        }
    }
}

#[cfg(test)]
pub(super) mod tests {

    use std::path::Path;

    use marks::chain::Link;

    use journal::{NewDelivery, Role, Taken};
    use marks::mark::{Proof, Settlement, Standing};
    use marks::register::{About, Returned, Scope, Unsealed};
    use marks::time::Timestamp;
    use site::Site;

    use super::*;
    use crate::commands::report::report;
    use crate::commands::text;
    use crate::commands::unmarked::{Rules, unmarked};

    pub(in crate::commands) const NOW: Timestamp = Timestamp(1_800_000_000_000);

    pub(in crate::commands) fn fencing(node: &str, seen_by: &str) -> Fencing {
        Fencing { seen_by: seen_by.into(), ..samples::fencing(node, NOW) }
    }

    pub(in crate::commands) use samples::entry;

    pub(in crate::commands) fn taken(fencing: &Fencing) -> Entry {
        let (mark, route) = (fencing.id.into(), "recovery".to_owned());
        Entry::Acknowledged(Acknowledgement { mark, route, at: NOW, by: "ctl2".into() })
    }

    pub(in crate::commands) fn settled(fencing: &Fencing, how: Settlement) -> Entry {
        Entry::Settled(Settled { mark: fencing.id.into(), how, at: NOW, by: "ctl2".into() })
    }

    pub(in crate::commands) fn register(entries: Vec<Entry>) -> RegisterView {
        let sound = entries.into_iter().map(|entry| (entry.key(), entry)).collect();
        RegisterView::of(Register::Attrd, Ok(Entries { sound, ..Entries::default() }))
    }

    pub(in crate::commands) fn alone() -> RegisterView {
        RegisterView::of(Register::None, Ok(Entries::default()))
    }

    /// A journal with one open mark, made of this fencing.
    pub(in crate::commands) fn journal(directory: &Path, first: &Fencing) -> Journal {
        let mut journal = Journal::open(&directory.join("state/marks.db"), Role::Alerter).unwrap();
        journal.append_fencing(first).unwrap();
        let row = MarkRow {
            standing: Standing::Proven(Proof::Journal),
            ..register(vec![]).row(&entry(first, "ctl1"))
        };
        let to = |route: &str, required| NewDelivery {
            route: route.into(),
            body: b"{}".to_vec(),
            required,
            link: None,
        };
        let both = [to("recovery", true), to("wiki", false)];
        journal.make_mark(&row, Taken::Fencing(first), &both, None, NOW).unwrap();
        journal
    }

    fn found(journal: Option<&Journal>, register: &RegisterView) -> Vec<Found> {
        let rows = journal.map_or_else(Vec::new, |journal| journal.recent_marks(10).unwrap().sound);
        Records { journal, register }.marks(rows, |_| true).unwrap()
    }

    #[test]
    fn a_mark_of_another_controller_is_listed_once() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (fencing("compute1", "ctl1"), fencing("compute2", "ctl2"));
        let journal = journal(dir.path(), &here);
        let register = register(vec![
            Entry::Mark(entry(&here, "ctl1")),
            Entry::Mark(entry(&there, "ctl2")),
            taken(&there),
        ]);
        let all = found(Some(&journal), &register);
        let known: Vec<(String, bool)> =
            all.iter().map(|found| (found.mark.node.to_string(), found.in_journal)).collect();
        assert_eq!(known, [("compute1".to_owned(), true), ("compute2".to_owned(), false)]);
        let stranger = report(Records { journal: Some(&journal), register: &register }, &all[1]).unwrap();
        assert_eq!((stranger.view, stranger.state(), stranger.holds().len()), (CLUSTER, "open", 0));
        assert!(stranger.kept.deliveries.is_empty() && stranger.acknowledged[0].route == "recovery");
        let alone = found(None, &register);
        assert_eq!(alone.len(), 2, "a controller that has no journal shows them too");
        assert!(alone.iter().all(|found| !found.in_journal));
    }

    /// C11: what no key vouches for counts in no headline, row or figure. The broken variant counts fencings and marks.
    #[test]
    fn what_no_key_vouches_for_is_shown_nowhere() {
        let (id, at) = (NoteId::generate(), Timestamp(2_100_000_000_000));
        let odd = Fencing { asked_at: at, ..fencing("compute1", "ctl2") };
        let pause = About::Pause { scope: Scope::All, until: None };
        let (actor, reason) = ("alice".to_owned(), "move".to_owned());
        let mark = odd.id.into();
        let all = [
            Entry::Fencing(odd.clone()),
            Entry::Again(odd.clone()),
            Entry::Mark(entry(&odd, "ctl2")),
            taken(&odd),
            settled(&odd, Settlement::Dismissed),
            Entry::Returned(Returned { mark, at, by: "ctl2".into() }),
            Entry::Decision(Decision { id, about: pause, at, actor, reason }),
        ];
        for entry in all {
            let (key, sound) = (entry.key(), [(entry.key(), entry)].into());
            let unsealed = [(key.clone(), Unsealed::Unknown)].into();
            let view =
                RegisterView::of(Register::Attrd, Ok(Entries { sound, unsealed, ..Entries::default() }));
            assert!(found(None, &view).is_empty() && view.in_force().0.is_empty(), "{key}");
            assert!(view.acknowledged(mark).is_empty() && view.settled(mark).is_none(), "{key}");
            let rules = Rules::of(&Site::default());
            let found = unmarked(Records { journal: None, register: &view }, vec![], ("ctl1", rules), NOW);
            assert!(found.unwrap().elsewhere.is_empty(), "{key}");
        }
    }

    /// S4-55: its place, its time, and what is not its turn.
    #[test]
    fn a_chain_is_shown_with_the_place_and_the_time_of_each_step() {
        let dir = tempfile::tempdir().unwrap();
        let first = fencing("compute1", "ctl1");
        let mut journal = Journal::open(&dir.path().join("state/marks.db"), Role::Alerter).unwrap();
        journal.append_fencing(&first).unwrap();
        let row = MarkRow {
            standing: Standing::Proven(Proof::Journal),
            ..register(vec![]).row(&entry(&first, "ctl1"))
        };
        let link = |step| Some(Link { step, timeout: Duration::from_secs(60) });
        let to = |route: &str, step| NewDelivery {
            route: route.into(),
            body: b"{}".to_vec(),
            required: true,
            link: link(step),
        };
        let chain = [to("recovery", 1), to("pager", 2)];
        journal.make_mark(&row, Taken::Fencing(&first), &chain, None, NOW).unwrap();
        journal.advance_chains(&|_| true, &|_| true, NOW).unwrap();
        let nothing = register(vec![]);
        let shown = report(
            Records { journal: Some(&journal), register: &nothing },
            &found(Some(&journal), &nothing)[0],
        )
        .unwrap();
        let lines = shown.kept.deliveries.iter().map(|one| text::short(one, shown.steps()));
        let line = lines.collect::<Vec<_>>().join("; ");
        let running = "recovery pending (0 attempt(s), step 1 of 2 since 2027-01-15 08:00:00Z, until 2027-01-15 08:01:00Z)";
        assert_eq!(line, format!("pager held (0 attempt(s), step 2 of 2, not its turn yet); {running}"));
        let json = serde_json::to_value(&shown).unwrap();
        let step = &json["deliveries"][1]["chain"];
        assert!(
            step["step"] == 1 && step["steps"] == 2 && step["until"] == "2027-01-15T08:01:00.000Z",
            "{step}"
        );
        // The register does not say which step took it.
        let ended = register(vec![settled(&first, Settlement::Acknowledged)]);
        let shown =
            report(Records { journal: Some(&journal), register: &ended }, &found(Some(&journal), &ended)[0])
                .unwrap();
        assert!(shown.kept.deliveries.iter().all(|delivery| delivery.state == State::Cancelled));
    }

    #[test]
    fn the_fencing_of_a_mark_is_found_in_the_register() {
        let (first, other) = (fencing("compute1", "ctl1"), fencing("compute2", "ctl1"));
        let register = register(vec![Entry::Fencing(first.clone()), Entry::Fencing(other)]);
        assert_eq!(register.first_fencing(first.id.into()), Some(&first));
    }
}
