//! The whole path with the built programs on one machine: journal, daemon, commands, and a receiver that behaves badly.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use journal::{Journal, Role};
use marks::time::Timestamp;
use nix::sys::signal::Signal;
use rusqlite::Connection;
use serde_json::Value;
use tests::installed;
use tests::programs::{Site, built, millis};
use tests::receiver::{Answer, Received, Receiver};
use tests::trials::Group;

/// Twice the longest wait between two attempts.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        a_fenced_host_is_reported_and_settled,
        what_is_not_accepted_is_sent_again_byte_for_byte,
        a_redirect_acknowledges_nothing,
        an_endpoint_that_is_down_gets_bare_connections_until_it_takes_one,
        half_an_answer_acknowledges_nothing,
        no_host_waits_for_another,
        a_mark_waits_for_no_route_that_is_not_required,
        the_marks_of_one_host_are_sent_in_order,
        a_daemon_killed_in_an_exchange_sends_the_same_again,
        a_fencing_without_a_daemon_is_sent_when_it_starts,
        a_stop_ends_in_time_and_leaves_nothing_behind,
        a_stop_does_not_wait_for_a_locked_journal,
        no_core_of_a_daemon_is_left,
        a_second_daemon_is_shown_who_runs,
        a_host_that_lacks_something_is_held_until_it_is_said,
        a_changed_row_is_not_sent_and_stops_nobody_else,
        a_journal_that_is_exchanged_ends_the_daemon,
        an_operator_marks_retries_and_ends,
        a_test_message_is_no_host_failure,
        nobody_but_root_may_change_anything,
        commands_say_what_they_cannot_read,
    ];
    Group { cannot: installed::cannot(&["unshare", "nsenter", "setpriv"]), tests }
}

/// A receiver, and a site whose alerter runs.
pub(crate) fn running() -> (Receiver, Site) {
    let (receiver, mut site) = stopped();
    site.start().unwrap();
    (receiver, site)
}

pub(crate) fn stopped() -> (Receiver, Site) {
    let receiver = Receiver::on_loopback().unwrap();
    let site = Site::new(receiver.address()).unwrap();
    (receiver, site)
}

pub(crate) fn event(request: &Received) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

pub(crate) fn host(request: &Received) -> String {
    event(request)["payload"]["hostname"].as_str().unwrap().to_owned()
}

/// What a command says; null where it has nothing to say yet.
pub(crate) fn json(site: &Site, words: &[&str]) -> Value {
    let output = site.alerter(&[words, &["--json"]].concat()).unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Waits for what no event of ours announces: the daemon's next commit.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within {} s", LIMIT.as_secs());
        // What it asks is mostly a process.
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn until_settled(site: &Site) {
    until("all marks are settled", || {
        let status = json(site, &["status"]);
        status["open"] == 0 && status["new_fencings"] == 0
    });
}

pub(crate) fn delivery(site: &Site, host: &str) -> Value {
    json(site, &["show", host])[0]["deliveries"][0].clone()
}

/// S1-2, S1-15, S1-35, S1-36, S1-37, S1-39, S1-44: the event of a fenced host, in the seed's form and with nothing else.
fn a_fenced_host_is_reported_and_settled() {
    let (receiver, site) = running();
    site.fence("compute1").unwrap();
    let got = receiver.wait_for(1, LIMIT).unwrap().remove(0);
    let event = event(&got);
    let id = event["id"].as_str().unwrap();
    assert_eq!(got.first_line, "POST /v1/host-failures HTTP/1.1");
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert_eq!(got.header("idempotency-key"), Some(format!("\"{id}\"").as_str()));
    let fields: Vec<&String> = event.as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 5, "{fields:?}");
    assert_eq!([&event["event_type"], &event["version"]], ["host failure", "1.0"]);
    assert_eq!(event["payload"]["hostname"], "compute1.my.cloud.com");
    assert_eq!(event["payload"]["on_shared_storage"], true);
    let (failed, generated) =
        (event["payload"]["failure_time"].as_i64().unwrap(), event["generated_time"].as_i64().unwrap());
    assert!(failed <= generated && failed > 1_700_000_000);
    until_settled(&site);
    assert_eq!(json(&site, &["show", "compute1"])[0]["state"], "acknowledged");
    assert_eq!(receiver.received().len(), 1);
}

