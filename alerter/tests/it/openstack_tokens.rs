//! Tokens of a Keystone that is slow, breaks off, or lets nobody in: no mark goes out long after it was allowed.

use drivers::masakari::{Masakari, Options};
use drivers::{Driver, openstack};

use crate::openstack::{Site, Whim, mark, send};
use crate::route::{SHORT, word};

/// A driver that leaves a token that is not there soon to the next attempt.
fn hasty(site: &Site) -> Masakari {
    Masakari::new(Options::of(openstack::CloudOptions { patience: SHORT, ..site.options() })).unwrap()
}

async fn attempt(driver: &Masakari) -> String {
    word(&send(driver, &driver.body(&mark()), 0).await)
}

/// The fetch that is under way has come to its end: a check waits for it as long as it takes.
async fn fetched(driver: &Masakari) {
    let findings = driver.check(&[]).await.unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

/// What allowed a mark to be sent may be over when a slow Keystone has answered. The fetch goes on for the next attempt.
#[tokio::test]
async fn no_mark_goes_out_long_after_it_was_allowed() {
    let site = Site::new().await;
    let (driver, hold) = (hasty(&site), site.hold());
    for _ in 0..2 {
        assert_eq!(attempt(&driver).await, "unreachable keystone");
    }
    assert_eq!(site.counts(), (0, 1));
    assert!(site.state().asked.is_empty());
    hold.go.notify_one();
    fetched(&driver).await;
    assert_eq!(attempt(&driver).await, "acknowledged");
    assert_eq!(site.counts(), (1, 1));
}

/// The broken variant of the above: one that is patient sends it, however late Keystone is.
#[tokio::test]
async fn a_patient_one_waits_for_keystone() {
    let site = Site::new().await;
    let (driver, hold) = (site.driver(), site.hold());
    let body = driver.body(&mark());
    let keystone = async {
        hold.asked.notified().await;
        assert!(site.state().asked.is_empty());
        hold.go.notify_one();
    };
    let (outcome, ()) = tokio::join!(send(&driver, &body, 0), keystone);
    assert_eq!((word(&outcome).as_str(), site.counts()), ("acknowledged", (1, 1)));
}

/// The service has refused the first request, so nothing of the mark was taken.
#[tokio::test]
async fn no_mark_goes_out_again_long_after_it_was_allowed() {
    let site = Site::new().await;
    let driver = hasty(&site);
    fetched(&driver).await;
    let hold = site.hold();
    site.state().expire_tokens();
    assert_eq!(attempt(&driver).await, "unreachable keystone");
    assert_eq!(site.counts(), (0, 2));
    hold.go.notify_one();
    fetched(&driver).await;
    assert_eq!(attempt(&driver).await, "acknowledged");
    assert_eq!(site.counts(), (1, 2));
}

/// Nobody waits any more when a slow Keystone says no. The broken variant forgets it: the route never hears that its password
/// is wrong, and tries it again and again until the user is locked out.
#[tokio::test]
async fn a_refusal_that_came_late_is_heard_by_the_next_attempt() {
    let mut site = Site::new().await;
    let (driver, hold) = (hasty(&site), site.hold());
    site.state().password = "an0ther";
    assert_eq!(attempt(&driver).await, "unreachable keystone");
    hold.go.notify_one();
    site.keystone.connection_ended().await;
    let mut word = attempt(&driver).await;
    while word == "unreachable keystone" {
        word = attempt(&driver).await;
    }
    assert_eq!((word.as_str(), site.state().tokens_asked), ("refused credentials", 1));
}

/// Debian's Keystone ends its bodies with the connection: one that stops on its way seems whole to HTTP.
#[tokio::test]
async fn an_answer_of_keystone_that_breaks_off_passes_by_itself() {
    let site = Site::new().await;
    let driver = site.driver();
    for cut in [1, 100, 500] {
        site.state().cut = cut;
        assert_eq!(attempt(&driver).await, "unreachable keystone", "{cut}");
    }
    site.state().cut = 0;
    assert_eq!(attempt(&driver).await, "acknowledged");
}

/// A 404 may come of a catalog that has changed, unless the service itself says what it does not have. The broken variant
/// logs in again after each thing that is not there.
#[tokio::test]
async fn what_a_service_does_not_have_costs_no_token() {
    for (body, tokens) in [
        (r#"{"itemNotFound": {"code": 404, "message": "no"}}"#, 1),
        (r#"{"error": {"type": "EntityNotFound", "message": "no"}, "code": 404}"#, 1),
        (
            r#"{"code": "404 Not Found", "title": "Not Found", "message": "The resource could not be found."}"#,
            2,
        ),
    ] {
        let site = Site::new().await;
        let driver = site.driver();
        site.state().whims = vec![Whim::Say(404, body.to_owned())];
        assert_eq!(attempt(&driver).await, "refused misconfigured");
        site.state().rows.clear();
        assert_eq!(attempt(&driver).await, "acknowledged");
        assert_eq!(site.state().tokens_asked, tokens, "{body}");
    }
}
