//! The names that are known here, and those that are like an unknown one.

use std::collections::BTreeSet;

use journal::Journal;
use marks::host::HostName;
use marks::id::MarkId;
use site::suggest;

use super::merged::{self, RegisterView};
use super::sources::Sources;
use crate::cli::Cli;

/// So many of the newest marks are read for names.
const RECENT: u32 = 10_000;
/// More names than this are no help.
const NAMES: usize = 5;

/// There is no host or mark of this name.
#[derive(Debug, thiserror::Error)]
#[error("no mark has the host name or id {target}: {hint}")]
pub(super) struct Near {
    target: String,
    hint: String,
}

impl Near {
    /// With the hosts of this controller's journal and of the register that have almost this name.
    pub(super) fn of(cli: &Cli, target: &str) -> Self {
        let hosts = Sources::quiet(cli).map_or_else(|_| BTreeSet::new(), |sources| hosts(&sources));
        Self::among(target, &hosts)
    }

    fn among(target: &str, hosts: &BTreeSet<HostName>) -> Self {
        let near = suggest::near(target, hosts.iter().map(HostName::as_str));
        let some: Vec<&str> = hosts.iter().map(HostName::as_str).take(NAMES).collect();
        let hint = match (near.is_empty(), hosts.len()) {
            (false, _) => format!("did you mean {}?", near[..near.len().min(NAMES)].join(" or ")),
            (true, 0) => "there is no mark at all here".to_owned(),
            (true, 1..=NAMES) => format!("known are {}", some.join(", ")),
            (true, _) => {
                format!("known are {} and others: see `nova-host-alerter list --all`", some.join(", "))
            }
        };
        Self { target: target.escape_default().to_string(), hint }
    }
}

/// Whether any mark is of this host, or has this id. In doubt it is: a journal that cannot be read says nothing.
pub(super) fn is_known(cli: &Cli, target: &str) -> bool {
    let Ok(sources) = Sources::quiet(cli) else { return true };
    if let Ok(id) = MarkId::parse(target) {
        return sources.journal.as_ref().is_none_or(|journal| !matches!(journal.mark(id), Ok(None)));
    }
    HostName::parse(target).is_ok_and(|host| hosts(&sources).contains(&host))
}

/// Every host that a mark is known of.
pub(super) fn hosts(sources: &Sources) -> BTreeSet<HostName> {
    let rows = |journal: &Journal| {
        let mut rows = journal.recent_marks(RECENT).ok()?.sound;
        rows.extend(journal.unfinished_marks().ok()?.sound);
        Some(rows)
    };
    let here = sources.journal.as_ref().and_then(rows).unwrap_or_default();
    let there = register(&sources.register);
    here.into_iter().map(|row| row.node).chain(there).collect()
}

fn register(register: &RegisterView) -> Vec<HostName> {
    let found = merged::marks(None, Vec::new(), register, |_| true).unwrap_or_default();
    found.into_iter().map(|found| found.mark.node).collect()
}
