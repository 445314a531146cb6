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
fn each_mistake_has_its_sentence() {
    let file = "clouds-file = \"DIR/clouds.yaml\"";
    for (keys, clouds, expected) in [
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
    ] {
        assert_eq!(masakari(&keys, &clouds).problem(), format!("alerter.toml:{expected}"), "{keys} {clouds}");
    }
}

/// A route that would act on a host that is well holds its mark, unless it is configured otherwise.
#[test]
fn a_route_that_would_harm_a_host_that_is_well_holds_by_default() {
    let day = Some(Duration::from_secs(86_400));
    let node = "11111111-0000-4000-8000-000000000001";
    let senlin = format!("operation = \"rebuild\"\nnodes = {{ compute1 = [\"{node}\"] }}");
    for (driver, keys, expected) in [
        ("masakari", "", (IfReturned::Hold, day)),
        ("nova", "", (IfReturned::Hold, None)),
        ("mistral", "workflow = \"evacuate\"", (IfReturned::Hold, None)),
        ("heat", "stacks = [\"web/5e9a\"]", (IfReturned::Hold, None)),
        ("senlin", &senlin, (IfReturned::Hold, day)),
        ("heat", "resources = { compute1 = [\"web/5e9a/server\"] }", (IfReturned::Hold, None)),
        ("masakari", "if-returned = \"deliver\"\nstale-after = 60", (IfReturned::Deliver, Some(MINUTE))),
        ("mistral", "workflow = \"evacuate\"\nif-returned = \"cancel\"", (IfReturned::Cancel, None)),
    ] {
        let keys = format!("clouds-file = \"DIR/clouds.yaml\"\n{keys}");
        let terms = route(driver, &keys, &one()).settings().routes[0].terms.clone();
        assert_eq!((terms.if_returned, terms.stale_after), expected, "{driver} {keys}");
    }
}
