//! The register in a real etcd: what is written once stands, whatever becomes of members, connections and rights; and nothing waits for
//! it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use marks::fencing::Fencing;
use marks::id::MarkId;
use marks::register::{Acknowledgement, Entry, Key};
use marks::time::Timestamp;
use nix::sys::signal::Signal::{SIGCONT, SIGSTOP, SIGTERM};
use register::{Access, Login};
use tests::apart::Apart;
use tests::etcd::{Members, PROGRAMS};
use tests::faults::{OVERLAY, pacemakers_tools};
use tests::installed;
use tests::programs::{Site, built};
use tests::receiver::Receiver;
use tests::trials::Group;

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        // The longest one goes beside the others.
        a_lost_etcd_holds_no_mark_of_our_own,
        the_first_word_stands,
        many_are_few_transactions,
        what_another_cluster_wrote_is_not_seen,
        a_leader_that_hangs_is_replaced,
        a_full_etcd_is_said_plainly_and_keeps_no_host_from_being_marked,
        a_certificate_that_has_expired_is_said,
        a_wrong_password_is_said_and_never_shown,
        an_answer_that_takes_longer_than_an_attempt_is_waited_for,
        an_etcd_that_hangs_keeps_no_host_from_being_marked,
        a_daemon_sees_what_another_controller_wrote,
    ];
    let cannot = installed::cannot(&PROGRAMS);
    Group { cannot, tests }
}

/// Three members are enough for two processors.
static ALONE: Mutex<()> = Mutex::new(());

fn members(flags: &[&str]) -> (MutexGuard<'static, ()>, Members) {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (alone, Members::new(flags).unwrap())
}

const CLUSTER: &str = "/nova-host-alerter/east";
const ENOUGH: Duration = Duration::from_secs(20);

fn soon() -> Instant {
    Instant::now() + ENOUGH
}

fn fencing(host: &str) -> Fencing {
    samples::fencing(host, Timestamp::now())
}

fn acknowledged(mark: MarkId, by: &str) -> Entry {
    let (route, at) = ("recovery".to_owned(), Timestamp(1_795_191_516_000));
    Entry::Acknowledged(Acknowledgement { mark, route, at, by: by.to_owned() })
}

fn stands(access: &Access) -> Vec<Entry> {
    let entries = access.read(soon()).unwrap();
    assert!(entries.apart.is_empty(), "{:?}", entries.apart);
    entries.sound.into_values().collect()
}

/// The broken variants replace what stands there, or do not check what it is.
fn the_first_word_stands() {
    let (_alone, etcd) = members(&[]);
    let access = etcd.access(CLUSTER, "client", None);
    assert!(stands(&access).is_empty());
    let first = fencing("compute1");
    let other = Fencing { seen_by: "ctl2".to_owned(), ..first.clone() };
    let [first, other] = [first, other].map(Entry::Fencing);
    for _ in 0..2 {
        access.publish(&first, soon()).unwrap();
    }
    assert_eq!(access.publish(&other, soon()).unwrap_err().kind(), "other-value");
    let Entry::Fencing(fencing) = &first else { panic!("no fencing") };
    let [one, two] = ["ctl1", "ctl2"].map(|by| acknowledged(fencing.id.into(), by));
    // Two writers at once: whichever was first.
    thread::scope(|scope| {
        for entry in [&one, &two] {
            scope.spawn(|| access.publish(entry, soon()).unwrap());
        }
    });
    let found = stands(&access);
    assert_eq!(found.len(), 2);
    assert!(found.contains(&first) && (found.contains(&one) || found.contains(&two)), "{found:?}");
}

