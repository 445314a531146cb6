//! The keys of `[nova.NAME]`: what is wrong is said before anything runs.

use drivers::Step;
use serde_json::Value;

use crate::config::Site;
use crate::openstack::mark;

/// A route with these keys, beside a file with a cloud.
fn route(keys: &str) -> Site {
    beside_a_cloud("nova.a", keys)
}

/// A table with these keys, beside a file with a cloud.
pub(crate) fn beside_a_cloud(table: &str, keys: &str) -> Site {
    let cloud =
        "clouds: {one: {auth: {auth_url: 'https://k/v3', user_id: u, password: s3kr1t, project_id: p}}}\n";
    let site = Site::new("").with("clouds.yaml", cloud);
    site.chmod("clouds.yaml", 0o600);
    let clouds = site.path("clouds.yaml").display().to_string();
    site.with("alerter.toml", format!("[{table}]\nclouds-file = \"{clouds}\"\n{keys}\n"))
}

/// What its messages say of a host that failed.
pub(crate) fn stored(site: &Site) -> Value {
    serde_json::from_slice(&site.settings().routes[0].driver.body(&mark())).unwrap()
}

#[test]
fn every_key_counts() {
    let reason = "disabled-reason = \"nova-host-alerter, {failure_time}\"";
    let site = route(&format!("host-name = \"node\"\ndisable = true\n{reason}\nwhen-returned = \"up\""));
    let stored = stored(&site);
    assert_eq!(
        (&stored["host"], &stored["disabled_reason"]),
        (&"compute1".into(), &"nova-host-alerter, 2026-07-21T02:13:20Z".into())
    );
    assert_eq!(site.settings().routes[0].driver.about().steps, [Step::Return]);
    let usual = "nova-host-alerter: fenced, down since 2026-07-21T02:13:20Z";
    assert_eq!(self::stored(&route("disable = true"))["disabled_reason"], usual);
}

#[test]
fn each_mistake_has_its_sentence() {
    let reason = "must be one line of at most 255 characters that names nova-host-alerter, with {failure_time} in it once and no other braces";
    for (keys, expected) in [
        ("disable = true\ndisabled-reason = \"fenced\"", format!("4:19: {reason}")),
        (
            "disable = true\ndisabled-reason = \"nova-host-alerter {failure_time} {host}\"",
            format!("4:19: {reason}"),
        ),
        (
            "disabled-reason = \"nova-host-alerter {failure_time}\"",
            "3:19: disabled-reason has no effect by itself: set disable = true, or remove disabled-reason"
                .to_owned(),
        ),
        (
            "when-returned = \"up\"",
            "3:17: must not be \"up\" without disable = true: only the disabled reason shows that this mark forced the host down"
                .to_owned(),
        ),
    ] {
        let problem = route(keys).problem();
        assert!(problem.starts_with(&format!("alerter.toml:{expected}")), "{problem}");
    }
}
