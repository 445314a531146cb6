//! Prepared faults, each really made: `status` and `status --check` name it, the host or the endpoint, and what to type;
//! and what they say to type repairs it.

use std::time::Duration;
use std::{fs, thread};

use nix::sys::signal::Signal;
use serde_json::Value;
use tests::faults::{self, Stand};
use tests::installed;
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

const LIMIT: Duration = Duration::from_secs(40);
/// Exit codes of Nagios plugins.
const OK: i32 = 0;
const WARNING: i32 = 1;
const CRITICAL: i32 = 2;

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        an_endpoint_is_down,
        an_endpoint_refuses_our_credentials,
        an_endpoint_has_a_certificate_that_nobody_trusts,
        an_endpoint_rejects_one_mark,
        a_storm_holds,
        a_pause_is_forgotten,
        a_maintenance_covers_the_host,
        nobody_knows_the_hosts_full_name,
        a_row_is_damaged,
        the_daemon_does_not_run,
        a_route_was_removed,
        the_configuration_is_wrong,
        a_name_has_no_address,
        an_endpoint_has_moved,
        a_reload_is_refused,
        marks_and_lines_are_found_by_what_they_are,
        an_endpoint_rejects_some_hosts,
    ])
}

/// Those that take root or mounts of their own, and why they cannot be had here, if they cannot.
pub(crate) fn apart() -> Group {
    let tests = tests::trials![
        the_journal_cannot_be_read,
        the_disk_is_full,
        nobody_vouches_for_a_mark,
        a_host_is_down_from_before,
        entries_have_no_seal,
        a_migration_is_left_half_way,
        clocks_differ,
        the_register_is_nearly_full
    ];
    Group { cannot: installed::cannot(&["unshare", "nsenter"]), tests }
}

/// A running alerter without a problem.
fn well(tables: &str) -> Site {
    let stand = Stand::well(|_| tables.to_owned()).unwrap();
    assert!(shown(&stand.site).starts_with("No fenced host waits to be reported.\n"));
    stand.site
}

fn http(receiver: &Receiver) -> String {
    format!("[http.recovery]\nurl = \"http://{}/v1/host-failures\"\n", receiver.address())
}

fn check(site: &Site, more: &[&str]) -> (i32, String) {
    let (code, line) = faults::check(site, more).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    (code, line)
}