/// S1-16, S1-40: kept, sent again until it succeeds, with one id and the same bytes.
fn what_is_not_accepted_is_sent_again_byte_for_byte() {
    let (mut receiver, site) = running();
    receiver.down();
    site.fence("compute1").unwrap();
    until("an attempt failed", || delivery(&site, "compute1")["last"]["kind"] == "connect");
    receiver.answer_next(Answer::Status(503));
    receiver.up().unwrap();
    let got = receiver.wait_for(2, LIMIT).unwrap();
    assert_eq!(got[0].body, got[1].body);
    assert_eq!(got[0].header("idempotency-key"), got[1].header("idempotency-key"));
    until_settled(&site);
    let delivery = delivery(&site, "compute1");
    assert!(delivery["attempts"].as_u64().unwrap() >= 3, "{delivery}");
}

/// S4-30: only the receiver's own answer acknowledges.
fn a_redirect_acknowledges_nothing() {
    let (receiver, site) = running();
    let elsewhere = Receiver::on_loopback().unwrap();
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n",
        elsewhere.address()
    );
    receiver.answer_next(Answer::Raw(redirect.into_bytes()));
    site.fence("compute1").unwrap();
    until("the endpoint has refused", || delivery(&site, "compute1")["state"] == "parked");
    // It is asked again after a minute; an operator who has fixed it does not wait.
    assert!(site.alerter(&["retry", "--all"]).unwrap().status.success());
    receiver.wait_for(2, LIMIT).unwrap();
    until_settled(&site);
    assert!(elsewhere.received().is_empty(), "a redirect was followed");
    let history = json(&site, &["history", "compute1"]);
    assert!(history.to_string().contains("redirect"), "{history}");
}

/// However many marks wait, an endpoint that cannot be reached gets no attempt until it takes a bare connection. Then one mark follows,
/// and all are sent when it is well.
fn an_endpoint_that_is_down_gets_bare_connections_until_it_takes_one() {
    const HOSTS: usize = 50;
    let (mut receiver, site) = running();
    receiver.down();
    let route = || json(&site, &["status"])["daemon"]["routes"][0].clone();
    site.fence("compute1").unwrap();
    until("the first one found that it is down", || route()["failure"] == "connect");
    for host in 2..=HOSTS {
        site.fence(&format!("compute{host}")).unwrap();
    }
    let attempts = || -> Vec<u64> {
        let listed = json(&site, &["list"]);
        let marks = listed.as_array().unwrap().iter();
        marks.map(|mark| mark["deliveries"][0]["attempts"].as_u64().unwrap()).collect()
    };
    until("all wait", || route()["waiting"] == HOSTS);
    assert!(millis(&route()["waits_until"]).is_some(), "{}", route());
    let said = site.said(&["status"]).unwrap();
    assert!(said.contains("accepts nothing (connect) since") && said.contains(", asked again at "), "{said}");
    assert_eq!(attempts().iter().sum::<u64>(), 1, "a bare connection is no attempt");
    let listener = TcpListener::bind(receiver.address()).unwrap();
    let sends = || listener.accept().unwrap().0.read(&mut [0]).unwrap() > 0;
    assert!(!sends(), "a bare connection, before any mark");
    assert!(sends(), "a mark follows");
    drop(listener);
    receiver.up().unwrap();
    receiver.wait_for(HOSTS, LIMIT).unwrap();
    until_settled(&site);
    assert_eq!(receiver.received().len(), HOSTS, "each once");
}

fn half_an_answer_acknowledges_nothing() {
    let (receiver, site) = running();
    for half in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-le", "HTTP/1.1 100 Continue\r\n\r\n"] {
        receiver.answer_next(Answer::Raw(half.into()));
    }
    site.fence("compute1").unwrap();
    receiver.wait_for(4, LIMIT).unwrap();
    until_settled(&site);
    assert_eq!(delivery(&site, "compute1")["ambiguous"], 3);
}

