//! What the `masakari` driver does when the host is back: it ends a maintenance of its own making.

use std::time::Duration;

use drivers::masakari::{Masakari, Options};
use drivers::{Driver, Step};
use marks::mark::Mark;
use marks::time::Timestamp;

use crate::openstack::{Site, State, mark, send, send_step};
use crate::route::word;

const HOST: &str = "Compute1.my.cloud.com";

/// What happens in Masakari after the mark of that time was sent.
type Event = fn(&mut State, i64);

/// A route that ends the maintenance.
fn driver(site: &Site) -> Masakari {
    Masakari::new(Options { clear_maintenance: true, ..Options::of(site.options()) }).unwrap()
}

/// The mark of a host that failed now.
fn fresh() -> Mark {
    Mark { generated_time: Timestamp::now(), ..mark() }
}

/// The return of the host, with the bytes that are made for it.
async fn back(driver: &Masakari, mark: &Mark) -> String {
    let body = driver.return_body(mark, &driver.body(mark), Timestamp::now());
    word(&send_step(driver, Step::Return, &body, 0).await)
}

/// A site where the notification of a host was taken, and the host's engine has put it on maintenance.
async fn recovering(mark: &Mark) -> (Site, Masakari) {
    let site = Site::new().await;
    let driver = driver(&site);
    assert_eq!(word(&send(&driver, &driver.body(mark), 0).await), "acknowledged");
    site.state().on_maintenance.insert(HOST);
    (site, driver)
}

/// An engine that died never goes on: its notification stays as it is for a day. The time counts from when Masakari took it.
#[tokio::test]
async fn a_recovery_is_waited_for_unless_it_hangs() {
    let mark = fresh();
    let (site, driver) = recovering(&mark).await;
    for status in ["new", "running", "error"] {
        site.state().end(0, status);
        for (age, expected) in [(1700, "wait recovering"), (1900, "rejected recovery-hangs")] {
            site.state().rows[0].created = mark.generated_time.seconds() - age;
            assert_eq!(back(&driver, &mark).await, expected, "{status}");
        }
    }
}

/// A driver that does not see all of a list does not say that something is missing there. The broken variant does.
#[tokio::test]
async fn what_may_only_be_hidden_is_not_gone() {
    let mark = fresh();
    let (site, driver) = recovering(&mark).await;
    site.state().end(0, "finished");
    site.state().page = 1;
    site.state().hosts = vec!["compute0.my.cloud.com", HOST, "compute2.my.cloud.com"];
    assert_eq!(back(&driver, &mark).await, "rejected not-shown");
    site.state().hosts.remove(0);
    site.state().add(HOST, mark.generated_time.seconds() + 300);
    assert_eq!(back(&driver, &mark).await, "wait recovering", "the oldest is shown too");
}

/// Masakari leaves a host on maintenance for ever, and takes nothing about it then.
#[tokio::test]
async fn a_maintenance_of_our_own_making_ends_when_the_host_is_back() {
    for status in ["finished", "failed"] {
        let mark = fresh();
        let (site, driver) = recovering(&mark).await;
        assert_eq!(back(&driver, &mark).await, "wait recovering", "not before it is done");
        site.state().end(0, status);
        assert_eq!(back(&driver, &mark).await, "acknowledged");
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
        assert_eq!(back(&driver, &mark).await, "rejected not-ours", "{name}");
        assert!(!site.state().on_maintenance.is_empty(), "{name}");
        site.state().on_maintenance.clear();
        assert_eq!(back(&driver, &mark).await, "acknowledged", "somebody ended it: {name}");
        assert!(site.state().asked.iter().all(|asked| !asked.starts_with("PUT")), "{name}");
    }
    let (site, driver) = recovering(&mark).await;
    site.state().end(0, "finished");
    site.state().host_changed = Some(at + 20);
    assert_eq!(back(&driver, &mark).await, "acknowledged", "what changed it was the recovery");
}
