//! The `masakari` driver against a Keystone and a Masakari that keep to their contracts, or do not.

use drivers::masakari::{Masakari, Options};
use drivers::{Driver, Outcome};
use marks::mark::Mark;
use marks::time::Timestamp;
use tokio::task::JoinSet;

use crate::certificates::{Ca, Peculiar};
use crate::openstack::{AT, Site, Whim, mark, send};
use crate::route::{SECRET, word};
use crate::warnings::Warnings;

/// One attempt of the mark, after so many attempts with an unknown outcome.
async fn attempt(driver: &Masakari, ambiguous: u32) -> String {
    word(&send(driver, &driver.body(&mark()), ambiguous).await)
}

fn posts(site: &Site) -> usize {
    site.state().asked.iter().filter(|asked| asked.starts_with("POST")).count()
}

/// An attempt that got lost on its way proves nothing where Masakari shows what it has. Only for a duplicate, where it shows
/// nothing, the attempt is the best proof; a host that is on maintenance may be so since its last recovery. The broken
/// variant believes the attempt: the mark would be lost.
#[tokio::test]
async fn an_attempt_that_never_arrived_acknowledges_nothing() {
    for is_on_maintenance in [false, true] {
        let site = Site::new().await;
        let driver = site.driver();
        site.state().whims = vec![Whim::Close];
        assert_eq!(attempt(&driver, 0).await, "unknown closed");
        site.state().rows.clear();
        if is_on_maintenance {
            site.state().on_maintenance.insert("Compute1.my.cloud.com");
        } else {
            site.state().add("Compute1.my.cloud.com", AT - 60);
        }
        let expected = if is_on_maintenance { "held maintenance" } else { "rejected duplicate" };
        assert_eq!(attempt(&driver, 1).await, expected);
        site.state().is_hidden = true;
        assert_eq!(attempt(&driver, 0).await, expected);
        let last = if is_on_maintenance { "held maintenance" } else { "acknowledged" };
        assert_eq!(attempt(&driver, 1).await, last, "the word of the other is the broken variant");
    }
}

/// An application credential whose access rules name the notification alone: the middleware before Masakari answers 401 to any
/// reading of it. The broken variant takes that for a token that may be better the next time, and asks for ever.
#[tokio::test]
async fn a_credential_that_may_only_notify_ends_too() {
    let site = Site::new().await;
    site.state().may_only_post = true;
    let driver = site.driver();
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
    assert_eq!(attempt(&driver, 0).await, "rejected duplicate");
    assert_eq!(attempt(&driver, 1).await, "acknowledged");
    site.state().on_maintenance.insert("Compute1.my.cloud.com");
    for ambiguous in [0, 1] {
        assert_eq!(attempt(&driver, ambiguous).await, "held maintenance");
    }
}

/// S1-16: 202 alone is no acknowledgement of Masakari's. The broken variant acknowledges by the status.
#[tokio::test]
async fn only_the_notification_itself_acknowledges() {
    let later = r#"{"notification": {"notification_uuid": "9b1e", "status": "new",
        "generated_time": "2026-07-21T02:20:21", "payload":
        {"event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL"}}}"#;
    for body in ["", "<html>Accepted</html>", r#"{"notification": {"notification_uuid": "9b"#, later] {
        let site = Site::new().await;
        let driver = site.driver();
        site.state().whims = vec![Whim::Say(202, body.to_owned())];
        assert_eq!(attempt(&driver, 0).await, "unknown protocol", "{body}");
        // It had been taken, and is found.
        let outcome = send(&driver, &driver.body(&mark()), 1).await;
        let reference = Some(site.state().rows[0].uuid.clone());
        assert_eq!((outcome, site.state().rows.len()), (Outcome::Acknowledged { reference }, 1));
    }
}

#[tokio::test]
async fn an_expired_token_is_replaced_once() {
    let site = Site::new().await;
    let driver = site.driver();
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
    site.state().expire_tokens();
    site.state().rows.clear();
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
    assert_eq!((posts(&site), site.state().tokens_asked), (3, 2));
    site.state().knows_no_token = true;
    assert_eq!(attempt(&driver, 0).await, "refused credentials");
    assert_eq!((posts(&site), site.state().tokens_asked), (5, 3), "one new token, one repetition");
}