/// S4-20: one endpoint that hangs for one host must not keep the next host's mark.
fn no_host_waits_for_another() {
    let (receiver, site) = running();
    receiver.answer_next(Answer::Silence);
    site.fence("compute1").unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
    site.fence("compute2").unwrap();
    let got = receiver.wait_for(2, LIMIT).unwrap();
    assert_eq!(host(&got[1]), "compute2.my.cloud.com");
    until("compute2 is settled", || json(&site, &["show", "compute2"])[0]["state"] == "acknowledged");
    assert_eq!(delivery(&site, "compute1")["state"], "in-flight");
}

/// A route that is not required is down: its marks are settled all the same, no resource is degraded, and it is notified when
/// it is back. A third route gets one host alone.
fn a_mark_waits_for_no_route_that_is_not_required() {
    let (recovery, mut site) = stopped();
    let (mut wiki, east) = (Receiver::on_loopback().unwrap(), Receiver::on_loopback().unwrap());
    wiki.down();
    let more = format!(
        "\n[http.wiki]\nurl = \"http://{}/\"\nrequired = false\n\n[http.east]\nurl = \"http://{}/\"\nhosts = [\"east*\"]\n\n[delivery]\ndegraded-after = 1\n",
        wiki.address(),
        east.address()
    );
    fs::write(site.config(), fs::read_to_string(site.config()).unwrap() + &more).unwrap();
    site.start().unwrap();
    for name in ["compute1", "east1"] {
        site.fence(name).unwrap();
    }
    recovery.wait_for(2, LIMIT).unwrap();
    until_settled(&site);
    assert_eq!(json(&site, &["show", "compute1"])[0]["state"], "acknowledged");
    let to = |host: &str| -> Vec<(String, bool, String)> {
        let shown = json(&site, &["show", host])[0]["deliveries"].clone();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let all = shown.as_array().unwrap().iter();
        all.map(|d| (word(&d["route"]), d["required"] == true, word(&d["state"]))).collect()
    };
    let of = |route: &str, required, state: &str| (route.to_owned(), required, state.to_owned());
    let taken = |route| of(route, true, "acknowledged");
    assert_eq!(to("compute1")[0], taken("recovery"));
    assert_eq!(to("east1")[..2], [taken("east"), taken("recovery")]);
    for wiki in [&to("compute1")[1], &to("east1")[2]] {
        assert!(!wiki.1 && matches!(wiki.2.as_str(), "pending" | "in-flight"), "{wiki:?}");
    }
    let failing = |route: &Value| route["name"] == "wiki" && route["failing_since"].is_string();
    until("the route that is down was tried for longer than a second", || {
        let status = json(&site, &["status"]);
        let since =
            status["daemon"]["routes"].as_array().and_then(|all| all.iter().find(|r| failing(r)).cloned());
        let now = Timestamp::now().0;
        since.is_some_and(|route| now - millis(&route["failing_since"]).unwrap() > 1_500)
    });
    assert_eq!(site.alerter(&["status", "--ocf"]).unwrap().status.code(), Some(0));
    for words in [&["status"][..], &["show", "east1"]] {
        assert!(text(&site.alerter(words).unwrap()).contains("not required"), "{words:?}");
    }
    let still_tried = || {
        let listed = json(&site, &["list"]);
        let settled =
            listed.as_array().unwrap().iter().filter(|mark| mark["state"] == "acknowledged").count();
        (json(&site, &["status"])["settled_still_tried"].clone(), settled)
    };
    assert_eq!(still_tried(), (2.into(), 2), "`list` shows what it has not taken");
    wiki.up().unwrap();
    let hosts: Vec<String> = wiki.wait_for(2, LIMIT).unwrap().iter().map(host).collect();
    assert_eq!(hosts, ["compute1.my.cloud.com", "east1.my.cloud.com"]);
    until("it has both", || to("east1")[2] == of("wiki", false, "acknowledged"));
    assert_eq!(still_tried(), (0.into(), 0));
    let hosts: Vec<String> = east.received().iter().map(host).collect();
    assert_eq!(hosts, ["east1.my.cloud.com"]);
}

