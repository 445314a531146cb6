//! The conditions that hold now, from what the daemon sees. Pure: the time is an argument.

use std::time::Duration;

use journal::{Damage, HistoryRow, Oldest, Quarantined};
use marks::mark::MarkRow;
use marks::time::Timestamp;

use super::condition::{About, Conditions, Key, printable};
use super::facts::{DAY, Facts, LIMIT};
use super::held_back;
use super::keys::{damage_key, mark_key, problem_key, quarantined_key};
use crate::policy;
use crate::problem::Condition;
use crate::problem::{self, Finding, Kind, Place, Problem};
use crate::state::{self, Shared};

/// What the daemon sees, apart from the journal.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub(super) now: Timestamp,
    /// What is wrong with the alerter, its routes and its cluster.
    pub(super) problems: Vec<Problem>,
    /// The journal was counted once: before that unaccounted records are not known.
    pub(super) is_counted: bool,
    /// What the polls have read; none where there is no cluster.
    pub(super) polled: Option<Polled>,
    /// Damaged rows of fencings.
    pub(super) fencings: Vec<Damage>,
    /// Where an operator has to go.
    pub(super) place: Place,
}

/// What the polls of the cluster have read so far.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each was read or was not, by itself")]
pub(super) struct Polled {
    /// There was one.
    pub(super) any: bool,
    /// The register was taken in once: before that the journal may be behind what other alerters did.
    pub(super) register: bool,
    /// The last one asked for the fencing history.
    pub(super) history: bool,
    /// The CIB was read once.
    pub(super) cib: bool,
}

impl Sight {
    /// What the engine and the others have seen.
    pub(super) fn of(shared: &Shared, now: Timestamp) -> Self {
        let polled = shared.base.cluster.as_ref().map(|_| {
            let seen = shared.base.seen();
            Polled {
                any: seen.view.is_some(),
                register: seen.register.is_some(),
                history: seen.view.as_ref().is_some_and(|view| view.history.is_some()),
                cib: seen.cib.is_some(),
            }
        });
        Self {
            now,
            problems: shared.problems(now),
            is_counted: shared.figures().journal.at.is_some(),
            polled,
            fencings: shared.base.damages.of("fencing"),
            place: state::place(&shared.base.settings()),
        }
    }
}

/// Everything that holds, and how long until the next condition begins by time alone.
pub(super) fn conditions(sight: &Sight, facts: Option<&Facts>) -> (Conditions, Option<Duration>) {
    let mut found = Conditions::default();
    let has_caught_up = sight.polled.is_none_or(|polled| polled.register);
    let mut rest = None;
    match facts.filter(|_| has_caught_up) {
        Some(facts) => {
            let proof = of_journal(&mut found, facts, sight);
            let held_back = held_back::add(&mut found, &facts.together, sight.now, &sight.place);
            rest = proof.into_iter().chain(held_back).min();
        }
        None => found.unknown.extend([
            Condition::Held,
            Condition::HeldBack,
            Condition::Reminder,
            Condition::HeldMore,
            Condition::Rejected,
            Condition::RejectedMore,
            Condition::Quarantined,
            Condition::Expired,
            Condition::Exhausted,
        ]),
    }
    of_fencings(&mut found, sight);
    of_unseen(&mut found, sight);
    let rests = sight.problems.iter().filter_map(|problem| of_problem(&mut found, problem, sight.now));
    let rest = rests.chain(rest).min();
    leave_out(&mut found);
    (found, rest)
}

/// A problem of the alerter, of a route, of the cluster. Gives how long until it is news.
fn of_problem(found: &mut Conditions, problem: &Problem, now: Timestamp) -> Option<Duration> {
    let key = problem_key(problem.kind.notice()?, problem);
    if problem.kind.is_of_endpoint() {
        // It ends when the route accepts. A change from refused to failing does not end it, nor a new daemon that does not know the
        // endpoint's state yet.
        found.open.extend([Condition::Refused, Condition::Failing].map(|of| Key::new(of, key.of.clone())));
    }
    raise(found, key, problem, About::of(problem), now)
}

