//! Hundreds of hosts: a real `pacemaker-based` with a CIB that is too large for one answer.

use std::process::{Child, Output};
use std::time::Duration;

use tests::based::{Based, Cost, NEEDS};
use tests::installed;
use tests::trials::Group;

/// Hosts of a rack.
const RACK: usize = 24;
/// On a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);
/// How long an idle alerter is watched. It reads everything every 45 s.
const IDLE: Duration = Duration::from_secs(50);

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        a_fenced_host_of_two_thousand_is_reported,
        a_rack_of_five_hundred_hosts_dies_and_nothing_is_idle_for_it,
    ];
    Group { cannot: installed::cannot(&NEEDS), tests }
}

fn is_marked(ended: &Output) {
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    println!("{said}");
}

/// S1-2, S1-16: the broken variant reads the whole CIB, which Pacemaker cannot send: it knows no host's life, and never sends
/// anything.
fn a_fenced_host_of_two_thousand_is_reported() {
    let mut based = Based::start_still(2000).unwrap();
    based.site().start().unwrap();
    is_marked(&based.begin_off(1987).unwrap().wait_with_output().unwrap());
    let received = based.receiver().wait_for(1, LIMIT).unwrap();
    let body = String::from_utf8_lossy(&received[0].body);
    assert!(body.contains("compute1987.my.cloud.com"), "{body}");
    assert_eq!(based.known_lives().unwrap(), 1);
}

/// The broken variants: an alerter that reads the whole CIB each time (where it is answered), one that asks for everything
/// every two seconds, an agent whose answer does not come in time where many ask, and one where each call writes to the
/// register although another has written for it.
fn a_rack_of_five_hundred_hosts_dies_and_nothing_is_idle_for_it() {
    let mut based = Based::start(500).unwrap();
    let pid = based.site().start().unwrap();
    let Cost { alerter, based: daemon, starts } = based.idle_cost(pid, IDLE).unwrap();
    println!(
        "500 hosts, idle: alerter with children {alerter:.4}, pacemaker-based {daemon:.4} of a processor, {starts:.2} starts/s"
    );
    assert!(starts <= 1.0, "{starts} starts of programs in a second");
    assert!(daemon <= 0.01, "pacemaker-based needs {daemon} of a processor");
    let before = based.started_of("attrd_updater");
    let agents: Vec<Child> = (1..=RACK).map(|host| based.begin_off(host).unwrap()).collect();
    agents.into_iter().for_each(|agent| is_marked(&agent.wait_with_output().unwrap()));
    let questions = based.started_of("attrd_updater") - before;
    println!("{RACK} off at once: {questions} starts of attrd_updater, the alerter's too");
    assert!(questions <= 2 * RACK, "{questions} starts of attrd_updater");
    assert_eq!(based.receiver().wait_for(RACK, LIMIT).unwrap().len(), RACK, "each once");
    assert_eq!(based.known_lives().unwrap(), RACK);
    let said = based.site().alerter(&["setup", "--check"]).unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("PCMK_ipc_buffer"), "{said}");
}
