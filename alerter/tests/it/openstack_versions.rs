//! Catalogs that name a service without the version of its API, as Kolla's does for Masakari.

use drivers::Driver as _;
use drivers::masakari::{Masakari, Options};
use drivers::openstack::CloudOptions;
use serde_json::json;

use crate::check_online::found;
use crate::openstack::{Site, mark, send};
use crate::route::word;

/// What Masakari says at its root.
fn versions(at: &str) -> String {
    let links = json!([{"rel": "self", "href": format!("http://{at}/v1/")}]);
    json!({"versions": [{"id": "v1.0", "links": links, "status": "CURRENT", "version": "1.2",
        "min_version": "1.0", "updated": "2016-07-01T11:33:21Z"}]})
    .to_string()
}

/// S1-16. It is asked once, whatever follows. The broken variant puts the path behind the catalog's address: Masakari
/// answers 300 to everything outside of its version, for ever.
#[tokio::test]
async fn the_version_is_asked_for_once() {
    let site = Site::new().await;
    let at = site.masakari.address.to_string();
    for status in [200, 300] {
        // The link's own host is not where the catalog leads.
        site.unversioned("", status, versions("10.9.8.7:15868"));
        let driver = site.driver();
        let body = driver.body(&mark());
        for _ in 0..2 {
            assert_eq!(word(&send(&driver, &body, 1).await), "acknowledged");
        }
        let asked = std::mem::take(&mut site.state().asked);
        let roots = asked.iter().filter(|asked| asked.ends_with(" /")).count();
        assert_eq!(
            (asked[0].as_str(), asked[1].as_str(), roots),
            ("GET /", "POST /v1/notifications", 1),
            "{asked:?}"
        );
        assert!(site.driver().endpoint().contains("Masakari of cloud"), "{at}");
        site.state().rows.clear();
    }
}

/// A proxy's own path stays in front, whether Masakari knows it or not.
#[tokio::test]
async fn a_proxys_path_stays() {
    for link in ["10.9.8.7:15868", "proxy.example/ha"] {
        let site = Site::new().await;
        site.unversioned("/ha", 200, versions(link));
        let driver = site.driver();
        assert_eq!(word(&send(&driver, &driver.body(&mark()), 0).await), "acknowledged");
        assert_eq!(site.state().asked, ["GET /ha/", "POST /ha/v1/notifications"]);
    }
}

/// Where the address has a version, nothing is asked, and what the root would say does not matter.
#[tokio::test]
async fn an_address_with_a_version_is_used_as_it_is() {
    let site = Site::new().await;
    let endpoint = Some(format!("http://{}/v1/%(project_id)s", site.masakari.address));
    site.unversioned("", 404, String::new());
    let driver = Masakari::new(Options::of(CloudOptions { endpoint, ..site.options() })).unwrap();
    assert_eq!(word(&send(&driver, &driver.body(&mark()), 0).await), "acknowledged");
    assert_eq!(site.state().asked.len(), 1);
}

/// What is no list of versions is said to be none, with the address that was asked, and nothing counts as sent.
#[tokio::test]
async fn an_answer_that_is_no_list_of_versions_names_the_address() {
    let site = Site::new().await;
    for (status, body, words) in [
        (200, "<html><form>Sign in</form></html>".to_owned(), "refused catalog"),
        (404, "Not Found".to_owned(), "refused catalog"),
        (300, "{}".to_owned(), "refused catalog"),
        (302, String::new(), "refused catalog"),
        (401, String::new(), "refused credentials"),
        (503, String::new(), "unreachable unavailable"),
    ] {
        site.unversioned("", status, body);
        let driver = site.driver();
        let outcome = send(&driver, &driver.body(&mark()), 0).await;
        assert_eq!(word(&outcome), words, "{status}");
        let detail = &outcome.failure().unwrap().detail;
        assert!(
            detail.contains(&format!("Masakari at http://{}/ answered {status}", site.masakari.address)),
            "{detail}"
        );
        assert_eq!(
            found(&driver, &[]).await,
            [words.split_once(' ').unwrap().1],
            "the preflight says the same"
        );
        assert!(site.state().rows.is_empty());
        site.unversioned("", 200, versions("x"));
        assert_eq!(
            word(&send(&driver, &driver.body(&mark()), 0).await),
            "acknowledged",
            "as soon as it is well"
        );
        site.state().rows.clear();
    }
}

/// An address in a message is the one that was asked: the service's, and not Keystone's.
#[tokio::test]
async fn a_message_about_an_address_names_it() {
    let site = Site::new().await;
    let at = format!("http://{}/v1", site.masakari.address);
    let driver = site.driver();
    let body = driver.body(&mark());
    for (status, kind) in [(302, "redirect"), (404, "misconfigured"), (202, "protocol")] {
        site.state().whims = vec![crate::openstack::Whim::Say(status, "{}".to_owned())];
        let outcome = send(&driver, &body, 0).await;
        let failure = outcome.failure().unwrap();
        assert_eq!(failure.kind, kind);
        assert!(failure.detail.contains(&format!("Masakari at {at}")), "{failure:?}");
    }
    site.state().is_mute = true;
    let outcome = send(&driver, &body, 0).await;
    assert!(outcome.failure().unwrap().detail.starts_with(&format!("Masakari at {at}")), "{outcome:?}");
}