/// As few as etcd takes: 128 operations each. Where one of many stands there already, the others are written all the same.
fn many_are_few_transactions() {
    let (_alone, etcd) = members(&[]);
    let access = etcd.access(CLUSTER, "client", None);
    let all: Vec<Entry> = (0..300).map(|number| Entry::Fencing(fencing(&format!("c{number}")))).collect();
    let before = etcd.revision().unwrap();
    let published = access.publish_all(&all, soon());
    assert_eq!((published.standing.len(), published.failed.len()), (300, 0), "{published:?}");
    assert_eq!(etcd.revision().unwrap() - before, 3);
    let more: Vec<Entry> = (300..310).map(|number| Entry::Fencing(fencing(&format!("c{number}")))).collect();
    let both: Vec<Entry> = all.iter().chain(&more).cloned().collect();
    let published = access.publish_all(&both, soon());
    assert_eq!((published.standing.len(), published.failed.len()), (310, 0), "{published:?}");
    assert_eq!(etcd.revision().unwrap() - before, 4, "nothing is written twice");
    let keys: Vec<Key> = all.iter().map(Entry::key).collect();
    access.clear(&keys, soon()).unwrap();
    assert_eq!(stands(&access).len(), 10);
    assert_eq!(etcd.revision().unwrap() - before, 7);
}

/// The broken variant takes a prefix for the beginning of a text, or all that lies below it for its own.
fn what_another_cluster_wrote_is_not_seen() {
    let (_alone, etcd) = members(&[]);
    let prefixes = ["/nova-host-alerter/a", "/nova-host-alerter/ab", "/nova-host-alerter/a/b"];
    let written: Vec<Entry> = prefixes.iter().map(|_| Entry::Fencing(fencing("compute1"))).collect();
    let access = prefixes.map(|prefix| etcd.access(prefix, "client", None));
    for (access, entry) in access.iter().zip(&written) {
        access.publish(entry, soon()).unwrap();
    }
    for (access, entry) in access.iter().zip(&written) {
        assert_eq!(stands(access), std::slice::from_ref(entry));
    }
    assert!(stands(&etcd.access("/nova-host-alerter/c", "client", None)).is_empty());
    // A stranger's entry below our prefix is reported, and hides nothing.
    etcd.administered(&["put", "/nova-host-alerter/a/x", "y"]).unwrap();
    let found = access[0].read(soon()).unwrap();
    assert_eq!((found.sound.len(), found.apart.len()), (1, 1), "{found:?}");
}

/// The broken variant waits for an answer that never comes: what was asked of the leader that hangs.
fn a_leader_that_hangs_is_replaced() {
    let (_alone, etcd) = members(&[]);
    let access = etcd.access(CLUSTER, "client", None);
    let leader = etcd.leader().unwrap();
    etcd.signal(leader, SIGSTOP).unwrap();
    let entry = Entry::Fencing(fencing("compute1"));
    access.publish(&entry, soon()).unwrap();
    assert_eq!(stands(&access), std::slice::from_ref(&entry));
    etcd.signal(leader, SIGCONT).unwrap();
    assert_eq!(stands(&access), [entry]);
}

/// A site whose programs find their configuration in its usual place, and Pacemaker's tools as of a cluster that is well.
fn site(etcd: &Members, tables: &str) -> Site {
    let mut site = Site::with(&format!("{}{tables}", etcd.table(CLUSTER))).unwrap();
    let text = fs::read_to_string(site.config()).unwrap().replace("\"none\"", "\"etcd\"");
    let places = site.directory().join("etc/nova-host-alerter");
    fs::create_dir_all(&places).unwrap();
    for file in [site.config(), places.join("alerter.toml")] {
        fs::write(&file, &text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    }
    let tools = pacemakers_tools(site.directory()).unwrap();
    let script = format!("{OVERLAY}\nmount -t overlay -o \"lowerdir=$2:/etc\" overlay /etc");
    let etc = site.directory().join("etc");
    site.set_apart(Apart::new(&script, &[&tools, &etc]).unwrap());
    site
}

/// Runs `fence_mark` as an operator's shell does.
fn fence_mark(site: &Site, words: &[&str]) -> Output {
    let mut command = site.apart().unwrap().command(&built("fence_mark").unwrap());
    command.args(words).output().unwrap()
}

fn marked(site: &Site, host: &str) -> String {
    let ran = fence_mark(site, &["--action=off", "--verbose", &format!("--nodename={host}")]);
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success(), "{said}");
    said
}