/// Gives how long until it is news.
fn raise(
    found: &mut Conditions,
    key: Key,
    problem: &Problem,
    about: About,
    now: Timestamp,
) -> Option<Duration> {
    if let Some(rest) = problem.not_yet_news(now) {
        // A former daemon may have notified it.
        found.open.insert(key);
        return Some(rest);
    }
    found.add(key, problem.since.unwrap_or(now), about, &problem.sentence());
    None
}

/// What was not seen yet must not be notified as over.
fn of_unseen(found: &mut Conditions, sight: &Sight) {
    let unseen = |is_seen: fn(Polled) -> bool| sight.polled.is_some_and(|polled| !is_seen(polled));
    if unseen(|polled| polled.any) {
        found.unknown.extend([Condition::Cluster, Condition::Alerter]);
    }
    if !sight.is_counted {
        found.unknown.insert(Condition::Alerter);
    }
    if unseen(|polled| polled.cib) {
        found.unknown.insert(Condition::Missing);
    }
    if unseen(|polled| polled.history) {
        found.open.insert(Key::new(Condition::Cluster, Kind::HistoryUnreadable.as_str()));
    }
}

/// Files of evidence that are not used may be very many.
fn leave_out(found: &mut Conditions) {
    let word = Kind::Evidence.as_str();
    let of_evidence = |key: &&Key| key.what == Condition::Cluster && key.of.starts_with(word);
    let more: Vec<Key> = found.holds.keys().filter(of_evidence).skip(LIMIT as usize).cloned().collect();
    for key in more {
        found.holds.remove(&key);
        found.open.insert(key);
    }
}

/// Gives how long until the next condition of these begins by time alone.
fn of_journal(found: &mut Conditions, facts: &Facts, sight: &Sight) -> Option<Duration> {
    let now = sight.now;
    let doubts = |mark| policy::doubts(mark).into_iter().map(move |hold| (mark, hold));
    let holds = facts.held.rows.sound.iter().flat_map(doubts);
    let held = holds.map(|(mark, hold)| (mark, Finding::doubt(hold, mark.made_at)));
    let dues = [&facts.rejected, &facts.kept, &facts.exhausted].map(|all| &all.rows.sound);
    let stuck = dues.into_iter().flatten().filter_map(|due| {
        Some((&due.mark, problem::of_delivery(&(&due.delivery).into(), due.mark.made_at)?))
    });
    let rest = held.chain(stuck).filter_map(|(mark, one)| of_mark(found, mark, one, sight)).min();
    // Damaged deliveries are notified as quarantined.
    for damage in facts.held.rows.damaged.iter().chain(&facts.still_held.damaged) {
        of_damage(found, damage, sight);
    }
    for row in &facts.quarantined {
        of_quarantined(found, row, sight);
    }
    of_notified(found, facts);
    let recent = facts.expired.iter().filter(|row| now.since(row.at) <= DAY);
    recent.for_each(|row| of_expired(found, row));
    let rejected = more(&facts.rejected) + more(&facts.kept) + more(&facts.exhausted);
    let held = more(&facts.held);
    of_more(found, Condition::HeldMore, held, "held", now);
    of_more(found, Condition::RejectedMore, rejected, "not accepted by their route", now);
    rest
}

/// Gives how long until it is news.
fn of_mark(found: &mut Conditions, mark: &MarkRow, one: Finding, sight: &Sight) -> Option<Duration> {
    let problem = one.problem(mark, sight.now, &sight.place);
    let of = problem.route.as_deref().unwrap_or(problem.kind.as_str());
    let key = mark_key(problem.kind.notice_of_mark()?, mark.id, of);
    let about = About { mark: Some(mark.id.to_string()), ..About::of(&problem) };
    raise(found, key, &problem, about, sight.now)
}

