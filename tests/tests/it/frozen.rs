//! A disk that hangs: the journal is on a frozen file system, where each write waits in the kernel and no signal ends that.

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::faults::{self, Frozen, Stand};
use tests::installed;
use tests::lab::wait;
use tests::programs::Site;
use tests::trials::Group;

/// Longer than the alerter waits before its monitor fails.
const LIMIT: Duration = Duration::from_secs(90);
/// Exit codes of the OCF agent's monitor.
const NOT_HERE: i32 = 5;
const DEGRADED: i32 = 190;
/// Of a monitoring system, and of a fencer that fences a rack.
const CALLS: usize = 20;

/// What Pacemaker says of a host that was fenced.
const ALERT: [(&str, &str); 5] = [
    ("CRM_alert_kind", "fencing"),
    ("CRM_alert_node", "compute1"),
    ("CRM_alert_task", "st_notify_fence"),
    ("CRM_alert_rc", "0"),
    (
        "CRM_alert_desc",
        "Operation off of compute1 by ctl3 for pacemaker-controld.64@ctl3: OK (ref=e19eab25-6556-4644-89e9-f9bf9b151b87)",
    ),
];

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        a_mark_is_made_and_the_agent_ends,
        an_alert_ends_and_says_so,
        an_alert_ends_and_says_so,
        commands_end_and_say_what_they_know,
        the_alerter_moves_where_it_can,
        the_alerter_stays_where_no_other_controller_is,
    ];
    let lacks_root = installed::lacks_root();
    Group { cannot: lacks_root.or_else(|| installed::cannot(&["fsfreeze", "mkfs.ext4", "nsenter"])), tests }
}

fn freeze(site: &Site) -> Frozen {
    faults::freeze(site, site.journal().parent().unwrap()).unwrap()
}

/// Runs the agent as the fencer does, but for the topology.
fn agent(site: &Site, host: &str, action: &str) -> Output {
    let mut command = site.program("fence_mark").unwrap();
    let mut agent =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let text = site.stdin_of_the_fencer(host).replace("register=none", "register=attrd");
    agent.stdin.take().unwrap().write_all(text.replace("action=off", action).as_bytes()).unwrap();
    agent.wait_with_output().unwrap()
}

/// The processes of this site that hang in the kernel, each with its parent.
fn hanging(site: &Site) -> Vec<(u32, u32)> {
    let home = site.directory().display().to_string();
    let of = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        // An alert has its words in the environment.
        let read =
            |file| Some(String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).ok()?).into_owned());
        let words = read("cmdline")? + &read("environ")?;
        (fields[0] == "D" && words.contains(&home)).then_some((pid, fields[1].parse().ok()?))
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| of(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// At most one is left behind, and nobody waits for it.
fn is_left_alone(site: &Site) {
    let all = hanging(site);
    assert!(all.len() <= 1 && all.iter().all(|(_, parent)| *parent == 1), "{all:?}");
}

/// The broken variant writes on a thread: the agent ends when the disk answers again, and the fencer has killed it long before.
fn a_mark_is_made_and_the_agent_ends() {
    let site = faults::a_disk_of_its_own().unwrap().site;
    assert!(agent(&site, "compute1", "action=off").status.success());
    let frozen = freeze(&site);
    for call in 0..CALLS {
        let ended = agent(&site, &format!("compute{call}"), "action=off");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.contains("register attrd alone"), "{ended:?}");
        assert!(said.contains("check its disk"), "{said}");
        is_left_alone(&site);
    }
    let checked = agent(&site, "compute1", "action=monitor");
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.code() == Some(1) && said.contains("check its disk"), "{checked:?}");
    drop(frozen);
    wait::until("nothing to be left", LIMIT, || Ok(hanging(&site).is_empty().then_some(()))).unwrap();
    assert!(agent(&site, "compute1", "action=off").stderr.is_empty());
}

/// The broken variant writes in the process that Pacemaker waits for.
fn an_alert_ends_and_says_so() {
    let site = faults::a_disk_of_its_own().unwrap().site;
    let evidence = site.journal().with_file_name("alerts");
    let outside = site.apart().unwrap().outside(&evidence);
    DirBuilder::new().mode(0o700).create(&outside).unwrap();
    let alert = || {
        let mut command = site.program("alert_mark").unwrap();
        command.envs(ALERT).env("CRM_alert_recipient", &evidence).output().unwrap()
    };
    assert!(alert().status.success());
    let frozen = freeze(&site);
    for _ in 0..CALLS {
        let ended = alert();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(1) && said.contains("does not answer"), "{ended:?}");
        is_left_alone(&site);
    }
    drop(frozen);
    wait::until("nothing to be left", LIMIT, || Ok(hanging(&site).is_empty().then_some(()))).unwrap();
    assert!(alert().status.success());
}

/// A command of whatever kind ends, with and without a daemon. The broken variant leaves one of five behind that begin at one moment.
fn commands_end_and_say_what_they_know() {
    let Stand { mut site, mut receiver } = faults::a_disk_of_its_own().unwrap();
    receiver.down();
    site.start().unwrap();
    assert!(agent(&site, "compute1", "action=off").status.success());
    for running in [true, false] {
        if !running {
            site.end(Signal::SIGTERM).unwrap();
        }
        // A write-ahead log without its index: whoever reads the journal writes that.
        let frozen = freeze(&site);
        let status = || site.alerter(&["status"]).unwrap();
        thread::scope(|all| (0..5).for_each(|_| drop(all.spawn(status))));
        is_left_alone(&site);
        for _ in 0..CALLS {
            for words in [
                &["status"][..],
                &["status", "--check"],
                &["list"],
                &["list", "--json"],
                &["show", "compute1"],
            ] {
                let ended = site.alerter(words).unwrap();
                assert!(ended.status.code().is_some(), "{ended:?}");
                is_left_alone(&site);
            }
        }
        drop(frozen);
    }
}

fn monitored(site: &Site) -> (i32, String) {
    let said = site.alerter(&["status", "--ocf"]).unwrap();
    (said.status.code().unwrap(), String::from_utf8(said.stdout).unwrap())
}

/// The broken variant is degraded for as long as the disk hangs, and Pacemaker leaves it where it is.
fn the_alerter_moves_where_it_can() {
    let mut site = faults::a_disk_of_its_own().unwrap().site;
    site.start().unwrap();
    let frozen = freeze(&site);
    assert!(agent(&site, "compute1", "action=off").status.success());
    let (_, why) = wait::until("a failed monitor", LIMIT, || {
        Ok(Some(monitored(&site)).filter(|(code, _)| *code == NOT_HERE))
    })
    .unwrap();
    assert!(why.contains("does not answer") && !why.contains("locked"), "{why}");
    drop(frozen);
    wait::until("a mark", LIMIT, || Ok(site.said(&["list"])?.contains("compute1").then_some(()))).unwrap();
    site.end(Signal::SIGTERM).unwrap();
}

fn the_alerter_stays_where_no_other_controller_is() {
    let mut site = faults::a_disk_of_its_own().unwrap().site;
    faults::no_other_controller(&site).unwrap();
    site.start().unwrap();
    let frozen = freeze(&site);
    assert!(agent(&site, "compute1", "action=off").status.success());
    let (code, why) = wait::until("the reason to stay", LIMIT, || {
        Ok(Some(monitored(&site)).filter(|(_, why)| why.contains("no other controller")))
    })
    .unwrap();
    assert_eq!(code, DEGRADED, "{why}");
    drop(frozen);
    site.end(Signal::SIGTERM).unwrap();
}
