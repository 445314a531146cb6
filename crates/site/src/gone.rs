//! Sections and keys that are no more, each with what serves instead: they are refused like a mistyped one.

/// The paths of each, where `*` is any name and `|` stands between two of which either will do, and what to do.
pub const GONE: &[(&str, &str)] = &[
    ("recovery", "remove it; Masakari and Nova say what became of the instances of a host"),
    (
        "notice",
        "remove it; let an alert agent of Pacemaker mail, as docs/examples/alert-mail.sh does, or use the alert rules or `status --check`",
    ),
    ("api.listen", "write uri = \"tcp://HOST:PORT\" or uri = \"unix:///PATH\""),
    ("api.certificate", "a proxy in front of uri ends TLS (docs/api.md): remove it"),
    ("api.key", "a proxy in front of uri ends TLS (docs/api.md): remove it"),
    (
        "vitrage",
        "post the event that Vitrage takes with [http.NAME] and body = \"template\", or with a program ([exec.NAME])",
    ),
    ("groups.*.confirm.tcp", "let a program ask (nc -z HOST PORT), in [groups.NAME.confirm.exec.PROBE]"),
    ("groups.*.confirm.pacemaker-state", "let a program ask Pacemaker, in [groups.NAME.confirm.exec.PROBE]"),
    (
        "log.format",
        "lines on /dev/log have the form of RFC 3164: remove it, and let the syslog daemon write another one",
    ),
    (
        "log.enterprise-number",
        "lines on /dev/log have the form of RFC 3164, with the fields behind the sentence: remove it",
    ),
    (
        "log.lines-per-minute",
        "the syslog daemon or journald limits what is written (RateLimitBurst): remove it",
    ),
    (
        "kubernetes.*.service-account kubernetes.*.url",
        "write a kubeconfig with the server and a tokenFile: the alerter runs in no pod",
    ),
    (
        "kubernetes.*.contract",
        "an object has the name and the namespace of the host's Machine; for medik8s set mode = \"condition\"",
    ),
    (
        "masakari|mistral|nova|heat|senlin.*.secure-file groups.*.confirm.hypervisor.*.secure-file",
        "write secure.yaml beside clouds-file",
    ),
    (
        "masakari|mistral|nova|heat|senlin.*.from-environment groups.*.confirm.hypervisor.*.from-environment",
        "name the cloud in clouds-file: the environment of Pacemaker differs from controller to controller",
    ),
    (
        "masakari|mistral|nova|heat|senlin.*.region groups.*.confirm.hypervisor.*.region",
        "set region_name in clouds.yaml",
    ),
    (
        "masakari|mistral|nova|heat|senlin.*.interface groups.*.confirm.hypervisor.*.interface",
        "set interface in clouds.yaml",
    ),
    (
        "masakari|mistral|nova|heat|senlin.*.insecure groups.*.confirm.hypervisor.*.insecure",
        "set cacert in clouds.yaml",
    ),
    (
        "masakari|mistral|nova|heat|senlin.*.keep-alive groups.*.confirm.hypervisor.*.keep-alive",
        "each exchange has a connection of its own: remove it",
    ),
    (
        "groups.*.rounding",
        "a percentage is rounded down: remove it, and raise max-unhealthy where that is too few",
    ),
    ("delivery.ack-batch", "up to 64 acknowledgements are written together: remove it"),
    ("http.*.cloudevents-source", "write the CloudEvent with body = \"template\" (docs/drivers/http.md)"),
    (
        "masakari|kubernetes.*.confirm masakari|kubernetes.*.confirm-within",
        "remove it: how a recovery ended is its controller's to say",
    ),
    ("http.*.method", "each message is a POST: remove it"),
    ("http.*.socket", "let the receiver listen on loopback, or let a program send to it ([exec.NAME])"),
    ("http.*.return-url", "a return goes to url: remove it, or let a program send it ([exec.NAME])"),
    ("http.*.routing-key-file", "let an alert rule of Prometheus page, or a program ([exec.NAME])"),
    (
        "http|exec.*.extensions",
        "`nova-host-alerter show HOST` has what the controller knows; body = \"extended\" adds the node's name",
    ),
    ("hosts.audit-after", "a host that is gone for 300 s without a fencing is a problem: remove it"),
    ("intake.evidence-grace", "a report of Pacemaker waits 10 s for the record of fence_mark: remove it"),
];

/// What serves instead of a section or a key, by its path.
pub(crate) fn instead(path: &str) -> Option<&'static str> {
    GONE.iter().find(|(gone, _)| gone.split(' ').any(|gone| is_of(gone, path))).map(|(_, instead)| *instead)
}

fn is_of(gone: &str, path: &str) -> bool {
    let (gone, path): (Vec<&str>, Vec<&str>) = (gone.split('.').collect(), path.split('.').collect());
    let fits = |(gone, part): (&&str, &str)| gone.split('|').any(|word| word == "*" || word == part);
    gone.len() == path.len() && gone.iter().zip(path).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant compares beginnings: a section that only begins alike would be refused.
    #[test]
    fn a_name_stands_for_one_part() {
        assert!(is_of("a.*.c", "a.b.c") && is_of("a", "a") && is_of("x|a.c", "a.c"));
        for other in ["a.b", "a.b.c.d", "a.b.d", "ab.b.c"] {
            assert!(!is_of("a.*.c", other), "{other}");
        }
    }
}
