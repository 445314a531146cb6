//! The whole path: a host is lost, is fenced, and is reported until the recovery controller acknowledges.

use anyhow::ensure;
use tests::lab::MarkMode;
use tests::receiver::Answer;

use crate::Scenario;
use crate::cloud::{Cloud, HOST, holds_for};
use crate::event;

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "a_killed_host_is_reported_once_though_the_endpoint_is_dead",
        a_killed_host_is_reported_once_though_the_endpoint_is_dead,
    ),
    ("a_refused_attempt_is_repeated_byte_for_byte", a_refused_attempt_is_repeated_byte_for_byte),
    ("a_frozen_host_and_a_cut_off_host_are_reported", a_frozen_host_and_a_cut_off_host_are_reported),
];

/// A killed host, and nobody listens for ten seconds: one event, sent once, when somebody does; with the real agent and
/// nothing beside it. S1-1, S1-2, S1-3, S1-13, S1-15, S1-16, S1-30, S1-35, S1-36, S1-37, S1-38, S1-39, S1-41, S1-42, S4-52. Nobody
/// but the cluster fences: S1-9, S4-18, S4-48
fn a_killed_host_is_reported_once_though_the_endpoint_is_dead(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.lab.bmc().set_mark(MarkMode::Real)?;
    cloud.receiver.down();
    let died = event::now();
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    holds_for(10, || {
        let state = cloud.mark(&mark.id)?.state;
        ensure!(state == "open", "nobody listens, but the mark is {state}");
        Ok(())
    })?;
    cloud.wait_until_mark(&mark.id, "tried", |mark| mark.attempts >= 1)?;
    cloud.receiver.up()?;
    let mark = cloud.wait_acknowledged(&mark.id)?;
    cloud.host_returns()?;
    cloud.the_cluster_alone_has_fenced(&before)?;
    let requests = cloud.requests_since(&before);
    ensure!(requests.len() == 1, "sent {} times: {requests:?}", requests.len());
    event::check(&requests[0], &mark, died)?;
    event::another_is_noticed(&requests[0], &mark, died)?;
    let marks = cloud.marks_since(&before)?;
    ensure!(marks.len() == 1, "one outage, {} marks: {marks:?}", marks.len());
    Ok(())
}

/// A recovery controller that answers 503, and then nothing at all, gets the same bytes until it takes them. S1-16, S1-40
fn a_refused_attempt_is_repeated_byte_for_byte(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.receiver.answer_next(Answer::Status(503));
    cloud.receiver.answer_next(Answer::Raw(Vec::new()));
    let died = event::now();
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    let mark = cloud.wait_acknowledged(&mark.id)?;
    cloud.host_returns()?;
    let requests = cloud.requests_since(&before);
    ensure!(requests.len() == 3, "sent {} times: {requests:?}", requests.len());
    for request in &requests {
        event::check(request, &mark, died)?;
        ensure!(request.body == requests[0].body, "{requests:?}");
        let key = "idempotency-key";
        ensure!(request.header(key) == requests[0].header(key), "{requests:?}");
    }
    Ok(())
}

/// A host that hangs, and a host that nobody can reach, are fenced and reported like one that crashed. S1-1, S1-13
fn a_frozen_host_and_a_cut_off_host_are_reported(cloud: &mut Cloud) -> anyhow::Result<()> {
    for cut_off in [false, true] {
        let before = cloud.begin()?;
        let died = event::now();
        if cut_off {
            cloud.lab.partition(HOST)?;
        } else {
            cloud.lab.freeze(HOST)?;
        }
        let mark = cloud.wait_for_mark(&before)?;
        let mark = cloud.wait_acknowledged(&mark.id)?;
        event::check(&cloud.wait_for_requests(&before, 1)?[0], &mark, died)?;
    }
    Ok(())
}
