//! The keys of `[masakari.NAME]`: what is wrong is said before anything runs.

use std::time::Duration;

use marks::terms::IfReturned;

use crate::config::Site;
use crate::route::SECRET;

const MINUTE: Duration = Duration::from_secs(60);
const CLOUD: &str = "{auth: {auth_url: 'https://k/v3', user_id: u, project_id: p}}";

/// A route of this driver with these keys, beside a file of clouds and one with their secrets.
pub(crate) fn route(driver: &str, keys: &str, clouds: &str) -> Site {
    let site = Site::new("")
        .with("clouds.yaml", format!("clouds: {{{clouds}}}\n"))
        .with("secure.yaml", format!("clouds: {{one: {{auth: {{password: {SECRET}}}}}}}\n"));
    site.chmod("secure.yaml", 0o600);
    let keys = keys.replace("DIR", &site.0.path().display().to_string());
    site.with("alerter.toml", format!("[{driver}.a]\n{keys}\n"))
}

pub(crate) fn one() -> String {
    format!("one: {CLOUD}")
}

fn masakari(keys: &str, clouds: &str) -> Site {
    route("masakari", keys, clouds)
}

#[test]
fn a_cloud_is_a_route() {
    let all = "clouds-file = \"DIR/clouds.yaml\"\ncloud = \"one\"\nendpoint = \"https://m/v1/%(project_id)s\"\nallow-http = false\ntimeout = 90\nhost-name = \"node\"\nconfirm = true\nconfirm-within = 3600\nwhen-returned = \"clear-maintenance\"";
    for keys in ["clouds-file = \"DIR/clouds.yaml\"", all] {
        let settings = masakari(keys, &one()).settings();
        let driver = &settings.routes[0].driver;
        assert_eq!(
            (driver.kind(), driver.endpoint().as_str()),
            ("masakari", "Masakari of cloud one at https://k/v3")
        );
    }
}

#[test]
fn each_mistake_has_its_sentence() {
    let file = "clouds-file = \"DIR/clouds.yaml\"";
    for (keys, clouds, expected) in [
        ("clouds-file = \"clouds.yaml\"".to_owned(), one(), "2:15: must be an absolute path"),
        (
            "clouds-file = \"DIR/none.yaml\"".to_owned(),
            one(),
            "2:15: none.yaml: it cannot be read: No such file or directory",
        ),
        (format!("{file}\ncloud = \"two\""), one(), "3:9: clouds.yaml: it has no cloud of this name"),
        (
            file.to_owned(),
            format!("{}, two: {CLOUD}", one()),
            "1:11: clouds.yaml: it has more than one cloud: set cloud to the name of one",
        ),
        (
            file.to_owned(),
            "one: {verify: no}".to_owned(),
            "1:11: cloud one: it turns off certificate checks (verify, insecure): set cacert there",
        ),
        (
            format!("{file}\ncloud = \"one\""),
            "one: {auth: {}}".to_owned(),
            "3:9: cloud one: there is no auth_url under auth",
        ),
        (format!("{file}\ntimeout = 0"), one(), "3:11: must be from 1 to 300"),
        (
            format!("{file}\nhost-name = \"x\""),
            one(),
            "3:13: unknown word; known are: \"fqdn\", \"short\", \"node\"",
        ),
        (
            format!("{file}\nwhen-returned = \"clear\""),
            one(),
            "3:17: unknown word; known are: \"leave\", \"clear-maintenance\"",
        ),
        (
            format!("{file}\nconfirm-within = 60"),
            one(),
            "3:18: has no effect without confirm = true: set that, or remove it",
        ),
        (
            format!("{file}\nendpoint = \"http://m/v1\""),
            one(),
            "3:12: plain http can be read and changed by others: use https, or set allow-http = true",
        ),
    ] {
        assert_eq!(masakari(&keys, &clouds).problem(), format!("alerter.toml:{expected}"), "{keys} {clouds}");
    }
}

/// S1-45: what the file says is not shown, and others may not read it.
#[test]
fn a_file_with_a_secret_is_checked() {
    let site = masakari("clouds-file = \"DIR/clouds.yaml\"", &one());
    site.chmod("secure.yaml", 0o640);
    let problem = site.problem();
    assert!(problem.contains("secure.yaml: others may read the secret in it (mode 0640)"), "{problem}");
    let site = masakari("clouds-file = \"DIR/clouds.yaml\"", &format!("one: {{auth: {{password: {SECRET}"));
    assert_eq!(site.problem(), "alerter.toml:2:15: clouds.yaml: it is not YAML: check line 2");
}

/// A route that would act on a host that is well holds its mark, unless it is configured otherwise.
#[test]
fn a_route_that_would_harm_a_host_that_is_well_holds_by_default() {
    let day = Some(Duration::from_secs(86_400));
    for (driver, keys, expected) in [
        ("masakari", "", (IfReturned::Hold, day)),
        ("nova", "", (IfReturned::Hold, None)),
        ("mistral", "workflow = \"evacuate\"", (IfReturned::Hold, None)),
        ("heat", "stacks = [\"web/5e9a\"]", (IfReturned::Hold, None)),
        ("heat", "resources = { compute1 = [\"web/5e9a/server\"] }", (IfReturned::Hold, None)),
        ("masakari", "if-returned = \"deliver\"\nstale-after = 60", (IfReturned::Deliver, Some(MINUTE))),
        ("mistral", "workflow = \"evacuate\"\nif-returned = \"cancel\"", (IfReturned::Cancel, None)),
    ] {
        let keys = format!("clouds-file = \"DIR/clouds.yaml\"\n{keys}");
        let terms = route(driver, &keys, &one()).settings().routes[0].terms.clone();
        assert_eq!((terms.if_returned, terms.stale_after), expected, "{driver} {keys}");
    }
}
