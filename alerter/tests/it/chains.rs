//! Escalation chains on the journals of two controllers with a register between them: what one sent the other knows, and no
//! more.

use std::time::Duration;

use journal::{Capacity, DueDelivery, Ended, Journal, NewDelivery, Role, Taken, Verdict};
use marks::chain::Link;
use marks::delivery::State;
use marks::fencing::Fencing;
use marks::id::MarkId;
use marks::mark::{MarkRow, Proof, Settlement, Standing};
use marks::register::{Entry, MarkEntry};
use marks::time::Timestamp;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const LIMIT: Duration = Duration::from_secs(60);
const CHAIN: [&str; 3] = ["masakari", "nova", "pager"];

/// One controller.
struct Controller {
    _keep: TempDir,
    journal: Journal,
    name: &'static str,
}

impl Controller {
    fn new(name: &'static str) -> Self {
        let keep = TempDir::new().unwrap();
        let journal = Journal::open(&keep.path().join("state/marks.db"), Role::Alerter).unwrap();
        Self { _keep: keep, journal, name }
    }

    /// What its engine does at each turn; gives what it begins.
    fn dispatch(&mut self, now: Timestamp) -> Vec<DueDelivery> {
        self.journal.advance_chains(&|_| true, &|_| true, now).unwrap();
        let capacities = CHAIN.map(|route| Capacity::of(route, 4));
        self.journal.dispatch(&[], &capacities, None, now).unwrap().begun
    }

    fn finish(&mut self, due: &DueDelivery, verdict: Verdict, at: Timestamp) {
        let (mark, route) = (due.mark.id, due.delivery.route.clone());
        self.journal.dispatch(&[Ended { mark, route, verdict, at }], &[], None, at).unwrap();
    }

    /// What it writes into the register.
    fn publishes(&self) -> Vec<Entry> {
        self.journal.entries(NOW - LIMIT, self.name).unwrap()
    }

    /// What it takes in of the register, in the order of the intake.
    fn read(&mut self, entries: &[Entry], now: Timestamp) {
        let is_settled = entries.iter().any(|entry| matches!(entry, Entry::Settled(_)));
        let mut entries: Vec<&Entry> = entries.iter().collect();
        entries.sort_by_key(|entry| entry.key());
        for entry in entries {
            match entry {
                Entry::Mark(entry) => self.adopt(entry, now),
                Entry::Acknowledged(end) => {
                    self.journal.acknowledged_elsewhere(end, is_settled, now).unwrap();
                }
                Entry::Settled(end) => {
                    self.journal.settled_elsewhere(end, now).unwrap();
                }
                _ => {}
            }
        }
    }

    fn adopt(&mut self, entry: &MarkEntry, now: Timestamp) {
        if self.journal.mark(entry.mark.id).unwrap().is_none() {
            let row = MarkRow { standing: Standing::Proven(Proof::Alert), ..entry.row() };
            self.journal.make_mark(&row, Taken::Register, &chain(row.id), now).unwrap();
        }
    }

    fn states(&self, mark: MarkId) -> Vec<State> {
        let all = self.journal.deliveries_of(mark).unwrap().sound;
        let of = |route: &str| all.iter().find(|delivery| delivery.route == route).unwrap().state;
        CHAIN.map(of).to_vec()
    }
}

/// As the intake makes it: the bytes are a pure function of the mark.
fn chain(mark: MarkId) -> Vec<NewDelivery> {
    let new = |(route, step): (&&str, u32)| NewDelivery {
        route: (*route).to_owned(),
        body: format!("{mark} to {route}").into_bytes(),
        required: true,
        link: Some(Link { step, timeout: LIMIT }),
    };
    CHAIN.iter().zip(1..).map(new).collect()
}

fn outage(controller: &mut Controller) -> MarkId {
    let fencing = Fencing { seen_by: controller.name.into(), ..samples::fencing("compute1", NOW) };
    let row = samples::mark(&fencing);
    controller.journal.append_fencing(&fencing).unwrap();
    controller.journal.make_mark(&row, Taken::Fencing(&fencing), &chain(row.id), NOW).unwrap();
    row.id
}

