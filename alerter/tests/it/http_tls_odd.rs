//! Certificates that OpenSSL makes and takes, and that our TLS library does not: what is said of them is true, and what to type.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use drivers::http::{Http, Options};
use drivers::web::ClientOptions;
use samples::left_out::lacks;

use crate::config;
use crate::route::{LONG, deliver, options, word};

/// A directory with what `script` makes.
fn made(script: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("umask 077; {script}; chmod 644 *.crt");
    let ended = Command::new("sh").args(["-ec", &script]).current_dir(dir.path()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    dir
}

/// A CA, and a certificate of it: with this key, and these further words of `openssl x509`.
fn pair(bits: u32, name: &str, more: &str) -> tempfile::TempDir {
    made(&format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -subj /CN=ours -days 9
        openssl req -newkey rsa:{bits} -nodes -keyout own.key -out own.csr -subj /CN={name}
        printf 'subjectAltName=IP:127.0.0.1\\n' > san; printf 'keyUsage=digitalSignature\\n' > none
        openssl x509 -req -in own.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out own.crt -days 9 {more}"
    ))
}

fn problems(dir: &tempfile::TempDir, section: &str) -> String {
    let text = section.replace("DIR", dir.path().to_str().unwrap());
    config::Site::new("").with("alerter.toml", text).problems().join("\n")
}

const CLIENT: &str =
    "[http.a]\nurl = \"https://h/\"\ncertificate-file = \"DIR/own.crt\"\nkey-file = \"DIR/own.key\"\n";

/// Stock microk8s makes certificates of version 1 for its clients. The broken variant says that the key is another.
#[test]
fn a_certificate_of_ours_is_named_for_what_it_is() {
    if lacks(&["openssl"]) {
        return;
    }
    for (dir, parts) in [
        (pair(2048, "admin", ""), ["X.509 version 1", "openssl x509 -req"]),
        (pair(1024, "admin", "-extfile san"), ["RSA key of 1024 bits", "openssl genrsa"]),
    ] {
        let said = problems(&dir, CLIENT);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(!said.contains("does not hold the key"), "{said}");
    }
    let good = pair(2048, "admin", "-extfile san");
    let text = CLIENT.replace("DIR", good.path().to_str().unwrap());
    assert_eq!(config::Site::new("").with("alerter.toml", text).settings().routes.len(), 1, "it helps");
}

/// A CA whose key is too short can sign nothing for us.
#[test]
fn a_short_key_of_a_ca_is_found_with_the_configuration() {
    if lacks(&["openssl"]) {
        return;
    }
    let ca =
        made("openssl req -x509 -newkey rsa:1024 -nodes -keyout ca.key -out ca.crt -subj /CN=ours -days 9");
    let said = problems(&ca, "[http.a]\nurl = \"https://h/\"\nca-file = \"DIR/ca.crt\"\n");
    assert!(said.contains("the CA certificate in ca-file has an RSA key of 1024 bits"), "{said}");
}

/// OpenSSL's own server.
struct Server(Child, String);

impl Server {
    fn of(dir: &tempfile::TempDir) -> Self {
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-cert", "own.crt", "-key", "own.key", "-www"])
            .args(["-cipher", "DEFAULT@SECLEVEL=0"])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let at = lines.find_map(|line| line.strip_prefix("ACCEPT ").map(str::to_owned)).unwrap();
        Self(child, at)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _it_may_have_ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// S1-45: nothing is sent, and the sentence is true. The broken variants blame the name, the CA, or say nothing of it.
#[tokio::test]
async fn a_certificate_of_the_endpoint_is_named_for_what_it_is() {
    if lacks(&["openssl"]) {
        return;
    }
    for (dir, expected, parts) in [
        (
            pair(2048, "127.0.0.1", "-extfile none"),
            "tls-name",
            ["no subjectAltName", "-addext subjectAltName="],
        ),
        (pair(2048, "127.0.0.1", ""), "tls-certificate", ["X.509 version 1", "openssl x509 -req"]),
        (
            pair(1024, "127.0.0.1", "-extfile san"),
            "tls-signature",
            ["too short (under 2048 bits", "openssl s_client"],
        ),
    ] {
        let server = Server::of(&dir);
        let client = options(&format!("https://{}/", server.1)).client;
        let ca_file = Some(dir.path().join("ca.crt"));
        let route = Http::new(Options::by(ClientOptions { ca_file, timeout: LONG, ..client })).unwrap();
        let outcome = deliver(&route).await;
        assert_eq!(word(&outcome), format!("unreachable {expected}"));
        let detail = &outcome.failure().unwrap().detail;
        assert!(parts.iter().all(|part| detail.contains(part)), "{detail}");
    }
}
