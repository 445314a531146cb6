//! A cluster of hundreds of hosts on a real `pacemaker-based`: what an idle alerter costs, a rack that dies, and from `off` to
//! the request.

use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tests::based::Based;

use crate::figures::{Times, line, ratio};

/// How long an idle alerter is watched: twice the time in which it reads everything.
const IDLE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 90 });
/// Hosts of a rack.
const RACK: usize = 24;
/// Hosts that are fenced one after the other.
const SINGLE: usize = crate::size(10);
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run() -> anyhow::Result<()> {
    let mut based = Based::start(500)?;
    let pid = based.site().start()?;
    let cost = based.idle_cost(pid, IDLE)?;
    println!("500 hosts, idle, an attribute changes each 10 s:");
    ratio("pacemaker-based, of a processor", cost.based, "<= 0.01");
    ratio("the alerter with its children, of a processor", cost.alerter, "<= 0.01");
    ratio("starts of programs in a second", cost.starts, "<= 1, goal 0.3");
    let single = one_by_one(&based, 500, 0)?;
    let begun = Instant::now();
    let agents: anyhow::Result<Vec<Child>> = (1..=RACK).map(|host| based.begin_off(host)).collect();
    agents?.into_iter().try_for_each(ended)?;
    let all = begun.elapsed().as_secs_f64();
    based.receiver().wait_for(SINGLE + RACK, LIMIT)?;
    let known = based.known_lives()?;
    ensure!(known == SINGLE + RACK, "{known} of {} fencings know their host's life", SINGLE + RACK);
    let wanted = 2.0 * single.percentile(50) / 1000.0 + 1.0;
    ratio(&format!("{RACK} off at once, all done, to 2 single ones and 1 s"), all / wanted, "<= 1");
    drop(based);
    let mut based = Based::start_still(2000)?;
    let begun = Instant::now();
    based.site().start()?;
    ended(based.begin_off(1)?)?;
    based.receiver().wait_for(1, LIMIT)?;
    line("start of the alerter, which first reads 2000 hosts -> POST", begun.elapsed().as_millis());
    one_by_one(&based, 2000, 1).map(drop)
}

/// How long a single `off` takes, where an alerter runs that has sent so many.
fn one_by_one(based: &Based, hosts: usize, sent: usize) -> anyhow::Result<Times> {
    let (mut off, mut post) = (Times::default(), Times::default());
    for number in 0..SINGLE {
        let begun = Instant::now();
        ended(based.begin_off(hosts - number)?)?;
        off.add(begun.elapsed());
        based.receiver().wait_for(sent + number + 1, LIMIT)?;
        post.add(begun.elapsed());
    }
    line(&format!("one off of {hosts} hosts"), &off);
    line("from its begin to the request, on the controller that fences", &post);
    ratio("its p99 to 2 s", post.percentile(99) / 2000.0, "<= 1");
    Ok(off)
}

fn ended(agent: Child) -> anyhow::Result<()> {
    let ended = agent.wait_with_output()?;
    ensure!(ended.status.success(), "fence_mark: {}", String::from_utf8_lossy(&ended.stderr));
    Ok(())
}
