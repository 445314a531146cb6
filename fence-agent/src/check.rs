//! `status`, `monitor` and `validate-all`: checks without a mark.

use std::time::Duration;

use journal::{Agent, JournalError};
use marks::host::HostName;
use pacemaker::cib::{Cib, MarkDevice, MarkLevel};
use pacemaker::register::RegisterError;

use crate::call::{Call, is_cluster_host};
use crate::failure::Failure;
use crate::guard::Refusal;
use crate::settings::{self, Depth, Settings, Target};
use crate::{cluster, publish};

/// The shortest time that the fencer must give `off`: the agent's own limit is 20 s, and it must be able to report why it
/// failed.
const OFF_FLOOR: Duration = Duration::from_secs(30);

/// Whether the host may be marked, by its name alone: no journal is opened and no program started.
///
/// # Errors
/// [`Failure`]: the device must not be asked for this host.
pub fn status(call: &Call, target: &Target) -> Result<(), Failure> {
    call.judge_name(target)
}

/// Whether the options can be used. Only the configuration is read.
///
/// # Errors
/// [`Failure`] with everything that an operator should correct.
pub fn validate(call: &Call) -> Result<(), Failure> {
    let settings = call.settings()?;
    failed_if(settings.complaints(&call.given, Depth::Everything))
}

/// Whether a mark could be written now, and whether the cluster's levels are right.
///
/// # Errors
/// [`Failure`] with everything that an operator should correct.
pub fn monitor(call: &Call) -> Result<(), Failure> {
    let (settings, site_complaints) = call.settings_and_site_complaints()?;
    let mut complaints = settings.complaints(&call.given, Depth::WhatIsUsed);
    complaints.extend(site_complaints);
    match writable(&settings) {
        Ok(journal) => complaints.extend(register_complaint(call, &settings, &journal)),
        Err(e) => complaints.push(e.to_string()),
    }
    match cluster::cib(&call.paths, None) {
        Ok((cib, _not_live)) => complaints.extend(cluster_complaints(call, &settings, &cib)),
        Err(e) if call.from_fencer || is_cluster_host(&call.paths) => complaints.push(e.to_string()),
        Err(e) => call.report.warning(&e.to_string()),
    }
    failed_if(complaints)
}

fn writable(settings: &Settings) -> Result<Agent, JournalError> {
    let mut journal = settings.open_store()?;
    journal.check_writable()?;
    Ok(journal)
}

/// Without quorum nothing is wrong here: the rest is published when the other controllers are back.
fn register_complaint(call: &Call, settings: &Settings, journal: &Agent) -> Option<String> {
    let e = publish::catch_up(call, settings, journal).err()?;
    let word = settings.register().as_str();
    let text = format!("the register {word} may lack fencings of this controller: {e}");
    let no_quorum = matches!(e, Failure::Register(RegisterError::NoQuorum));
    if !no_quorum && (call.from_fencer || is_cluster_host(&call.paths)) {
        return Some(text);
    }
    call.report.warning(&text);
    None
}

fn cluster_complaints(call: &Call, settings: &Settings, cib: &Cib) -> Vec<String> {
    let levels = cib.mark_levels();
    if levels.is_empty() {
        call.report.warning("no fencing level has a fence_mark device, so no host is marked: put it behind the power device of each compute host");
    }
    let floor = OFF_FLOOR + settings.delay;
    let slow = cib.fence_mark_devices().into_iter().filter_map(|device| limit_complaint(&device, floor));
    let guests = guests(call, cib);
    levels.iter().filter_map(MarkLevel::complaint).chain(slow).chain(guests).collect()
}

/// A pattern covers many; a name is meant.
fn guests(call: &Call, cib: &Cib) -> Vec<String> {
    let hosts = settings::hosts(&call.given).ok();
    let is_named = |node: &&HostName| hosts.as_ref().is_some_and(|hosts| hosts.names_literally(node));
    let named = cib.guest_nodes().iter().filter(is_named);
    named.map(|node| format!("hosts names {node}: {}", Refusal::Guest)).collect()
}

fn limit_complaint(device: &MarkDevice, floor: Duration) -> Option<String> {
    let limit = device.off_limit.filter(|limit| *limit < floor)?;
    let (id, limit, floor) = (&device.id, limit.as_secs(), floor.as_secs());
    // Pacemaker would take the parameter's full name in a message for its own timeout.
    Some(format!(
        "{id} allows only {limit} s for off, it needs {floor} s: allow {} s in its pcmk_off_* parameter",
        floor + 10
    ))
}

fn failed_if(complaints: Vec<String>) -> Result<(), Failure> {
    if complaints.is_empty() { Ok(()) } else { Err(Failure::Complaints(complaints)) }
}
