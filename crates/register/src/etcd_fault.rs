//! The meaning of etcdctl's error messages.

/// Why etcd did not do what it was asked for. Its own message is not repeated: it may show what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdFault {
    /// Its address is not set.
    #[error("[store.etcd] in alerter.toml has no usable endpoints: run `nova-host-alerter check-config`")]
    Unknown,
    /// No member with a leader answered in time.
    #[error("no answer in time: check that most of its members run")]
    Silent,
    /// No connection was made. An endpoint that rejects our certificate does not say so.
    #[error(
        "no member can be reached: check the network, whether the members accept our certificate, and when it expires"
    )]
    Unreachable,
    /// It takes no more data.
    #[error(
        "its database is full (NOSPACE): compact and defragment it or raise its quota, then run `etcdctl alarm disarm`"
    )]
    Full,
    /// It does not know our user.
    #[error("it rejects our user and password: check user and password-file in [store.etcd]")]
    Login,
    /// Our user may not do this.
    #[error("our user may not do this: grant its role read and write of the prefix in [store.etcd]")]
    Forbidden,
    /// One of the two certificates.
    #[error(
        "it rejects our certificate, or we reject its: check the files in [store.etcd], and when the certificates expire"
    )]
    Certificate,
    /// Something else, which is in its own log.
    #[error("it refused: check its log")]
    Refused,
}

impl EtcdFault {
    /// The meaning of an error message. More specific patterns come first: an unreachable member is silent as well.
    pub(crate) fn of(said: &str) -> Self {
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

    /// As 3.4 prints it. The broken variant takes the first pattern that fits: every fault is also a timeout.
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