/// What was notified holds until it is over, even if so many others hold that it would not be notified now.
fn of_notified(found: &mut Conditions, facts: &Facts) {
    found.open.extend(facts.open.iter().map(|(mark, route)| mark_key(Condition::Rejected, *mark, route)));
    found.open.extend(facts.open.iter().map(|(mark, route)| mark_key(Condition::Exhausted, *mark, route)));
    let holds = |mark: &MarkRow| {
        let id = mark.id;
        policy::doubts(mark).into_iter().map(move |hold| mark_key(Condition::Held, id, hold.as_str()))
    };
    found.open.extend(facts.still_held.sound.iter().flat_map(holds));
    found.open.extend(facts.still_quarantined.iter().map(|delivery| quarantined_key(delivery)));
}

/// How many there are beyond those that were read.
fn more<T>(oldest: &Oldest<T>) -> usize {
    let read = oldest.rows.sound.len() + oldest.rows.damaged.len();
    (oldest.in_all as usize).saturating_sub(read)
}

fn of_more(found: &mut Conditions, what: Condition, count: usize, how: &str, now: Timestamp) {
    if count > 0 {
        let about = About { kind: "more".into(), ..About::default() };
        let message = format!("and {count} more marks are {how}: see `nova-host-alerter list`");
        found.add(Key::new(what, "all"), now, about, &message);
    }
}

fn of_quarantined(found: &mut Conditions, row: &Quarantined, sight: &Sight) {
    let problem = problem::of_damaged_delivery(row, sight.now, &sight.place);
    let Quarantined { mark, route, .. } = row;
    let about = About { kind: "delivery".into(), mark: Some(printable(mark)), ..About::of(&problem) };
    found.add(quarantined_key(&format!("{mark} {route}")), sight.now, about, &problem.sentence());
}

fn of_damage(found: &mut Conditions, damage: &Damage, sight: &Sight) {
    let about = About { kind: damage.table.to_owned(), ..About::default() };
    let problem = problem::damaged(&[damage], &sight.place);
    found.add(damage_key(damage), sight.now, about, &problem.sentence());
}

fn of_fencings(found: &mut Conditions, sight: &Sight) {
    let (first, more) = sight.fencings.split_at(sight.fencings.len().min(LIMIT as usize));
    for damage in first {
        of_damage(found, damage, sight);
    }
    found.open.extend(more.iter().map(damage_key));
}

