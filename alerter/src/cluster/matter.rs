//! What can be wrong with the cluster, for machines and for people.

/// What is wrong, for machines and for people.
pub type Fault = (Matter, String);

/// What somebody should look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// This partition may not act.
    NoQuorum,
    /// Nobody can say whether it may.
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
    /// The register says something that is not believed.
    RegisterEntry,
    /// This controller has no key for the register, or not the one of the others.
    RegisterKey,
    /// This controller lacks a part of the register.
    RegisterPartial,
    /// The register grows towards what it can hold.
    RegisterSize,
    /// A clock differs from this controller's.
    ClockSkew,
    /// Something else in the cluster recovers hosts too.
    OtherRecovery,
}

impl Matter {
    /// The word in notices.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoQuorum => "no-quorum",
            Self::QuorumUnknown => "quorum-unknown",
            Self::RegisterUnreadable => "register-unreadable",
            Self::RegisterUnwritable => "register-unwritable",
            Self::CibUnreadable => "cib-unreadable",
            Self::HistoryUnreadable => "history-unreadable",
            Self::Evidence => "evidence",
            Self::RegisterEntry => "register-entry",
            Self::RegisterKey => "register-key",
            Self::RegisterPartial => "register-partial",
            Self::RegisterSize => "register-size",
            Self::ClockSkew => "clock-skew",
            Self::OtherRecovery => "other-recovery",
        }
    }
}
