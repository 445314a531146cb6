//! Several entries at once: missing ones are written, and one read afterwards shows the result.

use std::collections::BTreeMap;
use std::time::Instant;

use super::attrd::pause;
use super::error::RegisterError;
use super::keeper::Keeper;
use super::published::Published;
use super::tools::Tools;
use marks::register::Entry;

/// See [`super::publish_all`].
pub(super) fn all(
    keeper: &dyn Keeper,
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
    let inserted = keeper.insert_all((tools, deadline), &fit);
    if matches!(inserted, Ok(true)) {
        return confirm(keeper, tools, fit, published, deadline);
    }
    let missing = published.sort(fit, &values(keeper, tools, deadline)?);
    if missing.is_empty() {
        return Ok(());
    }
    inserted?;
    let written = keeper.write_all((tools, deadline), missing, published)?;
    confirm(keeper, tools, written, published, deadline)
}

/// A write counts only once it can be read back.
fn confirm(
    keeper: &dyn Keeper,
    tools: &Tools,
    written: Vec<&Entry>,
    published: &mut Published,
    deadline: Instant,
) -> Result<(), RegisterError> {
    let begun = Instant::now();
    let mut missing = published.sort(written, &values(keeper, tools, deadline)?);
    while keeper.is_late() && !missing.is_empty() && Instant::now() < deadline {
        pause(begun);
        let Ok(values) = values(keeper, tools, deadline) else { break };
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

/// Everything that is there now.
pub(super) fn values(
    keeper: &dyn Keeper,
    tools: &Tools,
    deadline: Instant,
) -> Result<BTreeMap<String, String>, RegisterError> {
    let pairs = keeper.all(tools, deadline)?;
    Ok(pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect())
}
