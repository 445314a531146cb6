//! What all drivers of OpenStack's services share: the description of a cloud, tokens of Keystone, the catalog, and
//! exchanges with a service that it names.

mod auth;
mod by_host;
mod catalog;
mod cloud;
mod credentials;
mod route;
mod servers;
mod session;
mod tokens;
mod trouble;
mod versions;
mod words;

pub use by_host::ByHost;
pub(crate) use catalog::{CLUSTERING, COMPUTE, INSTANCE_HA, ORCHESTRATION, WORKFLOW};
pub(crate) use cloud::read as read_options;
pub use cloud::{CloudOptions, read_within};
pub(crate) use route::Own;
pub use route::Route;
pub(crate) use servers::{Place, rows};
pub(crate) use session::{Exchange, Session};
pub(crate) use trouble::{described, usual};

/// Whether it is an id: a service's value must not become another path.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
