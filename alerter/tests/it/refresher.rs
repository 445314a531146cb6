//! The daemon's refresher, with a real journal and an endpoint that answers as a test says.

use std::sync::Arc;
use std::time::Duration;

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::config::Route;
use alerter::daemon::refresher;
use alerter::state::Shared;
use journal::{Capacity, Ended, HistoryFilter, Journal, NewDelivery, Role, Taken, Verdict};
use marks::id::MarkId;
use marks::refresh::Refresh;
use marks::time::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::config::Site;
use crate::endpoint::{Endpoint, OK};

const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
const REJECTED: &[u8] = b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n";
/// Between two rounds.
const ROUND: Duration = Duration::from_millis(5);

/// A daemon's state with two hosts that are down, as the route of `endpoint` has acknowledged.
struct Daemon {
    shared: Arc<Shared>,
    route: Arc<Route>,
    marks: [MarkId; 2],
    _site: Site,
}

impl Daemon {
    async fn with(endpoint: &Endpoint) -> Self {
        let site = Site::new(&format!(
            "[http.alerts]\nurl = \"{}\"\nbody = \"alertmanager\"\nwhen-returned = \"notify\"\n",
            endpoint.url()
        ))
        .with_own_journal()
        .with("alerter.d/alone.toml", "[store]\nregister = \"none\"\n");
        let settings = site.settings();
        let route = Arc::clone(&settings.routes[0]);
        let journal = Journal::open(&settings.store.path, Role::Alerter).unwrap();
        let (store, _thread) = Store::start(journal).unwrap();
        let shared = Arc::new(Shared::new(Base::new(settings, store, None)));
        let marks = [fail(&shared, &route, "compute1").await, fail(&shared, &route, "compute2").await];
        Self { shared, route, marks, _site: site }
    }

    /// Begins to refresh.
    fn refresh(&self) -> CancellationToken {
        let stop = CancellationToken::new();
        let refresh = Refresh { every: ROUND, ..self.route.driver.refreshed().unwrap() };
        let (shared, route) = (Arc::clone(&self.shared), Arc::clone(&self.route));
        tokio::spawn(refresher::keep(shared, route, refresh, stop.clone()));
        stop
    }

    /// All that the journal says of deliveries and history.
    async fn journal(&self) -> String {
        let marks = self.marks;
        let read = move |journal: &mut Journal| {
            let deliveries = [journal.deliveries_of(marks[0])?.sound, journal.deliveries_of(marks[1])?.sound];
            Ok(format!("{deliveries:?} {:?}", journal.history(&HistoryFilter::default())?.sound))
        };
        self.shared.base.store.run(read).await.unwrap()
    }

    /// How many of the requests were about each host.
    fn requests(&self, endpoint: &Endpoint) -> [usize; 2] {
        let all = endpoint.requests();
        let about = |mark: MarkId| {
            all.iter().filter(|request| String::from_utf8_lossy(request).contains(&mark.to_string())).count()
        };
        self.marks.map(about)
    }
}

/// A host fails, and the route has acknowledged it.
async fn fail(shared: &Shared, route: &Route, host: &str) -> MarkId {
    let now = Timestamp::now() - Duration::from_secs(60);
    let first = samples::fencing(host, now);
    let row = samples::mark(&first);
    let body = route.driver.body(&row.to_mark().unwrap());
    let (name, target, id) = (route.name.as_str().to_owned(), route.driver.target(), row.id);
    let new = NewDelivery { route: name.clone(), body, required: true, link: None };
    let verdict = Verdict::Acknowledged { reference: None, detail: "HTTP 200".into(), then: Vec::new() };
    let ended = Ended { mark: id, route: name.clone(), verdict, at: now };
    let work = move |journal: &mut Journal| {
        journal.append_fencing(&first)?;
        journal.make_mark(&row, Taken::Fencing(&first), &[new], now)?;
        let begun = journal.dispatch(&[], &[Capacity { target, ..Capacity::of(&name, 1) }], None, now)?;
        assert_eq!(begun.begun.len(), 1);
        journal.dispatch(&[ended], &[], None, now).map(drop)
    };
    shared.base.store.run(work).await.unwrap();
    id
}

/// It goes on for as long as the engine may act, and no longer; the journal does not change with it.
#[tokio::test]
async fn what_is_open_is_sent_again_while_the_alerter_may_act() {
    let mut endpoint = Endpoint::saying(OK).await;
    let daemon = Daemon::with(&endpoint).await;
    let before = daemon.journal().await;
    let stop = daemon.refresh();
    for _ in 0..20 {
        tokio::time::sleep(ROUND).await;
    }
    assert_eq!(endpoint.connections(), 0, "nobody has allowed it yet");
    daemon.shared.acting.allow(Duration::MAX);
    for _ in 0..4 {
        endpoint.connection_ended().await;
    }
    daemon.shared.acting.allow(Duration::ZERO);
    let [first, second] = daemon.requests(&endpoint);
    assert!(first >= 2 && second >= 2, "{first} {second}");
    let request = String::from_utf8(endpoint.requests()[0].clone()).unwrap();
    assert!(request.contains("\"alertname\":\"HostFailed\""), "{request}");
    stop.cancel();
    assert_eq!(daemon.journal().await, before);
}

/// A host that is back is left alone, though its return was not sent yet; the other one is not.
#[tokio::test]
async fn a_host_that_is_back_is_left_alone() {
    let mut endpoint = Endpoint::saying(OK).await;
    let daemon = Daemon::with(&endpoint).await;
    let (mark, now) = (daemon.marks[0], Timestamp::now());
    daemon.shared.base.store.run(move |journal| journal.note_return(mark, now, now)).await.unwrap();
    daemon.shared.acting.allow(Duration::MAX);
    let stop = daemon.refresh();
    for _ in 0..3 {
        endpoint.connection_ended().await;
    }
    stop.cancel();
    let [back, away] = daemon.requests(&endpoint);
    assert!(back == 0 && away >= 3, "{back} {away}");
}

/// An endpoint that is in trouble is asked once a round; one that rejects an alert gets the others. The broken variant asks
/// once for each host that is down, or stops at the first alert that is rejected.
#[tokio::test]
async fn trouble_ends_a_round_and_a_rejection_does_not() {
    for (answer, is_for_all) in [(BUSY, false), (REJECTED, true)] {
        let mut endpoint = Endpoint::saying(answer).await;
        let daemon = Daemon::with(&endpoint).await;
        daemon.shared.acting.allow(Duration::MAX);
        let stop = daemon.refresh();
        for _ in 0..4 {
            endpoint.connection_ended().await;
        }
        stop.cancel();
        let [first, second] = daemon.requests(&endpoint);
        assert!(first >= 2 && (second >= 1) == is_for_all, "{first} {second}");
    }
}
