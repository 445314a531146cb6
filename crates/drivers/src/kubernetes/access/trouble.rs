//! Why the API server gave no answer. Pure.

use crate::driver::{Failure, Outcome};
use crate::web::Fault;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The time limit ended before the request was sent.
    Late,
    /// The server did not answer.
    Fault(Fault),
}

impl Trouble {
    /// The outcome for a mark, if this was the first request of its exchange.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Late => Outcome::Unreachable(Failure::new(
                "timeout",
                "the time limit ended before the request was sent: raise timeout if this repeats",
            )),
            Self::Fault(fault) => fault.outcome(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant counts a request that was never made as one that may have arrived.
    #[test]
    fn what_was_not_sent_is_not_ambiguous() {
        assert_eq!(Trouble::Late.outcome().words(), ("unreachable", "timeout"));
        for fault in [Fault::Dns, Fault::Timeout, Fault::Closed] {
            assert_eq!(Trouble::Fault(fault.clone()).outcome(), fault.outcome());
        }
    }
}
