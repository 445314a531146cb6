//! `[api]`, and routes whose receivers confirm later: what is wrong with them is said before anything runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use alerter::config::Api;
use tempfile::TempDir;

use crate::config::Site;

/// Long enough.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Somebody else's.
pub(crate) const OTHER: &str = "fedcba9876543210fedcba9876543210";

/// What `[api]` names: two tokens.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        fs::set_permissions(files.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        files.put("portal", TOKEN, 0o600);
        files.put("trusted", OTHER, 0o600);
        files
    }

    /// Where the API is.
    pub(crate) fn socket(&self) -> PathBuf {
        self.0.path().join("api.sock")
    }

    /// Puts a file in the place of the old one, at once and whole.
    pub(crate) fn put(&self, name: &str, text: &str, mode: u32) {
        let (new, file) = (self.0.path().join("new"), self.0.path().join(name));
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(new, file).unwrap();
    }

    /// `[api]`, with the token `portal` and these lines behind it.
    pub(crate) fn table(&self, more: &str) -> String {
        let at = self.0.path().display();
        format!(
            "\n[api]\nuri = \"unix://{at}/api.sock\"\n\
             [api.tokens.portal]\ntoken-file = \"{at}/portal\"\n{}",
            more.replace("DIR", &at.to_string())
        )
    }
}

const NONE: &str = "[store]\nregister = \"none\"\n[http.recovery]\nurl = \"http://127.0.0.1:9/\"\n";

fn api(text: &str) -> Option<Api> {
    Site::new(text).settings().api
}

fn problems(text: &str) -> String {
    Site::new(text).problems().join("\n")
}

#[test]
fn without_a_token_or_an_address_nothing_is_served() {
    let said = problems(&(NONE.to_owned() + "[api]\nuri = \"tcp://127.0.0.1:0\"\n"));
    for wanted in ["no usable port", "no token"] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let said = problems(&(NONE.to_owned() + "[api.tokens.portal]\n"));
    assert!(said.contains("[api] has no uri") && said.contains("no token-file"), "{said}");
    let said = problems(&(NONE.to_owned() + "[api]\nuri = \"tcp://127.0.0.1:7420\"\n[api.tokens]\n"));
    assert!(said.contains("no token"), "an empty table opens nothing: {said}");
}

/// Tokens in plain http stay on this machine. The broken variant warns alone, as of addresses without secrets.
#[test]
fn plain_http_beyond_this_machine_wants_a_word() {
    let files = Files::new();
    for (uri, is_taken) in [
        ("tcp://127.0.0.1:7420,tcp://[::1]:7420", true),
        ("unix:///run/api.sock,tcp://localhost:7420", true),
        ("tcp://192.0.2.10:7420", false),
        ("unix:///run/api.sock,tcp://0.0.0.0:7420", false),
        ("tcp://[::]:7420", false),
        ("tcp://ctl1:7420", false),
    ] {
        let table = files.table("").replace(&format!("unix://{}", files.socket().display()), uri);
        let refused = Site::new(&(NONE.to_owned() + &table)).load().err().map(|why| why.to_string());
        assert_eq!(refused.is_none(), is_taken, "{uri}: {refused:?}");
        assert!(refused.is_none_or(|why| why.contains("a proxy that ends TLS, or set allow-http = true")));
        let allowed = table.replace("[api]\n", "[api]\nallow-http = true\n");
        assert!(api(&(NONE.to_owned() + &allowed)).is_some(), "{uri}");
    }
    let doubled = files.table("").replace("[api]\n", "[metrics]\nuri = \"unix:///run/x.sock\"\n[api]\n");
    let doubled = doubled.replace(&files.socket().display().to_string(), "/run/x.sock");
    assert!(problems(&(NONE.to_owned() + &doubled)).contains("has the same address"));
}

/// With a token one can end marks.
#[test]
fn secrets_that_others_may_read_are_refused() {
    for mode in [0o640, 0o604] {
        let files = Files::new();
        files.put("portal", TOKEN, mode);
        let said = problems(&(NONE.to_owned() + &files.table("")));
        assert!(said.contains("chmod 600") && !said.contains(TOKEN), "{mode:o}: {said}");
    }
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
    assert!(settings.routes[0].driver.about().confirms_later);
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
