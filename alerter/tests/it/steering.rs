//! What the policy holds is not sent: storms, attributes, probes and places, through restarts and clocks that are set.

use std::collections::BTreeSet;
use std::time::Duration;

use marks::delivery::State;
use marks::fencing::{Fencing, Origin};
use marks::id::MarkId;

use crate::endpoint::{Endpoint, OK};
use crate::site::{Alerter, Program, Site, again, started, taken};

/// Five hosts in rack1 under these rules, two in rack2 without any.
fn rack(keys: &str) -> (Site, Alerter) {
    let site = Site::new(&["a1", "a2", "a3", "a4", "a5", "b1", "b2"]);
    site.configure(&racks(keys));
    started(site, "ctl1")
}

fn racks(keys: &str) -> String {
    format!("[groups.rack1]\nhosts = [\"a*\"]\n{keys}\n[groups.rack2]\nhosts = [\"b*\"]\n")
}

/// These hosts fail, and the alerter works for some seconds. Gives the marks.
fn fail<const N: usize>(site: &mut Site, alerter: &mut Alerter, hosts: [&'static str; N]) -> [MarkId; N] {
    let marks = hosts.map(|host| site.outage(host, "ctl1").into());
    alerter.run(site, 4);
    marks
}

/// Of which hosts `nova` was notified.
fn sent(site: &Site) -> BTreeSet<&str> {
    site.notified.iter().filter(|one| one.route == "nova").map(|one| one.node.as_str()).collect()
}

/// A mark in doubt counts for no storm. The broken variant counts it when an operator ends it, and holds the others for the cooldown.
#[test]
fn the_end_of_a_mark_in_doubt_makes_no_storm() {
    let (mut site, mut alerter) = rack("max-unhealthy = 1\ncooldown = 600");
    let doubtful = Fencing { origin: Origin::Shell, ..site.fencing("ctl1", "a1") };
    site.mark("ctl1", &doubtful);
    alerter.run(&mut site, 4);
    assert_eq!(alerter.standings("a1"), ["unconfirmed"]);
    site.down.insert("backup");
    let [other] = fail(&mut site, &mut alerter, ["a2"]);
    assert_eq!(sent(&site), ["a2"].into());
    alerter.unmark(&site, doubtful.id.into());
    alerter.run(&mut site, 4);
    assert_eq!(alerter.holds_of(other), [""; 0]);
}

/// A host came back by a clock that was set back by years since. The broken variant counts it as down until then.
#[test]
fn a_return_that_lies_ahead_ends_a_storm() {
    let (mut site, mut alerter) = rack("max-unhealthy = 1");
    let years = 10 * 365 * 86_400_000;
    fail(&mut site, &mut alerter, ["a1"]);
    alerter.set_clock(&mut site, years);
    alerter.meets_return(&mut site, "a1", "ctl1", 10);
    site.skews.clear();
    alerter = Alerter::at_work(&mut site, "ctl1", 2);
    fail(&mut site, &mut alerter, ["a2"]);
    assert_eq!(sent(&site), ["a1", "a2"].into());
}

/// A new daemon holds what the former one held, from its first turn on, without a new row of history.
#[test]
fn the_next_daemon_holds_the_same() {
    let (mut site, mut alerter) = rack("max-unhealthy = 2");
    let storm = fail(&mut site, &mut alerter, ["a1", "a2", "a3"]);
    let held = |alerter: &Alerter| (storm.map(|mark| alerter.holds_of(mark)), alerter.history());
    let before = held(&alerter);
    assert!(before.0.iter().all(|words| *words == ["storm"]), "{before:?}");
    alerter = Alerter::at_work(&mut site, "ctl1", 2);
    assert_eq!(held(&alerter), before);
    site.replace("max-unhealthy = 2", "");
    Alerter::start(&site, "ctl1").notifies_all(&mut site, 2);
}

/// P5: while a storm holds, a mark can be ended.
#[test]
fn what_is_held_can_be_ended() {
    let (mut site, mut alerter) = rack("max-unhealthy = 1");
    let marks = fail(&mut site, &mut alerter, ["a1", "a2"]);
    assert_eq!(sent(&site), [].into());
    alerter.unmark(&site, marks[0]);
    alerter.run(&mut site, 2);
    assert_eq!(sent(&site), ["a2"].into(), "and the one that is left is no storm");
}

#[test]
fn a_host_with_the_attribute_is_skipped_until_it_is_removed() {
    let (mut site, mut alerter) = rack("max-unhealthy = 1");
    site.hosts.get_mut("a1").unwrap().is_skipped = true;
    let marks = fail(&mut site, &mut alerter, ["a1", "a2"]);
    assert_eq!(sent(&site), ["a2"].into(), "the skipped one does not count either");
    assert_eq!(alerter.holds_of(marks[0]), ["skip"]);
    site.hosts.get_mut("a1").unwrap().is_skipped = false;
    alerter.run(&mut site, 4);
    assert_eq!(alerter.holds_of(marks[0]), ["storm"], "two of them are down");
}

/// S0-6: nothing is sent before the probes agree; a host that answers is held and says so. `b1` has no probes.
#[tokio::test]
async fn a_mark_waits_for_its_probes() {
    let takes = Endpoint::saying(OK).await;
    let route = format!("[http.oncall]\nurl = \"{}\"\nallow-http = true\n", takes.url());
    let probe =
        "[groups.rack1.confirm.exec.bmc]\ncommand = [\"/usr/bin/test\", \"{nodename}\", \"=\", \"a2\"]";
    let program = Program::with(&(route + &racks(probe))).await;
    let [down, up, rest] = ["a1", "a2", "b1"].map(|host| program.fence(host));
    program.until(rest, "oncall acknowledged").await;
    program.until(down, "oncall acknowledged").await;
    program.wait(async || program.mark(up).await["held"]["why"].to_string().contains("answers")).await;
    program.until(up, "oncall pending").await;
    let held = program.mark(up).await;
    assert_eq!(held["holds"][0], "confirm");
    assert!(held["held"]["why"].as_str().unwrap().starts_with("a2 answers: "), "{held}");
}

/// A receiver that accepts one host's mark and never confirms it. Its place is kept for `ack-timeout` and no longer: each other
/// mark has its turn, also one that the endpoint answered badly before, however often the first is sent again meanwhile.
#[test]
fn one_that_is_never_confirmed_keeps_nobody_waiting() {
    let (mut site, mut alerter) = rack("max-in-flight = 1");
    site.outage("a1", "ctl1");
    alerter.take_in(&site);
    alerter.keep_up(&mut site);
    let never = alerter.marks("a1")[0].id;
    let mut under_way = vec![alerter.begin(&site, "nova").unwrap()];
    ["a2", "a3"].iter().for_each(|host| _ = site.outage(host, "ctl1"));
    let (mut asked, mut notified) = (false, BTreeSet::new());
    for _ in 0..120 {
        for due in under_way.drain(..) {
            let later = |kind, seconds| {
                again(State::Pending, false, (kind, kind), site.clock("ctl1") + Duration::from_secs(seconds))
            };
            let verdict = match due.mark.node.as_str() {
                "a1" => later("accepted", 600),
                "a2" if !std::mem::replace(&mut asked, true) => later("unavailable", 30),
                host => {
                    notified.insert(host.to_owned());
                    taken()
                }
            };
            alerter.finish(&site, &due, &verdict);
        }
        site.advance(60.0);
        alerter.take_in(&site);
        alerter.keep_up(&mut site);
        under_way.extend(std::iter::from_fn(|| alerter.begin(&site, "nova")));
    }
    assert_eq!(notified, ["a2".to_owned(), "a3".to_owned()].into());
    assert!(alerter.deliveries(never).contains(&("nova".to_owned(), State::Parked)));
    assert!(alerter.history_of(never).iter().any(|row| row["event"] == "not-confirmed"));
}
