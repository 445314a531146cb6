//! Prepared faults, each really made with the real programs: for the tests of what `status` says, and for `make drill`.

mod made;
mod stand;

pub use made::*;
pub use stand::{Place, Stand, check};

use crate::installed;

/// A fault that can be prepared.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// A word for it, which stays as it is.
    pub name: &'static str,
    /// What is wrong, one sentence.
    pub truth: &'static str,
    /// What an answer has to name: a word of each of these.
    pub names: &'static [&'static [&'static str]],
    /// The alert rule that fires of it some minutes later, and its labels.
    pub alert: (&'static str, &'static [(&'static str, &'static str)]),
    /// Whether it takes mounts of its own, and so root.
    pub takes_mounts: bool,
    /// Prepares it.
    pub prepare: fn(Place<'_>) -> anyhow::Result<Stand>,
}

impl Fault {
    /// Why this machine cannot prepare it, if it cannot.
    #[must_use]
    pub fn cannot(&self) -> Option<String> {
        self.takes_mounts.then(|| installed::cannot(&["unshare", "nsenter"])).flatten()
    }

    /// Whether an answer names the fault.
    #[must_use]
    pub fn is_named_by(&self, answer: &str) -> bool {
        let answer = answer.to_lowercase();
        self.names.iter().all(|words| words.iter().any(|word| answer.contains(word)))
    }
}

type Alert = (&'static str, &'static [(&'static str, &'static str)]);

const FAILING: Alert = ("NovaHostAlerterEndpointFailing", &[("route", "recovery")]);
const REFUSES: Alert = ("NovaHostAlerterEndpointRefuses", &[("route", "recovery")]);
const ABSENT: Alert = ("NovaHostAlerterAbsent", &[]);
const TOO_LONG: Alert = ("NovaHostAlerterMarkOpenTooLong", &[]);

/// Every one. Their order is that of `make drill FAULT=N`, from 1 on.
pub const ALL: &[Fault] = &[
    fault(
        "endpoint-down",
        "the endpoint of route recovery is down: nothing listens there",
        &[&["recovery", "endpoint", "receiver"], &["down", "refused", "nothing listens", "not listening"]],
        FAILING,
        an_endpoint_is_down,
    ),
    fault(
        "credentials",
        "the endpoint of route recovery does not believe our token: it answers 401",
        &[&["401", "token", "password", "credential"]],
        REFUSES,
        an_endpoint_refuses_our_credentials,
    ),
    fault(
        "certificate",
        "the endpoint of route recovery has a certificate that nobody here trusts",
        &[&["certificate", "tls", "ca-file"]],
        FAILING,
        an_endpoint_has_a_certificate_that_nobody_trusts,
    ),
    fault(
        "rejected",
        "the endpoint of route recovery takes others, but not the mark of compute1: it answers 422",
        &[&["compute1"], &["422", "reject"]],
        TOO_LONG,
        an_endpoint_rejects_one_mark,
    ),
    fault(
        "storm",
        "three hosts of rack1 are down at once, where one may be: a storm holds the rest",
        &[&["storm", "too many", "max-unhealthy"]],
        ("NovaHostAlerterStorm", &[("group", "rack1")]),
        a_storm_holds,
    ),
    fault(
        "pause",
        "somebody paused all groups for work at a switch, and forgot to resume",
        &[&["pause"]],
        ("NovaHostAlerterHeldForADay", &[("reason", "pause")]),
        a_pause_holds_a_host,
    ),
    fault(
        "maintenance",
        "a maintenance covers compute1, which was fenced meanwhile",
        &[&["maintenance"]],
        ("NovaHostAlerterHeldForADay", &[("reason", "maintenance")]),
        a_maintenance_holds_a_host,
    ),
    fault(
        "no-full-name",
        "nobody knows the full name of compute1: [hosts] domain is not set",
        &[&["domain", "full name", "fqdn"]],
        ("NovaHostAlerterMarkHeld", &[("reason", "no-fqdn")]),
        nobody_knows_the_hosts_full_name,
    ),
    fault(
        "damaged-row",
        "the row of compute1's delivery in the journal is damaged",
        &[&["row"], &["damaged", "corrupt"]],
        ("NovaHostAlerterDamagedRows", &[]),
        a_row_is_damaged,
    ),
    fault(
        "not-running",
        "the alerter was killed and nobody has started it again",
        &[&["alerter", "daemon"], &["killed", "not running", "stopped", "is down"]],
        ABSENT,
        the_daemon_does_not_run,
    ),
    fault(
        "route-removed",
        "route recovery was removed from the configuration by a reload while compute1 waits for it",
        &[&["recovery"], &["removed", "taken out", "not configured", "missing"]],
        ("NovaHostAlerterMarksWithoutRoute", &[]),
        a_route_is_removed_by_a_reload,
    ),
    fault(
        "configuration",
        "the configuration has a mistake (ulr for url), so that the alerter does not start",
        &[&["config", "ulr"], &["start", "ulr"]],
        ABSENT,
        the_alerter_does_not_start,
    ),
    fault(
        "journal",
        "the journal's file is no database any more, so that the alerter cannot run",
        &[
            &["journal", "marks.db", "database"],
            &["no database", "not a database", "cannot be read", "overwritten", "corrupt"],
        ],
        ABSENT,
        the_journal_cannot_be_read,
    ),
    Fault {
        takes_mounts: true,
        ..fault(
            "disk-full",
            "the journal's disk is full",
            &[&["disk", "file system", "space"], &["full", "space", "room"]],
            ("NovaHostAlerterJournalUnwritable", &[]),
            the_disk_is_full,
        )
    },
    fault(
        "name",
        "the name of the endpoint of route recovery has no address (DNS)",
        &[&["dns", "resolve", "no address"]],
        FAILING,
        a_name_has_no_address,
    ),
    fault(
        "address",
        "the url of route recovery is wrong: what listens there answers 404",
        &[&["404", "url of route recovery", "wrong url", "url is wrong", "not found"]],
        REFUSES,
        an_endpoint_has_moved,
    ),
    Fault {
        takes_mounts: true,
        ..fault(
            "doubtful",
            "fence_mark was run by hand for compute1, and Pacemaker knows of no fencing: nobody vouches for it",
            &[&["fence_mark", "by hand", "unconfirmed"]],
            ("NovaHostAlerterMarkHeld", &[("reason", "unconfirmed")]),
            nobody_vouches_for_a_mark,
        )
    },
    fault(
        "reload-refused",
        "somebody changed the configuration and reloaded; it has a mistake, and the alerter works on with the former one",
        &[&["config"], &["reload"], &["mistake", "refused", "invalid", "former", "typo"]],
        ("NovaHostAlerterDegraded", &[]),
        a_reload_is_refused,
    ),
    fault(
        "rejected-hosts",
        "the endpoint of route recovery rejects the hosts of rack2 (r2-1 to r2-3) with 422; it accepts r1-1",
        &[&["r2-", "rack2"], &["422", "reject"]],
        TOO_LONG,
        an_endpoint_rejects_some_hosts,
    ),
    Fault {
        takes_mounts: true,
        ..fault(
            "migration",
            "the migration from NovaEvacuate was left half-way: nova-evacuate is still in the cluster",
            &[&["evacuate", "migration"]],
            ("NovaHostAlerterDegraded", &[]),
            a_migration_is_left_half_way,
        )
    },
    Fault {
        takes_mounts: true,
        ..fault(
            "clocks",
            "the clock of Pacemaker's DC is ten minutes ahead of this controller's clock",
            &[&["clock", "ntp", "chrony"]],
            ("NovaHostAlerterDegraded", &[]),
            clocks_differ,
        )
    },
    Fault {
        takes_mounts: true,
        ..fault(
            "register-full",
            "the register is getting full: 1000 marks are open, and each is in it",
            &[&["register"], &["full", "size", "grow", "large", "kib"]],
            ("NovaHostAlerterDegraded", &[]),
            the_register_is_nearly_full,
        )
    },
];

const fn fault(
    name: &'static str,
    truth: &'static str,
    names: &'static [&'static [&'static str]],
    alert: Alert,
    prepare: fn(Place<'_>) -> anyhow::Result<Stand>,
) -> Fault {
    Fault { name, truth, names, alert, takes_mounts: false, prepare }
}
