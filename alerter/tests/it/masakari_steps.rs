//! What the `masakari` driver does once its notification is taken: it asks what became of it, and ends a maintenance of its
//! own making when the host is back.

use std::time::Duration;

use drivers::masakari::{Masakari, Options, WhenReturned};
use drivers::{Driver, Outcome, Step};
use marks::mark::Mark;
use marks::time::Timestamp;

use crate::openstack::{Site, State, mark, send, send_step};
use crate::route::word;

const HOST: &str = "Compute1.my.cloud.com";

/// What happens in Masakari after the mark of that time was sent.
type Event = fn(&mut State, i64);

/// A route that takes both further steps; a recovery may take half an hour.
fn driver(site: &Site) -> Masakari {
    let (confirm, when_returned) = (true, WhenReturned::ClearMaintenance);
    Masakari::new(Options { confirm, when_returned, ..Options::of(site.options()) }).unwrap()
}

/// The mark of a host that failed now.
fn fresh() -> Mark {
    Mark { generated_time: Timestamp::now(), ..mark() }
}

/// One exchange of a further step, with the bytes that are made for it.
async fn ask(driver: &Masakari, which: Step, mark: &Mark) -> String {
    word(&send_step(driver, which, &driver.return_body(mark, &driver.body(mark), Timestamp::now()), 0).await)
}

/// A site where the notification of a host was taken, and the host's engine has put it on maintenance.
async fn recovering(mark: &Mark) -> (Site, Masakari) {
    let site = Site::new().await;
    let driver = driver(&site);
    assert_eq!(word(&send(&driver, &driver.body(mark), 0).await), "acknowledged");
    site.state().on_maintenance.insert(HOST);
    (site, driver)
}

/// As the engine goes on: taken, recovering, in error until the periodic task, and finished.
#[tokio::test]
async fn a_recovery_is_waited_for_until_it_is_finished() {
    let mark = fresh();
    let (site, driver) = recovering(&mark).await;
    for status in ["new", "running", "error"] {
        site.state().end(0, status);
        assert_eq!(ask(&driver, Step::Confirm, &mark).await, "wait recovering", "{status}");
    }
    site.state().end(0, "finished");
    let outcome = send_step(&driver, Step::Confirm, &driver.body(&mark), 0).await;
    let reference = Some(site.state().rows[0].uuid.clone());
    assert_eq!(outcome, Outcome::Acknowledged { reference });
    let state = site.state();
    let posts = state.asked.iter().filter(|asked| !asked.starts_with("GET")).count();
    assert_eq!((posts, state.rows.len()), (1, 1), "nothing is sent again");
}

/// An engine that died never goes on: its notification stays as it is for a day. What is sent while it is down stays `new`,
/// and nobody checks the host at all.
#[tokio::test]
async fn a_recovery_that_hangs_is_no_longer_waited_for() {
    let mark = fresh();
    let (site, driver) = recovering(&mark).await;
    for status in ["new", "running", "error"] {
        site.state().end(0, status);
        site.state().rows[0].created = mark.generated_time.seconds() - 1700;
        assert_eq!(ask(&driver, Step::Confirm, &mark).await, "wait recovering", "{status}");
        site.state().rows[0].created = mark.generated_time.seconds() - 1900;
        for which in [Step::Confirm, Step::Return] {
            assert_eq!(ask(&driver, which, &mark).await, "rejected recovery-hangs", "{status}");
        }
    }
    let patient = Options { confirm_within: Duration::from_secs(7200), ..Options::of(site.options()) };
    let patient = Masakari::new(Options { confirm: true, ..patient }).unwrap();
    assert_eq!(ask(&patient, Step::Confirm, &mark).await, "wait recovering");
    // It was sent late, since Masakari was down: the time counts from when Masakari took it.
    let late = Timestamp::from_seconds(mark.generated_time.seconds() - 36_000);
    let late = Mark { generated_time: late, ..mark };
    let (site, driver) = recovering(&late).await;
    site.state().rows[0].created = Timestamp::now().seconds();
    assert_eq!(ask(&driver, Step::Confirm, &late).await, "wait recovering");
}

/// A driver that does not see all of a list does not say that something is missing there. The broken variant does.
#[tokio::test]
async fn what_may_only_be_hidden_is_not_gone() {
    let mark = fresh();
    let (site, driver) = recovering(&mark).await;
    site.state().end(0, "finished");
    site.state().page = 1;
    site.state().hosts = vec!["compute0.my.cloud.com", HOST, "compute2.my.cloud.com"];
    for which in [Step::Confirm, Step::Return] {
        assert_eq!(ask(&driver, which, &mark).await, "rejected not-shown");
    }
    site.state().hosts.remove(0);
    site.state().add(HOST, mark.generated_time.seconds() + 300);
    assert_eq!(ask(&driver, Step::Confirm, &mark).await, "acknowledged", "the oldest is shown too");
    assert_eq!(ask(&driver, Step::Return, &mark).await, "wait recovering");
}

/// Masakari leaves a host on maintenance for ever, and takes nothing about it then.
#[tokio::test]
async fn a_maintenance_of_our_own_making_ends_when_the_host_is_back() {
    for status in ["finished", "failed"] {
        let mark = fresh();
        let (site, driver) = recovering(&mark).await;
        assert_eq!(ask(&driver, Step::Return, &mark).await, "wait recovering", "not before it is done");
        site.state().end(0, status);
        assert_eq!(ask(&driver, Step::Return, &mark).await, "acknowledged");
        assert!(site.state().on_maintenance.is_empty());
        let put = site.state().asked.iter().filter(|asked| asked.starts_with("PUT")).count();
        assert_eq!(put, 1);
        // The next failure is taken again.
        let next = Mark { generated_time: mark.generated_time + Duration::from_secs(600), ..mark.clone() };
        assert_eq!(word(&send(&driver, &driver.body(&next), 0).await), "acknowledged");
    }
}

/// The broken variant ends any maintenance: an operator's, or that of a later failure, of which the host may still be down.
#[tokio::test]
async fn a_maintenance_of_others_stays() {
    let mark = fresh();
    let at = mark.generated_time.seconds();
    let not_sent: Event = |state, _| state.rows.clear();
    let ignored: Event = |state, _| state.end(0, "ignored");
    let sent_again: Event = |state, at| {
        state.end(0, "finished");
        state.add(HOST, at + 300);
        state.end(1, "finished");
    };
    let touched: Event = |state, at| {
        state.end(0, "finished");
        state.host_changed = Some(at + 201);
    };
    let other =
        [("not sent", not_sent), ("ignored", ignored), ("sent again", sent_again), ("touched", touched)];
    for (name, happens) in other {
        let (site, driver) = recovering(&mark).await;
        happens(&mut site.state(), at);
        assert_eq!(ask(&driver, Step::Return, &mark).await, "rejected not-ours", "{name}");
        assert!(!site.state().on_maintenance.is_empty(), "{name}");
        site.state().on_maintenance.clear();
        assert_eq!(ask(&driver, Step::Return, &mark).await, "acknowledged", "somebody ended it: {name}");
        assert!(site.state().asked.iter().all(|asked| !asked.starts_with("PUT")), "{name}");
    }
    let (site, driver) = recovering(&mark).await;
    site.state().end(0, "finished");
    site.state().host_changed = Some(at + 20);
    assert_eq!(ask(&driver, Step::Return, &mark).await, "acknowledged", "what changed it was the recovery");
}
