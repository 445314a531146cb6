//! What the policy holds is not sent: the plan, the journal's holds and the search for what is due, taken together.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use alerter::policy::steer;
use alerter::probes::Conclusion;
use journal::{Capacity, Ended, Verdict as Came};
use marks::delivery::State;
use marks::id::MarkId;
use marks::mark::Doubt;
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
    let verdict = Came::Acknowledged { reference: None, detail: "200".into() };
    Ended { mark, route: "oncall".into(), verdict, at }
}

fn words(daemon: &Daemon, mark: MarkId) -> Vec<String> {
    daemon.journal.hold_of(mark).unwrap().map(|held| held.words).unwrap_or_default()
}

fn sorted(mut marks: Vec<MarkId>) -> Vec<MarkId> {
    marks.sort();
    marks
}

/// A mark in doubt counts for no storm. The broken variant counts it when an operator ends it, and holds the others for the cooldown.
#[test]
fn the_end_of_a_mark_in_doubt_makes_no_storm() {
    let (_place, mut daemon) = site("max-unhealthy = 1\ncooldown = 600");
    let doubtful = fence(&mut daemon, &["a1"], START)[0];
    assert!(daemon.journal.doubt(doubtful, Doubt::OutcomeUnknown, START).unwrap());
    let other = fence(&mut daemon, &["a2"], after(1));
    assert_eq!(turn(&mut daemon, after(2)), other);
    assert!(daemon.journal.dismiss(doubtful, "it lives", "alice", after(3)).unwrap());
    turn(&mut daemon, after(4));
    assert_eq!(words(&daemon, other[0]), [""; 0]);
}

/// A host came back by a clock that was set back by years since. The broken variant counts it as down until then.
#[test]
fn a_return_that_lies_ahead_ends_a_storm() {
    let (_place, mut daemon) = site("max-unhealthy = 1");
    let first = fence(&mut daemon, &["a1"], START);
    assert_eq!(turn(&mut daemon, START), first);
    let years = after(10 * 365 * 86_400);
    assert!(daemon.journal.note_return(first[0], years, years).unwrap());
    let second = fence(&mut daemon, &["a2"], after(60));
    assert_eq!(turn_with(&mut daemon, &[took(first[0], after(61))], after(62)), second);
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

fn again(mark: MarkId, kind: &str, at: Timestamp, seconds: u64) -> Ended {
    let verdict = crate::site::again(State::Pending, false, (kind, kind), at + Duration::from_secs(seconds));
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
