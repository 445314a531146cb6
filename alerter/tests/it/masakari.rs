//! The `masakari` driver against a Keystone and a Masakari that keep to their contracts, or do not.

use std::future::Future;

use drivers::masakari::{Masakari, Options, WhichName};
use drivers::{Driver, Outcome, openstack};
use marks::mark::Mark;
use marks::time::Timestamp;
use tokio::task::JoinSet;
use tokio_rustls::rustls::version::TLS13;

use crate::certificates::{Ca, Peculiar};
use crate::endpoint::Endpoint;
use crate::openstack::{AT, PROJECT, Site, Whim, mark, send};
use crate::route::{SECRET, SHORT, word};
use crate::warnings::Warnings;

/// One attempt of the mark, after so many attempts with an unknown outcome.
async fn attempt(driver: &Masakari, ambiguous: u32) -> String {
    word(&send(driver, &driver.body(&mark()), ambiguous).await)
}

fn posts(site: &Site) -> usize {
    site.state().asked.iter().filter(|asked| asked.starts_with("POST")).count()
}

/// S1-19, S1-34: the request of the documentation, made by the driver itself.
#[tokio::test]
async fn a_mark_becomes_a_notification() {
    let site = Site::new().await;
    let driver = site.driver();
    let body = driver.body(&mark());
    let outcome = send(&driver, &body, 0).await;
    let state = site.state();
    let row = &state.rows[0];
    assert_eq!(outcome, Outcome::Acknowledged { reference: Some(row.uuid.clone()) });
    assert_eq!((row.host.as_str(), row.seconds), ("Compute1.my.cloud.com", AT));
    assert_eq!(state.bodies, [body], "the stored bytes, and no others");
    assert_eq!(state.asked, [format!("POST /v1/{PROJECT}/notifications")]);
}

#[tokio::test]
async fn a_host_may_have_another_name_there() {
    let site = Site::new().await;
    let driver =
        Masakari::new(Options { host_name: WhichName::Node.into(), ..Options::of(site.options()) }).unwrap();
    assert_eq!(attempt(&driver, 0).await, "rejected unknown-host");
    site.state().hosts.push("compute1");
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
}

