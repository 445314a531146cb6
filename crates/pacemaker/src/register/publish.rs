//! Several entries at once: what is missing is written, and one look afterwards says what stands.

use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use super::attrd::PAUSE;
use super::error::RegisterError;
use super::published::Published;
use super::tools::Tools;
use super::{attrd, cib};
use marks::register::{Entry, Register};

/// See [`super::publish_all`].
pub(super) fn all(register: Register, tools: &Tools, entries: &[Entry], deadline: Instant) -> Published {
    let mut published = Published::default();
    published.stopped = publish(register, tools, entries, deadline, &mut published).err();
    published
}

fn publish(
    register: Register,
    tools: &Tools,
    entries: &[Entry],
    deadline: Instant,
    published: &mut Published,
) -> Result<(), RegisterError> {
    let (fit, unfit): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| entry.is_fit());
    published.failed.extend(unfit.into_iter().map(|entry| (entry.key(), RegisterError::unfit(entry))));
    if fit.is_empty() {
        return Ok(());
    }
    // The CIB refuses what it has: most often no look before is needed. attrd would write over it.
    let inserted = if register == Register::Cib { cib::insert_all(tools, &fit, deadline) } else { Ok(false) };
    if matches!(inserted, Ok(true)) {
        return confirm(register, tools, fit, published, deadline);
    }
    let missing = published.sort(fit, &values(register, tools, deadline)?);
    if missing.is_empty() {
        return Ok(());
    }
    inserted?;
    let written = match register {
        Register::Attrd => published.write(missing, |entry| attrd::write(tools, entry, deadline))?,
        Register::Cib => cib::write_all(tools, missing, published, deadline)?,
        Register::None => return Err(RegisterError::None),
    };
    confirm(register, tools, written, published, deadline)
}

/// Only what can be read again counts as written. The CIB has it by the time of its answer; attrd has it later.
fn confirm(
    register: Register,
    tools: &Tools,
    written: Vec<&Entry>,
    published: &mut Published,
    deadline: Instant,
) -> Result<(), RegisterError> {
    let mut missing = published.sort(written, &values(register, tools, deadline)?);
    while register == Register::Attrd && !missing.is_empty() && Instant::now() + PAUSE < deadline {
        thread::sleep(PAUSE);
        let Ok(values) = values(register, tools, deadline) else { break };
        missing = published.sort(missing, &values);
    }
    let lost = missing.into_iter().map(|entry| {
        let key = entry.key();
        let error = RegisterError::NotReadBack { key: key.to_string() };
        (key, error)
    });
    published.failed.extend(lost);
    Ok(())
}

/// Everything that stands there, as it is.
pub(super) fn values(
    register: Register,
    tools: &Tools,
    deadline: Instant,
) -> Result<BTreeMap<String, String>, RegisterError> {
    let pairs = match register {
        Register::Attrd => attrd::all(tools, deadline)?,
        Register::Cib => cib::all(tools, deadline)?,
        Register::None => return Err(RegisterError::None),
    };
    Ok(pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect())
}
