//! What can be wrong with the cluster, for machines and for people.

/// What is wrong, and a sentence for people.
pub type Fault = (Matter, String);

/// What somebody should check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// This partition may not act.
    NoQuorum,
    /// Whether it may act cannot be read.
    QuorumUnknown,
    /// The register cannot be read.
    RegisterUnreadable,
    /// The register cannot be written.
    RegisterUnwritable,
    /// The CIB cannot be read.
    CibUnreadable,
    /// The fencing history cannot be read.
    HistoryUnreadable,
    /// The evidence directory cannot be used, or a file in it.
    Evidence,
    /// An entry of the register is not believed.
    RegisterEntry,
    /// This controller has no register key, or another one than the other controllers.
    RegisterKey,
    /// This controller lacks a part of the register.
    RegisterPartial,
    /// The register has grown past a quarter of its limit.
    RegisterSize,
    /// A clock differs from this controller's.
    ClockSkew,
    /// Something else in the cluster recovers hosts too.
    OtherRecovery,
}
