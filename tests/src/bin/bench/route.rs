//! What the alerter is configured with.

use std::fmt::Write as _;
use std::net::SocketAddr;

/// What `[delivery] max-in-flight` is where nothing is configured.
pub(crate) const USUAL_IN_FLIGHT: usize = 32;

/// How many marks a kill may cause to be sent again: those under way, and those whose acknowledgements are written
/// together.
pub(crate) const SENT_AGAIN: usize = USUAL_IN_FLIGHT + 64;

/// `[delivery]` and an `http` route for each name and address.
pub(crate) fn tables(in_flight: usize, routes: &[(&str, SocketAddr)]) -> String {
    let mut text = format!("[delivery]\nmax-in-flight = {in_flight}\n");
    for (name, address) in routes {
        let _infallible = write!(text, "\n[http.{name}]\nurl = \"http://{address}/v1/host-failures\"\n");
    }
    text
}
