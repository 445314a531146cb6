//! What its tool's complaints about etcd come to.

/// Why etcd did not do what it was asked for. What it said is not repeated: it may hold what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdFault {
    /// Nobody said where it is.
    #[error("[store.etcd] in alerter.toml does not say where it is: run `nova-host-alerter check-config`")]
    Unknown,
    /// No member with a leader answered in time.
    #[error("no answer in time: look whether most of its members run")]
    Silent,
    /// No connection was made. Who refuses our certificate does not say so.
    #[error(
        "none of its members can be spoken to: look whether they can be reached from here, and whether they take our certificate and until when it is valid"
    )]
    Unreachable,
    /// It takes nothing more.
    #[error(
        "its database is full (NOSPACE): compact and defragment it or raise its quota, then run `etcdctl alarm disarm`"
    )]
    Full,
    /// It does not know us.
    #[error("it does not take our user and password: look at user and password-file in [store.etcd]")]
    Login,
    /// It knows us, and we may not.
    #[error("our user may not do this: grant its role read and write of the prefix in [store.etcd]")]
    Forbidden,
    /// One of the two certificates.
    #[error(
        "it does not take our certificate, or we do not take its: look at the files in [store.etcd], and until when they are valid"
    )]
    Certificate,
    /// Something else, which its own log has.
    #[error("it refused: look at its log")]
    Refused,
}

impl EtcdFault {
    /// What its tool's complaint comes to. What says more comes first: a member that cannot be spoken to is silent as well.
    pub(super) fn of(said: &str) -> Self {
        const WORDS: [(&str, EtcdFault); 15] = [
            ("database space exceeded", EtcdFault::Full),
            ("authentication failed", EtcdFault::Login),
            ("user name is empty", EtcdFault::Login),
            ("user name not found", EtcdFault::Login),
            ("permission denied", EtcdFault::Forbidden),
            ("x509:", EtcdFault::Certificate),
            ("tls:", EtcdFault::Certificate),
            ("certificate", EtcdFault::Certificate),
            ("TransientFailure", EtcdFault::Unreachable),
            ("connection refused", EtcdFault::Unreachable),
            ("deadline exceeded", EtcdFault::Silent),
            ("request timed out", EtcdFault::Silent),
            ("no leader", EtcdFault::Silent),
            ("leader changed", EtcdFault::Silent),
            ("Unavailable", EtcdFault::Silent),
        ];
        WORDS.iter().find(|(word, _)| said.contains(word)).map_or(Self::Refused, |(_, fault)| *fault)
    }

    /// A stable machine word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Unknown => "etcd-unknown",
            Self::Silent => "etcd-silent",
            Self::Unreachable => "etcd-unreachable",
            Self::Full => "etcd-full",
            Self::Login => "etcd-login",
            Self::Forbidden => "etcd-forbidden",
            Self::Certificate => "etcd-certificate",
            Self::Refused => "etcd-refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 3.4 says it. The broken variant takes the first word that fits: every fault is one of time as well.
    #[test]
    fn a_complaint_comes_to_its_cause() {
        let handshake = r#"{"level":"warn","error":"rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = \"transport: authentication handshake failed: x509: certificate signed by unknown authority\""}
Error: context deadline exceeded"#;
        for (said, fault) in [
            ("Error: etcdserver: mvcc: database space exceeded", EtcdFault::Full),
            ("Error: etcdserver: authentication failed, invalid user ID or password", EtcdFault::Login),
            ("Error: etcdserver: permission denied", EtcdFault::Forbidden),
            (handshake, EtcdFault::Certificate),
            (
                "\"error\":\"rpc error: code = DeadlineExceeded desc = latest balancer error: all SubConns are in TransientFailure\"\nError: context deadline exceeded",
                EtcdFault::Unreachable,
            ),
            ("Error: context deadline exceeded", EtcdFault::Silent),
            (
                "Error: etcdserver: request timed out, possibly due to previous leader failure",
                EtcdFault::Silent,
            ),
            ("Error: etcdserver: too many operations in txn request", EtcdFault::Refused),
        ] {
            assert_eq!(EtcdFault::of(said), fault, "{said}");
        }
    }
}
