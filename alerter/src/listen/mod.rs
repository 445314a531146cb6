//! Serves small public answers: addresses by RFC 3986, and plain HTTP with bounds, so that one bad client does not harm the others.
//! Clients are not authenticated: these answers are only for reading, and each has its own address.

mod address;
mod names;
mod places;
mod serve;
mod socket;
pub mod tls;
mod unserved;

pub(crate) use address::PATH_MAX;
pub use address::{Address, Host, parse};
pub use names::Names;
pub(crate) use places::{Door, Place};
pub use serve::{Endpoint, run};
pub(crate) use serve::{Limits, attend};
pub use socket::Owner;
pub(crate) use socket::make_directory;
pub use unserved::Unserved;