fn the_marks_of_one_host_are_sent_in_order() {
    let (mut receiver, mut site) = stopped();
    receiver.down();
    // Two outages an hour apart, as the agent would have written them; the newer one is written first.
    for seconds in [1_790_003_600, 1_790_000_000] {
        let mut journal = Journal::open(&site.journal(), Role::Agent).unwrap();
        journal.append_fencing(&samples::fencing("compute1", Timestamp::from_seconds(seconds))).unwrap();
    }
    site.start().unwrap();
    until("both are marked", || json(&site, &["show", "compute1"])[1].is_object());
    receiver.up().unwrap();
    let times: Vec<Value> = receiver
        .wait_for(2, LIMIT)
        .unwrap()
        .iter()
        .map(|got| event(got)["payload"]["failure_time"].clone())
        .collect();
    assert_eq!(times, [1_790_000_000, 1_790_003_600]);
    until_settled(&site);
}

/// S0-21: a new daemon takes up what a dead one left under way.
fn a_daemon_killed_in_an_exchange_sends_the_same_again() {
    let (receiver, mut site) = running();
    receiver.answer_next(Answer::Silence);
    site.fence("compute1").unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
    site.end(Signal::SIGKILL).unwrap();
    site.start().unwrap();
    let got = receiver.wait_for(2, LIMIT).unwrap();
    assert_eq!(got[0].body, got[1].body);
    until_settled(&site);
    assert_eq!(delivery(&site, "compute1")["ambiguous"], 1);
}

/// S1-51: the agent needs neither the daemon nor the endpoint.
fn a_fencing_without_a_daemon_is_sent_when_it_starts() {
    let (receiver, mut site) = stopped();
    site.fence("compute1").unwrap();
    assert_eq!(json(&site, &["status"])["new_fencings"], 1);
    assert!(text(&site.alerter(&["list"]).unwrap()).contains("compute1"));
    site.start().unwrap();
    assert_eq!(host(&receiver.wait_for(1, LIMIT).unwrap()[0]), "compute1.my.cloud.com");
    until_settled(&site);
}

fn a_stop_ends_in_time_and_leaves_nothing_behind() {
    let (receiver, mut site) = running();
    receiver.answer_next(Answer::Silence);
    site.fence("compute1").unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
    let begun = Instant::now();
    site.end(Signal::SIGTERM).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "Pacemaker would have killed it");
    let left: Vec<String> = fs::read_dir(site.journal().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left, ["marks.db"]);
    assert_eq!(json(&site, &["list"])[0]["deliveries"][0]["state"], "in-flight");
}

fn a_stop_does_not_wait_for_a_locked_journal() {
    let (receiver, mut site) = stopped();
    site.fence("compute1").unwrap();
    let holder = Connection::open(site.journal()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    site.start().unwrap();
    until("it says so", || site.alerter(&["status", "--ocf"]).unwrap().status.code() == Some(190));
    let begun = Instant::now();
    site.end(Signal::SIGTERM).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "Pacemaker would have killed it");
    assert!(receiver.received().is_empty());
    holder.execute_batch("ROLLBACK").unwrap();
    site.start().unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
}

/// Passwords and tokens are in its memory. The broken variant is this test's own process, which says nothing of it.
fn no_core_of_a_daemon_is_left() {
    let (_receiver, mut site) = stopped();
    let pid = site.start().unwrap();
    let largest = |pid: &str| -> String {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let own = largest("self");
    let left = largest(&pid.to_string());
    assert!(left == "1" || (own == "0" && left == "0"), "{left}, and {own} here");
}

fn a_second_daemon_is_shown_who_runs() {
    let (_receiver, mut site) = stopped();
    let pid = site.start().unwrap();
    let second = site.alerter(&["run"]).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains(&format!("process {pid}")), "{}", text(&second));
    assert!(site.alerter(&["status", "--ocf"]).unwrap().status.success(), "the first one still answers");
}

