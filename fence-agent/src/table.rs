//! The one table of options, for standard input, the command line, metadata, manual page and help.

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no; on the command line the option alone means yes.
    Flag,
    /// Any text.
    Text,
    /// Whole seconds.
    Seconds,
    /// A whole number.
    Integer,
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// What to do, or how to report it.
    Call,
    /// Which host is marked, and how.
    Mark,
    /// Accepted because other fence agents or `fence_compute` have it. It has no effect.
    Compatibility,
}

/// An older name of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// There is none.
    None,
    /// In the metadata, as deprecated.
    Published(&'static str),
    /// Accepted, but not in the metadata.
    Silent(&'static str),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its key on standard input, with underscores; the long option is the same with dashes.
    pub name: &'static str,
    /// Its older name.
    pub old: Old,
    /// Its short option.
    pub short: Option<char>,
    /// The word for its value in the help; empty for a flag.
    pub placeholder: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// The default, if it is the same everywhere.
    pub default: Option<&'static str>,
    /// Its effect.
    pub usage: Use,
    /// One line for people.
    pub summary: &'static str,
}

/// All options, in the order of the help.
pub const TABLE: &[Parameter] = &[
    text("action", 'o', "action", Use::Call, "Fencing action: off, status, monitor, metadata, manpage or validate-all. There is no default.").formerly(Old::Silent("option")),
    text("nodename", NONE, "name", Use::Mark, "Pacemaker node name of the host"),
    text("plug", 'n', "id", Use::Mark, "Name of the host without nodename; with nodename, the name that it is mapped to").formerly(Old::Published("port")),
    text("hosts", NONE, "patterns", Use::Mark, "Hosts that may be marked, a comma-separated list of shell patterns. A cluster node needs its exact name here, a pattern is not enough").or("*"),
    text("store", NONE, "path", Use::Mark, "Journal in which hosts are marked, an absolute path. Default: [store] path in alerter.toml, else /var/lib/nova-host-alerter/marks.db. Another one than that must exist, unless create_store is set"),
    flag("create_store", NONE, Use::Mark, "Create the journal at store if it is not there yet, though alerter.toml does not name it"),
    text("register", NONE, "kind", Use::Mark, "Cluster-wide register of fencings: \"attrd\", \"cib\", \"etcd\" (see [store.etcd] in alerter.toml) or \"none\" (one controller alone). Default: [store] register in alerter.toml, else attrd"),
    text("domain", 'd', "string", Use::Mark, "DNS domain of the hosts; counts unless [hosts] in alerter.toml sets it"),
    text("compute_domain", NONE, "string", Use::Mark, "Replaced by domain").formerly(Old::Published("compute-domain")),
    flag("no_shared_storage", NONE, Use::Mark, "1 if instances are not on shared storage, 0 if they are; counts unless on-shared-storage in alerter.toml says it. Without either the mark is held"),
    seconds("delay", Use::Mark, "Wait X seconds before the host is marked", "0"),
    flag("quiet", 'q', Use::Call, "Disable logging to stderr. Does not affect logging to syslog."),
    flag("verbose", 'v', Use::Call, "Verbose mode. Multiple -v flags can be stacked on the command line (e.g., -vvv) to increase verbosity."),
    Parameter { kind: Kind::Integer, ..text("verbose_level", NONE, "level", Use::Call, "Level of debugging detail in output") },
    flag("version", 'V', Use::Call, "Display version information and exit"),
    flag("help", 'h', Use::Call, "Display help and exit"),
    text("debug_file", 'D', "debugfile", Use::Compatibility, "Write debug information to given file").formerly(Old::Published("debug")),
    text("auth_url", 'k', "url", Use::Compatibility, "Keystone Admin Auth URL").or("").formerly(Old::Published("auth-url")),
    text("endpoint_type", 'e', "endpoint", Use::Compatibility, "Nova Endpoint type").or("internalURL").formerly(Old::Published("endpoint-type")),
    text("username", 'l', "name", Use::Compatibility, "Login name").formerly(Old::Published("login")),
    text("password", 'p', "password", Use::Compatibility, "Login password or passphrase").formerly(Old::Published("passwd")),
    text("password_script", 'S', "script", Use::Compatibility, "Script to run to retrieve password").formerly(Old::Published("passwd_script")),
    text("region_name", NONE, "region", Use::Compatibility, "Region Name").or(""),
    text("tenant_name", 't', "name", Use::Compatibility, "Keystone Admin Tenant or v3 Project").or("").formerly(Old::Published("tenant-name")),
    flag("insecure", NONE, Use::Compatibility, "Allow Insecure TLS Requests"),
    text("project_domain", 'P', "name", Use::Compatibility, "Keystone v3 Project Domain").or("Default").formerly(Old::Published("project-domain")),
    text("user_domain", 'u', "name", Use::Compatibility, "Keystone v3 User Domain").or("Default").formerly(Old::Published("user-domain")),
    flag("instance_filtering", NONE, Use::Compatibility, "Allow instances to be evacuated").or("True"),
    text("record_only", 'r', "value", Use::Compatibility, "Only record the target as needing evacuation").or("False"),
    text("plug_separator", NONE, "char", Use::Compatibility, "Separator for plug parameter when specifying more than 1 plug").or(","),
    text("separator", 'C', "char", Use::Compatibility, "Separator for CSV created by 'list' operation").or(","),
    text("disable_timeout", NONE, "true/false", Use::Compatibility, "Disable timeout (true/false)"),
    seconds("login_timeout", Use::Compatibility, "Wait X seconds for cmd prompt after login", "5"),
    seconds("power_timeout", Use::Compatibility, "Test X seconds for status change after ON/OFF", "20"),
    seconds("power_wait", Use::Compatibility, "Wait X seconds after issuing ON/OFF", "0"),
    seconds("shell_timeout", Use::Compatibility, "Wait X seconds for cmd prompt after issuing command", "180"),
    seconds("stonith_status_sleep", Use::Compatibility, "Sleep X seconds between status calls during a STONITH action", "1"),
    Parameter { kind: Kind::Integer, ..text("retry_on", NONE, "attempts", Use::Compatibility, "Count of attempts to retry power on").or("1") },
];

/// No short option.
const NONE: char = '\0';

const fn text(
    name: &'static str,
    short: char,
    placeholder: &'static str,
    usage: Use,
    summary: &'static str,
) -> Parameter {
    let short = if short == NONE { None } else { Some(short) };
    Parameter { name, old: Old::None, short, placeholder, kind: Kind::Text, default: None, usage, summary }
}

const fn flag(name: &'static str, short: char, usage: Use, summary: &'static str) -> Parameter {
    Parameter { kind: Kind::Flag, ..text(name, short, "", usage, summary) }
}

const fn seconds(name: &'static str, usage: Use, summary: &'static str, default: &'static str) -> Parameter {
    Parameter { kind: Kind::Seconds, ..text(name, NONE, "seconds", usage, summary) }.or(default)
}

impl Parameter {
    const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    const fn formerly(mut self, old: Old) -> Self {
        self.old = old;
        self
    }

    /// Its long option, without the leading dashes.
    pub fn long(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Its form on the command line: `-n, --plug=[id]`.
    pub fn synopsis(&self) -> String {
        let short = self.short.map_or_else(String::new, |c| format!("-{c}, "));
        let value =
            if self.placeholder.is_empty() { String::new() } else { format!("=[{}]", self.placeholder) };
        format!("{short}--{}{value}", self.long())
    }

    /// Its line for people, with a note if it is not used.
    pub fn description(&self) -> String {
        match self.usage {
            Use::Compatibility => {
                format!("{} (accepted for compatibility, not used)", self.summary.trim_end_matches('.'))
            }
            Use::Call | Use::Mark => self.summary.to_owned(),
        }
    }
}

/// The option of a key, and whether the key is its present name. Dashes and underscores are equal.
pub fn find(key: &str) -> Option<(usize, bool)> {
    let key = key.replace('-', "_");
    let is_old =
        |old| matches!(old, Old::Published(name) | Old::Silent(name) if name.replace('-', "_") == key);
    let present = TABLE.iter().position(|p| p.name == key).map(|at| (at, true));
    present.or_else(|| TABLE.iter().position(|p| is_old(p.old)).map(|at| (at, false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_short_options_are_unique() {
        let mut names = BTreeSet::new();
        let mut shorts = BTreeSet::new();
        for parameter in TABLE {
            assert!(names.insert(parameter.name), "{}", parameter.name);
            assert!(parameter.short.is_none_or(|c| shorts.insert(c)), "{}", parameter.name);
            if let Old::Published(old) | Old::Silent(old) = parameter.old {
                assert!(names.insert(old), "{old}");
            }
        }
    }

    /// Conformance 6: secrets have no default.
    #[test]
    fn secrets_have_no_default() {
        for name in ["password", "password_script", "username"] {
            let (at, _) = find(name).unwrap();
            assert_eq!(TABLE[at].default, None, "{name}");
        }
    }

    #[test]
    fn keys_are_found_by_either_form_and_by_their_old_name() {
        let found = find("no-shared_storage").map(|(at, now)| (TABLE[at].name, now));
        assert_eq!(found, Some(("no_shared_storage", true)));
        assert_eq!(find("port").map(|(at, now)| (TABLE[at].name, now)), Some(("plug", false)));
        assert_eq!(find("option").map(|(at, now)| (TABLE[at].name, now)), Some(("action", false)));
        assert_eq!(find("ACTION"), None);
        assert_eq!(find("action "), None);
    }
}
