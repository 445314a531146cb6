//! `[groups.NAME.confirm]`: what is read, and what is said of each mistake.

use std::time::Duration;

use alerter::probes::{Confirm, Rule, Way};

use crate::config::Site;
use crate::nova_config::beside_a_cloud;

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
        (
            top("intervall = 5"),
            "4:1: unknown key intervall in [groups.r.confirm]; known are: rule, limit, again, poll-url, exec, hypervisor",
        ),
        (
            "[groups.r.confirm.exec]\ntimeout = 22".to_owned(),
            "4:11: groups.r.confirm.exec.timeout must be inside a probe: write [groups.r.confirm.exec.NAME], one table for each",
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
        (
            url("https://mon/"),
            "5:7: must contain {nodename}: without it the probe is the same for every host",
        ),
        (
            url("http://{nodename}/"),
            "5:7: plain http can be read and changed by others: use https, or set allow-http = true",
        ),
        (url("https://u:s3kr1t@{nodename}/"), "5:7: a url must not hold a user name or password"),
        (healthy(""), empty),
        (healthy(&"x".repeat(1025)), "5:11: must be at most 1024 bytes long"),
    ]);
}

/// A `hypervisor` probe with these keys, beside a file with a cloud.
fn hypervisor(keys: &str) -> Site {
    let keys = format!("{keys}\n[groups.r]\nhosts = [\"*\"]\n{ROUTE}");
    beside_a_cloud("groups.r.confirm.hypervisor.nova", &keys)
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
