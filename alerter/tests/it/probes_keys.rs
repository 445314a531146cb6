//! `[groups.NAME.confirm]`: what is read, and what is said of each mistake.

use std::time::Duration;

use alerter::probes::{Confirm, Rule, Way};

use crate::certificates::Ca;
use crate::config::Site;

const ROUTE: &str = "[http.recovery]\nurl = \"http://127.0.0.1:9/\"\n";

/// A configuration with this text from its third line on; `DIR` stands for its directory.
fn site(text: &str) -> Site {
    let site = Site::new("");
    let text = text.replace("DIR", &site.0.path().display().to_string());
    site.with("alerter.toml", format!("[groups.r]\nhosts = [\"*\"]\n{text}\n{ROUTE}"))
}

/// What is asked before a mark of the group is sent.
pub(crate) fn confirm_of(site: &Site) -> Option<Confirm> {
    let settings = site.settings();
    settings.groups.iter().find(|group| group.name == "r").and_then(|group| group.confirm.clone())
}

pub(crate) fn confirm(text: &str) -> Confirm {
    confirm_of(&site(text)).expect("there are probes")
}

/// S0-6, S0-7: several probes, each with its kind, its name and its own keys.
#[test]
fn every_key_is_read() {
    let read = confirm(
        r#"[groups.r.confirm]
rule = "any-failed"
limit = 300
again = 10
[groups.r.confirm.poll-url.api]
url = "https://{nodename}:8774/health?token=s3kr1t"
healthy = "ok"
retries = 0
retry-interval = 0
timeout = 1
conn-error-as-unhealthy = false
verify = false
tls-min = "1.3"
[groups.r.confirm.poll-url.other]
url = "https://{nodename}.mgmt/"
healthy = "ok"
retries = 1
retry-interval = 2
timeout = 3
[groups.r.confirm.exec.bmc]
command = ["/bin/sh", "-c", "exit 1", "{nodename}", "s3kr1t"]
timeout = 20"#,
    );
    assert_eq!(read.rule, Rule::AnyFailed);
    assert_eq!((read.limit, read.again), (Duration::from_secs(300), Duration::from_secs(10)));
    let names: Vec<&str> = read.probes.iter().map(|probe| probe.name.as_str()).collect();
    assert_eq!(names, ["poll-url.api", "poll-url.other", "exec.bmc"]);
    let Way::PollUrl(other) = &read.probes[1].way else { panic!("no url is asked for") };
    assert_eq!((other.tries().retries, other.tries().longest()), (1, Duration::from_secs(3 + 2 + 3)));
    assert!(!format!("{read:?}").contains("s3kr1t"), "{read:?}");
    assert_eq!(
        read.warnings(),
        [
            "the probe poll-url.api has verify = false: another machine could answer in the host's place; set ca-file instead"
        ]
    );
}

/// S0-6, S0-9, S0-11, S0-12: all must fail, and an unreachable host is down; three retries, with their own pause and limit.
#[test]
fn what_is_not_written_has_a_default() {
    let read = confirm(BOTH);
    assert_eq!(read.rule, Rule::AllFailed);
    assert_eq!((read.limit, read.again), (Duration::from_secs(60), Duration::from_secs(60)));
    let Way::PollUrl(poll) = &read.probes[0].way else { panic!("no url is asked for") };
    assert_eq!((poll.tries().retries, poll.tries().longest()), (3, Duration::from_secs(4 * 5 + 3 * 3)));
    assert_eq!(read, confirm(&format!("[groups.r.confirm]\n{BOTH}retries = 3")));
    assert!(read.warnings().is_empty());
}

/// S0-6: fencing is proof already.
#[test]
fn without_the_table_nothing_is_asked() {
    assert_eq!(confirm_of(&site("")), None);
}

const URL: &str = "[groups.r.confirm.poll-url.a]\nurl = \"https://{nodename}/\"\n";
const BOTH: &str = "[groups.r.confirm.poll-url.a]\nurl = \"https://{nodename}/\"\nhealthy = \"ok\"\n";

fn assert_each<const N: usize>(cases: [(String, &str); N]) {
    for (text, expected) in cases {
        assert_eq!(site(&text).problem(), format!("alerter.toml:{expected}"), "{text}");
    }
}

