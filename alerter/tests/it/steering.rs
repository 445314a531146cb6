//! What the policy holds is not sent: the plan, the journal's holds and the search for what is due, taken together.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use alerter::policy::{groups, steer};
use alerter::probes::Conclusion;
use journal::{Capacity, Ended, Verdict as Came};
use marks::delivery::State;
use marks::host::HostName;
use marks::id::{MarkId, NoteId};
use marks::register::{About, Cause, Decision, Ending, Scope};
use marks::time::Timestamp;
use pacemaker::cib::Cib;

use crate::routes::{Daemon, Place, route};

const START: Timestamp = Timestamp(1_790_000_000_000);

fn after(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn group(name: &str, hosts: &[&str], keys: &str) -> String {
    format!("[groups.{name}]\nhosts = {hosts:?}\n{keys}\n")
}

/// Five hosts in rack1 under these rules, two in rack2 without any, one route for all.
fn site(keys: &str) -> (Place, Daemon) {
    let place = Place::new();
    let racks = [group("rack1", &["a1", "a2", "a3", "a4", "a5"], keys), group("rack2", &["b1", "b2"], "")];
    let daemon = place.start(&format!("{}{}", racks.concat(), route("oncall", "")));
    (place, daemon)
}

fn fence(daemon: &mut Daemon, hosts: &[&str], at: Timestamp) -> Vec<MarkId> {
    hosts.iter().map(|host| daemon.fence_at(host, at)).collect()
}

/// One turn of the engine: steers, and gives the marks whose attempts have begun.
fn turn(daemon: &mut Daemon, now: Timestamp) -> Vec<MarkId> {
    turn_with(daemon, &[], now)
}

fn turn_with(daemon: &mut Daemon, ended: &[Ended], now: Timestamp) -> Vec<MarkId> {
    daemon.journal.dispatch(ended, &[], None, now).unwrap();
    let capacity = [Capacity::of("oncall", 16)];
    steer::keep_up(&mut daemon.journal, daemon.shared.policy(), (&capacity, None), now).unwrap();
    let dispatched = daemon.journal.dispatch(&[], &capacity, None, now).unwrap();
    dispatched.begun.iter().map(|due| due.mark.id).collect()
}

fn took(mark: MarkId, at: Timestamp) -> Ended {
    let verdict = Came::Acknowledged { reference: None, detail: "200".into(), then: Vec::new() };
    Ended { mark, route: "oncall".into(), verdict, at }
}

fn words(daemon: &Daemon, mark: MarkId) -> Vec<String> {
    daemon.journal.hold_of(mark).unwrap().map(|held| held.words).unwrap_or_default()
}

fn sorted(mut marks: Vec<MarkId>) -> Vec<MarkId> {
    marks.sort();
    marks
}

fn decide(daemon: &mut Daemon, about: About, at: Timestamp) -> NoteId {
    let id = NoteId::generate();
    let decision = Decision { id, about, at, actor: "alice".into(), reason: "works".into() };
    assert!(daemon.journal.decide(&decision).unwrap());
    id
}

fn end(daemon: &mut Daemon, id: NoteId, at: Timestamp) {
    let ending = Ending { id, at, actor: "bob".into(), reason: "done".into() };
    assert!(daemon.journal.end_decision(&ending).unwrap());
}

/// S4-4, S4-11: three of five at once are held, the other group is sent. The broken variant is the turn without the policy,
/// which begins all.
#[test]
fn a_storm_is_held_and_another_group_is_sent() {
    let (_place, mut daemon) = site("max-unhealthy = \"40%\"");
    let storm = fence(&mut daemon, &["a1", "a2", "a3"], START);
    let other = fence(&mut daemon, &["b1"], START);
    assert_eq!(turn(&mut daemon, START), other);
    for mark in &storm {
        assert_eq!(words(&daemon, *mark), ["storm"]);
    }
    let status = groups::groups(&daemon.journal, daemon.shared.policy(), START).unwrap();
    let rack1 = &status[0];
    assert_eq!((rack1.size, rack1.unhealthy, rack1.marked, rack1.allowed), (5, 3, 3, Some(0)));
    assert_eq!(rack1.held, [("storm".to_owned(), 3)].into());
    let cause = Cause { scope: Some(Scope::Group("rack1".into())), decision: None };
    assert!(daemon.journal.holds().unwrap().values().all(|held| held.cause == cause), "one thing holds them");
    let unsteered = daemon.journal.dispatch(&[], &[Capacity::of("oncall", 16)], None, START).unwrap();
    assert!(unsteered.begun.is_empty(), "what is held stands in the journal");
    daemon.journal.hold(&[], &storm, START).unwrap();
    let broken = daemon.journal.dispatch(&[], &[Capacity::of("oncall", 16)], None, START).unwrap();
    assert_eq!(broken.begun.len(), 3);
}

/// Each of the three ends of a storm: its cooldown, an operator, the longest hold.
#[test]
fn a_storm_ends_by_cooldown_by_release_and_by_time() {
    let keys = "max-unhealthy = 2\ncooldown = 60\nmax-hold = 600";
    for how in ["cooldown", "release", "time"] {
        let (_place, mut daemon) = site(keys);
        let storm = fence(&mut daemon, &["a1", "a2", "a3"], START);
        assert!(turn(&mut daemon, START).is_empty(), "{how}");
        let free = match how {
            "cooldown" => {
                assert!(daemon.journal.note_return(storm[0], after(10), after(10)).unwrap());
                assert!(turn(&mut daemon, after(69)).is_empty());
                after(70)
            }
            "release" => {
                decide(&mut daemon, About::ReleaseGroup("rack1".into()), after(5));
                after(5)
            }
            _ => {
                assert!(turn(&mut daemon, after(599)).is_empty());
                after(600)
            }
        };
        let next = daemon.shared.policy.steering().next();
        assert!(how == "release" || next == Some(free), "it wakes in time: {next:?}");
        assert_eq!(sorted(turn(&mut daemon, free)), sorted(storm), "{how}");
        assert!(daemon.journal.holds().unwrap().is_empty());
    }
}

/// A new daemon on the same journal holds what the former one held, from its first turn on, without a new row of history.
#[test]
fn the_next_daemon_holds_the_same() {
    let (place, mut daemon) = site("max-unhealthy = 2");
    let storm = fence(&mut daemon, &["a1", "a2", "a3"], START);
    assert!(turn(&mut daemon, START).is_empty());
    let (held, history) = (daemon.journal.holds().unwrap(), daemon.journal.newest_history().unwrap());
    let text = std::fs::read_to_string(place.0.path("alerter.toml")).unwrap();
    let text = text.split_once("on-shared-storage = true\n").unwrap().1.to_owned();
    drop(daemon);
    let mut daemon = place.start(&text);
    assert!(turn(&mut daemon, after(1)).is_empty());
    assert_eq!(daemon.journal.holds().unwrap(), held);
    assert_eq!(daemon.journal.newest_history().unwrap(), history);
    drop(daemon);
    let mut daemon = place.start(&route("oncall", ""));
    assert_eq!(sorted(turn(&mut daemon, after(2))), sorted(storm), "without the limit nothing holds");
}

/// S0-38: pause and maintenance hold from the next turn on, and not a moment longer than they last.
#[test]
fn what_operators_decide_holds_until_it_ends() {
    let (_place, mut daemon) = site("");
    let host = |name: &str| Scope::Host(HostName::parse(name).unwrap());
    let until = after(100);
    let all = decide(&mut daemon, About::Pause { scope: Scope::All, until: None }, START);
    decide(&mut daemon, About::Maintenance { scope: host("a1"), until }, START);
    let marks = fence(&mut daemon, &["a1", "a2", "b1"], START);
    assert!(turn(&mut daemon, START).is_empty());
    assert_eq!(words(&daemon, marks[0]), ["maintenance", "pause"]);
    assert_eq!(words(&daemon, marks[1]), ["pause"]);
    let held = daemon.journal.hold_of(marks[1]).unwrap().unwrap();
    assert_eq!(held.why, "everything is paused by alice: works");
    assert_eq!(held.cause, Cause { scope: Some(Scope::All), decision: Some(all) });
    end(&mut daemon, all, after(1));
    assert_eq!(sorted(turn(&mut daemon, after(1))), sorted(marks[1..].to_vec()));
    assert!(turn(&mut daemon, after(99)).is_empty());
    assert_eq!(daemon.shared.policy.steering().next(), Some(until));
    assert_eq!(turn(&mut daemon, until), marks[..1]);
}

/// An operator's release of one mark overrides every hold of that mark, and none of others.
#[test]
fn a_release_of_one_mark_frees_that_one() {
    let (_place, mut daemon) = site("max-unhealthy = 1");
    decide(&mut daemon, About::Pause { scope: Scope::All, until: None }, START);
    let marks = fence(&mut daemon, &["a1", "a2"], START);
    assert!(turn(&mut daemon, START).is_empty());
    assert!(daemon.journal.release(marks[1], "I know", "alice", after(1)).unwrap().is_some());
    assert_eq!(turn(&mut daemon, after(1)), marks[1..]);
    assert_eq!(words(&daemon, marks[0]), ["pause", "storm"]);
}

/// P5: while a storm holds, a mark can be ended, and a return is taken in.
#[test]
fn what_is_held_can_be_ended() {
    let (_place, mut daemon) = site("max-unhealthy = 1");
    let marks = fence(&mut daemon, &["a1", "a2"], START);
    assert!(turn(&mut daemon, START).is_empty());
    assert!(daemon.journal.dismiss(marks[0], "it lives", "alice", after(1)).unwrap());
    assert_eq!(turn(&mut daemon, after(1)), marks[1..], "and the one that is left is no storm");
}

#[test]
fn a_host_with_the_attribute_is_skipped_until_it_is_removed() {
    let (_place, mut daemon) = site("max-unhealthy = 1");
    let with = |word: &str| {
        let text = format!(
            r#"<cib validate-with="pacemaker-3.9"><configuration><crm_config/><nodes>
            <node id="a1" uname="a1" type="remote"><instance_attributes id="x">
            <nvpair id="y" name="host-failure-skip" value="{word}"/></instance_attributes></node>
            </nodes><resources><primitive id="a1" class="ocf" provider="pacemaker" type="remote"/>
            <primitive id="a2" class="ocf" provider="pacemaker" type="remote"/></resources><constraints/></configuration><status/></cib>"#
        );
        Some(Arc::new(Cib::parse(&text).unwrap()))
    };
    daemon.shared.base.seen().cib = with("true");
    let marks = fence(&mut daemon, &["a1", "a2"], START);
    steer::steer(&mut daemon.journal, daemon.shared.policy(), START).unwrap();
    assert_eq!(turn(&mut daemon, START), marks[1..], "the skipped one does not count either");
    assert_eq!(words(&daemon, marks[0]), ["skip"]);
    daemon.shared.base.seen().cib = with("no idea");
    steer::steer(&mut daemon.journal, daemon.shared.policy(), after(1)).unwrap();
    assert_eq!(words(&daemon, marks[0]), ["storm"], "two of them are down");
}

/// S0-6: nothing is sent before the probes agree; a host that answers is held and says so.
#[test]
fn a_mark_waits_for_its_probes() {
    let (_place, mut daemon) =
        site("[groups.rack1.confirm.exec.bmc]\ncommand = [\"/bin/false\", \"{nodename}\"]");
    let marks = fence(&mut daemon, &["a1", "a2", "b1"], START);
    assert_eq!(turn(&mut daemon, START), marks[2..]);
    let asked: Vec<MarkId> =
        daemon.shared.policy.steering().to_probe().into_iter().map(|(mark, ..)| mark).collect();
    assert_eq!(sorted(asked), sorted(marks[..2].to_vec()));
    let up = Conclusion::Healthy("exec bmc says so".into());
    *daemon.shared.policy.conclusions() = HashMap::from([(marks[0], Conclusion::Confirmed), (marks[1], up)]);
    assert_eq!(turn(&mut daemon, after(1)), marks[..1]);
    let held = daemon.journal.hold_of(marks[1]).unwrap().unwrap();
    assert_eq!((held.words, held.why.as_str()), (vec!["confirm".to_owned()], "a2 answers: exec bmc says so"));
    assert_eq!(daemon.shared.policy.steering().to_probe().len(), 1, "it is asked again");
}

/// As many at once as may be: the next begins when one has ended, and one that its route does not take is in nobody's way.
#[test]
fn as_many_are_sent_at_once_as_may_be() {
    let (_place, mut daemon) = site("max-in-flight = 2");
    let marks = fence(&mut daemon, &["a1", "a2", "a3", "a4"], START);
    let first = turn(&mut daemon, START);
    assert_eq!(first.len(), 2);
    assert!(turn(&mut daemon, after(1)).is_empty());
    let refused = Came::Again {
        state: State::Parked,
        ambiguous: false,
        kind: "rejected".into(),
        detail: "422".into(),
        next_due: after(900),
    };
    let refused = Ended { mark: first[0], route: "oncall".into(), verdict: refused, at: after(2) };
    assert_eq!(turn_with(&mut daemon, &[refused], after(2)).len(), 1, "the refused one waits");
    assert!(turn(&mut daemon, after(2)).is_empty());
    let notified = took(first[1], after(3));
    assert_eq!(turn_with(&mut daemon, &[notified], after(3)).len(), 1);
    assert!(marks.iter().all(|mark| words(&daemon, *mark).is_empty()), "all but the refused one are sent");
}

/// `deliver-after` and `healthy-delay`: both end by time, and the engine wakes for them.
#[test]
fn delays_end_by_themselves() {
    let (_place, mut daemon) = site("deliver-after = 30\nhealthy-delay = 60");
    let marks = fence(&mut daemon, &["a1"], START);
    assert!(turn(&mut daemon, START).is_empty());
    assert_eq!(words(&daemon, marks[0]), ["delay"]);
    assert!(daemon.journal.note_return(marks[0], after(20), after(20)).unwrap());
    assert!(turn(&mut daemon, after(30)).is_empty());
    assert_eq!(words(&daemon, marks[0]), ["returning"]);
    assert_eq!(daemon.shared.policy.steering().next(), Some(after(80)));
    assert_eq!(turn(&mut daemon, after(80)), marks);
}

fn again(mark: MarkId, kind: &str, at: Timestamp, seconds: u64) -> Ended {
    let verdict = Came::Again {
        state: State::Pending,
        ambiguous: false,
        kind: kind.into(),
        detail: kind.into(),
        next_due: at + Duration::from_secs(seconds),
    };
    Ended { mark, route: "oncall".into(), verdict, at }
}

/// A receiver that accepts one host's mark and never confirms it. Its place is kept for `ack-timeout` and no longer: each other
/// mark has its turn, also one that the endpoint answered badly before, however often the first is sent again meanwhile.
#[test]
fn one_that_is_never_confirmed_keeps_nobody_waiting() {
    let (_place, mut daemon) = site("max-in-flight = 1");
    let never = fence(&mut daemon, &["a1"], START)[0];
    assert_eq!(turn(&mut daemon, START), [never]);
    let mut ended = vec![again(never, "accepted", START, 600)];
    let others = fence(&mut daemon, &["a2", "a3"], after(1));
    let (mut asked, mut notified) = (0, Vec::new());
    for at in (60..=7200).step_by(60).map(after) {
        let begun = turn_with(&mut daemon, &std::mem::take(&mut ended), at);
        for mark in begun {
            let is_new = mark == others[0] && std::mem::replace(&mut asked, 1) == 0;
            ended.push(match mark {
                mark if mark == never => again(mark, "accepted", at, 600),
                mark if is_new => again(mark, "unavailable", at, 30),
                mark => took(mark, at),
            });
            notified.extend((!is_new && mark != never).then_some(mark));
        }
    }
    assert_eq!(sorted(notified), sorted(others));
    let delivery = daemon.journal.deliveries_of(never).unwrap().sound.remove(0);
    assert_eq!((delivery.state, delivery.last.unwrap().kind.as_str()), (State::Parked, "not-confirmed"));
}

/// S0-3: the group has another name at the next start, or in another controller's file. Which hosts were meant nobody can say: in
/// doubt all of them, until an operator ends it under its own name. The broken variant drops what it has no group for.
#[test]
fn an_order_about_an_unknown_group_holds_every_host() {
    let until = after(3600);
    let pause = |group: &str| About::Pause { scope: Scope::Group(group.into()), until: None };
    let maintenance = About::Maintenance { scope: Scope::Group("row1".into()), until };
    for (about, word, end) in [
        (pause("row1"), "pause", "resume --group row1"),
        (maintenance, "maintenance", "maintenance end --group row1"),
        // A search for its group in the sentence takes it for `row1`.
        (pause("row1 is paused by bob"), "pause", "resume --group row1 is paused by bob"),
    ] {
        let (_place, mut daemon) = site("");
        let scope = about.scope();
        let marks = fence(&mut daemon, &["a1", "b1", "c1"], START);
        let id = decide(&mut daemon, about, START);
        assert!(turn(&mut daemon, after(1)).is_empty());
        for mark in &marks {
            let held = daemon.journal.hold_of(*mark).unwrap().unwrap();
            assert_eq!(held.words, [word]);
            assert_eq!(held.cause, Cause { scope: scope.clone(), decision: Some(id) });
            assert!(
                held.why.contains("no group of this name") && held.why.contains("alice: works"),
                "{}",
                held.why
            );
        }
        let reasons = daemon.shared.reasons(after(1));
        assert!(
            reasons.len() == 1 && reasons[0].contains(&format!("`nova-host-alerter {end}`")),
            "{reasons:?}"
        );
        super::steering::end(&mut daemon, id, after(2));
        assert_eq!(sorted(turn(&mut daemon, after(3))), sorted(marks));
        assert_eq!(daemon.shared.reasons(after(3)), Vec::<String>::new());
    }
    let (_place, mut daemon) = site("");
    let marks = fence(&mut daemon, &["a1", "b1"], START);
    decide(&mut daemon, pause("rack1"), START);
    assert_eq!(turn(&mut daemon, after(1)), marks[1..], "a known group is that group");
}
