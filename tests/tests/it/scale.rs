//! Hundreds of hosts: a real `pacemaker-based` with a CIB that is too large for one answer.

use std::io::Write as _;
use std::process::{Child, Output};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tests::based::{Based, NEEDS};
use tests::installed;
use tests::process;
use tests::trials::Group;

/// Hosts of a rack.
const RACK: usize = 24;
/// On a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);
/// How long an idle alerter is watched: it reads everything every 45 s.
const IDLE: Duration = Duration::from_secs(33);

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        a_fenced_host_of_two_thousand_is_reported,
        a_rack_of_five_hundred_hosts_dies_and_nothing_is_idle_for_it,
    ];
    Group { cannot: installed::cannot(&NEEDS), tests }
}

fn marks(based: &mut Based) -> Vec<Value> {
    let said = based.site().said(&["list", "--all", "--json"]).unwrap();
    let all: Value = serde_json::from_str(&said).unwrap();
    all.as_array().unwrap().clone()
}

fn begin_off(based: &Based, host: &str) -> Child {
    let mut agent = based.agent().unwrap().spawn().unwrap();
    agent.stdin.take().unwrap().write_all(based.stdin_of_the_fencer(host).as_bytes()).unwrap();
    agent
}

fn is_marked(ended: &Output) {
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// How many fencings of the journal know which life of their host they ended.
fn with_a_life(based: &mut Based) -> i64 {
    let journal =
        Connection::open_with_flags(based.site().journal(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let known = "SELECT count(*) FROM fencing WHERE incarnation LIKE 'ctl%'";
    journal.query_row(known, [], |row| row.get(0)).unwrap()
}

/// S1-2, S1-16: the broken variant reads the whole CIB, which Pacemaker cannot send: it knows no host's life, and never sends
/// anything.
fn a_fenced_host_of_two_thousand_is_reported() {
    let mut based = Based::start_still(2000).unwrap();
    based.site().start().unwrap();
    let agent = begin_off(&based, "compute1987").wait_with_output().unwrap();
    is_marked(&agent);
    let received = based.receiver().wait_for(1, LIMIT).unwrap();
    assert!(String::from_utf8_lossy(&received[0].body).contains("compute1987.my.cloud.com"), "{received:?}");
    assert_eq!(with_a_life(&mut based), 1);
}

/// What an idle alerter and its children cost, and what Pacemaker's daemon pays for it: of a processor, in thousandths.
struct Cost {
    alerter: u64,
    based: u64,
    /// Starts of programs in 100 s.
    starts: u64,
}

/// By a process and its children.
fn spent(pid: u32) -> Duration {
    process::cpu(pid).unwrap().into_iter().sum()
}

/// While an attribute of a node changes each ten seconds.
fn idle(based: &mut Based, pid: u32) -> Cost {
    let own = based.pid();
    let before = (spent(pid), spent(own), based.started());
    let begun = Instant::now();
    for turn in 0.. {
        based.set_load(7, turn).unwrap();
        thread::sleep(Duration::from_secs(10).min(IDLE.saturating_sub(begun.elapsed())));
        if begun.elapsed() >= IDLE {
            break;
        }
    }
    let took = begun.elapsed().as_secs_f64();
    let share = |now: Duration, then: Duration| ((now - then).as_secs_f64() * 1000.0 / took) as u64;
    Cost {
        alerter: share(spent(pid), before.0),
        based: share(spent(own), before.1),
        starts: ((based.started() - before.2) as f64 * 100.0 / took) as u64,
    }
}

/// Until no program was started for longer than the time between two polls.
fn wait_until_idle(based: &Based) {
    let limit = Instant::now() + LIMIT;
    let (mut since, mut last) = (Instant::now(), based.started());
    while since.elapsed() < Duration::from_millis(1600) {
        assert!(Instant::now() < limit, "the alerter does not come to rest");
        thread::sleep(Duration::from_millis(50));
        let now = based.started();
        if now != last {
            (since, last) = (Instant::now(), now);
        }
    }
}

/// The broken variants: an alerter that reads the whole CIB each time (where it is answered), one that asks for everything
/// every two seconds, and an agent whose answer does not come in time where many ask.
fn a_rack_of_five_hundred_hosts_dies_and_nothing_is_idle_for_it() {
    let mut based = Based::start(500).unwrap();
    let pid = based.site().start().unwrap();
    wait_until_idle(&based);
    let cost = idle(&mut based, pid);
    let Cost { alerter, based: daemon, starts } = cost;
    println!(
        "500 hosts, idle: alerter with children {alerter} ‰, pacemaker-based {daemon} ‰, {starts} starts in 100 s"
    );
    assert!(starts <= 100, "{starts} starts of programs in 100 s");
    assert!(daemon <= 10, "pacemaker-based: {daemon} thousandths of a processor");
    let agents: Vec<Child> = (1..=RACK).map(|host| begin_off(&based, &format!("compute{host}"))).collect();
    agents.into_iter().for_each(|agent| is_marked(&agent.wait_with_output().unwrap()));
    let received = based.receiver().wait_for(RACK, LIMIT).unwrap();
    assert_eq!(received.len(), RACK);
    assert_eq!(marks(&mut based).len(), RACK);
    assert_eq!(with_a_life(&mut based), i64::try_from(RACK).unwrap());
    let said = based.site().alerter(&["setup", "--check"]).unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("PCMK_ipc_buffer"), "{said}");
}