fn hosts(access: &Access) -> Vec<String> {
    let of = |entry: Entry| Some(entry.fencing()?.node.to_string());
    stands(access).into_iter().filter_map(of).collect()
}

const MIB: usize = 1 << 20;

fn a_full_etcd_is_said_plainly_and_keeps_no_host_from_being_marked() {
    let (_alone, etcd) = members(&["--quota-backend-bytes=2097152"]);
    let (access, site) = (etcd.access(CLUSTER, "client", None), site(&etcd, ""));
    marked(&site, "compute1");
    let much = "x".repeat(100_000);
    let fills = (0..4 * MIB / much.len())
        .any(|number| !etcd.etcdctl(&["put", &format!("/other/{number}"), &much]).unwrap().status.success());
    assert!(fills, "it takes whatever comes");
    let full = access.publish(&Entry::Fencing(fencing("compute9")), soon()).unwrap_err();
    assert_eq!(full.kind(), "etcd-full");
    let said = marked(&site, "compute2");
    assert!(said.contains("its database is full (NOSPACE)"), "{said}");
    assert_eq!(hosts(&access), ["compute1"], "it is read all the same");
    let monitor = fence_mark(&site, &["--action=monitor", "--verbose"]);
    assert!(String::from_utf8(monitor.stderr).unwrap().contains("NOSPACE"));
    // As the message says.
    etcd.administered(&["del", "--prefix", "/other/"]).unwrap();
    etcd.administered(&["compact", &etcd.revision().unwrap().to_string()]).unwrap();
    etcd.administered(&["defrag"]).unwrap();
    etcd.administered(&["alarm", "disarm"]).unwrap();
    assert!(fence_mark(&site, &["--action=monitor"]).status.success());
    assert_eq!(hosts(&access), ["compute1", "compute2"]);
}

fn a_certificate_that_has_expired_is_said() {
    let (_alone, etcd) = members(&[]);
    let limit = Instant::now() + Duration::from_secs(10);
    let access = etcd.access(CLUSTER, "expired", None);
    let refused = access.read(limit).unwrap_err();
    // With TLS 1.3 the tool of 3.4 does not hear why it is left.
    assert!(matches!(refused.kind(), "etcd-certificate" | "etcd-unreachable"), "{refused}");
    assert!(refused.to_string().contains("certificate"), "{refused}");
    assert!(stands(&etcd.access(CLUSTER, "client", None)).is_empty());
}

const PASSWORD: &str = "s3kr1t:with:colons";

fn login(password: &str) -> Option<Login> {
    Some(Login { user: "alerter".to_owned(), password: password.to_owned() })
}

/// From now on it asks each client for a user.
fn with_users(etcd: &Members) {
    for words in [
        &["user", "add", "root:r00t-s3kr1t"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "east"],
        &["role", "grant-permission", "east", "--prefix=true", "readwrite", "/nova-host-alerter/east/"],
        &["user", "add", &format!("alerter:{PASSWORD}")],
        &["user", "grant-role", "alerter", "east"],
        &["auth", "enable"],
    ] {
        etcd.administered(words).unwrap();
    }
}

fn a_wrong_password_is_said_and_never_shown() {
    let (_alone, etcd) = members(&[]);
    with_users(&etcd);
    let access = etcd.access(CLUSTER, "client", login(PASSWORD));
    access.publish(&Entry::Fencing(fencing("compute1")), soon()).unwrap();
    assert_eq!(hosts(&access), ["compute1"]);
    let wrong = etcd.access(CLUSTER, "client", login("t0-s3kr1t"));
    let refused = wrong.read(soon()).unwrap_err();
    assert_eq!(refused.kind(), "etcd-login");
    assert!(!format!("{refused} {refused:?} {wrong:?}").contains("s3kr1t"));
    // Its rights end at its prefix.
    let elsewhere = etcd.access("/nova-host-alerter/west", "client", login(PASSWORD));
    assert_eq!(elsewhere.read(soon()).unwrap_err().kind(), "etcd-forbidden");
}

