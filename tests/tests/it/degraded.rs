//! The state that Pacemaker gets where a person is needed, and the agent that mails then.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use std::{fs, iter};

use nix::sys::signal::Signal;
use rusqlite::Connection;
use tempfile::TempDir;
use tests::installed::source;
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

/// Longer than the longest wait between two attempts.
const LIMIT: Duration = Duration::from_secs(40);
const WORKS: i32 = 0;
const DEGRADED: i32 = 190;

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        a_mark_that_is_held_degrades_until_it_is_sent_or_ended,
        a_mark_that_is_refused_or_waits_degrades_until_it_is_taken,
        nothing_is_read_back_from_what_only_informs,
        the_agent_mails_when_a_person_is_needed_and_when_that_is_over,
    ])
}

/// A recovery controller, and a site that runs with these tables too.
fn site(more: &str) -> (Receiver, Site) {
    let receiver = Receiver::on_loopback().unwrap();
    let url = receiver.address();
    let mut site =
        Site::with(&format!("[http.recovery]\nurl = \"http://{url}/v1/host-failures\"\n{more}")).unwrap();
    site.start().unwrap();
    (receiver, site)
}

/// Waits until `status --ocf` exits so, and gives what it says.
fn until(site: &Site, code: i32) -> String {
    let what = format!("the state {code}");
    let said = wait::until(&what, LIMIT, || {
        let ended = site.alerter(&["status", "--ocf"])?;
        Ok((ended.status.code() == Some(code)).then_some(ended.stdout))
    });
    String::from_utf8(said.unwrap()).unwrap()
}

/// S1-5: the policy holds a mark, and so does a doubt about it: both are said until they are over, and no mark of another host is
/// kept by that.
fn a_mark_that_is_held_degrades_until_it_is_sent_or_ended() {
    let (receiver, site) = site("[groups.east]\nhosts = [\"east*\"]\n");
    site.said(&["pause", "--group", "east", "--reason", "works"]).unwrap();
    until(&site, WORKS);
    site.fence("east1").unwrap();
    assert!(until(&site, DEGRADED).contains("1 mark is held (pause) since "), "{}", until(&site, DEGRADED));
    site.fence("compute1").unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
    site.said(&["resume", "--group", "east"]).unwrap();
    receiver.wait_for(2, LIMIT).unwrap();
    until(&site, WORKS);

    let whole = fs::read_to_string(site.config()).unwrap();
    fs::write(site.config(), whole.replace("domain = \"my.cloud.com\"\n", "")).unwrap();
    site.said(&["reload"]).unwrap();
    site.fence("compute2").unwrap();
    assert!(until(&site, DEGRADED).contains("held (no-fqdn)"));
    site.said(&["unmark", "compute2", "--reason", "reported by hand"]).unwrap();
    until(&site, WORKS);
}

/// S1-5, S4-31: at once where the endpoint refuses this mark, and after `degraded-after` where it only waits.
fn a_mark_that_is_refused_or_waits_degrades_until_it_is_taken() {
    let (receiver, site) = site("");
    receiver.answer(Answer::Status(422));
    site.fence("compute1").unwrap();
    assert!(until(&site, DEGRADED).contains("parked"));
    receiver.answer(Answer::Status(200));
    assert!(site.alerter(&["retry", "--all"]).unwrap().status.success());
    until(&site, WORKS);

    let (_receiver, site) =
        self::site("[delivery]\ndegraded-after = 1\n[groups.default]\ndeliver-after = 600\n");
    site.fence("compute2").unwrap();
    assert!(until(&site, DEGRADED).contains("is not acknowledged yet"), "nothing is wrong with the route");
    site.said(&["unmark", "compute2", "--reason", "it lives"]).unwrap();
    until(&site, WORKS);
}

/// S4-39: the history is lost, and everything goes on from the state.
fn nothing_is_read_back_from_what_only_informs() {
    let (mut receiver, mut site) = site("");
    receiver.answer(Answer::Status(422));
    site.fence("compute1").unwrap();
    until(&site, DEGRADED);
    receiver.down();
    site.fence("compute2").unwrap();
    site.end(Signal::SIGTERM).unwrap();
    Connection::open(site.journal()).unwrap().execute("DELETE FROM history", []).unwrap();
    site.start().unwrap();
    assert!(until(&site, DEGRADED).contains("parked"));
    receiver.answer(Answer::Status(200));
    receiver.up().unwrap();
    let known = receiver.received().len();
    assert!(site.alerter(&["retry", "--all"]).unwrap().status.success());
    receiver.wait_for(known + 2, LIMIT).unwrap();
    until(&site, WORKS);
}

/// What Pacemaker sets for an alert about a resource.
const ALERT: [(&str, &str); 9] = [
    ("CRM_alert_kind", "resource"),
    ("CRM_alert_rsc", "alerter"),
    ("CRM_alert_task", "monitor"),
    ("CRM_alert_interval", "10000"),
    ("CRM_alert_rc", "190"),
    ("CRM_alert_target_rc", "0"),
    ("CRM_alert_node", "ctl1"),
    ("CRM_alert_timestamp", "08:03:12"),
    ("CRM_alert_recipient", "oncall@my.cloud.com"),
];

/// Runs the example with this alert but for one variable, and with a mailer that keeps its input and its arguments.
fn mailed(room: &Path, other: (&str, &str)) -> (Output, String) {
    let (mailer, mail) = (room.join("sendmail"), room.join("mail"));
    let script = format!("#!/bin/sh\n{{ echo \"$@\"; cat; }} >> '{}'\n", mail.display());
    fs::write(&mailer, script).unwrap();
    fs::set_permissions(&mailer, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&mail, "").unwrap();
    let mut agent = Command::new(source("docs/examples/alert-mail.sh"));
    let ended = agent.env_clear().env("PATH", "/usr/bin:/bin").env("sendmail", &mailer);
    let ended = ended.envs(ALERT.into_iter().chain(iter::once(other))).output().unwrap();
    (ended, fs::read_to_string(&mail).unwrap())
}

/// The broken variants: each probe and each start of a resource mails, or that of another resource does.
fn the_agent_mails_when_a_person_is_needed_and_when_that_is_over() {
    let room = TempDir::new().unwrap();
    for (other, subject) in [
        (("CRM_alert_rc", "190"), "nova-host-alerter on ctl1 needs a person"),
        (("CRM_alert_rc", "0"), "nova-host-alerter on ctl1 needs nobody"),
        (("CRM_alert_rc", "1"), "nova-host-alerter on ctl1 has failed (monitor: 1)"),
    ] {
        let (ended, mail) = mailed(room.path(), other);
        assert!(ended.status.success(), "{ended:?}");
        let mut lines = mail.lines();
        assert_eq!(lines.next(), Some("-i -- oncall@my.cloud.com"));
        assert_eq!(lines.next(), Some(&*format!("Subject: {subject}")));
        assert!(mail.contains("\n\n") && mail.contains("`nova-host-alerter status`"), "{mail}");
    }
    for other in [
        ("CRM_alert_kind", "fencing"),
        ("CRM_alert_rsc", "ip"),
        ("CRM_alert_interval", "0"),
        ("resource", "another"),
    ] {
        let (ended, mail) = mailed(room.path(), other);
        assert!(ended.status.success() && mail.is_empty(), "{other:?}: {mail}");
    }
    let (ended, mail) = mailed(room.path(), ("CRM_alert_recipient", ""));
    assert!(!ended.status.success() && mail.is_empty(), "Pacemaker logs that nobody is named");
}