/// Masakari has it, and its answer was lost.
#[tokio::test]
async fn a_repetition_after_an_answer_that_was_lost_is_acknowledged() {
    let site = Site::new().await;
    let driver = site.driver();
    site.state().whims = vec![Whim::Close];
    assert_eq!(attempt(&driver, 0).await, "unknown closed");
    // With its own name of it, so that it was read.
    let outcome = send(&driver, &driver.body(&mark()), 1).await;
    let reference = Some(site.state().rows[0].uuid.clone());
    assert_eq!(outcome, Outcome::Acknowledged { reference });
    assert_eq!((posts(&site), site.state().rows.len()), (2, 1));
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
        assert_eq!(
            attempt(&driver, 1).await,
            last,
            "the broken variant of the one, and the word of the other"
        );
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

/// Another monitor reported the host in the same second, and Masakari ignores what that says. The broken variant takes any
/// notification of that time for ours.
#[tokio::test]
async fn a_notification_that_says_something_else_is_not_ours() {
    let site = Site::new().await;
    site.state().add("Compute1.my.cloud.com", AT);
    site.state().rows[0].payload["host_status"] = "UNKNOWN".into();
    site.state().on_maintenance.insert("Compute1.my.cloud.com");
    assert_eq!(attempt(&site.driver(), 0).await, "held maintenance");
    site.state().rows[0].payload["host_status"] = "NORMAL".into();
    assert_eq!(attempt(&site.driver(), 0).await, "acknowledged", "the broken variant");
}

/// After a failover nobody here knows of the first attempt; Masakari does.
#[tokio::test]
async fn what_another_controller_sent_is_found() {
    for is_on_maintenance in [false, true] {
        let site = Site::new().await;
        assert_eq!(attempt(&site.driver(), 0).await, "acknowledged");
        if is_on_maintenance {
            // As its engine leaves a host that it recovers.
            site.state().on_maintenance.insert("Compute1.my.cloud.com");
        }
        let driver = site.driver();
        let outcome = send(&driver, &driver.body(&mark()), 0).await;
        let reference = Some(site.state().rows[0].uuid.clone());
        assert_eq!(outcome, Outcome::Acknowledged { reference });
        assert_eq!(site.state().rows.len(), 1);
    }
}

/// Masakari shows no more of a list at once than it is configured to. The broken variants take a partial list for a whole one:
/// what was sent counts as another's, and is not acknowledged.
#[tokio::test]
async fn a_list_that_is_cut_short_hides_nothing() {
    let site = Site::new().await;
    site.state().hosts = vec!["Compute1.my.cloud.com", "compute2.my.cloud.com", "compute3.my.cloud.com"];
    let driver = site.driver();
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
    site.state().add("Compute1.my.cloud.com", AT + 300);
    site.state().page = 1;
    let outcome = send(&driver, &driver.body(&mark()), 0).await;
    let reference = Some(site.state().rows[0].uuid.clone());
    assert_eq!(outcome, Outcome::Acknowledged { reference }, "it is the oldest, and its host the first");
    // In the middle, where neither end shows it: it is not said that there is none.
    site.state().rows.rotate_left(1);
    site.state().add("Compute1.my.cloud.com", AT + 600);
    let outcome = send(&driver, &driver.body(&mark()), 1).await;
    assert_eq!(word(&outcome), "rejected duplicate");
    let detail = outcome.failure().unwrap().detail.clone();
    assert!(detail.contains("osapi_max_limit"), "{detail}");
    site.state().page = 3;
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
}

/// A second outage that Masakari takes for a repetition is not sent. The broken variant takes every 409 for "I have it".
#[tokio::test]
async fn a_repetition_that_is_none_is_not_acknowledged() {
    let site = Site::new().await;
    site.state().add("Compute1.my.cloud.com", AT - 60);
    // Of the same second, but of another host.
    site.state().add("compute0.my.cloud.com", AT);
    let driver = site.driver();
    assert_eq!(attempt(&driver, 0).await, "rejected duplicate");
    assert_eq!(site.state().rows.len(), 2);
    site.state().add("Compute1.my.cloud.com", AT);
    assert_eq!(attempt(&driver, 0).await, "acknowledged", "so it must be searched for");
}

/// With the time of the mark before it, the same second outage is taken.
#[tokio::test]
async fn a_second_outage_within_three_minutes_is_sent() {
    let site = Site::new().await;
    let driver = site.driver();
    let second = Mark { generated_time: Timestamp::from_seconds(AT + 20), ..mark() };
    let earlier = [mark().generated_time];
    for body in [driver.body(&mark()), driver.body_after(&second, &earlier)] {
        assert_eq!(word(&send(&driver, &body, 0).await), "acknowledged");
    }
    assert_eq!(
        word(&send(&driver, &driver.body(&second), 0).await),
        "rejected duplicate",
        "the broken variant"
    );
    assert_eq!(site.state().rows.len(), 2);
}

/// Nothing was stored, and a later repetition would find a host that was repaired meanwhile.
#[tokio::test]
async fn a_host_on_maintenance_is_held() {
    let site = Site::new().await;
    site.state().on_maintenance.insert("Compute1.my.cloud.com");
    let driver = site.driver();
    assert_eq!(attempt(&driver, 0).await, "held maintenance");
    assert_eq!((posts(&site), site.state().rows.len()), (1, 0));
    site.state().add("Compute1.my.cloud.com", AT);
    assert_eq!(attempt(&driver, 0).await, "acknowledged", "Masakari recovers what it took before");
}

/// A driver that cannot learn whether Masakari has it asks again.
#[tokio::test]
async fn a_conflict_that_cannot_be_checked_is_asked_again() {
    let site = Site::new().await;
    let driver = site.driver();
    assert_eq!(attempt(&driver, 0).await, "acknowledged");
    // Masakari's hosts are gone from the segment that said so.
    let body = r#"{"conflictingRequest": {"code": 409, "message": "x is duplicate."}}"#;
    site.state().whims = vec![Whim::Say(409, body.to_owned())];
    site.state().reads_break = true;
    assert_eq!(attempt(&driver, 1).await, "retry conflict");
}

#[tokio::test]
async fn an_unknown_host_waits_for_somebody() {
    let site = Site::new().await;
    // Masakari distinguishes capital letters from small ones.
    site.state().hosts = vec!["compute1.my.cloud.com"];
    let driver = site.driver();
    let outcome = send(&driver, &driver.body(&mark()), 0).await;
    assert_eq!(word(&outcome), "rejected unknown-host");
    let detail = outcome.failure().unwrap().detail.clone();
    assert!(detail.contains("Host with name Compute1.my.cloud.com"), "{detail}");
}

#[tokio::test]
async fn a_wrong_role_parks_the_endpoint() {
    let site = Site::new().await;
    site.state().is_reader = true;
    assert_eq!(attempt(&site.driver(), 0).await, "refused forbidden");
    assert_eq!((posts(&site), site.state().tokens_asked), (1, 1), "a new token would not help");
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
    assert_eq!(
        (posts(&site), site.state().tokens_asked),
        (5, 3),
        "one new token and one repetition, no more"
    );
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

/// A Keystone that hangs takes an attempt, and nothing is said to be ambiguous.
#[tokio::test]
async fn keystone_may_hang() {
    let silent = Endpoint::acting(|mut peer| async move {
        peer.request().await;
        peer.gone().await;
    })
    .await;
    let site = Site::new().await;
    let text = format!(
        "clouds:\n  ops:\n    auth: {{auth_url: 'http://{}', user_id: u, project_id: p}}\n",
        silent.address
    );
    site.files.put("clouds.yaml", &text);
    let cloud = openstack::CloudOptions { timeout: SHORT, ..site.options() };
    let driver = Masakari::new(Options::of(cloud)).unwrap();
    assert_eq!(attempt(&driver, 0).await, "unreachable keystone");
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

#[tokio::test]
async fn a_token_at_its_end_is_not_used() {
    let site = Site::new().await;
    site.state().life = 0;
    let driver = site.driver();
    for ambiguous in 0..3 {
        assert_eq!(attempt(&driver, ambiguous).await, "acknowledged");
    }
    // The second one reads its notification.
    assert!(site.state().tokens_asked >= 3);
}

/// Keystone refuses one with a scope, also where the file names a project.
#[tokio::test]
async fn an_application_credential_is_enough() {
    let secret = format!("application_credential_secret: {SECRET}");
    let site =
        Site::with_auth("application_credential_id: a1b2, project_name: ops, username: x", &secret).await;
    assert_eq!(attempt(&site.driver(), 0).await, "acknowledged");
}

/// Every shape of an error, as Masakari and what stands before it give them.
#[tokio::test]
async fn every_error_has_its_word() {
    let named = |name: &str, message: &str| format!(r#"{{"{name}": {{"code": 1, "message": "{message}"}}}}"#);
    let flat = r#"{"message": "The server is currently unavailable.<br /><br />\n", "code": "503 Service Unavailable", "title": "Service Unavailable"}"#;
    for (status, body, expected, shown) in [
        (
            400,
            named("badRequest", "'event' is a required property"),
            "rejected rejected",
            "is a required property",
        ),
        (400, named("badRequest", "Malformed request URL: x"), "refused misconfigured", "Malformed"),
        (403, named("forbidden", "Policy doesn't allow"), "refused forbidden", "Policy"),
        (404, flat.replace("503", "404"), "refused misconfigured", "404"),
        (406, named("masakariFault", "Version"), "refused misconfigured", "Version"),
        (413, flat.replace("503", "413"), "rejected rejected", "413"),
        (429, named("overLimit", "slower"), "retry throttled", "slower"),
        (
            500,
            named("masakariFault", "Unexpected API Error. <class 'ValueError'>"),
            "unknown server-error",
            "Unexpected API Error.",
        ),
        (502, "<html>Bad Gateway</html>".to_owned(), "unknown server-error", "502"),
        (503, flat.to_owned(), "retry unavailable", "The server is currently unavailable."),
        (504, String::new(), "unknown server-error", "504"),
        (409, "null".to_owned(), "retry conflict", "409"),
        (200, "{}".to_owned(), "unknown protocol", "200"),
        (302, String::new(), "refused redirect", "302"),
    ] {
        let site = Site::new().await;
        site.state().whims = vec![Whim::Say(status, body)];
        let driver = site.driver();
        let outcome = send(&driver, &driver.body(&mark()), 0).await;
        assert_eq!(word(&outcome), expected, "{status}");
        let detail = outcome.failure().unwrap().detail.clone();
        assert!(detail.contains(shown), "{detail}");
        assert_eq!(posts(&site), 1, "{status}");
    }
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
    assert_eq!(
        attempt(&driver, 1).await,
        "acknowledged",
        "the old files are used while the new ones cannot be"
    );
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

/// A test message goes the whole way, is of no host, and leaves nothing.
#[tokio::test]
async fn a_test_leaves_no_notification() {
    let site = Site::new().await;
    let driver = site.driver();
    let test = driver.test_body(&mark().id, Timestamp::now());
    assert_eq!(word(&send(&driver, &test, 0).await), "acknowledged");
    assert!(site.state().rows.is_empty());
    site.state().is_reader = true;
    assert_eq!(word(&send(&driver, &test, 0).await), "refused forbidden");
}

/// The driver of a site behind TLS with these words in its file.
fn over_tls(site: &Site, words: &str) -> Masakari {
    let clouds = std::fs::read_to_string(site.files.path("clouds.yaml")).unwrap();
    site.files.put("clouds.yaml", &format!("{clouds}    {words}\n"));
    Masakari::new(Options::of(site.options())).unwrap()
}

/// S1-45: on the word of the CA that the file names, and of no other.
#[tokio::test]
async fn only_the_named_ca_is_believed() {
    let (ours, theirs) = (Ca::new("ours"), Ca::new("theirs"));
    let with = |ca: &Ca| format!("cacert: '{}'", ca.file().display());
    let site = Site::tls(ours.endpoint(Peculiar::Nothing)).await;
    assert_eq!(attempt(&over_tls(&site, &with(&ours)), 0).await, "acknowledged");
    for (peculiar, ca) in
        [(Peculiar::Nothing, &theirs), (Peculiar::Expired, &ours), (Peculiar::OtherName, &ours)]
    {
        let site = Site::tls(ours.endpoint(peculiar)).await;
        let driver = over_tls(&site, &with(ca));
        assert_eq!(attempt(&driver, 0).await, "unreachable keystone", "{peculiar:?}");
        assert_eq!((site.state().tokens_asked, driver.warnings().len()), (0, 0));
    }
}

/// Keystone and Masakari know us by our certificate, and take nobody's else.
#[tokio::test]
async fn a_cloud_may_know_us_by_our_certificate() {
    let (ca, clients, strangers) = (Ca::new("ours"), Ca::new("clients"), Ca::new("strangers"));
    for (who, expected) in [(&clients, "acknowledged"), (&strangers, "refused credentials")] {
        let site = Site::tls(ca.endpoint_for_clients_of(&clients, &TLS13)).await;
        let (certificate, key) = who.identity();
        site.files.put("own.pem", &certificate);
        site.files.put("own.key", &key);
        let path = |name| site.files.path(name).display().to_string();
        let (certificate, key) = (path("own.pem"), path("own.key"));
        let words = format!("cacert: '{}'\n    cert: '{certificate}'\n    key: '{key}'", ca.file().display());
        assert_eq!(attempt(&over_tls(&site, &words), 0).await, expected);
    }
}

/// What is said unasked is no answer to the next mark. The broken variant keeps connections.
#[tokio::test]
async fn each_mark_has_a_connection_of_its_own() {
    let site = Site::new().await;
    let driver = site.driver();
    for _ in 0..20 {
        assert_eq!(attempt(&driver, 1).await, "acknowledged");
    }
    assert!(site.masakari.connections() >= 20);
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

/// Compiles only if exchanges may run beside each other.
#[test]
fn an_exchange_may_go_to_another_task() {
    fn is_send(_: impl Future<Output = Outcome> + Send) {}
    let _never_called = |driver: &Masakari, body: &[u8]| {
        let id = mark().id;
        is_send(driver.deliver(drivers::Message {
            step: drivers::Step::Failure,
            id: &id,
            body,
            ambiguous: 0,
            attempts: 1,
            is_released: false,
        }));
    };
}