/// S0-4, S0-44: a key of no probe is refused by name, with a suggestion.
#[test]
fn an_unknown_table_or_key_is_refused() {
    let top = |text: &str| format!("[groups.r.confirm]\n{text}\n{BOTH}");
    assert_each([
        (
            "[groups.r.confirm]".to_owned(),
            "3:11: [groups.r.confirm] has no probe: add one, as in [groups.r.confirm.exec.bmc], or remove the table",
        ),
        (
            top("rule = \"all_failed\""),
            "4:8: unknown word; did you mean \"all-failed\"? Known are: \"all-failed\", \"any-failed\"",
        ),
        (top("limit = 9"), "4:9: must be from 10 to 3600"),
        (top("again = 9"), "4:9: must be from 10 to 3600"),
        (top("again = 3601"), "4:9: must be from 10 to 3600"),
        (
            top("intervall = 5"),
            "4:1: unknown key intervall in [groups.r.confirm]; known are: rule, limit, again, poll-url, exec, hypervisor",
        ),
        (
            top("[groups.r.confirm.poll_url.x]\nurl = \"https://{nodename}/\""),
            "4:19: unknown key poll_url in [groups.r.confirm]; did you mean poll-url?",
        ),
        (
            "[groups.r.confirm.exec]\ntimeout = 22".to_owned(),
            "4:11: groups.r.confirm.exec.timeout must be inside a probe: write [groups.r.confirm.exec.NAME], one table for each",
        ),
        (
            "[groups.r.confirm.exec.\"a b\"]\ncommand = [\"/bin/false\", \"{nodename}\"]".to_owned(),
            "3:24: a probe's name must be 1 to 64 letters, digits, '-' or '_'",
        ),
        (
            format!("{BOTH}healty = \"ok\""),
            "6:1: unknown key healty in [groups.r.confirm.poll-url.a]; did you mean healthy?",
        ),
    ]);
}

/// S0-8, S0-10: `{nodename}` and no other name, and a pattern that does not match every answer.
#[test]
fn a_url_is_about_the_host_and_a_pattern_says_something() {
    let url = |url: &str| format!("[groups.r.confirm.poll-url.a]\nhealthy = \"ok\"\nurl = \"{url}\"\n");
    let healthy = |text: &str| format!("{URL}healthy = \"{text}\"\n");
    let braces = "5:7: the only name allowed in braces is {nodename}, Pacemaker's name of the host";
    let empty = "5:11: an empty text is in every answer, so every host would be healthy: set a word of the healthy answer";
    assert_each([
        (url("https://{fqdn}/"), braces),
        (url("https://{nodename}/{ip}"), braces),
        (url("https://{nodename/"), braces),
        (
            url("https://mon/"),
            "5:7: must contain {nodename}: without it the probe is the same for every host",
        ),
        (
            url("http://{nodename}/"),
            "5:7: plain http can be read and changed by others: use https, or set allow-http = true",
        ),
        (url("https://u:s3kr1t@{nodename}/"), "5:7: a url must not hold a user name or password"),
        (url("ftp://{nodename}/"), "5:7: the url must begin with https:// or http://"),
        (url("https://h:{nodename}/"), "5:7: not a valid url: invalid port number"),
        (healthy(""), empty),
        (healthy(" \\t"), empty),
        (healthy(&"x".repeat(1025)), "5:11: must be at most 1024 bytes long"),
        (
            URL.to_owned(),
            "3:28: [groups.r.confirm.poll-url.a] has no healthy: set it to a text that only a healthy host's answer contains",
        ),
        (
            "[groups.r.confirm.poll-url.a]\nhealthy = \"ok\"\n".to_owned(),
            "3:28: [groups.r.confirm.poll-url.a] has no url: set it to a url of the host, with {nodename} in it",
        ),
    ]);
}

/// S0-11, S0-12: numbers within their bounds, and tries that come to an end before all is asked again.
#[test]
fn numbers_are_bounded() {
    assert_each([
        (format!("{BOTH}retries = 101"), "6:11: must be from 0 to 100"),
        (format!("{BOTH}retries = -1"), "6:11: must be from 0 to 100"),
        (format!("{BOTH}retry-interval = 601"), "6:18: must be from 0 to 600"),
        (format!("{BOTH}timeout = 0"), "6:11: must be from 1 to 30"),
        (format!("{BOTH}timeout = 31"), "6:11: must be from 1 to 30"),
        (format!("{BOTH}conn-error-as-unhealthy = 1"), "6:27: must be true or false, not a whole number"),
        (
            format!("{BOTH}retries = 9"),
            "3:28: the tries of this probe may take 77 s, but all probes begin again after limit = 60: raise limit, or lower retries, retry-interval or timeout",
        ),
    ]);
    confirm(&format!("[groups.r.confirm]\nlimit = 77\n{BOTH}retries = 9"));
}

