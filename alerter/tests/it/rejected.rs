//! When an endpoint rejects one host's mark, the others are sent as if it had not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alerter::control::api::{Daemon, Request, RouteStatus, TestAnswer};
use alerter::delivery::endpoint;
use alerter::delivery::endpoint::{Endpoint as Breaker, Sign};
use alerter::delivery::outbox::{FRESH, Outbox};
use alerter::moment::Moment;
use journal::{DueDelivery, Ended, Journal, Verdict};
use marks::delivery::State;
use marks::id::MarkId;
use serde_json::Value;
use tokio::time::timeout;

use crate::endpoint::{Endpoint, OK};
use crate::reload::{LONG, Running, said};
use crate::routes::{Place, route};
use crate::site::again;

/// Answers by host, until others are put in their place; 200 where there is none.
type Answers = Arc<Mutex<BTreeMap<String, u16>>>;

/// A receiver that rejects these hosts.
async fn receiver(against: &[&str], status: u16) -> (Endpoint, Answers) {
    let answers: Answers =
        Arc::new(Mutex::new(against.iter().map(|host| ((*host).to_owned(), status)).collect()));
    let known = Arc::clone(&answers);
    let endpoint = Endpoint::acting(move |mut peer| {
        let known = Arc::clone(&known);
        async move {
            let Some(request) = peer.take_request().await else { return };
            let status = known.lock().unwrap().get(&host_in(&request)).copied();
            let status = status.map(|status| format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n"));
            peer.say(status.as_deref().map_or(OK, str::as_bytes)).await;
        }
    });
    (endpoint.await, answers)
}

/// The short name of the host that a message is about.
fn host_in(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let event: Value = serde_json::from_str(body).unwrap_or_default();
    event["payload"]["hostname"].as_str().unwrap_or_default().trim_end_matches(".x.y").to_owned()
}

/// How often each host was sent.
fn sent(endpoint: &Endpoint) -> BTreeMap<String, usize> {
    let mut sent = BTreeMap::new();
    endpoint.requests().iter().for_each(|request| *sent.entry(host_in(request)).or_default() += 1);
    sent
}

fn table(url: &str) -> String {
    format!("[http.r]\nurl = \"{url}\"\nallow-http = true\n")
}

async fn fence_all(running: &Running, name: &str, count: usize) -> Vec<MarkId> {
    let mut marks = Vec::new();
    for number in 1..=count {
        marks.push(running.fence(&format!("{name}-{number}")).await);
    }
    marks
}

async fn all_are(running: &Running, marks: &[MarkId], state: State) {
    for mark in marks {
        running.until(*mark, "r", state).await;
    }
}

async fn status(running: &Running) -> RouteStatus {
    let daemon: Daemon = running.socket().get("/v1/status").await.unwrap();
    daemon.routes.into_iter().find(|route| route.name == "r").unwrap()
}

const BAD: [&str; 6] = ["bad-1", "bad-2", "bad-3", "bad-4", "bad-5", "bad-6"];

/// What seems a refusal of everybody, 403 or 404, and is about one host: another one shows it at once, and from then on it
/// is that host's matter. The broken variant leaves the endpoint alone for a minute, each time that the one is tried.
#[tokio::test]
async fn what_is_refused_of_one_host_alone_parks_nobody_else() {
    for status_code in [403, 404] {
        let (endpoint, _) = receiver(&["bad-1"], status_code).await;
        let running = Running::with(&table(&endpoint.url())).await;
        let bad = fence_all(&running, "bad", 1).await;
        all_are(&running, &bad, State::Parked).await;
        let good = fence_all(&running, "good", 1).await;
        all_are(&running, &good, State::Acknowledged).await;
        // It was due again at once, and is put off by itself this time.
        said(&endpoint, 3).await;
        timeout(LONG, async {
            let rejected = || running.shared.base.store.run(|journal: &mut Journal| journal.rejected_hosts());
            while rejected().await.unwrap().is_empty() {
                running.shared.passed.notified().await;
            }
        })
        .await
        .unwrap();
        let more = running.fence("good-2").await;
        all_are(&running, &[more], State::Acknowledged).await;
        let wanted =
            [("bad-1", 2), ("good-1", 1), ("good-2", 1)].map(|(host, times)| (host.to_owned(), times));
        assert_eq!(sent(&endpoint), BTreeMap::from(wanted));
        let route = status(&running).await;
        assert!(!route.refuses && route.failing_since.is_none(), "{route:?}");
    }
}

/// S3-50: a test message proves that there is a way, and not that a host's mark is taken.
#[tokio::test]
async fn a_test_message_does_not_say_that_all_is_well_where_hosts_are_rejected() {
    let (endpoint, _) = receiver(&BAD, 422).await;
    let running = Running::with(&table(&endpoint.url())).await;
    let test = async || -> TestAnswer {
        let answers: Vec<TestAnswer> =
            running.socket().post("/v1/send-test", &Request::default()).await.unwrap();
        answers.into_iter().next().unwrap()
    };
    let before = test().await;
    assert!(before.accepted && before.detail.ends_with("may still be rejected"), "{before:?}");
    let bad = fence_all(&running, "bad", BAD.len()).await;
    all_are(&running, &bad, State::Parked).await;
    let after = test().await;
    assert!(
        after.accepted && after.detail.contains("bad-1, bad-2, bad-3, bad-4, bad-5 and 1 more"),
        "{after:?}"
    );
}

/// A route's outbox on a real journal, in a time of its own.
struct Drive {
    place: crate::routes::Daemon,
    _site: Place,
    outbox: Outbox,
    now: Moment,
    ended: Vec<Ended>,
    /// Whose exchanges were made, in their order.
    exchanges: Vec<String>,
}

impl Drive {
    /// This many hosts were rejected an hour ago, and are all due again.
    fn with_rejected(count: usize, breaker: impl FnOnce(Instant) -> Breaker) -> Self {
        let site = Place::new();
        let place = site.start(&route("oncall", ""));
        let now = Moment::now();
        let mut drive = Self {
            place,
            _site: site,
            outbox: Outbox::new(Breaker::new(8)),
            now,
            ended: Vec::new(),
            exchanges: Vec::new(),
        };
        for number in 0..count {
            drive.place.fence(&format!("bad-{number}"), now.wall);
        }
        while drive.exchanges.len() < count {
            drive.dispatch();
        }
        drive.dispatch();
        drive.pass(Duration::from_secs(3601));
        drive.exchanges.clear();
        drive.outbox = Outbox::new(breaker(drive.now.instant));
        drive
    }

    fn pass(&mut self, time: Duration) {
        self.now = Moment { instant: self.now.instant + time, wall: self.now.wall + time };
    }

    /// What the engine does in one turn, and the answers to what it sent.
    fn dispatch(&mut self) {
        let route = self.place.shared.base.route("oncall").unwrap();
        let capacity = [self.outbox.ask(&route, self.now.instant)];
        let ended = std::mem::take(&mut self.ended);
        let dispatched = self.place.journal.dispatch(&ended, &capacity, None, self.now.wall).unwrap();
        self.outbox.take_up(dispatched.begun, capacity[0].places, FRESH, self.now);
        let sent: Vec<DueDelivery> = std::iter::from_fn(|| self.outbox.next(self.now)).collect();
        self.pass(Duration::from_millis(10));
        sent.iter().for_each(|due| self.answer(due));
    }

    fn answer(&mut self, due: &DueDelivery) {
        let (host, mark, at) = (&due.mark.node, due.mark.id, self.now.wall);
        self.exchanges.push(host.to_string());
        self.outbox.ended(due.mark.id);
        self.outbox.endpoint.end(host, &Sign::Takes, None, self.now.instant, 0.5);
        let verdict = match host.as_str().starts_with("bad") {
            false => Verdict::Acknowledged { reference: None, detail: "200".into() },
            true => {
                again(State::Parked, false, ("rejected", "422"), at + endpoint::slow(Duration::ZERO, 0.5))
            }
        };
        self.ended.push(Ended { mark, route: "oncall".into(), verdict, at });
    }

    /// How many turns, and how many exchanges, it takes until so many other hosts are sent.
    fn until_sent(&mut self, count: usize) -> (usize, usize) {
        for number in 0..count {
            self.place.fence(&format!("good-{number}"), self.now.wall);
        }
        let good = |drive: &Self| drive.exchanges.iter().filter(|host| host.starts_with("good")).count();
        let mut turns = 0;
        while good(self) < count {
            assert!(turns < 1000, "{:?}", self.exchanges);
            self.dispatch();
            turns += 1;
        }
        (turns, self.exchanges.len())
    }
}

/// P6: beside a hundred hosts whose rejected marks are all due again the others take as many turns as without them, also behind
/// a breaker that is open for another reason: the probe is one that was not tried. The broken variants go by age alone.
#[test]
fn a_hundred_rejected_hosts_cost_the_others_no_turn() {
    let healthy = |_: Instant| Breaker::new(8);
    let in_trouble = |now: Instant| Breaker::in_trouble(8, now);
    for count in [1, 25] {
        for breaker in [healthy as fn(Instant) -> Breaker, in_trouble] {
            let alone = Drive::with_rejected(0, breaker).until_sent(count);
            let mut beside = Drive::with_rejected(100, breaker);
            let (turns, exchanges) = beside.until_sent(count);
            assert_eq!(turns, alone.0, "{:?}", beside.exchanges);
            assert!(exchanges <= alone.1 + 8, "those that had a place that nobody else wanted: {exchanges}");
            // None of the hundred is left out either.
            (0..200).for_each(|_| beside.dispatch());
            assert_eq!(beside.exchanges.iter().filter(|host| host.starts_with("bad")).count(), 100);
        }
    }
}

/// However many rejected marks are being sent at this moment, one that comes now has its place.
#[test]
fn a_new_mark_waits_for_no_exchange_of_a_rejected_one() {
    let mut drive = Drive::with_rejected(100, |_| Breaker::new(8));
    let oncall = drive.place.shared.base.route("oncall").unwrap();
    let begin = |drive: &mut Drive| {
        let capacity = [drive.outbox.ask(&oncall, drive.now.instant)];
        let begun = drive.place.journal.dispatch(&[], &capacity, None, drive.now.wall).unwrap().begun;
        drive.outbox.take_up(begun, capacity[0].places, FRESH, drive.now);
        std::iter::from_fn(|| drive.outbox.next(drive.now))
            .map(|due| due.mark.node.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(begin(&mut drive).len(), 7);
    assert_eq!(begin(&mut drive), Vec::<String>::new());
    drive.place.fence("good", drive.now.wall);
    assert_eq!(begin(&mut drive), ["good"]);
}
