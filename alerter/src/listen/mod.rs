//! Where small answers are served to whoever asks: addresses by RFC 3986, and plain HTTP with bounds that keep one bad client
//! from being everybody's. Nothing here asks who a client is: these answers are for reading, and each has its own address.

mod address;
mod names;
mod serve;
mod socket;
pub mod tls;
mod unserved;

pub(crate) use address::PATH_MAX;
pub use address::{Address, Host, parse};
pub use names::{Names, only as names_only};
pub use serve::{Endpoint, run};
pub use socket::Owner;
pub(crate) use socket::make_directory;
pub use unserved::Unserved;
