//! Deleting old entries.

use std::time::Instant;

use super::attrd::pause;
use super::error::{Done, RegisterError};
use super::keeper::Keeper;
use super::publish;
use super::tools::Tools;
use marks::register::Key;

/// See [`super::clear`].
pub(super) fn clear(keeper: &dyn Keeper, tools: &Tools, keys: &[Key], deadline: Instant) -> Done {
    let standing = publish::values(keeper, (tools, deadline))?;
    let mut keys: Vec<&Key> = keys.iter().filter(|key| standing.contains_key(&key.to_string())).collect();
    keys.sort_by_key(|key| turn(key));
    let keys: Vec<String> = keys.into_iter().map(Key::to_string).collect();
    if keys.is_empty() {
        return Ok(());
    }
    keeper.delete(tools, &keys, deadline)?;
    confirm(keeper, tools, &keys, deadline)
}

/// A fencing goes first and a settlement last: any rest in between belongs to a mark that has ended, and is not sent. The
/// same holds for a decision and its end.
fn turn(key: &Key) -> u8 {
    match key {
        Key::Fencing(_) | Key::Again(_) => 0,
        Key::Mark(_)
        | Key::Acknowledged(..)
        | Key::Returned(_)
        | Key::Operation(_)
        | Key::Decision(_)
        | Key::Watermark(_) => 1,
        Key::Settled(_) | Key::Ending(_) => 2,
    }
}

/// At the end of the time, the last read says what is wrong.
fn confirm(keeper: &dyn Keeper, tools: &Tools, keys: &[String], deadline: Instant) -> Done {
    let (begun, mut seen) = (Instant::now(), None);
    loop {
        let standing = match publish::values(keeper, (tools, deadline)) {
            Ok(standing) => standing,
            Err(e) => return Err(seen.unwrap_or(e)),
        };
        let Some(key) = keys.iter().find(|key| standing.contains_key(*key)) else { return Ok(()) };
        let not_gone = RegisterError::NotGone { key: key.clone() };
        if !keeper.is_late() {
            return Err(not_gone);
        }
        seen = Some(not_gone);
        pause(begun);
    }
}
