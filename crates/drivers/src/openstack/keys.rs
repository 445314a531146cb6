//! A route's keys for its cloud, the same for every OpenStack driver.

use std::time::Duration;

use site::{Section, absolute};

use super::cloud::{CloudOptions, PATIENCE};
use crate::web::address;

/// The longest time limit of an exchange. A controller without its message bus never answers.
const LONGEST: u32 = 300;
/// The default time limit: a service may wait for a lock of its database.
const USUAL: u32 = 60;

/// Asks for every key, so that each is checked whatever is wrong with the others.
pub(crate) fn read(table: &mut Section<'_, '_>) -> CloudOptions {
    let timeout = Duration::from_secs(table.number("timeout", 1..=LONGEST).unwrap_or(USUAL).into());
    read_within(table, timeout)
}

/// The same, where each exchange has this time limit.
pub fn read_within(table: &mut Section<'_, '_>, timeout: Duration) -> CloudOptions {
    let cloud = table.text("cloud", name);
    let clouds_file = table.text("clouds-file", absolute);
    let allow_http = table.flag("allow-http").unwrap_or(false);
    let endpoint = table.text("endpoint", |text| base(text, allow_http));
    CloudOptions { cloud, clouds_file, endpoint, allow_http, timeout, patience: PATIENCE }
}

/// An address that a path can be put behind.
fn base(text: &str, allow_http: bool) -> Result<String, String> {
    match address(text, allow_http)?.query() {
        Some(_) => Err("must be an address without a query (?)".to_owned()),
        None => Ok(text.to_owned()),
    }
}

fn name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(char::is_control) {
        true => Err("must be a name on one line".to_owned()),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path would become a part of the query.
    #[test]
    fn an_endpoint_has_no_query() {
        assert!(base("https://h/v1/%(project_id)s", false).is_ok());
        assert!(base("https://h/v1?x=y", false).unwrap_err().contains("without a query"));
    }
}