fn shown(site: &Site) -> String {
    let ran = site.alerter(&["status"]).unwrap();
    // 1 is that the alerter does not run.
    assert!(matches!(ran.status.code(), Some(0 | 1)), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

fn json(site: &Site, words: &[&str]) -> Value {
    let output = site.alerter(&[words, &["--json"]].concat()).unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Waits until `status` has all these words, with a bar between them, and the check this code.
#[track_caller]
fn named(site: &Site, code: i32, words: &str) {
    let has_all = |text: &str| words.split('|').all(|word| text.contains(word));
    let until = wait::until("status names the fault", LIMIT, || Ok(has_all(&shown(site)).then_some(())));
    assert!(until.is_ok(), "{words}: {}", shown(site));
    let (found, line) = check(site, &[]);
    assert_eq!(found, code, "{line}");
    assert!(line.trim_end().len() < 250, "a monitoring system cuts it: {line}");
    // Without a terminal there are no codes of one.
    assert!(!line.contains('\u{1b}') && !shown(site).contains('\u{1b}'));
}

/// Types a command of the first trouble, as it stands there.
fn typed(site: &Site, verb: &str) {
    done(site, &advised(site, verb));
}

/// A command of the first trouble.
fn advised(site: &Site, verb: &str) -> Vec<String> {
    let status = json(site, &["status"]);
    let then = status["problems"][0]["then"].as_str().unwrap();
    let begin = format!("nova-host-alerter {verb}");
    let command = then.split('`').find(|part| part.starts_with(&begin));
    command.unwrap_or_else(|| panic!("no {verb}: {then}")).split(' ').skip(1).map(str::to_owned).collect()
}

fn done(site: &Site, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = site.alerter(&words).unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn until_well(site: &Site) {
    let recovered = wait::until("all is well again", LIMIT, || Ok((check(site, &[]).0 == OK).then_some(())));
    assert!(recovered.is_ok(), "{}", shown(site));
}

/// The last of a story.
fn ends_well(mut site: Site) {
    until_well(&site);
    site.end(Signal::SIGTERM).unwrap();
}

/// S3-50: `status` says it in sentences for people, and names what to type.
fn an_endpoint_is_down() {
    let Stand { site, mut receiver } = faults::an_endpoint_is_down().unwrap();
    let retry = format!("{}|nova-host-alerter retry --all", receiver.address());
    named(&site, CRITICAL, &format!("route recovery accepts nothing since|(connect)|{retry}"));
    assert!(shown(&site).starts_with("NOT EVERY FENCED HOST IS REPORTED: 1 waits, compute1 since "));
    let line = wait::until("it is critical", LIMIT, || {
        let (code, line) = check(&site, &["--warning", "0", "--critical", "0"]);
        Ok((code == CRITICAL).then_some(line))
    })
    .unwrap();
    assert!(line.contains(" oldest=") && line.contains("s;0;0;0 routes_failing=1"), "{line}");
    // Once it is up the alerter may be faster than the test reads on.
    let commands = ["send-test recovery", "retry --all"].map(|verb| advised(&site, verb));
    receiver.up().unwrap();
    commands.iter().for_each(|words| done(&site, words));
    ends_well(site);
}

fn an_endpoint_refuses_our_credentials() {
    let Stand { site, receiver } = faults::an_endpoint_refuses_our_credentials().unwrap();
    let table = format!("table [http.recovery] of {}", site.config().display());
    let what =
        "route recovery refuses every mark since|(credentials)|401|the password or the token of recovery";
    named(&site, CRITICAL, &format!("{what}|{table}"));
    receiver.answer(Answer::Status(200));
    typed(&site, "retry --all");
    ends_well(site);
}

fn an_endpoint_has_a_certificate_that_nobody_trusts() {
    let mut site = faults::an_endpoint_has_a_certificate_that_nobody_trusts().unwrap().site;
    let what = "route recovery accepts nothing|(tls-|certificate at https://|ca-file|send-test recovery";
    named(&site, CRITICAL, what);
    site.end(Signal::SIGTERM).unwrap();
}

fn an_endpoint_rejects_one_mark() {
    let Stand { site, receiver } = faults::an_endpoint_rejects_one_mark().unwrap();
    named(&site, CRITICAL, "compute1|(rejected)|422|check the log");
    let said = shown(&site);
    assert!(!said.contains("accepts nothing") && !said.contains("--all"), "{said}");
    receiver.answer(Answer::Status(200));
    let output = site.alerter(&["retry", "compute1"]).unwrap();
    assert!(output.status.success());
    ends_well(site);
}

fn a_storm_holds() {
    let Stand { site, receiver: _kept } = faults::a_storm_holds().unwrap();
    let figures = "too many hosts of group rack1 are down at once: more than 1|3 of | are down now";
    named(&site, WARNING, &format!("r1-3|held (storm) since|until|{figures}|release --group rack1"));
    typed(&site, "release --group rack1");
    ends_well(site);
}

fn a_pause_is_forgotten() {
    let Stand { mut site, receiver } = faults::a_pause_is_forgotten().unwrap();
    named(&site, WARNING, "paused by|until `resume`|the switch is changed|nova-host-alerter resume");
    site.fence("compute1").unwrap();
    named(&site, WARNING, "compute1 is held (pause) since|the switch is changed|nova-host-alerter resume");
    // The policy's holds are from the time when an alerter ran here. The broken variant shows them as current.
    let current = site.said(&["list"]).unwrap();
    assert!(current.contains("held (pause)"), "{current}");
    site.end(Signal::SIGTERM).unwrap();
    let former = site.said(&["list"]).unwrap();
    assert!(former.contains("held (pause, as of the alerter's last run here)"), "{former}");
    site.start().unwrap();
    typed(&site, "resume");
    receiver.wait_for(1, LIMIT).unwrap();
    until_well(&site);
    assert_eq!(receiver.received().len(), 1);
    site.end(Signal::SIGTERM).unwrap();
}

/// S0-38: held, visibly, and it goes on afterwards.
fn a_maintenance_covers_the_host() {
    let Stand { site, receiver: _kept } = faults::a_maintenance_covers_a_host().unwrap();
    assert_eq!(check(&site, &[]).0, OK, "it ends by itself, and holds nobody");
    assert!(shown(&site).contains("in force  maintenance of host compute1 by"), "{}", shown(&site));
    site.fence("compute1").unwrap();
    let what = "compute1 is held (maintenance) since|, until |new disk|maintenance end compute1";
    named(&site, WARNING, what);
    typed(&site, "maintenance end compute1");
    ends_well(site);
}

fn nobody_knows_the_hosts_full_name() {
    let Stand { mut site, receiver: _kept } = faults::nobody_knows_the_hosts_full_name().unwrap();
    let names = format!("[hosts.names] of {}", site.config().display());
    named(&site, WARNING, &format!("compute1 is held (no-fqdn) since|full name|[hosts] domain|{names}"));
    let lacking = fs::read_to_string(site.config()).unwrap();
    fs::write(site.config(), lacking.replace("[hosts]\n", "[hosts]\ndomain = \"my.cloud.com\"\n")).unwrap();
    site.end(Signal::SIGTERM).unwrap();
    site.start().unwrap();
    ends_well(site);
}

fn a_row_is_damaged() {
    let site = faults::a_row_is_damaged().unwrap().site;
    let what = "damaged|never sent and never dropped|nova-host-alerter show compute1|unmark compute1";
    named(&site, CRITICAL, what);
    let id = json(&site, &["list"])[0]["id"].as_str().unwrap().to_owned();
    assert!(shown(&site).contains("compute1"), "{}", shown(&site));
    let output = site.alerter(&["unmark", &id, "--reason", "reported by hand"]).unwrap();
    assert!(output.status.success());
    ends_well(site);
}

fn the_daemon_does_not_run() {
    let Stand { mut site, mut receiver } = faults::the_daemon_does_not_run().unwrap();
    let what = "the alerter runs nowhere|find the cause: |systemctl start nova-host-alerter|check-config";
    named(&site, CRITICAL, what);
    assert!(shown(&site).starts_with("No fenced host waits to be reported, but THE ALERTER DOES NOT RUN"));
    site.fence("compute1").unwrap();
    named(&site, CRITICAL, "the alerter runs nowhere|no mark is sent");
    assert!(shown(&site).starts_with("NOT EVERY FENCED HOST IS REPORTED: 1 is not marked yet."));
    assert_eq!(site.alerter(&["status"]).unwrap().status.code(), Some(1));
    receiver.up().unwrap();
    site.start().unwrap();
    ends_well(site);
}

fn a_route_was_removed() {
    for prepare in [faults::a_route_was_removed, faults::a_route_is_removed_by_a_reload] {
        a_removed_route_asks_for_a_decision(prepare().unwrap().site);
    }
}

fn a_removed_route_asks_for_a_decision(site: Site) {
    let again = format!("configure recovery again in {}", site.config().display());
    let what = "compute1|route recovery is not configured any more|dismiss --route recovery";
    named(&site, CRITICAL, &format!("{what}|{again}"));
    typed(&site, "dismiss --route recovery");
    ends_well(site);
}

fn the_configuration_is_wrong() {
    let Stand { mut site, receiver: _kept } = faults::the_configuration_is_wrong().unwrap();
    let right = fs::read_to_string(site.config()).unwrap().replace("ulr =", "url =");
    let place = format!("{}:9:", site.config().display());
    let what = format!("{place}|nova-host-alerter check-config");
    named(&site, WARNING, &format!("the configuration|{what}|ulr|url|cannot be restarted"));
    site.end(Signal::SIGTERM).unwrap();
    named(&site, CRITICAL, &format!("the alerter does not start with it|{what}"));
    assert_eq!(json(&site, &["status"])["problems"][0]["kind"], "configuration", "the cause stands first");
    fs::write(site.config(), right).unwrap();
    site.start().unwrap();
    ends_well(site);
}

fn the_journal_cannot_be_read() {
    let site = faults::the_journal_cannot_be_read().unwrap().site;
    let path = site.journal();
    named(&site, CRITICAL, &format!("the journal cannot be read|{}|check its disk", path.display()));
    let said = shown(&site);
    assert_eq!(said.contains("as root"), !nix::unistd::geteuid().is_root(), "{said}");
    assert!(said.contains("marks     not known") && !said.contains("none open"), "{said}");
    assert_eq!(json(&site, &["status"])["problems"][0]["kind"], "journal", "the cause stands first");
    assert!(shown(&site).starts_with("UNKNOWN whether every fenced host is reported"));
}

fn a_name_has_no_address() {
    let mut site = faults::a_name_has_no_address().unwrap().site;
    named(&site, CRITICAL, "route recovery accepts nothing|(dns)|recovery.invalid|the name service");
    site.end(Signal::SIGTERM).unwrap();
}

fn an_endpoint_has_moved() {
    let Stand { site, receiver } = faults::an_endpoint_has_moved().unwrap();
    named(&site, CRITICAL, "route recovery refuses every mark|404|check url|send-test recovery");
    receiver.answer(Answer::Status(200));
    typed(&site, "retry --all");
    ends_well(site);
}

fn a_reload_is_refused() {
    let site = faults::a_reload_is_refused().unwrap().site;
    named(&site, WARNING, "still uses the former one|did you mean url?|check-config");
    let wrong = fs::read_to_string(site.config()).unwrap();
    fs::write(site.config(), wrong.replace("ulr =", "url =")).unwrap();
    assert!(site.alerter(&["reload"]).unwrap().status.success());
    ends_well(site);
}

/// S1-16: it delays, and loses nothing.
fn the_disk_is_full() {
    let Stand { mut site, receiver } = faults::the_disk_is_full().unwrap();
    let (path, directory) = (site.journal(), site.journal().parent().unwrap().display().to_string());
    let what = format!("there is no room for|{}|`df -h {directory}`", path.display());
    named(&site, CRITICAL, &format!("{what}|the alerter then continues by itself"));
    let checked = site.alerter(&["check-config"]).unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(said.starts_with("there is no room for") && said.contains("does not start here"), "{said}");
    assert_eq!(checked.status.code(), Some(1), "as `run` exits");
    fs::remove_file(faults::seen_from_outside(&site, &site.journal().with_file_name("filler"))).unwrap();
    until_well(&site);
    assert_eq!(receiver.received().len(), 1, "the acknowledgement was kept: nothing is sent twice");
    site.end(Signal::SIGTERM).unwrap();
}

fn nobody_vouches_for_a_mark() {
    let Stand { site, receiver: _kept } = faults::nobody_vouches_for_a_mark().unwrap();
    let what = "compute1 is held (unconfirmed)|Pacemaker has not confirmed it|release compute1";
    named(&site, WARNING, what);
    assert!(site.alerter(&["release", "compute1", "--reason", "I saw it off"]).unwrap().status.success());
    ends_well(site);
}

/// C10: it is no quiet night; nothing is sent, and what is typed settles it, also after a restart.
fn a_host_is_down_from_before() {
    let Stand { mut site, receiver } = faults::a_host_is_down_from_before().unwrap();
    named(&site, CRITICAL, "compute1 is held (outcome-unknown)|release compute1|unmark compute1");
    let listed = json(&site, &["list"]);
    assert_eq!((&listed[0]["host"], &listed[0]["state"]), (&"compute1".into(), &"held".into()));
    done(&site, &["unmark", "compute1", "--reason", "it was reported"].map(str::to_owned));
    until_well(&site);
    site.end(Signal::SIGTERM).unwrap();
    site.start().unwrap();
    // It would ask again after ten seconds.
    thread::sleep(Duration::from_secs(25));
    until_well(&site);
    assert!(receiver.received().is_empty());
    site.end(Signal::SIGTERM).unwrap();
}

/// C11: `status` names them, and they are in no figure, list or headline. The broken variant says that a host waits.
fn entries_have_no_seal() {
    let Stand { mut site, receiver } = faults::entries_have_no_seal().unwrap();
    let what = "No fenced host waits to be reported.|is not used|it says that compute7 was fenced";
    named(&site, WARNING, what);
    let status = json(&site, &["status"]);
    for figure in ["open", "held", "new_fencings", "unmarked_fencings"] {
        assert_eq!(status[figure], 0, "{figure}");
    }
    assert_eq!(json(&site, &["list", "--all"]), Value::Array(Vec::new()));
    assert!(receiver.received().is_empty());
    site.end(Signal::SIGTERM).unwrap();
}

fn an_endpoint_rejects_some_hosts() {
    let Stand { site, receiver } = faults::an_endpoint_rejects_some_hosts().unwrap();
    named(&site, CRITICAL, "r2-1|r2-3|422|reject");
    assert!(!shown(&site).contains("r1-1"), "{}", shown(&site));
    receiver.answer_about("none has this", Answer::Status(422));
    assert!(site.alerter(&["retry", "--all"]).unwrap().status.success());
    ends_well(site);
}

fn a_migration_is_left_half_way() {
    let Stand { mut site, receiver: _kept } = faults::a_migration_is_left_half_way().unwrap();
    let what = "nova-evacuate (ocf:openstack:NovaEvacuate) evacuates hosts too|docs/migrate.md";
    named(&site, CRITICAL, what);
    site.end(Signal::SIGTERM).unwrap();
}

fn clocks_differ() {
    let Stand { mut site, receiver: _kept } = faults::clocks_differ().unwrap();
    named(&site, WARNING, "the clock of Pacemaker's DC is|s ahead of this controller's clock|NTP");
    site.end(Signal::SIGTERM).unwrap();
}

fn the_register_is_nearly_full() {
    let Stand { mut site, receiver: _kept } = faults::the_register_is_nearly_full().unwrap();
    let what = "the register|KiB|128|nova-host-alerter list|route recovery accepts nothing";
    named(&site, CRITICAL, what);
    site.end(Signal::SIGTERM).unwrap();
}

/// `list` and `history` by host, state and time, together.
fn marks_and_lines_are_found_by_what_they_are() {
    let mut receiver = Receiver::on_loopback().unwrap();
    let tables = format!("[groups.rack1]\nhosts = [\"r1-*\"]\n{}", http(&receiver));
    let mut site = well(&tables);
    site.fence("r1-1").unwrap();
    let is_notified = || Ok((json(&site, &["list", "--all"])[0]["state"] == "acknowledged").then_some(()));
    wait::until("the first one is sent", LIMIT, is_notified).unwrap();
    receiver.down();
    for host in ["r1-2", "r1-3", "compute7"] {
        site.fence(host).unwrap();
    }
    wait::until("all are marked", LIMIT, || Ok((hosts(&site, &["list"]).len() == 3).then_some(()))).unwrap();
    assert_eq!(hosts(&site, &["list", "--host", "r1-*"]), ["r1-2", "r1-3"]);
    assert_eq!(hosts(&site, &["list", "--host", "r1-*", "--all"]), ["r1-1", "r1-2", "r1-3"]);
    assert_eq!(hosts(&site, &["list", "--state", "acknowledged", "--host", "r1-*"]), ["r1-1"]);
    // It is older than three others: one that reads the newest two alone finds none.
    assert_eq!(hosts(&site, &["list", "--state", "acknowledged", "--limit", "1"]), ["r1-1"]);
    assert_eq!(hosts(&site, &["list", "--host", "compute*"]), ["compute7"]);
    assert_eq!(hosts(&site, &["list", "--state", "held"]), Vec::<String>::new());
    assert_eq!(hosts(&site, &["list", "--state", "open", "--until", "1h"]), Vec::<String>::new());
    assert_eq!(hosts(&site, &["list", "--state", "open", "--since", "1h", "--limit", "1"]), ["r1-2"]);
    let lines = json(&site, &["history", "--host", "r1-?", "--limit", "1"]);
    assert_eq!(lines.as_array().map(Vec::len), Some(1));
    site.end(Signal::SIGTERM).unwrap();
}

/// The hosts of what is listed, in its order.
fn hosts(site: &Site, words: &[&str]) -> Vec<String> {
    let all = json(site, words);
    all.as_array().unwrap().iter().map(|mark| mark["host"].as_str().unwrap().to_owned()).collect()
}
