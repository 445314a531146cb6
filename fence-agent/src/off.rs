//! `off`: records that a host was fenced, and reports success only once the record survives a power cut.

use std::thread;

use marks::fencing::{Fencing, Origin};
use marks::id::FencingId;
use marks::time::Timestamp;
use pacemaker::cib::Cib;

use crate::call::{Call, controller};
use crate::failure::Failure;
use crate::settings::{Depth, Settings, Target, domain};
use crate::{cluster, guard, keep};

/// Checks whether the host may be marked, and marks it. It judges nothing else: Pacemaker has decided that it is dead.
///
/// # Errors
/// [`Failure`]: the host is not surely marked.
pub fn run(call: &Call, target: &Target) -> Result<(), Failure> {
    let settings = call.settings()?;
    warn_of_oddities(call, &settings);
    thread::sleep(settings.delay);
    let cib = judge(call, target)?;
    let fencing = fencing(call, target, &settings, cib.as_ref());
    Ok(keep::keep(call, &settings, &fencing)?)
}

/// Faults for an operator must not leave a dead host unmarked.
fn warn_of_oddities(call: &Call, settings: &Settings) {
    let conflicts = call.given.conflicts().into_iter();
    let conflicts = conflicts
        .map(|name| format!("{name} is also given under its old name, with another value that is ignored"));
    let loud = settings.register_complaint();
    for text in settings.complaints(&call.given, Depth::Everything).into_iter().chain(conflicts) {
        // The other controllers may never hear of the mark.
        match loud.as_ref() == Some(&text) {
            true => call.report.failure(&text),
            false => call.report.warning(&text),
        }
    }
}

/// The CIB is read only for the fencer: in a shell there may be no cluster.
fn judge(call: &Call, target: &Target) -> Result<Option<Cib>, Failure> {
    call.judge_name(target)?;
    if !call.from_fencer {
        return Ok(None);
    }
    let (cib, not_live) = cluster::cib(&call.paths, Some(&target.node))?;
    if let Some(why) = not_live {
        call.report.warning(&format!(
            "the life of {} that ended is not known, because the running cluster gave no answer: {why}",
            target.node
        ));
    }
    guard::by_name(&target.node, &crate::settings::hosts(&call.given)?, cib.cluster_nodes())?;
    guard::by_kind(&target.node, &cib)?;
    guard::by_topology(&cib.mark_levels_of(&target.node))?;
    Ok(Some(cib))
}

fn fencing(call: &Call, target: &Target, settings: &Settings, cib: Option<&Cib>) -> Fencing {
    Fencing {
        id: FencingId::generate(),
        node: target.node.clone(),
        plug: target.plug.clone(),
        asked_at: call.asked_at,
        committed_at: Timestamp::now(),
        seen_by: controller(),
        origin: if call.from_fencer { Origin::Fencer } else { Origin::Shell },
        incarnation: cib.and_then(|cib| cib.incarnation_of(&target.node)),
        already_down: cib.and_then(|cib| cib.fenced_before(&target.node)),
        given_domain: settings.domain.clone().filter(|text| domain(text).is_ok()),
        given_shared_storage: settings.shared_storage,
        cause: cib.and_then(|cib| cib.complaint_of(&target.node)),
    }
}