#[tokio::test]
async fn keystone_may_be_down_at_first() {
    let site = Site::new().await;
    let driver = site.driver();
    site.state().keystone_is_mute = true;
    assert_eq!(attempt(&driver, 0).await, "unreachable keystone");
    site.state().keystone_is_mute = false;
    for (status, expected) in [
        (503, "unreachable keystone"),
        (500, "unreachable keystone"),
        (401, "refused credentials"),
        (403, "refused credentials"),
        (429, "retry throttled"),
        (400, "refused misconfigured"),
        (404, "refused misconfigured"),
        (300, "refused misconfigured"),
        (200, "refused misconfigured"),
        (201, "refused catalog"),
    ] {
        let body = format!(r#"{{"error": {{"code": {status}, "message": "no {SECRET}", "title": "x"}}}}"#);
        site.state().keystone_says = Some((status, body));
        assert_eq!(attempt(&driver, 0).await, expected, "{status}");
    }
    assert_eq!(posts(&site), 0, "nothing was sent so far");
    site.state().keystone_says = None;
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
}

/// Many attempts at once; gives their words.
async fn at_once(driver: &std::sync::Arc<Masakari>, count: usize) -> Vec<String> {
    let mut all = JoinSet::new();
    for n in 0..count {
        let driver = std::sync::Arc::clone(driver);
        let at = Timestamp::from_seconds(AT + 1000 * i64::try_from(n).unwrap());
        all.spawn(async move {
            let body = driver.body(&Mark { generated_time: at, ..mark() });
            // As if each had been tried, and nothing of it could be seen: their order is not under test here.
            word(&send(&*driver, &body, 1).await)
        });
    }
    all.join_all().await
}

#[tokio::test]
async fn one_token_serves_many_marks() {
    let site = Site::new().await;
    site.state().is_hidden = true;
    let driver = std::sync::Arc::new(site.driver());
    assert_eq!(at_once(&driver, 40).await, vec!["acknowledged"; 40]);
    assert_eq!((posts(&site), site.state().tokens_asked), (40, 1));
    site.state().expire_tokens();
    assert_eq!(at_once(&driver, 40).await, vec!["acknowledged"; 40]);
    assert_eq!(site.state().tokens_asked, 2, "the first one that was refused renews it for all");
}

/// The broken variant asks once for each mark that waits: forty wrong passwords lock the user out.
#[tokio::test]
async fn a_failure_of_keystone_is_that_of_all_who_wait() {
    let site = Site::new().await;
    let driver = std::sync::Arc::new(site.driver());
    site.state().keystone_says = Some((401, String::new()));
    assert_eq!(at_once(&driver, 40).await, vec!["refused credentials"; 40]);
    assert_eq!(site.state().tokens_asked, 1);
    assert_eq!(attempt(&driver, 0).await, "refused credentials");
    assert_eq!(site.state().tokens_asked, 2, "the next attempt asks again");
}

/// A service may repeat the token, and Keystone the password: [`send`] searches for both in all that is shown, and
/// [`Warnings`] in what is logged.
#[tokio::test]
async fn no_secret_is_shown() {
    let warnings = Warnings::default();
    let _listening = warnings.listen();
    let site = Site::new().await;
    let driver = site.driver();
    let echo = format!(r#"{{"badRequest": {{"message": "token gAAAAAB-{SECRET}-1 and {SECRET}"}}}}"#);
    site.state().whims =
        vec![Whim::Say(400, echo.clone()), Whim::Say(401, echo.clone()), Whim::Say(401, echo)];
    assert_eq!(attempt(&driver, 0).await, "rejected rejected");
    assert_eq!(attempt(&driver, 0).await, "refused credentials");
    site.files.put("secure.yaml", &format!("clouds: [{SECRET}"));
    assert_eq!(attempt(&driver, 1).await, "acknowledged", "the old files are used until then");
    assert_eq!(warnings.take().len(), 1);
    let body = String::from_utf8(driver.body(&mark())).unwrap();
    assert!(!body.contains(SECRET));
}

/// S1-45: a password that was replaced is used at once.
#[tokio::test]
async fn files_that_have_changed_are_used() {
    let site = Site::new().await;
    let driver = site.driver();
    site.state().password = "an0ther";
    assert_eq!(attempt(&driver, 0).await, "refused credentials");
    site.files.put("secure.yaml", "clouds: {ops: {auth: {password: an0ther}}}\n");
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
    // What the old files were given says nothing of the new ones. The broken variant goes on with the old token.
    site.files.put("secure.yaml", "clouds: {ops: {auth: {password: wr0ng}}}\n");
    assert_eq!(attempt(&driver, 1).await, "refused credentials");
}

/// Nothing switches the checks of certificates off.
#[tokio::test]
async fn a_cloud_that_wants_no_checks_is_refused() {
    let ours = Ca::new("ours");
    let site = Site::tls(ours.endpoint(Peculiar::OtherName)).await;
    let clouds = std::fs::read_to_string(site.files.path("clouds.yaml")).unwrap();
    site.files.put("clouds.yaml", &format!("{clouds}    verify: false\n"));
    let refused = Masakari::new(Options::of(site.options()));
    assert!(refused.err().unwrap().to_string().ends_with("set cacert there"));
}