/// What nobody says is never guessed: the name (S1-37) and the storage (S1-38). The daemon starts all the same.
fn a_host_that_lacks_something_is_held_until_it_is_said() {
    for (line, hold) in
        [("domain = \"my.cloud.com\"\n", "no-fqdn"), ("on-shared-storage = true\n", "no-storage")]
    {
        let (receiver, mut site) = stopped();
        let whole = fs::read_to_string(site.config()).unwrap();
        assert!(whole.contains(line));
        fs::write(site.config(), whole.replace(line, "")).unwrap();
        site.start().unwrap();
        site.fence("compute1").unwrap();
        until("it is held", || json(&site, &["list"])[0]["holds"] == serde_json::json!([hold]));
        assert!(receiver.received().is_empty());
        site.end(Signal::SIGTERM).unwrap();
        fs::write(site.config(), whole.replace("= true", "= false")).unwrap();
        site.start().unwrap();
        let request = receiver.wait_for(1, LIMIT).unwrap().remove(0);
        assert_eq!(host(&request), "compute1.my.cloud.com");
        assert_eq!(event(&request)["payload"]["on_shared_storage"], false, "{hold}");
        until_settled(&site);
    }
}

/// A flipped byte could name another host: such a row is not sent, not dropped, and no obstacle to others.
fn a_changed_row_is_not_sent_and_stops_nobody_else() {
    let (mut receiver, mut site) = running();
    receiver.down();
    site.fence("compute1").unwrap();
    site.fence("compute2").unwrap();
    until("both wait", || json(&site, &["list"])[1].is_object());
    site.end(Signal::SIGTERM).unwrap();
    let bytes = fs::read(site.journal()).unwrap();
    fs::write(site.journal(), replace(&bytes, b"\"hostname\":\"compute1", b"\"hostname\":\"compute9"))
        .unwrap();
    receiver.up().unwrap();
    site.start().unwrap();
    assert_eq!(host(&receiver.wait_for(1, LIMIT).unwrap()[0]), "compute2.my.cloud.com");
    until("compute2 is settled", || json(&site, &["show", "compute2"])[0]["state"] == "acknowledged");
    until("the row is in quarantine", || json(&site, &["history"]).to_string().contains("quarantined"));
    assert_eq!(json(&site, &["status"])["damaged"], 1);
    assert_eq!(receiver.received().len(), 1);
    // The operator's named decision is the way out.
    assert!(site.alerter(&["unmark", "compute1", "--reason", "reported by hand"]).unwrap().status.success());
    until_settled(&site);
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let found: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!found.is_empty(), "nothing to change");
    for at in found {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

fn a_journal_that_is_exchanged_ends_the_daemon() {
    let (_receiver, mut site) = stopped();
    site.start().unwrap();
    let copy = site.journal().with_extension("copy");
    fs::copy(site.journal(), &copy).unwrap();
    fs::rename(&copy, site.journal()).unwrap();
    // Pacemaker would start a new one, which reads the file afresh.
    until("the daemon has ended", || site.alerter(&["status", "--ocf"]).unwrap().status.code() == Some(7));
}

/// S0-35, S1-7, S2-1, S2-11: a mark by hand needs the operator's word and reason; both stand in the history.
fn an_operator_marks_retries_and_ends() {
    let (mut receiver, site) = running();
    let run = |words: &[&str]| site.alerter(words).unwrap();
    assert_eq!(run(&["mark", "compute1", "--fenced"]).status.code(), Some(2));
    assert_eq!(run(&["mark", "compute1", "--reason", "x"]).status.code(), Some(2));
    assert_eq!(run(&["mark", "../etc", "--fenced", "--reason", "x"]).status.code(), Some(2));
    assert!(receiver.received().is_empty());
    assert!(run(&["mark", "compute1", "--fenced", "--reason", "pulled the plug"]).status.success());
    receiver.wait_for(1, LIMIT).unwrap();
    until_settled(&site);
    let again = json(&site, &["mark", "compute1", "--fenced", "--reason", "twice"]);
    assert_eq!(again["new"], false);

    receiver.down();
    assert!(run(&["mark", "compute2", "--fenced", "--reason", "pulled that too"]).status.success());
    until("it failed", || delivery(&site, "compute2")["last"]["kind"] == "connect");
    assert_eq!(json(&site, &["retry", "compute2"])["changed"], 1);
    assert_eq!(run(&["retry", "compute7"]).status.code(), Some(1));
    // While an attempt is under way it says so, and changes nothing.
    until("it is ended", || run(&["unmark", "compute2", "--reason", "it was compute3"]).status.success());
    assert_eq!(json(&site, &["show", "compute2"])[0]["state"], "dismissed");
    until_settled(&site);
    // It was no mistake: a later word takes that end back. What was acknowledged has ended, and is in the same outage.
    receiver.up().unwrap();
    assert_eq!(run(&["unmark", "compute1", "--reason", "it lives"]).status.code(), Some(1));
    let later = json(&site, &["mark", "compute2", "--fenced", "--reason", "it was compute2"]);
    assert_eq!(later["new"], true);
    assert_eq!(host(&receiver.wait_for(2, LIMIT).unwrap()[1]), "compute2.my.cloud.com");
    until_settled(&site);
    let history = json(&site, &["history"]).to_string();
    for word in ["pulled the plug", "it was compute3", "marked-by-hand"] {
        assert!(history.contains(word), "{word}: {history}");
    }
    assert_eq!(receiver.received().len(), 2);
}

fn a_test_message_is_no_host_failure() {
    let (receiver, site) = running();
    let answers = json(&site, &["send-test"]);
    assert_eq!(answers[0]["accepted"], true);
    let got = receiver.wait_for(1, LIMIT).unwrap();
    assert_ne!(event(&got[0])["event_type"], "host failure");
    assert_eq!(json(&site, &["list", "--all"]), Value::Array(vec![]));
    receiver.answer_next(Answer::Status(401));
    let refused = site.alerter(&["send-test", "recovery"]).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("credentials"), "{}", text(&refused));
    assert_eq!(site.alerter(&["send-test", "nowhere"]).unwrap().status.code(), Some(2));
}

