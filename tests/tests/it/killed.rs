//! The alerter killed at every write of its whole work: nothing is lost, nothing is sent under another id.

use std::process::{Child, Command, Stdio};

use tests::installed;
use tests::programs::{Site, built};
use tests::receiver::Receiver;
use tests::trials::Group;

use crate::path::{json, until};

/// More writes than one mark's way from fencing to acknowledgement takes.
const MOST_WRITES: usize = 400;

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![a_mark_survives_a_kill_at_every_write];
    Group { cannot: installed::cannot(&["strace"]), tests }
}

/// S1-16, S0-21: from the start, over mark and attempt, to the acknowledgement on disk.
fn a_mark_survives_a_kill_at_every_write() {
    let (mut killed, mut sent_twice) = (0, 0);
    for write in 1..=MOST_WRITES {
        let receiver = Receiver::on_loopback().unwrap();
        let mut site = Site::new(receiver.address()).unwrap();
        site.fence("compute1").unwrap();
        let died = dies_at(&site, write);
        if died {
            killed += 1;
            site.start().unwrap();
            until("the mark is settled", || is_settled(&site));
        }
        let bodies: Vec<Vec<u8>> = receiver.received().into_iter().map(|request| request.body).collect();
        assert!((1..=2).contains(&bodies.len()), "write {write}: sent {} times", bodies.len());
        assert!(bodies.iter().all(|body| *body == bodies[0]), "write {write}: sent with other bytes");
        sent_twice += usize::from(bodies.len() == 2);
        if !died {
            // The sweep has seen every write, among them the one between the answer and its record.
            assert!(killed > 10 && sent_twice >= 1, "{killed} kills, {sent_twice} sent twice");
            return;
        }
    }
    panic!("the alerter still wrote at write {MOST_WRITES}");
}

/// Runs an alerter that is killed at its write number `write`; gives whether it came to that before all was settled.
fn dies_at(site: &Site, write: usize) -> bool {
    let inject = format!("inject=pwrite64,fsync,fdatasync,ftruncate:signal=KILL:when={write}");
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=pwrite64,fsync,fdatasync,ftruncate",
        "-e",
        &inject,
    ]);
    command.arg(built("nova-host-alerter").unwrap()).arg("run").arg("--config").arg(site.config());
    let mut daemon =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut died = false;
    until("it is killed or done", || {
        died = daemon.try_wait().unwrap().is_some();
        died || is_settled(site)
    });
    end(daemon, site);
    died
}

/// strace passes its own end on to nobody: the alerter is ended by its own id.
fn end(mut daemon: Child, site: &Site) {
    if daemon.try_wait().unwrap().is_none() {
        let status = json(site, &["status"]);
        if let Some(pid) = status["daemon"]["pid"].as_i64() {
            let pid = nix::unistd::Pid::from_raw(pid.try_into().unwrap());
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        }
    }
    daemon.wait().unwrap();
}

fn is_settled(site: &Site) -> bool {
    let marks = json(site, &["list", "--all"]);
    marks[0]["state"] == "acknowledged"
}
