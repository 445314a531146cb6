//! Two operations for one host at once: an operator's beside the cluster's own.

use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::lab::cib::HOME;
use tests::lab::{Event, wait};

use crate::Scenario;
use crate::cloud::{Before, Cloud, FENCED_WITHIN, HOST};

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "two_operations_for_one_host_leave_the_fencer_alive",
    two_operations_for_one_host_leave_the_fencer_alive,
)];

/// As `setup` leaves the mark device, its second call waits for the first one, and the fencer goes on. The broken variant runs both
/// (`pcmk_action_limit=-1`, which `setup` once wrote): the fencer frees the second command with the result of the first, and dies when
/// the agent of the second ends. docs/pacemaker-releases.md, section 5.
fn two_operations_for_one_host_leave_the_fencer_alive(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    let fencer = fencer(cloud)?;
    twice(cloud, &before, 1)?;
    let mark = cloud.wait_for_mark(&before)?;
    cloud.wait_acknowledged(&mark.id)?;
    cloud.host_returns()?;
    ensure!(self::fencer(cloud)? == fencer, "the fencer died");
    let fencings = cloud.fencings_since(&before)?;
    ensure!(fencings.len() >= 2, "the fencer has forgotten: {fencings:?}");

    let limit = ["crm_resource", "--resource", "mark"];
    cloud.run(&[&limit[..], &["--set-parameter", "pcmk_action_limit", "--parameter-value=-1"]].concat())?;
    let before = cloud.begin_as_it_is()?;
    let died = twice(cloud, &before, 2).and_then(|()| {
        wait::until("the fencer to die", Duration::from_secs(30), || {
            Ok((self::fencer(cloud)? != fencer).then_some(()))
        })
    });
    cloud.run(&[&limit[..], &["--delete-parameter", "pcmk_action_limit"]].concat())?;
    died.context("with the limit of -1 this scenario shows nothing")?;
    cloud.a_real_outage_is_reported()
}

fn fencer(cloud: &Cloud) -> anyhow::Result<String> {
    Ok(cloud.lab.exec(HOME, &["pidof", "pacemaker-fenced"])?.out.trim().to_owned())
}

/// The host dies, and while its mark is being made somebody has it fenced too: so many marks then run at once.
fn twice(cloud: &Cloud, before: &Before, marks: usize) -> anyhow::Result<()> {
    let bmc = cloud.lab.bmc();
    bmc.hold_marks(true);
    let done = thread::scope(|scope| {
        cloud.lab.power_off(HOST)?;
        running(cloud, before, (1, 1))?;
        let lab = &cloud.lab;
        let by_hand = scope
            .spawn(move || lab.exec(HOME, &["stonith_admin", "--fence", HOST, "--timeout", "30"]).is_ok());
        let both = running(cloud, before, (2, marks));
        bmc.hold_marks(false);
        // Where the fencer dies it owes this one an answer.
        let _answer = by_hand.join().expect("it does not panic");
        both
    });
    bmc.hold_marks(false);
    done
}

/// Waits until the host's power was taken so often, and so many marks are under way.
fn running(cloud: &Cloud, before: &Before, (offs, marks): (usize, usize)) -> anyhow::Result<()> {
    wait::until("both operations to have reached the mark", Duration::from_secs(FENCED_WITHIN), || {
        let is_off = |event: &Event| matches!(event, Event::Power { action, .. } if action == "off");
        let taken = cloud.events_since(before).iter().filter(|event| is_off(event)).count();
        let under_way = cloud.off_calls_since(before).iter().filter(|(_, rc)| rc.is_none()).count();
        Ok((taken >= offs && under_way >= marks).then_some(()))
    })
}
