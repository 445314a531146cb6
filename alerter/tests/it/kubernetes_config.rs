//! The keys of `[kubernetes.NAME]`: what is wrong is said before anything runs.

use crate::config::Site;
use crate::nova_config::stored;

const KUBECONFIG: &str = "current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: u, user: {token: t}}]
";
const TEMPLATE: &str = "template-api-version = \"infrastructure.cluster.x-k8s.io/v1beta1\"
template-kind = \"Metal3RemediationTemplate\"
template-name = \"workers\"";

/// A route with these keys, beside a kubeconfig.
fn route(keys: &str) -> Site {
    let site = Site::new("").with("kubeconfig", KUBECONFIG);
    site.chmod("kubeconfig", 0o600);
    let file = site.path("kubeconfig").display().to_string();
    site.with("alerter.toml", format!("[kubernetes.a]\nkubeconfig = \"{file}\"\n{keys}\n"))
}

#[test]
fn every_key_counts() {
    let keys = format!("mode = \"remediation\"\n{TEMPLATE}\nhost-name = \"node\"\nwhen-returned = \"leave\"");
    let site = route(&keys);
    assert_eq!(stored(&site)["host"], "compute1");
    assert_eq!(site.settings().routes[0].driver.about().steps, []);
}

/// A return goes to where the failure went. The broken variant knows the server alone.
#[test]
fn another_mode_namespace_or_template_is_another_place() {
    let target = |keys: &str| route(keys).settings().routes[0].driver.target();
    let usual = format!("mode = \"remediation\"\n{TEMPLATE}");
    let all = [
        target("mode = \"annotate\""),
        target("mode = \"annotate\"\nnamespace = \"metal\""),
        target(&usual),
        target(&format!("{usual}\nnamespace = \"metal\"")),
        target(&format!("{usual}\ntemplate-namespace = \"metal\"")),
        target(&usual.replace("Metal3", "Metal4")),
        target(&usual.replace("v1beta1", "v1beta2")),
    ];
    let different: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
    assert_eq!(target(&usual), target(&format!("{usual}\ntimeout = 5")));
}

#[test]
fn each_mistake_has_its_sentence() {
    let remediation = |keys: &str| format!("mode = \"remediation\"\n{keys}");
    for (keys, expected) in [
        (String::new(), "[kubernetes.a] has no mode: set it to taint, condition, remediation or annotate"),
        ("mode = \"drain\"".to_owned(), "unknown word; known are: \"taint\", \"condition\", \"remediation\""),
        ("mode = \"taint\"\ncontext = \"x\"".to_owned(), "the kubeconfig has no context x: correct context"),
        ("mode = \"taint\"\nnamespace = \"x\"".to_owned(), "has no effect without mode = \"remediation\" or"),
        (
            "mode = \"annotate\"\ntemplate-name = \"x\"".to_owned(),
            "has no effect without mode = \"remediation\"",
        ),
        (
            remediation(TEMPLATE.split_once('\n').unwrap().1),
            "[kubernetes.a] has no template-api-version: this mode needs it",
        ),
        (remediation(&TEMPLATE.replace("Template\"", "\"")), "must be a kind that ends with Template"),
        (remediation(&TEMPLATE.replace("/v1beta1", "")), "must be a group and a version, such as"),
        (remediation(&TEMPLATE.replace("workers", "../x")), "must be a name of Kubernetes"),
        ("mode = \"taint\"\ntimeout = 31".to_owned(), "must be from 1 to 30"),
    ] {
        let problem = route(&keys).problem();
        assert!(problem.contains(expected), "{keys}: {problem}");
    }
}