fn taken() -> Verdict {
    Verdict::Acknowledged { reference: None, detail: "HTTP 202".into(), then: Vec::new() }
}

fn refused(at: Timestamp) -> Verdict {
    let (kind, detail) = ("credentials".to_owned(), "HTTP 401".to_owned());
    Verdict::Again { state: State::Parked, ambiguous: false, kind, detail, next_due: at }
}

/// S0-25, S0-26, S0-29, S4-8: the controller fails in the middle of a chain. The other one begins with the first step, under
/// the same id and with the same bytes; an acknowledged mark is not sent again (S4-40).
#[test]
fn another_controller_begins_a_chain_again_and_knows_what_was_acknowledged() {
    let (mut first, mut second) = (Controller::new("ctl1"), Controller::new("ctl2"));
    let mark = outage(&mut first);
    let sent = first.dispatch(NOW);
    assert_eq!(sent[0].delivery.route, "masakari");
    first.finish(&sent[0], refused(NOW), NOW);
    let next = first.dispatch(NOW);
    assert_eq!((next.len(), next[0].delivery.route.as_str()), (1, "nova"));
    // Its power fails here: nobody knows whether the second step arrived.
    second.read(&first.publishes(), NOW);
    let again = second.dispatch(NOW);
    assert_eq!((again.len(), again[0].delivery.route.as_str()), (1, "masakari"));
    assert_eq!((again[0].mark.id, &again[0].delivery.body), (mark, &sent[0].delivery.body));
    second.finish(&again[0], taken(), NOW);
    use State::{Acknowledged, Cancelled};
    assert_eq!(second.states(mark), [Acknowledged, Cancelled, Cancelled]);
    // The first controller is back, with the attempt that was cut off.
    first.journal.recover(NOW).unwrap();
    first.read(&second.publishes(), NOW);
    assert_eq!(first.states(mark), [Acknowledged, Cancelled, Cancelled]);
    let end = first.journal.mark(mark).unwrap().unwrap().settled.map(|(how, _)| how);
    assert_eq!(end, Some(Settlement::Acknowledged));
    assert!(first.dispatch(NOW + LIMIT * 9).is_empty() && second.dispatch(NOW + LIMIT * 9).is_empty());
}

/// P10 holds on each controller, and not across two that are cut off from one another. The broken variant notifies every step
/// that is there.
#[test]
fn each_controller_has_one_step_under_way() {
    let mut controller = Controller::new("ctl1");
    let mark = outage(&mut controller);
    for hour in 0..4_u32 {
        let now = NOW + Duration::from_secs(3600) * hour;
        let begun = controller.dispatch(now);
        assert_eq!(begun.len(), 1, "at hour {hour}");
        let under_way = controller.states(mark).into_iter().filter(|state| *state == State::InFlight).count();
        assert_eq!((under_way, controller.dispatch(now + LIMIT * 2).len()), (1, 0), "it is waited for");
        controller.finish(&begun[0], refused(now), now);
    }
    assert_eq!(
        controller.states(mark),
        [State::Held, State::Held, State::Parked],
        "the last is tried for ever"
    );
    let deliveries = controller.journal.deliveries_of(mark).unwrap().sound;
    let exhausted = deliveries.iter().find(|one| one.chain.is_some_and(|step| step.exhausted_at.is_some()));
    assert_eq!(exhausted.map(|one| one.route.as_str()), Some("pager"));
    let plain: Vec<NewDelivery> =
        chain(mark).into_iter().map(|delivery| NewDelivery { link: None, ..delivery }).collect();
    let mut reckless = Controller::new("ctl2");
    let entry = controller.publishes().into_iter().find_map(|entry| match entry {
        Entry::Mark(entry) => Some(entry),
        _ => None,
    });
    let row = MarkRow { standing: Standing::Proven(Proof::Alert), ..entry.unwrap().row() };
    reckless.journal.make_mark(&row, Taken::Register, &plain, NOW).unwrap();
    assert_eq!(reckless.dispatch(NOW).len(), 3);
}