/// etcdctl has a wrong password checked by each member, which takes seconds on a busy machine. The broken variant gives each
/// attempt the same time.
fn an_answer_that_takes_longer_than_an_attempt_is_waited_for() {
    let (_alone, etcd) = members(&[]);
    let slow = etcd.path("slow-etcdctl");
    let mut access = etcd.access(CLUSTER, "client", None);
    fs::write(&slow, format!("#!/bin/sh\nsleep 4\nexec {} \"$@\"\n", access.etcdctl.display())).unwrap();
    fs::set_permissions(&slow, Permissions::from_mode(0o700)).unwrap();
    access.etcdctl = slow;
    assert!(stands(&access).is_empty());
}

/// Fencing waits for it no longer than for any register, and what it lacks is written once it is back.
fn an_etcd_that_hangs_keeps_no_host_from_being_marked() {
    let (_alone, etcd) = members(&[]);
    let (access, site) = (etcd.access(CLUSTER, "client", None), site(&etcd, ""));
    etcd.signal_all(SIGSTOP).unwrap();
    let said = marked(&site, "compute1");
    assert!(said.contains("register etcd lacks fencings of this controller: etcd: "), "{said}");
    etcd.signal_all(SIGCONT).unwrap();
    assert!(hosts(&access).is_empty());
    assert!(fence_mark(&site, &["--action=monitor"]).status.success());
    assert_eq!(hosts(&access), ["compute1"]);
}

/// Waits for something that comes.
fn until<T>(what: &str, find: impl FnMut() -> Option<T>) -> T {
    until_within(ENOUGH, what, find)
}

fn until_within<T>(limit: Duration, what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn a_daemon_sees_what_another_controller_wrote() {
    let (_alone, etcd) = members(&[]);
    let access = etcd.access(CLUSTER, "client", None);
    let receiver = Receiver::on_loopback().unwrap();
    let mut site = site(&etcd, &route(&receiver));
    site.start().unwrap();
    until("the register was not read", || site.said(&["status"]).is_ok().then_some(()));
    access.publish(&Entry::Fencing(fencing("compute1")), soon()).unwrap();
    // Until then it may fail: the daemon is degraded.
    let has_both = |said: String| said.contains("etcd: 2 entries").then_some(());
    until("the daemon does not see the entry", || site.said(&["status"]).ok().and_then(has_both));
    site.end(SIGTERM).unwrap();
}

fn route(receiver: &Receiver) -> String {
    format!("\n[http.recovery]\nurl = \"http://{}/v1/host-failures\"\n", receiver.address())
}

/// As Pacemaker's fencer runs it.
fn fenced(site: &Site, host: &str) {
    let mut command = site.apart().unwrap().command(&built("fence_mark").unwrap());
    command.env("PCMK_service", "pacemaker-fenced").args(["--action=off", &format!("--nodename={host}")]);
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// What this controller's fencer recorded while etcd is lost goes out after the wait for the register; what it did not, stays.
fn a_lost_etcd_holds_no_mark_of_our_own() {
    let etcd = Members::new(&[]).unwrap();
    let receiver = Receiver::on_loopback().unwrap();
    let mut site = site(&etcd, &route(&receiver));
    site.start().unwrap();
    until("the register was not read", || site.said(&["status"]).is_ok().then_some(()));
    etcd.signal_all(SIGSTOP).unwrap();
    fenced(&site, "compute1");
    let received = receiver.wait_for(1, Duration::from_secs(100)).unwrap();
    assert!(String::from_utf8_lossy(&received[0].body).contains("compute1"));
    // Back again, it gets all of it, and nothing is reported twice.
    etcd.signal_all(SIGCONT).unwrap();
    let access = etcd.access(CLUSTER, "client", None);
    let acknowledged = |entry: &Entry| matches!(entry, Entry::Acknowledged(_));
    until("the acknowledgement does not stand", || stands(&access).iter().any(acknowledged).then_some(()));
    assert_eq!(receiver.received().len(), 1);
}
