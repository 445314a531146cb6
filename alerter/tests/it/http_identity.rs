//! TLS from our side: our client certificate, the name that we ask for, and the oldest version.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use drivers::http::{Http, Options};
use drivers::web::{self, IdentityFiles};
use reqwest::tls;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use crate::certificates::{Ca, Peculiar};
use crate::endpoint::{Endpoint, OK};
use crate::route::{Files, deliver, options, word};
use crate::warnings::Warnings;

fn to(endpoint: &Endpoint, ca: &Ca) -> web::ClientOptions {
    let url = format!("https://{}/v1/host-failures", endpoint.address);
    web::ClientOptions { ca_file: Some(ca.file()), ..options(&url).client }
}

/// The two files of a certificate, which a test changes.
fn pair((certificate, key): &(String, String)) -> Files {
    Files::with([("certificate", certificate), ("key", key)])
}

fn known_by(files: &Files, endpoint: &Endpoint, ca: &Ca) -> Http {
    let identity = Some(IdentityFiles { certificate: files.path("certificate"), key: files.path("key") });
    Http::new(Options::by(web::ClientOptions { identity, ..to(endpoint, ca) })).unwrap()
}

/// S1-45: an endpoint that knows its clients by their certificates takes ours, and nobody's else.
#[tokio::test]
async fn an_endpoint_knows_us_by_our_certificate() {
    let (ca, clients, strangers) = (Ca::new("ours"), Ca::new("clients"), Ca::new("strangers"));
    for version in [&TLS12, &TLS13] {
        let endpoint = Endpoint::saying_over_tls(ca.endpoint_for_clients_of(&clients, version), OK).await;
        for (signed_by, expected) in
            [(&clients, "acknowledged"), (&strangers, "refused tls-client-certificate")]
        {
            let files = pair(&signed_by.identity());
            assert_eq!(word(&deliver(&known_by(&files, &endpoint, &ca)).await), expected, "{version:?}");
        }
        assert_eq!(endpoint.requests().len(), 1);
    }
    let endpoint = Endpoint::saying_over_tls(ca.endpoint_for_clients_of(&clients, &TLS13), OK).await;
    let route = Http::new(Options::by(to(&endpoint, &ca))).unwrap();
    assert_eq!(word(&deliver(&route).await), "refused tls-client-certificate");
    assert_eq!(endpoint.requests().len(), 0);
}

/// Between the two files of a change nothing is lost: the old certificate stays in use, and that is said once.
#[tokio::test]
async fn a_pair_that_does_not_fit_leaves_the_old_one_in_use() {
    let (ca, old, new) = (Ca::new("ours"), Ca::new("old"), Ca::new("new"));
    let endpoint = Endpoint::saying_over_tls(ca.endpoint_for_clients_of(&old, &TLS13), OK).await;
    let files = pair(&old.identity());
    let route = known_by(&files, &endpoint, &ca);
    let warnings = Warnings::default();
    let _here = warnings.listen();

    let (certificate, key) = new.identity();
    files.put("certificate", &certificate);
    for _ in 0..3 {
        assert_eq!(word(&deliver(&route).await), "acknowledged");
    }
    assert_eq!(warnings.take().len(), 1);
    fs::remove_file(files.path("key")).unwrap();
    assert_eq!(word(&deliver(&route).await), "acknowledged");
    files.put("key", &key);
    assert_eq!(word(&deliver(&route).await), "refused tls-client-certificate", "the new pair is in use");
    assert_eq!(warnings.take().len(), 1);
}

/// The CA that is trusted changes with its file; one that cannot be used leaves the old one in use, and that is said once.
///
/// The broken variant is the route that was made before: it knows the old CA alone, until it reads the file.
#[tokio::test]
async fn a_ca_that_was_replaced_is_trusted_at_the_next_exchange() {
    let (old, new) = (Ca::new("old"), Ca::new("new"));
    let endpoint = Endpoint::saying_over_tls(new.endpoint(Peculiar::Nothing), OK).await;
    let files = Files::with([("ca", &old.pem())]);
    let ca_file = Some(files.path("ca"));
    let route = Http::new(Options::by(web::ClientOptions { ca_file, ..to(&endpoint, &old) })).unwrap();
    assert_eq!(word(&deliver(&route).await), "unreachable tls-unknown-ca");
    files.put("ca", &new.pem());
    assert_eq!(word(&deliver(&route).await), "acknowledged");

    let warnings = Warnings::default();
    let _here = warnings.listen();
    for unusable in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        files.put("ca", unusable);
        for _ in 0..3 {
            assert_eq!(word(&deliver(&route).await), "acknowledged", "{unusable}");
        }
        let said = warnings.take();
        assert!(said.len() == 1 && said[0].contains("ca-file"), "{said:?}");
    }
    fs::set_permissions(files.path("ca"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(word(&deliver(&route).await), "acknowledged");
    assert_eq!(warnings.take().len(), 1, "others may write it");
    files.put("ca", &old.pem());
    assert_eq!(word(&deliver(&route).await), "unreachable tls-unknown-ca", "the new file is in use");
}

/// S1-45: the name in TLS can be another than the address; the receiver still sees the url's host.
#[tokio::test]
async fn an_endpoint_can_have_another_name_than_its_url() {
    let ca = Ca::new("ours");
    let endpoint = Endpoint::saying_over_tls(ca.endpoint(Peculiar::OtherName), OK).await;
    for (server_name, expected) in [
        (Some("elsewhere.example"), "acknowledged"),
        (None, "unreachable tls-name"),
        (Some("recovery.example"), "unreachable tls-name"),
    ] {
        let server_name = server_name.map(str::to_owned);
        let route = Http::new(Options::by(web::ClientOptions { server_name, ..to(&endpoint, &ca) })).unwrap();
        assert_eq!(word(&deliver(&route).await), expected);
    }
    let requests = endpoint.requests();
    let request = String::from_utf8_lossy(&requests[0]);
    assert!(request.contains(&format!("host: {}\r\n", endpoint.address)), "{request}");
    assert_eq!(requests.len(), 1);
}

/// S1-45: a route that demands TLS 1.3 uses nothing older.
#[tokio::test]
async fn an_endpoint_with_an_older_tls_than_asked_for_is_not_notified() {
    let ca = Ca::new("ours");
    let endpoint = Endpoint::saying_over_tls(ca.old_endpoint(), OK).await;
    for (tls_min, expected) in
        [(tls::Version::TLS_1_3, "unreachable tls-version"), (tls::Version::TLS_1_2, "acknowledged")]
    {
        let route = Http::new(Options::by(web::ClientOptions { tls_min, ..to(&endpoint, &ca) })).unwrap();
        assert_eq!(word(&deliver(&route).await), expected);
    }
}
