//! Several entries at once: missing ones are written, and one read afterwards shows the result.

use std::collections::BTreeMap;
use std::time::Instant;

use super::attrd::pause;
use super::error::{Done, RegisterError};
use super::keeper::{At, Keeper};
use super::published::Published;
use marks::register::Entry;

/// See [`super::publish_all`].
pub(super) fn all(keeper: &dyn Keeper, at: At<'_>, entries: &[Entry], published: &mut Published) -> Done {
    let (fit, unfit): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| entry.is_fit());
    published.failed.extend(unfit.into_iter().map(|entry| (entry.key(), RegisterError::unfit(entry))));
    if fit.is_empty() {
        return Ok(());
    }
    let inserted = keeper.insert_all(at, &fit);
    if matches!(inserted, Ok(true)) {
        return confirm(keeper, at, fit, published);
    }
    let missing = published.sort(fit, &values(keeper, at)?);
    if missing.is_empty() {
        return Ok(());
    }
    inserted?;
    let written = keeper.write_all(at, missing, published)?;
    confirm(keeper, at, written, published)
}

/// A write counts only once it can be read back.
fn confirm(keeper: &dyn Keeper, at: At<'_>, written: Vec<&Entry>, published: &mut Published) -> Done {
    let (begun, (_, deadline)) = (Instant::now(), at);
    let mut missing = published.sort(written, &values(keeper, at)?);
    while keeper.is_late() && !missing.is_empty() && Instant::now() < deadline {
        pause(begun);
        let Ok(values) = values(keeper, at) else { break };
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
pub(super) fn values(keeper: &dyn Keeper, (tools, deadline): At<'_>) -> Done<BTreeMap<String, String>> {
    let pairs = keeper.all(tools, deadline)?;
    Ok(pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect())
}
