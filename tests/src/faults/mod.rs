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
        FAILING,
        an_endpoint_is_down,
    ),
    fault(
        "credentials",
        "the endpoint of route recovery does not believe our token: it answers 401",
        REFUSES,
        an_endpoint_refuses_our_credentials,
    ),
    fault(
        "certificate",
        "the endpoint of route recovery has a certificate that nobody here trusts",
        FAILING,
        an_endpoint_has_a_certificate_that_nobody_trusts,
    ),
    fault(
        "rejected",
        "the endpoint of route recovery takes others, but not the mark of compute1: it answers 422",
        TOO_LONG,
        an_endpoint_rejects_one_mark,
    ),
    fault(
        "storm",
        "three hosts of rack1 are down at once, where one may be: a storm holds the rest",
        ("NovaHostAlerterStorm", &[("group", "rack1")]),
        a_storm_holds,
    ),
    fault(
        "pause",
        "somebody paused all groups for work at a switch, and forgot to resume",
        ("NovaHostAlerterHeldForADay", &[("reason", "pause")]),
        a_pause_holds_a_host,
    ),
    fault(
        "maintenance",
        "a maintenance covers compute1, which was fenced meanwhile",
        ("NovaHostAlerterHeldForADay", &[("reason", "maintenance")]),
        a_maintenance_holds_a_host,
    ),
    fault(
        "no-full-name",
        "nobody knows the full name of compute1: [hosts] domain is not set",
        ("NovaHostAlerterMarkHeld", &[("reason", "no-fqdn")]),
        nobody_knows_the_hosts_full_name,
    ),
    fault(
        "damaged-row",
        "the row of compute1's delivery in the journal is damaged",
        ("NovaHostAlerterDamagedRows", &[]),
        a_row_is_damaged,
    ),
    fault(
        "not-running",
        "the alerter was killed and nobody has started it again",
        ABSENT,
        the_daemon_does_not_run,
    ),
    fault(
        "route-removed",
        "route recovery was taken out of the configuration by a reload while compute1 waits for it",
        ("NovaHostAlerterMarksWithoutRoute", &[]),
        a_route_is_removed_by_a_reload,
    ),
    fault(
        "configuration",
        "the configuration has a mistake (ulr for url), so that the alerter does not start",
        ABSENT,
        the_alerter_does_not_start,
    ),
    fault(
        "journal",
        "the journal's file is no database any more, so that the alerter cannot run",
        ABSENT,
        the_journal_cannot_be_read,
    ),
    Fault {
        takes_mounts: true,
        ..fault(
            "disk-full",
            "the journal's disk is full",
            ("NovaHostAlerterJournalUnwritable", &[]),
            the_disk_is_full,
        )
    },
    fault(
        "name",
        "the name of the endpoint of route recovery has no address (DNS)",
        FAILING,
        a_name_has_no_address,
    ),
    fault(
        "address",
        "the url of route recovery is wrong: what listens there answers 404",
        REFUSES,
        an_endpoint_has_moved,
    ),
    Fault {
        takes_mounts: true,
        ..fault(
            "doubtful",
            "fence_mark was run by hand for compute1, and Pacemaker knows of no fencing: nobody vouches for it",
            ("NovaHostAlerterMarkHeld", &[("reason", "unconfirmed")]),
            nobody_vouches_for_a_mark,
        )
    },
    fault(
        "reload-refused",
        "somebody changed the configuration and reloaded; it has a mistake, and the alerter works on with the former one",
        ("NovaHostAlerterDegraded", &[]),
        a_reload_is_refused,
    ),
];

const fn fault(
    name: &'static str,
    truth: &'static str,
    alert: Alert,
    prepare: fn(Place<'_>) -> anyhow::Result<Stand>,
) -> Fault {
    Fault { name, truth, alert, takes_mounts: false, prepare }
}