fn of_expired(found: &mut Conditions, row: &HistoryRow) {
    let about = About {
        kind: "horizon".into(),
        host: row.node.clone(),
        mark: row.mark.clone(),
        route: row.route.clone(),
    };
    found.add(Key::new(Condition::Expired, row.seq.to_string()), row.at, about, &row.detail);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use journal::{DueDelivery, Journal, Role};
    use marks::chain::{Link, Step};
    use marks::delivery::{Attempt, Delivery, State};
    use marks::host::HostName;
    use marks::mark::{Doubt, Proof, Standing};

    use super::super::condition::Current;
    use super::super::facts::Question;
    use super::super::facts::tests::{make, row};
    use super::super::keys::{KEY, held_of, quarantined_of, question, rejected_of};
    use marks::id::MarkId;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const LONG: Duration = Duration::from_secs(300);

    fn sight() -> Sight {
        let (problems, fencings, place) = (Vec::new(), Vec::new(), Place::default());
        Sight { now: NOW, problems, is_counted: true, polled: None, fencings, place }
    }

    /// What a route's problem is, if it has one; a failure that lasts is news after [`LONG`].
    fn route(age: Option<Duration>, is_parked: bool) -> Vec<Problem> {
        let kind = if is_parked { Kind::Refused } else { Kind::Failing };
        let since = |age| NOW - age;
        let one = age.map(|age| Problem {
            route: Some("recovery".into()),
            since: Some(since(age)),
            news_at: (!is_parked).then(|| since(age) + LONG + Duration::from_millis(1)),
            ..Problem::of(kind, "it says no".into())
        });
        one.into_iter().collect()
    }

    fn mark(fqdn: Option<&str>, standing: Standing) -> MarkRow {
        let fqdn = fqdn.map(|name| HostName::parse(name).unwrap());
        MarkRow { fqdn, standing, ..row("compute1", NOW) }
    }

    fn rejected(mark: MarkRow) -> DueDelivery {
        let last = Some(Attempt { at: NOW, kind: "body-too-large".into(), detail: "HTTP 413".into() });
        let (state, new) = (State::Parked, samples::delivery(&mark, "recovery"));
        let delivery = Delivery { state, attempts: 1, next_due: NOW + LONG, last, ..new };
        DueDelivery { mark, delivery }
    }

    fn keys(found: &Conditions) -> Vec<String> {
        found.holds.keys().map(Key::to_string).collect()
    }

    fn of_facts(facts: &Facts) -> Conditions {
        conditions(&sight(), Some(facts)).0
    }

    /// Pacemaker says that a host is fenced when its power is on again, some time behind the mark: each outage would be a notice.
    #[test]
    fn what_pacemaker_confirms_in_time_is_no_condition() {
        let mut facts = Facts::nothing();
        facts.held.rows.sound = vec![mark(Some("compute1.example.org"), Standing::Doubtful(Doubt::Unproven))];
        let at = |now| {
            let (found, rest) = conditions(&Sight { now, ..sight() }, Some(&facts));
            (keys(&found).len(), rest)
        };
        let due = policy::hold::PROOF_DUE;
        assert_eq!(at(NOW), (0, Some(due)));
        assert_eq!(at(NOW + due), (1, None));
    }

    /// S1-5: each hold of a mark by itself, with what ends it.
    #[test]
    fn a_held_mark_is_a_condition_for_each_of_its_holds() {
        let mut facts = Facts::nothing();
        let mut nameless = mark(None, Standing::Doubtful(Doubt::Unproven));
        nameless.made_at = NOW - LONG;
        facts.held.rows.sound =
            vec![mark(Some("compute1.example.org"), Standing::Proven(Proof::Alert)), nameless.clone()];
        facts.held.in_all = 2;
        let found = of_facts(&facts);
        assert_eq!(
            keys(&found),
            [format!("held {} no-fqdn", nameless.id), format!("held {} unproven", nameless.id)]
        );
        let said: Vec<&str> = found.holds.values().map(|condition| condition.message.as_str()).collect();
        assert!(said[0].contains("set [hosts] domain") && said[1].contains("release"), "{said:?}");
        let about = &found.holds.values().next().unwrap().about;
        assert_eq!((about.kind.as_str(), about.host.as_deref()), ("no-fqdn", Some("compute1")));
    }

    #[test]
    fn of_very_many_the_rest_is_one_condition() {
        let mut facts = Facts::nothing();
        (facts.held.in_all, facts.rejected.in_all) = (7, 8);
        let found = of_facts(&facts);
        assert_eq!(keys(&found), ["held-more all", "rejected-more all"]);
        assert!(found.holds.values().next().unwrap().message.starts_with("and 7 more marks are held"));
    }

    #[test]
    fn a_rejected_mark_may_be_rejected_for_as_long_as_it_is_open() {
        let mut facts = Facts::nothing();
        let due = rejected(mark(Some("compute1.example.org"), Standing::Proven(Proof::Alert)));
        let (id, key) = (due.mark.id, mark_key(Condition::Rejected, due.mark.id, "recovery"));
        facts.rejected.rows.sound = vec![due];
        facts.rejected.in_all = 1;
        let found = of_facts(&facts);
        assert_eq!(found.holds[&key].about.kind, "body-too-large");
        let said = &found.holds[&key].message;
        assert!(
            said.starts_with(
                "route recovery does not accept the mark of compute1 (body-too-large): HTTP 413; check"
            ),
            "{said}"
        );
        assert!(said.contains(&format!("`nova-host-alerter unmark {id} --reason TEXT`")), "{said}");
        assert_eq!(rejected_of(&key), Some((id, "recovery".to_owned())));
        assert_eq!(rejected_of(&Key::new(Condition::Held, key.of.clone())), None);
        let mut tried_again = Facts::nothing();
        tried_again.open = vec![(id, "recovery".into())];
        let found = of_facts(&tried_again);
        assert!(found.holds.is_empty() && found.may_hold(&key));
        assert!(!of_facts(&Facts::nothing()).may_hold(&key));
    }

    /// S0-25: the broken variant is a chain that has another step.
    #[test]
    fn a_chain_without_another_step_is_said_until_it_is_over() {
        let mut facts = Facts::nothing();
        assert!(of_facts(&facts).holds.is_empty());
        let mut due = rejected(mark(Some("compute1.example.org"), Standing::Proven(Proof::Alert)));
        let link = Link { step: 2, timeout: LONG };
        due.delivery.chain = Some(Step { exhausted_at: Some(NOW - LONG), ..Step::new(link) });
        let (id, key) = (due.mark.id, mark_key(Condition::Exhausted, due.mark.id, "recovery"));
        (facts.exhausted.rows.sound, facts.exhausted.in_all) = (vec![due], 1);
        let found = of_facts(&facts);
        assert_eq!(keys(&found), [format!("exhausted {id} recovery")]);
        assert_eq!(found.holds[&key].since, NOW - LONG);
        assert!(
            found.holds[&key].message.starts_with("no step of the chain acknowledged the mark of compute1")
        );
        assert_eq!(rejected_of(&key), Some((id, "recovery".to_owned())));
        let mut later = Facts::nothing();
        later.open = vec![(id, "recovery".into())];
        assert!(of_facts(&later).may_hold(&key) && !of_facts(&Facts::nothing()).may_hold(&key));
    }

    #[test]
    fn what_is_damaged_or_too_late_is_said() {
        let mut facts = Facts::nothing();
        let (mark, route) = ("0193".to_owned(), "recovery".to_owned());
        facts.quarantined = vec![Quarantined { mark, route, row: None }];
        facts.held.rows.damaged = vec![Damage { table: "mark", key: "0194".into() }];
        (facts.held.in_all, facts.expired) = (1, vec![late(17, NOW), late(18, NOW - DAY * 2)]);
        let fencings = vec![Damage { table: "fencing", key: "0195".into() }];
        let (found, _) = conditions(&Sight { fencings, ..sight() }, Some(&facts));
        let wanted = [
            "quarantined delivery 0193 recovery",
            "quarantined fencing 0195",
            "quarantined mark 0194",
            "expired 17",
        ];
        assert_eq!(keys(&found), wanted);
    }

    /// Of a hundred that were notified the last one is not among the oldest any more: it is not over for that.
    #[test]
    fn what_was_notified_is_not_over_because_an_older_one_came() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&directory.path().join("state/marks.db"), Role::Alerter).unwrap();
        (0..LIMIT).for_each(|number| {
            make(&mut journal, &row("compute1", NOW + Duration::from_secs(number.into())));
        });
        let ask = |journal: &Journal, question| Facts::ask(journal, question, None, NOW).unwrap().unwrap();
        let before = of_facts(&ask(&journal, Question::default())).holds;
        let question = || question(before.keys());
        make(&mut journal, &row("compute1", NOW - LONG));
        // The broken variant does not ask what was notified.
        for (question, over) in [(Question::default(), 1), (question(), 0)] {
            let found = of_facts(&ask(&journal, question));
            assert_eq!((found.holds.len(), before.len()), (LIMIT as usize + 1, LIMIT as usize));
            assert_eq!(before.keys().filter(|key| !found.may_hold(key)).count(), over);
        }
        let last = MarkId::parse(&held_of(&newest(&before)).unwrap()).unwrap();
        assert!(journal.dismiss(last, "enough", "alice", NOW).unwrap());
        assert!(!of_facts(&ask(&journal, question())).may_hold(&newest(&before)), "it is over");
    }

    fn newest(holds: &BTreeMap<Key, Current>) -> Key {
        holds.iter().max_by_key(|(_, condition)| condition.since).unwrap().0.clone()
    }

    /// The same of what is damaged, and of files of evidence.
    #[test]
    fn what_was_notified_is_not_over_because_it_is_one_of_very_many() {
        let mut facts = Facts::nothing();
        let delivery = quarantined_key("0193 recovery");
        assert!(!of_facts(&facts).may_hold(&delivery));
        facts.still_quarantined = vec![quarantined_of(&delivery).unwrap()];
        assert!(of_facts(&facts).may_hold(&delivery) && of_facts(&facts).holds.is_empty());
        facts.still_held.damaged = vec![Damage { table: "mark", key: "0194".into() }];
        let damaged = keys(&of_facts(&facts));
        assert_eq!(damaged, ["quarantined mark 0194"]);
        let key = Key::parse(&damaged[0]).unwrap();
        assert_eq!((held_of(&key).as_deref(), quarantined_of(&key)), (Some("0194"), None));

        let row = |number| Damage { table: "fencing", key: format!("{number}") };
        let fencings: Vec<Damage> = (0..=LIMIT).map(row).collect();
        let last = damage_key(&fencings[LIMIT as usize]);
        let (found, _) = conditions(&Sight { fencings, ..sight() }, None);
        assert!(!found.holds.contains_key(&last) && found.open.contains(&last));
        let problems = (0..=LIMIT).map(|number| evidence(&format!("{number} is not used"))).collect();
        let found = of_polled(POLLED, problems);
        assert_eq!((found.holds.len(), found.open.len()), (LIMIT as usize, 1));
    }

    fn late(seq: i64, at: Timestamp) -> HistoryRow {
        HistoryRow {
            seq,
            at,
            event: "expired".into(),
            mark: None,
            node: Some("compute1".into()),
            route: None,
            outcome: None,
            detail: "a fencing of compute1 was found too late".into(),
            actor: "nova-host-alerter".into(),
        }
    }

    /// S4-31: trouble that lasts.
    #[test]
    fn a_route_fails_after_the_limit_and_refuses_at_once() {
        let second = Duration::from_secs(1);
        let of = |route| conditions(&Sight { problems: route, ..sight() }, Some(&Facts::nothing()));
        let (found, rest) = of(route(Some(LONG), false));
        assert_eq!((keys(&found), rest), (vec![], Some(Duration::from_millis(1))));
        let (found, rest) = of(route(Some(LONG + second), false));
        assert_eq!((keys(&found), rest), (vec!["failing recovery".to_owned()], None));
        assert_eq!(found.holds.values().next().unwrap().since, NOW - LONG - second);
        let (found, rest) = of(route(Some(second), true));
        assert_eq!((keys(&found), rest), (vec!["refused recovery".to_owned()], None));
        let (found, rest) = of(route(None, true));
        assert_eq!((keys(&found), rest), (vec![], None), "nothing waits for it");
    }

    /// A new daemon does not know that the endpoint refuses until it has asked: that is no recovery.
    #[test]
    fn only_a_route_that_accepts_has_recovered() {
        let of = |route| conditions(&Sight { problems: route, ..sight() }, None).0;
        for what in [Condition::Refused, Condition::Failing] {
            let key = Key::new(what, "recovery");
            assert!(of(route(Some(Duration::ZERO), false)).may_hold(&key));
            assert!(!of(route(None, false)).may_hold(&key));
        }
    }

    const POLLED: Polled = Polled { any: true, register: true, history: true, cib: true };

    fn of_polled(polled: Polled, problems: Vec<Problem>) -> Conditions {
        let sight = Sight { polled: Some(polled), problems, ..sight() };
        conditions(&sight, Some(&Facts::nothing())).0
    }

    fn evidence(what: &str) -> Problem {
        Problem { subject: Some(what.to_owned()), ..Problem::of(Kind::Evidence, what.to_owned()) }
    }

    #[test]
    fn each_problem_of_the_cluster_is_a_condition() {
        let long = "the evidence file x is not used ".repeat(100);
        let problems = vec![
            Problem::of(Kind::NoQuorum, "this partition has no quorum".into()),
            evidence("a is not used"),
            evidence("b is not used"),
            evidence(&long),
        ];
        let found = of_polled(POLLED, problems);
        assert_eq!(
            keys(&found)[..3],
            [
                "cluster evidence a is not used",
                "cluster evidence b is not used",
                &format!("cluster evidence {}", &long[..KEY])
            ]
        );
        assert_eq!(keys(&found)[3], "cluster no-quorum");
        let said = &found.holds[&Key::new(Condition::Cluster, "no-quorum")].message;
        assert!(said.starts_with("this partition has no quorum; bring the other"), "{said}");
    }

    #[test]
    fn what_was_not_polled_is_neither_well_nor_ill() {
        let (quorum, history) =
            (Key::new(Condition::Cluster, "no-quorum"), Key::new(Condition::Cluster, "history-unreadable"));
        let (missing, own) =
            (Key::new(Condition::Missing, "x"), Key::new(Condition::Alerter, "not-served x"));
        let before = of_polled(Polled { any: false, cib: false, ..POLLED }, Vec::new());
        assert!([&quorum, &missing, &own].into_iter().all(|key| before.may_hold(key)));
        let after = of_polled(Polled { history: false, ..POLLED }, Vec::new());
        assert!(!after.may_hold(&quorum) && after.may_hold(&history));
        assert!(!after.may_hold(&missing) && !after.may_hold(&own));
        let uncounted = conditions(&Sight { is_counted: false, ..sight() }, None).0;
        assert!(uncounted.may_hold(&own), "nobody knows yet what does not add up");
        let unread = conditions(&sight(), None).0;
        assert!(unread.may_hold(&Key::new(Condition::Held, "x")) && !unread.may_hold(&quorum));
    }

    /// Another alerter may have notified it, or ended it.
    #[test]
    fn what_stands_in_the_journal_of_a_new_alerter_is_notified_when_the_register_was_read() {
        let mut facts = Facts::nothing();
        facts.held.rows.sound = vec![mark(None, Standing::Proven(Proof::Alert))];
        facts.held.in_all = 1;
        for has_register in [false, true] {
            let polled = Some(Polled { register: has_register, ..POLLED });
            let (found, _) = conditions(&Sight { polled, ..sight() }, Some(&facts));
            assert_eq!(found.holds.len(), usize::from(has_register));
            assert_eq!(found.may_hold(&Key::new(Condition::Held, "notified before")), !has_register);
        }
    }

    #[test]
    fn a_host_is_missed_after_the_limit_and_until_it_is_back() {
        let of = |news_at| {
            let (hosts, subject) = (vec!["Compute1".to_owned()], Some("compute1".to_owned()));
            let one = Problem { hosts, subject, news_at, ..Problem::of(Kind::NotFenced, "gone".into()) };
            of_polled(POLLED, vec![one])
        };
        let key = Key::new(Condition::Missing, "not-fenced compute1");
        let young = of(Some(NOW + LONG));
        assert!(young.holds.is_empty() && young.may_hold(&key), "a new daemon counts from its start");
        assert_eq!(of(Some(NOW)).holds[&key].about.host.as_deref(), Some("Compute1"));
    }

    /// The broken variant has a list of its own, and knows nothing of a kind that is new.
    #[test]
    fn whatever_has_a_notice_is_a_condition() {
        for kind in Kind::OWN.iter().filter(|kind| kind.notice().is_some()) {
            let route = kind.is_of_endpoint().then(|| "recovery".to_owned());
            let one = Problem { route, ..Problem::of(*kind, "why".into()) };
            let found = of_polled(POLLED, vec![one]);
            assert_eq!(found.holds.keys().map(|key| key.what).collect::<Vec<_>>(), [kind.notice().unwrap()]);
        }
    }
}
