//! `[healthcheck]`, and the addresses that every endpoint of our own is given.

use std::path::PathBuf;
use std::time::Duration;

use alerter::config::{CacheControl, HealthFormat, Healthcheck};
use alerter::listen::{Address, Host, Owner};

use crate::config::Site;

const ROUTE: &str = "[http.recovery]\nurl = \"http://127.0.0.1:8080/v1/host-failures\"\n";

fn site(table: &str) -> Site {
    Site::new(&format!("{ROUTE}[healthcheck]\n{table}"))
}

fn read(table: &str) -> Healthcheck {
    site(table).settings().healthcheck
}

/// S3-34, S3-43: without a table, and without a `uri`, nothing is served; the rest has its defaults.
#[test]
fn it_is_off_unless_it_has_an_address() {
    let default = Site::new(ROUTE).settings().healthcheck;
    let (ttl, cache) = (Some(Duration::from_secs(300)), CacheControl::MaxAge(300));
    assert_eq!(default, Healthcheck { served: None, ttl, cache, format: HealthFormat::Nova });
    assert_eq!(read(""), default);
    assert_eq!(read("ttl = 300"), default);
}

/// S3-17, S3-40: the document's own samples, as far as they are possible: no port is above 65535.
#[test]
fn addresses_and_their_owners_are_read() {
    let localhost = Address::Tcp { host: Host::Name("localhost".into()), port: 42424 };
    let socket = Address::Unix(PathBuf::from("/run/nova/nova-compute.sock"));
    for (uri, addresses) in [
        ("tcp://localhost:42424", vec![localhost.clone()]),
        ("unix:///run/nova/nova-compute.sock", vec![socket.clone()]),
        ("tcp://localhost:42424,unix:///run/nova/nova-compute.sock", vec![localhost, socket]),
    ] {
        let served = read(&format!("uri = \"{uri}\"")).served.unwrap();
        assert_eq!((served.addresses, served.owner), (addresses, Owner::default()), "{uri}");
    }
    let served = read("uri = \"unix:///a\"\nowner = \"root\"\ngroup = \"root\"").served.unwrap();
    assert_eq!(served.owner, Owner { user: Some(0), group: Some(0) });
}

/// S3-43, S3-45, S3-46: `cache-control` follows `ttl` where it is unset, whatever the document's sample shows.
#[test]
fn the_age_of_an_answer_follows_from_its_ttl() {
    use CacheControl::{MaxAge, NoCache, Silent};
    for (table, ttl, cache) in [
        ("ttl = 10", Some(10), MaxAge(10)),
        ("ttl = 0", None, Silent),
        ("cache-control = 0", Some(300), Silent),
        ("cache-control = -1", Some(300), NoCache),
        ("cache-control = 3600", Some(300), MaxAge(3600)),
        ("ttl = 0\ncache-control = 7", None, MaxAge(7)),
        ("ttl = 0\ncache-control = -1", None, NoCache),
    ] {
        let read = read(table);
        assert_eq!((read.ttl, read.cache), (ttl.map(Duration::from_secs), cache), "{table}");
    }
    assert_eq!(read("format = \"ietf\"").format, HealthFormat::Ietf);
}

/// S3-40, S3-42, S3-45: what is wrong is said at its place, and nothing of an address is repeated.
#[test]
fn what_is_wrong_is_said_at_its_place() {
    for (table, problem) in [
        ("uri = \"\"", "4:7: address 1 is empty"),
        ("uri = \"tcp://me:s3cret@h:1\"", "4:7: address 1 names a user"),
        ("uri = \"unix:///a,unix:///a\"", "4:7: address 2 is the same as address 1"),
        ("cache-control = -2", "4:17: must be from -1 to 31536000"),
        ("group = \"no such group\"", "4:9: this machine has no group of this name"),
        ("owner = \"no such user\"", "4:9: this machine has no user of this name"),
        ("url = \"unix:///a\"", "4:1: unknown key url in [healthcheck]; did you mean uri?"),
    ] {
        let problems = site(table).problems();
        let [one] = problems.as_slice() else { panic!("{table}: {problems:?}") };
        assert!(one.starts_with(&format!("alerter.toml:{problem}")), "{table}: {one}");
        assert!(!one.contains("s3cret"), "{one}");
    }
}

/// The control socket has gone first, or nobody could steer the daemon.
#[test]
fn an_address_of_another_is_refused() {
    let table = "uri = \"unix:///var/lib/x/control.sock\"\n[store]\npath = \"/var/lib/x/marks.db\"";
    let said = site(table).problems();
    assert_eq!(
        said,
        ["alerter.toml:4:7: the control socket has the same address: each needs one of its own"]
    );
}

/// S3-36: it is allowed, and said once when it is read. The broken variant is a list of which only the first is read.
#[test]
fn a_routable_address_is_warned_of_once() {
    let warnings = |uri: &str| site(&format!("uri = \"{uri}\"")).settings().warnings;
    for uri in ["tcp://0.0.0.0:1", "unix:///a,tcp://ctl1:1", "tcp://[::]:1,tcp://192.0.2.1:1"] {
        let said = warnings(uri);
        let [one] = said.as_slice() else { panic!("{uri}: {said:?}") };
        assert!(one.message.contains("other machines may reach this address") && one.line == 4, "{one}");
    }
    assert_eq!(warnings("tcp://127.0.0.1:1,tcp://[::1]:1,tcp://localhost:2,unix:///a"), []);
}
