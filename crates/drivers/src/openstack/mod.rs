//! What all drivers of OpenStack's services share: the description of a cloud, tokens of Keystone, the catalog, and
//! exchanges with a service that it names.

mod auth;
mod by_host;
mod catalog;
mod check;
mod cloud;
mod credentials;
mod servers;
mod session;
mod tokens;
mod trouble;
mod versions;
mod words;

pub use by_host::ByHost;
pub(crate) use catalog::{CLUSTERING, COMPUTE, INSTANCE_HA, ORCHESTRATION, Service, WORKFLOW};
pub(crate) use check::{ask_for, try_out};
pub(crate) use cloud::read as read_options;
pub use cloud::{CloudOptions, read_within};
pub(crate) use servers::{Place, each_on, is_known, place_of};
pub(crate) use session::{Ask, Session};
pub(crate) use trouble::{described, found, usual};

/// Whether it is an id: a service's value must not become another path.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// What a driver answers from its `session` alone: in the `impl Driver` of each.
macro_rules! of_session {
    ($who:literal) => {
        fn endpoint(&self) -> String {
            format!(concat!($who, " of {}"), self.session.shown())
        }

        crate::openstack::of_session!();
    };
    () => {
        fn kind(&self) -> &'static str {
            KIND.word
        }

        fn target(&self) -> String {
            self.session.target()
        }

        fn limit(&self) -> std::time::Duration {
            self.session.limit()
        }

        fn deliver<'a>(&'a self, message: Message<'a>) -> crate::driver::Exchange<'a> {
            Box::pin(self.exchange(message))
        }
    };
}
pub(crate) use of_session;
