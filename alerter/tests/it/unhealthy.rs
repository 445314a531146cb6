//! What the agent for compute hosts says of them, as the alerter shows it: problems by their causes, lines of the history, a metric, and
//! the cause of a fencing.

use alerter::problem::{Kind, Problem};
use marks::fencing::Fencing;
use serde_json::Value;

use crate::site::{Alerter, Notified, Site, started};

const HOSTS: [&str; 8] =
    ["compute1", "compute2", "compute3", "compute4", "compute5", "compute6", "compute7", "compute8"];

fn problems(alerter: &Alerter, site: &Site) -> Vec<Problem> {
    alerter.problems(site, Kind::HostHealth)
}

fn lines(alerter: &Alerter) -> Vec<Value> {
    let is_health = |row: &Value| row["event"] == "healthy" || row["event"] == "unhealthy";
    alerter.history().into_iter().filter(is_health).collect()
}

fn gauge(alerter: &Alerter) -> String {
    let text = alerter.metrics();
    let name = "nova_host_alerter_hosts_unhealthy ";
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned()
}

/// S1-1: a switch is down, and of another host the disk hangs. The broken variants: a problem for each host, or for each second that it
/// says; a line at each poll, or at each start of the daemon; an end where the host is only gone.
#[test]
fn a_cause_is_one_problem_and_each_host_has_two_lines() {
    let (mut site, mut alerter) = started(Site::new(&HOSTS), "ctl1");
    assert_eq!((problems(&alerter, &site), gauge(&alerter).as_str()), (vec![], "0"));
    let switch = [
        "store has had no carrier for 16 s; 5 of 8 hosts fail the same check: a common cause; none is fenced",
        "/a has not answered for 31 s; 6 of 8 hosts fail a check: a common cause; none is fenced",
        "store has had no carrier for 17 s; 6 of 8 hosts fail the same check: a common cause; none is fenced",
    ];
    for (at, host) in HOSTS[..6].iter().enumerate() {
        site.hosts.get_mut(host).unwrap().complaint = Some(switch[at / 2]);
    }
    site.hosts.get_mut("compute7").unwrap().complaint = Some("/a has not answered for 40 s");
    site.hosts.get_mut("compute8").unwrap().complaint = Some("/a has not answered for 41 s");
    alerter.run(&mut site, 60);
    let found: Vec<String> = problems(&alerter, &site).into_iter().map(|one| one.what).collect();
    assert_eq!(
        found,
        [
            "compute7, compute8: /a has not answered for 40 s".to_owned(),
            format!("compute1, compute2, compute3 and 3 more: {}", switch[0]),
        ]
    );
    assert_eq!(problems(&alerter, &site)[1].hosts, HOSTS[..6]);
    assert_eq!(gauge(&alerter), "8");
    let begun = lines(&alerter);
    assert!(begun.len() == 8 && begun.iter().all(|row| row["event"] == "unhealthy"), "{begun:?}");
    let said = (&begun[6]["host"], &begun[6]["detail"]);
    assert_eq!(said, (&"compute7".into(), &"/a has not answered for 40 s".into()));
    drop(alerter);
    let mut alerter = Alerter::start(&site, "ctl1");
    alerter.run(&mut site, 10);
    assert_eq!(lines(&alerter), begun, "another daemon");
    site.hosts.get_mut("compute1").unwrap().member = Some(false);
    site.hosts.get_mut("compute2").unwrap().complaint = None;
    alerter.run(&mut site, 10);
    let [ended] = &lines(&alerter)[8..] else { panic!("{:?}", lines(&alerter)) };
    assert_eq!((&ended["event"], &ended["host"]), (&"healthy".into(), &"compute2".into()));
    assert_eq!(gauge(&alerter), "6");
}

/// `fence_mark` has read it before Pacemaker forgot it; on whichever controller the mark's history has it, and the event where a route asks
/// for more than the standard.
#[test]
fn the_cause_of_a_fencing_is_told_with_its_mark() {
    let site = Site::new(&HOSTS);
    site.configure("body = \"extended\"\n");
    let (mut site, mut alerter) = started(site, "ctl1");
    let cause = Some("/a has not answered for 40 s".to_owned());
    site.die("compute1");
    site.advance(1.0);
    site.mark("ctl2", &Fencing { cause, ..site.fencing("ctl2", "compute1") });
    site.mark("ctl2", &Fencing { cause: None, ..site.fencing("ctl2", "compute1") });
    site.seen_fenced("compute1");
    alerter.run(&mut site, 90);
    let mark = alerter.marks("compute1").remove(0).id;
    let rows = alerter.history_of(mark);
    let cause = "; its health check had failed: /a has not answered for 40 s";
    let said = rows.iter().filter(|row| row["detail"].as_str().unwrap().ends_with(cause));
    assert_eq!(said.map(|row| &row["event"]).collect::<Vec<_>>(), ["marked"], "{rows:?}");
    let says = |one: &Notified| {
        String::from_utf8_lossy(&one.body).contains(r#","cause":"/a has not answered for 40 s"}"#)
    };
    let told = site.notified.iter().map(|one| (one.route.as_str(), says(one)));
    assert_eq!(told.collect::<Vec<_>>(), [("backup", true), ("nova", false)]);
}