/// The program is checked as that of a route is.
#[test]
fn a_program_is_checked() {
    let exec = |keys: &str| format!("[groups.r.confirm.exec.a]\n{keys}");
    assert_each([
        (exec(""), "3:24: [groups.r.confirm.exec.a] has no command: set it to a program and its arguments"),
        (
            exec("command = [\"sh\", \"{nodename}\"]"),
            "4:11: must begin with the absolute path of a program: there is no search path",
        ),
        (
            exec("command = [\"/bin/sh\", \"{host}\"]"),
            "4:23: the only name allowed in braces is {nodename}, Pacemaker's name of the host",
        ),
        (
            exec("command = [\"/bin/sh\", \"s3kr1t\"]"),
            "4:11: must contain {nodename}: without it the probe is the same for every host",
        ),
        (exec("command = [\"/bin/sh\", \"{nodename}\"]\ntimeout = 301"), "5:11: must be from 1 to 300"),
        (
            exec("command = [\"/bin/sh\", \"{nodename}\"]\ntimeout = 60"),
            "3:24: the tries of this probe may take 62 s, but all probes begin again after limit = 60: raise limit, or lower retries, retry-interval or timeout",
        ),
    ]);
}

/// S0-13: the keys of TLS are those of the `http` driver, and verification is on unless it is switched off by name.
#[test]
fn the_keys_of_tls_are_checked() {
    let ca = Ca::new("ours");
    let with_ca = |keys: &str| {
        let place = ca.file().display().to_string();
        site(&format!("{BOTH}{}", keys.replace("CA", &place)))
    };
    assert!(confirm_of(&with_ca("ca-file = \"CA\"\nverify = true")).is_some());
    for (keys, expected) in [
        ("ca-file = \"DIR/none\"", "6:11: ca-file: it cannot be read: No such file or directory"),
        ("ca-file = \"DIR/alerter.toml\"", "6:11: ca-file holds no certificate in PEM"),
        (
            "certificate-file = \"DIR/c\"",
            "6:20: certificate-file has no effect without key-file: set both, or neither",
        ),
        ("tls-min = \"1.1\"", "6:11: unknown word; did you mean \"1.2\"? Known are: \"1.2\", \"1.3\""),
        (
            "ca-file = \"CA\"\nverify = false",
            "6:11: ca-file has no meaning with verify = false: remove one of them",
        ),
    ] {
        assert_eq!(with_ca(keys).problem(), format!("alerter.toml:{expected}"), "{keys}");
    }
    let plain = "[groups.r.confirm.poll-url.a]\nurl = \"http://{nodename}/\"\nhealthy = \"ok\"\nallow-http = true\nverify = false";
    assert_each([(
        plain.to_owned(),
        "7:10: verify has no effect with an http url: use https, or remove verify",
    )]);
}

/// A `hypervisor` probe with these keys, beside a file with a cloud.
fn hypervisor(keys: &str) -> Site {
    let cloud =
        "clouds: {one: {auth: {auth_url: 'https://k/v3', user_id: u, password: s3kr1t, project_id: p}}}\n";
    let site = Site::new("").with("clouds.yaml", cloud);
    site.chmod("clouds.yaml", 0o600);
    let clouds = site.path("clouds.yaml").display().to_string();
    let probe = format!("[groups.r.confirm.hypervisor.nova]\nclouds-file = \"{clouds}\"\n{keys}");
    site.with("alerter.toml", format!("[groups.r]\nhosts = [\"*\"]\n{probe}\n{ROUTE}"))
}

/// S0-18: the keys of a cloud and those of a probe, together; no secret is shown.
#[test]
fn a_probe_of_nova_has_the_keys_of_a_cloud() {
    let read = confirm_of(&hypervisor("")).unwrap();
    let Way::Hypervisor(nova) = &read.probes[0].way else { panic!("no hypervisor probe") };
    assert_eq!(read.probes[0].name, "hypervisor.nova");
    assert_eq!((nova.tries().retries, nova.tries().timeout), (3, Duration::from_secs(5)));
    assert!(read.warnings().is_empty() && !format!("{read:?}").contains("s3kr1t"), "{read:?}");
    let keys = "host-name = \"node\"\nretries = 0\ntimeout = 30";
    let other = confirm_of(&hypervisor(keys)).unwrap();
    assert_ne!(read, other);
    assert_eq!(confirm_of(&hypervisor(keys)).unwrap().probes[0].name, other.probes[0].name);
}

/// S0-18: each mistake is said once, also of a key that a cloud has too.
#[test]
fn a_mistake_in_a_probe_of_nova_has_its_sentence() {
    for (keys, expected) in [
        ("timeout = 31", "5:11: must be from 1 to 30"),
        ("host-name = \"x\"", "5:13: unknown word; known are: \"fqdn\", \"short\", \"node\""),
        ("cloud = \"two\"", "5:9: clouds.yaml: it has no cloud of this name"),
        ("url = \"https://nova\"", "5:1: unknown key url in [groups.r.confirm.hypervisor.nova]"),
        ("retries = 100\nretry-interval = 10", "the tries of this probe may take"),
    ] {
        let said = hypervisor(keys).problem();
        assert!(said.contains(expected), "{keys}: {said}");
    }
}
