//! Catalogs that name a service without the version of its API, as Kolla's does for Masakari.

use drivers::Driver as _;
use serde_json::json;

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
        assert!(asked[..2] == ["GET /", "POST /v1/notifications"] && roots == 1, "{asked:?}");
        assert!(site.driver().about().endpoint.contains("Masakari of cloud"), "{at}");
        site.state().rows.clear();
    }
}

/// What was no list of versions is asked for again, as soon as it is well; nothing counted as sent.
#[tokio::test]
async fn an_answer_that_was_no_list_of_versions_is_not_remembered() {
    let site = Site::new().await;
    let driver = site.driver();
    for (status, body, words) in
        [(503, String::new(), "unreachable unavailable"), (200, versions("x"), "acknowledged")]
    {
        site.unversioned("", status, body);
        assert_eq!(word(&send(&driver, &driver.body(&mark()), 0).await), words);
        assert_eq!(site.state().rows.is_empty(), status == 503);
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