/// S4-45: a user who may write a mark may start a recovery.
fn nobody_but_root_may_change_anything() {
    let (receiver, site) = running();
    // A copy, since the way to the built program may be closed to others.
    let program = site.directory().join("nova-host-alerter");
    installed::place(&built("nova-host-alerter").unwrap(), &program).unwrap();
    let nobody = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).arg("--config").arg(site.config()).uid(65534).gid(65534).output().unwrap()
    };
    // The directory of a test is closed to others; what is tested here is the socket.
    let open = |path: &std::path::Path, mode| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    open(site.directory(), 0o755);
    open(&site.config(), 0o644);
    open(&site.journal().with_file_name("control.sock"), 0o666);
    let refused = nobody(&["mark", "compute1", "--fenced", "--reason", "x"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(text(&refused).contains("only root"), "{}", text(&refused));
    for words in [&["list"][..], &["history"], &["show", "compute1"]] {
        let unread = nobody(words);
        assert_eq!(unread.status.code(), Some(1), "{words:?}");
        assert!(text(&unread).contains("run this as root"), "{words:?}: {}", text(&unread));
    }
    assert!(receiver.received().is_empty());
    assert!(site.alerter(&["mark", "compute1", "--fenced", "--reason", "x"]).unwrap().status.success());
}

fn commands_say_what_they_cannot_read() {
    let (_receiver, site) = stopped();
    for words in [&["list"][..], &["history"], &["show", "compute1"]] {
        let refused = site.alerter(words).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{words:?}");
        assert!(text(&refused).contains("no journal"), "{}", text(&refused));
    }
    let silent = site.alerter(&["retry", "--all"]).unwrap();
    assert_eq!(silent.status.code(), Some(1));
    assert!(text(&silent).contains("does not answer"), "{}", text(&silent));
    assert_eq!(site.alerter(&["status"]).unwrap().status.code(), Some(1));
}
