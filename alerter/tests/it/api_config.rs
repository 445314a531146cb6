//! `[api]`, and routes whose receivers confirm later: what is wrong with them is said before anything runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use alerter::config::Api;
use tempfile::TempDir;

use crate::certificates::Ca;
use crate::config::Site;

/// Long enough.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Somebody else's.
pub(crate) const OTHER: &str = "fedcba9876543210fedcba9876543210";

/// What `[api]` names: a certificate for 127.0.0.1 with its key, and two tokens.
pub(crate) struct Files {
    pub(crate) ca: Ca,
    room: TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        let files = Self { ca: Ca::new("ours"), room: tempfile::tempdir().unwrap() };
        fs::set_permissions(files.room.path(), fs::Permissions::from_mode(0o755)).unwrap();
        files.put_identity();
        files.put("portal", TOKEN, 0o600);
        files.put("trusted", OTHER, 0o600);
        files
    }

    /// A new certificate of the same CA, with a new key.
    pub(crate) fn put_identity(&self) {
        self.put_identity_for("127.0.0.1");
    }

    pub(crate) fn put_identity_for(&self, name: &str) {
        let (certificate, key) = self.ca.identity_for(name);
        self.put("certificate", &certificate, 0o644);
        self.put("key", &key, 0o600);
    }

    /// Puts a file in the place of the old one, at once and whole.
    pub(crate) fn put(&self, name: &str, text: &str, mode: u32) {
        let (new, file) = (self.room.path().join("new"), self.room.path().join(name));
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(new, file).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.room.path().join(name)).unwrap();
    }

    /// `[api]`, with the token `portal` and these lines behind it.
    pub(crate) fn table(&self, more: &str) -> String {
        let at = self.room.path().display();
        format!(
            "\n[api]\nlisten = \"127.0.0.1:7420\"\ncertificate = \"{at}/certificate\"\nkey = \"{at}/key\"\n\
             [api.tokens.portal]\ntoken-file = \"{at}/portal\"\n{}",
            more.replace("DIR", &at.to_string())
        )
    }
}

const NONE: &str = "[store]\nregister = \"none\"\n[http.recovery]\nurl = \"http://127.0.0.1:9/\"\n";

fn api(text: &str) -> Option<Api> {
    Site::new(text).settings().api
}

#[test]
fn the_api_is_off_by_default_and_is_what_was_configured() {
    let files = Files::new();
    assert_eq!(api(NONE), None);
    let trusted =
        "hosts = [\"compute*\"]\n[api.tokens.trusted]\ntoken-file = \"DIR/trusted\"\ntrust-marks = true\n";
    let api = api(&(NONE.to_owned() + &files.table(trusted))).unwrap();
    assert_eq!(api.listen.to_string(), "127.0.0.1:7420");
    let tokens: Vec<(&str, bool)> =
        api.tokens.iter().map(|token| (token.name.as_str(), token.trust_marks)).collect();
    assert_eq!(tokens, [("portal", false), ("trusted", true)]);
    let hosts: Vec<bool> = api.tokens.iter().map(|token| token.hosts.is_some()).collect();
    assert_eq!((hosts, api.tokens[0].routes.len()), (vec![true, false], 0), "what is not named is not given");
}

fn problems(text: &str) -> String {
    Site::new(text).problems().join("\n")
}

#[test]
fn without_tls_a_token_or_an_address_nothing_is_served() {
    let said = problems(&(NONE.to_owned() + "[api]\nlisten = \"127.0.0.1:0\"\n"));
    for wanted in ["an IP address and a port", "no certificate", "no key", "no token"] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let said = problems(&(NONE.to_owned() + "[api.tokens.portal]\n"));
    assert!(said.contains("[api] has no listen") && said.contains("no token-file"), "{said}");
    let said = problems(&(NONE.to_owned() + "[api]\nlisten = \"127.0.0.1:7420\"\n[api.tokens]\n"));
    assert!(said.contains("no token"), "an empty table opens nothing: {said}");
}

/// With the key one can pretend to be the alerter, and with a token one can end marks.
#[test]
fn secrets_that_others_may_read_are_refused() {
    for (name, text) in [("key", Ca::new("ours").identity().1), ("portal", TOKEN.to_owned())] {
        for mode in [0o640, 0o604] {
            let files = Files::new();
            files.put(name, &text, mode);
            let said = problems(&(NONE.to_owned() + &files.table("")));
            assert!(said.contains("chmod 600") && !said.contains(&text), "{name} {mode:o}: {said}");
        }
    }
}

#[test]
fn what_cannot_be_used_is_refused() {
    let other = Ca::new("ours").identity_for("127.0.0.1");
    for (name, text, wanted) in [
        ("portal", &TOKEN[1..], "at least 32"),
        ("certificate", "x", "no certificate in PEM"),
        ("key", "x", "no private key in PEM"),
        ("key", other.1.as_str(), "does not hold the key"),
    ] {
        let files = Files::new();
        files.put(name, text, 0o600);
        let said = problems(&(NONE.to_owned() + &files.table("")));
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let files = Files::new();
    let same = "[api.tokens.again]\ntoken-file = \"DIR/portal\"\n";
    assert!(problems(&(NONE.to_owned() + &files.table(same))).contains("has the same token"));
}

/// The broken variant is the same where there is no cluster.
#[test]
fn nobody_is_trusted_where_there_is_a_cluster_to_ask() {
    let files = Files::new();
    let text = NONE.to_owned() + &files.table("trust-marks = true\n");
    assert!(api(&text).unwrap().tokens[0].trust_marks);
    let said = problems(&text.replace("\"none\"", "\"attrd\""));
    assert!(said.contains("remove trust-marks"), "{said}");
}

/// Without an API no receiver could confirm a mark of such a route. The broken variant has the API.
#[test]
fn a_route_waits_for_no_callback_that_cannot_come() {
    let files = Files::new();
    let text = NONE.to_owned() + "ack = \"callback\"\nack-timeout = 60\n";
    let said = problems(&text);
    assert!(said.contains("no receiver could confirm a mark"), "{said}");
    let said = problems(&(text.clone() + &files.table("")));
    assert!(said.contains("[api.tokens.NAME]"), "no token names it: {said}");
    for (routes, wanted) in [("elsewhere", "there is no route"), ("plain", "set ack = \"callback\"")] {
        let more =
            format!("routes = [\"recovery\", \"{routes}\"]\n[http.plain]\nurl = \"http://127.0.0.1:9/\"\n");
        let said = problems(&(text.clone() + &files.table(&more)));
        assert!(said.contains(wanted), "{routes}: {said}");
    }
    let settings = Site::new(&(text + &files.table("routes = [\"recovery\"]\n"))).settings();
    assert!(settings.routes[0].driver.confirms_later());
    for (more, wanted) in [
        ("ack = \"callback\"\nack-timeout = 59\n", "from 60 to 86400"),
        ("ack-timeout = 60\n", "remove ack-timeout"),
        ("ack = \"response\"\nack-timeout = 60\n", "remove ack-timeout"),
        ("ack = \"mail\"\n", "unknown word"),
    ] {
        let said = problems(&(NONE.to_owned() + more + &files.table("")));
        assert!(said.contains(wanted), "{more}: {said}");
    }
}
