//! The API of the built daemon: a receiver that confirms later, and what an operator's commands hear.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use tests::programs::Site;
use tests::receiver::Receiver;
use tests::trials::Group;

use crate::path::{LIMIT, delivery, event, json, until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![a_receiver_confirms_later])
}

/// Where the API is.
struct Api(PathBuf);

impl Api {
    /// Puts a token into a directory, and gives the configuration too.
    fn put_into(room: &Path) -> (Self, String) {
        fs::write(room.join("token"), TOKEN).unwrap();
        fs::set_permissions(room.join("token"), fs::Permissions::from_mode(0o600)).unwrap();
        let at = room.display();
        let table = format!(
            "\n[api]\nuri = \"unix://{at}/api.sock\"\n\
             [api.tokens.portal]\ntoken-file = \"{at}/token\"\nroutes = [\"recovery\"]\nhosts = [\"compute*\"]\n"
        );
        (Self(room.join("api.sock")), table)
    }

    /// One request; gives the whole answer.
    fn patch(&self, path: &str, body: &str) -> String {
        let mut stream = UnixStream::connect(&self.0).unwrap();
        let request = format!(
            "PATCH {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// A 2xx says that the message has come. A restart neither forgets that nor sends it again before its time; the mark ends when
/// the receiver has confirmed it. The broken variant is the other mark, which it refuses: the state is degraded then.
fn a_receiver_confirms_later() {
    let receiver = Receiver::on_loopback().unwrap();
    let room = tempfile::tempdir().unwrap();
    let (api, table) = Api::put_into(room.path());
    let route = format!("[http.recovery]\nurl = \"http://{}/\"\nack = \"callback\"\n", receiver.address());
    let mut site = Site::with(&(route + &table)).unwrap();
    site.start().unwrap();
    site.fence("compute1").unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
    until("it is accepted", || delivery(&site, "compute1")["last"]["kind"] == "accepted");
    site.end(Signal::SIGTERM).unwrap();
    site.start().unwrap();
    site.fence("compute2").unwrap();
    let received = receiver.wait_for(2, LIMIT).unwrap();
    let id = |at: usize| event(&received[at])["id"].as_str().unwrap().to_owned();
    assert_ne!(id(0), id(1), "the first was not sent again");
    assert!(site.alerter(&["status", "--ocf"]).unwrap().status.success(), "nothing is wrong with the route");
    let body = r#"{"acknowledged": true, "reference": "job 7"}"#;
    let answer = api.patch(&format!("/v1/marks/{}", id(0)), body);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(json(&site, &["show", "compute1"])[0]["state"], "acknowledged");
    assert_eq!(delivery(&site, "compute2")["state"], "pending");
    let history = json(&site, &["history", "compute1"]).to_string();
    assert!(history.contains("portal (API)") && history.contains("confirmed"), "{history}");
    let refused = api.patch("/v1/hosts/compute3", r#"{"mark_unhealthy": true}"#);
    assert!(refused.starts_with("HTTP/1.1 403 "), "there is no cluster to confirm it: {refused}");
    let body = r#"{"acknowledged": false, "reason": "no such host"}"#;
    let answer = api.patch(&format!("/v1/marks/{}", id(1)), body);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(delivery(&site, "compute2")["last"]["detail"].to_string().contains("no such host"));
    assert_eq!(delivery(&site, "compute2")["state"], "parked");
    until("a person is needed", || site.alerter(&["status", "--ocf"]).unwrap().status.code() == Some(190));
    assert_eq!(receiver.received().len(), 2);
    site.end(Signal::SIGTERM).unwrap();
}
